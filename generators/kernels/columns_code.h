// What the parts of the kernel `columns` (columns.h) share: the chain, its layout, its constants
// and the names of its arrays.
#pragma once

#include <Halide.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "generators/ir/arrays.h"
#include "generators/ir/code_frame.h"
#include "generators/kernels/minimal_filter.h"
#include "generators/lowering/extents.h"
#include "generators/lowering/regions.h"
#include "nets/network/network.h"
#include "scheduler/schedule/kernels/kernel_layouts.h"
#include "scheduler/schedule/kernels/layout/columns.h"
#include "scheduler/schedule/problem.h"

namespace laminate {

/// Planes that a row is written to. `base`: the first element of tile `first`, channel 0, plane 0.
struct RowPlanes {
    std::string array;
    Expr base;
    int64_t channels = 1;
    Expr pitch;
    [[nodiscard]] Expr at(const Expr& plane, const Expr& channel) const {
        return base + (plane * ir::size(channels) + channel) * pitch;
    }
};

/// Tensor k is what nest k reads; tensor sink() + 1 is Y. Tiles of a tensor are counted from the
/// first that its reader computes.
class ColumnsCode {
public:
    /// Adds the weights, biases and slopes of all layers to `constants`.
    ColumnsCode(const Network& network, const std::vector<LayerProblem>& chain,
                const ColumnsLayout& at, const ColumnsSizes& sizes, const GroupExtents& extents,
                NamedConstants& constants);
    ColumnsCode(const ColumnsCode&) = delete;
    ColumnsCode& operator=(const ColumnsCode&) = delete;

    [[nodiscard]] const ColumnsLayout& at() const { return at_; }
    [[nodiscard]] int64_t lanes() const { return at_.lanes; }
    [[nodiscard]] int sink() const { return at_.sink(); }
    [[nodiscard]] const LayerProblem& problem(int k) const { return chain_[index(k)]; }
    [[nodiscard]] const ColumnWindow& window(int k) const { return at_.windows[index(k)]; }
    [[nodiscard]] const MinimalFilter& filter(int k) const { return filters_[index(k)]; }
    [[nodiscard]] const ColumnBlocks& blocks(int k) const { return at_.blocks[index(k)]; }
    [[nodiscard]] const ColumnLine& line(int t) const { return at_.lines[index(t)]; }
    [[nodiscard]] Expr pitch(int t) const { return expression(sizes_.lines[index(t)].pitch); }
    /// Tiles of a whole row of a tensor but Y.
    [[nodiscard]] Expr picture_tiles(int t) const {
        return expression(sizes_.picture_tiles[index(t)]);
    }
    [[nodiscard]] const ColumnsSizes& sizes() const { return sizes_; }
    /// Rows or columns of a nest's output, of what it reads.
    [[nodiscard]] Expr out(int k, Dim d) const { return extents_.out_expression(k, d); }
    [[nodiscard]] Expr in(int k, Dim d) const { return extents_.in_expression(k, d); }
    [[nodiscard]] bool reaches_padding(int k, Dim d) const {
        return extents_.reaches_padding(k, d);
    }

    // Arrays: the line of a tensor; a row that is being finished; sums of a scattered last layer;
    // products by frequency.
    [[nodiscard]] const std::string& line_name(int t) const { return line_names_[index(t)]; }
    [[nodiscard]] const std::string& row_name() const { return row_name_; }
    [[nodiscard]] const std::string& sums_name() const { return sums_name_; }
    [[nodiscard]] const std::string& products_name() const { return products_name_; }
    /// Transformed weights (column_filters.h).
    [[nodiscard]] const std::string& weights(int k) const { return parameters_[index(k)].weights; }
    /// `body` with the names of all arrays in the scratch block around it.
    [[nodiscard]] Stmt with_arrays(Stmt body) const;

    /// Tiles of a tensor that the strip computes.
    [[nodiscard]] Expr first_tile(int t) const { return tile_variable(t, ".first"); }
    [[nodiscard]] Expr end_tile(int t) const { return tile_variable(t, ".end"); }
    [[nodiscard]] Expr tiles_of(int t) const { return end_tile(t) - first_tile(t); }
    /// Tiles of a row of tensor t are counted from its own first one, those of its reader from the
    /// reader's: the difference.
    [[nodiscard]] Expr shift(int t) const;
    /// Loop over vectors of tiles [0, count), `vectors` at a time as long as there are as many,
    /// then one by one: make(first tile, vectors).
    [[nodiscard]] Stmt over_tiles(const std::string& name, const Expr& count, int64_t vectors,
                                  const std::function<Stmt(const Expr&, int64_t)>& make) const;

    /// First element of row y of a line; from there to a plane's channel.
    [[nodiscard]] Expr line_row(int t, const Expr& y) const;
    [[nodiscard]] Expr line_plane(int t, const Expr& plane, const Expr& channel) const;
    /// Where row y of tensor t is written.
    [[nodiscard]] Stmt with_planes(int t, const Expr& y,
                                   const std::function<Stmt(const RowPlanes&)>& make) const;

    /// Bias of one channel, for all lanes.
    [[nodiscard]] Expr bias(int k, const Expr& channel) const;
    [[nodiscard]] Expr activated(int k, const Expr& channel, const Expr& value) const;
    /// Products of a vector of tiles, by frequency, as finished columns.
    [[nodiscard]] std::vector<Expr> finished(ir::Values& name, int k, const Expr& channel,
                                             const std::vector<Expr>& products) const;

private:
    struct Parameters {
        std::string weights, bias, slope;
    };
    [[nodiscard]] static size_t index(int n) { return static_cast<size_t>(n); }
    [[nodiscard]] Expr tile_variable(int t, const char* end) const;
    [[nodiscard]] Parameters parameters(int k, NamedConstants& constants) const;
    [[nodiscard]] Expr per_channel(const std::string& array, const Expr& channel) const;
    [[nodiscard]] const Layer& layer(int k) const { return network_.layer(problem(k).layer); }

    const Network& network_;
    const std::vector<LayerProblem>& chain_;
    const ColumnsLayout& at_;
    const ColumnsSizes& sizes_;
    const GroupExtents& extents_;
    std::vector<MinimalFilter> filters_;   ///< by nest
    std::vector<Parameters> parameters_;   ///< by nest
    std::vector<std::string> line_names_;  ///< by tensor but Y
    std::vector<std::string> tile_names_;  ///< by tensor
    std::string row_name_, sums_name_, products_name_;
};

}  // namespace laminate
