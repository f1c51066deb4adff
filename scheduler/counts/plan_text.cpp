#include "scheduler/counts/plan_text.h"

#include <cstdio>
#include <map>

#include "scheduler/counts/done.h"
#include "scheduler/schedule/buffer_shapes.h"
#include "scheduler/schedule/kernels/kernel_layouts.h"
#include "scheduler/schedule/kernels/line_plan.h"

namespace laminate {

namespace {

std::string with_thousands(int64_t n) {
    std::string digits = std::to_string(n);
    for (auto at = static_cast<int64_t>(digits.size()) - 3; at > 0; at -= 3)
        digits.insert(static_cast<size_t>(at), ",");
    return digits;
}

std::string ratio_text(Macs done, Macs scheduled) {
    if (scheduled == Macs{}) return "";
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), " (%.3f)",
                  static_cast<double>(done.value()) / static_cast<double>(scheduled.value()));
    return text.data();
}

/// Sizes of boxes, largest first, with how often: "z32 y4 x480 i3 (128 times), 2 more sizes".
std::string boxes_text(const BoxRanges& ranges) {
    std::map<std::array<int64_t, 4>, int64_t, std::greater<>> sizes;
    for_each_box(ranges, [&](const PerDim<Range>& box, int64_t times) {
        sizes[{box[Dim::z].size(), box[Dim::y].size(), box[Dim::x].size(), box[Dim::i].size()}] +=
            times;
    });
    constexpr size_t most = 3;
    std::string text;
    size_t shown = 0;
    for (const auto& [size, times] : sizes) {
        if (shown++ == most) break;
        text += text.empty() ? "" : ", ";
        for (const Dim d : all_dims) {
            text += d == Dim::z ? "" : " ";
            text += letter_of(d) + std::to_string(size[static_cast<size_t>(d)]);
        }
        text += times == 1 ? " once" : " " + with_thousands(times) + " times";
    }
    if (sizes.size() > most) text += ", " + std::to_string(sizes.size() - most) + " more sizes";
    return text;
}

std::string rings_text(const GroupSchedule& group, const std::vector<LayerProblem>& problems) {
    const LinePlan plan = line_plan(group, problems);
    const std::vector<GroupTensor> tensors = group_tensors(problems);
    std::string text;
    for (size_t t = 0; t < tensors.size(); ++t) {
        const RingLayout& ring = plan.rings[t];
        const int64_t rows = ring.parts ? ring.parts->kept : ring.rows;
        text += "  " + tensors[t].name + ": " + std::to_string(rows) + " rows x " +
                std::to_string(ring.channels) + " channels x " + std::to_string(ring.pitch) +
                " columns at element " + with_thousands(ring.offset) + "; columns: buffer " +
                std::to_string(ring.columns) + ", padding " + std::to_string(ring.padding) +
                ", vectors " + std::to_string(ring.pitch - ring.columns - ring.padding) + "\n";
        if (!ring.parts) continue;
        text += "    with a step come";
        for (const RingParts::Block& block : ring.parts->blocks) {
            text += &block == &ring.parts->blocks.front() ? " " : ", ";
            text += std::to_string(block.rows) + " rows";
            if (block.in_ring > 0) text += ", " + std::to_string(block.in_ring) + " of them in the ring,";
            text += " at element " + with_thousands(block.offset);
        }
        text += "\n";
    }
    if (plan.transforms_offset > plan.weights_offset) {
        text += "  transformed weights: " +
                with_thousands(plan.transforms_offset - plan.weights_offset) +
                " elements at element " + with_thousands(plan.weights_offset) + "\n";
    }
    if (plan.scratch_elements > plan.transforms_offset) {
        text += "  transforms: " + with_thousands(plan.scratch_elements - plan.transforms_offset) +
                " elements at element " + with_thousands(plan.transforms_offset) + "\n";
    }
    return text;
}

std::string lines_text(const GroupSchedule& group, const std::vector<LayerProblem>& problems) {
    const ColumnsLayout layout = columns_layout(group, problems);
    std::string text;
    for (size_t t = 0; t < layout.lines.size(); ++t) {
        const ColumnLine& line = layout.lines[t];
        const char* form = line.form == LineForm::plain      ? "plain"
                           : line.form == LineForm::gathered ? "transformed"
                                                             : "transformed block";
        text += "  " + (t == 0 ? problems.front().inputs.front().name : problems[t - 1].name) +
                ": " + form + ", " + std::to_string(line.rows) + " rows x " +
                std::to_string(line.planes) + " planes x " + std::to_string(line.channels) +
                " channels x " + std::to_string(line.pitch) + " tiles at element " +
                with_thousands(line.offset) + "\n";
    }
    return text;
}

}  // namespace

std::string plan_text(const GroupSchedule& group, const std::vector<LayerProblem>& problems) {
    const DoneCounts counts = done_counts(group, problems);
    const AskedBoxes boxes = asked_boxes(group, problems);
    std::string text = "plan of " + problems.front().name;
    if (problems.size() > 1) text += " .. " + problems.back().name;
    text += ": scratch " + with_thousands(counts.scratch.value()) + " bytes a thread\n";
    for (size_t k = 0; k < problems.size(); ++k) {
        const NestDone& nest = counts.nests[k];
        text += "  " + nest.layer + ": kernel " + to_text(group.nests[k].kernel) + "\n";
        text += "    boxes " + boxes_text(boxes.nests[k]) + "\n";
        text += "    multiplications scheduled " + with_thousands(nest.scheduled.value()) +
                ", done " + with_thousands(nest.done.value()) +
                ratio_text(nest.done, nest.scheduled) + "\n";
    }
    switch (kernel_row(group.nests.front().kernel.kind).scope) {
        case KernelScope::nest:
            return text + rings_text(group, problems);
        case KernelScope::chain:
            return text + lines_text(group, problems);
        case KernelScope::map:
        case KernelScope::sum:
            break;
    }
    return text;
}

}  // namespace laminate
