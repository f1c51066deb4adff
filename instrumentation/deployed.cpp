#include "instrumentation/deployed.h"

#include <Halide.h>

#include <map>
#include <string>

#include "generators/kernels/group_kernels.h"
#include "instrumentation/count_pass.h"
#include "instrumentation/loop_sums.h"

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

}  // namespace

DoneCounts deployed_counts(const Network& network, const GroupSchedule& group,
                           const DoneCounts& model) {
    GroupCode code = group_code(network, group);
    Allocations sums(group);
    code.body.accept(&sums);
    // One array of the layout stands for all sums of a nest.
    const size_t externals = code.arrays.size();
    ArrayNames names;
    for (size_t k = 0; k < group.nests.size(); ++k)
        code.arrays.push_back({"", ArrayRole::sums, static_cast<int>(k)});
    for (const auto& [name, nest] : sums.found) names[name] = externals + nest;

    const CounterLayout layout{code.arrays.size()};
    const std::vector<int64_t> counters =
        summed_counters(with_counters(code, CountMode::count_only, names), layout.size(),
                        code.strips)
            .counters;
    DoneCounts counts;
    for (size_t k = 0; k < group.nests.size(); ++k) {
        counts.nests.push_back({group.nests[k].layer, model.nests[k].scheduled,
                                Macs(counters[layout.macs(externals + k)])});
    }
    const bool copies =
        kernel_row(group.nests.front().kernel.kind).scope == KernelScope::nest;
    for (size_t a = 0; a < externals; ++a) {
        if (code.arrays[a].role == ArrayRole::external_input && copies)
            counts.copied += Elements(counters[layout.loads(a)]);
        if (code.arrays[a].role == ArrayRole::external_output) {
            counts.output_reads += Elements(counters[layout.loads(a)]);
            counts.output_writes += Elements(counters[layout.stores(a)]);
        }
    }
    counts.scratch = Bytes(code.scratch_bytes);
    return counts;
}

}  // namespace laminate
