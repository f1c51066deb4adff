#include "scheduler/schedule/open_group.h"

#include <algorithm>
#include <string>

#include "base/error.h"
#include "base/units.h"
#include "nets/network/picture_views.h"
#include "scheduler/schedule/buffer_shapes.h"
#include "scheduler/schedule/kernels/columns.h"
#include "scheduler/schedule/sampled_window.h"

namespace laminate {

namespace {

[[noreturn]] void refuse(const std::string& layer, const std::string& why) {
    throw InputError("layer " + layer + ": cannot be of any size: " + why);
}

bool is_supported(KernelKind kind) {
    switch (kind) {
        case KernelKind::rows:
        case KernelKind::channels:
        case KernelKind::phases:
        case KernelKind::vectors:
        case KernelKind::winograd_rows:
        case KernelKind::columns:
            return true;
        default:
            return false;
    }
}

/// Sizes at which a group's buffers are looked at: tall enough for several strips and tiles, with
/// every remainder of small strides.
std::vector<SizeValues> probes(const GroupSchedule& group,
                               const std::vector<LayerProblem>& problems,
                               const TensorSizes& sizes) {
    constexpr int64_t tiles = 12;
    constexpr int64_t tallest = int64_t{1} << 20;
    const LayerProblem& sink = problems.back();
    const SizeFormula out = sizes.extent(sink.output, Dim::y);
    SizeValues size = sizes.reference();
    size.rows = std::max<int64_t>(sizes.least().rows, 16);
    while (out.at(size) < tiles * group.nests.back()[Dim::y] && size.rows < tallest)
        size.rows *= 2;
    const int64_t unit = strip_unit(group, problems, Dim::y);
    std::vector<SizeValues> all;
    for (const int64_t more : {0, 1, 2, 3}) {
        for (const int64_t strips : {2, 5}) {
            SizeValues probe = size;
            probe.rows += more;
            probe.strip_rows = strips * unit;
            probe.strip_columns = size.columns;
            all.push_back(probe);
        }
    }
    all.push_back(all.front());
    all.back().rows = 4 * size.rows + 5;
    all.back().strip_rows = 19 * unit;
    return all;
}

}  // namespace

bool depends_on_size(const std::vector<LayerProblem>& problems, const TensorSizes& sizes) {
    const auto is_open = [&](TensorId tensor) {
        return !sizes.extent(tensor, Dim::y).is_constant() ||
               !sizes.extent(tensor, Dim::x).is_constant();
    };
    return std::any_of(problems.begin(), problems.end(), [&](const LayerProblem& p) {
        return is_open(p.output) ||
               std::any_of(p.inputs.begin(), p.inputs.end(),
                           [&](const LayerInput& input) { return is_open(input.tensor); });
    });
}

int64_t strip_unit(const GroupSchedule& group, const std::vector<LayerProblem>& problems, Dim d) {
    // Pairs of rows of a producer begin where a strip of whole tiles begins.
    if (d == Dim::y) return round_up(group.nests.back()[Dim::y], 2);
    constexpr int64_t vector = 16;
    const AxisWindow& w = problems.back().x();
    return tile_columns * vector * (w.transposed ? w.stride : 1);
}

void require_any_size(const GroupSchedule& group, const std::vector<LayerProblem>& problems,
                      const TensorSizes& sizes) {
    SizeValues larger = sizes.reference();
    larger.rows = 2 * larger.rows + 1;
    larger.columns = 2 * larger.columns + 1;
    const Network network = sizes.network_at(larger);
    for (size_t k = 0; k < problems.size(); ++k) {
        const Nest& nest = group.nests[k];
        const LayerProblem& p = problems[k];
        if (!is_supported(nest.kernel.kind))
            refuse(nest.layer, "its kernel " + to_text(nest.kernel) + " has code for one size only");
        if (nest.kernel[KernelSize::half] != 0 && !sizes.extent(p.output, Dim::x).is_constant())
            refuse(nest.layer, "its kernel " + to_text(nest.kernel) +
                                   " has half a vector at the end of rows; expected h0");
        if (p.operation == Operation::resample &&
            !(open_axes(network.layer(p.layer).general, network.tensor(p.inputs.front().tensor).dims) &&
              same_samplings(p, layer_problem(network, p.layer))))
            refuse(nest.layer, "what its outputs read does not repeat itself, or by the size");
        if (nest[Dim::x] != p[Dim::x])
            refuse(nest.layer, "its tiles have " + std::to_string(nest[Dim::x]) + " of " +
                                   std::to_string(p[Dim::x]) + " columns; expected whole rows");
        if (nest.kernel.kind != KernelKind::columns && nest.strip[1] != 0)
            refuse(nest.layer, "strips of columns; expected strips of rows");
        for (const LayerInput& input : p.inputs) {
            if (!input.is_pixel &&
                sizes.extent(input.tensor, Dim::x).is_constant() !=
                sizes.extent(p.output, Dim::x).is_constant())
                refuse(nest.layer, "it makes a map of a fixed size of one of any size");
        }
    }
}

GroupSchedule group_at(const GroupSchedule& group, const std::vector<LayerProblem>& problems,
                       const std::vector<LayerProblem>& problems_at, const SizeValues& strips) {
    GroupSchedule at = group;
    for (size_t k = 0; k < problems.size(); ++k) {
        Nest& nest = at.nests[k];
        for (const Dim d : {Dim::y, Dim::x}) {
            const int64_t extent = problems_at[k][d];
            nest.tile[d] = nest[d] == problems[k][d] ? extent : std::min(nest[d], extent);
            int64_t& strip = nest.strip[static_cast<size_t>(d) - 1];
            const int64_t wanted = d == Dim::y ? strips.strip_rows : strips.strip_columns;
            if (strip != 0) strip = std::min(wanted, extent);
        }
    }
    return at;
}

std::vector<KeptRows> kept_rows(const GroupSchedule& group,
                                const std::vector<LayerProblem>& problems,
                                const TensorSizes& sizes) {
    const std::vector<GroupTensor> tensors = group_tensors(problems);
    std::vector<LayerId> layers;
    for (const LayerProblem& p : problems) layers.push_back(p.layer);
    std::vector<KeptRows> kept(tensors.size(), KeptRows{0, true});
    std::vector<int64_t> before;
    for (const SizeValues& probe : probes(group, problems, sizes)) {
        before.clear();
        const std::vector<LayerProblem> at = layer_problems(sizes.network_at(probe), layers);
        const auto shapes =
            buffer_shapes(group_at(group, problems, at, probe), at, StripRange::any).tensors;
        for (size_t t = 0; t < tensors.size(); ++t) {
            const TensorReader& reader = tensors[t].readers.front();
            const int64_t rows = shapes[t].extent[1];
            before.push_back(kept[t].rows);
            kept[t].rows = std::max(kept[t].rows, rows);
            kept[t].all = kept[t].all && rows == at[static_cast<size_t>(reader.nest)]
                                                    .operand_extents(reader.operand)[1];
        }
    }
    // The last probe is taller, with longer strips.
    for (size_t t = 0; t < tensors.size(); ++t) {
        if (!kept[t].all && kept[t].rows > before[t]) {
            refuse(problems[static_cast<size_t>(tensors[t].readers.front().nest)].name,
                   "the rows that it keeps of " + tensors[t].name + " grow with the picture or its strips");
        }
    }
    return kept;
}

}  // namespace laminate
