#include "instrumentation/walker.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace laminate {

namespace {

/// Coordinates begin, begin + 1, ..., end - 1; empty when end <= begin.
struct Interval {
    int64_t begin = 0;
    int64_t end = 0;
    [[nodiscard]] bool empty() const { return end <= begin; }
    [[nodiscard]] int64_t size() const { return empty() ? 0 : end - begin; }
    [[nodiscard]] Interval clipped_to(int64_t extent) const {
        return {std::max<int64_t>(begin, 0), std::min(end, extent)};
    }
    void cover(int64_t coordinate) {
        begin = std::min(begin, coordinate);
        end = std::max(end, coordinate + 1);
    }
    friend bool operator==(const Interval&, const Interval&) = default;
};

/// A part of a tensor, by channel, row, column; of weights, by z, i and a single third coordinate.
using Box = std::array<Interval, 3>;

bool is_empty(const Box& box) { return box[0].empty() || box[1].empty() || box[2].empty(); }
int64_t volume(const Box& box) { return box[0].size() * box[1].size() * box[2].size(); }

/// Grows into the bounding box of everything that is added to it.
class BoundingBox {
public:
    void add(const Box& box) {
        if (is_empty(box)) return;
        for (size_t d = 0; d < 3; ++d) {
            box_[d].begin = any_ ? std::min(box_[d].begin, box[d].begin) : box[d].begin;
            box_[d].end = any_ ? std::max(box_[d].end, box[d].end) : box[d].end;
        }
        any_ = true;
    }
    [[nodiscard]] Box clipped_to(const std::array<int64_t, 3>& extents) const {
        if (!any_) return {};
        return {box_[0].clipped_to(extents[0]), box_[1].clipped_to(extents[1]), box_[2].clipped_to(extents[2])};
    }

private:
    Box box_;
    bool any_ = false;
};

/// What one iteration of a compute level needs of a buffer.
struct Need {
    Box box;
    /// The box, and below it the gap that a stride beyond the window leaves behind the window before. No window reads
    /// that gap, so once passed it is not brought in any more, even when a later box spans it.
    Box passed;
    Box call;  ///< of an intermediate tensor: the part of the box that is not present, for which the producer is called
    [[nodiscard]] bool leaves_a_gap() const { return passed != box; }
};

/// The coordinates that hold a live element along one dimension, and the interval they span.
class LiveSpan {
public:
    explicit LiveSpan(int64_t extent) : live_(static_cast<size_t>(extent), 0) {}
    void add(int64_t coordinate) {
        ++live_[static_cast<size_t>(coordinate)];
        low_ = std::min(low_, coordinate);
        high_ = std::max(high_, coordinate);
    }
    void remove(int64_t coordinate) { --live_[static_cast<size_t>(coordinate)]; }
    [[nodiscard]] int64_t extent() {
        while (low_ <= high_ && live_[static_cast<size_t>(low_)] == 0) ++low_;
        while (high_ >= low_ && live_[static_cast<size_t>(high_)] == 0) --high_;
        if (low_ > high_) {
            low_ = std::numeric_limits<int64_t>::max();
            high_ = -1;
            return 0;
        }
        return high_ - low_ + 1;
    }

private:
    std::vector<int64_t> live_;
    int64_t low_ = std::numeric_limits<int64_t>::max();
    int64_t high_ = -1;
};

/// One buffer: which elements are present in the current lifetime, when each came in and when it was last needed. Time
/// is the number of the compute-level iteration in the lifetime.
class Buffer {
public:
    explicit Buffer(const std::array<int64_t, 3>& extents)
        : extents_(extents),
          elements_(static_cast<size_t>(extents[0] * extents[1] * extents[2])),
          spans_{LiveSpan(extents[0]), LiveSpan(extents[1]), LiveSpan(extents[2])} {}

    [[nodiscard]] const std::array<int64_t, 3>& extents() const { return extents_; }

    void begin_lifetime() {
        finish_lifetime();
        lifetime_ = ++lifetimes_;
    }

    /// The elements of `needed` that are not present: how many, and their bounding box.
    struct Missing {
        int64_t count = 0;
        Box box;
    };
    [[nodiscard]] Missing missing(const Box& needed) const {
        Missing result;
        for_each(needed, [&](size_t element, int64_t c, int64_t y, int64_t x) {
            if (elements_[element].lifetime == lifetime_) return;
            if (result.count++ == 0) result.box = {Interval{c, c + 1}, Interval{y, y + 1}, Interval{x, x + 1}};
            result.box[0].cover(c);
            result.box[1].cover(y);
            result.box[2].cover(x);
        });
        return result;
    }

    /// One iteration of the compute level: brings in what is missing of `need.box` and says how many elements that was.
    int64_t bring_in(const Need& need) {
        const size_t before = arrivals_.size();
        for_each(need.box, [&](size_t index, int64_t c, int64_t y, int64_t x) {
            Element& element = elements_[index];
            if (element.lifetime != lifetime_) {
                element.lifetime = lifetime_;
                arrivals_.push_back({index, {c, y, x}, time_});
            }
            element.last_needed = time_;
        });
        const auto count = static_cast<int64_t>(arrivals_.size() - before);
        if (need.leaves_a_gap()) {
            for_each(need.passed,
                     [&](size_t index, int64_t, int64_t, int64_t) { elements_[index].lifetime = lifetime_; });
        }
        ++time_;
        return count;
    }

    /// The largest spans of live elements so far, multiplied. Ends the current lifetime.
    [[nodiscard]] Elements size() {
        finish_lifetime();
        return Elements(largest_[0]) * largest_[1] * largest_[2];
    }

    // Rehearsal: presence is changed for a while and put back. Times and sizes are not touched.

    void rehearse_lifetime() {
        undo_.push_back({no_element, lifetime_});
        lifetime_ = ++lifetimes_;
    }
    void rehearse_bring_in(const Need& need) {
        for_each(need.passed, [&](size_t element, int64_t, int64_t, int64_t) {
            if (elements_[element].lifetime == lifetime_) return;
            undo_.push_back({element, elements_[element].lifetime});
            elements_[element].lifetime = lifetime_;
        });
    }
    [[nodiscard]] size_t mark() const { return undo_.size(); }
    void rewind(size_t mark) {
        for (; undo_.size() > mark; undo_.pop_back()) {
            const Undo& last = undo_.back();
            (last.element == no_element ? lifetime_ : elements_[last.element].lifetime) = last.lifetime;
        }
    }

private:
    struct Element {
        int64_t lifetime = 0;  ///< the lifetime in which it last came in; lifetimes are numbered from 1
        int64_t last_needed = 0;
    };
    struct Arrival {
        size_t element;
        std::array<int64_t, 3> at;
        int64_t time;
    };
    struct Departure {
        int64_t last_needed;
        std::array<int64_t, 3> at;
    };
    struct Undo {
        size_t element;
        int64_t lifetime;
    };
    static constexpr size_t no_element = std::numeric_limits<size_t>::max();

    template <class Visit>
    void for_each(const Box& box, const Visit& visit) const {
        for (int64_t c = box[0].begin; c < box[0].end; ++c) {
            for (int64_t y = box[1].begin; y < box[1].end; ++y) {
                for (int64_t x = box[2].begin; x < box[2].end; ++x) {
                    visit(static_cast<size_t>((c * extents_[1] + y) * extents_[2] + x), c, y, x);
                }
            }
        }
    }

    /// Replays the arrivals and last needs of the lifetime that ends, and notes the largest spans of what was live.
    void finish_lifetime() {
        departures_.clear();
        for (const Arrival& arrival : arrivals_) {
            departures_.push_back({elements_[arrival.element].last_needed, arrival.at});
        }
        const auto sooner = [](const Departure& a, const Departure& b) { return a.last_needed < b.last_needed; };
        if (!std::is_sorted(departures_.begin(), departures_.end(), sooner)) {
            std::sort(departures_.begin(), departures_.end(), sooner);
        }
        size_t gone = 0;
        for (size_t i = 0; i < arrivals_.size();) {
            const int64_t now = arrivals_[i].time;
            for (; gone < departures_.size() && departures_[gone].last_needed < now; ++gone) {
                remove(departures_[gone].at);
            }
            for (LiveSpan& span : spans_) (void)span.extent();  // forget the coordinates that just became empty
            for (; i < arrivals_.size() && arrivals_[i].time == now; ++i) {
                for (size_t d = 0; d < 3; ++d) spans_[d].add(arrivals_[i].at[d]);
            }
            for (size_t d = 0; d < 3; ++d) largest_[d] = std::max(largest_[d], spans_[d].extent());
        }
        for (; gone < departures_.size(); ++gone) remove(departures_[gone].at);
        for (LiveSpan& span : spans_) (void)span.extent();
        arrivals_.clear();
        time_ = 0;
    }
    void remove(const std::array<int64_t, 3>& at) {
        for (size_t d = 0; d < 3; ++d) spans_[d].remove(at[d]);
    }

    std::array<int64_t, 3> extents_;
    std::vector<Element> elements_;
    int64_t lifetime_ = 0;   ///< the current one
    int64_t lifetimes_ = 0;  ///< numbers handed out
    int64_t time_ = 0;
    std::vector<Arrival> arrivals_;      ///< of this lifetime, in order
    std::vector<Departure> departures_;  ///< scratch of finish_lifetime()
    std::array<LiveSpan, 3> spans_;
    std::array<int64_t, 3> largest_{0, 0, 0};
    std::vector<Undo> undo_;
};

/// The taps of some output coordinates along one axis: how many, and the input coordinates they span, padding included.
struct Taps {
    int64_t count = 0;
    Interval span;
    /// Where the gap below the span begins: at the end of the span of the output before the first one, when it lies
    /// below; else at the span itself.
    int64_t gap_begin = 0;
};

std::vector<Taps> taps_of(const AxisWindow& window) {
    std::vector<Taps> result(static_cast<size_t>(window.out));
    for (int64_t o = 0; o < window.out; ++o) {
        Taps& taps = result[static_cast<size_t>(o)];
        for (int64_t k = 0; k < window.kernel; ++k) {
            int64_t at = 0;
            if (window.transposed) {
                const int64_t scaled = o + window.pad_begin - k * window.dilation;
                if (scaled % window.stride != 0) continue;
                at = scaled / window.stride;
            } else {
                at = o * window.stride + k * window.dilation - window.pad_begin;
            }
            taps.span.begin = taps.count == 0 ? at : std::min(taps.span.begin, at);
            taps.span.end = taps.count == 0 ? at + 1 : std::max(taps.span.end, at + 1);
            ++taps.count;
        }
        taps.gap_begin = taps.span.begin;
        if (o == 0) continue;
        const Taps& before = result[static_cast<size_t>(o) - 1];
        if (before.count > 0) taps.gap_begin = std::min(taps.gap_begin, before.span.end);
    }
    return result;
}

/// A part of a layer's iterations, by Dim.
using Ranges = std::array<Interval, 4>;

/// A layer, what the schedule says of it, and where its loops stand.
struct LayerState {
    LayerProblem problem;
    const Nest* nest = nullptr;
    std::array<std::vector<Taps>, 2> taps;  ///< rows, columns
    std::array<int64_t, 3> input_extents{1, 1, 1};
    Ranges ranges;  ///< of the body that is being executed
    Buffer weights;
    std::optional<Buffer> output;  ///< of an intermediate tensor
    Macs macs;
    Elements weight_reads;

    LayerState(LayerProblem layer_problem, const Nest& layer_nest, bool is_sink)
        : problem(std::move(layer_problem)),
          nest(&layer_nest),
          taps{taps_of(problem.y()), taps_of(problem.x())},
          input_extents{problem.inputs.front().channels, problem.y().in, problem.x().in},
          weights({problem[Dim::z], problem[Dim::i], 1}) {
        if (!is_sink) output.emplace(std::array<int64_t, 3>{problem[Dim::z], problem[Dim::y], problem[Dim::x]});
    }

    [[nodiscard]] Ranges whole_output() const {
        return {Interval{0, problem[Dim::z]}, Interval{0, problem[Dim::y]}, Interval{0, problem[Dim::x]},
                Interval{0, problem[Dim::i]}};
    }
    [[nodiscard]] Ranges ranges_of_call(const Box& box) const {
        return {box[0], box[1], box[2], Interval{0, problem[Dim::i]}};
    }
    [[nodiscard]] int64_t kernel_elements() const { return problem.y().kernel * problem.x().kernel; }
};

/// The taps of a range of output coordinates taken together.
Taps taps_of_range(const std::vector<Taps>& taps, const Interval& range) {
    Taps sum;
    for (int64_t o = range.begin; o < range.end; ++o) {
        const Taps& one = taps[static_cast<size_t>(o)];
        if (one.count == 0) continue;
        sum.span.begin = sum.count == 0 ? one.span.begin : std::min(sum.span.begin, one.span.begin);
        sum.span.end = sum.count == 0 ? one.span.end : std::max(sum.span.end, one.span.end);
        sum.gap_begin = sum.count == 0 ? one.gap_begin : std::min(sum.gap_begin, one.gap_begin);
        sum.count += one.count;
    }
    return sum;
}

/// What a body reads of its layer's input and weights: bounding boxes, padding not yet clipped away.
struct Reads {
    BoundingBox input;
    BoundingBox passed;  ///< the input with the gaps below its rows and columns
    BoundingBox weights;
    /// Adds what the layer reads for these iterations.
    void add(const LayerState& layer, const Ranges& ranges) {
        const Taps rows = taps_of_range(layer.taps[0], ranges[1]);
        const Taps columns = taps_of_range(layer.taps[1], ranges[2]);
        if (rows.count == 0 || columns.count == 0) return;
        const int64_t z_per_group = layer.problem[Dim::z] / layer.problem.groups;
        for (int64_t z = ranges[0].begin; z < ranges[0].end; ++z) {
            const int64_t first = z / z_per_group * layer.problem[Dim::i];
            const Interval channels{first + ranges[3].begin, first + ranges[3].end};
            input.add({channels, rows.span, columns.span});
            passed.add(
                {channels, Interval{rows.gap_begin, rows.span.end}, Interval{columns.gap_begin, columns.span.end}});
        }
        weights.add({ranges[0], ranges[3], Interval{0, 1}});
    }
};

class Walker {
public:
    Walker(const Network& network, const GroupSchedule& group) : group_(group) {
        const std::vector<LayerProblem> problems = group_problems(network, group);
        for (size_t k = 0; k < problems.size(); ++k) {
            layers_.emplace_back(problems[k], group.nests[k], static_cast<int>(k) == group.sink());
        }
        input_.emplace(layers_.front().input_extents);
        output_visited_.resize(static_cast<size_t>(layers_.back().problem.output_elements().value()), false);
        place();
    }

    GroupCounts walk() {
        layers_.back().ranges = layers_.back().whole_output();
        body(Level{}, nullptr);
        return counts();
    }

private:
    enum class Array { input, weights, output };
    struct BufferId {
        Array array;
        int layer;
        friend auto operator<=>(const BufferId&, const BufferId&) = default;
    };
    /// What the schedule puts in the body of one level.
    struct Site {
        std::vector<BufferId> stored;
        std::vector<BufferId> computed;  ///< in execution order; Y is not in it
        bool writes_output = false;
    };
    /// A run of a body for the sake of one layer: the calls of it are found out, not executed. Only that layer and its
    /// consumers take part; nothing is counted.
    struct Rehearsal {
        int layer;
        Reads reads;
    };

    [[nodiscard]] LayerState& layer(int k) { return layers_[static_cast<size_t>(k)]; }
    [[nodiscard]] Site& site(Level level) {
        return level.is_root() ? root_ : sites_[static_cast<size_t>(level.nest)][static_cast<size_t>(level.loop)];
    }

    void place() {
        for (const Nest& nest : group_.nests) sites_.emplace_back(nest.loops.size());
        const auto put = [&](BufferId id, const Placement& placement) {
            site(placement.store).stored.push_back(id);
            if (id.array == Array::output && id.layer == group_.sink())
                site(placement.compute).writes_output = true;
            else
                site(placement.compute).computed.push_back(id);
        };
        for (int k = 0; k <= group_.sink(); ++k) {
            const Nest& nest = group_.nests[static_cast<size_t>(k)];
            for (const InputPlacement& x : nest.x) put({Array::input, k}, x.placement);
            put({Array::weights, k}, *nest.w);
            put({Array::output, k}, nest.y);
        }
        for (int who = 0; who <= group_.sink() + 1; ++who) {
            const Rehearsal rehearsal{who - 1, {}};
            const auto takes = [&](const BufferId& id) { return takes_part(id, who == 0 ? nullptr : &rehearsal); };
            last_site_.emplace_back(sites_.size(), -1);
            for (size_t k = 0; k < sites_.size(); ++k) {
                for (size_t l = 0; l < sites_[k].size(); ++l) {
                    const Site& s = sites_[k][l];
                    if (std::any_of(s.stored.begin(), s.stored.end(), takes) ||
                        std::any_of(s.computed.begin(), s.computed.end(), takes)) {
                        last_site_.back()[k] = static_cast<int>(l);
                    }
                }
            }
        }
    }

    [[nodiscard]] bool takes_part(const BufferId& id, const Rehearsal* rehearsal) const {
        return rehearsal == nullptr ||
               (id.array == Array::output && id.layer >= rehearsal->layer && id.layer != group_.sink());
    }

    // -------------------------------------------------------------------------------------------------- the loop nests

    /// One iteration of the level's loop; the ranges of its nest and of those around it are set.
    void body(Level level, Rehearsal* rehearsal) {
        const Site& here = site(level);
        const size_t live_outside = live_.size();
        for (const BufferId& id : here.stored) {
            if (!takes_part(id, rehearsal)) continue;
            if (rehearsal != nullptr) {
                layer(id.layer).output->rehearse_lifetime();
                continue;
            }
            if (Buffer* buffer = find_buffer(id)) buffer->begin_lifetime();
            live_.push_back(id);
        }
        if (live_.size() > live_outside) live_together_.insert(live_);

        const size_t first_need = needs_.size();
        if (!here.computed.empty()) find_needs(level, rehearsal);
        for (size_t n = 0; n < here.computed.size(); ++n) {
            // By value: the calls below put their own needs on the stack.
            if (!takes_part(here.computed[n], rehearsal)) continue;
            bring_in(here.computed[n], Need(needs_[first_need + n]), rehearsal);
        }
        needs_.resize(first_need);
        const bool writes = here.writes_output && rehearsal == nullptr;
        if (writes) read_partial_sums();
        if (level.is_root())
            loop(group_.sink(), 0, rehearsal);
        else
            loop(level.nest, level.loop + 1, rehearsal);
        if (writes) write_output();
        live_.resize(live_outside);
    }

    /// Loop number `index` of nest k and everything inside it, for the ranges that the loops around it have left.
    void loop(int k, int index, Rehearsal* rehearsal) {
        if (!happens_within(k, index, rehearsal)) {
            if (rehearsal == nullptr) multiply_accumulate(layer(k));
            return;
        }
        const Nest& nest = *layer(k).nest;
        const Loop loop = nest.loops[static_cast<size_t>(index)];
        const auto d = static_cast<size_t>(loop.dim);
        int64_t step = 1;
        if (loop.band == Band::strip) step = nest.strip[d - 1];
        if (loop.band == Band::outer) step = nest.tile[d];
        Interval& range = layer(k).ranges[d];
        const Interval whole = range;
        for (int64_t begin = whole.begin; begin < whole.end; begin += step) {
            range = {begin, std::min(begin + step, whole.end)};
            body(Level{k, index}, rehearsal);
        }
        range = whole;
    }

    /// Whether anything but multiply-accumulates happens in loop `index` of nest k or inside it.
    [[nodiscard]] bool happens_within(int k, int index, const Rehearsal* rehearsal) const {
        const size_t who = rehearsal == nullptr ? 0 : static_cast<size_t>(rehearsal->layer) + 1;
        return index <= last_site_[who][static_cast<size_t>(k)];
    }

    void call(int k, const Box& box, Rehearsal* rehearsal) {
        if (rehearsal != nullptr && rehearsal->layer == k) {
            rehearsal->reads.add(layer(k), layer(k).ranges_of_call(box));
            return;
        }
        layer(k).ranges = layer(k).ranges_of_call(box);
        loop(k, 0, rehearsal);
    }

    static void multiply_accumulate(LayerState& layer) {
        const int64_t rows = taps_of_range(layer.taps[0], layer.ranges[1]).count;
        const int64_t columns = taps_of_range(layer.taps[1], layer.ranges[2]).count;
        layer.macs += Macs(layer.ranges[0].size()) * layer.ranges[3].size() * rows * columns;
    }

    // -------------------------------------------------------------------------------------------------- what is needed

    /// Puts a need for each of site(level).computed on the stack. They are found consumers first and before anything in
    /// the body has happened.
    void find_needs(Level level, const Rehearsal* rehearsal) {
        const std::vector<BufferId>& computed = site(level).computed;
        const size_t first = needs_.size();
        needs_.resize(first + computed.size());
        Reads reads;  // of the layer that was looked at last
        int known = -1;
        Box next_call;  // of the output that was looked at last
        int next_called = -1;
        for (size_t n = computed.size(); n-- > 0;) {
            const BufferId& id = computed[n];
            if (!takes_part(id, rehearsal)) continue;
            const int reader = id.array == Array::output ? id.layer + 1 : id.layer;
            if (known != reader) {
                if (known >= 0) reads = {};
                known = reader;
                if (level.nest == reader || (level.is_root() && reader == group_.sink())) {
                    reads.add(layer(reader), layer(reader).ranges);
                } else if (next_called == reader) {
                    if (!is_empty(next_call)) reads.add(layer(reader), layer(reader).ranges_of_call(next_call));
                } else {
                    reads = rehearse(reader, level);
                }
            }
            if (id.array == Array::weights) {
                needs_[first + n].box = reads.weights.clipped_to(layer(reader).weights.extents());
                needs_[first + n].passed = needs_[first + n].box;
                continue;
            }
            Need need;
            need.box = reads.input.clipped_to(layer(reader).input_extents);
            if (!is_empty(need.box)) need.passed = reads.passed.clipped_to(layer(reader).input_extents);
            if (id.array == Array::output) {
                need.call = next_call = missing_box(id.layer, need.box);
                next_called = id.layer;
            }
            needs_[first + n] = need;
        }
    }

    /// What the calls of layer k inside the body of this level will read. The presence of every buffer is as before.
    [[nodiscard]] Reads rehearse(int k, Level level) {
        std::vector<size_t> marks;
        for (int j = k; j < group_.sink(); ++j) marks.push_back(layer(j).output->mark());
        Rehearsal rehearsal{k, {}};
        body(level, &rehearsal);
        for (int j = k; j < group_.sink(); ++j) layer(j).output->rewind(marks[static_cast<size_t>(j - k)]);
        return rehearsal.reads;
    }

    [[nodiscard]] Box missing_box(int k, const Box& needed) {
        const Buffer::Missing missing = layer(k).output->missing(needed);
        if (missing.count != volume(missing.box)) {
            throw std::logic_error("walker: " + layer(k).problem.name + ": the new part of its output is " +
                                   std::to_string(missing.count) + " elements of a bounding box of " +
                                   std::to_string(volume(missing.box)) + ", expected a box: " + to_text(group_));
        }
        return missing.box;
    }

    // --------------------------------------------------------------------------------------------------- what is moved

    [[nodiscard]] Buffer* find_buffer(const BufferId& id) {
        if (id.array == Array::input) return &*input_;
        if (id.array == Array::weights) return &layer(id.layer).weights;
        return layer(id.layer).output ? &*layer(id.layer).output : nullptr;
    }

    void bring_in(const BufferId& id, const Need& need, Rehearsal* rehearsal) {
        if (id.array == Array::input) {
            input_reads_ += Elements(input_->bring_in(need));
        } else if (id.array == Array::weights) {
            layer(id.layer).weight_reads +=
                Elements(layer(id.layer).weights.bring_in(need)) * layer(id.layer).kernel_elements();
        } else {
            Buffer& buffer = *layer(id.layer).output;
            if (rehearsal != nullptr)
                buffer.rehearse_bring_in(need);
            else
                buffer.bring_in(need);
            if (!is_empty(need.call)) call(id.layer, need.call, rehearsal);
        }
    }

    template <class Visit>
    void for_each_output_element(const Visit& visit) {
        const LayerState& sink = layers_.back();
        for (int64_t z = sink.ranges[0].begin; z < sink.ranges[0].end; ++z) {
            for (int64_t y = sink.ranges[1].begin; y < sink.ranges[1].end; ++y) {
                for (int64_t x = sink.ranges[2].begin; x < sink.ranges[2].end; ++x) {
                    visit(static_cast<size_t>((z * sink.problem[Dim::y] + y) * sink.problem[Dim::x] + x));
                }
            }
        }
    }

    void read_partial_sums() {
        int64_t held = 0;
        for_each_output_element([&](size_t element) {
            ++held;
            if (output_visited_[element]) output_reads_ += Elements(1);
        });
        output_buffer_ = std::max(output_buffer_, Elements(held));
    }

    void write_output() {
        for_each_output_element([&](size_t element) {
            output_visited_[element] = true;
            output_writes_ += Elements(1);
        });
    }

    // ------------------------------------------------------------------------------------------------------ the result

    [[nodiscard]] Elements size_of(const BufferId& id) {
        if (id.array == Array::output && id.layer == group_.sink()) return output_buffer_;
        const int64_t words = id.array == Array::weights ? layer(id.layer).kernel_elements() : 1;
        return find_buffer(id)->size() * words;
    }

    [[nodiscard]] GroupCounts counts() {
        GroupCounts result;
        result.output_reads = output_reads_;
        result.output_writes = output_writes_;
        result.inputs.push_back({layer(0).problem.inputs.front().name, input_reads_, size_of({Array::input, 0})});
        result.sum_total = result.input_buffers();
        for (int k = 0; k <= group_.sink(); ++k) {
            const LayerState& l = layer(k);
            result.layers.push_back(
                {l.problem.name, l.macs, l.weight_reads, size_of({Array::weights, k}), size_of({Array::output, k})});
            result.sum_total += result.layers.back().weight_buffer + result.layers.back().output_buffer;
        }
        for (const std::vector<BufferId>& together : live_together_) {
            Elements sum;
            for (const BufferId& id : together) sum += size_of(id);
            result.live_total = std::max(result.live_total, sum);
        }
        return result;
    }

    const GroupSchedule& group_;
    std::vector<LayerState> layers_;
    Site root_;
    std::vector<std::vector<Site>> sites_;  ///< by nest, by loop
    /// The innermost loop of each nest in whose body anything is stored or computed: in the execution, then in the
    /// rehearsal for each layer.
    std::vector<std::vector<int>> last_site_;
    std::optional<Buffer> input_;
    std::vector<bool> output_visited_;
    Elements input_reads_;
    Elements output_reads_;
    Elements output_writes_;
    Elements output_buffer_;
    std::vector<Need> needs_;                        ///< of the bodies that are being executed
    std::vector<BufferId> live_;                     ///< buffers of the bodies around this point, outermost first
    std::set<std::vector<BufferId>> live_together_;  ///< every combination that was met
};

}  // namespace

GroupCounts walk(const Network& network, const GroupSchedule& group) { return Walker(network, group).walk(); }

}  // namespace laminate
