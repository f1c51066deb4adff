/* The header as C reads it: a program in C needs nothing else. */
#include "runtime/laminate.h"

int32_t run_from_c(const laminate_compiled_network* network, const float* input, float* output);

int32_t run_from_c(const laminate_compiled_network* network, const float* input, float* output) {
    laminate_session* session = laminate_open_linked(network, 1);
    int32_t result = -1;
    if (session) result = laminate_run(session, &input, &output);
    laminate_close(session);
    return result;
}
