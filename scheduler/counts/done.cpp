#include "scheduler/counts/done.h"

#include <algorithm>

#include "scheduler/counts/chain_rows.h"
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

/// Multiply-accumulates of a box.
int64_t needed(const LayerProblem& p, const PerDim<Range>& box) {
    if (!p.has_weights()) return 0;
    return box[Dim::z].size() * box[Dim::i].size() * taps(p.y(), box[Dim::y]) *
           taps(p.x(), box[Dim::x]);
}

int64_t elements(const PerDim<Range>& box) {
    return box[Dim::z].size() * box[Dim::y].size() * box[Dim::x].size();
}

/// Y is written by every box of the sink, and read back by boxes that continue a sum.
void count_output(DoneCounts& counts, const BoxRanges& boxes) {
    for_each_box(boxes, [&](const PerDim<Range>& box, int64_t times) {
        counts.output_writes += Elements(elements(box) * times);
        if (box[Dim::i].begin > 0) counts.output_reads += Elements(elements(box) * times);
    });
}

/// A chain goes row by row over strips of columns, each of whole tiles. A scattered nest multiplies
/// when a row comes, the others when they compute one.
void count_chain(DoneCounts& counts, const GroupSchedule& group,
                 const std::vector<LayerProblem>& problems, const AskedBoxes& boxes) {
    const ColumnsLayout layout = columns_layout(group, problems);
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
        const auto multiplications = kernel_row(kernel.kind).multiplications;
        for_each_box(boxes.nests[k], [&](const PerDim<Range>& box, int64_t times) {
            counts.nests[k].done += Macs(multiplications(problems[k], kernel, box) * times);
        });
    }
    for (const BoxRanges& input : boxes.inputs) {
        for_each_box(input, [&](const PerDim<Range>& box, int64_t times) {
            counts.copied += Elements(elements(box) * times);
        });
    }
}

}  // namespace

DoneCounts done_counts(const GroupSchedule& group, const std::vector<LayerProblem>& problems) {
    DoneCounts counts;
    const AskedBoxes boxes = asked_boxes(group, problems);
    for (size_t k = 0; k < problems.size(); ++k) {
        NestDone nest{problems[k].name, {}, {}};
        for_each_box(boxes.nests[k], [&](const PerDim<Range>& box, int64_t times) {
            nest.scheduled += Macs(needed(problems[k], box) * times);
        });
        counts.nests.push_back(nest);
    }
    counts.scratch = scratch_bytes(group, problems);
    const Kernel& kernel = group.nests.front().kernel;
    switch (kernel_row(kernel.kind).scope) {
        case KernelScope::map:
        case KernelScope::sum:
            counts.nests.front().done = Macs(map_multiplications(problems.front(), kernel));
            counts.output_writes = Elements(map_stored_elements(problems.front(), kernel));
            break;
        case KernelScope::chain:
            count_chain(counts, group, problems, boxes);
            count_output(counts, boxes.nests.back());
            break;
        case KernelScope::nest:
            count_lines(counts, group, problems, boxes);
            count_output(counts, boxes.nests.back());
            break;
    }
    return counts;
}

Bytes scratch_bytes(const GroupSchedule& group, const std::vector<LayerProblem>& problems) {
    const Kernel& kernel = group.nests.front().kernel;
    switch (kernel_row(kernel.kind).scope) {
        case KernelScope::map:
        case KernelScope::sum:
            return to_bytes(Elements(map_scratch_elements(problems.front(), kernel)));
        case KernelScope::chain:
            return to_bytes(Elements(columns_layout(group, problems).scratch_elements()));
        case KernelScope::nest:
            break;
    }
    return to_bytes(Elements(line_plan(group, problems).scratch_elements));
}

std::string difference(const DoneCounts& a, const std::string& a_name, const DoneCounts& b,
                       const std::string& b_name) {
    std::string text;
    const auto compare = [&](const std::string& what, int64_t of_a, int64_t of_b) {
        if (of_a == of_b) return;
        text += (text.empty() ? "" : "; ") + what + ": " + a_name + " " + std::to_string(of_a) +
                ", " + b_name + " " + std::to_string(of_b);
    };
    for (size_t k = 0; k < std::min(a.nests.size(), b.nests.size()); ++k) {
        compare(a.nests[k].layer + " scheduled multiplications", a.nests[k].scheduled.value(),
                b.nests[k].scheduled.value());
        compare(a.nests[k].layer + " multiplications done", a.nests[k].done.value(),
                b.nests[k].done.value());
    }
    compare("layers", std::ssize(a.nests), std::ssize(b.nests));
    compare("elements copied", a.copied.value(), b.copied.value());
    compare("reads of Y", a.output_reads.value(), b.output_reads.value());
    compare("writes of Y", a.output_writes.value(), b.output_writes.value());
    compare("scratch bytes", a.scratch.value(), b.scratch.value());
    return text;
}

}  // namespace laminate
