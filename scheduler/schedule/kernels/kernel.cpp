#include "scheduler/schedule/kernels/kernel.h"

#include <algorithm>
#include <array>
#include <bit>

#include "scheduler/schedule/kernels/rows_of_table.h"

namespace laminate {

namespace {

/// More sums than any processor has registers for are code that no compiler should be asked for.
constexpr int64_t most_sums = 256;
constexpr int64_t most_blocks = 1024;
constexpr int64_t fewest_lanes = 4, most_lanes = 32;

std::string size_text(const Kernel& kernel, KernelSize size) {
    return letter_of(size) + std::to_string(kernel[size]);
}

std::string join(const std::vector<const KernelRow*>& rows) {
    std::string names;
    for (const KernelRow* row : rows) names += (names.empty() ? "" : ", ") + std::string(row->name);
    return names;
}

/// What is wrong with a size, whatever the layer.
std::optional<std::string> limit_refusal(const Kernel& kernel, KernelSize size) {
    if (size == KernelSize::lanes) {
        const int64_t lanes = kernel[size];
        const bool is_power = lanes > 0 && std::has_single_bit(static_cast<uint64_t>(lanes));
        if (is_power && lanes >= fewest_lanes && lanes <= most_lanes) return std::nullopt;
        return size_text(kernel, size) + "; legal: v4, v8, v16, v32";
    }
    const int64_t least = is_switch(size) ? 0 : 1;
    const int64_t most = size == KernelSize::form      ? 2
                         : size == KernelSize::weights ? most_blocks
                         : is_switch(size)             ? 1
                                                       : most_sums;
    if (kernel[size] >= least && kernel[size] <= most) return std::nullopt;
    return size_text(kernel, size) + ", expected " + std::to_string(least) + " to " +
           std::to_string(most);
}

}  // namespace

const std::vector<const KernelRow*>& kernel_table() {
    static const std::vector<const KernelRow*> table{
        &rows_kernel,          &channels_kernel,      &phases_kernel,
        &vectors_kernel,       &winograd_rows_kernel, &winograd_channels_kernel,
        &columns_kernel,       &map_pixels_kernel,    &map_channels_kernel,
        &map_windows_kernel,   &map_panels_kernel,    &map_phases_kernel,
        &map_depthwise_kernel, &map_pooling_kernel,   &map_elementwise_kernel,
        &winograd_map_kernel,  &map_sum_kernel,
    };
    return table;
}

const KernelRow& kernel_row(KernelKind kind) {
    const auto& table = kernel_table();
    return **std::find_if(table.begin(), table.end(),
                          [&](const KernelRow* row) { return row->kind == kind; });
}

std::string kernel_names() { return join(kernel_table()); }

std::string kernel_names_for(const LayerProblem& problem) {
    std::vector<const KernelRow*> rows;
    for (const KernelRow* row : kernel_table()) {
        if (row->accepts(problem)) rows.push_back(row);
    }
    return join(rows);
}

char letter_of(KernelSize size) {
    constexpr PerKernelSize<char> letters{'z', 'y', 'x', 'p', 'h', 'c', 'f', 'w', 'a', 'v'};
    return letters[size];
}

std::string to_text(const Kernel& kernel) {
    const KernelRow& row = kernel_row(kernel.kind);
    std::string text = row.name;
    for (const KernelSize size : row.sizes) {
        if (!is_switch(size) || kernel[size] != 0) text += " " + size_text(kernel, size);
    }
    return text;
}

std::optional<std::string> kernel_refusal(const LayerProblem& p, const Kernel& kernel) {
    const KernelRow& row = kernel_row(kernel.kind);
    if (!row.accepts(p))
        return std::string("the layer is not ") + row.layers + "; legal: " + kernel_names_for(p);
    for (const KernelSize size : row.sizes) {
        if (auto refusal = limit_refusal(kernel, size)) return refusal;
    }
    int64_t sums = 1;
    for (const KernelSize size : {KernelSize::channels, KernelSize::rows, KernelSize::columns}) {
        if (kernel[size] > 0) sums *= kernel[size];
    }
    if (sums > most_sums) {
        return std::to_string(sums) + " sums in registers, expected at most " +
               std::to_string(most_sums);
    }
    return row.size_refusal == nullptr ? std::nullopt : row.size_refusal(p, kernel);
}

bool kernel_pays(const LayerProblem& problem, KernelKind kind) {
    const KernelRow& row = kernel_row(kind);
    return row.accepts(problem) && row.pays != nullptr && row.pays(problem);
}

bool windows_pay(const LayerProblem& problem, bool filters) {
    constexpr int64_t narrowest = 8;
    const bool is_filtered = filters && kernel_pays(problem, KernelKind::winograd_rows) &&
                             problem[Dim::x] > narrowest;
    return !is_filtered && kernel_pays(problem, KernelKind::map_windows);
}

bool panel_of_windows_pays(const LayerProblem& problem, bool filters) {
    constexpr int64_t enough_inputs = 16;
    const bool is_strided = problem.y().stride > 1 || problem.x().stride > 1;
    return (is_strided || windows_pay(problem, filters)) && problem[Dim::i] >= enough_inputs &&
           kernel_row(KernelKind::map_channels).accepts(problem);
}

bool a_map_kernel_pays(const LayerProblem& problem, bool filters) {
    using enum KernelKind;
    constexpr std::array kinds{map_pixels, map_channels, map_panels, map_phases, map_depthwise};
    return windows_pay(problem, filters) ||
           std::any_of(kinds.begin(), kinds.end(),
                       [&](KernelKind kind) { return kernel_pays(problem, kind); });
}

}  // namespace laminate
