#include "scheduler/counts/done.h"

#include <algorithm>

#include "scheduler/counts/chain_rows.h"
#include "scheduler/counts/like_boxes.h"
#include "scheduler/counts/two_level/two_level.h"
#include "scheduler/schedule/buffer_shapes.h"
#include "scheduler/schedule/kernels/kernel_layouts.h"
#include "scheduler/schedule/kernels/layer_forms.h"
#include "scheduler/schedule/kernels/line_plan.h"

namespace laminate {

namespace {

/// Taps of a window over a range of outputs (docs/counting.md section 1): on padding too, and of a
/// transposed window those that meet its grid.
int64_t taps(const AxisWindow& w, Range outputs) {
    if (!w.transposed) return outputs.size() * w.kernel;
    int64_t count = 0;
    for (int64_t out = outputs.begin; out < outputs.end; ++out) {
        for (int64_t n = 0; n < w.kernel; ++n)
            count += (out + w.pad_begin - n * w.dilation) % w.stride == 0 ? 1 : 0;
    }
    return count;
}

/// Multiply-accumulates of all boxes.
int64_t needed(const LayerProblem& p, const BoxRanges& boxes) {
    if (!p.has_weights()) return 0;
    return sum_over_boxes(boxes, [&](Dim d, Range range) {
        if (d == Dim::y) return taps(p.y(), range);
        return d == Dim::x ? taps(p.x(), range) : range.size();
    });
}

/// Elements of all boxes, of which input channels are no dimension.
int64_t elements(const BoxRanges& boxes) {
    return sum_over_boxes(boxes, [](Dim d, Range range) { return d == Dim::i ? 1 : range.size(); });
}

/// How many rows all boxes together have, along rows alone.
int64_t rows_of(const BoxRanges& boxes) {
    int64_t rows = 0;
    for (const AxisRanges& axis : boxes) {
        if (axis.dim != Dim::y) continue;
        for (const auto& [range, times] : axis.times) rows += range.size() * times;
    }
    return rows;
}

/// Y is written by every box of the sink, and read back by boxes that continue a sum.
void count_output(DoneCounts& counts, const BoxRanges& boxes) {
    const int64_t all = elements(boxes);
    const int64_t begun = sum_over_boxes(boxes, [](Dim d, Range range) -> int64_t {
        return d == Dim::i ? (range.begin > 0 ? 0 : 1) : range.size();
    });
    counts.output_writes.done += Elements(all);
    counts.nests.back().computed.done += Elements(all);
    counts.output_reads.done += Elements(all - begun);
}

/// What kernels read of weights for the first time in a lifetime.
void count_weights(DoneCounts& counts, const std::vector<LayerProblem>& problems,
                   const AskedBoxes& boxes) {
    for (size_t k = 0; k < problems.size(); ++k) {
        if (!problems[k].has_weights()) continue;
        const int64_t taps = problems[k].y().kernel * problems[k].x().kernel;
        counts.nests[k].weights.done += Elements(
            taps * sum_over_boxes(boxes.weights[k], [](Dim, Range range) { return range.size(); }));
    }
}

/// A chain goes row by row over strips of columns, each of whole tiles.
void count_chain(DoneCounts& counts, const GroupSchedule& group,
                 const std::vector<LayerProblem>& problems, const AskedBoxes& boxes) {
    const ColumnsLayout layout = columns_layout(group, problems);
    const int64_t columns = problems.back()[Dim::x];
    const int64_t step = group.nests.back().strip[1] == 0 ? columns : group.nests.back().strip[1];
    const LayerProblem& first = problems.front();
    for (int64_t begin = 0; begin < columns; begin += step) {
        const auto tiles = layout.tiles_for(begin, std::min(begin + step, columns));
        const int64_t read = std::min(tiles.front().end * tile_columns, first.x().in) -
                             tiles.front().first * tile_columns;
        counts.inputs.front().reads.done +=
            Elements(first[Dim::i] * rows_of(boxes.inputs.front()) * read);
        for (size_t k = 0; k + 1 < problems.size(); ++k) {
            counts.nests[k].computed.done +=
                Elements(problems[k][Dim::z] * rows_of(boxes.nests[k]) * tiles[k + 1].count() *
                         tile_columns);
        }
    }
    for_each_chain_row(layout, group, problems, boxes, [&](const ChainRow& row) {
        if (row.is_incoming != (layout.lines[row.nest].form == LineForm::scattered)) return;
        counts.nests[row.nest].done +=
            Macs(row.times * layout.multiplications_of_row(
                                 problems[row.nest], static_cast<int>(row.nest), row.y, row.tiles));
    });
}

void count_lines(DoneCounts& counts, const GroupSchedule& group,
                 const std::vector<LayerProblem>& problems, const AskedBoxes& boxes) {
    for (size_t k = 0; k < problems.size(); ++k) {
        const Kernel& kernel = group.nests[k].kernel;
        const KernelRow& row = kernel_row(kernel.kind);
        const bool is_sink = k + 1 == problems.size();
        const BoxRanges like = like_boxes(boxes.nests[k], problems[k]);
        for_each_box(like, [&](const PerDim<Range>& box, int64_t times) {
            counts.nests[k].done += Macs(row.multiplications(problems[k], kernel, box) * times);
            if (is_sink) return;
            // Sums that go on, in boxes of some of the input channels, are stored lane by lane.
            const int64_t columns = box[Dim::x].size();
            const bool is_whole = box[Dim::i].size() == problems[k][Dim::i];
            const int64_t stored = is_whole && row.columns_stored != nullptr
                                       ? row.columns_stored(kernel, columns)
                                       : columns;
            counts.nests[k].computed.done +=
                Elements(box[Dim::z].size() * box[Dim::y].size() * stored * times);
        });
    }
    for (size_t t = 0; t < boxes.inputs.size(); ++t)
        counts.inputs[t].reads.done += Elements(elements(boxes.inputs[t]));
}

/// A map kernel reads its arrays whole and stores Y once. An Add behind it has no kernel of its
/// own, and what it adds is never stored before.
void count_map(DoneCounts& counts, const GroupSchedule& group,
               const std::vector<LayerProblem>& problems) {
    for (size_t k = 0; k < problems.size(); ++k) {
        const LayerProblem& p = problems[k];
        const MapNestDone done = map_nest_done(group, problems, k);
        NestDone& nest = counts.nests[k];
        nest.done = Macs(done.multiplications);
        nest.computed.done = p.output_elements();
        if (group.nests[k].kernel.kind != KernelKind::map_sum)
            counts.output_writes.done = Elements(done.stored_elements);
        if (p.has_weights()) {
            nest.weights.done = Elements(round_up(p[Dim::z], done.channels_together) * p[Dim::i] *
                                         p.y().kernel * p.x().kernel);
        }
    }
    const std::vector<GroupTensor> tensors = group_tensors(problems);
    for (size_t t = 0; t < counts.inputs.size(); ++t)
        counts.inputs[t].reads.done = external_elements(tensors[t], problems);
}

/// Output channels whose weights each nest's kernel reads together.
std::vector<int64_t> channels_together(const GroupSchedule& group,
                                       const std::vector<LayerProblem>& problems) {
    std::vector<int64_t> together(problems.size(), 1);
    const bool is_chain = kernel_row(group.nests.front().kernel.kind).scope == KernelScope::chain;
    const ColumnsLayout layout = is_chain ? columns_layout(group, problems) : ColumnsLayout{};
    for (size_t k = 0; k < problems.size(); ++k) {
        const Kernel& kernel = group.nests[k].kernel;
        if (is_chain) {
            // A scattered layer's blocks are of rows of its kernel.
            if (layout.lines[k].form != LineForm::scattered)
                together[k] = layout.blocks[k].count * layout.blocks[k].scalars;
        } else if (kernel_row(kernel.kind).channels_together != nullptr) {
            together[k] = kernel_row(kernel.kind).channels_together(kernel);
        }
    }
    return together;
}

}  // namespace

DoneCounts done_counts(const GroupSchedule& group, const std::vector<LayerProblem>& problems) {
    DoneCounts counts;
    const AskedBoxes boxes = asked_boxes(group, problems, channels_together(group, problems));
    const GroupCounts scheduled = two_level_counts(problems, group);
    for (size_t k = 0; k < problems.size(); ++k) {
        NestDone nest{problems[k].name, {}, {}, {}, {scheduled.layers[k].weight_reads, {}}};
        nest.scheduled += Macs(needed(problems[k], boxes.nests[k]));
        nest.computed.scheduled += Elements(elements(boxes.nests[k]));
        counts.nests.push_back(nest);
    }
    counts.scratch = scratch_bytes(group, problems);
    for (const InputCounts& input : scheduled.inputs)
        counts.inputs.push_back({input.tensor, {input.reads, {}}});
    counts.output_reads.scheduled = scheduled.output_reads;
    counts.output_writes.scheduled = scheduled.output_writes;
    switch (kernel_row(group.nests.front().kernel.kind).scope) {
        case KernelScope::map:
        case KernelScope::sum:
            count_map(counts, group, problems);
            break;
        case KernelScope::chain:
            count_chain(counts, group, problems, boxes);
            count_weights(counts, problems, boxes);
            count_output(counts, boxes.nests.back());
            break;
        case KernelScope::nest:
            count_lines(counts, group, problems, boxes);
            count_weights(counts, problems, boxes);
            count_output(counts, boxes.nests.back());
            break;
    }
    return counts;
}

Bytes scratch_bytes(const GroupSchedule& group, const std::vector<LayerProblem>& problems,
                    GroupLoops* loops) {
    const Kernel& kernel = group.nests.front().kernel;
    switch (kernel_row(kernel.kind).scope) {
        case KernelScope::map:
        case KernelScope::sum:
            return to_bytes(Elements(map_scratch_elements(group, problems)));
        case KernelScope::chain:
            return to_bytes(Elements(columns_layout(group, problems, loops).scratch_elements()));
        case KernelScope::nest:
            break;
    }
    return to_bytes(Elements(line_plan(group, problems, loops).scratch_elements));
}

std::string difference(const DoneCounts& a, const std::string& a_name, const DoneCounts& b,
                       const std::string& b_name) {
    std::string text;
    const auto compare = [&](const std::string& what, int64_t of_a, int64_t of_b) {
        if (of_a == of_b) return;
        text += (text.empty() ? "" : "; ") + what + ": " + a_name + " " + std::to_string(of_a) +
                ", " + b_name + " " + std::to_string(of_b);
    };
    const auto compare_both = [&](const std::string& what, const ElementsDone& of_a,
                                  const ElementsDone& of_b) {
        compare(what + " scheduled", of_a.scheduled.value(), of_b.scheduled.value());
        compare(what + " done", of_a.done.value(), of_b.done.value());
    };
    for (size_t k = 0; k < std::min(a.nests.size(), b.nests.size()); ++k) {
        const NestDone &of_a = a.nests[k], &of_b = b.nests[k];
        compare(of_a.layer + " scheduled multiplications", of_a.scheduled.value(),
                of_b.scheduled.value());
        compare(of_a.layer + " multiplications done", of_a.done.value(), of_b.done.value());
        compare_both(of_a.layer + " computed elements", of_a.computed, of_b.computed);
        compare_both(of_a.layer + " reads of W", of_a.weights, of_b.weights);
    }
    compare("layers", std::ssize(a.nests), std::ssize(b.nests));
    for (size_t t = 0; t < std::min(a.inputs.size(), b.inputs.size()); ++t)
        compare_both("reads of " + a.inputs[t].tensor, a.inputs[t].reads, b.inputs[t].reads);
    compare("inputs", std::ssize(a.inputs), std::ssize(b.inputs));
    compare_both("reads of Y", a.output_reads, b.output_reads);
    compare_both("writes of Y", a.output_writes, b.output_writes);
    compare("scratch bytes", a.scratch.value(), b.scratch.value());
    return text;
}

}  // namespace laminate
