# Targets that arrange work instead of doing it (verbs, importers, text and JSON, code that builds
# Halide IR) link laminate_light PRIVATE. At -O1 they compile in four fifths of the time, and the
# program is as fast.
add_library(laminate_light INTERFACE)
target_compile_options(laminate_light INTERFACE
    $<$<AND:$<CONFIG:Release>,$<COMPILE_LANGUAGE:CXX>>:-O1>)
