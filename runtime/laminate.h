/* C API of the runtime: runs a compiled network. Link liblaminate_runtime.a, or load
 * liblaminate.so; neither needs Halide or protobuf.
 *
 *   laminate_session* session = laminate_open("fsrcnn", 0);
 *   if (!session) { fprintf(stderr, "%s\n", laminate_last_error()); return 1; }
 *   const float* inputs[] = {picture};
 *   float* outputs[] = {result};
 *   if (laminate_run(session, inputs, outputs) != 0) ...
 *   laminate_close(session);
 *
 * Arrays are 32-bit floats, dense, row major, N C H W (N F after Flatten and Gemm), allocated by
 * the caller. laminate_open() allocates all memory; laminate_run() allocates nothing. While it runs,
 * subnormal numbers are zeros, unless the network was compiled with --strict. A session
 * runs one call at a time: open one session per thread. No exception leaves these functions. */
#ifndef LAMINATE_LAMINATE_H
#define LAMINATE_LAMINATE_H

#include <stdint.h>

#include "runtime/compiled_network.h"
#include "runtime/trace.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct laminate_session laminate_session;

/* Opens a directory made by `laminate compile` (loads its shared library), or a network that is
 * linked into the program (the struct must outlive the session). `threads` is the most to use, up
 * to 1024; 0 leaves the choice to OpenMP. Returns null on failure; laminate_last_error() says why.
 */
laminate_session* laminate_open(const char* directory, int32_t threads);
laminate_session* laminate_open_linked(const laminate_compiled_network* network, int32_t threads);
/* Null is allowed. Not while a run of this session goes on. */
void laminate_close(laminate_session* session);

/* Inputs and outputs in the network's order. An index out of range, or a null session, gives null,
 * or -1 for a count or rank. Names and dims live as long as the session. A type is "float32", or
 * "uint8" or "int8" where the network was exported with bytes there. Arrays of bytes are passed as
 * floats too, with values from 0 to 255 or from -128 to 127. */
int32_t laminate_input_count(const laminate_session* session);
const char* laminate_input_name(const laminate_session* session, int32_t index);
int32_t laminate_input_rank(const laminate_session* session, int32_t index);
const int64_t* laminate_input_dims(const laminate_session* session, int32_t index);
const char* laminate_input_type(const laminate_session* session, int32_t index);
int32_t laminate_output_count(const laminate_session* session);
const char* laminate_output_name(const laminate_session* session, int32_t index);
int32_t laminate_output_rank(const laminate_session* session, int32_t index);
const int64_t* laminate_output_dims(const laminate_session* session, int32_t index);
const char* laminate_output_type(const laminate_session* session, int32_t index);

/* Of a network compiled with --any-size: the next runs are of inputs of that many images, rows and
 * columns, and dims are those of all tensors at that size (pointers that laminate_..._dims()
 * returned before are no longer valid). Needs no compiler. Memory grows with the largest size and
 * never shrinks. Returns 0, or -1, and the session keeps its size: for a network of one size, a size
 * that its layers do not allow, while a run goes on, and without memory. */
int32_t laminate_session_resize(laminate_session* session, int64_t images, int64_t rows,
                                int64_t columns);

/* Bytes that runs use besides inputs, outputs and constants; -1 for a null session. */
int64_t laminate_arena_bytes(const laminate_session* session);

/* Runs the network: inputs[k] and outputs[k] hold all elements of input k and output k. Returns 0,
 * or -1 on failure, also while another thread runs the same session. */
int32_t laminate_run(laminate_session* session, const float* const* inputs, float* const* outputs);

/* Tells `trace` what runs of this session do (runtime/trace.h); null: nothing any more. Runs then
 * take one thread, because the events are those of strips in their order, which is what
 * docs/counting.md counts. Outputs are the same bits with and without. Returns 0, or -1 while a run
 * goes on, and for a network without hooks: compile it with --instrumented. */
int32_t laminate_set_trace(laminate_session* session, laminate_trace_function trace, void* user);

/* The buffers that the schedule of a network with hooks promises, group by group; none without
 * hooks. -1 and null as for inputs. */
int32_t laminate_buffer_count(const laminate_session* session);
const laminate_buffer* laminate_buffer_at(const laminate_session* session, int32_t index);

/* The reason of this thread's latest failure; "" when no call has failed. Valid until the thread's
 * next failure. */
const char* laminate_last_error(void);

#ifdef __cplusplus
}
#endif
#endif
