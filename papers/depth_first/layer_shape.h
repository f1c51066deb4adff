// One layer, or one tile of a layer, as a nest of seven loops, and what each operand sees of them.
// DeFiNES and ZigZag: a loop is relevant to an operand (it indexes it), irrelevant, or, for the
// input's rows and columns, partially relevant.
//
// Loops in the hardware papers' letters: G groups, K output channels of a group, C input channels
// of a group, OY OX output rows and columns, FY FX kernel rows and columns. A depthwise layer, a
// pooling and an addition have K = C = 1.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "papers/window_steps.h"
#include "scheduler/machine/machine.h"

namespace laminate::depth_first {

/// In the order of their names: orders of loops are visited by it.
enum class Dim { c, fx, fy, g, k, ox, oy };
inline constexpr size_t dim_count = 7;
/// Its place among arrays of all of them.
[[nodiscard]] constexpr size_t index_of(Dim dim) { return static_cast<size_t>(dim); }
[[nodiscard]] const char* to_string(Dim dim);

enum class LayerType {
    convolution,  ///< also fully connected
    depthwise,
    pooling,   ///< a depthwise layer whose weights have no bits
    addition,  ///< of two operands
};

/// Integer sizes of the loops.
class Sizes {
public:
    Sizes() { sizes_.fill(1); }
    int64_t& operator[](Dim dim) { return sizes_[index_of(dim)]; }
    int64_t operator[](Dim dim) const { return sizes_[index_of(dim)]; }
    auto operator<=>(const Sizes&) const = default;

private:
    std::array<int64_t, dim_count> sizes_{};
};

struct Stride {
    int64_t x = 1;
    int64_t y = 1;
    auto operator<=>(const Stride&) const = default;
};

struct LayerShape {
    LayerType type = LayerType::convolution;
    Sizes sizes;
    Stride stride;
    Stride dilation;  ///< steps between taps of a kernel; above 1 only where the stride is 1
    /// Inputs are indexed by the output's rows and columns; only for windows of one element without
    /// stride. Additions always are.
    bool direct_input = false;

    [[nodiscard]] int64_t macs() const;
    [[nodiscard]] int64_t input_width() const;
    [[nodiscard]] int64_t input_height() const;
    [[nodiscard]] int64_t input_channels() const { return sizes[Dim::g] * sizes[Dim::c]; }
    [[nodiscard]] int64_t output_channels() const { return sizes[Dim::g] * sizes[Dim::k]; }
    [[nodiscard]] int64_t output_elements() const;
    [[nodiscard]] int64_t input_elements() const;  ///< of one operand
    /// 0 for poolings and additions.
    [[nodiscard]] int64_t weight_elements() const;
    [[nodiscard]] int input_operands() const { return type == LayerType::addition ? 2 : 1; }
    auto operator<=>(const LayerShape&) const = default;
};

/// Operands of a layer in the order in which costs are summed: the output, then what is read.
enum class Role { output, weight, input, second_input };
[[nodiscard]] const char* to_string(Role role);  ///< "O", "W", "I", "I2"
[[nodiscard]] std::vector<Role> roles(LayerType type);
/// The hierarchy of the machine that holds it.
[[nodiscard]] Operand operand_of(Role role);

enum class Relevance { relevant, irrelevant, partial };
[[nodiscard]] Relevance relevance(const LayerShape& layer, Role role, Dim dim);

}  // namespace laminate::depth_first
