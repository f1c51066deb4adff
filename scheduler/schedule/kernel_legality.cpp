#include "scheduler/schedule/kernel_legality.h"

#include <algorithm>
#include <span>
#include <string>

#include "base/error.h"
#include "base/units.h"
#include "scheduler/schedule/buffer_shapes.h"
#include "scheduler/schedule/kernels/columns.h"
#include "scheduler/schedule/kernels/layer_forms.h"

namespace laminate {

namespace {

[[noreturn]] void refuse(const Nest& nest, const std::string& why) {
    throw InputError(nest.layer + ": kernel " + to_text(nest.kernel) + ": " + why);
}

/// Sums stay in registers over all input channels and columns unless the dataflow cuts them, so a
/// kernel may ask for boxes that have all of a dimension.
void check_boxes(const GroupSchedule& group, const std::vector<LayerProblem>& problems) {
    const auto has_blocks_of_a_group = [&](size_t k) {
        return problems[k].groups > 1 && group.nests[k].kernel[KernelSize::channels] > 1;
    };
    const auto asked = [&](size_t k) {
        PerDim<bool> wanted = kernel_row(group.nests[k].kernel.kind).whole;
        if (group.nests[k].kernel[KernelSize::half] != 0) wanted[Dim::x] = true;
        if (has_blocks_of_a_group(k)) wanted[Dim::z] = true;
        return wanted;
    };
    bool asks = false;
    for (size_t k = 0; k < problems.size(); ++k) {
        const PerDim<bool> wanted = asked(k);
        asks = asks || std::find(wanted.begin(), wanted.end(), true) != wanted.end();
    }
    if (!asks) return;
    const std::vector<PerDim<bool>> whole = whole_dimensions(group, problems);
    std::vector<bool> at_once;
    for (size_t k = 0; k < problems.size(); ++k) {
        const Nest& nest = group.nests[k];
        const PerDim<bool> wanted = asked(k);
        if (has_blocks_of_a_group(k) && !whole[k][Dim::z]) {
            refuse(nest, "its boxes have parts of the " + std::to_string(problems[k][Dim::z]) +
                             " output channels, so a block of channels would lie in two groups of "
                             "them; expected z1");
        }
        for (const Dim d : all_dims) {
            if (!wanted[d] || whole[k][d]) continue;
            refuse(nest, std::string("its boxes have parts of the ") +
                             std::to_string(problems[k][d]) + " coordinates of " + letter_of(d) +
                             "; expected all of them, or another kernel: " +
                             kernel_names_for(problems[k]));
        }
        if (kernel_row(nest.kernel.kind).whole_strips && !whole[k][Dim::x]) {
            if (at_once.empty()) at_once = columns_at_once(group, problems);
            if (!at_once[k])
                refuse(nest, "its boxes have parts of the columns of a strip; expected all of them, "
                             "stored inside the strip loops, or another kernel: " +
                                 kernel_names_for(problems[k]));
        }
        const bool pairs_rows = nest.kernel.kind == KernelKind::winograd_rows ||
                                nest.kernel.kind == KernelKind::winograd_channels;
        if (pairs_rows && k + 1 < problems.size() && !strips_begin_anew(group)) {
            refuse(nest, "its rows are kept from strip to strip, so the strips that a thread takes "
                         "would decide which rows are paired; expected its output stored inside "
                         "the strip loops, or another kernel: " +
                             kernel_names_for(problems[k]));
        }
    }
}

/// Weights of a kernel may lie in blocks of output channels, which a box then has whole ones of.
void check_blocks(const GroupSchedule& group, const std::vector<LayerProblem>& problems) {
    const auto block = [&](size_t k) {
        const KernelRow& row = kernel_row(group.nests[k].kernel.kind);
        return row.has_whole_blocks ? row.channels_together(group.nests[k].kernel) : 1;
    };
    bool asks = false;
    for (size_t k = 0; k < problems.size(); ++k) asks = asks || block(k) > 1;
    if (!asks) return;
    const std::vector<int64_t> asked = channel_blocks(group, problems);
    for (size_t k = 0; k < problems.size(); ++k) {
        if (asked[k] % block(k) == 0) continue;
        refuse(group.nests[k], "its boxes begin or end at multiples of " +
                                   std::to_string(asked[k]) + " output channels; expected multiples of the " +
                                   std::to_string(block(k)) +
                                   " that it computes together, or another kernel: " +
                                   kernel_names_for(problems[k]));
    }
}

/// A depthwise layer that fills the panel of the 1x1 layer behind it.
void check_depthwise_pair(const GroupSchedule& group, const std::vector<LayerProblem>& problems) {
    const Nest& first = group.nests[0];
    const Nest& second = group.nests[1];
    if (first.kernel.kind != KernelKind::map_depthwise)
        refuse(first, "before a 1x1 layer of its group; legal: map_depthwise");
    if (second.kernel.kind != KernelKind::map_pixels || second.kernel[KernelSize::panel] != 0)
        refuse(second, "behind map_depthwise; legal: map_pixels without c");
    const LayerProblem& p = problems[1];
    const int64_t rows = second[Dim::y];
    const int64_t pixels = (p[Dim::y] - (ceil_div(p[Dim::y], rows) - 1) * rows) * p[Dim::x];
    if (pixels < second.kernel[KernelSize::lanes]) {
        refuse(second, "a tile of " + std::to_string(pixels) +
                           " pixels, expected a vector of them or more in each tile of rows");
    }
}

/// A 1x1 layer that computes blocks of channels for the depthwise layer behind it.
void check_pointwise_pair(const GroupSchedule& group) {
    if (group.nests[0].kernel.kind != KernelKind::map_channels)
        refuse(group.nests[0], "before a depthwise layer of its group; legal: map_channels");
    if (group.nests[1].kernel.kind != KernelKind::map_depthwise)
        refuse(group.nests[1], "behind map_channels; legal: map_depthwise");
}

void check_map(const GroupSchedule& group, const std::vector<LayerProblem>& problems) {
    if (!is_whole_map_group(group, problems)) {
        refuse(group.nests.front(),
               "expected a group of this layer, or of a depthwise layer and a 1x1 layer of its "
               "output, or of either and an Add of its output, or of a 1x1 layer and a depthwise "
               "layer of its output, with whole tiles of channels and columns and without strips");
    }
    if (is_pointwise_pair(problems)) return check_pointwise_pair(group);
    const bool is_pair = is_depthwise_pair(problems);
    if (is_pair) check_depthwise_pair(group, problems);
    if (problems.size() > (is_pair ? 2U : 1U) &&
        group.nests.back().kernel.kind != KernelKind::map_sum)
        refuse(group.nests.back(), "behind a map kernel; legal: map_sum");
}

void check_chain(const GroupSchedule& group, const std::vector<LayerProblem>& problems) {
    for (const Nest& nest : group.nests) {
        if (nest.kernel != group.nests.front().kernel) {
            refuse(nest, "expected " + to_text(group.nests.front().kernel) +
                             ", which computes the whole chain");
        }
    }
    if (!is_column_chain(problems)) {
        refuse(group.nests.front(),
               "expected a chain of an input of 64 columns or more, only its last layer transposed");
    }
    if (!goes_by_rows(group, problems)) {
        refuse(group.nests.front(),
               "expected whole rows of all channels at every step, kept for the innermost strip");
    }
}

}  // namespace

void check_kernels(const GroupSchedule& group, const std::vector<LayerProblem>& problems) {
    const auto chosen =
        std::count_if(group.nests.begin(), group.nests.end(),
                      [](const Nest& nest) { return nest.kernel.is_chosen(); });
    if (chosen == 0) return;
    for (size_t k = 0; k < problems.size(); ++k) {
        const Nest& nest = group.nests[k];
        if (!nest.kernel.is_chosen()) {
            throw InputError(nest.layer + ": no kernel, though other layers of its group have one; "
                             "legal: " + kernel_names_for(problems[k]));
        }
        if (const auto why = kernel_refusal(problems[k], nest.kernel)) refuse(nest, *why);
    }
    const Nest& first = group.nests.front();
    const KernelScope scope = kernel_row(first.kernel.kind).scope;
    if (scope == KernelScope::sum) refuse(first, "expected a map kernel before it");
    if (scope == KernelScope::map) return check_map(group, problems);
    if (scope == KernelScope::chain) return check_chain(group, problems);
    for (const Nest& nest : group.nests) {
        if (kernel_row(nest.kernel.kind).scope != KernelScope::nest)
            refuse(nest, "in a group with " + to_text(first.kernel) +
                             "; expected kernels over line buffers in all of its layers");
        if (nest.kernel[KernelSize::lanes] != first.kernel[KernelSize::lanes])
            refuse(nest, "expected v" + std::to_string(first.kernel[KernelSize::lanes]) +
                             ", the vectors of the whole group");
    }
    check_boxes(group, problems);
    check_blocks(group, problems);
}

namespace {

/// An Add of the output of `layer` and of tensors that no other one of `layers` reads or computes.
bool adds_to(const LayerProblem& layer, const LayerProblem& add, std::span<const LayerProblem> layers) {
    if (add.operation != Operation::add) return false;
    const std::vector<LayerInput>& operands = add.inputs;
    const auto reads = [&](TensorId tensor) {
        return std::any_of(operands.begin(), operands.end(),
                           [&](const LayerInput& o) { return o.tensor == tensor; });
    };
    const bool is_of_one_shape =
        std::none_of(operands.begin(), operands.end(),
                     [](const LayerInput& o) { return o.is_pixel || o.is_plane; });
    return is_of_one_shape && reads(layer.output) &&
           std::none_of(layers.begin(), layers.end(), [&](const LayerProblem& other) {
               return std::any_of(other.inputs.begin(), other.inputs.end(),
                                  [&](const LayerInput& in) { return reads(in.tensor); });
           });
}

}  // namespace

bool ends_in_add(const std::vector<LayerProblem>& problems) {
    return problems.size() == 2 &&
           adds_to(problems.front(), problems.back(), std::span(problems).first(1));
}

bool is_depthwise_pair(const std::vector<LayerProblem>& problems) {
    if (problems.size() < 2 || problems.size() > 3) return false;
    const LayerProblem& depthwise = problems[0];
    const LayerProblem& pointwise = problems[1];
    return kernel_row(KernelKind::map_depthwise).accepts(depthwise) &&
           kernel_row(KernelKind::map_pixels).accepts(pointwise) &&
           pointwise.inputs.front().tensor == depthwise.output &&
           (problems.size() == 2 || adds_to(pointwise, problems[2], std::span(problems).first(2)));
}

bool is_pointwise_pair(const std::vector<LayerProblem>& problems) {
    if (problems.size() != 2) return false;
    const LayerProblem& pointwise = problems[0];
    const LayerProblem& depthwise = problems[1];
    return kernel_row(KernelKind::map_channels).accepts(pointwise) && is_pointwise(pointwise) &&
           kernel_row(KernelKind::map_depthwise).accepts(depthwise) &&
           depthwise.inputs.front().tensor == pointwise.output;
}

bool is_whole_map_group(const GroupSchedule& group, const std::vector<LayerProblem>& problems) {
    if (problems.size() > 1 && !ends_in_add(problems) && !is_depthwise_pair(problems) &&
        !is_pointwise_pair(problems))
        return false;
    if (group.nests.back().loops.front().band == Band::strip) return false;
    for (size_t k = 0; k < problems.size(); ++k) {
        for (const Dim d : {Dim::z, Dim::x, Dim::i}) {
            if (group.nests[k][d] != problems[k][d]) return false;
        }
    }
    return true;
}

bool goes_by_rows(const GroupSchedule& group, const std::vector<LayerProblem>& problems) {
    const Nest& last = group.nests.back();
    int strips = 0;
    while (last.loops[static_cast<size_t>(strips)].band == Band::strip) ++strips;
    const Level store = strips == 0 ? Level{} : Level{group.sink(), strips - 1};
    for (int k = 0; k <= group.sink(); ++k) {
        const Nest& nest = group.nests[static_cast<size_t>(k)];
        for (const Dim d : {Dim::z, Dim::x, Dim::i}) {
            if (nest[d] != problems[static_cast<size_t>(k)][d]) return false;
        }
        const Placement& lines =
            k == 0 ? nest.x.front().placement : group.nests[static_cast<size_t>(k) - 1].y;
        if (lines.store != store) return false;
        if (lines.compute.is_root()) continue;
        const Nest& around = group.nests[static_cast<size_t>(lines.compute.nest)];
        if (around.loops[static_cast<size_t>(lines.compute.loop)].band == Band::inner) return false;
    }
    return true;
}

bool strips_begin_anew(const GroupSchedule& group) {
    if (group.nests.back().loops.front().band != Band::strip) return true;
    return std::none_of(group.nests.begin(), group.nests.end() - 1,
                        [](const Nest& nest) { return nest.y.store.is_root(); });
}

}  // namespace laminate
