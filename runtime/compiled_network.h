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
 *   inputs       external input tensors of the group, in the order of the manifest's step; of a
 *                group of any size then, in place of one more, the address of five int32_t: images,
 *                rows and columns of the network's input, rows and columns of the group's strips
 *   outputs      external output tensors, likewise
 *   constants    packed weights, biases and slopes of this group
 *   scratch      at least the manifest's scratch_bytes, 64-byte aligned, one per concurrent call
 *   strip_begin, strip_end   half-open range of the group's strips (bands of output rows) to
 * compute Strips are independent: different threads may compute different ranges into the same
 * outputs. Returns 0, or a non-zero code. Never throws, never allocates. */
typedef int (*laminate_group_function)(const float* const* inputs, float* const* outputs,
                                       const float* constants, void* scratch, int32_t strip_begin,
                                       int32_t strip_end);

/* Where a group with hooks reports what it does: the kind of event (laminate_trace_kind of
 * runtime/trace.h), the index of the buffer among the step's "buffers" in the manifest, and begin
 * and end of a box along its three axes, then along the input channels of a sum. */
typedef struct laminate_hook {
    void (*function)(void* context, int32_t kind, int32_t buffer, const int32_t box[8]);
    void* context;
} laminate_hook;

/* The same with hooks. `hook` may be null. */
typedef int (*laminate_hooked_group_function)(const float* const* inputs, float* const* outputs,
                                              const float* constants, void* scratch,
                                              int32_t strip_begin, int32_t strip_end,
                                              const laminate_hook* hook);

typedef struct laminate_compiled_network {
    uint32_t abi_version;                  /* LAMINATE_ABI_VERSION */
    const char* manifest;                  /* JSON, NUL-terminated; see runtime/manifest.h */
    const float* constants;                /* all groups' and reference layers' constants */
    uint64_t constant_count;               /* elements */
    const laminate_group_function* groups; /* indexed by the manifest's "group" */
    uint32_t group_count;
    /* Likewise. Exists only where the manifest says "instrumented". */
    const laminate_hooked_group_function* hooked_groups;
} laminate_compiled_network;

#ifdef __cplusplus
}
#endif
#endif
