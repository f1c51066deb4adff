#include "scheduler/schedule/kernels/line_plan.h"

#include <algorithm>
#include <functional>
#include <string>

#include "base/error.h"
#include "scheduler/schedule/buffer_shapes.h"
#include "scheduler/schedule/kernels/layer_forms.h"
#include "scheduler/schedule/open_group.h"

namespace laminate {

namespace {

bool is_winograd(const Kernel& kernel) {
    return kernel.kind == KernelKind::winograd_rows || kernel.kind == KernelKind::winograd_channels;
}

/// How far a kernel's last vectors of a row run over its end: reading past what is needed, writing
/// past what is new.
int64_t overrun(const Kernel& kernel) {
    const bool has_tile = kernel.kind == KernelKind::rows || kernel.kind == KernelKind::phases;
    return (has_tile ? kernel[KernelSize::columns] : 1) * kernel[KernelSize::lanes];
}

/// Columns behind a tensor's own for which its rings have room.
int64_t most_overrun(const GroupSchedule& group, const std::vector<LayerProblem>& problems,
                     const GroupTensor& tensor) {
    const auto kernel = [&](int k) { return group.nests[static_cast<size_t>(k)].kernel; };
    int64_t behind = tensor.is_external() ? 0 : overrun(kernel(tensor.producer));
    for (const TensorReader& reader : tensor.readers) {
        const AxisWindow& w = problems[static_cast<size_t>(reader.nest)].x();
        behind = std::max(behind, overrun(kernel(reader.nest)) * (w.transposed ? 1 : w.stride));
    }
    return behind;
}

RingLayout ring_of(const GroupSchedule& group, const std::vector<LayerProblem>& problems,
                   const GroupTensor& tensor, const BufferShape& shape, int64_t lanes) {
    const auto problem = [&](int k) -> const LayerProblem& {
        return problems[static_cast<size_t>(k)];
    };
    const int64_t behind = most_overrun(group, problems, tensor);
    RingLayout ring;
    ring.rows = std::max<int64_t>(1, shape.extent[1]);
    ring.channels = std::max<int64_t>(1, shape.slide[0] ? shape.slide[0]->room : shape.extent[0]);
    const TensorReader& first = tensor.readers.front();
    ring.coordinates = problem(first.nest).operand_extents(first.operand)[1];
    ring.channel_slide = shape.slide[0];
    ring.column_slide = shape.slide[2];
    const int64_t columns = ring.column_slide ? ring.column_slide->room : shape.unclipped_columns;
    ring.columns = shape.extent[2];
    ring.padding = columns - ring.columns;
    ring.pitch = round_up(std::max<int64_t>(1, columns) + behind + lanes, lanes);
    // What rounding adds makes slides rarer.
    if (ring.column_slide) ring.column_slide->room = ring.pitch - behind - lanes;
    // Rows a multiple of 4 KiB apart fall into the same cache set.
    constexpr int64_t cache_set_elements = 1024;
    if (ring.pitch % cache_set_elements < lanes) ring.pitch += lanes;
    return ring;
}

/// Sets the tiles of kernels that have such, with the kinds of steps that their rows come in.
void add_winograd(LinePlan& plan, const GroupSchedule& group,
                  const std::vector<LayerProblem>& problems, GroupLoops& loops) {
    plan.winograd.resize(problems.size());
    plan.has_whole_rows.resize(problems.size(), 1);
    if (std::none_of(group.nests.begin(), group.nests.end(),
                     [](const Nest& nest) { return is_winograd(nest.kernel); }))
        return;
    const auto& steps = loops.steps();
    const auto& whole = loops.whole();
    for (size_t k = 0; k < problems.size(); ++k) {
        if (!is_winograd(group.nests[k].kernel)) continue;
        plan.winograd[k] = winograd_tile_of(problems[k], group.nests[k].kernel, steps[k]);
        plan.has_whole_rows[k] = whole[k][Dim::x] ? 1 : 0;
    }
}

/// Gives tiles whose weights code transforms their parts. Returns the elements of the most weights that it
/// transforms together.
int64_t add_parts(LinePlan& plan, const std::vector<LayerProblem>& problems,
                  const std::vector<GroupTensor>& tensors) {
    int64_t most = 0;
    for (size_t k = 0; k < problems.size(); ++k) {
        std::optional<WinogradTile>& tile = plan.winograd[k];
        if (!tile) continue;
        const auto input = std::ranges::find_if(tensors, [&](const GroupTensor& tensor) {
            return std::ranges::any_of(tensor.readers, [&](const TensorReader& reader) {
                return reader.nest == static_cast<int>(k);
            });
        });
        const int64_t columns = plan.rings[static_cast<size_t>(input - tensors.begin())].columns;
        tile = with_parts(problems[k], *tile, columns);
        most = std::max(most, weights_together_elements(problems[k], *tile));
    }
    return most;
}

constexpr int64_t boundary = 16;  // elements, of every ring and block

/// Places blocks of rows, the largest first, each where none lies that is there at the same time.
/// Returns the elements that they need together.
int64_t place_blocks(std::vector<RingLayout>& rings, const RowTraffic& traffic) {
    struct Placed {
        IncomingRows rows;
        int64_t begin = 0;
        int64_t end = 0;
    };
    const auto ring_of = [&](const IncomingRows& rows) -> RingLayout& {
        return rings[static_cast<size_t>(rows.tensor)];
    };
    const auto in_ring = [&](const IncomingRows& rows) {
        return std::min(rows.rows, *traffic.kept[static_cast<size_t>(rows.tensor)] - traffic.before.at(rows));
    };
    const auto elements = [&](const IncomingRows& rows) {
        return round_up((rows.rows - in_ring(rows)) * ring_of(rows).row_elements(), boundary);
    };
    std::vector<IncomingRows> largest_first;
    for (const auto& [rows, others] : traffic.beside) largest_first.push_back(rows);
    std::ranges::stable_sort(largest_first, std::greater<>(), elements);
    std::vector<Placed> placed;  // by begin
    int64_t end = 0;
    for (const IncomingRows& rows : largest_first) {
        std::optional<RingParts>& parts = ring_of(rows).parts;
        if (!parts) continue;
        const std::set<IncomingRows>& others = traffic.beside.at(rows);
        const int64_t size = elements(rows);
        int64_t begin = 0;
        for (const Placed& other : placed) {
            if (others.contains(other.rows) && other.begin < begin + size)
                begin = std::max(begin, other.end);
        }
        const auto behind =
            std::ranges::upper_bound(placed, begin, std::less<>(), &Placed::begin);
        placed.insert(behind, {rows, begin, begin + size});
        parts->blocks.push_back({rows.rows, in_ring(rows), begin});
        end = std::max(end, begin + size);
    }
    return end;
}

/// Divides rings into parts where that saves enough to be worth the copies. Returns what their blocks
/// need.
int64_t part_rings(std::vector<RingLayout>& rings, GroupLoops& loops, size_t layers) {
    constexpr size_t fewest = 4;  // rings that two blocks may replace
    constexpr double most = 0.75;
    if (layers <= fewest) return 0;
    const RowTraffic& traffic = loops.traffic();
    std::vector<RingLayout> parted = rings;
    for (const auto& [incoming, others] : traffic.beside) {
        RingLayout& ring = parted[static_cast<size_t>(incoming.tensor)];
        const int64_t kept = *traffic.kept[static_cast<size_t>(incoming.tensor)];
        if (kept < ring.rows) ring.parts = RingParts{kept, {}};
    }
    int64_t before = 0, after = 0;
    for (size_t t = 0; t < rings.size(); ++t) {
        const RingLayout& ring = parted[t];
        before += rings[t].elements();
        after += ring.elements();
    }
    const int64_t blocks = place_blocks(parted, traffic);
    if (static_cast<double>(after + blocks) > most * static_cast<double>(before)) return 0;
    rings = std::move(parted);
    return blocks;
}

int64_t transform_elements(const LinePlan& plan, const GroupSchedule& group,
                           const std::vector<LayerProblem>& problems) {
    int64_t transforms = 0;
    for (size_t k = 0; k < problems.size(); ++k) {
        if (plan.winograd[k])
            transforms =
                std::max(transforms, winograd_scratch_elements(problems[k], *plan.winograd[k],
                                                               unit_of(group.nests[k].kernel)));
    }
    return transforms;
}

/// Columns of a tensor with the padding that windows read around them: BufferShape's
/// unclipped_columns of whole rows.
SizeFormula columns_with_padding(const std::vector<LayerProblem>& problems,
                                 const GroupTensor& tensor, const TensorSizes& sizes) {
    SizeFormula begin, end;
    bool is_first = true;
    for (const TensorReader& reader : tensor.readers) {
        const LayerProblem& p = problems[static_cast<size_t>(reader.nest)];
        const AxisWindow& w = p.x();
        const bool is_repeated = p.repeats(reader.operand, Dim::x);
        if (is_repeated || w.is_sampled()) {
            const SizeFormula all = is_repeated ? 1 : sizes.extent(tensor.tensor, Dim::x);
            begin = is_first ? SizeFormula() : least(begin, 0);
            end = is_first ? all : most(end, all);
            is_first = false;
            continue;
        }
        const SizeFormula out = sizes.extent(p.output, Dim::x);
        const int64_t from =
            w.transposed ? floor_div(w.pad_begin - w.span() + w.stride, w.stride) : -w.pad_begin;
        const SizeFormula to = w.transposed
                                   ? (out + (w.pad_begin - 1)) / w.stride + 1
                                   : (out - 1) * w.stride + (w.span() - w.pad_begin);
        begin = is_first ? from : least(begin, from);
        end = is_first ? to : most(end, to);
        is_first = false;
    }
    return end - begin;
}

}  // namespace

std::optional<int64_t> channels_asked_ahead(const GroupSchedule& group,
                                            const std::vector<LayerProblem>& problems,
                                            const GroupTensor& tensor) {
    const TensorReader& reader = tensor.readers.front();
    const Level level = placement_of(group, tensor).compute;
    if (tensor.is_shared() || level.nest != reader.nest) return std::nullopt;
    const LayerProblem& p = problems[static_cast<size_t>(reader.nest)];
    const Nest& nest = group.nests[static_cast<size_t>(reader.nest)];
    const Loop loop = nest.loops[static_cast<size_t>(level.loop)];
    constexpr int64_t short_piece = 256;  // columns
    if (loop.dim != Dim::i || !p.has_weights() || nest[Dim::x] >= std::min(short_piece, p[Dim::x]))
        return std::nullopt;
    return nest.step(loop);
}

LinePlan line_plan(const GroupSchedule& group, const std::vector<LayerProblem>& problems,
                   GroupLoops* known) {
    LoopsInUse loops(known, group, problems);
    LinePlan plan;
    plan.lanes = group.nests.front().kernel[KernelSize::lanes];
    add_winograd(plan, group, problems, *loops.get());
    const std::vector<BufferShape>& shapes = loops->shapes().tensors;
    const std::vector<GroupTensor> tensors = group_tensors(problems);
    for (size_t t = 0; t < tensors.size(); ++t)
        plan.rings.push_back(ring_of(group, problems, tensors[t], shapes[t], plan.lanes));
    const int64_t blocks = part_rings(plan.rings, *loops.get(), problems.size());
    for (RingLayout& ring : plan.rings) {
        ring.offset = plan.scratch_elements;
        plan.scratch_elements += round_up(ring.elements(), boundary);
    }
    plan.blocks_offset = plan.scratch_elements;
    for (RingLayout& ring : plan.rings) {
        if (!ring.parts) continue;
        for (RingParts::Block& block : ring.parts->blocks) block.offset += plan.blocks_offset;
    }
    plan.scratch_elements += blocks;
    plan.weights_offset = plan.scratch_elements;
    plan.scratch_elements += round_up(add_parts(plan, problems, tensors), boundary);
    // Last: patches behind the end of a row may be read beyond it.
    plan.transforms_offset = plan.scratch_elements;
    plan.scratch_elements += transform_elements(plan, group, problems);
    return plan;
}

LineSizes line_sizes(const LinePlan& plan) {
    LineSizes sizes;
    for (const RingLayout& ring : plan.rings)
        sizes.rings.push_back(
            {ring.rows < ring.coordinates, ring.rows, ring.pitch, ring.offset});
    sizes.transforms_offset = plan.transforms_offset;
    sizes.scratch_elements = plan.scratch_elements;
    return sizes;
}

LineSizes open_line_sizes(LinePlan& plan, const GroupSchedule& group,
                          const std::vector<LayerProblem>& problems, const TensorSizes& sizes) {
    const std::vector<GroupTensor> tensors = group_tensors(problems);
    const std::vector<KeptRows> kept = kept_rows(group, problems, sizes);
    LineSizes open;
    SizeFormula end;
    for (size_t t = 0; t < tensors.size(); ++t) {
        const LayerProblem& reader =
            problems[static_cast<size_t>(tensors[t].readers.front().nest)];
        const int64_t behind = most_overrun(group, problems, tensors[t]);
        if (plan.rings[t].column_slide)
            throw InputError("layer " + reader.name + ": cannot be of any size: it keeps parts of " +
                             "the rows of " + tensors[t].name + "; expected whole rows");
        plan.rings[t].parts.reset();
        LineSizes::Ring ring;
        ring.rotates = !kept[t].all;
        ring.rows = kept[t].all ? sizes.extent(tensors[t].tensor, Dim::y)
                                : SizeFormula(std::max<int64_t>(1, kept[t].rows));
        // An odd number of vectors: rows a multiple of 4 KiB apart would share a cache set.
        const SizeFormula columns = columns_with_padding(problems, tensors[t], sizes);
        const SizeFormula vectors = ceil_div(columns + (behind + plan.lanes), plan.lanes);
        ring.pitch = (vectors / 2 * 2 + 1) * plan.lanes;
        ring.offset = end;
        end = end + round_up(ring.rows * ring.pitch * plan.rings[t].channels, boundary);
        open.rings.push_back(ring);
    }
    for (std::optional<WinogradTile>& tile : plan.winograd) {
        if (tile) *tile = winograd_tile_of(kernel_of(*tile, plan.lanes));
    }
    open.transforms_offset = end;
    open.scratch_elements = end + transform_elements(plan, group, problems);
    return open;
}

}  // namespace laminate
