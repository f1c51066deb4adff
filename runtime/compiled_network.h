/* A compiled network as the runtime sees it: one C struct, whether its functions were linked in
 * statically, loaded from a shared object, or made by the JIT of `laminate run`. Plain C; no
 * Halide, no C++. */
#ifndef LAMINATE_COMPILED_NETWORK_H
#define LAMINATE_COMPILED_NETWORK_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define LAMINATE_ABI_VERSION 1u

/* One fused group, for one image of the batch. Every array holds 32-bit floats, planar CHW, without
 * padding between planes.
 *   inputs       external input tensors of the group, in the order of the manifest's step
 *   outputs      external output tensors, likewise
 *   constants    packed weights, biases and slopes of this group
 *   scratch      at least the manifest's scratch_bytes, 64-byte aligned, one per concurrent call
 *   strip_begin, strip_end   half-open range of the group's strips (bands of output rows) to
 * compute Strips are independent: different threads may compute different ranges into the same
 * outputs. Returns 0, or a non-zero code. Never throws, never allocates. */
typedef int (*laminate_group_function)(const float* const* inputs, float* const* outputs,
                                       const float* constants, void* scratch, int32_t strip_begin,
                                       int32_t strip_end);

typedef struct laminate_compiled_network {
    uint32_t abi_version;                  /* LAMINATE_ABI_VERSION */
    const char* manifest;                  /* JSON, NUL-terminated; see runtime/manifest.h */
    const float* constants;                /* all groups' and reference layers' constants */
    uint64_t constant_count;               /* elements */
    const laminate_group_function* groups; /* indexed by the manifest's "group" */
    uint32_t group_count;
} laminate_compiled_network;

#ifdef __cplusplus
}
#endif
#endif
