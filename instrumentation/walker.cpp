#include "instrumentation/walker.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/indexed.h"
#include "instrumentation/boxes.h"
#include "instrumentation/fold_watch.h"
#include "instrumentation/presence.h"
#include "instrumentation/walk_axes.h"
#include "instrumentation/walk_plan.h"
#include "instrumentation/walked_layer.h"

namespace laminate {

namespace {

using namespace walking;

/// Which elements of Y have been written.
class Visits {
public:
    explicit Visits(const LayerProblem& sink)
        : rows_(sink[Dim::y]),
          columns_(sink[Dim::x]),
          visited_(static_cast<size_t>(sink.output_elements().value())) {}

    struct Counts {
        int64_t elements = 0;
        int64_t visited = 0;
    };
    /// Counts the elements that these iterations compute, and those of them that are written already.
    [[nodiscard]] Counts of(const Ranges& ranges) {
        Counts counts;
        for_each_row(ranges, [&](auto begin, auto end) {
            counts.elements += end - begin;
            counts.visited += std::count(begin, end, true);
        });
        return counts;
    }
    /// Visits them all. Returns how many they are.
    int64_t add(const Ranges& ranges) {
        int64_t elements = 0;
        for_each_row(ranges, [&](auto begin, auto end) {
            std::fill(begin, end, true);
            elements += end - begin;
        });
        return elements;
    }

private:
    template <class Visit>
    void for_each_row(const Ranges& ranges, const Visit& visit) {
        const Range &zs = ranges[Dim::z], &ys = ranges[Dim::y], &xs = ranges[Dim::x];
        for (int64_t z = zs.begin; z < zs.end; ++z) {
            for (int64_t y = ys.begin; y < ys.end; ++y) {
                const auto row = visited_.begin() + (z * rows_ + y) * columns_;
                visit(row + xs.begin, row + xs.end);
            }
        }
    }

    int64_t rows_, columns_;
    std::vector<char> visited_;
};

/// Running fewer trips than this one by one is cheaper.
constexpr int64_t fewest_alike = 2;

class Walker {
public:
    /// With `only`, the problems and the group are those of one axis alone, and the needs of a
    /// shared tensor are what its readers are seen to read. Otherwise they are what the walks on
    /// each axis alone have found.
    Walker(const std::vector<LayerProblem>& problems, const GroupSchedule& group, WalkTrips trips,
           std::optional<Axis> only = {})
        : problems_(problems),
          group_(group),
          trips_(trips),
          only_(only),
          plan_(problems, group),
          visits_(problems.back()) {
        for (size_t k = 0; k < problems.size(); ++k)
            layers_.push_back({problems[k], group.nests[k]});
        if (!only_) judge_shared();
    }

    GroupCounts walk() {
        const LayerProblem& sink = problems_.back();
        layers_.back().ranges = layers_.back().ranges_of(
            {Range{0, sink[Dim::z]}, Range{0, sink[Dim::y]}, Range{0, sink[Dim::x]}});
        body(Level{}, nullptr);
        return counts();
    }

private:
    /// What a body needs of one buffer.
    struct Need {
        Box box;
        /// For an intermediate tensor: the part that is not present, for which the producer is
        /// called.
        Box call;
    };
    /// What the calls to one layer in a body read.
    struct Reads {
        std::vector<BoundingBox> inputs;  ///< by operand
        BoundingBox weights;
    };
    /// A run of a body that only finds the calls to one layer, without executing them. Only the
    /// layer and those that it feeds take part, and nothing is counted.
    struct Rehearsal {
        int nest = 0;
        Reads reads;
    };

    [[nodiscard]] LayerState& layer(int k) { return layers_[k]; }
    /// Walks each axis alone to find what is needed of the shared tensors.
    void judge_shared() {
        if (std::none_of(plan_.tensors.begin(), plan_.tensors.end(),
                         [](const GroupTensor& t) { return t.is_shared(); }))
            return;
        for (const Axis axis : all_axes) {
            std::vector<LayerProblem> problems;
            GroupSchedule group;
            for (const LayerProblem& problem : problems_) problems.push_back(alone(problem, axis));
            for (const Nest& nest : group_.nests) group.nests.push_back(alone(nest, axis));
            Walker walker(problems, group, trips_, axis);
            (void)walker.walk();
            for (size_t b = 0; b < plan_.kept.size(); ++b)
                plan_.kept[b].alone[axis].needs = std::move(walker.plan_.kept[b].alone[axis].needs);
        }
    }

    // ---- the loop nests

    /// Index into WalkPlan::takes_part and WalkPlan::last_site.
    [[nodiscard]] static int who(const Rehearsal* rehearsal) {
        return rehearsal == nullptr ? 0 : rehearsal->nest + 1;
    }
    [[nodiscard]] bool takes_part(size_t buffer, const Rehearsal* rehearsal) const {
        if (separate_ != nullptr) return separate_->buffer == buffer;
        return plan_.takes_part[who(rehearsal)][buffer];
    }
    /// Whether Y is written, and MACs are counted.
    [[nodiscard]] bool output_takes_part(const Rehearsal* rehearsal) const {
        return rehearsal == nullptr && (separate_ == nullptr || !separate_->buffer);
    }

    /// Runs one iteration of the level's loop. The ranges of its nest and of those around it are
    /// set.
    void body(Level level, Rehearsal* rehearsal) {
        Site& here = plan_.site(level);
        if (rehearsal == nullptr) ++here.bodies;
        for (const size_t b : here.stored) {
            if (!takes_part(b, rehearsal)) continue;
            plan_.kept[b].present.begin_lifetime();
            if (rehearsal == nullptr) plan_.kept[b].watch.end_lifetime();
        }
        const size_t first_need = needs_.size();
        if (!here.computed.empty()) find_needs(level, rehearsal);
        for (size_t n = 0; n < here.computed.size(); ++n) {
            // Copied, because the calls inside push their own needs.
            if (takes_part(here.computed[n].buffer, rehearsal))
                bring_in(here.computed[n].buffer, Need(needs_[first_need + n]), rehearsal);
        }
        needs_.resize(first_need);
        const bool writes = here.writes_output && output_takes_part(rehearsal);
        if (writes) read_partial_sums();
        if (level.is_root())
            loop(group_.sink(), 0, rehearsal);
        else
            loop(level.nest, level.loop + 1, rehearsal);
        if (writes) write_output();
    }

    /// Runs loop number `index` of nest k and everything inside, for the ranges that the loops
    /// around have left.
    void loop(int k, int index, Rehearsal* rehearsal) {
        const int last_site = separate_ != nullptr ? separate_->last_site
                                                   : plan_.last_site[who(rehearsal)][k];
        if (index > last_site) {
            // From here inwards there are only multiply-accumulates.
            if (output_takes_part(rehearsal)) layer(k).multiply_accumulate();
            return;
        }
        if (index == plan_.separate[k].first && separate_ == nullptr && rehearsal == nullptr &&
            trips_ == WalkTrips::alike_together) {
            // More trips are alike for each buffer alone.
            for (const Separate& part : plan_.separate[k].parts) {
                separate_ = &part;
                loop(k, index, rehearsal);
            }
            separate_ = nullptr;
            return;
        }
        const Level level{k, index};
        const Nest& nest = layer(k).nest;
        const Loop loop = group_.loop(level);
        const int64_t step = nest.step(loop);
        Range& range = layer(k).ranges[loop.dim];
        const Range whole = range;
        int64_t& trip = plan_.site(level).trip;
        trip = 0;
        // Trips of a whole tile behind the second.
        const int64_t further = whole.size() / step - 2;
        const bool are_alike = trips_ == WalkTrips::alike_together && further >= fewest_alike &&
                               like_trips(level).are_alike;
        for (int64_t begin = whole.begin; begin < whole.end; begin += step, ++trip) {
            range = {begin, std::min(begin + step, whole.end)};
            if (are_alike && trip == 1 && body_and_alike(level, further, rehearsal)) {
                trip += further;
                begin += further * step;
            } else {
                body(level, rehearsal);
            }
        }
        range = whole;
    }

    [[nodiscard]] const LikeTrips& like_trips(Level level) const {
        return separate_ != nullptr ? separate_->like_trips[level.loop]
                                    : plan_.like_trips[level.nest][level.loop];
    }

    /// Runs the second trip of a loop whose trips are alike, and counts it for as many further trips
    /// as well. Runs nothing and returns false if they do not find Y as the second trip does.
    bool body_and_alike(Level level, int64_t further, Rehearsal* rehearsal) {
        if (rehearsal != nullptr) {
            body(level, rehearsal);
            return true;
        }
        const LikeTrips& trips = like_trips(level);
        LayerState& own = layer(level.nest);
        const Dim dim = group_.loop(level).dim;
        const Ranges second = own.ranges;
        Ranges rest = second;
        if (dim != Dim::i)
            rest[dim] = {second[dim].end, second[dim].end + further * second[dim].size()};
        if (trips.writes_output) {
            const Visits::Counts here = visits_.of(second), there = visits_.of(rest);
            if (here.visited * there.elements != there.visited * here.elements ||
                (here.visited != 0 && here.visited != here.elements))
                return false;
        }
        std::vector<Elements> reads;
        std::vector<Macs> macs;
        for (const size_t b : trips.arriving) reads.push_back(plan_.kept[b].reads);
        for (const int nest : trips.nests) macs.push_back(layer(nest).macs);
        const Elements output_reads = output_reads_, output_writes = output_writes_;
        body(level, rehearsal);
        const auto count_further = [&](auto& count, auto before) {
            count += decltype(before)(count.value() - before.value()) * further;
        };
        for (size_t n = 0; n < reads.size(); ++n)
            count_further(plan_.kept[trips.arriving[n]].reads, reads[n]);
        for (size_t n = 0; n < macs.size(); ++n) {
            LayerState& l = layer(trips.nests[n]);
            if (trips.nests[n] == level.nest && axis_of(dim) != Axis::channels) {
                // Rows and columns differ in their taps.
                AxisTaps& taps = own.taps[place_of(axis_of(dim)) - 1];
                const int64_t each =
                    (l.macs.value() - macs[n].value()) / taps.of(second[dim]).count;
                l.macs += Macs(each) * taps.of(rest[dim]).count;
            } else {
                count_further(l.macs, macs[n]);
            }
        }
        count_further(output_reads_, output_reads);
        count_further(output_writes_, output_writes);
        if (trips.writes_output) visits_.add(rest);
        return true;
    }

    void call(int k, const Box& output, Rehearsal* rehearsal) {
        const Ranges ranges = layer(k).ranges_of(output);
        if (rehearsal != nullptr && rehearsal->nest == k) {
            for (size_t operand = 0; operand < rehearsal->reads.inputs.size(); ++operand) {
                rehearsal->reads.inputs[operand].add(
                    layer(k).input_of(static_cast<int>(operand), ranges));
            }
            rehearsal->reads.weights.add(weights_of(ranges));
            return;
        }
        layer(k).ranges = ranges;
        loop(k, 0, rehearsal);
    }

    // ---- what is needed

    [[nodiscard]] static Box weights_of(const Ranges& of) {
        return {of[Dim::z], of[Dim::i], Range{0, 1}};
    }

    /// Pushes a need for each of plan_.site(level).computed. Needs are found consumers first,
    /// before anything in the body happens.
    void find_needs(Level level, const Rehearsal* rehearsal) {
        const std::vector<Arrival>& computed = plan_.site(level).computed;
        const size_t first = needs_.size();
        needs_.resize(first + computed.size());
        Rehearsal last{-1, {}};  // X and W of a layer often arrive together
        for (size_t n = computed.size(); n-- > 0;) {
            if (!takes_part(computed[n].buffer, rehearsal)) continue;
            Kept& kept = plan_.kept[computed[n].buffer];
            Need need;
            if (kept.is_shared && !only_) {
                for (const Axis axis : all_axes)
                    need.box[place_of(axis)] = need_alone(kept.alone[axis]);
                if (is_empty(need.box)) need.box = {};
            } else {
                BoundingBox hull;
                for (const Reader& reader : computed[n].readers) {
                    const bool is_weights = kept.kind == Kept::Kind::weights;
                    const auto read = [&](const Ranges& ranges) {
                        hull.add(is_weights ? weights_of(ranges)
                                            : layer(reader.nest).input_of(reader.operand, ranges));
                    };
                    if (reader.where == Where::here) {
                        read(layer(reader.nest).ranges);
                    } else if (reader.where == Where::called) {
                        const Box& call = needs_[first + reader.output].call;
                        if (!is_empty(call)) read(layer(reader.nest).ranges_of(call));
                    } else {
                        if (last.nest != reader.nest) last = rehearse(reader.nest, level);
                        hull.add(
                            is_weights
                                ? last.reads.weights.box()
                                : last.reads.inputs[static_cast<size_t>(reader.operand)].box());
                    }
                }
                need.box = hull.box();
                if (kept.is_shared) {
                    const size_t axis = place_of(*only_);
                    const BoundingBox& reached = kept.present.reached();
                    if (!hull.empty()) {
                        need.box[0] = {0, kept.present.extents()[0]};
                        if (!reached.empty())
                            need.box[axis].begin =
                                std::min(need.box[axis].begin, reached.box()[axis].end);
                    }
                    NeedsAlone& alone = kept.alone[*only_];
                    alone.needs[alone.trips()] = need.box[axis];
                }
            }
            if (kept.kind == Kept::Kind::intermediate) need.call = missing_box(kept, need.box);
            needs_[first + n] = need;
        }
    }

    [[nodiscard]] Range need_alone(const NeedsAlone& alone) const {
        const auto found = alone.needs.find(alone.trips());
        if (found == alone.needs.end()) {
            throw std::logic_error("walker: a body that does not exist on one axis alone: " +
                                   to_text(group_));
        }
        return found->second;
    }

    /// What the calls to nest k inside the body of this level will read. The presence of every
    /// buffer is restored.
    [[nodiscard]] Rehearsal rehearse(int k, Level level) {
        Rehearsal rehearsal{k, {std::vector<BoundingBox>(layer(k).problem.inputs.size()), {}}};
        const std::vector<bool>& takes = plan_.takes_part[who(&rehearsal)];
        for (size_t b = 0; b < plan_.kept.size(); ++b) {
            if (takes[b]) plan_.kept[b].present.begin_rehearsal();
        }
        body(level, &rehearsal);
        for (size_t b = 0; b < plan_.kept.size(); ++b) {
            if (takes[b]) plan_.kept[b].present.rewind();
        }
        return rehearsal;
    }

    [[nodiscard]] Box missing_box(const Kept& kept, const Box& needed) const {
        const Presence::Missing missing = kept.present.missing(needed);
        if (missing.count != volume(missing.box)) {
            throw std::logic_error(
                "walker: " + problems_[static_cast<size_t>(kept.nest)].name +
                ": the new part of its output is " + std::to_string(missing.count) +
                " elements of a bounding box of " + std::to_string(volume(missing.box)) +
                ", expected a box: " + to_text(group_));
        }
        return missing.box;
    }

    // ---- what is moved

    void bring_in(size_t buffer, const Need& need, Rehearsal* rehearsal) {
        if (is_empty(need.box)) return;
        Kept& kept = plan_.kept[buffer];
        if (rehearsal == nullptr) kept.watch.see(need.box);
        if (kept.kind == Kept::Kind::intermediate) {
            kept.present.bring_in(need.box);
            if (!is_empty(need.call)) call(kept.nest, need.call, rehearsal);
        } else {
            kept.reads += Elements(kept.present.missing(need.box).count) * kept.words;
            kept.present.bring_in(need.box);
        }
    }

    void read_partial_sums() {
        const Visits::Counts found = visits_.of(layers_.back().ranges);
        output_reads_ += Elements(found.visited);
        output_buffer_ = std::max(output_buffer_, Elements(found.elements));
    }

    void write_output() {
        output_writes_ += Elements(visits_.add(layers_.back().ranges));
    }

    // ---- the result

    [[nodiscard]] GroupCounts counts() {
        GroupCounts result;
        result.output_reads = output_reads_;
        result.output_writes = output_writes_;
        for (const LayerState& l : layers_)
            result.layers.push_back({l.problem.name, l.macs, {}, {}, {}});
        result.layers.back().output_buffer = output_buffer_;
        std::vector<Elements> sizes;
        for (size_t b = 0; b < plan_.kept.size(); ++b) {
            Kept& kept = plan_.kept[b];
            kept.watch.end_lifetime();
            const Extents& extents = kept.watch.extents();
            sizes.push_back(Elements(extents[0]) * extents[1] * extents[2] * kept.words);
            result.sum_total += sizes.back();
            switch (kept.kind) {
                case Kept::Kind::input:
                    result.inputs.push_back({plan_.tensors[b].name, kept.reads, sizes[b]});
                    break;
                case Kept::Kind::weights:
                    result.layers[static_cast<size_t>(kept.nest)].weight_reads = kept.reads;
                    result.layers[static_cast<size_t>(kept.nest)].weight_buffer = sizes[b];
                    break;
                case Kept::Kind::intermediate:
                    result.layers[static_cast<size_t>(kept.nest)].output_buffer = sizes[b];
                    break;
            }
        }
        result.sum_total += output_buffer_;
        // Buffers stored on one path live together in its innermost body.
        for (int k = 0; k <= group_.sink(); ++k) {
            Elements together;
            for (const Level& level : path(group_, k)) {
                for (const size_t b : plan_.site(level).stored) together += sizes[b];
                if (plan_.site(level).writes_output) together += output_buffer_;
            }
            result.live_total = std::max(result.live_total, together);
        }
        return result;
    }

    const std::vector<LayerProblem>& problems_;
    const GroupSchedule& group_;
    WalkTrips trips_;
    std::optional<Axis> only_;
    WalkPlan plan_;
    IndexVector<LayerState, int> layers_;
    std::vector<Need> needs_;  ///< of the bodies in progress
    Visits visits_;
    const Separate* separate_ = nullptr;  ///< what the present loops are executed for; all
    Elements output_reads_;
    Elements output_writes_;
    Elements output_buffer_;
};

}  // namespace

GroupCounts walk(const Network& network, const GroupSchedule& group, WalkTrips trips) {
    const std::vector<LayerProblem> problems = group_problems(network, group);
    return Walker(problems, group, trips).walk();
}

}  // namespace laminate
