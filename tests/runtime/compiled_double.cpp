// A shared library like those of `laminate compile`, written by hand.
#include "tests/runtime/compiled_double.h"

#include "runtime/compiled_network.h"

namespace {

int times(const float* const* inputs, float* const* outputs, const float* constants, void*,
          int32_t begin, int32_t end) {
    for (int k = 2 * begin; k < 2 * end; ++k) outputs[0][k] = constants[0] * inputs[0][k];
    return 0;
}

const float constants[] = {2};
const laminate_group_function groups[] = {times};

}  // namespace

#ifdef LAMINATE_TEST_old_version
#define LAMINATE_TEST_VERSION 0
#else
#define LAMINATE_TEST_VERSION LAMINATE_ABI_VERSION
#endif
#ifdef LAMINATE_TEST_without_symbol
#define LAMINATE_TEST_SYMBOL another_symbol
#else
#define LAMINATE_TEST_SYMBOL laminate_network
#endif

extern "C" {
extern const laminate_compiled_network LAMINATE_TEST_SYMBOL;
const laminate_compiled_network LAMINATE_TEST_SYMBOL = {
    LAMINATE_TEST_VERSION, double_manifest, constants, 1, groups, 1, nullptr};
}
