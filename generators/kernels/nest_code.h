// What the code of one nest over line buffers is made from: the layer, its kernel, and where its
// inputs and outputs lie. The kernels rows, channels, phases, vectors and winograd_rows are free
// functions of this and of the box that they compute.
//
// Layout of an intermediate tensor or of X: [row slot][channel][column], a ring of rows, with the
// channels and columns of its buffer (scheduler/schedule/kernels/line_plan.h). Columns carry the
// zero padding that the consumer's window reads, so kernels have no border cases along a row; rows
// outside the picture are skipped.
#pragma once

#include <Halide.h>

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "generators/ir/arrays.h"
#include "generators/ir/code_frame.h"
#include "generators/lowering/extents.h"
#include "generators/lowering/regions.h"
#include "nets/network/network.h"
#include "scheduler/schedule/kernels/kernel.h"
#include "scheduler/schedule/kernels/line_plan.h"
#include "scheduler/schedule/problem.h"

namespace laminate {

/// The rows of a ring in two parts during a step.
struct RingStep {
    Expr first;  ///< the first row in the block
    Expr last;   ///< from it to the one that came in last
    Expr block;  ///< where it lies
};

/// A ring of rows in the scratch block, as code sees it.
struct RowRing {
    std::string name;
    RingLayout at;
    LineSizes::Ring size;
    Expr first_channel;  ///< coordinates of the channel and the column stored first
    Expr first_column;
    std::optional<RingStep> step;  ///< of a ring in two parts, whose array is the scratch block itself

    /// The distance from one channel's row to the next channel's.
    [[nodiscard]] Expr pitch() const { return expression(size.pitch); }
    [[nodiscard]] Expr rows() const { return expression(size.rows); }
    [[nodiscard]] Expr row_elements() const { return expression(size.pitch * at.channels); }
    /// Where a row begins that stays from one step to the next, in a ring of two parts.
    [[nodiscard]] Expr kept_row(const Expr& row) const;
    /// Where any row begins.
    [[nodiscard]] Expr row_begin(const Expr& row) const;
    /// Where channel 0's element in the first stored column of that row would be.
    [[nodiscard]] Expr row_index(const Expr& row) const {
        const Expr first = row_begin(row);
        if (Halide::Internal::is_const_zero(first_channel)) return first;
        return first - first_channel * pitch();
    }
    [[nodiscard]] Expr index(const Expr& channel, const Expr& row, const Expr& column) const {
        return row_index(row) + channel * pitch() + (column - first_column);
    }
};

/// The box that a nest's kernel computes, by Dim.
using Ranges = std::array<Interval, 4>;

/// Where rows of the ring that a nest reads begin.
using RowStarts = ir::Integers;

/// Weights, bias and slopes among the constants.
struct ParameterNames {
    std::string weights;
    std::string bias;
    std::string slope;
    int64_t block = 1;  ///< output channels packed side by side
};

struct NestCode {
    const LayerProblem& p;
    const Layer& layer;
    Kernel kernel;
    std::vector<const RowRing*> inputs;  ///< by operand
    const RowRing* output = nullptr;     ///< none: the sink, which writes Y
    NamedConstants& constants;
    const GroupExtents& extents;
    int nest = 0;  ///< its number in the group

    [[nodiscard]] int64_t lanes() const { return kernel[KernelSize::lanes]; }
    [[nodiscard]] bool is_sink() const { return output == nullptr; }
    [[nodiscard]] const RowRing& input(int operand = 0) const {
        return *inputs[static_cast<size_t>(operand)];
    }

    [[nodiscard]] Expr output_index(const Expr& z, const Expr& y, const Expr& x) const;
    [[nodiscard]] std::string output_array() const { return is_sink() ? "Y" : output->name; }
    /// The distance from an element of one channel to the same element of the next.
    [[nodiscard]] Expr output_plane() const {
        return is_sink() ? out(Dim::y) * out(Dim::x) : output->pitch();
    }
    /// Rows or columns of the nest's output, of what it reads.
    [[nodiscard]] Expr out(Dim d) const { return extents.out_expression(nest, d); }
    [[nodiscard]] Expr in(Dim d) const { return extents.in_expression(nest, d); }
    /// Whether row `row` of the input exists; always true where no window reaches over an edge.
    [[nodiscard]] Expr has_row(const Expr& row) const {
        return extents.reaches_padding(nest, Dim::y) ? row >= 0 && row < in(Dim::y)
                                                     : Halide::Internal::const_true();
    }

    /// Whether a box has all input channels: else its sums continue what the output holds.
    [[nodiscard]] bool has_all_inputs(const Ranges& range) const;

    /// Packs weights, bias and slopes in blocks of output channels. `aligned`: blocks begin at
    /// multiples of their size; else each channel's weights lie by themselves.
    [[nodiscard]] ParameterNames parameters(int64_t block, bool aligned = true) const;
    /// Of the first channel of a block, or of channel z itself if `names.block` is 1.
    [[nodiscard]] Expr weight_index(const ParameterNames& names, const Expr& z_block,
                                    const Expr& n, const Expr& i, const Expr& m) const;
    /// First input channel that output channel z reads.
    [[nodiscard]] Expr first_channel(const Expr& z) const;

    /// For `count` rows of the input from `first` on.
    [[nodiscard]] Stmt with_row_starts(const Expr& first, int64_t count,
                                       const std::function<Stmt(const RowStarts&)>& make) const;

    /// What a sum begins with: the bias, or what the output holds of earlier input channels where
    /// the channel exists.
    [[nodiscard]] Expr starting_sum(const Ranges& range, const ParameterNames& names, const Expr& z,
                                    const Expr& at, const Expr& predicate,
                                    const Expr& exists = Halide::Internal::const_true()) const;
    /// A sum behind the activation, if it is complete. `z`: one channel for all lanes, or as many
    /// as there are lanes.
    [[nodiscard]] Expr finished(const Ranges& range, const ParameterNames& names, const Expr& z,
                                const Expr& sum) const;
};

/// Whether a box has [0, extent) along a dimension.
[[nodiscard]] bool is_whole(const Interval& range, int64_t extent);
/// Whether [begin, end) consists of whole blocks, counted from 0; the one that ends at `extent` may
/// be shorter.
[[nodiscard]] bool has_whole_blocks(const Interval& range, int64_t block, int64_t extent);
/// Binds an index expression so that it is computed once, outside the loops below.
[[nodiscard]] Stmt let(const std::string& name, const Expr& value,
                       const std::function<Stmt(Expr)>& make);
/// Loop over blocks of `channels` output channels: by number of the block if blocks are aligned to
/// multiples of their size, else by first channel.
[[nodiscard]] Stmt over_channel_blocks(const LayerProblem& problem, const Interval& all,
                                       int64_t channels, bool aligned,
                                       const std::function<Stmt(Expr)>& make);
/// The most products of vectors of a register tile that code has in sequence. Large windows have more, and
/// loops; LLVM's time grows faster than the number of products.
inline constexpr int64_t most_products_in_sequence = 1024;
/// What `make` makes of taps 0 .. count - 1, in this order, `together` of them in each trip of a loop.
[[nodiscard]] Stmt for_taps(const std::string& name, int64_t count, int64_t together,
                            const std::function<Stmt(Expr)>& make);
/// A value per channel for as many lanes as asked, or a vector of channels.
[[nodiscard]] Expr per_channel(const std::string& array, const Expr& channel, int64_t lanes);

// The kernels. Each computes the box `range` of its nest.
[[nodiscard]] Stmt rows_code(const NestCode& nest, const Ranges& range);
[[nodiscard]] Stmt channels_code(const NestCode& nest, const Ranges& range);
[[nodiscard]] Stmt phases_code(const NestCode& nest, const Ranges& range);
[[nodiscard]] Stmt vectors_code(const NestCode& nest, const Ranges& range);
/// The part of vectors_code() for Pad and Resize.
[[nodiscard]] Stmt resampling_code(const NestCode& nest, const Ranges& range);

}  // namespace laminate
