#include "generators/kernels/winograd_map.h"

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "generators/ir/arrays.h"
#include "generators/ir/code_parts.h"
#include "generators/ir/layer_output.h"
#include "generators/kernels/ir_names.h"
#include "generators/kernels/map_code.h"
#include "generators/kernels/winograd_map_outputs.h"
#include "generators/kernels/winograd_map_patches.h"
#include "generators/kernels/winograd_transforms.h"
#include "generators/lowering/group_lowering.h"
#include "scheduler/schedule/kernels/layout/winograd_map.h"
#include "scheduler/schedule/problem.h"

namespace laminate {

using namespace Halide::Internal;

namespace {

/// M of a block of output channels.
class MapProducts {
public:
    MapProducts(const MapCode& code, const WinogradMapLayout& at)
        : code_(code),
          p_(code.problem()),
          at_(at),
          taps_(at.row_taps * at.column_taps),
          places_(code, at) {}

    /// Products of the patches in V of a part of the input channels and the first `bands` bands, into block
    /// `place` of M.
    [[nodiscard]] Stmt code(const Expr& part, const Expr& z, const Expr& place,
                            const Expr& bands) const;

private:
    /// A group of rows of frequencies (WinogradMapLayout::row_groups).
    using Rows = std::vector<int64_t>;

    /// U of input channel first + i at the frequencies of `rows`.
    [[nodiscard]] Stmt transformed_weights(const Expr& z, const Expr& first, const Expr& i,
                                           const Rows& rows) const;
    /// Whether the plain weights of the next part are asked for while products of this one are summed, a share
    /// with each frequency; else a few channels before they are transformed (docs/performance.md, "Weights of
    /// whole maps").
    [[nodiscard]] bool asks_for_next_part() const { return at_.lanes >= ir::elements_of_line; }
    /// Asks for these lines of plain weights, counted from element `begin`.
    [[nodiscard]] Stmt weights_ahead(const Expr& begin, const Interval& lines) const;
    /// Adds to all tiles of M the products of the `count` input channels of a part at the frequencies
    /// of `rows`. Asks for the weights of the next part, from channel `next` on.
    [[nodiscard]] Stmt multiplied(const Rows& rows, const Expr& blocks_of_tiles, const Expr& count,
                                  const Expr& part, const Expr& place, const Expr& next) const;
    /// The same of frequency f, whose weights are number `n` of U, of register tile number t.
    [[nodiscard]] Stmt sums(const Expr& n, const Expr& f, const Expr& t, const Expr& count,
                            const Expr& part, const Expr& place) const;
    [[nodiscard]] Expr weights_of(const Expr& channel) const {
        return channel * size(taps_ * at_.block);
    }
    /// Where to ask for the weights of `count` channels from `channel` on: nothing lies behind the last.
    [[nodiscard]] Expr asked_from(const Expr& channel, int64_t count) const {
        return Halide::min(channel, size(at_.blocks * p_[Dim::i] - count));
    }

    const MapCode& code_;
    const LayerProblem& p_;
    const WinogradMapLayout& at_;
    int64_t taps_;
    PatchPlaces places_;
};

Stmt MapProducts::code(const Expr& part, const Expr& z, const Expr& place,
                       const Expr& bands) const {
    const Expr first = simplify(part * size(at_.inputs));
    const Expr count = places_.inputs_from(first);
    const Expr blocks_of_tiles =
        simplify((bands * size(at_.row_tiles) + size(at_.tile - 1)) / size(at_.tile));
    std::vector<Stmt> all;
    for (const Rows& rows : at_.row_groups()) {
        all.push_back(code_.loop(".ui", {0, count}, [&](const Expr& i) {
            return transformed_weights(z, first, i, rows);
        }));
        all.push_back(multiplied(rows, blocks_of_tiles, count, part, place,
                                 simplify(z * size(p_[Dim::i]) + first + count)));
    }
    return ir::sequence(all);
}

Stmt MapProducts::multiplied(const Rows& rows, const Expr& blocks_of_tiles, const Expr& count,
                             const Expr& part, const Expr& place, const Expr& next) const {
    const int64_t columns = at_.patch_columns();
    // Rows of a group follow each other, or are two.
    const bool is_run = rows.back() - rows.front() + 1 == std::ssize(rows);
    return code_.loop(".f", {0, size(std::ssize(rows) * columns)}, [&](const Expr& n) {
        const Expr behind = size((rows.back() - 1) * columns);
        const Expr f = is_run ? n + size(rows.front() * columns)
                              : Halide::select(n < size(columns), n, n + behind);
        return code_.loop(".t", {0, blocks_of_tiles}, [&](const Expr& t) {
            const Stmt products = sums(n, f, t, count, part, place);
            if (!asks_for_next_part()) return products;
            const int64_t lines = ceil_div(taps_ * at_.block * at_.inputs,
                                           ir::elements_of_line * at_.frequencies);
            const Expr share = weights_of(asked_from(next, at_.inputs)) +
                               f * size(lines * ir::elements_of_line);
            const Interval of_tile{t * size(lines) / blocks_of_tiles,
                                   (t + 1) * size(lines) / blocks_of_tiles};
            return ir::sequence({weights_ahead(share, of_tile), products});
        });
    });
}

Stmt MapProducts::weights_ahead(const Expr& begin, const Interval& lines) const {
    return code_.loop(".ahead", lines, [&](const Expr& line) {
        return ir::prefetch(code_.weights(), begin + line * size(ir::elements_of_line));
    });
}

Stmt MapProducts::transformed_weights(const Expr& z, const Expr& first, const Expr& i,
                                      const Rows& rows) const {
    const int64_t lanes = at_.lanes;
    const Expr channel = z * size(p_[Dim::i]) + first + i;
    std::vector<Stmt> all;
    if (rows.front() == 0) {
        const int64_t channels_ahead = asks_for_next_part() ? 2 : 4;
        all.push_back(weights_ahead(weights_of(asked_from(channel + size(channels_ahead), 1)),
                                    {0, size(ceil_div(taps_ * at_.block, ir::elements_of_line))}));
    }
    for (int64_t v = 0; v < at_.vectors; ++v) {
        Values name(p_.name + ".weights");
        const auto rounded = [](Values& values) {
            return [&values](const Expr& value) { return values(Halide::strict_float(value)); };
        };
        winograd::Kernel<Expr> g(static_cast<size_t>(at_.row_taps));
        for (int64_t tap = 0; tap < taps_; ++tap) {
            const Expr index = weights_of(channel) + size(tap * at_.block + v * lanes);
            g[static_cast<size_t>(tap / at_.column_taps)].push_back(
                name(ir::load(code_.weights(), lanes_from(index, lanes))));
        }
        // Row by row, so that few of U are in registers at a time.
        const auto transformed = winograd::rows_of_kernel(g, at_.rows_of_tile, rounded(name));
        std::vector<Stmt> parts;
        int64_t n = 0;
        for (const int64_t row : rows) {
            Values of_row(p_.name + ".weights");
            std::vector<Stmt> stores;
            for (const Expr& u : winograd::columns_of_kernel(transformed[static_cast<size_t>(row)],
                                                             at_.columns_of_tile, rounded(of_row))) {
                const Expr to = i * size(at_.block) +
                                size(at_.weights + n++ * at_.weight_frequency + v * lanes);
                stores.push_back(ir::store(code_.scratch(), u, lanes_from(to, lanes)));
                // U is larger than the first-level cache, and stores of whole lines wait for them one
                // after the other: those of the next channel are asked for now. Halves of lines gain
                // nothing (docs/performance.md).
                if (lanes >= ir::elements_of_line)
                    stores.push_back(ir::prefetch(code_.scratch(), to + size(at_.block)));
            }
            parts.push_back(of_row.around(ir::sequence(stores)));
        }
        all.push_back(name.around(ir::sequence(parts)));
    }
    return ir::sequence(all);
}

Stmt MapProducts::sums(const Expr& n, const Expr& f, const Expr& number, const Expr& count,
                       const Expr& part, const Expr& place) const {
    const std::string& scratch = code_.scratch();
    const int64_t lanes = at_.lanes;
    Values once(p_.name + ".base");
    const Expr patches = places_.patches_of(part) + f * size(at_.patch_frequency);
    std::vector<Expr> places;
    for (int64_t t = 0; t < at_.tile; ++t)
        places.push_back(once(patches + places_.of_tile(number * size(at_.tile) + size(t))));
    const Expr kernel = once(n * size(at_.weight_frequency) + size(at_.weights));
    const Expr to = once(place * size(at_.product_block) + number * size(at_.product_tile) +
                         f * size(at_.product_frequency) + size(at_.products));
    const auto product = [&](int64_t v, int64_t t) {
        return lanes_from(to + size(v * at_.product_vector + t * lanes), lanes);
    };
    const ir::SumTerm term{
        const_true(), count,
        [&](const Expr& i, int64_t v) {
            return ir::load(scratch,
                            lanes_from(kernel + i * size(at_.block) + size(v * lanes), lanes));
        },
        [&](const Expr& i, int64_t t) {
            return ir::load(scratch, places[static_cast<size_t>(t)] + i * size(at_.run));
        }};
    std::vector<Stmt> all;
    // Products of all blocks lie beyond the second-level cache, and a register tile has too few lines
    // of them for a processor to foresee those of the next one.
    if (at_.parts_outermost) {
        for (int64_t c = 0; c < at_.block * at_.tile; c += ir::elements_of_line)
            all.push_back(ir::prefetch(scratch, to + size(at_.product_tile + c)));
    }
    const auto start = [&](int64_t v, int64_t t) -> Expr {
        const Expr zero = make_zero(Halide::Float(32, static_cast<int>(lanes)));
        return at_.input_parts == 1 ? zero
                                    : Halide::select(broadcast(part > 0, lanes),
                                                     ir::load(scratch, product(v, t)), zero);
    };
    const auto store = [&](int64_t v, int64_t t, const Expr& sum) {
        return ir::store(scratch, sum, product(v, t));
    };
    all.push_back(
        ir::sums_of_products(p_.name, {lanes, at_.vectors, at_.tile}, {term}, store, start));
    return once.around(ir::sequence(all));
}

/// What a chunk of bands makes for some blocks of output channels, group by group of channels.
class MapChunk {
public:
    MapChunk(const MapCode& code, const WinogradMapLayout& at)
        : code_(code),
          at_(at),
          places_(code, at),
          patches_(code, at),
          products_(code, at),
          outputs_(code, at) {}

    [[nodiscard]] Stmt code(const Interval& blocks, const Expr& band, const Expr& bands) const {
        if (at_.channel_groups == 1) return of_group(0, blocks, band, bands);
        const Expr of_each = size(at_.blocks_of_group());
        const Interval groups{simplify(blocks.begin / of_each),
                              simplify((blocks.end + of_each - 1) / of_each)};
        return code_.loop(".group", groups, [&](const Expr& group) {
            const Interval here{simplify(Halide::max(blocks.begin, group * of_each)),
                                simplify(Halide::min(blocks.end, (group + 1) * of_each))};
            return of_group(group, here, band, bands);
        });
    }

private:
    /// The same of blocks of one group.
    [[nodiscard]] Stmt of_group(const Expr& group, const Interval& blocks, const Expr& band,
                                const Expr& bands) const {
        const auto patches = [&](const Expr& part) {
            return patches_.code(group, part, band, bands);
        };
        const auto products = [&](const Expr& part, const Expr& z, const Expr& place) {
            return products_.code(part, z, place, bands);
        };
        const auto outputs = [&](const Expr& z, const Expr& place) {
            return as_kernel("outputs", outputs_.code(z, place, band, bands));
        };
        if (at_.parts_outermost) {
            const auto part_of_products = [&](const Expr& part) {
                return each_block(blocks, [&](const Expr& z, const Expr& place) {
                    return as_kernel("products", products(part, z, place));
                });
            };
            return ir::sequence({places_.loop([&](const Expr& part) {
                                     return ir::sequence({as_kernel("patches", patches(part)),
                                                          part_of_products(part)});
                                 }),
                                 each_block(blocks, outputs)});
        }
        return ir::sequence(
            {as_kernel("patches", places_.loop(patches)),
             each_block(blocks, [&](const Expr& z, const Expr& place) {
                 const Stmt parts =
                     places_.loop([&](const Expr& part) { return products(part, z, place); });
                 return ir::sequence({as_kernel("products", parts), outputs(z, place)});
             })});
    }

    /// Calls `make` for each block of output channels, with its place in M.
    [[nodiscard]] Stmt each_block(
        const Interval& blocks,
        const std::function<Stmt(const Expr& z, const Expr& place)>& make) const {
        return code_.loop(".z", blocks, [&](const Expr& z) {
            return make(z, at_.parts_outermost ? simplify(z - blocks.begin) : Expr(0));
        });
    }

    const MapCode& code_;
    const WinogradMapLayout& at_;
    PatchPlaces places_;
    MapPatches patches_;
    MapProducts products_;
    MapOutputs outputs_;
};

/// All parts: chunks x parts of the blocks of output channels.
Stmt all_parts(const MapCode& code, const WinogradMapLayout& at) {
    const MapChunk of_chunk(code, at);
    return code.for_parts_of(
        ".chunk", at.channel_parts, [&](const Expr& chunk, const Interval& parts) {
            const auto block_of = [&](const Expr& part) {
                return simplify(part * size(at.blocks) / size(at.channel_parts));
            };
            const auto first_band = [&](const Expr& c) {
                return simplify(c * size(at.bands) / size(at.chunks));
            };
            const Expr band = first_band(chunk);
            return of_chunk.code({block_of(parts.begin), block_of(parts.end)}, band,
                                 simplify(first_band(chunk + 1) - band));
        });
}

}  // namespace

GroupCode winograd_map_code(LayerOutput output, const WinogradMapLayout& at) {
    MapCode code(std::move(output), at.block, Packing::Order::by_input);
    const Stmt body = all_parts(code, at);
    GroupCode made = std::move(code).code(body, at.scratch_elements(), at.parts());
    made.strips_together = at.channel_parts;  // V of a chunk
    return made;
}

}  // namespace laminate
