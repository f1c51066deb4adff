#include "scheduler/explore/random_kernels.h"

#include <algorithm>

#include "base/error.h"
#include "scheduler/schedule/kernel_legality.h"
#include "scheduler/schedule/kernels/columns.h"

namespace laminate {

namespace {

/// A size as processors have registers for, or a little more.
int64_t random_size(KernelSize size, Rng& rng) {
    switch (size) {
        case KernelSize::channels: return rng.between(1, 6);
        case KernelSize::rows: return rng.between(1, 3);
        case KernelSize::columns: return rng.between(1, 4);
        case KernelSize::pairs: return rng.between(1, 3);
        case KernelSize::half:
        case KernelSize::panel: return rng.chance(1, 4) ? 1 : 0;
        case KernelSize::form: return rng.between(0, 2);
        case KernelSize::weights: return rng.chance(1, 3) ? rng.between(1, 4) : 0;
        case KernelSize::sums: return rng.chance(1, 2) ? 12 : 24;
        case KernelSize::lanes: return 0;  // one for the whole group
    }
    return 0;
}

Kernel random_kernel(const KernelRow& row, int64_t lanes, Rng& rng) {
    Kernel kernel{row.kind, {}};
    for (const KernelSize size : row.sizes)
        kernel.size[size] = size == KernelSize::lanes ? lanes : random_size(size, rng);
    return kernel;
}

/// Of the rows of a scope that accept the layer, one; none if there is none.
const KernelRow* random_row(const LayerProblem& problem, KernelScope scope, Rng& rng) {
    std::vector<const KernelRow*> rows;
    for (const KernelRow* row : kernel_table()) {
        if (row->scope == scope && row->accepts(problem)) rows.push_back(row);
    }
    if (rows.empty()) return nullptr;
    return rows[static_cast<size_t>(rng.below(std::ssize(rows)))];
}

bool is_legal(const GroupSchedule& group, const std::vector<LayerProblem>& problems) {
    try {
        check_kernels(group, problems);
    } catch (const InputError&) {
        return false;
    }
    return true;
}

/// A kernel for the whole group, or nothing where none can be.
bool draw_whole(const std::vector<LayerProblem>& problems, GroupSchedule& group, int64_t lanes,
                Rng& rng) {
    if (is_whole_map_group(group, problems)) {
        const KernelRow* row = random_row(problems.front(), KernelScope::map, rng);
        if (row == nullptr) return false;
        group.nests.front().kernel = random_kernel(*row, lanes, rng);
        if (problems.size() > 1) group.nests.back().kernel = Kernel{KernelKind::map_sum, {}};
        if (is_depthwise_pair(problems))
            group.nests[1].kernel = random_kernel(kernel_row(KernelKind::map_pixels), lanes, rng);
        if (is_pointwise_pair(problems))
            group.nests[1].kernel =
                random_kernel(kernel_row(KernelKind::map_depthwise), lanes, rng);
        return true;
    }
    if (!is_column_chain(problems) || !goes_by_rows(group, problems)) return false;
    const Kernel kernel = random_kernel(kernel_row(KernelKind::columns), lanes, rng);
    for (Nest& nest : group.nests) nest.kernel = kernel;
    return true;
}

}  // namespace

GroupSchedule random_kernels(const std::vector<LayerProblem>& problems, GroupSchedule group,
                             Rng& rng) {
    constexpr int64_t attempts = 200;
    for (int64_t attempt = 0; attempt < attempts; ++attempt) {
        const int64_t lanes = int64_t{4} << rng.below(3);
        GroupSchedule drawn = group;
        if (rng.chance(1, 2) && draw_whole(problems, drawn, lanes, rng)) {
            if (is_legal(drawn, problems)) return drawn;
            continue;
        }
        for (size_t k = 0; k < problems.size(); ++k) {
            const KernelRow* row = random_row(problems[k], KernelScope::nest, rng);
            drawn.nests[k].kernel = random_kernel(*row, lanes, rng);
        }
        if (is_legal(drawn, problems)) return drawn;
    }
    // Register tiles of one channel are legal under every dataflow.
    for (size_t k = 0; k < problems.size(); ++k) {
        const KernelKind kind = !problems[k].has_weights()       ? KernelKind::vectors
                                : problems[k].y().transposed     ? KernelKind::phases
                                                                 : KernelKind::rows;
        Kernel& kernel = group.nests[k].kernel;
        kernel = Kernel{kind, {}};
        for (const KernelSize size : kernel_row(kind).sizes)
            kernel.size[size] = size == KernelSize::lanes ? 8 : size == KernelSize::half ? 0 : 1;
    }
    return group;
}

}  // namespace laminate
