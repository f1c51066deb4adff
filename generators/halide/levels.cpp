#include "generators/halide/levels.h"

#include <algorithm>
#include <set>

#include "base/range.h"

namespace laminate {

bool is_channelwise(const LayerProblem& p) { return p.groups > 1 || !p.has_weights(); }

namespace {

/// The end of what the first `outputs` of a window read, padding included.
int64_t window_end(const AxisWindow& w, int64_t outputs) {
    return (outputs - 1) * w.stride + w.span() - w.pad_begin;
}

}  // namespace

bool passes_end(const AxisWindow& w) { return window_end(w, w.out) > w.in; }

AxisWindow operand_window(const LayerProblem& p, int operand, Dim axis) {
    AxisWindow w = p.window[axis == Dim::y ? 0 : 1];
    if (!p.repeats(operand, axis)) return w;
    w.in = 1;
    w.stride = 0;
    return w;
}

namespace {


int64_t outputs_of_a_group(const LayerProblem& p) {
    return p.has_weights() ? p[Dim::z] / p.groups : 1;
}

/// Input channels that consecutive output channels of a channelwise layer read; they begin with a
/// group.
int64_t channels_read(const LayerProblem& p, int64_t outputs) {
    if (!p.has_weights()) return outputs;
    return ceil_div(outputs, outputs_of_a_group(p)) * p[Dim::i];
}

}  // namespace

std::string to_text(HalideReason reason) {
    switch (reason) {
        case HalideReason::second_loop:
            return "kept along two loops";
        case HalideReason::idle_loop:
            return "kept over a loop that does not index it";
        case HalideReason::short_window:
            return "kept for a layer in between, last trip maybe short";
        case HalideReason::shared_branch:
            return "kept for a layer in between with several readers";
        case HalideReason::short_tile:
            return "kept inside tiles of which the last is short";
        case HalideReason::outside_call:
            return "kept along a producer's loop, stored outside its call";
        case HalideReason::inside_window:
            return "stored inside the loop that fills a window";
        case HalideReason::before_window:
            return "brought in ahead of a window in its loop";
        case HalideReason::concat_channels:
            return "operand of a Concat in parts";
        case HalideReason::short_strip:
            return "last strip of fewer tiles";
        case HalideReason::short_visit:
            return "last partial sum of fewer channels";
        case HalideReason::group_parts:
            return "kept inside a group of a grouped convolution";
        case HalideReason::skipped_rows:
            return "copied ahead of a loop that leaves rows or columns out";
        case HalideReason::shared_channels:
            return "read by several layers, some channels at a time";
        case HalideReason::shared_gaps:
            return "kept for several layers, whose trips leave rows or columns out";
        case HalideReason::shared_rates:
            return "kept for several layers that move on at different rates";
        case HalideReason::shared_window:
            return "kept for several layers beside another window of the loop";
        case HalideReason::parallel_window:
            return "kept beside the window of another branch";
        case HalideReason::filled_window:
            return "brought in for a window, not kept along its loop";
        case HalideReason::edge_window:
            return "kept along a loop of which every trip meets padding";
    }
    return "";
}

HalidePlacement::HalidePlacement(const GroupSchedule& group,
                                 const std::vector<LayerProblem>& problems)
    : group_(group), problems_(problems), tensors_(laminate::group_tensors(problems)) {
    // What a tensor's readers make is placed before it: what they keep, it need not bring in again.
    tensors_levels_.resize(tensors_.size());
    for (int t = static_cast<int>(tensors_.size()) - 1; t >= 0; --t)
        tensors_levels_[static_cast<size_t>(t)] = tensor_levels(t);
    for (int k = 0; k <= group.sink(); ++k) {
        weights_levels_.emplace_back();
        if (group.nests[static_cast<size_t>(k)].w) weights_levels_.back() = weight_levels(k);
    }
    for (int k = 0; k <= group.sink(); ++k) check_concat(k);
    for (int t = 0; t < static_cast<int>(tensors_.size()); ++t) {
        check_shared(t);
        check_groups(t);
    }
    for (size_t t = 0; t < tensors_.size(); ++t) {
        if (!tensors_levels_[t].slides) continue;
        check_second_producer(static_cast<int>(t));
        check_edges(static_cast<int>(t));
        if (!tensors_[t].is_external()) check_calls(static_cast<int>(t));
    }
    for (int t = 0; t < static_cast<int>(tensors_.size()); ++t) {
        for (int other = 0; other < static_cast<int>(tensors_.size()); ++other) {
            if (other != t) check_windows(t, other);
        }
    }
}

int HalidePlacement::output_tensor(int k) const {
    for (size_t t = 0; t < tensors_.size(); ++t) {
        if (tensors_[t].producer == k) return static_cast<int>(t);
    }
    return -1;
}

int64_t HalidePlacement::covered(int k, Dim d, Level level) const {
    const Nest& nest = group_.nests[static_cast<size_t>(k)];
    const int t = output_tensor(k);
    int64_t extent = problems_[static_cast<size_t>(k)][d];
    if (t >= 0 && d != Dim::i) {
        const auto tensor = static_cast<size_t>(t);
        const bool is_call = level.nest == k;
        extent = needed(t, d, is_call ? placement_of(group_, tensors_[tensor]).compute : level);
        const HalideLevels& out = tensors_levels_[tensor];
        if (is_call && out.slides == d && !is_ragged(*out.slide_loop))
            extent = std::min(extent, out.scale * step(*out.slide_loop));
    }
    if (level.nest != k) return extent;
    for (int l = 0; l <= level.loop; ++l) {
        const Loop loop = nest.loops[static_cast<size_t>(l)];
        if (loop.dim == d) extent = std::min(extent, nest.step(loop));
    }
    return extent;
}

int64_t HalidePlacement::needed(int t, Dim axis, Level level) const {
    int64_t most = 0;
    for (const TensorReader& r : tensors_[static_cast<size_t>(t)].readers) {
        const LayerProblem& p = problems_[static_cast<size_t>(r.nest)];
        if (axis == Dim::z) {
            const int64_t channels = p.inputs[static_cast<size_t>(r.operand)].channels;
            most = std::max(
                most, is_channelwise(p)
                          ? std::min(channels, channels_read(p, covered(r.nest, Dim::z, level)))
                          : covered(r.nest, Dim::i, level));
            if (tensors_[static_cast<size_t>(t)].is_shared()) most = channels;
            continue;
        }
        const AxisWindow w = operand_window(p, r.operand, axis);
        most = std::max(most,
                        std::min(w.in, (covered(r.nest, axis, level) - 1) * w.stride + w.span()));
    }
    return most;
}

int64_t HalidePlacement::trips(Level level) const {
    if (level.is_root()) return 1;
    const Nest& nest = group_.nests[static_cast<size_t>(level.nest)];
    const Loop loop = nest.loops[static_cast<size_t>(level.loop)];
    Level outside = level;
    --outside.loop;
    return ceil_div(covered(level.nest, loop.dim, outside), nest.step(loop));
}

bool HalidePlacement::indexes_output(int k, Dim d, Level v) const {
    if (v.nest == k)
        return group_.nests[static_cast<size_t>(k)].loops[static_cast<size_t>(v.loop)].dim == d;
    const int t = output_tensor(k);
    return t >= 0 && d != Dim::i && indexes(t, d, v);
}

bool HalidePlacement::indexes(int t, Dim axis, Level v) const {
    const std::vector<TensorReader>& readers = tensors_[static_cast<size_t>(t)].readers;
    if (axis == Dim::z) {
        if (readers.size() > 1) return false;
        const int k = readers.front().nest;
        if (problems_[static_cast<size_t>(k)].repeats(readers.front().operand, Dim::z)) return false;
        return is_channelwise(problems_[static_cast<size_t>(k)]) ? indexes_output(k, Dim::z, v)
                                                                 : indexes_output(k, Dim::i, v);
    }
    return std::any_of(readers.begin(), readers.end(),
                       [&](const TensorReader& r) {
                           return !problems_[static_cast<size_t>(r.nest)].repeats(r.operand, axis) &&
                                  indexes_output(r.nest, axis, v);
                       });
}

bool HalidePlacement::is_retained(int t, Level loop) const {
    const HalideLevels& levels = tensors_levels_[static_cast<size_t>(t)];
    const Level store = levels.exclusion ? levels.store : levels.lifetime;
    const std::vector<Level> inside =
        between(tensors_[static_cast<size_t>(t)].readers.front().nest, {store, levels.compute});
    return std::find(inside.begin(), inside.end(), loop) != inside.end();
}

int64_t HalidePlacement::scale(int t, Dim axis, int nest) const {
    const TensorReader& r = tensors_[static_cast<size_t>(t)].readers.front();
    const int64_t own = operand_window(problems_[static_cast<size_t>(r.nest)], r.operand, axis).stride;
    const int out = output_tensor(r.nest);
    return r.nest == nest || out < 0 ? own : own * scale(out, axis, nest);
}

HalidePlacement::Moving HalidePlacement::moving(const TensorReader& r, Dim axis, Level loop) const {
    Moving outputs{{0, step(loop)}, step(loop)};
    if (loop.nest != r.nest) {
        const int out = output_tensor(r.nest);
        outputs = moving(out, axis, loop);
        if (is_retained(out, loop)) outputs.needed.begin = outputs.needed.end - outputs.rate;
    }
    const AxisWindow w = operand_window(problems_[static_cast<size_t>(r.nest)], r.operand, axis);
    return {{outputs.needed.begin * w.stride - w.pad_begin,
             (outputs.needed.end - 1) * w.stride + w.span() - w.pad_begin},
            outputs.rate * w.stride};
}

HalidePlacement::Moving HalidePlacement::moving(int t, Dim axis, Level loop) const {
    Moving all;
    for (const TensorReader& r : tensors_[static_cast<size_t>(t)].readers) {
        const Moving one = moving(r, axis, loop);
        all.needed.extend(one.needed);
        all.rate = std::max(all.rate, one.rate);
    }
    return all;
}

int64_t HalidePlacement::overlap(int t, Dim axis, Level loop) const {
    if (axis == Dim::z) return 0;
    const Moving trip = moving(t, axis, loop);
    return trip.needed.end - trip.needed.begin - trip.rate;
}

std::vector<Level> HalidePlacement::between(int user, const Placement& placement) const {
    std::vector<Level> inside;
    bool started = placement.store.is_root();
    for (const Level& v : path(group_, user)) {
        if (started && !v.is_root()) inside.push_back(v);
        if (v == placement.store) started = true;
        if (v == placement.compute) break;
    }
    if (placement.compute == placement.store) inside.clear();
    return inside;
}

bool HalidePlacement::is_extended(int t, Dim axis) const {
    const std::vector<Level> around =
        path(group_, tensors_[static_cast<size_t>(t)].readers.front().nest);
    for (int source = 0; source < static_cast<int>(tensors_.size()); ++source) {
        const HalideLevels& levels = tensors_levels_[static_cast<size_t>(source)];
        if (levels.slides != axis || (source != t && !is_made_from(t, source))) continue;
        if (std::find(around.begin(), around.end(), *levels.slide_loop) != around.end())
            return true;
    }
    return false;
}

bool HalidePlacement::overruns(int t, Dim axis) const {
    const std::vector<TensorReader>& readers = tensors_[static_cast<size_t>(t)].readers;
    return is_extended(t, axis) &&
           std::any_of(readers.begin(), readers.end(), [&](const TensorReader& r) {
               const AxisWindow w = operand_window(problems_[static_cast<size_t>(r.nest)], r.operand, axis);
               const int out = output_tensor(r.nest);
               return w.pad_begin > 0 || passes_end(w) ||
                      (w.stride > 0 && out >= 0 && overruns(out, axis));
           });
}

int64_t HalidePlacement::read_end(int t, Dim axis) const {
    int64_t end = 0;
    for (const TensorReader& r : tensors_[static_cast<size_t>(t)].readers)
        end = std::max(end, read_end(r, axis));
    return end;
}

int64_t HalidePlacement::read_end(const TensorReader& r, Dim axis) const {
    const AxisWindow w = operand_window(problems_[static_cast<size_t>(r.nest)], r.operand, axis);
    const int out = output_tensor(r.nest);
    return std::min(w.in, window_end(w, out < 0 ? w.out : read_end(out, axis)));
}

Level HalidePlacement::outermost_like(Level level) const {
    Level outer = level;
    while (outer.loop >= 0 && trips(outer) <= 1) --outer.loop;
    if (outer.loop >= 0 || level.is_root()) return outer;
    return outer.nest == group_.sink() ? Level{} : Level{level.nest, 0};
}

Level HalidePlacement::around_calls(int user, Level level) const {
    std::set<int> inside{user};
    for (int k = user; k != group_.sink();) {
        const auto t = static_cast<size_t>(output_tensor(k));
        const Level call = tensors_levels_[t].compute;
        if (!inside.contains(level.nest) && encloses(group_, user, call, level)) level = call;
        k = tensors_[t].readers.front().nest;
        inside.insert(k);
        if (inside.contains(level.nest)) break;
    }
    return level;
}

bool HalidePlacement::leaves_out(int t, const Placement& placement, Level from) const {
    const std::vector<Level> loops =
        between(tensors_[static_cast<size_t>(t)].readers.front().nest, placement);
    return std::any_of(
        std::find(loops.begin(), loops.end(), from), loops.end(), [&](const Level& v) {
            return trips(v) > 1 && ((indexes(t, Dim::y, v) && overlap(t, Dim::y, v) < 0) ||
                                    (indexes(t, Dim::x, v) && overlap(t, Dim::x, v) < 0));
        });
}

bool HalidePlacement::is_next_loop(Level outer, Level inner) const {
    for (Level between = {outer.nest, outer.loop + 1}; between < inner; ++between.loop) {
        if (trips(between) > 1) return false;
    }
    return true;
}

std::optional<HalideExclusion> HalidePlacement::copied_ahead(int t, const HalideLevels& levels,
                                                             Level v) const {
    const GroupTensor& tensor = tensors_[static_cast<size_t>(t)];
    const std::string here = level_text(group_, tensor.readers.front().nest, v);
    // The fold rule takes neighbours along one axis as one loop; Halide does not.
    if (levels.slides && indexes(t, *levels.slides, v)) {
        return HalideExclusion{HalideReason::second_loop,
                               tensor.name + " is kept along two loops, " +
                                   level_text(group_, -1, *levels.slide_loop) + " and " + here};
    }
    if (leaves_out(t, placement_of(group_, tensor), v)) {
        return HalideExclusion{HalideReason::skipped_rows,
                               tensor.name + " is brought in ahead of " + here +
                                   " and a loop inside of it that leaves rows or columns out"};
    }
    return {};
}

HalideLevels HalidePlacement::tensor_levels(int t) const {
    const GroupTensor& tensor = tensors_[static_cast<size_t>(t)];
    const Placement& placement = placement_of(group_, tensor);
    const Level store = outermost_like(placement.store);
    HalideLevels levels{placement.store, store, store, {}, {}, {}, 1, {}};
    bool is_kept = true;  // what slides; or a window is filled from it, and it rotates for that
    for (const Level& v : between(tensor.readers.front().nest, placement)) {
        if (trips(v) > 1) {
            std::optional<Dim> axis;
            for (const Dim d : {Dim::z, Dim::y, Dim::x}) {
                if (indexes(t, d, v)) axis = d;
            }
            if (axis && axis == levels.slides && v.nest == levels.slide_loop->nest &&
                !levels.merged_loop && is_next_loop(*levels.slide_loop, v)) {
                levels.merged_loop = levels.slide_loop;
                levels.slide_loop = levels.compute = v;
                continue;
            }
            if (!axis || levels.slides) {
                // A copy moves out, to the body that it has reached; a producer stays where its
                // loops are, and the nearest is to keep what the innermost loop shares.
                const std::string here = level_text(group_, tensor.readers.front().nest, v);
                if (levels.slides && !is_kept && !levels.exclusion) {
                    levels.exclusion = {HalideReason::filled_window,
                                        tensor.name + " is brought in along " +
                                            level_text(group_, -1, *levels.slide_loop) +
                                            " for a window, and along " + here};
                }
                if (tensor.is_external()) {
                    if (const auto why = copied_ahead(t, levels, v)) levels.exclusion = why;
                    break;
                }
                const std::string kept = tensor.name + " is kept along ";
                if (!levels.exclusion && levels.slides) {
                    levels.exclusion = {HalideReason::second_loop,
                                        kept + "two loops, " +
                                            level_text(group_, v.nest, *levels.slide_loop) +
                                            " and " + here};
                } else if (!levels.exclusion) {
                    levels.exclusion = {HalideReason::idle_loop,
                                        kept + here + ", which does not index it"};
                }
                if (levels.slides) levels.store = *levels.slide_loop;
                levels.slides.reset();
                levels.slide_loop.reset();
                levels.merged_loop.reset();
                if (!axis) {
                    levels.store = levels.compute = v;
                    continue;
                }
            }
            const int64_t shared = overlap(t, *axis, v);
            if (shared > 0 || fills_window(t, v)) {
                levels.slides = axis;
                levels.slide_loop = v;
                is_kept = shared > 0;
                if (shared < 0)
                    levels.exclusion = {HalideReason::filled_window,
                                        tensor.name + " is brought in along " +
                                            level_text(group_, -1, v) +
                                            " for a window, and trips leave rows or columns out"};
            } else {
                levels.store = v;
            }
        } else {
            continue;  // its body is that of the loop around
        }
        levels.compute = v;
    }
    if (levels.slides) levels.scale = scale(t, *levels.slides, levels.slide_loop->nest);
    levels.store = around_calls(tensor.readers.front().nest, levels.store);
    levels.compute = around_calls(tensor.readers.front().nest, levels.compute);
    return levels;
}

void HalidePlacement::check_calls(int t) {
    const Level slide = *tensors_levels_[static_cast<size_t>(t)].slide_loop;
    const int producer = tensors_[static_cast<size_t>(t)].producer;
    const auto check = [&](int user, const std::string& name, HalideLevels& levels) {
        const std::vector<Level> around = path(group_, user);
        if (position(around, slide) < 0 || levels.exclusion) return;
        if (encloses(group_, user, slide, levels.lifetime)) {
            levels.exclusion = {HalideReason::inside_window,
                                name + " is stored inside " + level_text(group_, -1, slide) +
                                    ", along which " + tensors_[static_cast<size_t>(t)].name +
                                    " is kept"};
        }
    };
    for (int other = 0; other < static_cast<int>(tensors_.size()); ++other) {
        const auto o = static_cast<size_t>(other);
        if (is_made_from(t, other))
            check(tensors_[o].readers.front().nest, tensors_[o].name, tensors_levels_[o]);
    }
    for (int k = 0; k <= group_.sink(); ++k) {
        auto& levels = weights_levels_[static_cast<size_t>(k)];
        const int made = output_tensor(k);
        if (levels && (k == producer || (made >= 0 && is_made_from(t, made))))
            check(k, "W of " + group_.nests[static_cast<size_t>(k)].layer, *levels);
    }
}

void HalidePlacement::check_concat(int k) {
    const LayerProblem& p = problems_[static_cast<size_t>(k)];
    if (p.operation != Operation::concat) return;
    for (size_t t = 0; t < tensors_.size(); ++t) {
        for (const TensorReader& r : tensors_[t].readers) {
            HalideLevels& levels = tensors_levels_[t];
            if (r.nest != k || covered(k, Dim::z, levels.compute) == p[Dim::z] || levels.exclusion)
                continue;
            levels.exclusion = {HalideReason::concat_channels,
                                tensors_[t].name + " is brought in for some channels of " + p.name +
                                    ", also for those that do not read it"};
        }
    }
}

void HalidePlacement::check_shared(int t) {
    const GroupTensor& tensor = tensors_[static_cast<size_t>(t)];
    HalideLevels& levels = tensors_levels_[static_cast<size_t>(t)];
    if (!tensor.is_shared() || levels.exclusion) return;
    const bool has_whole_reader =
        std::any_of(tensor.readers.begin(), tensor.readers.end(), [&](const TensorReader& r) {
            const LayerProblem& p = problems_[static_cast<size_t>(r.nest)];
            const Dim d = is_channelwise(p) ? Dim::z : Dim::i;
            return covered(r.nest, d, levels.compute) == p[d];
        });
    if (!has_whole_reader) {
        levels.exclusion = {HalideReason::shared_channels,
                            tensor.name +
                                " has several readers, which read some of its channels "
                                "at a time"};
        return;
    }
    const TensorReader& first = tensor.readers.front();
    for (const Level& v : between(first.nest, placement_of(group_, tensor))) {
        if (trips(v) <= 1) continue;
        for (const Dim axis : {Dim::y, Dim::x}) {
            if (!indexes(t, axis, v)) continue;
            const std::string kept =
                tensor.name + " is kept along " + level_text(group_, -1, v) + " for several layers";
            const int64_t rate = moving(first, axis, v).rate;
            const bool is_one_rate =
                std::all_of(tensor.readers.begin(), tensor.readers.end(),
                            [&](const TensorReader& r) { return moving(r, axis, v).rate == rate; });
            if (!is_one_rate) {
                levels.exclusion = {HalideReason::shared_rates,
                                    kept + ", which move on at different rates"};
            } else if (overlap(t, axis, v) < 0) {
                levels.exclusion = {HalideReason::shared_gaps,
                                    kept + ", between whose trips lies what none reads"};
            }
            if (levels.exclusion) return;
        }
    }
}

bool HalidePlacement::is_made_from(int made, int source) const {
    const int producer = tensors_[static_cast<size_t>(made)].producer;
    if (producer < 0) return false;
    for (int t = 0; t < static_cast<int>(tensors_.size()); ++t) {
        const auto& readers = tensors_[static_cast<size_t>(t)].readers;
        const bool is_read = std::any_of(readers.begin(), readers.end(),
                                         [&](const TensorReader& r) { return r.nest == producer; });
        if (is_read && (t == source || is_made_from(t, source))) return true;
    }
    return false;
}

void HalidePlacement::check_windows(int t, int other) {
    HalideLevels& levels = tensors_levels_[static_cast<size_t>(t)];
    const HalideLevels& others = tensors_levels_[static_cast<size_t>(other)];
    if (levels.exclusion || !levels.slides || !others.slides) return;
    if (!(levels.slide_loop == others.slide_loop)) return;
    const GroupTensor& tensor = tensors_[static_cast<size_t>(t)];
    const std::string kept =
        tensor.name + " is kept along " + level_text(group_, -1, *levels.slide_loop);
    const std::string& beside = tensors_[static_cast<size_t>(other)].name;
    if (!is_made_from(t, other) && !is_made_from(other, t)) {
        levels.exclusion = {HalideReason::parallel_window,
                            kept + ", and so is " + beside + " of another branch"};
    } else if (tensor.is_shared()) {
        levels.exclusion = {HalideReason::shared_window,
                            kept + " for several layers, and so is " + beside};
    }
}

void HalidePlacement::check_groups(int t) {
    const GroupTensor& tensor = tensors_[static_cast<size_t>(t)];
    HalideLevels& levels = tensors_levels_[static_cast<size_t>(t)];
    if (levels.exclusion) return;
    for (const TensorReader& r : tensor.readers) {
        const LayerProblem& p = problems_[static_cast<size_t>(r.nest)];
        if (p.groups == 1 || outputs_of_a_group(p) == 1) continue;
        for (const Level& v : path(group_, r.nest)) {
            if (v.is_root() || trips(v) <= 1 || !indexes_output(r.nest, Dim::z, v)) continue;
            if (covered(r.nest, Dim::z, v) % outputs_of_a_group(p) == 0) continue;
            levels.exclusion = {HalideReason::group_parts,
                                tensor.name + " is read by parts of the groups of " + p.name};
            return;
        }
    }
}

int64_t HalidePlacement::step(Level level) const {
    const Nest& nest = group_.nests[static_cast<size_t>(level.nest)];
    return nest.step(nest.loops[static_cast<size_t>(level.loop)]);
}

bool HalidePlacement::is_ragged(Level level) const {
    const Nest& nest = group_.nests[static_cast<size_t>(level.nest)];
    const Loop loop = nest.loops[static_cast<size_t>(level.loop)];
    Level outside = level;
    --outside.loop;
    return covered(level.nest, loop.dim, outside) % nest.step(loop) != 0;
}

void HalidePlacement::check_second_producer(int t) {
    HalideLevels& levels = tensors_levels_[static_cast<size_t>(t)];
    const Level slide = *levels.slide_loop;
    const std::string& name = tensors_[static_cast<size_t>(t)].name;
    const Nest& nest = group_.nests[static_cast<size_t>(slide.nest)];
    const Loop loop = nest.loops[static_cast<size_t>(slide.loop)];
    const Level outer{slide.nest, nest.find({loop.dim, Band::outer})};
    const Level strip{slide.nest, nest.find({loop.dim, Band::strip})};
    const bool is_in_short_strip =
        strip.loop >= 0 && slide != strip && trips(strip) > 1 && is_ragged(strip);
    const bool is_in_short_tile =
        loop.band == Band::inner && !levels.merged_loop && trips(outer) > 1 && is_ragged(outer);
    if (is_in_short_tile || is_in_short_strip) {
        levels.exclusion = {HalideReason::short_tile,
                            name + " is kept along " + level_text(group_, -1, slide) +
                                " in tiles of which the last is short: Halide does not fold it"};
    }
    if (slide.nest != group_.sink() && levels.store.nest != slide.nest && !levels.exclusion) {
        levels.exclusion = {HalideReason::outside_call,
                            name + " is kept along " + level_text(group_, -1, slide) +
                                " and stored outside the call of " + nest.layer +
                                ": Halide does not always fold it"};
    }
    for (const TensorReader& r : tensors_[static_cast<size_t>(t)].readers) {
        if (r.nest == slide.nest || levels.exclusion) continue;
        const int out = output_tensor(r.nest);
        const std::string kept = name + " is kept along " + level_text(group_, -1, slide);
        // Halide does not know that the tiles of a producer are whole.
        const bool is_in_producer =
            slide.nest != group_.sink() &&
            (loop.band == Band::outer ? nest.step(loop) > 1
                                      : trips(outer) > 1 && !levels.merged_loop);
        if (is_ragged(slide) || is_in_producer) {
            levels.exclusion = {HalideReason::short_window,
                                kept + ", whose last trip may be short, with " +
                                    problems_[static_cast<size_t>(r.nest)].name + " in between"};
        } else if (out >= 0 && tensors_[static_cast<size_t>(out)].is_shared()) {
            levels.exclusion = {HalideReason::shared_branch,
                                kept + ", and what is made from it, " +
                                    tensors_[static_cast<size_t>(out)].name +
                                    ", has several readers"};
        }
    }
}

bool HalidePlacement::fills_window(int t, Level loop) const {
    for (int made = 0; made < static_cast<int>(tensors_.size()); ++made) {
        if (tensors_levels_[static_cast<size_t>(made)].slide_loop == loop && is_made_from(made, t))
            return true;
    }
    return false;
}

void HalidePlacement::check_edges(int t) {
    HalideLevels& levels = tensors_levels_[static_cast<size_t>(t)];
    if (levels.exclusion) return;
    const Dim axis = *levels.slides;
    const BufferShapes shapes = buffer_shapes(group_, problems_);
    for (int made = 0; made < static_cast<int>(tensors_.size()); ++made) {
        if ((made != t && !is_made_from(made, t)) || !overruns(made, axis)) continue;
        const std::vector<Level> around =
            path(group_, tensors_[static_cast<size_t>(made)].readers.front().nest);
        if (position(around, *levels.slide_loop) < 0) continue;
        const Range trip = moving(made, axis, *levels.slide_loop).needed;
        const int64_t held =
            shapes.tensors[static_cast<size_t>(made)].extent[static_cast<size_t>(axis)];
        if (trip.end - trip.begin <= held) continue;
        levels.exclusion = {HalideReason::edge_window,
                            tensors_[static_cast<size_t>(t)].name + " is kept along " +
                                level_text(group_, -1, *levels.slide_loop) +
                                ", every trip of which meets padding of " +
                                tensors_[static_cast<size_t>(made)].name};
        return;
    }
}

HalideLevels HalidePlacement::weight_levels(int k) const {
    const Placement& placement = *group_.nests[static_cast<size_t>(k)].w;
    const Level store = outermost_like(placement.store);
    HalideLevels levels{placement.store, store, store, {}, {}, {}, 1, {}};
    for (const Level& v : between(k, placement)) {
        if (trips(v) <= 1) continue;
        const bool indexed =
            indexes_output(k, Dim::z, v) || (v.nest == k && indexes_output(k, Dim::i, v));
        if (!indexed) break;
        levels.store = levels.compute = v;
    }
    levels.store = around_calls(k, levels.store);
    levels.compute = around_calls(k, levels.compute);
    return levels;
}

}  // namespace laminate
