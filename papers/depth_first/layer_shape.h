// A layer, or one tile of a layer, as a nest of seven loops, and how each operand depends on them.
// DeFiNES and ZigZag call a loop relevant to an operand if it indexes the operand, irrelevant if it
// does not, and partially relevant if it is one of the two loops that together index the input's
// rows or columns.
//
// Loops have the letters of the hardware papers: G groups, K output channels of a group, C input
// channels of a group, OY OX output rows and columns, FY FX kernel rows and columns. Depthwise
// layers, poolings and additions have K = C = 1.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "base/indexed.h"
#include "scheduler/machine/machine.h"

namespace laminate::depth_first {

/// In alphabetical order, which is the order in which orders of loops are visited.
enum class Dim { c, fx, fy, g, k, ox, oy };
inline constexpr std::array all_dims{Dim::c, Dim::fx, Dim::fy, Dim::g, Dim::k, Dim::ox, Dim::oy};
template <class T>
using PerDim = PerEnum<T, Dim, all_dims.size()>;
[[nodiscard]] const char* to_string(Dim dim);  ///< "C", "FX", ...

enum class LayerType {
    convolution,  ///< also fully connected
    depthwise,
    pooling,   ///< a depthwise layer whose weights have no bits
    addition,  ///< of two operands
};

/// Sizes of the loops; 1 unless set.
class Sizes {
public:
    int64_t& operator[](Dim dim) { return sizes_[dim]; }
    int64_t operator[](Dim dim) const { return sizes_[dim]; }
    auto operator<=>(const Sizes&) const = default;

private:
    PerDim<int64_t> sizes_{1, 1, 1, 1, 1, 1, 1};
};

/// A loop of a nest. A spatial loop has a lane per trip, on average: a fraction where the lanes do
/// not divide the loop.
struct Loop {
    Dim dim;
    double size = 1;  ///< trips
    bool operator==(const Loop&) const = default;
};
/// Innermost first.
using LoopOrder = std::vector<Loop>;
/// "OX3 C2 K4", innermost first; for messages and reports.
[[nodiscard]] std::string to_text(const LoopOrder& order);

/// The product of the trips of each dimension's loops in some part of a nest.
using Trips = PerDim<double>;
inline constexpr Trips no_loops{1, 1, 1, 1, 1, 1, 1};

struct Stride {
    int64_t x = 1;
    int64_t y = 1;
    auto operator<=>(const Stride&) const = default;
};

/// The number of different inputs that the windows of `outputs` neighbouring outputs cover, without
/// inputs that a stride skips. Arguments may be fractions of lanes; the result is truncated.
[[nodiscard]] double span(double outputs, int64_t stride, double kernel);
/// The same for kernel taps that lie `dilation` apart. Only one of stride and dilation may be above
/// 1.
[[nodiscard]] double span(double outputs, int64_t stride, double kernel, int64_t dilation);

struct LayerShape {
    LayerType type = LayerType::convolution;
    Sizes sizes;
    Stride stride;
    Stride dilation;  ///< distance between taps of a kernel; above 1 only where the stride is 1
    /// The output's row and column index the input directly. Possible for 1x1 windows without
    /// stride; always the case for additions.
    bool direct_input = false;

    [[nodiscard]] int64_t macs() const;
    [[nodiscard]] int64_t input_width() const;
    [[nodiscard]] int64_t input_height() const;
    [[nodiscard]] int64_t input_channels() const { return sizes[Dim::g] * sizes[Dim::c]; }
    [[nodiscard]] int64_t output_channels() const { return sizes[Dim::g] * sizes[Dim::k]; }
    [[nodiscard]] int64_t output_elements() const;
    [[nodiscard]] int64_t input_elements() const;   ///< of one operand
    [[nodiscard]] int64_t weight_elements() const;  ///< 0 for poolings and additions
    [[nodiscard]] int input_operands() const { return type == LayerType::addition ? 2 : 1; }
    auto operator<=>(const LayerShape&) const = default;
};

/// The operands of a layer in the order in which their costs are summed.
enum class Role { output, weight, input, second_input };
[[nodiscard]] const char* to_string(Role role);  ///< "O", "W", "I", "I2"
[[nodiscard]] std::vector<Role> roles(LayerType type);
/// The machine's operand, whose hierarchy of memories serves the role.
[[nodiscard]] Operand operand_of(Role role);
template <class T>
using PerOperand = PerEnum<T, Operand, all_operands.size()>;

enum class Relevance { relevant, irrelevant, partial };
[[nodiscard]] Relevance relevance(const LayerShape& layer, Role role, Dim dim);

}  // namespace laminate::depth_first
