// LAMINATE_FOR_EACH_VECTOR_WIDTH before a function compiles it for several vector widths, and one
// binary runs at the width of its machine. Products and sums are not contracted (ISO C++), so
// results are equal at every width if the order of additions is.
#pragma once

// The resolvers that this needs run before sanitizers have started.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define LAMINATE_FOR_EACH_VECTOR_WIDTH \
    __attribute__((target_clones("avx512f", "avx2,fma", "default")))
#else
#define LAMINATE_FOR_EACH_VECTOR_WIDTH
#endif
