#include "scheduler/schedule/kernels/kernel_layouts.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "base/error.h"
#include "scheduler/schedule/buffer_shapes.h"
#include "scheduler/schedule/open_group.h"

namespace laminate {

namespace {

/// `make` of the layout of a map kernel.
template <class Make>
int64_t of_map_layout(const LayerProblem& p, const Kernel& kernel, const Make& make) {
    const VectorUnit unit = unit_of(kernel);
    switch (kernel.kind) {
        case KernelKind::map_pixels:
            return make(map_pixels_layout(p, kernel));
        case KernelKind::map_channels:
            return make(map_channels_layout(p, unit));
        case KernelKind::map_windows:
            return make(map_windows_layout(p, unit));
        case KernelKind::map_panels:
            return make(map_panels_layout(p, unit));
        case KernelKind::map_phases:
            return make(map_phases_layout(p, unit));
        case KernelKind::map_depthwise:
            return make(map_depthwise_layout(p, unit));
        case KernelKind::map_pooling:
            return make(map_pooling_layout(p, unit));
        case KernelKind::winograd_map:
            return make(winograd_map_layout(p, kernel));
        case KernelKind::map_elementwise:
            return make(map_elementwise_layout(p, unit, false));
        default:
            break;
    }
    throw std::logic_error("not a map kernel");
}

}  // namespace

MapPixelsLayout map_pixels_layout(const LayerProblem& problem, const Kernel& kernel) {
    MapPixelsLayout at = map_pixels_layout(problem, unit_of(kernel), std::nullopt);
    // Parts are fewer where each fills panels, so the layout is made for one of the two.
    return kernel[KernelSize::panel] == (at.has_panel ? 1 : 0)
               ? at
               : map_pixels_layout(problem, unit_of(kernel), Bytes(0));
}

MapBandsLayout map_bands_layout(const GroupSchedule& group,
                                const std::vector<LayerProblem>& problems) {
    return map_bands_layout(problems[0], unit_of(group.nests[0].kernel), problems[1],
                            unit_of(group.nests[1].kernel), group.nests[1][Dim::y]);
}

MapBlocksLayout map_blocks_layout(const GroupSchedule& group,
                                  const std::vector<LayerProblem>& problems) {
    return map_blocks_layout(problems[0], unit_of(group.nests[0].kernel), problems[1],
                             unit_of(group.nests[1].kernel));
}

WinogradMapLayout winograd_map_layout(const LayerProblem& problem, const Kernel& kernel) {
    return winograd_map_layout(problem, unit_of(kernel),
                               WinogradMapChunks{rows_of_tile(kernel), kernel[KernelSize::pairs]});
}

ColumnsLayout columns_layout(const GroupSchedule& group, const std::vector<LayerProblem>& problems,
                             GroupLoops* known) {
    LoopsInUse loops(known, group, problems);
    std::vector<int64_t> kept_rows;
    for (const BufferShape& shape : loops->shapes().tensors) kept_rows.push_back(shape.extent[1]);
    return columns_layout(problems, kept_rows, group.nests.back().strip[1],
                          unit_of(group.nests.front().kernel));
}

ColumnsSizes columns_sizes(const ColumnsLayout& at, const std::vector<LayerProblem>& chain) {
    ColumnsSizes sizes;
    for (const ColumnLine& line : at.lines) {
        sizes.lines.push_back({line.rows < line.coordinates, line.rows, line.pitch,
                               line.row_elements(), line.offset});
    }
    sizes.row_pitch.assign(at.row_pitch.begin(), at.row_pitch.end());
    sizes.picture_tiles.assign(at.picture_tiles.begin(), at.picture_tiles.end());
    sizes.sums_rotate = at.sums_rows < chain.back()[Dim::y];
    sizes.sums_pitch = at.sums_pitch;
    sizes.sums_row_elements = at.sums_row_elements;
    sizes.row_offset = at.row_offset;
    sizes.products_offset = at.products_offset;
    sizes.sums_offset = at.sums_offset;
    sizes.elements = at.elements;
    return sizes;
}

namespace {

/// pitch_for() of layout/columns.cpp.
SizeFormula pitch_for(const SizeFormula& tiles, int64_t lanes) {
    const int64_t line = ColumnsLayout::elements_of_line(lanes);
    return (ceil_div((ceil_div(tiles, lanes) + 1) * lanes, line) / 2 * 2 + 1) * line;
}

/// Tiles of each tensor, Y included, that the widest strip computes.
std::vector<SizeFormula> most_tiles(const ColumnsLayout& at, const GroupSchedule& group,
                                    const std::vector<SizeFormula>& picture_tiles,
                                    const SizeFormula& columns) {
    // Strips begin at whole tiles (strip_unit).
    const bool has_strips = group.nests.back().strip[1] != 0;
    const SizeFormula widest = has_strips ? least(SizeVariable::strip_columns, columns) : columns;
    std::vector<SizeFormula> tiles(picture_tiles.size() + 1);
    tiles.back() = ceil_div(widest, tile_columns * at.windows.back().phases);
    for (size_t k = picture_tiles.size(); k-- > 0;) {
        const ColumnWindow& w = at.windows[k];
        tiles[k] = least(picture_tiles[k], tiles[k + 1] + (w.last_tile() - w.first_tile()));
    }
    return tiles;
}

}  // namespace

ColumnsSizes open_columns_sizes(ColumnsLayout& at, const GroupSchedule& group,
                                const std::vector<LayerProblem>& chain,
                                const TensorSizes& sizes) {
    const std::vector<KeptRows> kept = kept_rows(group, chain, sizes);
    ColumnsSizes open;
    for (const LayerProblem& p : chain)
        open.picture_tiles.push_back(
            ceil_div(sizes.extent(p.inputs.front().tensor, Dim::x), tile_columns));
    const std::vector<SizeFormula> tiles = most_tiles(at, group, open.picture_tiles,
                                                      sizes.extent(chain.back().output, Dim::x));
    SizeFormula end, row_elements;
    const auto take = [&](const SizeFormula& elements) {
        return std::exchange(end, end + round_up(elements, at.line()));
    };
    for (size_t k = 0; k < chain.size(); ++k) {
        const LayerProblem& p = chain[k];
        const ColumnWindow& w = at.windows[k];
        const ColumnLine& known = at.lines[k];
        const bool is_block = known.form == LineForm::scattered;
        ColumnsSizes::Line line;
        line.rotates = !kept[k].all && !is_block;
        line.rows = is_block        ? SizeFormula(1)
                    : kept[k].all ? sizes.extent(p.inputs.front().tensor, Dim::y)
                                  : SizeFormula(std::max<int64_t>(1, kept[k].rows));
        line.pitch = is_block ? SizeFormula(known.pitch)
                              : pitch_for(tiles[k + 1] + (w.pieces - 1), at.lanes);
        line.row_elements = line.pitch * (known.planes * known.channels);
        line.offset = take(line.rows * line.row_elements);
        open.lines.push_back(line);
        const bool is_transformed = known.form != LineForm::plain;
        // Both may be the longer one.
        const SizeFormula row_tiles = most(tiles[k], tiles[k + 1] + (w.pieces - 1));
        open.row_pitch.push_back(is_transformed ? pitch_for(row_tiles, at.lanes) + 2 * at.line()
                                                : SizeFormula());
        row_elements =
            most(row_elements, open.row_pitch.back() * (tile_columns * known.channels));
        if (is_block) {
            if (kept[k].all)
                throw InputError("layer " + p.name +
                                 ": cannot be of any size: its sums are of all rows");
            const int64_t step = p.y().transposed ? p.y().stride : 1;
            at.sums_rows = (std::max<int64_t>(1, kept[k].rows) - 1) * step + p.y().kernel;
            open.sums_pitch = pitch_for(tiles[k + 1], at.lanes);
            open.sums_row_elements = open.sums_pitch * (at.outputs_at_once * w.patch());
            open.sums_offset = take(open.sums_row_elements * at.sums_rows);
        }
    }
    open.row_offset = take(row_elements);
    open.products_offset = take(at.elements - at.products_offset);
    open.elements = end;
    return open;
}

namespace {

/// The kind of kernel behind the first one.
bool is_followed_by(const GroupSchedule& group, KernelKind kind) {
    return group.sink() > 0 && group.nests[1].kernel.kind == kind;
}
/// A depthwise nest whose output the next nest's kernel takes from a panel.
bool fills_panel(const GroupSchedule& group) {
    return is_followed_by(group, KernelKind::map_pixels);
}
/// A 1x1 nest whose output the next nest's kernel takes block by block of channels.
bool fills_blocks(const GroupSchedule& group) {
    return is_followed_by(group, KernelKind::map_depthwise);
}

}  // namespace

int64_t map_scratch_elements(const GroupSchedule& group,
                             const std::vector<LayerProblem>& problems) {
    return fills_panel(group)    ? map_bands_layout(group, problems).scratch_elements()
           : fills_blocks(group) ? map_blocks_layout(group, problems).scratch_elements()
                                 : map_scratch_elements(problems[0], group.nests[0].kernel);
}

MapNestDone map_nest_done(const GroupSchedule& group, const std::vector<LayerProblem>& problems,
                          size_t k) {
    const LayerProblem& p = problems[k];
    const Kernel& kernel = group.nests[k].kernel;
    if (kernel.kind == KernelKind::map_sum) return {};
    if (!fills_panel(group)) {
        return {map_channels_together(p, kernel), map_stored_elements(p, kernel),
                map_multiplications(p, kernel)};
    }
    const MapBandsLayout at = map_bands_layout(group, problems);
    return k == 0 ? MapNestDone{1, 0, at.depthwise.multiplications()}
                  : MapNestDone{at.block, p.output_elements().value(), at.multiplications()};
}

int64_t map_scratch_elements(const LayerProblem& problem, const Kernel& kernel) {
    return of_map_layout(problem, kernel, [](const auto& at) { return at.scratch_elements(); });
}

int64_t map_channels_together(const LayerProblem& problem, const Kernel& kernel) {
    return of_map_layout(problem, kernel, [](const auto& at) -> int64_t {
        if constexpr (requires { at.block(); }) {
            return at.block();
        } else if constexpr (requires { at.block; }) {
            return at.block;
        } else {
            return 1;
        }
    });
}

int64_t map_stored_elements(const LayerProblem& problem, const Kernel& kernel) {
    return kernel.kind == KernelKind::map_depthwise
               ? map_depthwise_layout(problem, unit_of(kernel)).stored_elements()
               : problem.output_elements().value();
}

int64_t map_multiplications(const LayerProblem& problem, const Kernel& kernel) {
    return of_map_layout(problem, kernel, [](const auto& at) { return at.multiplications(); });
}

}  // namespace laminate
