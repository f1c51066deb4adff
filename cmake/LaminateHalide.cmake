# A network's group as a library of stock Halide: `laminate show --halide` prints its generator, and
# Halide's own add_halide_generator() and add_halide_library() build it. The caller has done
# find_package(Halide).
#
#   laminate_add_halide_library(TARGET NETWORK SCHEDULE
#       [CLOSEST] [LAMINATE program] [CONSTANTS dir] [PARAMS name=value ...])
#
# TARGET is also the name of the function. NETWORK is an ONNX file or zoo:NAME. SCHEDULE has one group:
# a schedule's text, a schedule file, or a front's point (DIR#N). Relative files lie in the source
# directory. CLOSEST takes the nearest that Halide does where it does not execute the schedule exactly.
# LAMINATE is the program, by default the one in PATH. CONSTANTS is the folder, in the build directory
# if relative, where weights, biases and slopes are written as .npy. PARAMS are the generator's tile
# sizes, `lanes` and `threads`.
function(laminate_add_halide_library TARGET NETWORK SCHEDULE)
    cmake_parse_arguments(PARSE_ARGV 3 ARG "CLOSEST" "LAMINATE;CONSTANTS" "PARAMS")
    if(ARG_UNPARSED_ARGUMENTS)
        message(FATAL_ERROR "laminate_add_halide_library(${TARGET}): found \"${ARG_UNPARSED_ARGUMENTS}\", "
                            "expected CLOSEST, LAMINATE, CONSTANTS or PARAMS")
    endif()
    if(NOT ARG_LAMINATE)
        set(ARG_LAMINATE laminate)
    endif()
    find_program(program NAMES "${ARG_LAMINATE}" NO_CACHE REQUIRED)
    set(options "")
    if(ARG_CLOSEST)
        list(APPEND options --closest)
    endif()
    if(ARG_CONSTANTS)
        list(APPEND options --constants "${ARG_CONSTANTS}")
    endif()
    set(sources "")
    if(SCHEDULE MATCHES "^{")
        # In a file, so that Makefiles notice another text, too; one that is the same stays as it is.
        file(CONFIGURE OUTPUT "${CMAKE_CURRENT_BINARY_DIR}/${TARGET}.schedule" CONTENT "${SCHEDULE}\n" @ONLY)
        set(SCHEDULE "${CMAKE_CURRENT_BINARY_DIR}/${TARGET}.schedule")
    endif()
    foreach(argument IN ITEMS NETWORK SCHEDULE)
        string(REGEX REPLACE "#[0-9]+$" "" file "${${argument}}") # a point of a front
        string(LENGTH "${file}" length)
        string(SUBSTRING "${${argument}}" ${length} -1 point)
        cmake_path(ABSOLUTE_PATH file BASE_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}")
        if(EXISTS "${file}")
            set(${argument} "${file}${point}")
            if(IS_DIRECTORY "${file}")
                set(file "${file}/front.json")
            endif()
            list(APPEND sources "${file}")
        endif()
    endforeach()
    set(generator "${CMAKE_CURRENT_BINARY_DIR}/${TARGET}_generator.cpp")
    add_custom_command(OUTPUT "${generator}"
        COMMAND "${program}" show "${SCHEDULE}" --net "${NETWORK}" --halide --name "${TARGET}" ${options}
                > "${generator}.partial"
        COMMAND "${CMAKE_COMMAND}" -E rename "${generator}.partial" "${generator}"
        DEPENDS ${sources} "${program}" VERBATIM)
    add_halide_generator(${TARGET}.generator SOURCES "${generator}")
    add_halide_library(${TARGET} FROM ${TARGET}.generator GENERATOR ${TARGET} PARAMS ${ARG_PARAMS})
endfunction()
