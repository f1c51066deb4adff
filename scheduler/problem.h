// The loop problem of one schedulable layer: extents and window, free of ONNX detail. docs/counting.md section 1.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "nets/network.h"

namespace laminate {

/// Loop dimensions of a layer: output channel, row, column; input channel within a group (D_z D_y D_x D_i).
enum class Dim { z = 0, y = 1, x = 2, i = 3 };

/// How one spatial axis of the output reads the input.
struct AxisWindow {
    bool transposed = false;
    int64_t kernel = 1;
    int64_t stride = 1;
    int64_t dilation = 1;
    int64_t pad_begin = 0;
    int64_t in = 1;   ///< input extent
    int64_t out = 1;  ///< output extent (D_y or D_x)
    /// Input coordinate that output `out` multiplies with kernel position `tap`; none on padding and where a transposed
    /// window has no tap.
    [[nodiscard]] std::optional<int64_t> input(int64_t out, int64_t tap) const;
    friend bool operator==(const AxisWindow&, const AxisWindow&) = default;
};

struct LayerProblem {
    LayerId layer = -1;
    std::string name;
    TensorId input = -1;
    TensorId output = -1;
    std::array<int64_t, 4> extent{1, 1, 1, 1};  ///< by Dim: D_z, D_y, D_x, D_i
    std::array<AxisWindow, 2> window;           ///< y, x
    int64_t groups = 1;
    int64_t in_channels = 1;                    ///< groups * D_i

    [[nodiscard]] int64_t operator[](Dim d) const { return extent[static_cast<size_t>(d)]; }
    [[nodiscard]] const AxisWindow& y() const { return window[0]; }
    [[nodiscard]] const AxisWindow& x() const { return window[1]; }
    [[nodiscard]] Elements weight_elements() const;  ///< kernel_y * kernel_x * D_i * D_z
    [[nodiscard]] Elements output_elements() const;  ///< D_z * D_y * D_x
    [[nodiscard]] Elements input_elements() const;
};

/// True for the layers that a schedule covers: conv, gemm, and conv_transpose whose kernel is at least its stride and that is
/// not both strided and dilated; and of these only where every output's window reaches a real input (no output depends on
/// padding alone). The others run on the reference operators.
[[nodiscard]] bool is_schedulable(const Network& network, LayerId layer);
[[nodiscard]] LayerProblem layer_problem(const Network& network, LayerId layer);

/// Maximal chains of schedulable layers: each layer but the last feeds exactly the next one and is no network output.
/// Every schedulable layer is in exactly one chain.
[[nodiscard]] std::vector<std::vector<LayerId>> schedulable_chains(const Network& network);

}  // namespace laminate
