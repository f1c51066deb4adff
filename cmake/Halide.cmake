# The imported target Laminate::Halide: compiler library and headers from the wheel that
# LAMINATE_PYTHON has installed. Only generators, instrumentation's pass, answers/version.cpp and
# cli may link it; a deployed network does not need it.
#
# The wheel's own CMake package is not used, because it asks for PNG, JPEG and Python components.
set(LAMINATE_PYTHON "" CACHE FILEPATH
    "Python interpreter whose environment holds the halide wheel (and the peers for tests)")
set(LAMINATE_HALIDE_ROOT "" CACHE PATH
    "Halide with include/Halide.h and lib64/ or lib/; empty: ask LAMINATE_PYTHON")

if(NOT LAMINATE_HALIDE_ROOT)
    if(NOT LAMINATE_PYTHON)
        message(FATAL_ERROR
            "Halide: give -DLAMINATE_PYTHON=<python with the halide wheel> or "
            "-DLAMINATE_HALIDE_ROOT=<dir>; `make` sets up build/venv and does this")
    endif()
    execute_process(
        COMMAND "${LAMINATE_PYTHON}" -c
"from importlib.util import find_spec
print(find_spec('halide').submodule_search_locations[0], end='')"
        OUTPUT_VARIABLE laminate_halide_root RESULT_VARIABLE laminate_halide_result ERROR_QUIET)
    if(NOT laminate_halide_result EQUAL 0)
        message(FATAL_ERROR
            "Halide: ${LAMINATE_PYTHON} has no package `halide`; expected the one that "
            "requirements.txt pins")
    endif()
else()
    set(laminate_halide_root "${LAMINATE_HALIDE_ROOT}")
endif()

find_library(laminate_halide_library Halide HINTS "${laminate_halide_root}"
    PATH_SUFFIXES lib64 lib NO_DEFAULT_PATH NO_CACHE REQUIRED)
if(NOT EXISTS "${laminate_halide_root}/include/Halide.h")
    message(FATAL_ERROR "Halide: ${laminate_halide_root}/include/Halide.h does not exist")
endif()

add_library(Laminate::Halide SHARED IMPORTED GLOBAL)
set_target_properties(Laminate::Halide PROPERTIES
    IMPORTED_LOCATION "${laminate_halide_library}"
    IMPORTED_SONAME "libHalide.so"
    INTERFACE_INCLUDE_DIRECTORIES "${laminate_halide_root}/include")
set_property(TARGET Laminate::Halide APPEND PROPERTY
    INTERFACE_LINK_LIBRARIES Threads::Threads ${CMAKE_DL_LIBS})
message(STATUS "Halide: ${laminate_halide_root}")
