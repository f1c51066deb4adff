# Every target of ours links laminate_warnings PRIVATE. Foreign headers come in as SYSTEM (imported
# targets).
add_library(laminate_warnings INTERFACE)
target_compile_options(laminate_warnings INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wshadow -Wconversion>
    $<$<COMPILE_LANGUAGE:C>:-Wall -Wextra>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    # GCC bug 105651: std::string operator+ with a literal warns wrongly at -O2.
    target_compile_options(laminate_warnings INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>)
endif()
if(CMAKE_UNITY_BUILD AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # A unity source includes the sources of its batch, so GCC takes their types for types of
    # headers.
    target_compile_options(laminate_warnings INTERFACE
        $<$<COMPILE_LANGUAGE:CXX>:-Wno-subobject-linkage>)
endif()
