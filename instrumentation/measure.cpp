#include "instrumentation/measure.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "base/aligned.h"
#include "generators/executable.h"
#include "generators/instrumented.h"
#include "instrumentation/count_pass.h"
#include "runtime/reference_operators.h"
#include "scheduler/random_schedule.h"

namespace laminate {

namespace {

GroupCounts run_counted(const GroupCode& code, const GroupSchedule& group, CountMode mode, const float* input, float* output) {
    const JitGroup jit(with_counters(code, mode), true);
    const AlignedFloats constants(code.constants);
    AlignedFloats scratch(static_cast<size_t>(code.scratch_bytes) / sizeof(float));
    std::vector<int64_t> counters(CounterLayout{code.arrays.size()}.size());
    const int result = jit.counted_function()(&input, &output, constants.data(), scratch.data(), 0,
                                              static_cast<int32_t>(code.strips), counters.data());
    if (result != 0) throw std::runtime_error("generated code returned " + std::to_string(result));
    return counts_of(code, group, counters);
}

/// Dims of one image of a tensor.
std::vector<int64_t> image_dims(const Network& network, TensorId id) {
    std::vector<int64_t> dims = network.tensor(id).dims;
    dims.front() = 1;
    return dims;
}

std::vector<float> reference_output(const Network& network, const std::vector<LayerProblem>& problems, std::vector<float> values) {
    for (const LayerProblem& problem : problems) {
        const std::vector<int64_t> dims = image_dims(network, problem.output);
        std::vector<float> output(static_cast<size_t>(element_count(dims)));
        run_reference_layer(network.layer(problem.layer), {image_dims(network, problem.inputs.front().tensor)}, {values.data()}, dims, output.data());
        values = std::move(output);
    }
    return values;
}

std::string first_difference(const std::vector<float>& found, const std::vector<float>& expected) {
    const auto [low, high] = std::minmax_element(expected.begin(), expected.end());
    const float allowed = 1e-4F * std::max(*high - *low, std::abs(*high));
    for (size_t n = 0; n < expected.size(); ++n) {
        // Written so that NaN, what was never stored, is a difference.
        if (!(std::abs(found[n] - expected[n]) <= allowed)) {
            return "result at element " + std::to_string(n) + ": found " + std::to_string(found[n]) + ", expected " +
                   std::to_string(expected[n]);
        }
    }
    return "";
}

}  // namespace

GroupCounts measure(const Network& network, const GroupSchedule& group) {
    return run_counted(instrumented_code(network, group), group, CountMode::count_only, nullptr, nullptr);
}

CheckedMeasurement measure_and_check(const Network& network, const GroupSchedule& group, uint64_t seed) {
    const std::vector<LayerProblem> problems = group_problems(network, group);
    Rng rng(seed);
    std::vector<float> input(static_cast<size_t>(element_count(image_dims(network, problems.front().inputs.front().tensor))));
    for (float& value : input) value = static_cast<float>(rng.between(-8, 8));
    std::vector<float> output(static_cast<size_t>(element_count(image_dims(network, problems.back().output))),
                              std::numeric_limits<float>::quiet_NaN());
    CheckedMeasurement measurement;
    measurement.counts =
        run_counted(instrumented_code(network, group), group, CountMode::execute, input.data(), output.data());
    measurement.wrong_result = first_difference(output, reference_output(network, problems, std::move(input)));
    return measurement;
}

}  // namespace laminate
