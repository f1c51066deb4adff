#include "scheduler/explore/dag/family.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "scheduler/counts/two_level/group_model.h"
#include "scheduler/counts/two_level/two_level.h"
#include "scheduler/explore/compute_levels.h"
#include "scheduler/explore/group_search/axis_options.h"
#include "scheduler/explore/group_search/layer_structures.h"

namespace laminate {

namespace {

using search::Cost;
using two_level::AxisTable;
using two_level::GroupModel;

/// Where the producers of a group are called, and how long their outputs are kept.
enum class Hang {
    rows_recomputed,        ///< at the sink's yo, stored there; halo rows are recomputed
    rows_kept,              ///< at yo, stored at the root
    tiles_recomputed,       ///< at xo, stored there
    tiles_kept_along_x,     ///< at xo, stored at yo
    tiles_kept,             ///< at xo, stored at the root
    column_strips,          ///< at yo inside column strips xs, stored at xs
    own_rows,               ///< as deep as the yi loops of all readers allow, stored at the root
    own_rows_in_strips,     ///< the same inside column strips xs, stored at xs
    own_columns,            ///< own_rows with rows and columns exchanged
    own_columns_in_strips,  ///< own_rows_in_strips with rows and columns exchanged
};
constexpr std::array<Hang, 10> all_hangs{Hang::rows_recomputed,    Hang::rows_kept,
                                         Hang::tiles_recomputed,   Hang::tiles_kept_along_x,
                                         Hang::tiles_kept,         Hang::column_strips,
                                         Hang::own_rows,           Hang::own_columns,
                                         Hang::own_rows_in_strips, Hang::own_columns_in_strips};

/// Whether each layer goes line by line, and these lines are columns.
bool is_column_by_column(Hang hang) {
    return hang == Hang::own_columns || hang == Hang::own_columns_in_strips;
}
bool has_strips_of_lines(Hang hang) {
    return hang == Hang::own_rows_in_strips || hang == Hang::own_columns_in_strips;
}
bool is_line_by_line(Hang hang) {
    return hang == Hang::own_rows || has_strips_of_lines(hang) || is_column_by_column(hang);
}
bool has_strips(Hang hang) { return hang == Hang::column_strips || has_strips_of_lines(hang); }
/// The axis along which a line lies, and the one from line to line.
Dim along(Hang hang) { return is_column_by_column(hang) ? Dim::y : Dim::x; }
Dim across(Hang hang) { return is_column_by_column(hang) ? Dim::x : Dim::y; }
bool recomputes(Hang hang) {
    return hang == Hang::rows_recomputed || hang == Hang::tiles_recomputed ||
           hang == Hang::tiles_kept_along_x || has_strips(hang);
}
bool has_tile_columns(Hang hang) {
    return hang == Hang::tiles_recomputed || hang == Hang::tiles_kept_along_x ||
           hang == Hang::tiles_kept;
}

/// The sink's tile of its channels.
struct ChannelTile {
    int64_t inputs = 0;
    int64_t outputs = 0;
    bool has_own_weights = false;  ///< those of a tile are fetched with it, and none are resident
    bool is_made_with_own_weights =
        false;  ///< the same for the layer that makes what the sink reads
    [[nodiscard]] bool is_part_of(const LayerProblem& sink) const {
        return inputs < sink[Dim::i] || outputs < sink[Dim::z];
    }
};

bool reads_pixels(const LayerProblem& p) {
    return std::ranges::all_of(p.window, [](const AxisWindow& w) { return w.span() == 1; });
}

/// What a nest reads, if that is one tensor that another nest makes for it alone.
const GroupTensor* only_input(const std::vector<GroupTensor>& tensors, int nest) {
    const GroupTensor* only = nullptr;
    for (const GroupTensor& t : tensors) {
        if (std::ranges::find(t.readers, nest, &TensorReader::nest) == t.readers.end()) continue;
        if (only != nullptr || t.is_external() || t.is_shared()) return nullptr;
        only = &t;
    }
    return only;
}

/// By nest: whether it makes more channels of each pixel than it reads, for windows of its one
/// reader. Lines of what it reads then hold less than lines of what it makes.
std::vector<bool> expansions_of(const std::vector<LayerProblem>& problems,
                                const std::vector<GroupTensor>& tensors) {
    std::vector<bool> expansions(problems.size(), false);
    for (size_t reader = 0; reader < problems.size(); ++reader) {
        const GroupTensor* made = only_input(tensors, static_cast<int>(reader));
        if (made == nullptr || only_input(tensors, made->producer) == nullptr) continue;
        const LayerProblem& own = problems[static_cast<size_t>(made->producer)];
        const bool convolve = std::ranges::all_of(
            std::array{&own, &problems[reader]},
            [](const LayerProblem* p) { return p->has_weights() && p->groups == 1; });
        expansions[static_cast<size_t>(made->producer)] = convolve && reads_pixels(own) &&
                                                          own[Dim::z] > own[Dim::i] &&
                                                          !reads_pixels(problems[reader]);
    }
    return expansions;
}

class Family {
public:
    /// `expands_again`: expansions_of() make each channel again for every row of what reads it.
    Family(const std::vector<LayerProblem>& problems, Hang hang, ChannelTile channels,
           bool expands_again)
        : problems_(problems),
          tensors_(group_tensors(problems)),
          hang_(hang),
          channels_(channels),
          expands_again_(problems.size(), false) {
        if (expands_again) expands_again_ = expansions_of(problems, tensors_);
    }

    /// `refetched`: by nest, whether its weights are fetched again in every call, one slice of z at
    /// a time. Other weights stay for the whole group.
    [[nodiscard]] GroupSchedule group(bool keep_inputs, const std::vector<bool>& refetched) const {
        GroupSchedule group;
        for (size_t k = 0; k < problems_.size(); ++k) group.nests.push_back(nest(k, refetched[k]));
        if (channels_.is_made_with_own_weights) {
            const Level tile{group.sink(), group.nests.back().find({Dim::i, Band::outer})};
            group.nest(only_input(tensors_, group.sink())->producer).w = Placement{tile, tile};
        }
        for (int k = group.sink() - 1; k >= 0; --k) {
            const auto own = std::find_if(tensors_.begin(), tensors_.end(),
                                          [&](const GroupTensor& t) { return t.producer == k; });
            group.nest(k).y = intermediate(group, *own);
        }
        for (const GroupTensor& tensor : tensors_) {
            if (!tensor.is_external()) continue;
            const TensorReader& first = tensor.readers.front();
            group.nest(first.nest)
                .x.push_back({first.operand, external(group, tensor, keep_inputs)});
        }
        return group;
    }

private:
    [[nodiscard]] Nest nest(size_t k, bool is_refetched) const {
        const LayerProblem& p = problems_[k];
        const bool is_sink = k + 1 == problems_.size();
        Nest nest;
        nest.layer = p.name;
        nest.tile = p.extent;
        if (is_sink) {
            nest.tile[Dim::i] = channels_.inputs;
            nest.tile[Dim::z] = channels_.outputs;
        }
        if (is_sink && has_strips(hang_)) {
            nest.loops.push_back({along(hang_), Band::strip});
            nest.strip[is_column_by_column(hang_) ? 0 : 1] = p[along(hang_)];
        }
        for (const Dim d : all_dims) nest.loops.push_back({d, Band::outer});
        const int own = static_cast<int>(k);
        // A slice of refetched weights serves a whole call. Resident weights let the input pass
        // line by line, or one channel of it at a time.
        PerDim<Dim> order{across(hang_), along(hang_), Dim::z, Dim::i};
        if (is_refetched) order = all_dims;
        if (reads_expansion(own)) order = {across(hang_), Dim::i, along(hang_), Dim::z};
        for (const Dim d : order) nest.loops.push_back({d, Band::inner});
        if (p.has_weights()) {
            nest.w = Placement{};
            const Level tile{own, nest.find({Dim::i, Band::outer})};
            if (is_sink && channels_.has_own_weights) nest.w = Placement{tile, tile};
            if (is_refetched) nest.w = Placement{tile, {own, nest.find({Dim::z, Band::inner})}};
        }
        if (is_sink) {
            const Level y{own, nest.find({Dim::i, Band::inner}) - 1};
            nest.y = {y, y};
        }
        return nest;
    }

    [[nodiscard]] Placement intermediate(const GroupSchedule& group,
                                         const GroupTensor& tensor) const {
        const Nest& last = group.nests.back();
        const Level rows{group.sink(), last.find({Dim::y, Band::outer})};
        const Level columns{group.sink(), last.find({Dim::x, Band::outer})};
        switch (hang_) {
            case Hang::rows_recomputed:
                return {rows, rows};
            case Hang::rows_kept:
                return {{}, rows};
            case Hang::tiles_recomputed:
                return {columns, columns};
            case Hang::tiles_kept_along_x:
                return {rows, columns};
            case Hang::tiles_kept:
                return {{}, columns};
            case Hang::column_strips:
                return {{group.sink(), last.find({Dim::x, Band::strip})}, rows};
            case Hang::own_rows:
            case Hang::own_rows_in_strips:
            case Hang::own_columns:
            case Hang::own_columns_in_strips:
                break;
        }
        if (is_expanded_again(tensor)) {
            const int reader = tensor.readers.front().nest;
            return {{reader, group.nest(reader).find({Dim::i, Band::inner})},
                    {reader, group.nest(reader).find({along(hang_), Band::inner})}};
        }
        // Where the sink tiles its channels, each tile goes through the whole strip.
        const Level tile_of_channels{group.sink(), last.find({Dim::i, Band::outer})};
        return {has_strips(hang_) ? tile_of_channels : Level{}, deepest(group, tensor)};
    }

    [[nodiscard]] bool is_expanded_again(const GroupTensor& tensor) const {
        return !tensor.is_external() && expands_again_[static_cast<size_t>(tensor.producer)];
    }
    [[nodiscard]] bool reads_expansion(int nest) const {
        const GroupTensor* input = only_input(tensors_, nest);
        return input != nullptr && is_expanded_again(*input);
    }

    /// As deep as the loops over lines of all readers allow; inside the loop along the line of a
    /// reader of single pixels, which does not need a whole line.
    [[nodiscard]] Level deepest(const GroupSchedule& group, const GroupTensor& tensor) const {
        const int reader = tensor.readers.front().nest;
        if (expands_again_[static_cast<size_t>(reader)]) {
            // A line is there before its reader makes the first channel of it.
            const auto made = std::ranges::find(tensors_, reader, &GroupTensor::producer);
            const int last = made->readers.front().nest;
            return {last, group.nest(last).find({across(hang_), Band::inner})};
        }
        std::vector<Level> levels = common_path(group, tensor);
        const auto is_wanted = [&](Level level) {
            if (level.is_root() || group.loop(level).dim == across(hang_)) return true;
            return group.loop(level).dim == along(hang_) && tensor.readers.size() == 1 &&
                   level.nest == tensor.readers.front().nest &&
                   reads_pixels(problems_[static_cast<size_t>(level.nest)]);
        };
        while (!is_wanted(levels.back())) levels.pop_back();
        return levels.back();
    }

    /// Loaded as deep as possible, and kept for the whole group or as long as the intermediates.
    [[nodiscard]] Placement external(const GroupSchedule& group, const GroupTensor& tensor,
                                     bool keep) const {
        std::vector<Level> levels = common_path(group, tensor);
        for (const TensorReader& reader : tensor.readers) {
            const LayerProblem& p = problems_[static_cast<size_t>(reader.nest)];
            if (!p.reads_all_of_i()) continue;
            const Level ii{reader.nest, group.nest(reader.nest).find({Dim::i, Band::inner})};
            levels.erase(std::find(levels.begin(), levels.end(), ii), levels.end());
        }
        Level store;
        if (!keep && problems_.size() > 1) store = group.nests.front().y.store;
        return {store, levels.back()};
    }

    const std::vector<LayerProblem>& problems_;
    std::vector<GroupTensor> tensors_;
    Hang hang_;
    ChannelTile channels_;
    std::vector<bool> expands_again_;  ///< by nest
};

/// Sizes to try. For TileSizes::all, those that matter where padding does not interfere.
std::vector<int64_t> family_sizes(int64_t extent, TileSizes kind) {
    return kind == TileSizes::all ? search::tile_candidates(extent, search::Tiles::trips)
                                  : tile_sizes(extent, kind);
}

/// Whether neighbouring tiles of the group read some inputs in common, along rows and columns.
bool have_halos(const std::vector<LayerProblem>& problems) {
    return std::ranges::all_of(std::array{size_t{0}, size_t{1}}, [&](size_t axis) {
        return std::ranges::any_of(problems, [&](const LayerProblem& p) {
            return search::sharing(p.window[axis]) == search::Sharing::always;
        });
    });
}

/// Longer groups get fewer candidates.
constexpr size_t long_group = 8;
/// Shorter ones try all numbers of tiles of outputs.
constexpr size_t short_group = 5;

/// Smaller tiles take less memory, and everything is computed again for each. Only strips in which
/// each layer goes line by line try them. Tiles of outputs always bring their weights, which is all
/// that they save. Long groups try tiles of inputs only where all weights that a tile may bring
/// come with it.
std::vector<ChannelTile> channel_tiles(const std::vector<LayerProblem>& problems, Hang hang,
                                       bool tries_outputs) {
    const LayerProblem& sink = problems.back();
    std::vector<ChannelTile> tiles{{sink[Dim::i], sink[Dim::z]}};
    if (!has_strips_of_lines(hang) || sink.groups != 1 || !sink.has_weights()) return tiles;
    const std::vector<GroupTensor> tensors = group_tensors(problems);
    const GroupTensor* input = only_input(tensors, static_cast<int>(problems.size()) - 1);
    const bool is_made =
        input != nullptr && problems[static_cast<size_t>(input->producer)].has_weights();
    for (const int64_t trips : {2, 3, 4}) {
        if (trips > sink[Dim::i]) continue;
        const int64_t size = ceil_div(sink[Dim::i], trips);
        if (problems.size() <= long_group) {
            tiles.push_back({size, sink[Dim::z], false, false});
            tiles.push_back({size, sink[Dim::z], true, false});
        }
        if (is_made) tiles.push_back({size, sink[Dim::z], true, true});
    }
    if (!tries_outputs) return tiles;
    std::vector<int64_t> tiles_of_outputs{2, 3, 4, 6, 8, 12, 16};
    if (problems.size() <= short_group) {
        tiles_of_outputs.resize(15);
        std::iota(tiles_of_outputs.begin(), tiles_of_outputs.end(), 2);
    }
    for (const int64_t trips : tiles_of_outputs) {
        const int64_t size = ceil_div(sink[Dim::z], trips);
        if (trips > sink[Dim::z] || size == tiles.back().outputs) continue;
        tiles.push_back({sink[Dim::i], size, true, false});
    }
    return tiles;
}

/// How many of the largest weights may be fetched again: any number, or in long groups none or all.
std::vector<size_t> refetch_counts(size_t weights) {
    std::vector<size_t> counts(weights + 1);
    std::iota(counts.begin(), counts.end(), size_t{0});
    if (weights > long_group) counts = {0, weights};
    return counts;
}

/// The nests that have weights, the largest first.
std::vector<size_t> nests_by_weights(const std::vector<LayerProblem>& problems) {
    std::vector<size_t> nests;
    for (size_t k = 0; k < problems.size(); ++k) {
        if (problems[k].has_weights()) nests.push_back(k);
    }
    std::ranges::stable_sort(nests, std::ranges::greater(),
                             [&](size_t k) { return problems[k].weight_elements(); });
    return nests;
}

bool columns_are_shorter(const LayerProblem& p) { return p[Dim::x] > p[Dim::y]; }

/// Whether lines may be columns, and the sink may make its outputs in tiles. Code that runs goes by
/// rows, and groups of Space::dag are many.
bool serves_a_proof(const std::vector<LayerProblem>& problems, const ExploreOptions& options,
                    Refetch refetch) {
    return problems.size() > 1 && refetch == Refetch::largest && options.space != Space::dag;
}

}  // namespace

search::Cost cost_of(Elements accesses, Elements memory, Macs macs) {
    return {static_cast<double>(accesses.value()), static_cast<double>(memory.value()),
            static_cast<double>(macs.value())};
}

void SizedPoint::set_sizes(GroupSchedule& group, int64_t rows, int64_t columns) {
    Nest& sink = group.nests.back();
    (sink.strip[0] > 0 ? sink.strip[0] : sink.tile[Dim::y]) = rows;
    (sink.strip[1] > 0 ? sink.strip[1] : sink.tile[Dim::x]) = columns;
}

GroupSchedule SizedPoint::schedule() const {
    GroupSchedule sized = *group;
    if (rows > 0) set_sizes(sized, rows, columns);
    return sized;
}

SizedPoints sized_family(const std::vector<LayerProblem>& problems, const ExploreOptions& options,
                         TileSizes strips, Refetch refetch, bool macs_is_axis) {
    const std::vector<size_t> by_weights = nests_by_weights(problems);
    const LayerProblem& sink = problems.back();
    // The time to count one schedule grows with the square of its layers.
    const TileSizes kind = problems.size() > long_group && options.tiles == TileSizes::all
                               ? TileSizes::powers_of_two
                               : options.tiles;
    const std::vector<int64_t> rows = family_sizes(sink[Dim::y], kind);
    const std::vector<int64_t> columns = family_sizes(sink[Dim::x], kind);
    const std::vector<int64_t> strip_columns = family_sizes(sink[Dim::x], strips);
    const std::vector<int64_t> strip_rows = family_sizes(sink[Dim::y], strips);
    const bool recompute = options.recompute && options.space != Space::fusion;
    SizedPoints points(macs_is_axis);
    TwoLevelCache cache;
    const auto try_sizes = [&](Hang hang, GroupSchedule group) {
        const auto shared = std::make_shared<const GroupSchedule>(group);
        const GroupModel model(problems, group);
        AxisTable table = model.empty_table();
        for (size_t a = 0; a < model.axis_count(); ++a)
            table.set(a, cache.counts(model.axis_problem(a, group)));
        const size_t y_axis = model.axis_of(problems.size() - 1, Dim::y);
        const size_t x_axis = model.axis_of(problems.size() - 1, Dim::x);
        const bool many_columns = has_tile_columns(hang) || hang == Hang::column_strips;
        for (const int64_t row : hang == Hang::own_columns_in_strips ? strip_rows
                                 : is_line_by_line(hang) ? std::vector<int64_t>{sink[Dim::y]}
                                                         : rows) {
            SizedPoint::set_sizes(group, row, sink[Dim::x]);
            table.set(y_axis, cache.counts(model.axis_problem(y_axis, group)));
            for (const int64_t column : hang == Hang::own_rows_in_strips ? strip_columns
                                        : many_columns                   ? columns
                                                       : std::vector<int64_t>{sink[Dim::x]}) {
                SizedPoint::set_sizes(group, row, column);
                table.set(x_axis, cache.counts(model.axis_problem(x_axis, group)));
                const GroupModel::Totals totals = model.totals(table, group);
                const Elements memory =
                    options.footprint == Footprint::live ? totals.live_total : totals.sum_total;
                if (options.memory && memory > *options.memory) continue;
                points.offer(cost_of(totals.accesses, memory, totals.macs), {shared, row, column});
            }
        }
    };
    const auto is_stopped = [&] {
        return options.stop != nullptr && options.stop->load() && points.size() > 0;
    };
    const bool are_halos = have_halos(problems);
    const auto try_weights = [&](Hang hang, ChannelTile channels, bool expands_again) {
        const Family family(problems, hang, channels, expands_again);
        for (const bool keep_inputs : {false, true}) {
            if (keep_inputs && (!recomputes(hang) || channels.is_part_of(sink))) continue;
            const bool fetches_halos = !keep_inputs && recomputes(hang) && are_halos;
            if (fetches_halos && refetch == Refetch::none) continue;
            for (const size_t count : refetch_counts(by_weights.size())) {
                if (count > 0 && (is_line_by_line(hang) || refetch == Refetch::none ||
                                  options.space == Space::fusion))
                    continue;
                if (is_stopped()) return;
                std::vector<bool> refetched(problems.size(), false);
                for (size_t n = 0; n < count; ++n) refetched[by_weights[n]] = true;
                try_sizes(hang, family.group(keep_inputs, refetched));
            }
        }
    };
    const std::vector<bool> expansions = expansions_of(problems, group_tensors(problems));
    const bool tries_more = serves_a_proof(problems, options, refetch);
    const bool has_expansions = std::ranges::find(expansions, true) != expansions.end();
    for (const Hang hang : all_hangs) {
        if (recomputes(hang) && (!recompute || problems.size() == 1)) continue;
        if (is_column_by_column(hang) && !(tries_more && columns_are_shorter(sink))) continue;
        for (const ChannelTile channels : channel_tiles(problems, hang, tries_more)) {
            // Everything is fetched again for each tile.
            if (channels.is_part_of(sink) && refetch == Refetch::none) continue;
            try_weights(hang, channels, false);
            if (recompute && has_expansions && is_line_by_line(hang))
                try_weights(hang, channels, true);
        }
    }
    return points;
}

std::vector<GroupPoint> with_schedules(const SizedPoints& points) {
    std::vector<GroupPoint> result;
    for (size_t n = 0; n < points.size(); ++n) {
        const Cost& cost = points.costs()[n];
        result.push_back(
            {points.items()[n].schedule(), Elements(static_cast<int64_t>(cost.accesses)),
             Elements(static_cast<int64_t>(cost.memory)), Macs(static_cast<int64_t>(cost.macs))});
    }
    return result;
}

std::vector<GroupPoint> family_front(const std::vector<LayerProblem>& problems,
                                     const ExploreOptions& options, TileSizes strips,
                                     Refetch refetch) {
    return with_schedules(sized_family(problems, options, strips, refetch, false));
}

}  // namespace laminate
