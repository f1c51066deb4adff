// The code that a group gets by default, if it gets a kernel of the kind in question.
#pragma once

#include <optional>

#include "generators/kernels/group_kernels.h"

namespace laminate {

template <class Wanted>
std::optional<GroupCode> code_if(const Network& network, const GroupSchedule& group,
                                 const VectorUnit& unit, const KernelOptions& options,
                                 const Wanted& wanted) {
    const GroupSchedule chosen =
        with_default_kernels(group_problems(network, group), group, unit, options);
    if (!wanted(chosen.nests.front().kernel)) return std::nullopt;
    return group_code(network, chosen);
}

/// A kernel over whole arrays, Winograd's filtering apart.
inline std::optional<GroupCode> map_code(const Network& network, const GroupSchedule& group,
                                         const VectorUnit& unit, KernelOptions options = {}) {
    options.winograd = false;
    return code_if(network, group, unit, options, [](const Kernel& kernel) {
        return kernel_row(kernel.kind).scope == KernelScope::map;
    });
}

inline std::optional<GroupCode> winograd_map_code(const Network& network,
                                                  const GroupSchedule& group,
                                                  const VectorUnit& unit,
                                                  const KernelOptions& options = {}) {
    return code_if(network, group, unit, options,
                   [](const Kernel& kernel) { return kernel.kind == KernelKind::winograd_map; });
}

inline std::optional<GroupCode> column_code(const Network& network, const GroupSchedule& group,
                                            const VectorUnit& unit) {
    return code_if(network, group, unit, {},
                   [](const Kernel& kernel) { return kernel.kind == KernelKind::columns; });
}

}  // namespace laminate
