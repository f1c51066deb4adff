// The rows of the table, one source each.
#pragma once

#include "scheduler/schedule/kernels/kernel.h"

namespace laminate {

extern const KernelRow rows_kernel;
extern const KernelRow channels_kernel;
extern const KernelRow phases_kernel;
extern const KernelRow vectors_kernel;
extern const KernelRow winograd_rows_kernel;
extern const KernelRow winograd_channels_kernel;
extern const KernelRow columns_kernel;
extern const KernelRow map_pixels_kernel;
extern const KernelRow map_channels_kernel;
extern const KernelRow map_windows_kernel;
extern const KernelRow map_panels_kernel;
extern const KernelRow map_phases_kernel;
extern const KernelRow map_depthwise_kernel;
extern const KernelRow map_pooling_kernel;
extern const KernelRow map_elementwise_kernel;
extern const KernelRow winograd_map_kernel;
extern const KernelRow map_sum_kernel;

}  // namespace laminate
