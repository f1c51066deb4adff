#include "instrumentation/measure.h"

#include <limits>
#include <stdexcept>

#include "base/aligned.h"
#include "generators/compile/error_bounds.h"
#include "generators/compile/executable.h"
#include "generators/compile/group_reference.h"
#include "generators/instrumented.h"
#include "instrumentation/count_pass.h"
#include "instrumentation/loop_sums.h"

namespace laminate {

namespace {

GroupCounts run_counted(const GroupCode& code, const GroupSchedule& group,
                        const std::vector<std::vector<float>>& inputs, float* output) {
    const JitGroup jit(with_counters(code, CountMode::execute), true);
    const AlignedFloats constants(code.constants);
    AlignedFloats scratch(static_cast<size_t>(code.scratch_bytes) / sizeof(float));
    std::vector<int64_t> counters(CounterLayout{code.arrays.size()}.size());
    std::vector<const float*> arrays(code.inputs.size(), nullptr);
    for (size_t n = 0; n < inputs.size(); ++n) arrays[n] = inputs[n].data();
    const int result =
        jit.counted_function()(arrays.data(), &output, constants.data(), scratch.data(), 0,
                               static_cast<int32_t>(code.strips), counters.data());
    if (result != 0) throw std::runtime_error("generated code returned " + std::to_string(result));
    return counts_of(code, group, counters);
}

}  // namespace

std::string first_difference(const Network& network, const std::vector<LayerProblem>& problems,
                             const std::vector<std::vector<float>>& inputs,
                             const std::vector<float>& found) {
    const BoundedRows rows = judged_rows(network, problems, inputs, 0, problems.back()[Dim::y]);
    for (size_t n = 0; n < rows.expected.size(); ++n) {
        if (rows.holds(found[n], n)) continue;
        return "result at element " + std::to_string(n) + ": found " + std::to_string(found[n]) +
               ", expected " + std::to_string(rows.expected[n]);
    }
    return "";
}

GroupCounts measure(const Network& network, const GroupSchedule& group) {
    const GroupCode code = instrumented_code(network, group);
    const CounterLayout layout{code.arrays.size()};
    return counts_of(
        code, group,
        summed_counters(with_counters(code, CountMode::count_only), layout.size(), code.strips)
            .counters);
}

CheckedMeasurement measure_and_check(const Network& network, const GroupSchedule& group,
                                     uint64_t seed) {
    const std::vector<LayerProblem> problems = group_problems(network, group);
    const std::vector<std::vector<float>> inputs = judged_inputs(network, problems, seed);
    std::vector<float> output(static_cast<size_t>(problems.back().output_elements().value()),
                              std::numeric_limits<float>::quiet_NaN());
    CheckedMeasurement measurement;
    measurement.counts =
        run_counted(instrumented_code(network, group), group, inputs, output.data());
    measurement.wrong_result = first_difference(network, problems, inputs, output);
    return measurement;
}

}  // namespace laminate
