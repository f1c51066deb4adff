#include "papers/depth_first/overlap_search.h"

#include <algorithm>
#include <limits>
#include <set>
#include <string>

namespace laminate::depth_first {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// One stack: its maps except the output, in the order of execution, and the best modes so far.
class StackSearch {
public:
    using Modes = std::vector<Overlap>;

    StackSearch(const DepthFirst& model, const std::vector<size_t>& layers, const Strategy& given,
                Objective objective)
        : model_(model), layers_(layers), strategy_(given), objective_(objective) {
        std::set<size_t> maps(layers.begin(), layers.end());
        for (const size_t layer : layers)
            maps.insert(model.workload().layers[layer].sources.begin(),
                        model.workload().layers[layer].sources.end());
        maps.erase(layers.back());
        for (const size_t map : maps) names_.push_back(model.workload().layers[map].name);
    }

    /// False if not all choices were compared.
    bool run(int64_t most) {
        int64_t choices = 2;
        for (size_t n = 0; n < names_.size() && choices <= most; ++n) choices *= 3;
        for (const Overlap along : {Overlap::h_cached, Overlap::v_cached}) {
            const std::array modes{Overlap::fully_cached, along, Overlap::recompute};
            if (choices <= most) {
                Modes chosen;
                compare_all(modes, chosen);
            } else {
                compare_two_parts(modes);
                change_single_maps(modes);
            }
        }
        return choices <= most;
    }

    void add_to(OverlapSearch& result) const {
        for (size_t n = 0; n < names_.size(); ++n) result.strategy.of_maps[names_[n]] = best_[n];
        result.compared += compared_;
        result.value += value_;
        result.bound += bound();
    }
    [[nodiscard]] bool fits() const { return value_ < infinity; }

private:
    bool compare(const Modes& modes) {
        Strategy strategy = strategy_;
        for (size_t n = 0; n < names_.size(); ++n) strategy.of_maps[names_[n]] = modes[n];
        ++compared_;
        try {
            const StackCost cost = model_.stack_cost(layers_, strategy);
            const double found = value(objective_, cost.energy_pj, cost.latency_cycles);
            if (found >= value_) return false;
            value_ = found;
            best_ = modes;
            return true;
        } catch (const InfeasibleMapping&) {
            return false;
        }
    }

    void compare_all(const std::array<Overlap, 3>& modes, Modes& chosen) {
        if (chosen.size() == names_.size()) {
            compare(chosen);
            return;
        }
        for (const Overlap mode : modes) {
            chosen.push_back(mode);
            compare_all(modes, chosen);
            chosen.pop_back();
        }
    }

    void compare_two_parts(const std::array<Overlap, 3>& modes) {
        for (const Overlap first : modes) {
            for (const Overlap second : modes) {
                for (size_t part = 0; part < (first == second ? 1 : names_.size()); ++part) {
                    Modes chosen(names_.size(), second);
                    std::fill_n(chosen.begin(), part, first);
                    compare(chosen);
                }
            }
        }
    }

    void change_single_maps(const std::array<Overlap, 3>& modes) {
        bool helped = !best_.empty();
        while (helped) {
            helped = false;
            for (size_t n = 0; n < names_.size(); ++n) {
                for (const Overlap mode : modes) {
                    Modes changed = best_;
                    changed[n] = mode;
                    const bool mixes = std::ranges::any_of(changed, [&](Overlap other) {
                        return other != Overlap::recompute && std::ranges::count(modes, other) == 0;
                    });
                    if (mode != best_[n] && !mixes) helped = compare(changed) || helped;
                }
            }
        }
    }

    [[nodiscard]] double bound() const {
        const Machine& machine = model_.machine();
        const Memory& highest = machine.memories.back();
        double energy = 0;
        int64_t macs = 0;
        for (const size_t n : layers_) {
            const WorkloadLayer& layer = model_.workload().layers[n];
            for (const LayerShape& shape : executed_shapes(layer)) {
                macs += shape.macs();
                if (shape.type == LayerType::convolution || shape.type == LayerType::depthwise)
                    energy += machine.mac_pj * static_cast<double>(shape.macs());
            }
            energy += static_cast<double>(layer.shape.weight_elements() * machine.bits.weight) /
                      static_cast<double>(highest.read.word_bits) * highest.read.word_pj;
        }
        const LayerShape& output = model_.workload().layers[layers_.back()].shape;
        energy += static_cast<double>(output.output_elements() * machine.bits.output) /
                  static_cast<double>(highest.write.word_bits) * highest.write.word_pj;
        return value(objective_, energy, macs / machine.mac_count());
    }

    const DepthFirst& model_;
    const std::vector<size_t>& layers_;
    Strategy strategy_;
    Objective objective_;
    std::vector<std::string> names_;
    Modes best_;
    double value_ = infinity;
    int64_t compared_ = 0;
};

}  // namespace

OverlapSearch search_overlaps(const DepthFirst& model, const Strategy& given, Objective objective,
                              int64_t most) {
    OverlapSearch result{.strategy = given};
    for (const std::vector<size_t>& layers : model.stacks(given.stacks)) {
        StackSearch stack(model, layers, given, objective);
        result.is_complete = stack.run(most) && result.is_complete;
        if (!stack.fits()) {
            throw InfeasibleMapping(model.workload().layers[layers.front()].name +
                                    ": its stack fits no memories of " + model.machine().name +
                                    " in tiles of " + std::to_string(given.tile.x) + "x" +
                                    std::to_string(given.tile.y));
        }
        stack.add_to(result);
    }
    return result;
}

}  // namespace laminate::depth_first
