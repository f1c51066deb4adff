// LAMINATE_FOR_EACH_VECTOR_WIDTH before a function: one binary runs at the width of the machine it
// meets. Products and sums are not contracted (ISO C++), so results are the same at every width
// where the order of additions is.
#pragma once

// Sanitizers start too late for the resolvers that this needs.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define LAMINATE_FOR_EACH_VECTOR_WIDTH \
    __attribute__((target_clones("avx512f", "avx2,fma", "default")))
#else
#define LAMINATE_FOR_EACH_VECTOR_WIDTH
#endif
