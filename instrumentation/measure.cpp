#include "instrumentation/measure.h"

#include <limits>
#include <stdexcept>

#include "base/aligned.h"
#include "generators/compile/error_bounds.h"
#include "generators/compile/executable.h"
#include "generators/compile/group_reference.h"
#include "generators/instrumented.h"
#include "instrumentation/count_pass.h"
#include "instrumentation/interpreted_code.h"
#include "instrumentation/loop_sums.h"

namespace laminate {

namespace {

/// An estimate of where interpreting begins to take longer than LLVM takes to compile a layer.
constexpr int64_t most_interpreted = 40'000'000;

/// The counters that the code leaves, and the output.
struct Ran {
    std::vector<int64_t> counters;
    std::vector<float> output;
};
/// By interpretation if that is quick and `by` allows it, else compiled.
Ran run_counted(const GroupCode& code, const std::vector<std::vector<float>>& inputs,
                int64_t outputs, RunBy by) {
    const Halide::Internal::Stmt body = with_counters(code, CountMode::execute);
    const AlignedFloats constants(code.constants);
    std::vector<const float*> arrays(code.inputs.size(), nullptr);
    for (size_t n = 0; n < inputs.size(); ++n) arrays[n] = inputs[n].data();
    const auto untouched = [&] {
        return Ran{std::vector<int64_t>(CounterLayout{code.arrays.size()}.size()),
                   std::vector<float>(static_cast<size_t>(outputs),
                                      std::numeric_limits<float>::quiet_NaN())};
    };
    Ran ran = untouched();
    float* output = ran.output.data();
    if (by != RunBy::compiled) {
        const auto interpreted = InterpretedCode::of(body);
        const bool is_limited = by == RunBy::as_quick;
        if (interpreted != nullptr &&
            interpreted->run(
                {arrays.data(), &output, constants.data(), code.strips, ran.counters.data()},
                is_limited ? most_interpreted : std::numeric_limits<int64_t>::max()))
            return ran;
        if (!is_limited) throw std::logic_error("code that cannot be interpreted");
        ran = untouched();
        output = ran.output.data();
    }
    const JitGroup jit(body, true);
    AlignedFloats scratch(static_cast<size_t>(code.scratch_bytes) / sizeof(float));
    const int result =
        jit.counted_function()(arrays.data(), &output, constants.data(), scratch.data(), 0,
                               static_cast<int32_t>(code.strips), ran.counters.data());
    if (result != 0) throw std::runtime_error("generated code returned " + std::to_string(result));
    return ran;
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
                                     uint64_t seed, RunBy by) {
    const std::vector<LayerProblem> problems = group_problems(network, group);
    const std::vector<std::vector<float>> inputs = judged_inputs(network, problems, seed);
    const GroupCode code = instrumented_code(network, group);
    const Ran ran = run_counted(code, inputs, problems.back().output_elements().value(), by);
    CheckedMeasurement measurement;
    measurement.counts = counts_of(code, group, ran.counters);
    measurement.wrong_result = first_difference(network, problems, inputs, ran.output);
    return measurement;
}

}  // namespace laminate
