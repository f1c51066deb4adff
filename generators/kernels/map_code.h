// What the kernels map_pixels, map_channels, map_panels, map_windows, map_depthwise, map_pooling,
// map_elementwise and winograd_map share: a layer, or a depthwise layer and a 1x1 layer behind it, computed
// from its whole input in the caller's array, with threads that divide output channels or pixels instead of rows.
//
// Every output is the same sum in the same order as in the kernels over line buffers, bit for bit
// but for rows that padding cuts short, whose products the compiler may round before it adds them.
#pragma once

#include <Halide.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "generators/group_code.h"
#include "generators/ir/arrays.h"
#include "generators/ir/code_frame.h"
#include "generators/ir/layer_output.h"
#include "generators/ir/packing.h"
#include "generators/lowering/regions.h"
#include "scheduler/schedule/kernels/layout/runs.h"
#include "scheduler/schedule/problem.h"

namespace laminate {

/// The layer whose code is being made: its constants and its scratch array by name, its output.
class MapCode {
public:
    using Make = std::function<Stmt(Expr)>;

    /// Packs weights, if the layer has any, biases and slopes for blocks of `block` output
    /// channels.
    MapCode(LayerOutput output, int64_t block, Packing::Order order = Packing::Order::by_row);
    MapCode(const MapCode&) = delete;
    MapCode& operator=(const MapCode&) = delete;

    [[nodiscard]] const LayerProblem& problem() const { return output_.problem(); }
    [[nodiscard]] const Layer& layer() const { return output_.layer(); }
    [[nodiscard]] const LayerOutput& output() const { return output_; }
    /// Arrays: weights in their order, by_row [block][row of the window][i][column of the window]
    /// [z in the block]; by output channel; the scratch block.
    [[nodiscard]] const std::string& weights() const { return arrays_.weights; }
    [[nodiscard]] const std::string& bias() const { return arrays_.bias; }
    [[nodiscard]] const std::string& scratch() const { return scratch_; }
    /// Packs the same of a layer before this one in its group, from which this one takes its pixels.
    struct Arrays {
        std::string weights, bias;
    };
    [[nodiscard]] Arrays pack(LayerOutput& output, int64_t block,
                              Packing::Order order = Packing::Order::by_row);
    /// Has this layer's outputs stored in the scratch block, where a layer behind it finds them.
    void keep_outputs() { output_.store_in(scratch_); }
    /// Adds an array of constants and returns its name.
    [[nodiscard]] std::string constant(const std::string& name, const Packing& packing);

    /// A loop called after the layer.
    [[nodiscard]] Stmt loop(const std::string& name, const Interval& range, const Make& make) const;
    /// The loop over the parts that the caller asks for.
    [[nodiscard]] Stmt for_parts(const Make& make) const;
    /// The loop over what those parts belong to, `of_each` neighbours to one. `make` takes its
    /// number and which of its parts the caller asks for, within [0, of_each).
    [[nodiscard]] Stmt for_parts_of(
        const std::string& name, int64_t of_each,
        const std::function<Stmt(const Expr& number, const Interval& parts)>& make) const;
    /// The group's code; `body` is over all parts.
    [[nodiscard]] GroupCode code(const Stmt& body, int64_t scratch_elements, int64_t parts) &&;

private:
    LayerOutput output_;
    std::string scratch_;
    NamedConstants constants_;
    Arrays arrays_;
};

/// Part number `part` of `parts` of [0, extent), as even as can be.
[[nodiscard]] Interval part_of(const Expr& part, int64_t parts, int64_t extent);
/// The same if threads divide this axis, else all of it.
[[nodiscard]] Interval part_of(const Expr& part, int64_t parts, int64_t extent, bool is_divided);
/// What a range has of [begin, end); it may end before it begins.
[[nodiscard]] Interval common(const Interval& range, int64_t begin, int64_t end);
/// Whether a range holds number n.
[[nodiscard]] Expr has(const Interval& range, int64_t n);
/// Which lanes of a run are wanted; undefined if all are.
[[nodiscard]] Expr wanted_lanes(const VectorRun& run);

/// Rows of a map that are known to lie before a row in memory, and after it.
struct RowsAround {
    int64_t before = 0;
    int64_t after = 0;
};
/// `wide` columns of a row of X, or another array, from `column` on, `fill` where there are none. `row`: the row's
/// first element.
[[nodiscard]] Expr columns_of_input(const AxisWindow& x, const Expr& row, int64_t column,
                                    int64_t wide, float fill, const RowsAround& around = {},
                                    const std::string& array = "X");
/// Lanes first, first + stride, ... of a wide vector, as many as the run has.
[[nodiscard]] Expr every(int64_t stride, int64_t first, const VectorRun& run, const Expr& wide);
/// Columns column, column + stride, ... of a row of X, as many as the run has lanes; zero where
/// there are none. `order`, for strides of 2 and more: the number among these columns
/// that each lane takes, if not its own.
[[nodiscard]] Expr row_of_input(const AxisWindow& x, const Expr& row, int64_t column,
                                const VectorRun& run, const RowsAround& around = {},
                                const std::string& array = "X", const std::vector<int>& order = {});

/// Sums in registers, `count` of each run. Each has an array of its own, for runs may differ in
/// width, and LLVM keeps two halves of one array in one register and takes them apart for every
/// product.
class RunSums {
public:
    RunSums(const std::string& name, const std::vector<VectorRun>& runs, int64_t count);
    [[nodiscard]] const ir::Accumulators& of(size_t run, int64_t n) const {
        return sums_[run * static_cast<size_t>(count_) + static_cast<size_t>(n)];
    }
    [[nodiscard]] Expr get(size_t run, int64_t n) const { return of(run, n).get(0); }
    /// Sets all lanes to a scalar.
    [[nodiscard]] Stmt start(size_t run, int64_t n, const Expr& value) const;
    [[nodiscard]] Stmt add(size_t run, int64_t n, const Expr& value) const;
    [[nodiscard]] Stmt around(Stmt body) const;

private:
    int64_t count_;
    std::vector<ir::Accumulators> sums_;
};

}  // namespace laminate
