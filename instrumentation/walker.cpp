#include "instrumentation/walker.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "instrumentation/boxes.h"
#include "instrumentation/fold_watch.h"
#include "instrumentation/presence.h"

namespace laminate {

namespace {

using namespace walking;

/// The taps of some output coordinates along one axis: how many, and the input coordinates they
/// span, padding included.
struct Taps {
    int64_t count = 0;
    Interval span;
    void add(const Taps& other) {
        if (other.count == 0) return;
        span.begin = count == 0 ? other.span.begin : std::min(span.begin, other.span.begin);
        span.end = count == 0 ? other.span.end : std::max(span.end, other.span.end);
        count += other.count;
    }
};

/// One axis of a layer's window.
class AxisTaps {
public:
    explicit AxisTaps(const AxisWindow& window) : taps_(static_cast<size_t>(window.out)) {
        for (int64_t o = 0; o < window.out; ++o) {
            for (int64_t k = 0; k < window.kernel; ++k) {
                int64_t at = 0;
                if (window.transposed) {
                    const int64_t scaled = o + window.pad_begin - k * window.dilation;
                    if (scaled % window.stride != 0) continue;
                    at = scaled / window.stride;
                } else {
                    at = o * window.stride + k * window.dilation - window.pad_begin;
                }
                taps_[static_cast<size_t>(o)].add({1, {at, at + 1}});
            }
        }
    }

    /// Of a range of output coordinates taken together.
    [[nodiscard]] const Taps& of(const Interval& outputs) {
        if (outputs != last_outputs_) {
            last_outputs_ = outputs;
            last_ = {};
            for (int64_t o = outputs.begin; o < outputs.end; ++o)
                last_.add(taps_[static_cast<size_t>(o)]);
        }
        return last_;
    }

private:
    std::vector<Taps> taps_;
    Interval last_outputs_;  ///< what was asked last, which is often asked again
    Taps last_;
};

/// A part of a layer's iterations, by Dim.
using Ranges = std::array<Interval, 4>;

/// A layer, what the schedule says of it, and where its loops stand.
struct LayerState {
    const LayerProblem& problem;
    const Nest& nest;
    std::array<AxisTaps, 2> taps;  ///< rows, columns
    Ranges ranges;                 ///< of the body that is being executed
    Macs macs;

    LayerState(const LayerProblem& layer_problem, const Nest& layer_nest)
        : problem(layer_problem),
          nest(layer_nest),
          taps{AxisTaps(problem.y()), AxisTaps(problem.x())} {}

    /// The iterations that compute a box of the output.
    [[nodiscard]] Ranges ranges_of(const Box& output) const {
        return {output[0], output[1], output[2], Interval{0, problem[Dim::i]}};
    }
    /// What they read of one operand: the bounding box, clipped to the tensor.
    [[nodiscard]] Box input_of(int operand, const Ranges& of) {
        const LayerInput& input = problem.inputs[static_cast<size_t>(operand)];
        Interval channels;
        if (problem.operation == Operation::concat) {
            channels = {of[0].begin - input.first_output_channel,
                        of[0].end - input.first_output_channel};
        } else if (problem.groups == 1) {
            channels = of[3];
        } else {
            const int64_t z_per_group = problem[Dim::z] / problem.groups;
            channels.begin = of[0].begin / z_per_group * problem[Dim::i] + of[3].begin;
            channels.end = (of[0].end - 1) / z_per_group * problem[Dim::i] + of[3].end;
        }
        return {channels.clipped_to(input.channels),
                taps[0].of(of[1]).span.clipped_to(problem.y().in),
                taps[1].of(of[2]).span.clipped_to(problem.x().in)};
    }
    void multiply_accumulate() {
        if (!problem.has_weights()) return;
        macs += Macs(ranges[0].size()) * ranges[3].size() * taps[0].of(ranges[1]).count *
                taps[1].of(ranges[2]).count;
    }
};

/// One of the axes by which rule 8 judges: the dimensions of the loops that belong to it.
enum class Axis { channels = 0, rows = 1, columns = 2 };

Axis axis_of(Dim dim) {
    return dim == Dim::y ? Axis::rows : dim == Dim::x ? Axis::columns : Axis::channels;
}

/// The layer as though the other axes had one coordinate.
LayerProblem alone(LayerProblem problem, Axis axis) {
    if (axis != Axis::channels) {
        problem.extent[Dim::z] = 1;
        problem.extent[Dim::i] = 1;
        problem.groups = 1;
        for (LayerInput& input : problem.inputs) {
            input.channels = 1;
            input.first_output_channel = 0;
        }
    }
    for (const Dim dim : {Dim::y, Dim::x}) {
        if (axis_of(dim) == axis) continue;
        problem.extent[dim] = 1;
        problem.window[static_cast<size_t>(dim) - 1] = {};
    }
    return problem;
}

/// The nest with one trip of every loop of the other axes.
Nest alone(Nest nest, Axis axis) {
    for (const Dim dim : {Dim::z, Dim::y, Dim::x, Dim::i}) {
        if (axis_of(dim) != axis) nest.tile[dim] = 1;
    }
    for (const Dim dim : {Dim::y, Dim::x}) {
        int64_t& strip = nest.strip[static_cast<size_t>(dim) - 1];
        if (axis_of(dim) != axis) strip = std::min<int64_t>(strip, 1);
    }
    return nest;
}

/// Whether the loop over `dim` of nest `k` moves along the channels of a tensor that nest `reader`
/// reads alone. It does so through the outputs of the nests from `reader` to `k`, as far as each of
/// them is read by one nest.
bool moves_channels(const std::vector<LayerProblem>& problems,
                    const std::vector<GroupTensor>& tensors, int k, Dim dim, int reader);

/// Whether that loop moves along the output channels z of `nest`.
bool moves_outputs(const std::vector<LayerProblem>& problems,
                   const std::vector<GroupTensor>& tensors, int k, Dim dim, int nest) {
    if (nest == k) return dim == Dim::z;
    const auto output = std::find_if(tensors.begin(), tensors.end(),
                                     [&](const GroupTensor& t) { return t.producer == nest; });
    return !output->is_shared() &&
           moves_channels(problems, tensors, k, dim, output->readers.front().nest);
}

bool moves_channels(const std::vector<LayerProblem>& problems,
                    const std::vector<GroupTensor>& tensors, int k, Dim dim, int reader) {
    if (reader == k && dim == Dim::i) return true;
    // Output channels read the channels of their group.
    return problems[static_cast<size_t>(reader)].groups > 1 &&
           moves_outputs(problems, tensors, k, dim, reader);
}

class Walker {
public:
    /// With `only`, the problems and the group are those of one axis alone. Then a shared tensor is
    /// needed where, and as far as, its readers are seen to read it; else where the walks on each
    /// axis alone have found it needed.
    Walker(const std::vector<LayerProblem>& problems, const GroupSchedule& group,
           std::optional<Axis> only = {})
        : problems_(problems), group_(group), only_(only) {
        for (size_t k = 0; k < problems.size(); ++k)
            layers_.emplace_back(problems[k], group.nests[k]);
        const LayerProblem& sink = problems.back();
        visits_.resize(static_cast<size_t>(sink.output_elements().value()), false);
        place();
        if (!only_) judge_shared();
    }

    GroupCounts walk() {
        const LayerProblem& sink = problems_.back();
        layers_.back().ranges = layers_.back().ranges_of(
            {Interval{0, sink[Dim::z]}, Interval{0, sink[Dim::y]}, Interval{0, sink[Dim::x]}});
        body(Level{}, nullptr);
        return counts();
    }

private:
    /// How a nest's reads in the body of a level are found out.
    enum class Where {
        here,    ///< the body is one of its own
        called,  ///< the body calls it: its output has this compute level
        inside,  ///< it hangs further inside: rehearsed
    };
    struct Reader {
        int nest = 0;
        int operand = 0;
        Where where = Where::here;
        size_t output = 0;  ///< called: which of the level's arrivals its output is
    };
    /// A buffer of which new elements arrive at a level.
    struct Arrival {
        size_t buffer = 0;
        std::vector<Reader> readers;
    };
    /// What the schedule puts in the body of one level, and how often its loop has been there.
    struct Site {
        std::vector<size_t> stored;
        std::vector<Arrival> computed;  ///< in execution order; Y is not in it
        bool writes_output = false;
        int64_t trip = 0;    ///< of the present execution of the loop
        int64_t bodies = 0;  ///< begun in all, rehearsals not counted
    };
    /// What is needed of a shared tensor on one axis alone, by the trips of the loops of that axis
    /// around the body.
    struct NeedsAlone {
        std::vector<const Site*> loops;
        std::map<std::vector<int64_t>, Interval> needs;
        [[nodiscard]] std::vector<int64_t> trips() const {
            std::vector<int64_t> numbers;
            for (const Site* loop : loops) numbers.push_back(loop->trip);
            return numbers;
        }
    };
    /// A buffer of the schedule but Y's.
    struct Kept {
        enum class Kind { input, weights, intermediate };
        Kind kind = Kind::input;
        int nest = 0;  ///< of weights the layer, of an intermediate tensor the producer
        Placement placement{};
        bool is_shared = false;
        int64_t words = 1;  ///< of an element: weights move by whole kernels
        Presence present;
        FoldWatch watch{};
        Elements reads{};                   ///< external ones
        std::array<NeedsAlone, 3> alone{};  ///< shared: by axis
    };
    /// What a body needs of one buffer.
    struct Need {
        Box box;
        Box call;  ///< of an intermediate tensor: the part that is not present, for which the
                   ///< producer is called
    };
    /// What the calls of one layer in a body read.
    struct Reads {
        std::vector<BoundingBox> inputs;  ///< by operand
        BoundingBox weights;
    };
    /// A run of a body for the sake of one layer: the calls of it are found out, not executed. Only
    /// the layer and those that it feeds take part; nothing is counted.
    struct Rehearsal {
        int nest = 0;
        Reads reads;
    };

    [[nodiscard]] LayerState& layer(int k) { return layers_[static_cast<size_t>(k)]; }
    [[nodiscard]] Site& site(Level level) {
        return level.is_root()
                   ? root_
                   : sites_[static_cast<size_t>(level.nest)][static_cast<size_t>(level.loop)];
    }

    // ---- what the schedule says

    void place() {
        for (const Nest& nest : group_.nests) sites_.emplace_back(nest.loops.size());
        tensors_ = group_tensors(problems_);
        for (const GroupTensor& tensor : tensors_) {
            const TensorReader first = tensor.readers.front();
            const LayerProblem& problem = problems_[static_cast<size_t>(first.nest)];
            const int64_t channels = problem.inputs[static_cast<size_t>(first.operand)].channels;
            Kept kept{.kind = tensor.is_external() ? Kept::Kind::input : Kept::Kind::intermediate,
                      .nest = tensor.producer,
                      .placement = placement_of(group_, tensor),
                      .is_shared = tensor.is_shared(),
                      .present = Presence({channels, problem.y().in, problem.x().in})};
            const auto dimension = [&](int k, Dim dim) -> std::optional<size_t> {
                if (dim == Dim::y) return 1;
                if (dim == Dim::x) return 2;
                if (tensor.is_shared() || !moves_channels(problems_, tensors_, k, dim, first.nest))
                    return std::nullopt;
                return 0;
            };
            kept.watch = watch(kept.placement, first.nest, dimension);
            if (tensor.is_shared()) place_shared(kept, first.nest);
            kept_.push_back(std::move(kept));
        }
        for (int k = 0; k <= group_.sink(); ++k) {
            const LayerProblem& problem = problems_[static_cast<size_t>(k)];
            if (!problem.has_weights()) continue;
            Kept kept{.kind = Kept::Kind::weights,
                      .nest = k,
                      .placement = *group_.nests[static_cast<size_t>(k)].w,
                      .words = problem.y().kernel * problem.x().kernel,
                      .present = Presence({problem[Dim::z], problem[Dim::i], 1})};
            const auto dimension = [&](int j, Dim dim) -> std::optional<size_t> {
                if (axis_of(dim) != Axis::channels) return std::nullopt;
                if (j == k && dim == Dim::i) return 1;
                if (!moves_outputs(problems_, tensors_, j, dim, k)) return std::nullopt;
                return 0;
            };
            kept.watch = watch(kept.placement, k, dimension);
            kept_.push_back(std::move(kept));
        }
        put_arrivals();
        find_parts();
    }

    /// A watch on the loops from store level to compute level, both on the path of nest `user`.
    template <class Dimension>
    [[nodiscard]] FoldWatch watch(const Placement& placement, int user,
                                  const Dimension& dimension) {
        std::vector<FoldWatch::Loop> loops;
        const std::vector<Level> levels = path(group_, user);
        auto level = std::find(levels.begin(), levels.end(), placement.store);
        while (*level != placement.compute) {
            ++level;
            const Dim dim = group_.nests[static_cast<size_t>(level->nest)]
                                .loops[static_cast<size_t>(level->loop)]
                                .dim;
            loops.push_back({&site(*level).bodies, dimension(level->nest, dim)});
        }
        return FoldWatch(loops);
    }

    /// Notes the loops around the compute level, by axis.
    void place_shared(Kept& kept, int reader) {
        for (const Level& level : path(group_, reader)) {
            if (!level.is_root()) {
                const Dim dim = group_.nests[static_cast<size_t>(level.nest)]
                                    .loops[static_cast<size_t>(level.loop)]
                                    .dim;
                kept.alone[static_cast<size_t>(axis_of(dim))].loops.push_back(&site(level));
            }
            if (level == kept.placement.compute) break;
        }
    }

    /// The order of execution within a level: of each nest its X, its W, its call.
    void put_arrivals() {
        const auto put = [&](size_t buffer, const std::vector<TensorReader>& readers) {
            const Placement& placement = kept_[buffer].placement;
            site(placement.store).stored.push_back(buffer);
            Arrival arrival{buffer, {}};
            for (const TensorReader& reader : readers) {
                arrival.readers.push_back(
                    {reader.nest, reader.operand, where(reader.nest, placement.compute), 0});
            }
            site(placement.compute).computed.push_back(std::move(arrival));
        };
        for (int k = 0; k <= group_.sink(); ++k) {
            for (size_t t = 0; t < tensors_.size(); ++t) {
                if (tensors_[t].is_external() && tensors_[t].readers.front().nest == k)
                    put(t, tensors_[t].readers);
            }
            for (size_t w = tensors_.size(); w < kept_.size(); ++w) {
                if (kept_[w].nest == k) put(w, {{k, 0}});
            }
            for (size_t t = 0; t < tensors_.size(); ++t) {
                if (tensors_[t].producer == k) put(t, tensors_[t].readers);
            }
        }
        site(group_.nests.back().y.store).writes_output = true;
        const auto find_calls = [&](Site& s) {
            for (Arrival& arrival : s.computed) {
                for (Reader& reader : arrival.readers) {
                    if (reader.where != Where::called) continue;
                    while (kept_[s.computed[reader.output].buffer].kind !=
                               Kept::Kind::intermediate ||
                           kept_[s.computed[reader.output].buffer].nest != reader.nest) {
                        ++reader.output;
                    }
                }
            }
        };
        find_calls(root_);
        for (std::vector<Site>& nest : sites_) std::for_each(nest.begin(), nest.end(), find_calls);
    }

    /// How the reads of nest `reader` in the body of a level around it are found.
    [[nodiscard]] Where where(int reader, Level level) const {
        const bool is_sink = reader == group_.sink();
        if (level.nest == reader || (level.is_root() && is_sink)) return Where::here;
        return !is_sink && group_.nests[static_cast<size_t>(reader)].y.compute == level
                   ? Where::called
                   : Where::inside;
    }

    /// Which buffers take part in the execution (index 0) and in the rehearsal for each nest k
    /// (index 1 + k), and how deep each nest's loops must be executed for them.
    void find_parts() {
        takes_part_.assign(layers_.size() + 1, std::vector<bool>(kept_.size(), true));
        for (int k = 0; k <= group_.sink(); ++k) {
            std::vector<bool> fed(layers_.size(), false);  // by nest k, at any distance
            fed[static_cast<size_t>(k)] = true;
            std::vector<bool>& takes = takes_part_[static_cast<size_t>(k) + 1];
            takes.assign(kept_.size(), false);
            for (size_t t = 0; t < tensors_.size(); ++t) {  // producers first
                if (tensors_[t].is_external() || !fed[static_cast<size_t>(tensors_[t].producer)])
                    continue;
                takes[t] = true;
                for (const TensorReader& reader : tensors_[t].readers)
                    fed[static_cast<size_t>(reader.nest)] = true;
            }
        }
        for (const std::vector<bool>& takes : takes_part_) {
            last_site_.emplace_back(sites_.size(), -1);
            for (size_t k = 0; k < sites_.size(); ++k) {
                for (size_t l = 0; l < sites_[k].size(); ++l) {
                    const Site& s = sites_[k][l];
                    const bool is_executed = &takes == &takes_part_.front();
                    if ((is_executed && s.writes_output) ||
                        std::any_of(s.stored.begin(), s.stored.end(),
                                    [&](size_t b) { return takes[b]; }) ||
                        std::any_of(s.computed.begin(), s.computed.end(),
                                    [&](const Arrival& a) { return takes[a.buffer]; })) {
                        last_site_.back()[k] = static_cast<int>(l);
                    }
                }
            }
        }
    }

    /// Walks each axis alone for what is needed of the shared tensors.
    void judge_shared() {
        if (std::none_of(tensors_.begin(), tensors_.end(),
                         [](const GroupTensor& t) { return t.is_shared(); }))
            return;
        for (const Axis axis : {Axis::channels, Axis::rows, Axis::columns}) {
            std::vector<LayerProblem> problems;
            GroupSchedule group;
            for (const LayerProblem& problem : problems_) problems.push_back(alone(problem, axis));
            for (const Nest& nest : group_.nests) group.nests.push_back(alone(nest, axis));
            Walker walker(problems, group, axis);
            (void)walker.walk();
            const auto a = static_cast<size_t>(axis);
            for (size_t b = 0; b < kept_.size(); ++b)
                kept_[b].alone[a].needs = std::move(walker.kept_[b].alone[a].needs);
        }
    }

    // ---- the loop nests

    [[nodiscard]] static size_t who(const Rehearsal* rehearsal) {
        return rehearsal == nullptr ? 0 : static_cast<size_t>(rehearsal->nest) + 1;
    }
    [[nodiscard]] bool takes_part(size_t buffer, const Rehearsal* rehearsal) const {
        return takes_part_[who(rehearsal)][buffer];
    }

    /// One iteration of the level's loop; the ranges of its nest and of those around it are set.
    void body(Level level, Rehearsal* rehearsal) {
        Site& here = site(level);
        if (rehearsal == nullptr) ++here.bodies;
        for (const size_t b : here.stored) {
            if (!takes_part(b, rehearsal)) continue;
            kept_[b].present.begin_lifetime();
            if (rehearsal == nullptr) kept_[b].watch.end_lifetime();
        }
        const size_t first_need = needs_.size();
        if (!here.computed.empty()) find_needs(level, rehearsal);
        for (size_t n = 0; n < here.computed.size(); ++n) {
            // By value: the calls inside put their own needs on the stack.
            if (takes_part(here.computed[n].buffer, rehearsal))
                bring_in(here.computed[n].buffer, Need(needs_[first_need + n]), rehearsal);
        }
        needs_.resize(first_need);
        const bool writes = here.writes_output && rehearsal == nullptr;
        if (writes) read_partial_sums();
        if (level.is_root())
            loop(group_.sink(), 0, rehearsal);
        else
            loop(level.nest, level.loop + 1, rehearsal);
        if (writes) write_output();
    }

    /// Loop number `index` of nest k and everything inside it, for the ranges that the loops around
    /// it have left.
    void loop(int k, int index, Rehearsal* rehearsal) {
        if (index > last_site_[who(rehearsal)][static_cast<size_t>(k)]) {
            // Nothing but multiply-accumulates happens here and further inside.
            if (rehearsal == nullptr) layer(k).multiply_accumulate();
            return;
        }
        const Level level{k, index};
        const Nest& nest = layer(k).nest;
        const Loop loop = nest.loops[static_cast<size_t>(index)];
        const auto d = static_cast<size_t>(loop.dim);
        int64_t step = 1;
        if (loop.band == Band::strip) step = nest.strip[d - 1];
        if (loop.band == Band::outer) step = nest.tile[loop.dim];
        Interval& range = layer(k).ranges[d];
        const Interval whole = range;
        int64_t& trip = site(level).trip;
        trip = 0;
        for (int64_t begin = whole.begin; begin < whole.end; begin += step, ++trip) {
            range = {begin, std::min(begin + step, whole.end)};
            body(level, rehearsal);
        }
        range = whole;
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

    [[nodiscard]] static Box weights_of(const Ranges& of) { return {of[0], of[3], Interval{0, 1}}; }

    /// Puts a need for each of site(level).computed on the stack. They are found consumers first
    /// and before anything in the body has happened.
    void find_needs(Level level, const Rehearsal* rehearsal) {
        const std::vector<Arrival>& computed = site(level).computed;
        const size_t first = needs_.size();
        needs_.resize(first + computed.size());
        Rehearsal last{-1, {}};  // X and W of one layer often arrive together
        for (size_t n = computed.size(); n-- > 0;) {
            if (!takes_part(computed[n].buffer, rehearsal)) continue;
            Kept& kept = kept_[computed[n].buffer];
            Need need;
            if (kept.is_shared && !only_) {
                for (size_t d = 0; d < 3; ++d) need.box[d] = need_alone(kept.alone[d]);
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
                    const auto axis = static_cast<size_t>(*only_);
                    const BoundingBox& reached = kept.present.reached();
                    if (!hull.empty()) {
                        need.box[0] = {0, kept.present.extents()[0]};
                        if (!reached.empty())
                            need.box[axis].begin =
                                std::min(need.box[axis].begin, reached.box()[axis].end);
                    }
                    NeedsAlone& alone = kept.alone[axis];
                    alone.needs[alone.trips()] = need.box[axis];
                }
            }
            if (kept.kind == Kept::Kind::intermediate) need.call = missing_box(kept, need.box);
            needs_[first + n] = need;
        }
    }

    [[nodiscard]] Interval need_alone(const NeedsAlone& alone) const {
        const auto found = alone.needs.find(alone.trips());
        if (found == alone.needs.end()) {
            throw std::logic_error("walker: a body that does not exist on one axis alone: " +
                                   to_text(group_));
        }
        return found->second;
    }

    /// What the calls of nest k inside the body of this level will read. The presence of every
    /// buffer is as before.
    [[nodiscard]] Rehearsal rehearse(int k, Level level) {
        Rehearsal rehearsal{k, {std::vector<BoundingBox>(layer(k).problem.inputs.size()), {}}};
        const std::vector<bool>& takes = takes_part_[who(&rehearsal)];
        for (size_t b = 0; b < kept_.size(); ++b) {
            if (takes[b]) kept_[b].present.begin_rehearsal();
        }
        body(level, &rehearsal);
        for (size_t b = 0; b < kept_.size(); ++b) {
            if (takes[b]) kept_[b].present.rewind();
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
        Kept& kept = kept_[buffer];
        if (rehearsal == nullptr) kept.watch.see(need.box);
        if (kept.kind == Kept::Kind::intermediate) {
            kept.present.bring_in(need.box);
            if (!is_empty(need.call)) call(kept.nest, need.call, rehearsal);
        } else {
            kept.reads += Elements(kept.present.missing(need.box).count) * kept.words;
            kept.present.bring_in(need.box);
        }
    }

    template <class Visit>
    void for_each_output_element(const Visit& visit) {
        const LayerState& sink = layers_.back();
        for (int64_t z = sink.ranges[0].begin; z < sink.ranges[0].end; ++z) {
            for (int64_t y = sink.ranges[1].begin; y < sink.ranges[1].end; ++y) {
                for (int64_t x = sink.ranges[2].begin; x < sink.ranges[2].end; ++x) {
                    visit(static_cast<size_t>(
                        (z * sink.problem[Dim::y] + y) * sink.problem[Dim::x] + x));
                }
            }
        }
    }

    void read_partial_sums() {
        int64_t held = 0;
        int64_t read = 0;
        for_each_output_element([&](size_t element) {
            ++held;
            if (visits_[element]) ++read;
        });
        output_reads_ += Elements(read);
        output_buffer_ = std::max(output_buffer_, Elements(held));
    }

    void write_output() {
        int64_t written = 0;
        for_each_output_element([&](size_t element) {
            visits_[element] = true;
            ++written;
        });
        output_writes_ += Elements(written);
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
        for (size_t b = 0; b < kept_.size(); ++b) {
            Kept& kept = kept_[b];
            kept.watch.end_lifetime();
            const Extents& extents = kept.watch.extents();
            sizes.push_back(Elements(extents[0]) * extents[1] * extents[2] * kept.words);
            result.sum_total += sizes.back();
            switch (kept.kind) {
                case Kept::Kind::input:
                    result.inputs.push_back({tensors_[b].name, kept.reads, sizes[b]});
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
        // What is stored on one path lives together in its innermost body.
        for (int k = 0; k <= group_.sink(); ++k) {
            Elements together;
            for (const Level& level : path(group_, k)) {
                for (const size_t b : site(level).stored) together += sizes[b];
                if (site(level).writes_output) together += output_buffer_;
            }
            result.live_total = std::max(result.live_total, together);
        }
        return result;
    }

    const std::vector<LayerProblem>& problems_;
    const GroupSchedule& group_;
    std::optional<Axis> only_;
    std::vector<GroupTensor> tensors_;
    std::vector<LayerState> layers_;
    std::vector<Kept> kept_;  ///< by tensor, then the weights of each layer that has any
    Site root_;
    std::vector<std::vector<Site>> sites_;       ///< by nest, by loop
    std::vector<std::vector<bool>> takes_part_;  ///< by who(), by buffer
    /// The innermost loop of each nest in whose body anything is stored, computed or written; by
    /// who(), by nest.
    std::vector<std::vector<int>> last_site_;
    std::vector<Need> needs_;   ///< of the bodies that are being executed
    std::vector<bool> visits_;  ///< of the elements of Y
    Elements output_reads_;
    Elements output_writes_;
    Elements output_buffer_;
};

}  // namespace

GroupCounts walk(const Network& network, const GroupSchedule& group) {
    const std::vector<LayerProblem> problems = group_problems(network, group);
    return Walker(problems, group).walk();
}

}  // namespace laminate
