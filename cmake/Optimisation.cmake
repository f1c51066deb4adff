# Targets that arrange work instead of doing it (verbs, importers, text and JSON, code that builds
# Halide IR) link laminate_light PRIVATE. At -O1 they compile in four fifths of the time, and the
# program is as fast.
add_library(laminate_light INTERFACE)
target_compile_options(laminate_light INTERFACE
    $<$<AND:$<CONFIG:Release>,$<COMPILE_LANGUAGE:CXX>>:-O1>)

# GCC spends a tenth of its time on garbage collection. With a heap of 512 MiB before the first one
# it hardly collects, and the largest source takes 1 GiB instead of 0.8.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    add_compile_options("SHELL:--param ggc-min-heapsize=524288")
endif()
