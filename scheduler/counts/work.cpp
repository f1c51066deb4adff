#include "scheduler/counts/work.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "scheduler/counts/chain_rows.h"
#include "scheduler/counts/like_boxes.h"
#include "scheduler/schedule/buffer_shapes.h"
#include "scheduler/schedule/kernels/kernel.h"
#include "scheduler/schedule/kernels/kernel_layouts.h"
#include "scheduler/schedule/kernels/layer_forms.h"
#include "scheduler/schedule/kernels/layout/winograd_rows.h"
#include "scheduler/schedule/kernels/line_plan.h"

namespace laminate {

namespace {

constexpr double vector_elements = 16;

void add(WorkTerms& terms, const Kernel& kernel, const KernelWork& work, int64_t times) {
    const std::string prefix = std::string(kernel_row(kernel.kind).name) + ".";
    for (const WorkTerm& term : work)
        terms[prefix + term.name] += term.amount * static_cast<double>(times);
}

KernelBox whole_box(const LayerProblem& p) {
    KernelBox box;
    for (const Dim d : all_dims) box[d] = {0, p[d]};
    return box;
}

/// Returns the work of nest k of a group with map kernels. The pixels of a 1x1 layer behind a depthwise one are
/// divided into tiles band by band, so lanes may be empty at the end of each band.
KernelWork map_work(const GroupSchedule& group, const std::vector<LayerProblem>& problems, size_t k) {
    const LayerProblem& p = problems[k];
    const Kernel& kernel = group.nests[k].kernel;
    KernelWork work = kernel_row(kernel.kind).work(p, kernel, {whole_box(p), true});
    if (k == 0 || kernel.kind != KernelKind::map_pixels) return work;
    for (WorkTerm& term : work) {
        if (std::string_view(term.name) == "products")
            term.amount = vectors_of(map_nest_done(group, problems, k).multiplications, kernel);
    }
    return work;
}

/// "lines": rows of one channel that come to a nest; "inputs": transformed vectors; "planes":
/// vectors of every fourth column of X; "products", and "scattered" where they are added to sums in
/// memory; "outputs": vectors transformed back.
void add_chain(WorkTerms& terms, const GroupSchedule& group,
               const std::vector<LayerProblem>& problems, GroupLoops& loops) {
    const ColumnsLayout layout = columns_layout(group, problems, &loops);
    const AskedBoxes& boxes = loops.asked();
    const auto lanes = static_cast<double>(layout.lanes);
    for_each_chain_row(layout, group, problems, boxes, [&](const ChainRow& row) {
        const LayerProblem& p = problems[row.nest];
        const LineForm form = layout.lines[row.nest].form;
        const auto times = static_cast<double>(row.times);
        const auto vectors = static_cast<double>(ceil_div(row.tiles, layout.lanes));
        const auto inputs = static_cast<double>(p[Dim::i]);
        if (row.is_incoming) {
            terms["columns.lines"] += times * inputs;
            if (row.nest == 0) terms["columns.planes"] += times * vectors * inputs * tile_columns;
            if (form != LineForm::plain)
                terms["columns.inputs"] += times * vectors * inputs *
                                           static_cast<double>(layout.windows[row.nest].patch());
        } else {
            terms["columns.rows"] += times;
            if (!layout.is_direct(static_cast<int>(row.nest)))
                terms["columns.outputs"] +=
                    times * vectors *
                    static_cast<double>(p[Dim::z] * tile_columns * layout.windows[row.nest].phases);
        }
        if (row.is_incoming != (form == LineForm::scattered)) return;
        terms[form == LineForm::scattered ? "columns.scattered" : "columns.products"] +=
            times *
            static_cast<double>(
                layout.multiplications_of_row(p, static_cast<int>(row.nest), row.y, row.tiles)) /
            lanes;
    });
}

/// Whether all boxes of a nest have the same number of columns.
bool has_one_width(const BoxRanges& boxes) {
    for (const AxisRanges& axis : boxes) {
        if (axis.dim != Dim::x) continue;
        const int64_t width = axis.times.begin()->first.size();
        return std::ranges::all_of(axis.times,
                                   [&](const auto& entry) { return entry.first.size() == width; });
    }
    return true;
}

/// The part of an array that comes from main memory where so many bytes pass through the caches
/// between two uses. Half of the third level is left to what other cores and programs keep there,
/// and an array that nearly fills the other half is partly gone.
double part_from_main(double between_bytes, const CoreCaches& caches) {
    const double quarter = static_cast<double>(caches.third.value()) / 4;
    return std::clamp(between_bytes / quarter - 1, 0.0, 1.0);
}

/// Vectors of an external input's boxes, and of these the ones in short pieces of rows of a map that
/// does not lie near. Between two uses of a row the map itself passes through the caches, and what
/// is written meanwhile.
void add_copies(WorkTerms& terms, const GroupSchedule& group,
                const std::vector<LayerProblem>& problems, const GroupTensor& tensor,
                const BoxRanges& boxes, const CoreCaches& caches) {
    constexpr int64_t long_row = 256;  // elements
    const TensorReader& reader = tensor.readers.front();
    const LayerProblem& p = problems[static_cast<size_t>(reader.nest)];
    const Placement& placement = placement_of(group, tensor);
    const bool is_read_at_once = placement.store == placement.compute && p.x().kernel > 1;
    const int64_t new_rows = group.nests[static_cast<size_t>(reader.nest)][Dim::y] * p.y().stride;
    double vectors = 0, short_pieces = 0, new_pieces = 0, new_elements = 0;
    for_each_box(like_boxes(boxes, p), [&](const PerDim<Range>& box, int64_t times) {
        const auto rows = static_cast<double>(times * box[Dim::z].size() * box[Dim::y].size());
        const auto columns = static_cast<double>(box[Dim::x].size());
        const double copied = rows * std::ceil(columns / vector_elements);
        // Rows that the boxes above had lie in a nearer cache, unless they were asked for ahead:
        // what is brought into the first-level cache that way is not kept in the second.
        const double part = std::min(
            1.0, static_cast<double>(new_rows) / static_cast<double>(box[Dim::y].size()));
        vectors += copied;
        new_elements += part * rows * columns;
        if (box[Dim::x].size() >= std::min(long_row, p.x().in)) return;
        short_pieces += copied;
        new_pieces += part * copied;
    });
    terms["lines.copies"] += vectors;
    if (is_read_at_once) terms["lines.shifted"] += vectors;
    const Elements map = external_elements(tensor, problems);
    const double sweeps = std::max(1.0, new_elements / static_cast<double>(map.value()));
    const double between =
        static_cast<double>(to_bytes(map).value()) +
        static_cast<double>(to_bytes(problems.back().output_elements()).value()) / sweeps;
    const double from_main = part_from_main(between, caches);
    const double from_third = to_bytes(map) > caches.second ? 1 - from_main : 0;
    if (channels_asked_ahead(group, problems, tensor)) {
        terms["lines.ahead"] += from_main * short_pieces;
    } else {
        terms["lines.main"] += from_main * new_pieces;
        terms["lines.third"] += from_third * new_pieces;
    }
}

void add_lines(WorkTerms& terms, const GroupSchedule& group,
               const std::vector<LayerProblem>& problems, const AskedBoxes& boxes,
               const CoreCaches& caches) {
    for (size_t k = 0; k < problems.size(); ++k) {
        const Kernel& kernel = group.nests[k].kernel;
        const auto work = kernel_row(kernel.kind).work;
        const bool is_even = has_one_width(boxes.nests[k]);
        const BoxRanges nest = like_boxes(boxes.nests[k], problems[k]);
        for_each_box(nest, [&](const PerDim<Range>& box, int64_t times) {
            add(terms, kernel, work(problems[k], kernel, {box, is_even}), times);
        });
    }
    const std::vector<GroupTensor> tensors = group_tensors(problems);
    for (size_t t = 0; t < boxes.inputs.size(); ++t)
        add_copies(terms, group, problems, tensors[t], boxes.inputs[t], caches);
}

/// Weights as the code reads them: transformed ones over lines, of as many frequencies as tiles have, or
/// plain ones where code transforms them, and plain ones for every chunk of rows of winograd_map. `tile`:
/// of minimal filtering over lines.
Elements weights_read(const LayerProblem& p, const Kernel& kernel,
                      const std::optional<WinogradTile>& tile = std::nullopt) {
    if (tile && tile->weights > 0) return p.weight_elements();
    if (kernel.kind == KernelKind::winograd_map)
        return Elements(winograd_map_layout(p, kernel).chunks *
                        p.weight_elements().value());
    const bool is_transformed =
        kernel.kind == KernelKind::winograd_rows || kernel.kind == KernelKind::winograd_channels;
    return is_transformed
               ? Elements(WinogradTile::frequencies(rows_of_tile(kernel)) * p[Dim::z] * p[Dim::i])
               : p.weight_elements();
}

/// Whether a layer has so many pixels that its sums take longer than its weights from memory.
bool has_enough_pixels(const LayerProblem& p) {
    constexpr int64_t enough_pixels = 16;
    return p[Dim::y] * p[Dim::x] >= enough_pixels;
}

/// Whether weights are in the second-level cache by the time that they are needed: map_channels asks
/// for the next ones while it computes.
bool asks_for_weights_ahead(const LayerProblem& p, const Kernel& kernel) {
    return kernel.kind == KernelKind::map_channels && has_enough_pixels(p);
}

/// How often the code of a box reads its weights: those of minimal filtering over lines for every batch
/// of bands, and where lanes are tiles, for all the tiles of a row that are in registers together, or for
/// as many parts of them as wait for weights that code transforms.
double reads_of_box(const LayerProblem& p, const Kernel& kernel, const PerDim<Range>& box,
                    int64_t parts) {
    if (kernel.kind != KernelKind::winograd_rows && kernel.kind != KernelKind::winograd_channels)
        return 1;
    const WinogradTile tile = winograd_tile_of(kernel);
    const int64_t batches = ceil_div(ceil_div(box[Dim::y].size(), tile.rows), tile.bands);
    if (tile.axis == VectorAxis::z) return static_cast<double>(batches);
    return static_cast<double>(
        batches * ceil_div(std::min(p[Dim::x], box[Dim::x].size()),
                           parts * tile.tiles * WinogradTile::columns));
}

/// Every box of a nest reads its weights again. What all weights of a group, read in turn, take of the
/// last cache beyond half of it comes from main memory each time; a cache that they fill keeps none.
void add_weights_read_again(WorkTerms& terms, const GroupSchedule& group,
                            const std::vector<LayerProblem>& problems, GroupLoops& loops,
                            const CoreCaches& caches) {
    const AskedBoxes& boxes = loops.asked();
    const auto bytes_read = [&](const std::vector<std::optional<WinogradTile>>& tiles) {
        Bytes all;
        for (size_t k = 0; k < problems.size(); ++k)
            all += to_bytes(weights_read(problems[k], group.nests[k].kernel, tiles[k]));
        return all;
    };
    std::vector<std::optional<WinogradTile>> tiles(problems.size());
    Bytes all = bytes_read(tiles);
    // Plans are made only where it matters which weights code transforms.
    if (2 * all.value() > caches.third.value()) {
        tiles = line_plan(group, problems, &loops).winograd;
        all = bytes_read(tiles);
    }
    const double part = std::min(
        1.0, 2 * static_cast<double>(all.value()) / static_cast<double>(caches.third.value()) - 1);
    if (part <= 0) return;
    for (size_t k = 0; k < problems.size(); ++k) {
        const LayerProblem& p = problems[k];
        double reads = 0;
        for_each_box(like_boxes(boxes.nests[k], p), [&](const PerDim<Range>& box, int64_t times) {
            reads += reads_of_box(p, group.nests[k].kernel, box, tiles[k] ? tiles[k]->parts : 1) *
                     static_cast<double>(times * box[Dim::z].size() * box[Dim::i].size()) /
                     static_cast<double>(p[Dim::z] * p[Dim::i]);
        });
        const auto vectors =
            static_cast<double>(weights_read(p, group.nests[k].kernel, tiles[k]).value()) /
            vector_elements;
        terms["memory.main"] += part * vectors * std::max(0.0, reads - 1);
    }
}

/// What passes through the caches between two uses decides where an array lies.
void add_memory(WorkTerms& terms, Elements elements, Bytes between, const CoreCaches& caches) {
    const auto vectors = static_cast<double>(elements.value()) / vector_elements;
    const double from_main = part_from_main(static_cast<double>(between.value()), caches);
    terms["memory.main"] += from_main * vectors;
    terms[between.value() > 2 * caches.second.value() ? "memory.third" : "memory.second"] +=
        (1 - from_main) * vectors;
}

}  // namespace

WorkTerms group_work(const GroupSchedule& group, const std::vector<LayerProblem>& problems,
                     const CoreCaches& caches, Bytes other_weights, GroupLoops* known) {
    WorkTerms terms{{"groups.begun", 1}};
    LoopsInUse loops(known, group, problems);
    switch (kernel_row(group.nests.front().kernel.kind).scope) {
        case KernelScope::map:
        case KernelScope::sum:
            for (size_t k = 0; k < problems.size(); ++k)
                add(terms, group.nests[k].kernel, map_work(group, problems, k), 1);
            break;
        case KernelScope::chain:
            add_chain(terms, group, problems, *loops.get());
            break;
        case KernelScope::nest:
            add_lines(terms, group, problems, loops->asked(), caches);
            add_weights_read_again(terms, group, problems, *loops.get(), caches);
            break;
    }
    Bytes weights = other_weights;
    for (const LayerProblem& p : problems) weights += to_bytes(p.weight_elements());
    Elements external = problems.back().output_elements();
    for (size_t k = 0; k < problems.size(); ++k) {
        const Kernel& kernel = group.nests[k].kernel;
        const Bytes between = asks_for_weights_ahead(problems[k], kernel) ? Bytes() : weights;
        const Elements read = weights_read(problems[k], kernel);
        add_memory(terms, read, between, caches);
        // Sums of few pixels do not hide that weights come from memory. Code that does not ask for them
        // ahead waits for each line, as it does for pieces of rows.
        if (kernel_row(kernel.kind).scope == KernelScope::nest && !has_enough_pixels(problems[k])) {
            terms["lines.main"] += part_from_main(static_cast<double>(between.value()), caches) *
                                   static_cast<double>(read.value()) / vector_elements;
        }
    }
    for (const GroupTensor& tensor : group_tensors(problems)) {
        if (!tensor.is_external()) continue;
        external += external_elements(tensor, problems);
    }
    add_memory(terms, external, to_bytes(external), caches);
    // Of what passes the half of the third level that is left to others, no part stays in it.
    const double beyond = part_from_main(static_cast<double>(to_bytes(external).value()) / 2, caches) *
                          static_cast<double>(external.value()) / vector_elements;
    terms["memory.main"] -= beyond;
    terms["memory.maps"] += beyond;
    return terms;
}

}  // namespace laminate
