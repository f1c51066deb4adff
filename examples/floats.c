/* Runs a linked network on raw floats: its inputs one after the other from stdin, its outputs to
 * stdout. Needs nothing but the C API, so it compiles for any processor that has a C compiler.
 *
 *   cc -DHEADER='"net/net.h"' -DNETWORK=net_network floats.c net/libnet.a ... -o floats
 */
#include <stdio.h>
#include <stdlib.h>

#include HEADER
#include "runtime/laminate.h"

enum { most_tensors = 16 };

static size_t elements(const int64_t* dims, int32_t rank) {
    size_t count = 1;
    for (int32_t k = 0; k < rank; ++k) count *= (size_t)dims[k];
    return count;
}

static int fail(const char* message) {
    fprintf(stderr, "floats: %s\n", message);
    return 1;
}

int main(void) {
    laminate_session* session = laminate_open_linked(&NETWORK, 0);
    if (!session) return fail(laminate_last_error());
    const int32_t ins = laminate_input_count(session), outs = laminate_output_count(session);
    if (ins > most_tensors || outs > most_tensors) return fail("too many inputs or outputs");
    const float* inputs[most_tensors];
    float* outputs[most_tensors];
    for (int32_t k = 0; k < ins; ++k) {
        const size_t count =
            elements(laminate_input_dims(session, k), laminate_input_rank(session, k));
        float* input = (float*)malloc(count * sizeof(float));
        if (!input || fread(input, sizeof(float), count, stdin) != count)
            return fail("stdin ends within the inputs");
        inputs[k] = input;
    }
    for (int32_t k = 0; k < outs; ++k) {
        outputs[k] = (float*)malloc(
            sizeof(float) *
            elements(laminate_output_dims(session, k), laminate_output_rank(session, k)));
        if (!outputs[k]) return fail("out of memory");
    }
    if (laminate_run(session, inputs, outputs) != 0) return fail(laminate_last_error());
    for (int32_t k = 0; k < outs; ++k) {
        const size_t count =
            elements(laminate_output_dims(session, k), laminate_output_rank(session, k));
        if (fwrite(outputs[k], sizeof(float), count, stdout) != count)
            return fail("stdout takes no more");
        free(outputs[k]);
    }
    for (int32_t k = 0; k < ins; ++k) free((void*)inputs[k]);
    laminate_close(session);
    return 0;
}
