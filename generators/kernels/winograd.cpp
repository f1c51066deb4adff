#include "generators/kernels/winograd.h"

#include <algorithm>
#include <array>

#include "generators/ir/arrays.h"
#include "generators/kernels/ir_names.h"
#include "generators/kernels/winograd_transforms.h"
#include "generators/lowering/group_lowering.h"

namespace laminate {

using namespace Halide::Internal;
using winograd::kernel_size;
using winograd::most_patch_rows;
using winograd::most_rows;
using winograd::Patch;
using winograd::patch_columns;
using winograd::patch_rows;

namespace {

/// Everything that the code of one layer's rows, one or two at a time, has in common.
struct Step {
    const LayerProblem& p;
    const WinogradTile& tile;
    const WinogradNames& names;
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
            all.is_inside[n] = name(at >= 0 && at < names.input_rows);
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
    /// Columns that one vector of tiles covers.
    [[nodiscard]] int64_t width() const { return layout.lanes * WinogradTile::columns; }
};

/// A vector of patches of one input channel, from column x on, into V at tile `to`.
Stmt transform_patches(const Step& s, const Step::Rows& rows, const Expr& channel, const Expr& x,
                       const Expr& to) {
    const LayerProblem& p = s.p;
    const int64_t lanes = s.layout.lanes;
    const int64_t step = WinogradTile::columns;
    Values name(p.name + ".patch");
    Patch d;
    const Expr column = simplify(x + channel * s.names.input_plane - size(p.x().pad_begin));
    for (size_t r = 0; r < static_cast<size_t>(patch_rows(s.rows)); ++r) {
        for (int64_t c = 0; c < patch_columns; c += step) {
            const Expr index = rows.input[r] + simplify(column + size(c));
            const Expr wide =
                name(ir::load(s.names.input, lanes_from(index, s.width()), ir::Alignment::element));
            for (int64_t m = c; m < std::min(patch_columns, c + step); ++m) {
                const Expr value = Shuffle::make_slice(
                    wide, static_cast<int>(m - c), static_cast<int>(step), static_cast<int>(lanes));
                // Rows outside the picture are zero and nowhere stored.
                d[r][static_cast<size_t>(m)] = name(Halide::select(
                    broadcast(rows.is_inside[r], lanes), value, make_zero(value.type())));
            }
        }
    }
    d = winograd::of_patch(name, d, s.rows);
    std::vector<Stmt> stores;
    for (int64_t f = 0; f < s.layout.frequencies; ++f) {
        const Expr index =
            simplify(channel * size(s.layout.tiles) + to + size(f * s.layout.frequency));
        const Expr& v =
            d[static_cast<size_t>(f / patch_columns)][static_cast<size_t>(f % patch_columns)];
        stores.push_back(
            ir::store(s.names.scratch, v, lanes_from(index, lanes), ir::Alignment::element));
    }
    return name.around(ir::sequence(stores));
}

/// Sums over the input channels. They end up in M, wherever `product_at` says.
Stmt multiply(const Step& s, int64_t vectors, int64_t scalars,
              const std::function<Expr(const Expr& i, int64_t vector)>& vector_at,
              const std::function<Expr(const Expr& i, int64_t scalar)>& scalar_at,
              const std::function<Expr(int64_t vector, int64_t scalar)>& product_at) {
    const int64_t lanes = s.layout.lanes;
    return ir::sums_of_products(s.p.name, {lanes, vectors, scalars},
                                {{const_true(), size(s.p[Dim::i]), vector_at, scalar_at}},
                                [&](int64_t v, int64_t n, const Expr& sum) {
                                    return ir::store(s.names.scratch, sum,
                                                     lanes_from(product_at(v, n), lanes),
                                                     ir::Alignment::element);
                                });
}

/// First weight of a block of output channels at one frequency.
Expr weights_of(const Step& s, const Expr& block, const Expr& f) {
    return (block * size(s.layout.frequencies) + f) * size(s.p[Dim::i] * s.tile.channels);
}

Stmt multiply_by_tiles(const Step& s, const Expr& block, const Expr& f) {
    const std::string weights = s.names.weights[static_cast<size_t>(s.rows - 1)];
    Values once(s.p.name + ".base");
    const Expr patches = once(f * size(s.layout.frequency));
    const Expr kernel = once(weights_of(s, block, f));
    const int64_t lanes = s.layout.lanes;
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
                   size(s.layout.products + z * s.layout.tiles + v * lanes);
        }));
}

Stmt multiply_by_channels(const Step& s, const Expr& block, const Expr& f, const Expr& first_tile) {
    const std::string weights = s.names.weights[static_cast<size_t>(s.rows - 1)];
    Values once(s.p.name + ".base");
    const Expr patches = once(f * size(s.layout.frequency) + first_tile);
    const Expr kernel = once(weights_of(s, block, f));
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

/// The outputs of a vector of products at M's element `at`.
winograd::Outputs outputs_of(const Step& s, Values& name, const Expr& at) {
    Patch m;
    for (int64_t f = 0; f < s.layout.frequencies; ++f) {
        const Expr index = lanes_from(simplify(at + size(s.layout.products + f * s.layout.product)),
                                      s.layout.lanes);
        m[static_cast<size_t>(f / patch_columns)][static_cast<size_t>(f % patch_columns)] =
            name(ir::load(s.names.scratch, index, ir::Alignment::element));
    }
    return winograd::of_products(name, m, s.rows);
}

bool is_multiple(const Expr& extent, int64_t of) {
    return is_const_zero(simplify(extent % size(of)));
}

Stmt wanted_row(const Step& s, const Expr& row, const Stmt& store) {
    return !s.tile.has_half_pairs || s.rows == 1 ? store : guarded(row < s.names.output_rows, store);
}

/// Stores a vector of tiles of output channel z of a block.
Stmt store_tiles(const Step& s, const Step::Rows& rows, const Expr& channel, const Expr& z,
                 const Expr& row, const Expr& x, int64_t vector) {
    Values name(s.p.name + ".product");
    const auto outputs =
        outputs_of(s, name, z * size(s.layout.tiles) + size(vector * s.layout.lanes));
    std::vector<Stmt> stores;
    for (int64_t r = 0; r < s.rows; ++r) {
        const auto& columns = outputs[static_cast<size_t>(r)];
        const Expr value = name(
            s.names.finished(channel, Shuffle::make_interleave({columns.begin(), columns.end()})));
        const Expr column = simplify(x + size(vector * s.width()));
        const Expr to = lanes_from(rows.output[static_cast<size_t>(r)] +
                                       simplify(channel * s.names.output_plane + column),
                                   s.width());
        const Stmt whole = ir::store(s.names.output, value, to, ir::Alignment::element);
        Stmt store = whole;
        if (!is_multiple(s.names.output_columns, s.width())) {
            const Expr inside =
                lanes_from(column, s.width()) < broadcast(s.names.output_columns, s.width());
            store = IfThenElse::make(
                column + size(s.width()) <= s.names.output_columns, whole,
                ir::store(s.names.output, value, to, ir::Alignment::element, inside));
        }
        stores.push_back(wanted_row(s, row + size(r), store));
    }
    return name.around(ir::sequence(stores));
}

/// Stores one tile of a vector of output channels: four columns of each channel at once. Scattered
/// lane by lane, results that go to a ring kept LLVM busy for ten seconds.
Stmt store_channels(const Step& s, const Step::Rows& rows, const Expr& block, const Expr& tile,
                    const Expr& row, const Expr& x, int64_t vector) {
    const LayerProblem& p = s.p;
    const int64_t lanes = s.layout.lanes;
    constexpr int64_t columns = WinogradTile::columns;
    Values name(p.name + ".product");
    const auto outputs = outputs_of(s, name, tile * size(s.tile.channels) + size(vector * lanes));
    const Expr first = simplify(block * size(s.tile.channels) + size(vector * lanes));
    std::vector<Stmt> stores;
    for (int64_t r = 0; r < s.rows; ++r) {
        std::vector<Expr> finished;
        for (const Expr& sum : outputs[static_cast<size_t>(r)])
            finished.push_back(name(s.names.finished(lanes_from(first, lanes), sum)));
        const Expr all = name(Shuffle::make_interleave(finished));
        std::vector<Stmt> of_row;
        for (int64_t z = 0; z < lanes; ++z) {
            const Expr value = Shuffle::make_slice(all, static_cast<int>(z * columns), 1,
                                                   static_cast<int>(columns));
            const Expr to =
                lanes_from(rows.output[static_cast<size_t>(r)] +
                               simplify((first + size(z)) * s.names.output_plane + x),
                           columns);
            Stmt store = ir::store(s.names.output, value, to, ir::Alignment::element);
            const Expr& end = s.names.output_columns;
            if (!is_multiple(end, columns)) {
                const Stmt part =
                    ir::store(s.names.output, value, to, ir::Alignment::element,
                              lanes_from(x, columns) < broadcast(end, columns));
                store = IfThenElse::make(x + size(columns) <= end, store, part);
            }
            if (p[Dim::z] % s.tile.channels != 0)
                store = guarded(first + size(z) < size(p[Dim::z]), store);
            of_row.push_back(store);
        }
        stores.push_back(wanted_row(s, row + size(r), ir::sequence(of_row)));
    }
    return name.around(ir::sequence(stores));
}

/// One row, or a pair of rows, from `row` on.
Stmt rows_by_tiles(const Step& s, const Expr& row) {
    const LayerProblem& p = s.p;
    const int64_t lanes = s.layout.lanes;
    const int64_t vectors = s.tile.tiles / lanes;
    Values name(p.name + ".row");
    const Step::Rows in = s.inputs_at(name, row);
    const Step::Rows out = s.outputs_at(name, row);
    const int64_t columns = vectors * s.width();
    const Expr vectors_of_tiles = (s.names.output_columns + size(columns - 1)) / size(columns);
    return name.around(
        s.loop(".x", vectors_of_tiles, [&](const Expr& part) {
            const Expr x = simplify(part * size(vectors * s.width()));
            const Stmt patches = s.loop(".i", size(p[Dim::i]), [&](const Expr& i) {
                std::vector<Stmt> all;
                for (int64_t v = 0; v < vectors; ++v)
                    all.push_back(transform_patches(s, in, i, simplify(x + size(v * s.width())),
                                                    size(v * lanes)));
                return ir::sequence(all);
            });
            const Stmt outputs =
                s.loop(".z", size(ceil_div(p[Dim::z], s.tile.channels)), [&](const Expr& block) {
                    const Stmt products =
                        s.loop(".f", size(s.layout.frequencies),
                               [&](const Expr& f) { return multiply_by_tiles(s, block, f); });
                    const Stmt stores = s.loop(".zi", size(s.tile.channels), [&](const Expr& z) {
                        const Expr channel = simplify(block * size(s.tile.channels) + z);
                        std::vector<Stmt> all;
                        for (int64_t v = 0; v < vectors; ++v)
                            all.push_back(guarded(x + size(v * s.width()) < s.names.output_columns,
                                                  store_tiles(s, out, channel, z, row, x, v)));
                        return p[Dim::z] % s.tile.channels == 0
                                   ? ir::sequence(all)
                                   : guarded(channel < size(p[Dim::z]), ir::sequence(all));
                    });
                    return ir::sequence({products, stores});
                });
            return ir::sequence({patches, outputs});
        }));
}

/// `count` rows or pairs of rows from `row` on, at most tile.pairs.
Stmt rows_by_channels(const Step& s, const Expr& row, const Expr& count) {
    const LayerProblem& p = s.p;
    const int64_t lanes = s.layout.lanes;
    const int64_t row_tiles = s.layout.row_tiles;
    const auto row_of = [&](const Expr& pair) { return simplify(row + pair * size(s.rows)); };
    // Pairs in this order: what a vector writes behind the last tile of its rows belongs to the
    // next rows.
    const Stmt patches = s.loop(".pair", count, [&](const Expr& pair) {
        Values name(p.name + ".row");
        const Step::Rows in = s.inputs_at(name, row_of(pair));
        return name.around(s.loop(".i", size(p[Dim::i]), [&](const Expr& i) {
            return s.loop(".x", size(ceil_div(row_tiles, lanes)), [&](const Expr& part) {
                return transform_patches(s, in, i, simplify(part * size(s.width())),
                                         simplify(pair * size(row_tiles) + part * size(lanes)));
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
            const Stmt stores = s.loop(".pair", count, [&](const Expr& pair) {
                Values name(p.name + ".row");
                const Step::Rows out = s.outputs_at(name, row_of(pair));
                return name.around(s.loop(".x", size(row_tiles), [&](const Expr& x) {
                    std::vector<Stmt> all;
                    for (int64_t v = 0; v < s.tile.channels / lanes; ++v)
                        all.push_back(store_channels(
                            s, out, block, simplify(pair * size(row_tiles) + x), row_of(pair),
                            simplify(x * size(WinogradTile::columns)), v));
                    return ir::sequence(all);
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
    std::vector<float> all(
        static_cast<size_t>(ceil_div(p[Dim::z], block) * block * inputs * frequencies), 0.0F);
    for (int64_t z = 0; z < p[Dim::z]; ++z) {
        for (int64_t i = 0; i < inputs; ++i) {
            const float* g = canonical.data() + (z * inputs + i) * kernel_size * kernel_size;
            winograd::Kernel<float> kernel;
            for (size_t tap = 0; tap < kernel_size * kernel_size; ++tap)
                kernel[tap / kernel_size][tap % kernel_size] = g[tap];
            const auto u = winograd::of_kernel(kernel, rows, [](float value) { return value; });
            for (int64_t f = 0; f < frequencies; ++f) {
                all[static_cast<size_t>(((z / block * frequencies + f) * inputs + i) * block +
                                        z % block)] = u[static_cast<size_t>(f / patch_columns)]
                                                       [static_cast<size_t>(f % patch_columns)];
            }
        }
    }
    return all;
}

Stmt winograd_rows(const LayerProblem& p, const WinogradTile& tile, const VectorUnit& unit,
                   const WinogradNames& names, const Interval& rows) {
    const auto step = [&](int64_t together) {
        return Step{p, tile, names, together, WinogradRowsLayout(p, tile, unit, together)};
    };
    Values name(p.name + ".step");
    const Expr begin = name(rows.begin);
    const Expr end = name(rows.end);
    const Expr count = simplify(end - begin);
    const Expr is_last = Halide::cast<int32_t>(end >= names.output_rows);
    const Expr half_pairs = !tile.has_half_pairs ? Expr(0) : tile.has_singles ? is_last : Expr(1);
    const Expr pairs = name(simplify((count + half_pairs) / 2));
    std::vector<Stmt> parts;
    if (tile.has_pairs) {
        const Step two = step(2);
        if (tile.pairs == 1) {
            parts.push_back(two.loop(".pair", pairs, [&](const Expr& pair) {
                const Expr row = simplify(begin + pair * 2);
                return tile.axis == VectorAxis::x ? rows_by_tiles(two, row)
                                                  : rows_by_channels(two, row, 1);
            }));
        } else {
            const Expr parts_of = (pairs + size(tile.pairs - 1)) / size(tile.pairs);
            parts.push_back(two.loop(".pairs", parts_of, [&](const Expr& part) {
                const Expr first = simplify(part * size(tile.pairs));
                return rows_by_channels(two, simplify(begin + first * 2),
                                        simplify(Halide::min(pairs - first, size(tile.pairs))));
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
