#include "generators/kernels/winograd.h"

#include <algorithm>
#include <array>

#include "generators/ir/arrays.h"
#include "generators/ir/code_parts.h"
#include "generators/kernels/ir_names.h"
#include "generators/kernels/winograd_transforms.h"
#include "generators/lowering/group_lowering.h"

namespace laminate {

using namespace Halide::Internal;
using winograd::kernel_size;
using winograd::most_patch_rows;
using winograd::most_rows;
using winograd::patch_columns;
using winograd::patch_rows;
using winograd::TileOrder;

namespace {

constexpr int64_t taps = kernel_size * kernel_size;

/// Everything that the code of one layer's rows, one or two at a time, has in common.
struct Step {
    const LayerProblem& p;
    const WinogradTile& tile;
    const WinogradNames& names;
    Expr end;  ///< of the step's rows
    int64_t rows;
    WinogradRowsLayout layout;

    [[nodiscard]] Stmt loop(const std::string& name, const Expr& trips,
                            const std::function<Stmt(Expr)>& make) const {
        return GroupLowering::for_each(p.name + name, {0, simplify(trips)}, make);
    }
    /// Rows of patches: where they begin in memory and whether they lie in the picture, and where
    /// outputs go. Bound to names outside the loops over channels, for they are costly where rows
    /// rotate.
    struct Rows {
        std::array<Expr, most_patch_rows> input;
        std::array<Expr, most_patch_rows> is_inside;
        std::array<Expr, most_rows> output;
    };
    [[nodiscard]] Rows inputs_at(Values& name, const Expr& row) const {
        Rows all;
        for (int64_t r = 0; r < patch_rows(rows); ++r) {
            const Expr at = simplify(row + size(r - p.y().pad_begin));
            const auto n = static_cast<size_t>(r);
            all.is_inside[n] = name(at >= 0 && at < end_of_inputs());
            all.input[n] = name(names.input_row(Halide::clamp(at, 0, simplify(names.input_rows - 1))));
        }
        return all;
    }
    [[nodiscard]] Rows outputs_at(Values& name, const Expr& row) const {
        Rows all;
        for (int64_t r = 0; r < rows; ++r)
            all.output[static_cast<size_t>(r)] = name(names.output_row(row + size(r)));
        return all;
    }
    /// Behind the last row that is there: of the picture, or that the step's outputs read.
    [[nodiscard]] Expr end_of_inputs() const {
        if (!tile.has_partial || tile.rows == 2 || rows == 1) return names.input_rows;
        return simplify(
            Halide::min(names.input_rows, end + size(kernel_size - 1 - p.y().pad_begin)));
    }
    /// How many are asked for.
    [[nodiscard]] Expr columns() const {
        return simplify(names.columns.end - names.columns.begin);
    }
    /// Columns that one vector of tiles covers.
    [[nodiscard]] int64_t width() const { return layout.lanes * WinogradTile::columns; }
};

/// Patches between their two transforms. The transform of rows makes `parts` vectors in each of `rows` rows, and
/// the transform of columns takes a row at a time. Shorter vectors than a line have 16 registers: patches then
/// wait on the stack, and one code serves all rows.
class BetweenAxes {
public:
    BetweenAxes(const std::string& name, int64_t lanes, int64_t parts, int64_t rows)
        : name_(name), values_{unique_name(name), lanes}, parts_(parts), rows_(rows) {}

    [[nodiscard]] Stmt put(int64_t part, const std::vector<Expr>& by_row) const {
        std::vector<Stmt> stores;
        for (int64_t r = 0; r < rows_; ++r)
            stores.push_back(values_.set(part * rows_ + r, by_row[static_cast<size_t>(r)]));
        return ir::sequence(stores);
    }
    [[nodiscard]] Expr get(int64_t part, const Expr& r) const {
        return ir::load(values_.name, values_.index(size(part * rows_) + r));
    }
    [[nodiscard]] Stmt each_row(const std::function<Stmt(const Expr& r)>& make) const {
        if (values_.lanes < ir::elements_of_line)
            return GroupLowering::for_each(name_ + ".row", {0, size(rows_)}, make);
        std::vector<Stmt> all;
        for (int64_t r = 0; r < rows_; ++r) all.push_back(make(size(r)));
        return ir::sequence(all);
    }
    [[nodiscard]] Stmt around(const Stmt& body) const { return values_.around(parts_ * rows_, body); }

private:
    std::string name_;
    Accumulators values_;
    int64_t parts_, rows_;
};

/// A vector of patches of one input channel, from column x on, into V at element `to` of its row. Rows are
/// transformed before columns are taken apart: fewer vectors are in registers at a time.
Stmt transform_patches(const Step& s, const Step::Rows& rows, const Expr& channel, const Expr& x,
                       const Expr& to) {
    constexpr size_t parts_of_row = WinogradTile::columns + 1;
    const TileOrder order =
        s.tile.axis == VectorAxis::x ? TileOrder::by_fours : TileOrder::ascending;
    const LayerProblem& p = s.p;
    const int64_t lanes = s.layout.lanes;
    Values name(p.name + ".patch");
    const Expr column = simplify(x + channel * s.names.input_plane - size(p.x().pad_begin));
    const int64_t frequency_rows = patch_rows(s.rows);
    const BetweenAxes between(p.name + ".patch", lanes, parts_of_row, frequency_rows);
    std::vector<Stmt> all;
    for (int64_t n = 0; n < static_cast<int64_t>(parts_of_row); ++n) {
        Values of_part(p.name + ".patch.part");
        std::vector<Expr> d;
        for (size_t r = 0; r < static_cast<size_t>(frequency_rows); ++r) {
            const Expr index = rows.input[r] + simplify(column + size(n * lanes));
            const Expr value =
                ir::load(s.names.input, lanes_from(index, lanes), ir::Alignment::element);
            // Rows outside the picture are zero and nowhere stored.
            d.push_back(of_part(Halide::select(broadcast(rows.is_inside[r], lanes), value,
                                               make_zero(value.type()))));
        }
        const std::vector<Expr> transformed = winograd::of_rows(of_part, d);
        all.push_back(of_part.around(between.put(n, transformed)));
    }
    // The next channel's rows lie elsewhere, in the third-level cache if the lines of a group
    // need much memory.
    for (size_t r = 0; r < static_cast<size_t>(frequency_rows); ++r) {
        for (int64_t c = 0; c < s.width(); c += ir::elements_of_line)
            all.push_back(ir::prefetch(s.names.input,
                                       rows.input[r] + column + s.names.input_plane + size(c)));
    }
    all.push_back(between.each_row([&](const Expr& r) {
        Values of_row(p.name + ".patch.row");
        std::array<Expr, parts_of_row> row;
        for (size_t n = 0; n < row.size(); ++n)
            row[n] = of_row(between.get(static_cast<int64_t>(n), r));
        const winograd::PatchRow v =
            winograd::of_columns(of_row, winograd::columns_of_patches(of_row, row, order, lanes));
        const Expr begin = of_row(channel * size(s.layout.tiles) + to +
                                  r * size(patch_columns * s.layout.frequency));
        std::vector<Stmt> stores;
        for (int64_t c = 0; c < patch_columns; ++c)
            stores.push_back(ir::store(s.names.scratch, v[static_cast<size_t>(c)],
                                       lanes_from(begin + size(c * s.layout.frequency), lanes),
                                       ir::Alignment::element));
        return of_row.around(ir::sequence(stores));
    }));
    return name.around(between.around(ir::sequence(all)));
}

/// Sums over the input channels. They end up in M, wherever `product_at` says.
Stmt multiply(const Step& s, int64_t vectors, int64_t scalars,
              const std::function<Expr(const Expr& i, int64_t vector)>& vector_at,
              const std::function<Expr(const Expr& i, int64_t scalar)>& scalar_at,
              const std::function<Expr(int64_t vector, int64_t scalar)>& product_at,
              const std::function<Stmt(const Expr& first, int64_t count)>& ahead = {}) {
    const int64_t lanes = s.layout.lanes;
    return ir::sums_of_products(s.p.name, {lanes, vectors, scalars},
                                {{const_true(), size(s.p[Dim::i]), vector_at, scalar_at, ahead}},
                                [&](int64_t v, int64_t n, const Expr& sum) {
                                    return ir::store(s.names.scratch, sum,
                                                     lanes_from(product_at(v, n), lanes),
                                                     ir::Alignment::element);
                                });
}

/// A block of output channels, and its place among those that are multiplied together.
struct Block {
    Expr number;
    Expr place;
};

/// Whether code transforms the weights of some blocks at a time, for as many patches as V has room for.
bool has_passing_weights(const Step& s) {
    return s.tile.weights > 0 && !transforms_all_weights(s.p, s.tile);
}

/// First weight of a block of output channels at one frequency.
Expr weights_of(const Step& s, const Block& block, const Expr& f) {
    const Expr& before = has_passing_weights(s) ? block.place : block.number;
    return (before * size(s.layout.frequencies) + f) * size(weights_of_frequency(s.p, s.tile));
}

/// G g G^T of a block's weights for bands, lane by lane in the order in which products read them: input
/// channel by input channel, output channels of the block.
Stmt transform_weights(const Step& s, const Block& block) {
    const int64_t lanes = s.layout.lanes, of_tap = s.p[Dim::i] * s.tile.channels;
    return s.loop(".wi", size(of_tap / lanes), [&](const Expr& vector) {
        Values name(s.p.name + ".weights");
        const auto rounded = [&](const Expr& value) { return name(Halide::strict_float(value)); };
        const Expr begin = name(block.number * size(taps * of_tap) + vector * size(lanes));
        winograd::Kernel<Expr> g(kernel_size);
        for (int64_t tap = 0; tap < taps; ++tap)
            g[static_cast<size_t>(tap / kernel_size)].push_back(name(ir::load(
                s.names.plain_weights, lanes_from(begin + size(tap * of_tap), lanes))));
        // Row by row, so that few are in registers at a time.
        std::vector<Stmt> stores;
        int64_t f = 0;
        for (const auto& row : winograd::rows_of_kernel(g, s.rows, rounded)) {
            Values of_row(s.p.name + ".weights.row");
            const auto rounded_row = [&](const Expr& value) {
                return of_row(Halide::strict_float(value));
            };
            std::vector<Stmt> of_this;
            for (const Expr& u : winograd::columns_of_kernel(row, winograd::columns, rounded_row)) {
                const Expr at = simplify(weights_of(s, block, size(f++)) + vector * size(lanes));
                of_this.push_back(ir::store(s.names.weights[1], u, lanes_from(at, lanes)));
            }
            stores.push_back(of_row.around(ir::sequence(of_this)));
        }
        return name.around(ir::sequence(stores));
    });
}

/// Weights that code asks for while products of a frequency are summed: the same of the next frequency, or a
/// share of what the block at the same place of the next ones is transformed from.
class WeightsAhead {
public:
    WeightsAhead(const Step& s, Values& once, const Expr& part, const Block& block, const Expr& f)
        : is_plain_(has_passing_weights(s)),
          array_(is_plain_ ? s.names.plain_weights : s.names.weights[s.rows == 1 ? 0 : 1]),
          of_channel_(is_plain_ ? ceil_div(taps * s.tile.channels, s.layout.frequencies)
                                : s.tile.channels),
          begin_(once(begin(s, block, f))),
          is_asked_for_(is_plain_ ? simplify(part == 0) : const_true()) {}

    /// Asks for the lines of `count` input channels. All of a frequency before its sums would fill the queue
    /// of lines on their way, behind which loads of the sums wait.
    [[nodiscard]] Stmt lines(const Expr& first, int64_t count) const {
        std::vector<Stmt> all;
        for (int64_t n = 0; n < count * of_channel_; n += ir::elements_of_line)
            all.push_back(
                ir::prefetch(array_, simplify(begin_ + first * size(of_channel_) + size(n))));
        return guarded(is_asked_for_, ir::sequence(all));
    }

private:
    /// Nothing lies behind the last weights, so those of the last frequency are asked for again.
    [[nodiscard]] Expr begin(const Step& s, const Block& block, const Expr& f) const {
        const int64_t of_frequency = s.p[Dim::i] * of_channel_;
        const int64_t of_block =
            is_plain_ ? taps * s.p[Dim::i] * s.tile.channels
                      : s.layout.frequencies * weights_of_frequency(s.p, s.tile);
        const Expr next = is_plain_ ? (block.number + size(s.tile.blocks)) * size(of_block) +
                                          f * size(of_frequency)
                                    : weights_of(s, block, f + 1);
        return Halide::min(
            next, size(ceil_div(s.p[Dim::z], s.tile.channels) * of_block - of_frequency));
    }

    bool is_plain_;
    std::string array_;
    int64_t of_channel_;  ///< elements
    Expr begin_;
    /// The first part of a step asks for plain weights, for all of its parts.
    Expr is_asked_for_;
};

Stmt multiply_by_tiles(const Step& s, const Expr& part, const Block& block, const Expr& f) {
    const std::string& weights = s.names.weights[s.rows == 1 ? 0 : 1];
    Values once(s.p.name + ".base");
    const Expr patches = once(part * size(s.layout.part) + f * size(s.layout.frequency));
    const Expr kernel = once(weights_of(s, block, f));
    const int64_t lanes = s.layout.lanes;
    const WeightsAhead ahead(s, once, part, block, f);
    return once.around(multiply(
        s, s.tile.tiles / lanes, s.tile.channels,
        [&](const Expr& i, int64_t v) {
            return ir::load(s.names.scratch,
                            lanes_from(patches + i * size(s.layout.tiles) + size(v * lanes), lanes),
                            ir::Alignment::element);
        },
        [&](const Expr& i, int64_t z) {
            return ir::load(weights, kernel + i * size(s.tile.channels) + size(z));
        },
        [&](int64_t v, int64_t z) {
            return f * size(s.layout.product) +
                   block.place * size(s.tile.channels * s.layout.tiles) +
                   size(s.layout.products + z * s.layout.tiles + v * lanes);
        },
        [&](const Expr& first, int64_t count) { return ahead.lines(first, count); }));
}

Stmt multiply_by_channels(const Step& s, const Expr& block, const Expr& f, const Expr& first_tile) {
    const std::string& weights = s.names.weights[s.rows == 1 ? 0 : 1];
    Values once(s.p.name + ".base");
    const Expr patches = once(f * size(s.layout.frequency) + first_tile);
    const Expr kernel = once(weights_of(s, {block, 0}, f));
    const int64_t lanes = s.layout.lanes;
    return once.around(multiply(
        s, s.tile.channels / lanes, s.tile.tiles,
        [&](const Expr& i, int64_t v) {
            return ir::load(
                weights, lanes_from(kernel + i * size(s.tile.channels) + size(v * lanes), lanes));
        },
        [&](const Expr& i, int64_t t) {
            return ir::load(s.names.scratch, patches + i * size(s.layout.tiles) + size(t));
        },
        [&](int64_t v, int64_t t) {
            return f * size(s.layout.product) + (first_tile + size(t)) * size(s.tile.channels) +
                   size(s.layout.products + v * lanes);
        }));
}

/// A^T m of a vector of products at M's element `at`, by row of outputs, then column of products.
std::vector<winograd::PatchRow> sums_of_rows(const Step& s, Values& name, const Expr& at) {
    return winograd::rows_of_products(name, s.rows, WinogradTile::columns, [&](int64_t f) {
        const Expr index = simplify(at + size(s.layout.products + f * s.layout.product));
        return name(ir::load(s.names.scratch, lanes_from(index, s.layout.lanes),
                             ir::Alignment::element));
    });
}

bool is_multiple(const Expr& extent, int64_t of) {
    return is_const_zero(simplify(extent % size(of)));
}

/// `make` for a band of which all rows are asked for, and with a branch around each row for a partial
/// one: such branches keep all sums of a tile on the stack.
Stmt of_whole_or_partial(const Step& s, const Expr& row,
                         const std::function<Stmt(bool is_partial)>& make) {
    if (!s.tile.has_partial || s.rows == 1) return make(false);
    return IfThenElse::make(row + size(s.rows) <= s.end, make(false), make(true));
}

/// What of a vector of tiles is not asked for.
struct Ragged {
    bool rows = false;
    bool columns = false;
};

/// Stores a vector of tiles of output channel z of a block.
Stmt store_tiles(const Step& s, const Step::Rows& rows, const Expr& channel, const Expr& z,
                 const Expr& row, const Expr& x, const Expr& vector, const Ragged& ragged) {
    Values name(s.p.name + ".product");
    const auto sums =
        sums_of_rows(s, name, z * size(s.layout.tiles) + vector * size(s.layout.lanes));
    std::vector<Stmt> stores;
    for (int64_t r = 0; r < s.rows; ++r) {
        Values of_row(s.p.name + ".product.row");
        const auto columns = winograd::columns_of_products(of_row, sums[static_cast<size_t>(r)]);
        const Expr value = of_row(
            s.names.finished(channel, winograd::side_by_side(of_row, columns)));
        const Expr column = simplify(x + vector * size(s.width()));
        const Expr to = lanes_from(rows.output[static_cast<size_t>(r)] +
                                       simplify(channel * s.names.output_plane + column),
                                   s.width());
        const Expr inside =
            lanes_from(column, s.width()) < broadcast(s.names.columns.end, s.width());
        const Stmt store =
            ragged.columns ? ir::store(s.names.output, value, to, ir::Alignment::element, inside)
                           : ir::store(s.names.output, value, to, ir::Alignment::element);
        stores.push_back(
            of_row.around(ragged.rows ? guarded(row + size(r) < s.end, store) : store));
    }
    return name.around(ir::sequence(stores));
}
Stmt store_tiles(const Step& s, const Step::Rows& rows, const Expr& channel, const Expr& z,
                 const Expr& row, const Expr& x, const Expr& vector, bool is_partial) {
    const auto make = [&](bool is_ragged) {
        return store_tiles(s, rows, channel, z, row, x, vector,
                           {.rows = is_partial, .columns = is_ragged});
    };
    if (is_multiple(s.columns(), s.width())) return make(false);
    if (is_partial) return make(true);
    return IfThenElse::make(x + (vector + 1) * size(s.width()) <= s.names.columns.end, make(false),
                            make(true));
}

/// Stores one tile of a vector of output channels: four columns of each channel at once. Scattered
/// lane by lane, results that go to a ring kept LLVM busy for ten seconds.
Stmt store_channels(const Step& s, const Step::Rows& rows, const Expr& block, const Expr& tile,
                    const Expr& row, const Expr& x, int64_t vector, bool is_partial) {
    const LayerProblem& p = s.p;
    const int64_t lanes = s.layout.lanes;
    constexpr int64_t columns = WinogradTile::columns;
    Values name(p.name + ".product");
    const auto sums = sums_of_rows(s, name, tile * size(s.tile.channels) + size(vector * lanes));
    const Expr first = simplify(block * size(s.tile.channels) + size(vector * lanes));
    std::vector<Stmt> stores;
    for (int64_t r = 0; r < s.rows; ++r) {
        Values of_row(p.name + ".product.row");
        std::vector<Expr> finished;
        for (const Expr& sum :
             winograd::columns_of_products(of_row, sums[static_cast<size_t>(r)]))
            finished.push_back(of_row(s.names.finished(lanes_from(first, lanes), sum)));
        const Expr all = of_row(Shuffle::make_interleave(finished));
        std::vector<Stmt> of_lanes;
        for (int64_t z = 0; z < lanes; ++z) {
            const Expr value = Shuffle::make_slice(all, static_cast<int>(z * columns), 1,
                                                   static_cast<int>(columns));
            const Expr to =
                lanes_from(rows.output[static_cast<size_t>(r)] +
                               simplify((first + size(z)) * s.names.output_plane + x),
                           columns);
            Stmt store = ir::store(s.names.output, value, to, ir::Alignment::element);
            const Expr& end = s.names.columns.end;
            if (!is_multiple(s.columns(), columns)) {
                const Stmt part =
                    ir::store(s.names.output, value, to, ir::Alignment::element,
                              lanes_from(x, columns) < broadcast(end, columns));
                store = IfThenElse::make(x + size(columns) <= end, store, part);
            }
            if (p[Dim::z] % s.tile.channels != 0)
                store = guarded(first + size(z) < size(p[Dim::z]), store);
            of_lanes.push_back(store);
        }
        const Stmt store = ir::sequence(of_lanes);
        stores.push_back(of_row.around(is_partial ? guarded(row + size(r) < s.end, store) : store));
    }
    return name.around(ir::sequence(stores));
}

/// One row, or a band, from `row` on. Plain weights are transformed for some blocks of output channels and
/// all patches that V has room for, so that these blocks stay in a near cache.
Stmt rows_by_tiles(const Step& s, const Expr& row) {
    const LayerProblem& p = s.p;
    const int64_t lanes = s.layout.lanes;
    const int64_t vectors = s.tile.tiles / lanes;
    Values name(p.name + ".row");
    const Step::Rows in = s.inputs_at(name, row);
    const Step::Rows out = s.outputs_at(name, row);
    const int64_t columns = vectors * s.width();
    const Expr all_parts = (s.columns() + size(columns - 1)) / size(columns);
    const Expr together = size(s.tile.parts);
    const Stmt band = s.loop(".xo", (all_parts + together - 1) / together, [&](const Expr& chunk) {
        const Expr first = simplify(chunk * together);
        const auto parts = [&](const char* loop, const std::function<Stmt(Expr part, Expr x)>& make) {
            const Expr trips = s.tile.parts == 1 ? Expr(1) : Halide::min(all_parts - first, together);
            return s.loop(loop, trips, [&](const Expr& part) {
                return make(part, simplify(s.names.columns.begin + (first + part) * size(columns)));
            });
        };
        const Stmt patches = parts(".x", [&](const Expr& part, const Expr& x) {
            return s.loop(".i", size(p[Dim::i]), [&](const Expr& i) {
                return s.loop(".v", size(vectors), [&](const Expr& v) {
                    return transform_patches(s, in, i, simplify(x + v * size(s.width())),
                                             simplify(part * size(s.layout.part) + v * size(lanes)));
                });
            });
        });
        const int64_t blocks = ceil_div(p[Dim::z], s.tile.channels), at_once = s.tile.blocks;
        const Stmt outputs = s.loop(".z", size(ceil_div(blocks, at_once)), [&](const Expr& group) {
            const Expr first_block = simplify(group * size(at_once));
            const Expr count = blocks % at_once == 0
                                   ? size(at_once)
                                   : Halide::min(size(blocks) - first_block, size(at_once));
            const auto each_block = [&](const char* loop, const std::function<Stmt(const Block&)>& make) {
                return s.loop(loop, count, [&](const Expr& place) {
                    return make({simplify(first_block + place), place});
                });
            };
            const Stmt sums = parts(".xz", [&](const Expr& part, const Expr& x) {
                const Stmt products = s.loop(".f", size(s.layout.frequencies), [&](const Expr& f) {
                    return each_block(".zf", [&](const Block& block) {
                        return multiply_by_tiles(s, part, block, f);
                    });
                });
                const Expr channels = simplify(count * size(s.tile.channels));
                const Stmt stores = of_whole_or_partial(s, row, [&](bool is_partial) {
                    return s.loop(".zi", channels, [&](const Expr& z) {
                        const Expr channel = simplify(first_block * size(s.tile.channels) + z);
                        const Stmt all = s.loop(".v", size(vectors), [&](const Expr& v) {
                            return guarded(x + v * size(s.width()) < s.names.columns.end,
                                           store_tiles(s, out, channel, z, row, x, v, is_partial));
                        });
                        return p[Dim::z] % s.tile.channels == 0
                                   ? all
                                   : guarded(channel < size(p[Dim::z]), all);
                    });
                });
                return ir::sequence({products, stores});
            });
            if (!has_passing_weights(s)) return sums;
            const Stmt weights = each_block(
                ".zw", [&](const Block& block) { return transform_weights(s, block); });
            return ir::sequence({weights, sums});
        });
        return ir::sequence({patches, outputs});
    });
    // The places of rows are found outside, so that layers on rings that rotate differently share this code.
    return name.around(as_kernel(p.name + ".band", band));
}

/// `count` rows or bands from `row` on, at most tile.bands.
Stmt rows_by_channels(const Step& s, const Expr& row, const Expr& count) {
    const LayerProblem& p = s.p;
    const int64_t lanes = s.layout.lanes;
    const int64_t row_tiles = s.layout.row_tiles;
    const auto row_of = [&](const Expr& band) { return simplify(row + band * size(s.rows)); };
    // Bands in this order: what a vector writes behind the last tile of its rows belongs to the
    // next rows.
    const Stmt patches = s.loop(".band", count, [&](const Expr& band) {
        Values name(p.name + ".row");
        const Step::Rows in = s.inputs_at(name, row_of(band));
        return name.around(s.loop(".i", size(p[Dim::i]), [&](const Expr& i) {
            return s.loop(".x", size(ceil_div(row_tiles, lanes)), [&](const Expr& part) {
                return transform_patches(s, in, i, simplify(part * size(s.width())),
                                         simplify(band * size(row_tiles) + part * size(lanes)));
            });
        }));
    });
    const Expr blocks_of_tiles =
        (count * size(row_tiles) + size(s.tile.tiles - 1)) / size(s.tile.tiles);
    const Stmt outputs =
        s.loop(".z", size(ceil_div(p[Dim::z], s.tile.channels)), [&](const Expr& block) {
            const Stmt products = s.loop(".f", size(s.layout.frequencies), [&](const Expr& f) {
                return s.loop(".t", blocks_of_tiles, [&](const Expr& t) {
                    return multiply_by_channels(s, block, f, simplify(t * size(s.tile.tiles)));
                });
            });
            const Stmt stores = s.loop(".band", count, [&](const Expr& band) {
                Values name(p.name + ".row");
                const Step::Rows out = s.outputs_at(name, row_of(band));
                return name.around(of_whole_or_partial(s, row_of(band), [&](bool is_partial) {
                    return s.loop(".x", size(row_tiles), [&](const Expr& x) {
                        std::vector<Stmt> all;
                        for (int64_t v = 0; v < s.tile.channels / lanes; ++v)
                            all.push_back(store_channels(
                                s, out, block, simplify(band * size(row_tiles) + x), row_of(band),
                                simplify(x * size(WinogradTile::columns)), v, is_partial));
                        return ir::sequence(all);
                    });
                }));
            });
            return ir::sequence({products, stores});
        });
    return ir::sequence({patches, outputs});
}

}  // namespace

std::vector<float> winograd_weights(const std::vector<float>& canonical, const LayerProblem& p,
                                    int64_t rows, int64_t block) {
    const int64_t inputs = p[Dim::i];
    const int64_t frequencies = winograd::frequencies(rows);
    const auto as_it_is = [](float value) { return value; };
    std::vector<float> all(
        static_cast<size_t>(ceil_div(p[Dim::z], block) * block * inputs * frequencies), 0.0F);
    for (int64_t z = 0; z < p[Dim::z]; ++z) {
        for (int64_t i = 0; i < inputs; ++i) {
            const float* g = canonical.data() + (z * inputs + i) * kernel_size * kernel_size;
            winograd::Kernel<float> kernel;
            for (int64_t n = 0; n < kernel_size; ++n, g += kernel_size)
                kernel.emplace_back(g, g + kernel_size);
            int64_t f = z / block * frequencies;
            for (const auto& row : winograd::rows_of_kernel(kernel, rows, as_it_is)) {
                for (const float u : winograd::columns_of_kernel(row, winograd::columns, as_it_is))
                    all[static_cast<size_t>((f++ * inputs + i) * block + z % block)] = u;
            }
        }
    }
    return all;
}

Stmt winograd_rows(const LayerProblem& p, const WinogradTile& tile, const VectorUnit& unit,
                   WinogradNames names, const Interval& rows) {
    Values name(p.name + ".step");
    for (Expr* edge : {&names.columns.begin, &names.columns.end}) {
        *edge = simplify(*edge);
        if (!is_const(*edge)) *edge = name(*edge);
    }
    const Expr begin = name(rows.begin);
    const Expr end = name(rows.end);
    const auto step = [&](int64_t together) {
        return Step{p, tile, names, end, together, WinogradRowsLayout(p, tile, unit, together)};
    };
    const Expr count = simplify(end - begin);
    const Expr is_last = Halide::cast<int32_t>(end >= names.output_rows);
    const Expr may_be_partial = !tile.has_partial ? Expr(0) : tile.has_singles ? is_last : Expr(1);
    const Expr bands =
        name(simplify((count + may_be_partial * size(tile.rows - 1)) / size(tile.rows)));
    std::vector<Stmt> parts;
    if (tile.has_bands) {
        const Step several = step(tile.rows);
        if (transforms_all_weights(p, tile)) {
            parts.push_back(several.loop(".zw", size(tile.weights), [&](const Expr& block) {
                return transform_weights(several, {block, block});
            }));
        }
        if (tile.bands == 1) {
            parts.push_back(several.loop(".band", bands, [&](const Expr& band) {
                const Expr row = simplify(begin + band * size(tile.rows));
                return tile.axis == VectorAxis::x ? rows_by_tiles(several, row)
                                                  : rows_by_channels(several, row, 1);
            }));
        } else {
            const Expr parts_of = (bands + size(tile.bands - 1)) / size(tile.bands);
            parts.push_back(several.loop(".bands", parts_of, [&](const Expr& part) {
                const Expr first = simplify(part * size(tile.bands));
                return rows_by_channels(several, simplify(begin + first * size(tile.rows)),
                                        simplify(Halide::min(bands - first, size(tile.bands))));
            }));
        }
    }
    if (tile.has_singles) {
        const Step one = step(1);
        const Expr last = simplify(end - 1);
        parts.push_back(guarded(count % 2 == 1 && end < names.output_rows,
                                tile.axis == VectorAxis::x ? rows_by_tiles(one, last)
                                                           : rows_by_channels(one, last, 1)));
    }
    return name.around(ir::sequence(parts));
}

}  // namespace laminate
