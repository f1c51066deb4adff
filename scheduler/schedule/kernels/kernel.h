// How a core computes the boxes that a nest asks for: the kernel half of a schedule.
//
// A kernel is a row of a table and the values of its sizes. It prints and parses as a part of a
// nest's text, for example
//
//   kernel rows z4 y2 x3 v16
//
// and decides everything that the code of a nest depends on, so a schedule with kernels is the same
// program on every machine; only its speed differs. Each row has a file in this folder with its
// closed forms and a file in generators/kernels with its code. docs/kernels.md lists the rows.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/indexed.h"
#include "base/range.h"
#include "scheduler/schedule/kernels/vector_unit.h"
#include "scheduler/schedule/problem.h"

namespace laminate {

enum class KernelKind {
    none,  ///< not chosen yet; with_default_kernels() completes a schedule
    // Over line buffers, nest by nest.
    rows,               ///< sums of z channels x y rows x x vectors of columns in registers
    channels,           ///< sums of z vectors of channels x x columns in registers
    phases,             ///< transposed convolution: all phases of x vectors of input positions
    vectors,            ///< pooling, Add, Concat, activation: a vector of columns at a time
    winograd_rows,      ///< F(2x4), F(4x4) or F(6x4, 3x3), lanes are tiles side by side
    winograd_channels,  ///< F(2x4), F(4x4) or F(6x4, 3x3), lanes are output channels
    // All nests of a chain.
    columns,  ///< minimal filtering along columns, lanes are tiles of four columns
    // One layer or a pair of them, perhaps with an Add, from whole arrays.
    map_pixels,       ///< 1x1, lanes are pixels of the map
    map_channels,     ///< few pixels, lanes are output channels
    map_windows,      ///< convolution over a copy with padding
    map_panels,       ///< strided first layer over panels of all taps
    map_phases,       ///< transposed convolution whose windows do not overlap, over panels of positions
    map_depthwise,    ///< one filter per channel
    map_pooling,      ///< maximum or mean of windows
    map_elementwise,  ///< an elementwise layer of tensors from outside of the group, or an activation
    winograd_map,     ///< minimal filtering of a whole map, weights transformed block by block
    map_sum,          ///< an Add computed while the map kernel before it stores
};

/// Sizes that a kernel is made for, by the letter that stands for each in text.
enum class KernelSize {
    channels,  ///< z: output channels in registers together, or vectors of them
    rows,      ///< y: output rows in registers together
    columns,   ///< x: columns, or vectors of columns or of tiles, in registers together
    pairs,     ///< p: bands, rows of tiles, whose patches are transformed together
    half,      ///< h: 1 if half of the last vector of a row is enough
    panel,     ///< c: 1 if the pixels of a tile are copied to a panel first
    form,      ///< f: tiles of minimal filtering; 0: 2 rows x 4 columns, 1: 4 x 4, 2: 6 x 6
    weights,   ///< w: blocks of z output channels whose weights code transforms together; 0: constants
    sums,      ///< a: vector registers that hold sums
    lanes,     ///< v: elements of a vector
};
inline constexpr size_t kernel_sizes = 10;
template <class T>
using PerKernelSize = PerEnum<T, KernelSize, kernel_sizes>;
/// z, y, x, p, h, c, f, w, a, v.
[[nodiscard]] char letter_of(KernelSize size);

struct Kernel {
    KernelKind kind = KernelKind::none;
    PerKernelSize<int64_t> size{};  ///< 0 for sizes that the kind does not have
    [[nodiscard]] bool is_chosen() const { return kind != KernelKind::none; }
    [[nodiscard]] int64_t operator[](KernelSize s) const { return size[s]; }
    friend auto operator<=>(const Kernel&, const Kernel&) = default;
};
/// "rows z4 y2 x3 v16"; h, c, f and w are left out where they are 0.
[[nodiscard]] std::string to_text(const Kernel& kernel);

/// Ranges of output channels, rows, columns and input channels (of a group of channels).
using KernelBox = PerDim<Range>;

/// Lanes and registers that a kernel was made for.
[[nodiscard]] inline VectorUnit unit_of(const Kernel& kernel) {
    return {kernel[KernelSize::lanes], kernel[KernelSize::sums]};
}
/// Left out of the text where it is 0.
[[nodiscard]] constexpr bool is_switch(KernelSize size) {
    return size == KernelSize::half || size == KernelSize::panel || size == KernelSize::form ||
           size == KernelSize::weights;
}
/// Rows of a tile of minimal filtering by KernelSize::form, and the reverse.
[[nodiscard]] inline int64_t rows_of_tile(const Kernel& kernel) {
    return 2 * (kernel[KernelSize::form] + 1);
}
[[nodiscard]] constexpr int64_t form_of_tile(int64_t rows) { return rows / 2 - 1; }

/// What a kernel's code takes over.
enum class KernelScope {
    nest,   ///< the boxes of one nest, between line buffers
    chain,  ///< every nest of a group, which all have this kernel
    map,    ///< one layer or a pair (kernel_legality.h), perhaps with an Add, with whole arrays
    sum,    ///< the Add behind a map kernel
};

/// An amount of work by the name of its term: "products", "outputs". A core's time is a sum of such
/// amounts, each with a time of its own (scheduler/machine/cpu_speed.h).
struct WorkTerm {
    const char* name;
    double amount;
};
using KernelWork = std::vector<WorkTerm>;

/// A box whose work is asked for.
struct AskedBox {
    KernelBox box;
    bool has_one_width = true;  ///< all boxes of its nest have as many columns
};

/// A row of the table.
struct KernelRow {
    KernelKind kind = KernelKind::none;
    const char* name = "";
    std::vector<KernelSize> sizes;  ///< in the order of the text
    const char* formula = "";       ///< what it computes, one line
    KernelScope scope = KernelScope::nest;
    /// Minimal filtering: fewer products than the definition has, of sums and differences of
    /// inputs. A sum then depends on elements outside its window, by rounding or worse.
    bool filters = false;
    /// The layers that it computes, as a message says it behind "expected".
    const char* layers = "";
    bool (*accepts)(const LayerProblem& problem) = nullptr;
    /// Whether it is the faster way for the layer on usual processors, machine and group apart.
    bool (*pays)(const LayerProblem& problem) = nullptr;
    /// Dimensions of which each of its boxes must have all.
    PerDim<bool> whole{};
    /// Its boxes must have all columns that a strip asks for (columns_at_once()).
    bool whole_strips = false;
    /// Its boxes have whole blocks of channels_together output channels, counted from the first;
    /// only the last block of the layer may be shorter.
    bool has_whole_blocks = false;
    /// Multiplications executed for a box: what is needed, rounded to what the kernel computes at a
    /// time. Products with weights alone; arithmetic of transforms and activations is not counted.
    /// None for a chain or a map, which are counted as a whole.
    int64_t (*multiplications)(const LayerProblem& problem, const Kernel& kernel,
                               const KernelBox& box) = nullptr;
    /// What a core does for a box, of a map kernel for the whole layer: vectors of products, of
    /// inputs brought into shape, of outputs finished, of weights that come from beyond the
    /// first-level cache, and what is begun anew. None for a chain (columns_work).
    KernelWork (*work)(const LayerProblem& problem, const Kernel& kernel,
                       const AskedBox& asked) = nullptr;
    /// Output channels whose weights a kernel over line buffers reads together: a box is filled up
    /// to a multiple of them. None: one.
    int64_t (*channels_together)(const Kernel& kernel) = nullptr;
    /// Columns that it stores of a box of that many, in a buffer with room behind a row's end.
    /// None: as many.
    int64_t (*columns_stored)(const Kernel& kernel, int64_t columns) = nullptr;
    /// What is wrong with the sizes for this layer beyond their limits, and what would be legal.
    std::optional<std::string> (*size_refusal)(const LayerProblem& problem,
                                               const Kernel& kernel) = nullptr;
};
[[nodiscard]] const std::vector<const KernelRow*>& kernel_table();
[[nodiscard]] const KernelRow& kernel_row(KernelKind kind);
/// Names of the rows, or of those that accept a layer: "rows, channels".
[[nodiscard]] std::string kernel_names();
[[nodiscard]] std::string kernel_names_for(const LayerProblem& problem);

/// Why a layer cannot be computed by a kernel, whatever its group asks for, with what would be
/// legal. None if it can.
[[nodiscard]] std::optional<std::string> kernel_refusal(const LayerProblem& problem,
                                                        const Kernel& kernel);

/// Whether a kernel of the row is legal for the layer and the faster way.
[[nodiscard]] bool kernel_pays(const LayerProblem& problem, KernelKind kind);
/// Whether a copy with padding pays for a layer (map_windows, or map_channels by panel). `filters`: whether
/// minimal filtering is allowed, which is faster where it pays but on the narrowest maps.
[[nodiscard]] bool windows_pay(const LayerProblem& problem, bool filters);
/// Whether map_channels pays for windows if it copies what they read to a panel: a panel makes up for strides,
/// on larger maps too, and for the copy that map_windows reads.
[[nodiscard]] bool panel_of_windows_pays(const LayerProblem& problem, bool filters);
/// Whether a map kernel pays for a convolution or dense layer: pixels, windows, panels, phases, depthwise.
[[nodiscard]] bool a_map_kernel_pays(const LayerProblem& problem, bool filters);

}  // namespace laminate
