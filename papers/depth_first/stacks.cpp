#include "papers/depth_first/stacks.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

namespace laminate::depth_first {

namespace {

/// The last layers of all stacks but the last one. A unit whose weights alone do not fit is cut
/// after each of its layers, so its last layer may end the network.
std::vector<size_t> cuts_where_weights_fit(const Workload& workload, const Machine& machine) {
    const std::vector<size_t> levels = machine.hierarchy(Operand::weight);
    const size_t memory = levels.size() > 1 ? levels[levels.size() - 2] : levels[0];
    const int64_t capacity = machine.memories[memory].capacity_bits;
    std::vector<size_t> cuts;
    int64_t sum = 0;
    std::optional<size_t> last;
    for (const std::vector<size_t>& unit : units_of(workload)) {
        int64_t weights = 0;
        for (const size_t n : unit)
            weights += workload.layers[n].shape.weight_elements() *
                       (workload.layers[n].is_input() ? 0 : machine.bits.weight);
        if (weights > capacity) {
            if (last && (cuts.empty() || cuts.back() != *last)) cuts.push_back(*last);
            cuts.insert(cuts.end(), unit.begin(), unit.end());
            sum = 0;
        } else if (sum + weights > capacity) {
            cuts.push_back(*last);
            sum = weights;
        } else {
            sum += weights;
        }
        last = unit.back();
    }
    return cuts;
}

std::vector<size_t> cuts_by(Stacks rule, const Workload& workload, const Machine& machine) {
    if (rule == Stacks::weights_fit) return cuts_where_weights_fit(workload, machine);
    std::vector<size_t> cuts;
    if (rule == Stacks::all) return cuts;
    for (size_t n = 0; n + 1 < workload.layers.size(); ++n) {
        if (!workload.layers[n].is_input()) cuts.push_back(n);
    }
    return cuts;
}

/// Channels of a map that a stack reads: as many as its readers want. For the map right before the
/// stack these are all readers, those behind the stack included, because the artifact makes a
/// stack's inputs before it cuts off the end. By quirk, channels under two names are two
/// dimensions.
int64_t input_channels(const Workload& workload, size_t source, const std::vector<size_t>& layers,
                       const std::vector<std::vector<size_t>>& readers) {
    std::array<int64_t, 2> channels{0, 0};
    for (const size_t reader : readers[source]) {
        const bool before_all = source + 1 == layers.front();
        if (!before_all && std::ranges::count(layers, reader) == 0) continue;
        int64_t& named = channels[workload.layers[reader].renames_input_channels ? 1 : 0];
        const int64_t wanted = workload.layers[reader].shape.input_channels();
        named = named == 0 ? wanted : std::min(named, wanted);
    }
    return std::max<int64_t>(1, channels[0]) * std::max<int64_t>(1, channels[1]);
}

}  // namespace

std::vector<size_t> sorted_once(std::vector<size_t> elements) {
    std::ranges::sort(elements);
    elements.erase(std::unique(elements.begin(), elements.end()), elements.end());
    return elements;
}

std::vector<std::vector<size_t>> units_of(const Workload& workload) {
    const std::vector<std::vector<size_t>> readers = workload.readers();
    std::vector<std::vector<size_t>> units{{0}};
    int64_t branches = 1;
    for (size_t n = 1; n < workload.layers.size(); ++n) {
        branches -= std::ssize(sorted_once(workload.layers[n].sources)) - 1;
        units.back().push_back(n);
        if (branches == 1) units.emplace_back();
        branches += std::ssize(readers[n]) - 1;
    }
    if (units.back().empty()) units.pop_back();
    return units;
}

std::vector<std::vector<size_t>> stacks_of(const Workload& workload, const Machine& machine,
                                           const Quirks& quirks, Stacks rule) {
    const std::vector<size_t> cuts = cuts_by(rule, workload, machine);
    const auto first_layer =
        static_cast<size_t>(std::ranges::find_if_not(workload.layers, &WorkloadLayer::is_input) -
                            workload.layers.begin());
    const bool ignores_first = quirks.first_cut_is_ignored && rule == Stacks::weights_fit;
    const auto counts = [&](size_t cut) { return !ignores_first || cut != first_layer; };
    std::vector<std::vector<size_t>> result;
    for (size_t c = 0; c <= cuts.size(); ++c) {
        const size_t begin = c > 0 && counts(cuts[c - 1]) ? cuts[c - 1] + 1 : 0;
        const size_t last =
            c < cuts.size() && counts(cuts[c]) ? cuts[c] : workload.layers.size() - 1;
        std::vector<size_t> layers;
        for (size_t n = begin; n <= last; ++n) {
            if (!workload.layers[n].is_input()) layers.push_back(n);
        }
        if (!layers.empty()) result.push_back(std::move(layers));
    }
    return result;
}

Stack stack_of(const Workload& workload, const std::vector<size_t>& layers) {
    Stack stack;
    std::map<size_t, size_t> member;  // by layer of the workload
    const std::vector<std::vector<size_t>> all_readers = workload.readers();
    for (const size_t n : layers) {
        for (const size_t source : workload.layers[n].sources) {
            if (std::ranges::count(layers, source) > 0 || member.contains(source)) continue;
            WorkloadLayer input{.name = workload.layers[source].name};
            input.shape.sizes[Dim::k] = input_channels(workload, source, layers, all_readers);
            input.shape.sizes[Dim::ox] = workload.layers[source].shape.sizes[Dim::ox];
            input.shape.sizes[Dim::oy] = workload.layers[source].shape.sizes[Dim::oy];
            member[source] = stack.members.size();
            stack.members.push_back({std::move(input), source, true});
        }
    }
    for (const size_t n : layers) {
        Stack::Member added{workload.layers[n], n, false};
        for (size_t& source : added.layer.sources) source = member.at(source);
        member[n] = stack.members.size();
        stack.members.push_back(std::move(added));
    }
    stack.readers.resize(stack.members.size());
    for (size_t n = 0; n < stack.members.size(); ++n) {
        for (const size_t source : stack.members[n].layer.sources) {
            if (std::ranges::count(stack.readers[source], n) == 0)
                stack.readers[source].push_back(n);
        }
    }
    return stack;
}

}  // namespace laminate::depth_first
