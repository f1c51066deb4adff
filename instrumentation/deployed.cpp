#include "instrumentation/deployed.h"

#include <Halide.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "base/aligned.h"
#include "generators/compile/error_bounds.h"
#include "generators/compile/executable.h"
#include "generators/kernels/group_kernels.h"
#include "instrumentation/count_pass.h"
#include "instrumentation/loop_sums.h"
#include "instrumentation/measure.h"
#include "instrumentation/read_rounds.h"
#include "instrumentation/replay.h"

namespace laminate {

namespace {

using namespace Halide::Internal;

/// The nest in whose name an array of the code stands: "conv1.sum", "conv1.sum$3".
std::optional<size_t> nest_of(const std::string& array, const GroupSchedule& group) {
    const size_t dot = array.rfind('.');
    if (dot == std::string::npos) return std::nullopt;
    for (size_t k = 0; k < group.nests.size(); ++k) {
        if (group.nests[k].layer == array.substr(0, dot)) return k;
    }
    return std::nullopt;
}

/// Arrays that the code allocates for floats, which is where sums are: registers.
class Allocations : public IRVisitor {
public:
    explicit Allocations(const GroupSchedule& group) : group_(group) {}
    using IRVisitor::visit;
    void visit(const Allocate* allocation) override {
        const std::optional<size_t> nest = nest_of(allocation->name, group_);
        if (allocation->type.is_float() && nest) found[allocation->name] = *nest;
        IRVisitor::visit(allocation);
    }
    std::map<std::string, size_t> found;

private:
    const GroupSchedule& group_;
};

/// Counts, by array, the elements that are read for the first time in a lifetime.
class FirstReadsOfCode : public EventRounds {
public:
    explicit FirstReadsOfCode(const GroupCode& code) : code_(code), reads_(code.arrays.size()) {
        replay_in_rounds(code, {EventKind::lifetime, EventKind::read}, *this);
    }
    [[nodiscard]] Elements operator[](size_t array) const { return Elements(reads_[array].words()); }

    void begin_rounds(int32_t variable) override { open_.push_back({variable, {}}); }
    void end_rounds(int64_t rounds) override {
        for (const size_t array : open_.back().arrays) reads_[array].end_rounds(rounds);
        open_.pop_back();
    }
    void happened(EventKind kind, size_t array,
                  const std::array<counting::Affine, 6>& box) override {
        const ArrayRole role = code_.arrays[array].role;
        if (role != ArrayRole::external_input && role != ArrayRole::external_weights) return;
        ReadRounds& reads = reads_[array];
        open_rounds(array);
        // Weights come with their whole kernel.
        const bool is_weights = role == ArrayRole::external_weights;
        std::array<counting::Affine, 6> planes = box;
        if (is_weights) planes[4] = 0, planes[5] = 1;
        const int64_t words = is_weights ? box[5].constant - box[4].constant : 1;
        kind == EventKind::lifetime ? reads.begin_lifetime(planes) : reads.read(planes, words);
    }

private:
    struct OpenRounds {
        int32_t variable = 0;
        std::vector<size_t> arrays;  ///< that something inside has happened to
    };
    static bool touches(const OpenRounds& rounds, size_t array) {
        return std::ranges::find(rounds.arrays, array) != rounds.arrays.end();
    }
    /// Most rounds tell of few arrays.
    void open_rounds(size_t array) {
        size_t known = open_.size();
        while (known > 0 && !touches(open_[known - 1], array)) --known;
        for (; known < open_.size(); ++known) {
            open_[known].arrays.push_back(array);
            reads_[array].begin_rounds(open_[known].variable);
        }
    }

    const GroupCode& code_;
    std::vector<ReadRounds> reads_;
    std::vector<OpenRounds> open_;
};

/// What the counters of a code with events say.
class Reading {
public:
    Reading(const GroupCode& code, size_t arrays, std::vector<int64_t> counters)
        : code_(code),
          layout_{arrays},
          counters_(std::move(counters)),
          first_reads_(code) {}

    [[nodiscard]] DoneCounts counts(const GroupSchedule& group, const DoneCounts& model) const {
        DoneCounts counts;
        const bool copies = kernel_row(group.nests.front().kernel.kind).scope == KernelScope::nest;
        for (size_t k = 0; k < group.nests.size(); ++k) {
            counts.nests.push_back({group.nests[k].layer,
                                    model.nests[k].scheduled,
                                    Macs(counters_[layout_.macs(code_.arrays.size() + k)]),
                                    {},
                                    {}});
        }
        for (size_t a = 0; a < code_.arrays.size(); ++a) {
            const CodeArray& array = code_.arrays[a];
            const auto index = static_cast<size_t>(array.index);
            switch (array.role) {
                case ArrayRole::external_input:
                    counts.inputs.push_back(
                        {code_.inputs[index],
                         {events(a, EventKind::fetch), copies ? loads(a) : first_reads_[a]}});
                    break;
                case ArrayRole::external_weights:
                    counts.nests[index].weights = {events(a, EventKind::fetch), first_reads_[a]};
                    break;
                case ArrayRole::output_buffer:
                    counts.nests[index].computed = {events(a, EventKind::compute),
                                                    events(a, EventKind::store)};
                    break;
                case ArrayRole::external_output:
                    counts.output_reads = {events(a, EventKind::read_back), loads(a)};
                    counts.output_writes = {events(a, EventKind::write),
                                            Elements(counters_[layout_.stores(a)])};
                    break;
                default:
                    break;
            }
        }
        counts.scratch = Bytes(code_.scratch_bytes);
        return counts;
    }

private:
    [[nodiscard]] Elements events(size_t array, EventKind kind) const {
        return Elements(counters_[layout_.event(array, kind)]);
    }
    [[nodiscard]] Elements loads(size_t array) const {
        return Elements(counters_[layout_.loads(array)]);
    }

    const GroupCode& code_;
    CounterLayout layout_;
    std::vector<int64_t> counters_;
    FirstReadsOfCode first_reads_;
};

/// The code of a group with events, and what else its counters need to know.
class CountedCode {
public:
    CountedCode(const Network& network, const GroupSchedule& group)
        : code_(group_code(network, group, Events::all)), counted_(code_) {
        Allocations sums(group);
        code_.body.accept(&sums);
        // One array of the layout stands for all sums of a nest.
        for (size_t k = 0; k < group.nests.size(); ++k)
            counted_.arrays.push_back({"", ArrayRole::sums, static_cast<int>(k)});
        for (const auto& [name, nest] : sums.found) names_[name] = code_.arrays.size() + nest;
    }
    [[nodiscard]] const GroupCode& code() const { return code_; }
    [[nodiscard]] size_t arrays() const { return counted_.arrays.size(); }
    [[nodiscard]] size_t counters() const { return CounterLayout{arrays()}.size(); }
    [[nodiscard]] Stmt with_counters(CountMode mode) const {
        return laminate::with_counters(counted_, mode, names_);
    }

private:
    GroupCode code_;
    GroupCode counted_;
    ArrayNames names_;
};

}  // namespace

DoneCounts deployed_counts(const Network& network, const GroupSchedule& group,
                           const DoneCounts& model) {
    const CountedCode counted(network, group);
    std::vector<int64_t> counters = summed_counters(counted.with_counters(CountMode::count_only),
                                                    counted.counters(), counted.code().strips)
                                        .counters;
    return Reading(counted.code(), counted.arrays(), std::move(counters)).counts(group, model);
}

CheckedDone executed_counts(const Network& network, const GroupSchedule& group,
                            const DoneCounts& model, uint64_t seed) {
    const CountedCode counted(network, group);
    const GroupCode& code = counted.code();
    const JitGroup jit(counted.with_counters(CountMode::execute), true);
    const std::vector<LayerProblem> problems = group_problems(network, group);
    const std::vector<std::vector<float>> inputs = judged_inputs(network, problems, seed);
    std::vector<float> output(static_cast<size_t>(problems.back().output_elements().value()),
                              std::numeric_limits<float>::quiet_NaN());
    const AlignedFloats constants(code.constants);
    AlignedFloats scratch(static_cast<size_t>(code.scratch_bytes) / sizeof(float));
    std::vector<int64_t> counters(counted.counters());
    std::vector<const float*> arrays;
    for (const std::vector<float>& input : inputs) arrays.push_back(input.data());
    float* outputs = output.data();
    const int result =
        jit.counted_function()(arrays.data(), &outputs, constants.data(), scratch.data(), 0,
                               static_cast<int32_t>(code.strips), counters.data());
    if (result != 0) throw std::runtime_error("generated code returned " + std::to_string(result));
    return {Reading(code, counted.arrays(), std::move(counters)).counts(group, model),
            first_difference(network, problems, inputs, output)};
}

}  // namespace laminate
