/* What a network that was compiled with hooks (`laminate compile --instrumented`) tells while it
 * runs: which buffers the schedule has at each moment, which boxes of tensors come into them from
 * external memory, which are computed, and which leave. docs/instrumented.md says how to count with
 * it; runtime/two_level_memory.h is a memory that does.
 *
 * Tensors are of one image and indexed channel, row, column; weights are indexed output channel,
 * input channel within the group of the convolution, and tap of the kernel, row by row. Numbers are
 * elements of four bytes. Boxes are half open and never empty. */
#ifndef LAMINATE_TRACE_H
#define LAMINATE_TRACE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum laminate_buffer_role {
    LAMINATE_INPUT = 0,        /* X: an external input of the group */
    LAMINATE_WEIGHTS = 1,      /* W of a layer */
    LAMINATE_INTERMEDIATE = 2, /* the output of a layer that another layer of the group reads */
    LAMINATE_OUTPUT = 3        /* Y: the output of the group's last layer */
} laminate_buffer_role;

/* A buffer that the schedule of a group promises: the internal memory that a tensor takes. Lives as
 * long as its session. */
typedef struct laminate_buffer {
    laminate_buffer_role role;
    const char* group;  /* name of the group, as in the manifest */
    int32_t step;       /* index of the group among the steps of the manifest */
    const char* layer;  /* that computes it; of X the first that reads it; of W whose weights */
    const char* tensor; /* name in the network; of W the layer's name */
    int64_t dims[3];    /* of the whole tensor */
    /* Size of the buffer along the same axes. Where it is smaller than the tensor, it holds that
     * many neighbouring coordinates and rotates: coordinate c lies at c modulo extent. */
    int64_t extent[3];
} laminate_buffer;

typedef enum laminate_trace_kind {
    LAMINATE_BEGINS = 0,     /* the buffer takes its place and is empty; the box is [0, extent) */
    LAMINATE_ENDS = 1,       /* it gives its place back; the box as above */
    LAMINATE_FETCHES = 2,    /* X, W: the box comes in from external memory */
    LAMINATE_COMPUTES = 3,   /* the layer computes the box of its output into the buffer */
    LAMINATE_READS_BACK = 4, /* Y: partial sums of the box come in from external memory */
    LAMINATE_WRITES = 5      /* Y: the box goes out to external memory */
} laminate_trace_kind;

typedef struct laminate_trace_event {
    laminate_trace_kind kind;
    const laminate_buffer* buffer;
    int64_t image; /* of the batch, from 0 */
    int64_t begin[3];
    int64_t end[3];
    /* LAMINATE_COMPUTES: multiply-accumulates of the box, taps on padding among them
     * (docs/counting.md section 1). Otherwise 0. */
    int64_t macs;
} laminate_trace_event;

/* Called in the order of execution, by the thread that runs the session. It may not run or close
 * that session, and no exception may leave it. The event lives until it returns. */
typedef void (*laminate_trace_function)(void* user, const laminate_trace_event* event);

#ifdef __cplusplus
}
#endif
#endif
