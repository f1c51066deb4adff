#include "instrumentation/halide_witness.h"

#include <algorithm>
#include <limits>
#include <memory>

#include "generators/compile/error_bounds.h"
#include "generators/compile/executable.h"
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

/// The caller's arrays of a group, none of them aligned to more than a float.
class Arrays {
public:
    Arrays(const Network& network, const GroupSchedule& group, HalideProgram& program,
           uint64_t seed)
        : problems_(group_problems(network, group)),
          activations_(judged_inputs(network, problems_, seed)),
          network_(network) {
        for (HalideInput& input : program.inputs)
            input.param.set(array(input.values == HalideInput::Values::activations
                                      ? activations_.at(static_cast<size_t>(input.tensor))
                                      : halide_constants(network, group, input),
                                  input.extents));
        result = array(std::vector<float>(
                           static_cast<size_t>(problems_.back().output_elements().value()),
                           std::numeric_limits<float>::quiet_NaN()),
                       program.output_extents);
    }

    [[nodiscard]] std::string difference() const {
        return first_difference(network_, problems_, activations_,
                                {result.begin(), result.end()});
    }

    Halide::Buffer<float> result;

private:
    Halide::Buffer<float> array(const std::vector<float>& values,
                                const std::vector<int64_t>& extents) {
        constexpr size_t cache_line = 64 / sizeof(float);
        std::vector<float>& memory = memory_.emplace_back(values.size() + cache_line + 1);
        void* begin = memory.data();
        size_t space = memory.size() * sizeof(float);
        std::align(64, sizeof(float), begin, space);
        float* data = static_cast<float*>(begin) + 1;
        std::copy(values.begin(), values.end(), data);
        return Halide::Buffer<float>(data, std::vector<int>(extents.begin(), extents.end()));
    }

    const std::vector<LayerProblem> problems_;
    const std::vector<std::vector<float>> activations_;
    const Network& network_;
    std::vector<std::vector<float>> memory_;
};

/// What Halide says of a pipeline that it refuses to compile or stops; else nothing.
std::string realize(Halide::Pipeline& pipeline, Halide::Buffer<float>& result) {
    [[maybe_unused]] static const bool is_quiet = [] {
        static QuietReporter reporter;
        Halide::set_custom_compile_time_error_reporter(&reporter);
        return true;
    }();
    try {
        pipeline.realize(result, code_target("host"));
    } catch (const Halide::Error& error) {
        return error.what();
    }
    return "";
}

}  // namespace

HalideMeasurement measure_halide(const Network& network, const GroupSchedule& group, uint64_t seed,
                                 CountMode mode) {
    HalideProgram program = halide_program(network, group, HalidePadding::opaque);
    Arrays arrays(network, group, program, seed);
    // Elsewhere Halide rounds buffers of up to 128 bytes up to a size that never changes.
    for (HalideFunc& func : program.funcs) {
        if (func.buffer->role != ArrayRole::external_output)
            func.func.store_in(Halide::MemoryType::Heap);
    }
    std::vector<int64_t> counters;
    AddCounters pass(program, mode, counters);
    Halide::Pipeline pipeline(program.output().func);
    pipeline.add_custom_lowering_pass(&pass, [] {});
    HalideMeasurement measurement;
    measurement.exclusions = program.exclusions;
    measurement.refused = realize(pipeline, arrays.result);
    if (!measurement.refused.empty()) return measurement;
    measurement.counts = counts_of(pass.code, group, counters);
    measurement.live_peak = measurement.counts.live_total;
    measurement.counts.live_total = Elements(0);
    const std::vector<LayerProblem> problems = group_problems(network, group);
    for (const MemoryPhase& phase :
         memory_timeline(problems, group, measurement.counts, 1).phases) {
        measurement.counts.live_total = std::max(measurement.counts.live_total, phase.live);
    }
    if (mode == CountMode::execute) measurement.wrong_result = arrays.difference();
    return measurement;
}

std::string printed_difference(const Network& network, const GroupSchedule& group, uint64_t seed,
                               HalideSpeed speed) {
    HalideProgram program = halide_program(network, group, HalidePadding::constant, speed);
    Arrays arrays(network, group, program, seed);
    Halide::Pipeline pipeline(program.output().func);
    const std::string refused = realize(pipeline, arrays.result);
    return refused.empty() ? arrays.difference() : refused;
}

}  // namespace laminate
