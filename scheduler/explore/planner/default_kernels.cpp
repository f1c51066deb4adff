#include "scheduler/explore/planner/default_kernels.h"

#include <algorithm>

#include "base/error.h"
#include "scheduler/schedule/buffer_shapes.h"
#include "scheduler/schedule/kernel_legality.h"
#include "scheduler/schedule/kernels/columns.h"
#include "scheduler/schedule/kernels/kernel_layouts.h"
#include "scheduler/schedule/kernels/layer_forms.h"
#include "scheduler/schedule/kernels/line_plan.h"
#include "scheduler/schedule/kernels/register_tile.h"

namespace laminate {

Kernel kernel_for(KernelKind kind, const VectorUnit& unit) {
    Kernel kernel;
    kernel.kind = kind;
    const std::vector<KernelSize>& sizes = kernel_row(kind).sizes;
    const auto set = [&](KernelSize size, int64_t value) {
        if (std::find(sizes.begin(), sizes.end(), size) != sizes.end()) kernel.size[size] = value;
    };
    set(KernelSize::sums, unit.accumulators);
    set(KernelSize::lanes, unit.lanes);
    return kernel;
}

namespace {

bool fits(int64_t scratch_elements, const KernelOptions& options) {
    return !options.scratch || to_bytes(Elements(scratch_elements)) <= *options.scratch;
}

/// The map kernel of a layer that has its arrays to itself.
std::optional<Kernel> map_kernel(const LayerProblem& p, const VectorUnit& unit,
                                 const KernelOptions& options) {
    using enum KernelKind;
    // Tiles of 6 x 6, and wide maps for which lines are as good without them, are for those who ask.
    const bool wants_sixes = options.fewest_tile_rows == 6;
    if (options.filters() && kernel_pays(p, winograd_map) && (wants_sixes || !is_wide_map(p))) {
        const int64_t most_rows = std::min<int64_t>(options.tile_rows, wants_sixes ? 6 : 4);
        if (const auto cut = winograd_map_chunks(p, unit, options.fewest_tile_rows, most_rows,
                                                 options.scratch)) {
            Kernel kernel = kernel_for(winograd_map, unit);
            kernel.size[KernelSize::form] = form_of_tile(cut->rows_of_tile);
            kernel.size[KernelSize::pairs] = cut->bands;
            return kernel;
        }
    }
    const bool panel_pays =
        panel_of_windows_pays(p, options.filters()) && map_channels_layout(p, unit).has_panel;
    if ((kernel_pays(p, map_channels) || panel_pays) &&
        (!kernel_pays(p, map_pixels) || prefers_map_channels(p, unit))) {
        const Kernel kernel = kernel_for(map_channels, unit);
        if (fits(map_scratch_elements(p, kernel), options)) return kernel;
    }
    if (kernel_pays(p, map_pixels)) {
        Kernel kernel = kernel_for(map_pixels, unit);
        kernel.size[KernelSize::panel] = map_pixels_layout(p, unit, options.scratch).has_panel;
        return kernel;
    }
    for (const KernelKind kind :
         {map_elementwise, map_pooling, map_depthwise, map_panels, map_phases, map_windows}) {
        const bool pays = kind == map_windows ? windows_pay(p, options.filters()) : kernel_pays(p, kind);
        if (!pays) continue;
        const Kernel kernel = kernel_for(kind, unit);
        if (fits(map_scratch_elements(p, kernel), options)) return kernel;
    }
    return std::nullopt;
}

class LineBufferChoice {
public:
    LineBufferChoice(const std::vector<LayerProblem>& problems, GroupSchedule group,
                     const VectorUnit& unit, const KernelOptions& options, GroupLoops& loops)
        : problems_(problems),
          group_(std::move(group)),
          unit_(unit),
          second_level_cache_(options.second_level_cache),
          constant_weights_(options.constant_weights),
          any_size_(options.any_size),
          tiles_as_lanes_(options.tiles_as_lanes),
          most_tile_rows_(options.any_size ? 2 : options.tile_rows),
          loops_(loops),
          tensors_(group_tensors(problems)) {}

    [[nodiscard]] GroupSchedule with_kernels(bool winograd) const {
        GroupSchedule group = group_;
        for (size_t k = 0; k < problems_.size(); ++k) {
            Kernel& kernel = group.nests[k].kernel;
            kernel = direct_kernel(k);
            if (!winograd || !allows_winograd(k)) continue;
            const bool has_tiles = any_size_ || tiles_as_lanes_ || !loops_.whole()[k][Dim::x];
            const WinogradAxes axes = has_tiles ? WinogradAxes::tiles : WinogradAxes::any;
            if (const auto tile =
                    winograd_tile(problems_[k], loops_.steps()[k], most_asked(k, Dim::x), unit_,
                                  axes, most_tile_rows_))
                kernel = kernel_of(*tile, unit_.lanes);
        }
        leave_weights_plain(group);
        return group;
    }

private:
    [[nodiscard]] const Nest& sink() const { return group_.nests.back(); }

    [[nodiscard]] bool pays_winograd(const LayerProblem& p) const {
        return most_tile_rows_ >= 4 ? tiles_of_four_pay(p) : kernel_pays(p, KernelKind::winograd_rows);
    }
    [[nodiscard]] bool allows_winograd(size_t k) const {
        if (!pays_winograd(problems_[k])) return false;
        // Strips of columns leave seams, as tiles of more than two rows do, and come with those.
        const PerDim<bool>& whole = loops_.whole()[k];
        return whole[Dim::z] && whole[Dim::i] &&
               (whole[Dim::x] || (most_tile_rows_ > 2 && loops_.at_once()[k])) &&
               (k + 1 == problems_.size() || strips_begin_anew(group_));
    }

    /// Leaves weights plain where all of them transformed would take much memory and pass through the caches
    /// with every step.
    void leave_weights_plain(GroupSchedule& group) const {
        constexpr Bytes most_of_group{4 << 20};
        std::vector<int64_t> together(problems_.size(), 0);
        Bytes all;
        bool stay_near = true;  // those of each layer
        for (size_t k = 0; k < problems_.size(); ++k) {
            const Kernel& kernel = group.nests[k].kernel;
            if (kernel.kind != KernelKind::winograd_rows) continue;
            WinogradTile tile = winograd_tile_of(kernel);
            tile.weights = together[k] = weights_together(problems_[k], tile, most_asked(k, Dim::x));
            if (together[k] == 0) continue;
            all += to_bytes(Elements(transformed_weight_elements(problems_[k], tile)));
            stay_near = stay_near && transforms_all_weights(problems_[k], tile);
        }
        if (all <= most_of_group || (stay_near && all <= constant_weights_)) return;
        for (size_t k = 0; k < problems_.size(); ++k)
            if (together[k] > 0) group.nests[k].kernel.size[KernelSize::weights] = together[k];
    }
    /// Blocks of output channels whose weights code should transform together: all of a layer where the
    /// second-level cache holds them beside the patches and lines of one tile. Else two, while the patches of
    /// many columns wait there: two halve how often smaller caches pass the patches on. None if rows are short.
    [[nodiscard]] int64_t weights_together(const LayerProblem& p, WinogradTile tile,
                                           int64_t columns) const {
        constexpr int64_t long_row = 128, fewest_columns = 192;
        if (columns < long_row || !transforms_weights(p, tile, unit_.lanes)) return 0;
        tile.weights = ceil_div(p[Dim::z], tile.channels);
        const int64_t width = tile.tiles * WinogradTile::columns;
        const Elements of_part(WinogradTile::frequencies(tile.rows) * p[Dim::i] * tile.tiles);
        const Elements lines(((tile.rows + 2) * p[Dim::i] + tile.rows * p[Dim::z]) * width);
        const Elements weights(weights_together_elements(p, tile));
        if (to_bytes(weights + of_part + lines) <= second_level_cache_) return tile.weights;
        const int64_t at_once = parts_in_cache(p, tile) * width;
        return at_once >= std::min(columns, fewest_columns) ? std::min<int64_t>(2, tile.weights) : 0;
    }

    /// The most coordinates of a dimension that a box of the nest has.
    [[nodiscard]] int64_t most_asked(size_t k, Dim d) const {
        int64_t most = 1;
        for (const AxisRanges& axis : loops_.asked().nests[k]) {
            if (axis.dim != d) continue;
            for (const auto& [range, times] : axis.times) most = std::max(most, range.size());
        }
        return most;
    }

    /// Rows and columns that the kernel computes at once, at most.
    [[nodiscard]] std::pair<int64_t, int64_t> rows_and_columns(size_t k) const {
        const auto [rows, columns] = rows_and_columns_of_call(k);
        return {std::min(rows, most_asked(k, Dim::y)), std::min(columns, most_asked(k, Dim::x))};
    }
    /// The same of a call. A call of a producer with retention computes about as many rows as its
    /// consumer's rows need anew.
    [[nodiscard]] std::pair<int64_t, int64_t> rows_and_columns_of_call(size_t k) const {
        const int64_t strip_rows = sink().strip[0] == 0 ? sink()[Dim::y] : sink().strip[0];
        const int64_t rows = std::min(sink()[Dim::y], strip_rows);
        if (k + 1 == problems_.size()) {
            const int64_t width = sink().strip[1] == 0 ? problems_[k][Dim::x] : sink().strip[1];
            return {rows, std::min(width, sink()[Dim::x])};
        }
        const auto tensor =
            std::find_if(tensors_.begin(), tensors_.end(),
                         [&](const GroupTensor& t) { return t.producer == static_cast<int>(k); });
        const BufferShape& shape =
            loops_.shapes().tensors[static_cast<size_t>(tensor - tensors_.begin())];
        return {std::max<int64_t>(1, std::min(shape.extent[1], rows)),
                std::max<int64_t>(1, shape.extent[2])};
    }

    [[nodiscard]] Kernel direct_kernel(size_t k) const {
        const LayerProblem& p = problems_[k];
        if (!p.has_weights()) return kernel_for(KernelKind::vectors, unit_);
        const auto [rows, columns] = rows_and_columns(k);
        const PerDim<bool>& whole = loops_.whole()[k];
        const TileLimits limits{
            .channel_blocks = loops_.blocks()[k],
            .may_be_half = whole[Dim::x] && !any_size_,
            .has_partial_sums = !whole[Dim::i],
            .channels = p.groups > 1 && !whole[Dim::z] ? 1 : most_asked(k, Dim::z)};
        return kernel_of(p, register_tile(p, rows, columns, unit_, limits), unit_.lanes);
    }

    const std::vector<LayerProblem>& problems_;
    GroupSchedule group_;
    VectorUnit unit_;
    Bytes second_level_cache_;
    Bytes constant_weights_;
    bool any_size_;
    bool tiles_as_lanes_;
    int64_t most_tile_rows_;  ///< of minimal filtering
    GroupLoops& loops_;
    std::vector<GroupTensor> tensors_;
};

/// A schedule that names minimal filtering contradicts the wish for sums by the definition.
void refuse_filtering(const GroupSchedule& group) {
    for (const Nest& nest : group.nests) {
        if (!kernel_row(nest.kernel.kind).filters) continue;
        throw InputError(
            nest.layer + ": kernel " + to_text(nest.kernel) +
            " of the schedule is minimal filtering, expected one that computes sums by "
            "the definition (--no-winograd, --strict), or a schedule without kernels");
    }
}

}  // namespace

GroupSchedule with_default_kernels(const std::vector<LayerProblem>& problems, GroupSchedule group,
                                   const VectorUnit& unit, const KernelOptions& options,
                                   GroupLoops* known) {
    if (group.nests.front().kernel.is_chosen()) {
        if (!options.filters()) refuse_filtering(group);
        return group;
    }
    if (!options.any_size && is_whole_map_group(group, problems) && !is_depthwise_pair(problems) &&
        !is_pointwise_pair(problems)) {
        if (const auto kernel = map_kernel(problems.front(), unit, options)) {
            group.nests.front().kernel = *kernel;
            if (problems.size() > 1)
                group.nests.back().kernel = kernel_for(KernelKind::map_sum, unit);
            return group;
        }
    }
    LoopsInUse loops(known, group, problems);
    if (options.filters() && column_chain_pays(problems) && goes_by_rows(group, problems)) {
        GroupSchedule chain = group;
        for (Nest& nest : chain.nests) nest.kernel = kernel_for(KernelKind::columns, unit);
        if (fits(columns_layout(chain, problems, loops.get()).scratch_elements(), options))
            return chain;
    }
    const LineBufferChoice choice(problems, std::move(group), unit, options, *loops.get());
    if (options.filters()) {
        GroupSchedule filtered = choice.with_kernels(true);
        if (fits(line_plan(filtered, problems, loops.get()).scratch_elements, options))
            return filtered;
    }
    return choice.with_kernels(false);
}

Schedule with_default_kernels(const Network& network, const Schedule& schedule,
                              const VectorUnit& unit, const KernelOptions& options) {
    std::vector<GroupSchedule> groups;
    for (const GroupSchedule& group : schedule.groups())
        groups.push_back(
            with_default_kernels(group_problems(network, group), group, unit, options));
    return {network, std::move(groups)};
}

}  // namespace laminate
