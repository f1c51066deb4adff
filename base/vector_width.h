// LAMINATE_FOR_EACH_VECTOR_WIDTH before a function compiles it for several vector widths, and one
// binary runs at the width of its machine. Products and sums are contracted only in the files that
// nets/CMakeLists.txt names for it; in all others results are equal at every width if the order of
// additions is.
#pragma once

// The level x86-64-v3 has AVX2 and FMA. A list of names, "avx2,fma", would be one copy for each name,
// and the copy with AVX2 comes first and has no FMA. The resolvers that this needs run before
// sanitizers have started.
#if defined(__x86_64__) && defined(__GNUC__) && __GNUC__ >= 12 && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define LAMINATE_FOR_EACH_VECTOR_WIDTH \
    __attribute__((target_clones("avx512f", "arch=x86-64-v3", "default")))
#else
#define LAMINATE_FOR_EACH_VECTOR_WIDTH
#endif
