#include "generators/kernels/column_tiles.h"

#include <algorithm>
#include <functional>

#include "generators/ir/activations.h"
#include "generators/ir/arrays.h"
#include "generators/ir/code_frame.h"
#include "generators/ir/constants.h"
#include "generators/kernels/minimal_filter.h"
#include "generators/kernels/register_tile.h"
#include "generators/lowering/buffer_shapes.h"
#include "generators/lowering/group_lowering.h"
#include "scheduler/schedule/kernels/columns.h"
#include "scheduler/schedule/problem.h"

namespace laminate {

using namespace Halide::Internal;
using ir::broadcast;
using ir::guarded;
using ir::lanes_from;
using ir::size;
using ir::Values;

namespace {

static_assert(tile_columns == MinimalFilter::outputs);

int64_t modulo(int64_t a, int64_t b) { return a - floor_div(a, b) * b; }

/// The filters of a layer along columns, transformed.
struct ColumnFilters : ColumnWindow {
    MinimalFilter filter;

    explicit ColumnFilters(const AxisWindow& w) : ColumnWindow(w), filter(taps), window_(w) {}
    /// Transformed filter of a piece: [frequency]. `kernel_row`: the weights of one row of the
    /// kernel.
    [[nodiscard]] std::vector<double> transformed(const float* kernel_row, int64_t phase,
                                                  int64_t piece) const {
        std::vector<double> g(static_cast<size_t>(taps), 0.0);
        const int64_t wide = piece + 1 < pieces ? tile_columns : taps;
        for (int64_t a = 0; a < wide; ++a) {
            const int64_t offset = low + piece * tile_columns + a;
            const int64_t m = window_.transposed
                                  ? phase + window_.pad_begin - window_.stride * offset
                                  : offset + window_.pad_begin;
            if (m >= 0 && m < window_.kernel) g[static_cast<size_t>(a)] = kernel_row[m];
        }
        return filter.of_kernel(g);
    }

private:
    AxisWindow window_;
};

/// How a layer's reader takes finished rows.
enum class Form { plain, gathered, scattered };

/// What is kept of a tensor for its reader; see column_tiles.h. Tiles count from the first one that
/// the reader computes.
struct Line {
    std::string name;
    Form form = Form::plain;
    int64_t rows = 1;
    int64_t channels = 1;
    int64_t planes = tile_columns;  ///< or frequencies
    int64_t pitch = 0;
    int64_t coordinates = 1;  ///< rows of the whole tensor
    int64_t offset = 0;       ///< in the scratch block, elements
    [[nodiscard]] int64_t row_elements() const { return planes * channels * pitch; }
    [[nodiscard]] Expr row(const Expr& y) const {
        return (rows >= coordinates ? y : y % size(rows)) * size(row_elements());
    }
    [[nodiscard]] Expr plane(const Expr& plane, const Expr& channel) const {
        return (plane * size(channels) + channel) * size(pitch);
    }
};

/// Sums that are in registers together: the products of `vectors` vectors of tiles with a block of
/// so many scalars, which are output channels or rows of a kernel. Tiles at the end of a row that
/// are fewer go vector by vector, with `rest` blocks at once.
struct SumBlocks {
    int64_t scalars = 1;
    int64_t vectors = 1;
    int64_t count = 1;  ///< blocks of all outputs
    int64_t rest = 1;   ///< a divisor of that
    [[nodiscard]] int64_t together(int64_t vectors_now) const {
        return vectors_now == vectors ? 1 : rest;
    }
};

/// Planes that a row is written to: the first element of tile `first`, channel 0, plane 0.
struct RowPlanes {
    std::string array;
    Expr base;
    int64_t channels = 1;
    int64_t pitch = 0;
    [[nodiscard]] Expr at(const Expr& plane, const Expr& channel) const {
        return base + (plane * size(channels) + channel) * size(pitch);
    }
};

class ColumnTiles final : public GroupLowering {
public:
    ColumnTiles(const Network& network, const GroupSchedule& group, const VectorUnit& unit)
        : GroupLowering(network, group), unit_(unit) {
        for (const LayerProblem& p : problems_) filters_.emplace_back(p.x());
        bind_tiles();
        const std::vector<BufferShape> shapes =
            buffer_shapes(group, problems_, StripRange::any).tensors;
        int64_t offset = 0, row_elements = 0;
        const auto take = [&](int64_t elements) {
            const int64_t begin = offset;
            offset += ceil_div(elements, unit_.lanes) * unit_.lanes;
            return begin;
        };
        for (int k = 0; k <= sink(); ++k) {
            const ColumnFilters& f = filters(k);
            Line line;
            line.name = unique(k == 0 ? "X.lines" : problem(k - 1).name + ".lines");
            line.form = f.is_plain()               ? Form::plain
                        : is_scattered(problem(k)) ? Form::scattered
                                                   : Form::gathered;
            const int64_t rows = std::max<int64_t>(1, shapes[static_cast<size_t>(k)].extent[1]);
            line.rows = line.form == Form::scattered ? 1 : rows;
            line.channels = problem(k)[Dim::i];
            line.planes = f.patch();
            line.pitch = line.form == Form::scattered
                             ? (blocks_of(k).vectors + extra_vectors(f)) * unit_.lanes
                             : pitch_for(most_tiles(k + 1) + f.pieces - 1);
            line.coordinates = problem(k).y().in;
            line.offset = take(line.rows * line.row_elements());
            lines_.push_back(line);
            if (line.form != Form::plain) {
                row_pitch_.push_back(
                    unit_.lanes +
                    pitch_for(std::max(most_tiles(k), most_tiles(k + 1) + f.pieces - 1)) +
                    unit_.lanes);
                row_elements =
                    std::max(row_elements, tile_columns * line.channels * row_pitch_.back());
            } else {
                row_pitch_.push_back(0);
            }
            if (line.form == Form::scattered) {
                const AxisWindow& w = problem(k).y();
                const int64_t step = w.transposed ? w.stride : 1;
                sums_rows_ = std::min(w.out, (rows - 1) * step + w.kernel);
                sums_pitch_ = pitch_for(most_tiles(k + 1));
                sums_offset_ = take(sums_rows_ * sums_row_elements());
            }
        }
        row_offset_ = take(row_elements);
        int64_t products = 0;
        for (int k = 0; k <= sink(); ++k) {
            if (is_direct(k)) continue;
            const SumBlocks blocks = blocks_of(k);
            for (const int64_t vectors : {int64_t{1}, blocks.vectors})
                products =
                    std::max(products, filters(k).patch() * products_at_once(k, blocks, vectors) *
                                           vectors * unit_.lanes);
        }
        products_offset_ = take(products);
        scratch_bytes_ = offset * bytes_per_element;
    }

    GroupCode code() {
        GroupCode code;
        Stmt body = lower();
        body = constants_.around(body);
        for (const Line& line : lines_)
            body = ir::with_array(line.name, argument::scratch, line.offset, body);
        body = ir::with_array(row_, argument::scratch, row_offset_, body);
        body = ir::with_array(sums_, argument::scratch, sums_offset_, body);
        body = ir::with_array(products_, argument::scratch, products_offset_, body);
        body = ir::with_pointer("X", argument::inputs, 0, body);
        body = ir::with_pointer("Y", argument::outputs, 0, body);
        code.body = simplify(body);
        code.arrays = {{"X", ArrayRole::external_input, 0},
                       {"Y", ArrayRole::external_output, sink()}};
        code.inputs = {tensor(0).name};
        code.constants = std::move(constants_).take();
        code.scratch_bytes = scratch_bytes_;
        code.strips = strip_count();
        return code;
    }

protected:
    // As in optimised.cpp: weights are read in place and sums are in registers.
    bool is_placed(Level level) const override {
        for (int k = 0; k <= sink(); ++k) {
            const Placement& lines = k == 0 ? nest(0).x.front().placement : nest(k - 1).y;
            if (lines.store == level || lines.compute == level) return true;
        }
        return level.nest == sink() && level.loop == 0 &&
               nest(sink()).loops.front().band == Band::strip;
    }
    Stmt allocate_input(int, Stmt body) override { return with_tiles(body); }
    Stmt allocate_output(int, Stmt body) override { return body; }
    Stmt allocate_weights(int, Stmt body) override { return body; }
    Stmt copy_weights(int, const Interval&, const Interval&) override { return {}; }
    Stmt begin_output(const Box&) override { return {}; }
    Stmt end_output(const Box&) override { return {}; }
    Stmt begin_call(int, const Box&) override { return {}; }
    Stmt end_call(int, const Box&) override { return {}; }

    Stmt copy_input(int, const Box& box) override {
        return for_each("X.copy", box[1], [&](const Expr& y) {
            return ir::sequence({split_columns(y), pass_on(0, y)});
        });
    }

    Stmt innermost(int k, int first_loop) override {
        return for_each(
            problem(k).name + ".y", covered(k, Dim::y, first_loop - 1), [&](const Expr& y) -> Stmt {
                if (k < sink()) return ir::sequence({convolve(k, y), pass_on(k + 1, y)});
                return lines_.back().form == Form::scattered ? finish_sums(y) : convolve(k, y);
            });
    }

private:
    // Tensor k is what nest k reads; tensor sink() + 1 is Y, whose tiles are of input positions of
    // the sink.

    [[nodiscard]] const ColumnFilters& filters(int k) const {
        return filters_[static_cast<size_t>(k)];
    }
    [[nodiscard]] const Line& line(int t) const { return lines_[static_cast<size_t>(t)]; }
    [[nodiscard]] Expr first_tile(int t) const {
        return Variable::make(Halide::Int(32), tile_names_[static_cast<size_t>(t)] + ".first");
    }
    [[nodiscard]] Expr end_tile(int t) const {
        return Variable::make(Halide::Int(32), tile_names_[static_cast<size_t>(t)] + ".end");
    }
    [[nodiscard]] int64_t most_tiles(int t) const { return most_tiles_[static_cast<size_t>(t)]; }
    [[nodiscard]] int64_t picture_tiles(int t) const {
        return ceil_div(problem(t).x().in, tile_columns);
    }
    /// Vectors run over the last tile. An odd number of them: planes that are powers of two apart
    /// would meet in few cache sets.
    [[nodiscard]] int64_t pitch_for(int64_t tiles) const {
        return ((ceil_div(tiles, unit_.lanes) + 1) | 1) * unit_.lanes;
    }
    [[nodiscard]] int64_t sums_row_elements() const {
        return outputs_at_once() * filters(sink()).patch() * sums_pitch_;
    }
    /// Output channels and phases of the sink.
    [[nodiscard]] int64_t outputs_at_once() const {
        return problem(sink())[Dim::z] * filters(sink()).phases;
    }
    /// Vectors of tiles behind a block's that its last pieces read.
    [[nodiscard]] static int64_t extra_vectors(const ColumnFilters& f) {
        return f.pieces > 1 ? 1 : 0;
    }
    /// Whether sums are finished outputs.
    [[nodiscard]] bool is_direct(int k) const { return filters(k).is_plain() && k != sink(); }

    /// Most tiles that a strip computes of each tensor, and names for which those are.
    void bind_tiles() {
        most_tiles_.resize(problems_.size() + 1);
        for (size_t t = 0; t <= problems_.size(); ++t) tile_names_.push_back(unique("tiles"));
        const Nest& last = nest(sink());
        const int64_t columns = last.strip[1] == 0
                                    ? problem(sink())[Dim::x]
                                    : std::min(last.strip[1], problem(sink())[Dim::x]);
        const int64_t step = tile_columns * filters(sink()).phases;
        const bool is_aligned = columns % step == 0 || columns == problem(sink())[Dim::x];
        most_tiles_.back() = ceil_div(columns, step) + (is_aligned ? 0 : 1);
        for (int k = sink(); k >= 0; --k) {
            const auto n = static_cast<size_t>(k);
            most_tiles_[n] =
                std::min(picture_tiles(k),
                         most_tiles_[n + 1] + filters(k).last_tile() - filters(k).first_tile());
        }
    }

    [[nodiscard]] Interval sink_columns() const {
        int strips = 0;
        while (nest(sink()).loops[static_cast<size_t>(strips)].band == Band::strip) ++strips;
        return covered(sink(), Dim::x, strips - 1);
    }

    /// Whole tiles of each tensor, so that no patch reads what is not computed.
    Stmt with_tiles(Stmt body) const {
        const auto let = [&](const Expr& variable, const Expr& value) {
            body = LetStmt::make(variable.as<Variable>()->name, simplify(value), body);
        };
        for (int k = 0; k <= sink(); ++k) {
            let(end_tile(k), Halide::min(end_tile(k + 1) + size(filters(k).last_tile()),
                                         size(picture_tiles(k))));
            let(first_tile(k), Halide::max(first_tile(k + 1) + size(filters(k).first_tile()), 0));
        }
        const Interval columns = sink_columns();
        const int64_t step = tile_columns * filters(sink()).phases;
        let(end_tile(sink() + 1), (columns.end + size(step - 1)) / size(step));
        let(first_tile(sink() + 1), columns.begin / size(step));
        return body;
    }

    std::string constant(const std::string& name, const std::vector<float>& values) {
        return constants_.append(unique(name), values);
    }

    /// Those of a layer's output channels, or of the rows of the kernel of a scattered one: what
    /// takes least time over a row.
    [[nodiscard]] SumBlocks blocks_of(int k) const {
        constexpr int64_t most_vectors = 4;
        const LayerProblem& p = problem(k);
        const int64_t outputs =
            is_scattered(p) && !filters(k).is_plain() ? p.y().kernel : p[Dim::z];
        const int64_t all = ceil_div(most_tiles(k + 1), unit_.lanes);
        SumBlocks best;
        double least = 0;
        for (int64_t vectors = 1; vectors <= std::min(most_vectors, all); ++vectors) {
            for (int64_t scalars = 1; scalars <= std::min(unit_.sums_per_vector(vectors), outputs);
                 ++scalars) {
                SumBlocks blocks{scalars, vectors, ceil_div(outputs, scalars), 1};
                // Not as many as could be: with a single vector LLVM loads scalars ahead and then
                // has no register for them.
                const int64_t most_of_rest = unit_.sums_per_vector(1) * 3 / 4;
                for (int64_t n = 1; n <= blocks.count; ++n) {
                    if (blocks.count % n == 0 && n * scalars <= most_of_rest) blocks.rest = n;
                }
                const int64_t rest = all % vectors;
                const double cycles =
                    (static_cast<double>(all - rest) / product_efficiency(vectors, scalars) +
                     static_cast<double>(rest) / product_efficiency(1, blocks.rest * scalars)) /
                    used_part(outputs, scalars);
                // More vectors are more patches at once, which must be worth their place in the
                // first-level cache.
                constexpr double worth_it = 0.99;
                if (least == 0 || cycles < least * (vectors > best.vectors ? worth_it : 1 - 1e-9)) {
                    least = cycles;
                    best = blocks;
                }
            }
        }
        return best;
    }

    /// Loop over vectors of tiles [0, count), `vectors` at a time as long as there are as many,
    /// then one by one: make(first tile, vectors).
    Stmt over_tiles(const std::string& name, const Expr& count, int64_t vectors,
                    const std::function<Stmt(const Expr&, int64_t)>& make) const {
        const Expr all = simplify((count + size(unit_.lanes - 1)) / size(unit_.lanes));
        const Expr blocks = simplify(all / size(vectors));
        std::vector<Stmt> parts;
        parts.push_back(for_each(name, {0, blocks}, [&](const Expr& n) {
            return make(simplify(n * size(vectors * unit_.lanes)), vectors);
        }));
        if (vectors > 1) {
            parts.push_back(
                for_each(name, {simplify(blocks * size(vectors)), all},
                         [&](const Expr& n) { return make(simplify(n * size(unit_.lanes)), 1); }));
        }
        return ir::sequence(parts);
    }
    [[nodiscard]] Expr tiles_of(int t) const { return end_tile(t) - first_tile(t); }

    // ---- rows for their readers

    /// Where row y of tensor t is written. Beside a row that will be transformed there is room for
    /// zeros.
    Stmt with_planes(int t, const Expr& y,
                     const std::function<Stmt(const RowPlanes&)>& make) const {
        const Line& to = line(t);
        if (to.form != Form::plain)
            return make({row_, size(unit_.lanes), to.channels, row_pitch_[static_cast<size_t>(t)]});
        Values name(to.name + ".row");
        const Expr base = name(to.row(y));
        return name.around(make({to.name, base, to.channels, to.pitch}));
    }

    /// A row of X.
    Stmt split_columns(const Expr& y) const {
        const LayerProblem& p = problem(0);
        const int64_t step = unit_.lanes * tile_columns;
        return with_planes(0, y, [&](const RowPlanes& to) {
            return for_each("X.channel", {0, size(p[Dim::i])}, [&](const Expr& channel) {
                Values name("X.split");
                const Expr first = name(simplify(first_tile(0) * size(tile_columns)));
                const Expr from =
                    name(simplify((channel * size(p.y().in) + y) * size(p.x().in) + first));
                const Expr count = name(simplify(
                    Halide::min(end_tile(0) * size(tile_columns), size(p.x().in)) - first));
                const Stmt vectors =
                    for_each("X.vector", {0, count / size(step)}, [&](const Expr& n) {
                        Values part("X.columns");
                        const Expr wide = part(ir::load(
                            "X", lanes_from(from + n * size(step), step), ir::Alignment::element));
                        std::vector<Stmt> planes;
                        for (int64_t q = 0; q < tile_columns; ++q) {
                            const Expr plane = Shuffle::make_slice(wide, static_cast<int>(q),
                                                                   static_cast<int>(tile_columns),
                                                                   static_cast<int>(unit_.lanes));
                            planes.push_back(ir::store(
                                to.array, plane,
                                lanes_from(to.at(size(q), channel) + n * size(unit_.lanes),
                                           unit_.lanes),
                                ir::Alignment::element));
                        }
                        return part.around(ir::sequence(planes));
                    });
                const Stmt rest = for_each(
                    "X.column", {count / size(step) * size(step), count}, [&](const Expr& x) {
                        return ir::store(
                            to.array, ir::load("X", from + x),
                            to.at(x % size(tile_columns), channel) + x / size(tile_columns),
                            ir::Alignment::element);
                    });
                return name.around(ir::sequence({vectors, rest}));
            });
        });
    }

    /// Row y of tensor t is finished.
    Stmt pass_on(int t, const Expr& y) {
        if (line(t).form == Form::plain) return {};
        return ir::sequence(
            {zeros_around(t), line(t).form == Form::gathered ? transform_row(t, y) : scatter(y)});
    }

    /// Padding columns, and those between the picture's end and that of its last patch.
    Stmt zeros_around(int t) const {
        const int64_t lanes = unit_.lanes;
        return with_planes(t, 0, [&](const RowPlanes& to) {
            const auto fill = [&](const std::function<Expr(const Expr&, int64_t)>& index) {
                return for_each(
                    row_ + ".channel", {0, size(to.channels)}, [&](const Expr& channel) {
                        std::vector<Stmt> planes;
                        for (int64_t q = 0; q < tile_columns; ++q) {
                            planes.push_back(ir::store(
                                to.array, make_zero(Halide::Float(32, static_cast<int>(lanes))),
                                lanes_from(index(channel, q), lanes), ir::Alignment::element));
                        }
                        return ir::sequence(planes);
                    });
            };
            const Stmt left = fill([&](const Expr& channel, int64_t q) {
                return to.at(size(q), channel) - size(lanes);
            });
            const Stmt right = fill([&](const Expr& channel, int64_t q) {
                return to.at(size(q), channel) +
                       (size(ceil_div(problem(t).x().in - q, tile_columns)) - first_tile(t));
            });
            return ir::sequence({left, guarded(end_tile(t) == size(picture_tiles(t)), right)});
        });
    }

    /// B^T of a vector of patches of a channel of the row just finished, from `tile` on, to the
    /// line's elements from `to` on.
    Stmt transform(int t, const Expr& channel, const Expr& tile, const Expr& to) const {
        const ColumnFilters& f = filters(t);
        return with_planes(t, 0, [&](const RowPlanes& from) {
            Values name(line(t).name + ".patch");
            std::vector<Expr> patch;
            for (int64_t c = 0; c < f.patch(); ++c) {
                const int64_t column = f.low + c;
                const Expr index = from.at(size(modulo(column, tile_columns)), channel) + tile +
                                   size(floor_div(column, tile_columns));
                patch.push_back(name(
                    ir::load(from.array, lanes_from(index, unit_.lanes), ir::Alignment::element)));
            }
            std::vector<Stmt> stores;
            for (const Expr& v : f.filter.of_patch(name, patch, MinimalFilter::Order::free)) {
                const Expr index = to + line(t).plane(size(std::ssize(stores)), channel);
                stores.push_back(ir::store(line(t).name, v, lanes_from(index, unit_.lanes),
                                           ir::Alignment::element));
            }
            return name.around(ir::sequence(stores));
        });
    }
    /// Tiles of the row just finished are counted from its own first one, those of its reader from
    /// the reader's.
    [[nodiscard]] Expr shift(int t) const { return simplify(first_tile(t + 1) - first_tile(t)); }

    Stmt transform_row(int t, const Expr& y) const {
        Values row(line(t).name + ".row");
        const Expr base = row(simplify(line(t).row(y)));
        const Expr from = row(shift(t));
        return row.around(for_each(
            line(t).name + ".channel", {0, size(line(t).channels)}, [&](const Expr& channel) {
                return over_tiles(line(t).name + ".tile",
                                  tiles_of(t + 1) + size(filters(t).pieces - 1), 1,
                                  [&](const Expr& tile, int64_t) {
                                      return transform(t, channel, from + tile, base + tile);
                                  });
            }));
    }

    // ---- kernels

    struct Parameters {
        std::string weights, bias, slope;
    };
    Parameters parameters(int k, const std::vector<float>& weights, int64_t block) {
        const LayerProblem& p = problem(k);
        Parameters names;
        names.weights = constant(p.name + ".transformed", weights);
        names.bias = constant(p.name + ".bias", padded(canonical_bias(layer(k), p), block));
        const std::vector<float> slope = canonical_slope(layer(k), p);
        if (!slope.empty()) names.slope = constant(p.name + ".slope", padded(slope, block));
        return names;
    }
    /// Of one channel, for all lanes.
    [[nodiscard]] Expr per_channel(const std::string& array, const Expr& channel) const {
        return broadcast(ir::load(array, channel), unit_.lanes);
    }
    [[nodiscard]] Expr activated(int k, const Parameters& names, const Expr& channel,
                                 const Expr& value) const {
        return ir::activate(
            layer(k).activation, value,
            names.slope.empty() ? make_zero(value.type()) : per_channel(names.slope, channel));
    }
    /// Products of a vector of tiles, by frequency, as finished columns.
    [[nodiscard]] std::vector<Expr> finished(Values& name, int k, const Parameters& names,
                                             const Expr& channel,
                                             const std::vector<Expr>& products) const {
        std::vector<Expr> columns;
        for (const Expr& sum :
             filters(k).filter.of_products(name, products, per_channel(names.bias, channel)))
            columns.push_back(name(activated(k, names, channel, sum)));
        return columns;
    }

    /// Weights of output channels in blocks: [block][frequency, one if plain][n][i][piece][channel
    /// of the block].
    [[nodiscard]] std::vector<float> gathered_weights(int k, int64_t block) const {
        const LayerProblem& p = problem(k);
        const ColumnFilters& f = filters(k);
        const int64_t frequencies = f.is_plain() ? 1 : f.patch();
        const std::vector<float> canonical = canonical_weights(layer(k), p);
        std::vector<float> all(
            static_cast<size_t>(ceil_div(p[Dim::z], block) * block * frequencies * p.y().kernel *
                                p[Dim::i] * f.pieces),
            0.0F);
        for (int64_t z = 0; z < p[Dim::z]; ++z) {
            for (int64_t i = 0; i < p[Dim::i]; ++i) {
                for (int64_t n = 0; n < p.y().kernel; ++n) {
                    for (int64_t piece = 0; piece < f.pieces; ++piece) {
                        const float* row = canonical.data() +
                                           ((z * p[Dim::i] + i) * p.y().kernel + n) * p.x().kernel;
                        const std::vector<double> u = f.transformed(row, 0, piece);
                        for (int64_t q = 0; q < frequencies; ++q) {
                            const int64_t at =
                                (((z / block * frequencies + q) * p.y().kernel + n) * p[Dim::i] +
                                 i) *
                                    f.pieces +
                                piece;
                            all[static_cast<size_t>(at * block + z % block)] =
                                static_cast<float>(u[static_cast<size_t>(q)]);
                        }
                    }
                }
            }
        }
        return all;
    }

    /// Row y of a layer that is not scattered.
    Stmt convolve(int k, const Expr& y) {
        const LayerProblem& p = problem(k);
        const ColumnFilters& f = filters(k);
        const SumBlocks blocks = blocks_of(k);
        const Parameters names = parameters(k, gathered_weights(k, blocks.scalars), blocks.scalars);
        ir::Integers starts(p.name + ".rows");
        for (int64_t n = 0; n < p.y().kernel; ++n) (void)starts(line(k).row(input_row(p, y, n)));
        // Blocks of weights are filled up: `make` of scalar z of `together` blocks from `block` on,
        // if it is a channel.
        const auto if_channel = [&](const Expr& block, int64_t together, int64_t z,
                                    const std::function<Stmt(const Expr&)>& make) {
            const Expr channel = simplify(block * size(blocks.scalars) + size(z));
            const int64_t filling = blocks.count * blocks.scalars - p[Dim::z];
            const bool may_be_missing = z >= together * blocks.scalars - filling;
            return may_be_missing ? guarded(channel < size(p[Dim::z]), make(channel))
                                  : make(channel);
        };
        const auto over_row = [&](const std::function<Stmt(const Expr& tile, int64_t vectors,
                                                           int64_t together)>& make) {
            return over_tiles(p.name + ".tile", tiles_of(k + 1), blocks.vectors,
                              [&](const Expr& tile, int64_t vectors) {
                                  return make(tile, vectors, blocks.together(vectors));
                              });
        };
        const auto over_blocks = [&](int64_t together,
                                     const std::function<Stmt(const Expr& block)>& make) {
            return for_each(p.name + ".z", {0, size(blocks.count / together)},
                            [&](const Expr& n) { return make(simplify(n * size(together))); });
        };
        const auto frequencies = [&](const std::function<Stmt(Expr)>& make) {
            return for_each(p.name + ".f", {0, size(f.patch())}, make);
        };
        const auto sums = [&](const Expr& tile, int64_t vectors, const Expr& block, const Expr& q,
                              const auto& store) {
            return gathered_sums(k, y, starts, blocks, vectors, names.weights, tile, block, q,
                                 store);
        };
        if (is_direct(k)) {
            return starts.around(with_planes(k + 1, y, [&](const RowPlanes& to) {
                return over_row([&](const Expr& tile, int64_t vectors, int64_t together) {
                    return frequencies([&](const Expr& q) {
                        return over_blocks(together, [&](const Expr& block) {
                            return sums(
                                tile, vectors, block, q,
                                [&](int64_t v, int64_t z, const Expr& sum) {
                                    return if_channel(block, together, z, [&](const Expr& channel) {
                                        const Expr index = simplify(to.at(q, channel) + tile +
                                                                    size(v * unit_.lanes));
                                        const Expr value =
                                            activated(k, names, channel,
                                                      sum + per_channel(names.bias, channel));
                                        return ir::store(to.array, value,
                                                         lanes_from(index, unit_.lanes),
                                                         ir::Alignment::element);
                                    });
                                });
                        });
                    });
                });
            }));
        }
        const auto all = [&](const std::function<Stmt(const Expr& channel, const Expr& tile,
                                                      const std::vector<Expr>& outputs)>& store) {
            return over_row([&](const Expr& tile, int64_t vectors, int64_t together) {
                const int64_t at_once = products_at_once(k, blocks, vectors);
                const bool is_whole = at_once > together * blocks.scalars;
                const auto product = [&](const Expr& q, const Expr& block, int64_t z, int64_t v) {
                    const Expr output =
                        (is_whole ? block * size(blocks.scalars) : Expr(0)) + size(z);
                    const Expr vector = ((q * size(at_once) + output) * size(vectors) + size(v)) *
                                        size(unit_.lanes);
                    return lanes_from(simplify(vector), unit_.lanes);
                };
                const auto multiply = [&](const Expr& block, const Expr& q) {
                    return sums(tile, vectors, block, q,
                                [&](int64_t v, int64_t z, const Expr& sum) {
                                    return ir::store(products_, sum, product(q, block, z, v),
                                                     ir::Alignment::element);
                                });
                };
                const auto finish = [&](const Expr& block) {
                    std::vector<Stmt> outputs;
                    for (int64_t z = 0; z < together * blocks.scalars; ++z) {
                        outputs.push_back(if_channel(block, together, z, [&](const Expr& channel) {
                            std::vector<Stmt> stores;
                            for (int64_t v = 0; v < vectors; ++v) {
                                Values name(p.name + ".product");
                                std::vector<Expr> m;
                                for (int64_t q = 0; q < f.patch(); ++q)
                                    m.push_back(
                                        name(ir::load(products_, product(size(q), block, z, v),
                                                      ir::Alignment::element)));
                                const std::vector<Expr> columns =
                                    finished(name, k, names, channel, m);
                                stores.push_back(name.around(store(
                                    channel, simplify(tile + size(v * unit_.lanes)), columns)));
                            }
                            return ir::sequence(stores);
                        }));
                    }
                    return ir::sequence(outputs);
                };
                if (is_whole) {
                    const Stmt products = frequencies([&](const Expr& q) {
                        return over_blocks(together,
                                           [&](const Expr& block) { return multiply(block, q); });
                    });
                    return ir::sequence({products, over_blocks(together, finish)});
                }
                return over_blocks(together, [&](const Expr& block) {
                    return ir::sequence(
                        {frequencies([&](const Expr& q) { return multiply(block, q); }),
                         finish(block)});
                });
            });
        };
        if (k == sink())
            return starts.around(
                all([&](const Expr& channel, const Expr& tile, const std::vector<Expr>& columns) {
                    return store_columns(channel, y, tile, columns);
                }));
        return starts.around(with_planes(k + 1, y, [&](const RowPlanes& to) {
            return all(
                [&](const Expr& channel, const Expr& tile, const std::vector<Expr>& columns) {
                    std::vector<Stmt> stores;
                    for (int64_t q = 0; q < tile_columns; ++q) {
                        const Expr index = simplify(to.at(size(q), channel) + tile);
                        stores.push_back(ir::store(to.array, columns[static_cast<size_t>(q)],
                                                   lanes_from(index, unit_.lanes),
                                                   ir::Alignment::element));
                    }
                    return ir::sequence(stores);
                });
        }));
    }

    [[nodiscard]] static Expr input_row(const LayerProblem& p, const Expr& y, int64_t n) {
        return simplify(y * size(p.y().stride) + size(n - p.y().pad_begin));
    }

    /// Output channels whose products wait for their last frequency: all, where those are less than
    /// what they are made of, which then stays in the first-level cache for all of them; else those
    /// whose sums are in registers.
    [[nodiscard]] int64_t products_at_once(int k, const SumBlocks& blocks, int64_t vectors) const {
        const LayerProblem& p = problem(k);
        const int64_t all = blocks.count * blocks.scalars;
        const bool is_less = all < p.y().kernel * p[Dim::i] * filters(k).pieces;
        return is_less ? all : blocks.together(vectors) * blocks.scalars;
    }

    /// Sums over rows, channels and pieces, of the output channels of a block, or of as many as are
    /// taken together, at one frequency.
    Stmt gathered_sums(int k, const Expr& y, const ir::Integers& starts, const SumBlocks& blocks,
                       int64_t vectors, const std::string& weights, const Expr& tile,
                       const Expr& block, const Expr& q,
                       const std::function<Stmt(int64_t, int64_t, const Expr&)>& store) const {
        const LayerProblem& p = problem(k);
        const ColumnFilters& f = filters(k);
        const Line& from = line(k);
        Values name(p.name + ".base");
        const int64_t frequencies = f.is_plain() ? 1 : f.patch();
        const Expr frequency = f.is_plain() ? block : block * size(frequencies) + q;
        const int64_t block_weights = p.y().kernel * p[Dim::i] * f.pieces * blocks.scalars;
        const Expr kernel = name(simplify(frequency * size(block_weights)));
        const Expr plane = name(simplify(from.plane(q, 0) + tile));
        std::vector<ir::SumTerm> terms;
        for (int64_t n = 0; n < p.y().kernel; ++n) {
            const Expr base = name(starts.of(n) + plane);
            const Expr row = input_row(p, y, n);
            const Expr runs =
                ir::reaches_padding(p.y()) ? row >= 0 && row < size(p.y().in) : const_true();
            for (int64_t piece = 0; piece < f.pieces; ++piece) {
                terms.push_back(
                    {runs, size(p[Dim::i]),
                     [=, this](const Expr& i, int64_t v) {
                         const Expr index =
                             base + i * size(from.pitch) + size(v * unit_.lanes + piece);
                         return ir::load(from.name, lanes_from(index, unit_.lanes),
                                         ir::Alignment::element);
                     },
                     [=](const Expr& i, int64_t z) {
                         const Expr tap = (size(n * p[Dim::i]) + i) * size(f.pieces) + size(piece);
                         return ir::load(weights,
                                         kernel + tap * size(blocks.scalars) +
                                             size(z / blocks.scalars * frequencies * block_weights +
                                                  z % blocks.scalars));
                     }});
            }
        }
        const ir::SumShape shape{unit_.lanes, vectors, blocks.together(vectors) * blocks.scalars};
        return name.around(ir::sums_of_products(p.name, shape, terms, store));
    }

    /// Finished outputs of a vector of tiles, by column, to Y.
    Stmt store_columns(const Expr& channel, const Expr& y, const Expr& tile,
                       const std::vector<Expr>& columns) const {
        const LayerProblem& p = problem(sink());
        const int64_t lanes = unit_.lanes * std::ssize(columns);
        const Interval wanted = sink_columns();
        Values name("Y.columns");
        const Expr value = name(Shuffle::make_interleave(columns));
        const Expr x = name(simplify((first_tile(sink() + 1) + tile) * size(std::ssize(columns))));
        const Expr to = lanes_from(
            name(simplify((channel * size(p[Dim::y]) + y) * size(p[Dim::x]) + x)), lanes);
        const Expr at = lanes_from(x, lanes);
        const Stmt whole = ir::store("Y", value, to, ir::Alignment::element);
        const Stmt part =
            ir::store("Y", value, to, ir::Alignment::element,
                      at >= broadcast(wanted.begin, lanes) && at < broadcast(wanted.end, lanes));
        return name.around(
            IfThenElse::make(x >= wanted.begin && x + size(lanes) <= wanted.end, whole, part));
    }

    // ---- scattered last layers

    [[nodiscard]] Expr sums_row(const Expr& y) const {
        return (sums_rows_ >= problem(sink())[Dim::y] ? y : y % size(sums_rows_)) *
               size(sums_row_elements());
    }

    /// The filters of an output channel and phase: [channel and phase][frequency][block of kernel
    /// rows][i][piece][row of the block].
    [[nodiscard]] std::vector<float> scattered_weights(int64_t block) const {
        const LayerProblem& p = problem(sink());
        const ColumnFilters& f = filters(sink());
        const int64_t rows = p.y().kernel, frequencies = f.patch(), blocks = ceil_div(rows, block);
        const std::vector<float> canonical = canonical_weights(layer(sink()), p);
        std::vector<float> all(static_cast<size_t>(outputs_at_once() * frequencies * blocks *
                                                   p[Dim::i] * f.pieces * block),
                               0.0F);
        for (int64_t output = 0; output < outputs_at_once(); ++output) {
            for (int64_t n = 0; n < rows; ++n) {
                for (int64_t i = 0; i < p[Dim::i]; ++i) {
                    const float* row =
                        canonical.data() +
                        ((output / f.phases * p[Dim::i] + i) * rows + n) * p.x().kernel;
                    for (int64_t piece = 0; piece < f.pieces; ++piece) {
                        const std::vector<double> u = f.transformed(row, output % f.phases, piece);
                        for (int64_t q = 0; q < frequencies; ++q) {
                            const int64_t at =
                                (((output * frequencies + q) * blocks + n / block) * p[Dim::i] +
                                 i) *
                                    f.pieces +
                                piece;
                            all[static_cast<size_t>(at * block + n % block)] =
                                static_cast<float>(u[static_cast<size_t>(q)]);
                        }
                    }
                }
            }
        }
        return all;
    }

    /// Adds what row r of the sink's input, in V, contributes to the output rows that read it.
    Stmt scatter(const Expr& r) {
        const LayerProblem& p = problem(sink());
        const AxisWindow& w = p.y();
        const int64_t step = w.transposed ? w.stride : 1;
        const SumBlocks blocks = blocks_of(sink());
        names_ = parameters(sink(), scattered_weights(blocks.scalars), 1);
        const auto output_row = [&](int64_t n) {
            return simplify(w.transposed ? r * size(step) + size(n - w.pad_begin)
                                         : r + size(w.pad_begin - n));
        };
        const auto is_output = [&](int64_t n) {
            return output_row(n) >= 0 && output_row(n) < size(w.out);
        };
        ir::Integers starts(p.name + ".sums");
        for (int64_t n = 0; n < w.kernel; ++n)
            (void)starts(sums_row(Halide::clamp(output_row(n), 0, size(w.out - 1))));
        // Rows come in order: the first one that an output row reads is its first or last row of
        // the kernel, or the first of the picture.
        std::vector<Stmt> anew, anew_at_top;
        for (int64_t n = 0; n < w.kernel; ++n) {
            const bool always = w.transposed ? n >= w.kernel - step : n == 0;
            (always ? anew : anew_at_top)
                .push_back(guarded(is_output(n), set_to_zero(starts.of(n))));
        }
        anew.push_back(guarded(r == 0, ir::sequence(anew_at_top)));
        anew.push_back(over_tiles(p.name + ".tile", tiles_of(sink() + 1), blocks.vectors,
                                  [&](const Expr& tile, int64_t vectors) {
                                      return ir::sequence(
                                          {patches(tile, vectors),
                                           products(starts, is_output, blocks, tile, vectors)});
                                  }));
        return starts.around(ir::sequence(anew));
    }

    /// A row of sums.
    [[nodiscard]] Stmt set_to_zero(const Expr& start) const {
        const auto lanes = static_cast<int>(unit_.lanes);
        return for_each(sums_ + ".vector", {0, size(sums_row_elements() / unit_.lanes)},
                        [&](const Expr& v) {
                            return ir::store(sums_, make_zero(Halide::Float(32, lanes)),
                                             lanes_from(start + v * size(lanes), lanes),
                                             ir::Alignment::element);
                        });
    }

    /// V of a block of tiles.
    [[nodiscard]] Stmt patches(const Expr& tile, int64_t vectors) const {
        const Line& to = lines_.back();
        return for_each(to.name + ".channel", {0, size(to.channels)}, [&](const Expr& channel) {
            const Interval all{0, size(vectors + extra_vectors(filters(sink())))};
            return for_each(to.name + ".vector", all, [&](const Expr& v) {
                return transform(sink(), channel,
                                 simplify(shift(sink()) + tile + v * size(unit_.lanes)),
                                 simplify(v * size(unit_.lanes)));
            });
        });
    }

    /// Its products with all rows of the kernel, added to the sums. `starts`: where the sums of
    /// each one's output row begin.
    [[nodiscard]] Stmt products(const ir::Integers& starts,
                                const std::function<Expr(int64_t)>& is_output,
                                const SumBlocks& blocks, const Expr& tile, int64_t vectors) const {
        const LayerProblem& p = problem(sink());
        const ColumnFilters& f = filters(sink());
        const Line& from = lines_.back();
        const std::string& weights = names_.weights;
        const int64_t block_weights = p[Dim::i] * f.pieces * blocks.scalars;
        const int64_t together = blocks.together(vectors);
        return for_each(p.name + ".output", {0, size(outputs_at_once())}, [&](const Expr& output) {
            return for_each(p.name + ".f", {0, size(f.patch())}, [&](const Expr& q) {
                Values name(p.name + ".base");
                const Expr frequency = name(simplify(output * size(f.patch()) + q));
                const Expr plane = name(simplify(from.plane(q, 0)));
                const Expr kernel = name(simplify(frequency * size(blocks.count * block_weights)));
                const Expr sums = name(simplify(frequency * size(sums_pitch_) + tile));
                std::vector<Stmt> all;
                for (int64_t block = 0; block < blocks.count; block += together) {
                    std::vector<ir::SumTerm> terms;
                    for (int64_t piece = 0; piece < f.pieces; ++piece) {
                        terms.push_back(
                            {const_true(), size(p[Dim::i]),
                             [=, this](const Expr& i, int64_t v) {
                                 const Expr index =
                                     plane + i * size(from.pitch) + size(v * unit_.lanes + piece);
                                 return ir::load(from.name, lanes_from(index, unit_.lanes),
                                                 ir::Alignment::element);
                             },
                             [=](const Expr& i, int64_t n) {
                                 const Expr tap = i * size(f.pieces) + size(piece);
                                 return ir::load(weights, kernel + tap * size(blocks.scalars) +
                                                              size((block + n / blocks.scalars) *
                                                                       block_weights +
                                                                   n % blocks.scalars));
                             }});
                    }
                    all.push_back(ir::sums_of_products(
                        p.name, {unit_.lanes, vectors, together * blocks.scalars}, terms,
                        [&](int64_t v, int64_t scalar, const Expr& sum) -> Stmt {
                            const int64_t n = block * blocks.scalars + scalar;
                            if (n >= p.y().kernel) return {};
                            const Expr at = lanes_from(starts.of(n) + sums + size(v * unit_.lanes),
                                                       unit_.lanes);
                            return guarded(
                                is_output(n),
                                ir::store(sums_, ir::load(sums_, at, ir::Alignment::element) + sum,
                                          at, ir::Alignment::element));
                        }));
                }
                return name.around(ir::sequence(all));
            });
        });
    }

    /// Output row y: all that it reads has been scattered.
    Stmt finish_sums(const Expr& y) {
        const LayerProblem& p = problem(sink());
        const ColumnFilters& f = filters(sink());
        Values row(p.name + ".row");
        const Expr base = row(simplify(sums_row(y)));
        return row.around(
            over_tiles(p.name + ".tile", tiles_of(sink() + 1), 1, [&](const Expr& tile, int64_t) {
                return for_each(p.name + ".z", {0, size(p[Dim::z])}, [&](const Expr& channel) {
                    Values name(p.name + ".sums");
                    std::vector<Expr> columns(static_cast<size_t>(tile_columns * f.phases));
                    for (int64_t phase = 0; phase < f.phases; ++phase) {
                        std::vector<Expr> m;
                        for (int64_t q = 0; q < f.patch(); ++q) {
                            const Expr index =
                                base +
                                ((channel * size(f.phases) + size(phase)) * size(f.patch()) +
                                 size(q)) *
                                    size(sums_pitch_) +
                                tile;
                            m.push_back(name(ir::load(sums_, lanes_from(index, unit_.lanes),
                                                      ir::Alignment::element)));
                        }
                        const std::vector<Expr> outputs =
                            finished(name, sink(), names_, channel, m);
                        for (int64_t c = 0; c < tile_columns; ++c)
                            columns[static_cast<size_t>(c * f.phases + phase)] =
                                outputs[static_cast<size_t>(c)];
                    }
                    return name.around(store_columns(channel, y, tile, columns));
                });
            }));
    }

    VectorUnit unit_;
    std::vector<ColumnFilters> filters_;  ///< by nest
    std::vector<Line> lines_;             ///< by tensor
    std::vector<int64_t> row_pitch_;      ///< by tensor: of a row that will be transformed
    std::vector<int64_t> most_tiles_;     ///< by tensor, Y last
    std::vector<std::string> tile_names_;
    NamedConstants constants_;
    Parameters names_;  ///< of a scattered sink
    std::string row_ = unique("row"), sums_ = unique("sums"), products_ = unique("products");
    int64_t row_offset_ = 0, products_offset_ = 0, sums_offset_ = 0, sums_rows_ = 0,
            sums_pitch_ = 0, scratch_bytes_ = 0;
};

/// Whether rows come whole, in order and once: all channels and columns in every step, lines kept
/// for the innermost strip.
bool goes_by_rows(const GroupSchedule& group, const std::vector<LayerProblem>& problems) {
    const Nest& last = group.nests.back();
    int strips = 0;
    while (last.loops[static_cast<size_t>(strips)].band == Band::strip) ++strips;
    const Level store = strips == 0 ? Level{} : Level{group.sink(), strips - 1};
    for (int k = 0; k <= group.sink(); ++k) {
        const Nest& nest = group.nests[static_cast<size_t>(k)];
        for (const Dim d : {Dim::z, Dim::x, Dim::i}) {
            if (nest[d] != problems[static_cast<size_t>(k)][d]) return false;
        }
        const Placement& lines =
            k == 0 ? nest.x.front().placement : group.nests[static_cast<size_t>(k) - 1].y;
        if (lines.store != store) return false;
        if (lines.compute.is_root()) continue;
        const Nest& around = group.nests[static_cast<size_t>(lines.compute.nest)];
        if (around.loops[static_cast<size_t>(lines.compute.loop)].band == Band::inner) return false;
    }
    return true;
}

}  // namespace

std::optional<GroupCode> column_tiles_code(const Network& network, const GroupSchedule& group,
                                           const VectorUnit& unit) {
    const std::vector<LayerProblem> problems = group_problems(network, group);
    if (!column_chain_pays(problems) || !goes_by_rows(group, problems)) return std::nullopt;
    return ColumnTiles(network, group, unit).code();
}

}  // namespace laminate
