#include "instrumentation/halide_witness.h"

#include <algorithm>
#include <limits>

#include "generators/compile/executable.h"
#include "generators/compile/group_reference.h"
#include "generators/halide/program.h"
#include "instrumentation/measure.h"
#include "scheduler/counts/memory_timeline.h"

namespace laminate {

using namespace Halide::Internal;
using Halide::Expr;

namespace {

/// Adds counters to the statement that Halide made, just before it is compiled.
class AddCounters : public IRMutator {
public:
    AddCounters(const HalideProgram& program, CountMode mode, std::vector<int64_t>& counters)
        : mode_(mode), counters_(counters) {
        for (const HalideInput& input : program.inputs) {
            if (input.values == HalideInput::Values::activations) {
                code.arrays.push_back(
                    {input.param.name(), ArrayRole::external_input, input.tensor});
            } else if (input.values == HalideInput::Values::weights) {
                code.arrays.push_back(
                    {input.param.name(), ArrayRole::external_weights, input.nest});
            }
        }
        for (const HalideFunc& func : program.funcs) {
            if (func.buffer) code.arrays.push_back(*func.buffer);
        }
        code.inputs = program.input_tensors;
        counters_.assign(CounterLayout{code.arrays.size()}.size(), 0);
    }

    using IRMutator::mutate;
    Stmt mutate(const Stmt& statement) override {
        code.body = statement;
        const Expr address = Halide::reinterpret(
            Halide::type_of<int64_t*>(),
            make_const(Halide::UInt(64), reinterpret_cast<uint64_t>(counters_.data())));
        return LetStmt::make(counters_argument, address, with_counters(code, mode_));
    }

    GroupCode code;

private:
    CountMode mode_;
    std::vector<int64_t>& counters_;
};

/// Warnings of a pipeline that will fail say what the failure says again.
class QuietReporter : public Halide::CompileTimeErrorReporter {
public:
    void warning(const char*) override {}
    void error(const char* message) override { throw Halide::CompileError(message); }
};

Halide::Buffer<float> array_of(std::vector<float>& values, const std::vector<int64_t>& extents) {
    return Halide::Buffer<float>(values.data(), std::vector<int>(extents.begin(), extents.end()));
}

}  // namespace

HalideMeasurement measure_halide(const Network& network, const GroupSchedule& group, uint64_t seed,
                                 CountMode mode) {
    const std::vector<LayerProblem> problems = group_problems(network, group);
    HalideProgram program = halide_program(network, group, HalidePadding::opaque);
    const std::vector<std::vector<float>> activations =
        random_group_inputs(network, problems, seed);
    std::vector<std::vector<float>> arrays;
    for (const HalideInput& input : program.inputs)
        arrays.push_back(input.values == HalideInput::Values::activations
                             ? activations.at(static_cast<size_t>(input.tensor))
                             : halide_constants(network, group, input));
    for (size_t n = 0; n < arrays.size(); ++n)
        program.inputs[n].param.set(array_of(arrays[n], program.inputs[n].extents));
    std::vector<float> output(static_cast<size_t>(problems.back().output_elements().value()),
                              std::numeric_limits<float>::quiet_NaN());

    // Elsewhere Halide rounds buffers of up to 128 bytes up to a size that never changes.
    for (HalideFunc& func : program.funcs) {
        if (func.buffer->role != ArrayRole::external_output)
            func.func.store_in(Halide::MemoryType::Heap);
    }
    std::vector<int64_t> counters;
    AddCounters pass(program, mode, counters);
    Halide::Pipeline pipeline(program.output().func);
    pipeline.add_custom_lowering_pass(&pass, [] {});
    Halide::Buffer<float> result = array_of(output, program.output_extents);
    [[maybe_unused]] static const bool is_quiet = [] {
        static QuietReporter reporter;
        Halide::set_custom_compile_time_error_reporter(&reporter);
        return true;
    }();
    HalideMeasurement measurement;
    measurement.exclusions = program.exclusions;
    try {
        pipeline.realize(result, code_target("host"));
    } catch (const Halide::Error& error) {
        measurement.refused = error.what();
        return measurement;
    }
    measurement.counts = counts_of(pass.code, group, counters);
    measurement.live_peak = measurement.counts.live_total;
    measurement.counts.live_total = Elements(0);
    for (const MemoryPhase& phase :
         memory_timeline(problems, group, measurement.counts, 1).phases) {
        measurement.counts.live_total = std::max(measurement.counts.live_total, phase.live);
    }
    if (mode == CountMode::execute) {
        measurement.wrong_result =
            first_difference(output, reference_output(network, problems, activations));
    }
    return measurement;
}

}  // namespace laminate
