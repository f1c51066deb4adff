#include "generators/kernels/map_channels.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <set>
#include <utility>

#include "generators/ir/activations.h"
#include "generators/ir/arrays.h"
#include "generators/kernels/ir_names.h"
#include "generators/kernels/map_code.h"
#include "generators/lowering/group_lowering.h"
#include "scheduler/schedule/kernels/layer_forms.h"

namespace laminate {

using namespace Halide::Internal;

namespace {

class MapChannels {
public:
    /// `begin` is where the map of channel 0 begins if outputs stay in the scratch block.
    MapChannels(const MapCode& code, const MapChannelsLayout& at, const Expr& begin = Expr())
        : code_(code),
          p_(code.problem()),
          at_(at),
          begin_(begin.defined() ? begin : Expr(0)),
          stays_in_scratch_(begin.defined()) {}

    [[nodiscard]] Stmt body() const;
    /// All passes over the tiles of a block that are in `chunk`.
    [[nodiscard]] Stmt block(const Expr& z_block, const Interval& chunk) const;
    /// Copies what a chunk's tiles read to the panel.
    [[nodiscard]] Stmt panel(const Interval& chunk) const;

private:
    /// Pixels that are summed at once, and the block of output channels.
    struct Tile {
        Expr number;
        Expr first;  ///< pixel; a constant where tiles are written out
        int64_t pixels = 0;
        Expr z_block;
        Expr place;  ///< of the first pixel in the scratch block
        Expr column{};  ///< of the first pixel in its run; a constant where tiles are written out
    };
    /// Tiles of a run, [begin, end).
    struct TileRange {
        int64_t begin = 0, end = 0;
    };
    /// A row of the window, and input channels.
    struct Pass {
        int64_t n = 0;
        Interval inputs;
        Expr is_first;
    };
    using Value = std::function<Expr(int64_t v, int64_t pixel)>;  ///< of a tile

    /// All parts, where those of a chunk read the same panel.
    [[nodiscard]] Stmt parts_by_panel() const;
    /// All sums of a chunk become outputs, a vector of pixels at a time.
    [[nodiscard]] Stmt finish_chunk(const Expr& z_block, const Interval& chunk) const;

    /// Tiles of a part of the pixels.
    [[nodiscard]] Interval chunk(const Expr& n) const;
    /// `make` for every run of which a chunk has tiles.
    [[nodiscard]] Stmt for_runs(const Interval& chunk, const MapCode::Make& make) const;
    /// `make` for every tile that a chunk has of a run. Those of `in_loop` are in loops over tiles of equal
    /// length, the others one after the other, so that first pixels of the only run, or columns, are
    /// constants.
    [[nodiscard]] Stmt tiles_of_run(const Expr& z_block, const Expr& number, const Interval& chunk,
                                    const std::function<Stmt(const Tile&)>& make,
                                    const TileRange& in_loop) const;
    [[nodiscard]] TileRange all_tiles() const { return {0, at_.run_tiles()}; }
    /// Tiles of a row whose taps all read inside of the picture; none of a row of few tiles, which are
    /// written out.
    [[nodiscard]] TileRange inner_tiles() const;
    /// `make` for every tile of a chunk.
    [[nodiscard]] Stmt for_tiles(const Expr& z_block, const Interval& chunk,
                                 const std::function<Stmt(const Tile&)>& make) const;
    /// Adds a pass to a tile's sums; `start` has what they were, `put` takes them.
    [[nodiscard]] Stmt add(const Tile& tile, const Pass& pass, const Value& start,
                           const std::function<Stmt(const Value&)>& put) const;
    /// Adds the products of input channel i.
    [[nodiscard]] Stmt products(const Accumulators& sums, const Tile& tile, const Pass& pass,
                                const Expr& i) const;
    /// Asks for the weights of the next pass or block, as many of them as tiles and channels, from i on,
    /// are summed meanwhile.
    [[nodiscard]] Stmt ask_ahead(const Tile& tile, const Pass& pass, const Expr& i) const;
    [[nodiscard]] bool reads_in_place() const { return at_.pixels > 1 && !at_.has_panel; }
    /// Input channels summed one after the other, and the distance from the elements that they read to
    /// those asked for meanwhile.
    struct AskedInputs {
        Interval inputs;
        Expr distance;
    };
    /// The first of two such runs asks for channels a few behind its own. Nothing may lie behind the last ones
    /// of a pass, so the second run asks for the pass's first ones: of the next tile in a 1x1 layer, else of
    /// the same. Bounding every index would cost instructions that products need.
    [[nodiscard]] AskedInputs asked_inputs(const Tile& tile, const Pass& pass, const Expr& n) const;
    /// Asks for what a tile reads in place of input channel i, or for what lies so far away from it.
    [[nodiscard]] Stmt ask_for_inputs(const Tile& tile, const Pass& pass, const Expr& i,
                                      const Expr& distance) const;
    /// Sums of all passes become outputs.
    [[nodiscard]] Stmt finish(const Tile& tile, const Value& sum) const;
    /// The same of vector v of the channels, as vectors of pixels. `some`: the pixels of a whole vector
    /// that are stored, all of them unless given.
    [[nodiscard]] Stmt finish_transposed(const Tile& tile, int64_t v, const Value& sum,
                                         const Expr& some = Expr()) const;
    /// Asks for a line of channel z of a block that is stored to, and for what will be added there.
    [[nodiscard]] Stmt ask_for_outputs(const Expr& z_block, const Expr& z, const Expr& pixel) const;
    /// The same for the first pixels of a chunk, before its last sums are added. The other pixels are
    /// asked for a few vectors ahead: a line that waits longer leaves the first-level cache again.
    [[nodiscard]] Stmt ask_for_first_outputs(const Expr& z_block, const Interval& chunk) const;
    [[nodiscard]] int64_t asked_ahead() const { return 4 * at_.lanes; }  ///< pixels
    /// Asks for what will be added to a tile's outputs; nothing if the layer's group adds nothing.
    [[nodiscard]] Stmt ask_for_added(const Tile& tile) const;

    /// Vector v of the channels of a block.
    [[nodiscard]] Expr first_channel(const Expr& z_block, int64_t v) const {
        return simplify(z_block * size(at_.block()) + size(v * at_.lanes));
    }
    [[nodiscard]] Expr channels(const Expr& z_block, int64_t v) const {
        return lanes_from(first_channel(z_block, v), at_.lanes);
    }
    /// Sums of a pixel that wait for the next pass.
    [[nodiscard]] Expr waiting(const Tile& tile, int64_t v, int64_t pixel) const {
        const Expr first = simplify(tile.place * size(at_.block()));
        return lanes_from(simplify(first + size(pixel * at_.block() + v * at_.lanes)), at_.lanes);
    }
    /// The first weight of channel i of row n.
    [[nodiscard]] Expr weight(const Expr& z_block, int64_t n, const Expr& i) const {
        return ((z_block * size(at_.window_rows) + size(n)) * size(at_.inputs) + i) *
               size(p_.x().kernel * at_.block());
    }
    /// Channel z of a block, or the last one for those that fill up the last block.
    [[nodiscard]] Expr existing_channel(const Expr& z_block, const Expr& z) const {
        const Expr channel = z_block * size(at_.block()) + z;
        return p_[Dim::z] % at_.block() == 0 ? channel
                                             : Halide::min(channel, size(p_[Dim::z] - 1));
    }
    /// Input channels from the one that is read to the one that is asked for meanwhile.
    static constexpr int64_t channels_ahead = 8;
    /// The input channel so far behind i, if there is one, else the last.
    [[nodiscard]] Expr channel_ahead(const Expr& i, int64_t ahead) const {
        return Halide::min(i + size(ahead), size(at_.inputs - 1));
    }
    /// The first pixel of tile n, a run's first where there are several.
    [[nodiscard]] Expr first_pixel(const Expr& n) const {
        if (at_.runs > 1) return simplify(n / size(at_.run_tiles()) * size(at_.run()));
        return simplify(n * size(at_.pixels / at_.tiles) +
                        Halide::min(n, size(at_.larger_tiles())));
    }
    /// Where the panel has a pixel of a tile of input channel i, for a tap of the window.
    [[nodiscard]] Expr panel_index(const Tile& tile, const Interval& inputs, const Expr& i,
                                   int64_t pixel, const Expr& n, int64_t m) const {
        const Expr columns = size(at_.window_columns);
        return simplify(size(at_.panel_offset() + m * tile.pixels + pixel) +
                        (n * size(at_.inputs) + inputs.begin) * columns * size(at_.chunk_pixels()) +
                        tile.place * (inputs.end - inputs.begin) * columns +
                        (i - inputs.begin) * columns * size(tile.pixels));
    }
    /// What a pixel of a tile reads of input channel i through tap m of the pass's row, unless that is
    /// padding.
    [[nodiscard]] std::optional<Expr> input(const Tile& tile, const Pass& pass, const Expr& i,
                                            int64_t pixel, int64_t m) const {
        if (at_.has_panel)
            return ir::load(code_.scratch(),
                            panel_index(tile, pass.inputs, i, pixel, size(pass.n), m));
        const std::optional<Expr> at = tap(tile, pixel, pass.n, m);
        if (!at) return {};
        return ir::load("X", simplify(i * size(p_.y().in * p_.x().in) + *at),
                        ir::Alignment::element);
    }
    /// Where a pixel of a tile reads a plane of X through a tap, unless that is padding.
    [[nodiscard]] std::optional<Expr> tap(const Tile& tile, int64_t pixel, int64_t n,
                                          int64_t m) const {
        if (is_pointwise(p_)) return simplify(tile.first + size(pixel));
        const int64_t at = *Halide::Internal::as_const_int(tile.first) + pixel;
        const auto row = p_.y().input(at / p_[Dim::x], n);
        const auto column = p_.x().input(at % p_[Dim::x], m);
        if (!row || !column) return std::nullopt;
        return size(*row * p_.x().in + *column);
    }

    const MapCode& code_;
    const LayerProblem& p_;
    const MapChannelsLayout& at_;
    Expr begin_;  ///< of the map of channel 0 where outputs are stored
    bool stays_in_scratch_;  ///< outputs, which the cache has then
};

Stmt MapChannels::body() const {
    if (at_.has_panel) return parts_by_panel();
    if (at_.block_parts > 1) {
        return code_.for_parts_of(".z", at_.block_parts, [&](const Expr& z, const Interval& parts) {
            const auto tile_of = [&](const Expr& part) {
                return simplify(part * size(at_.tiles) / size(at_.block_parts));
            };
            return block(z, {tile_of(parts.begin), tile_of(parts.end)});
        });
    }
    return code_.for_parts([&](const Expr& part) {
        const Interval tiles = chunk(simplify(part / size(at_.channel_parts)));
        const Interval blocks =
            part_of(simplify(part % size(at_.channel_parts)), at_.channel_parts, at_.blocks);
        return code_.loop(".z", blocks, [&](const Expr& z) { return block(z, tiles); });
    });
}

Interval MapChannels::chunk(const Expr& n) const {
    if (at_.runs == 1) return part_of(n, at_.chunks, at_.tiles);
    const Interval runs = part_of(n, at_.chunks, at_.runs);
    return {simplify(runs.begin * size(at_.run_tiles())), simplify(runs.end * size(at_.run_tiles()))};
}

Stmt MapChannels::parts_by_panel() const {
    return code_.for_parts_of(
        ".chunk", at_.channel_parts, [&](const Expr& n, const Interval& parts) {
            const Interval tiles = chunk(n);
            const auto block_of = [&](const Expr& part) {
                return simplify(part * size(at_.blocks) / size(at_.channel_parts));
            };
            return ir::sequence(
                {panel(tiles), code_.loop(".z", {block_of(parts.begin), block_of(parts.end)},
                                          [&](const Expr& z) { return block(z, tiles); })});
        });
}

Stmt MapChannels::panel(const Interval& chunk) const {
    const AxisWindow& wy = p_.y();
    const AxisWindow& wx = p_.x();
    // Stores no more than the tile's pixels, since those of the next tile may be there already.
    const auto put = [&](const Expr& to, const Expr& value) {
        return ir::store(code_.scratch(), value, lanes_from(to, value.type().lanes()),
                         ir::Alignment::element);
    };
    // The processor does not see lines coming that lie a map apart, so the code asks for them.
    constexpr int64_t near = 2 * channels_ahead;
    const auto pointwise = [&](const Tile& tile, const Interval& inputs, const Expr& i) {
        const Expr from = simplify(i * size(at_.pixels) + tile.first);
        const Expr next = channel_ahead(i, near) * size(at_.pixels) + tile.first;
        return ir::sequence({ir::prefetch("X", simplify(next)),
                             put(panel_index(tile, inputs, i, 0, 0, 0),
                                 ir::load("X", lanes_from(from, tile.pixels),
                                          ir::Alignment::element))});
    };
    // What tap n, m of a tile's windows reads of a row of X that begins at `from`.
    const auto taps = [&](const Tile& tile, const Interval& inputs, const Expr& n, const Expr& i,
                          const std::optional<Expr>& from) {
        std::vector<Stmt> all;
        for (int64_t m = 0; m < wx.kernel; ++m) {
            for (const VectorRun& run : runs_of(tile.pixels, {at_.lanes, at_.lanes})) {
                const Expr column = simplify(tile.column * size(wx.stride) +
                                             size(run.first * wx.stride + m * wx.dilation - wx.pad_begin));
                const auto loaded = [&] {
                    if (const auto known = as_const_int(column))
                        return row_of_input(wx, *from, *known, run);
                    return strided_load("X", simplify(*from + column), run.lanes, wx.stride);
                };
                const Expr value =
                    from ? Shuffle::make_slice(loaded(), 0, 1, static_cast<int>(run.end))
                         : broadcast(Expr(0.0F), run.end);
                all.push_back(put(panel_index(tile, inputs, i, run.first, n, m), value));
            }
        }
        return ir::sequence(all);
    };
    const auto rows = [&](const Expr& n, const Interval& inputs) {
        return for_runs(chunk, [&](const Expr& row) {
            const Expr y =
                simplify(row * size(wy.stride) + n * size(wy.dilation) - size(wy.pad_begin));
            const auto all = [&](bool is_inside) {
                return code_.loop(".i", inputs, [&](const Expr& i) {
                    const auto from =
                        is_inside ? std::optional(simplify((i * size(wy.in) + y) * size(wx.in)))
                                  : std::nullopt;
                    std::vector<Stmt> copied;
                    const Expr next =
                        (channel_ahead(i, channels_ahead) * size(wy.in) + y) * size(wx.in);
                    const TileRange inner = inner_tiles();
                    const int64_t lines = ceil_div(wx.in, ir::elements_of_line);
                    const auto ask = [&](const Expr& line) {
                        return ir::prefetch("X", simplify(next + line * size(ir::elements_of_line)));
                    };
                    if (from && inner.begin < inner.end)
                        copied.push_back(code_.loop(".line", {0, size(lines)}, ask));
                    for (int64_t line = 0; from && inner.begin == inner.end && line < lines; ++line)
                        copied.push_back(ask(size(line)));
                    copied.push_back(tiles_of_run(0, row, chunk, [&](const Tile& tile) {
                        return taps(tile, inputs, n, i, from);
                    }, inner));
                    return ir::sequence(copied);
                });
            };
            if (!ir::reaches_padding(wy)) return all(true);
            return IfThenElse::make(y >= 0 && y < size(wy.in), all(true), all(false));
        });
    };
    // Each tile takes pieces of lines of some channels and fills whole lines of the panel. The lines
    // of so few channels are still near when the next tile takes its pieces.
    return code_.loop(".panel", {0, size(at_.window_rows)}, [&](const Expr& n) {
        return code_.loop(".inputs", {0, size(at_.input_parts)}, [&](const Expr& part) {
            const Interval inputs = part_of(part, at_.input_parts, at_.inputs);
            if (!is_pointwise(p_)) return rows(n, inputs);
            const Expr count = simplify(inputs.end - inputs.begin);
            return code_.loop(".is", {0, simplify((count + size(near - 1)) / size(near))},
                              [&](const Expr& number) {
                const Expr first = simplify(inputs.begin + number * size(near));
                const Interval some{first, simplify(Halide::min(first + size(near), inputs.end))};
                return tiles_of_run(0, 0, chunk, [&](const Tile& tile) {
                    return code_.loop(".i", some, [&](const Expr& i) {
                        return pointwise(tile, inputs, i);
                    });
                }, all_tiles());
            });
        });
    });
}

Stmt MapChannels::tiles_of_run(const Expr& z_block, const Expr& number, const Interval& chunk,
                               const std::function<Stmt(const Tile&)>& make,
                               const TileRange& in_loop) const {
    const Expr chunk_first = at_.has_panel ? first_pixel(chunk.begin) : Expr(0);
    const int64_t of_run = at_.run_tiles();
    const Expr first_tile = simplify(number * size(of_run)), first = simplify(number * size(at_.run()));
    const Interval tiles = at_.runs > 1 ? Interval{0, size(of_run)} : chunk;
    const auto tile_at = [&](const Expr& n, const Expr& in_run, int64_t like) {
        const Expr pixel = simplify(first + in_run);
        return Tile{simplify(first_tile + n), pixel, at_.tile_pixels(like), z_block,
                    simplify(pixel - chunk_first), in_run};
    };
    std::vector<Stmt> all;
    for (int64_t n = 0; n < of_run; ++n) {
        if (n >= in_loop.begin && n < in_loop.end) continue;
        const Tile tile = tile_at(size(n), size(at_.first_pixel(n)), n);
        all.push_back(at_.runs > 1 ? make(tile) : ir::guarded(has(tiles, n), make(tile)));
    }
    for (const TileRange& equal :
         {TileRange{0, at_.larger_tiles()}, TileRange{at_.larger_tiles(), of_run}}) {
        const int64_t begin = std::max(equal.begin, in_loop.begin);
        const int64_t end = std::min(equal.end, in_loop.end);
        if (begin >= end) continue;
        all.push_back(code_.loop(".x", common(tiles, begin, end), [&](const Expr& n) {
            const Expr in_run = simplify((n - size(begin)) * size(at_.tile_pixels(begin))) +
                                size(at_.first_pixel(begin));
            return make(tile_at(n, in_run, begin));
        }));
    }
    return ir::sequence(all);
}

MapChannels::TileRange MapChannels::inner_tiles() const {
    constexpr int64_t most_in_sequence = 16;
    if (is_pointwise(p_) || at_.run_tiles() <= most_in_sequence) return {};
    const AxisWindow& w = p_.x();
    // Wide loads reach over the taps of a tile.
    const auto is_inside = [&](int64_t n) {
        const int64_t begin = at_.first_pixel(n) * w.stride - w.pad_begin;
        const int64_t pixels = round_up(at_.tile_pixels(n), at_.lanes);
        return begin >= 0 && begin + pixels * w.stride + (w.kernel - 1) * w.dilation <= w.in;
    };
    TileRange inner;
    while (inner.begin < at_.run_tiles() && !is_inside(inner.begin)) ++inner.begin;
    for (inner.end = inner.begin; inner.end < at_.run_tiles() && is_inside(inner.end);) ++inner.end;
    return inner;
}

Stmt MapChannels::for_tiles(const Expr& z_block, const Interval& chunk,
                            const std::function<Stmt(const Tile&)>& make) const {
    const TileRange in_loop = is_pointwise(p_) || at_.has_panel ? all_tiles() : TileRange{};
    return for_runs(chunk, [&](const Expr& run) {
        return tiles_of_run(z_block, run, chunk, make, in_loop);
    });
}

Stmt MapChannels::for_runs(const Interval& chunk, const MapCode::Make& make) const {
    if (at_.runs == 1) return make(0);
    const Interval runs{simplify(chunk.begin / size(at_.run_tiles())),
                        simplify(chunk.end / size(at_.run_tiles()))};
    return code_.loop(".row", runs, make);
}

Stmt MapChannels::block(const Expr& z_block, const Interval& chunk) const {
    const auto bias = [&](int64_t v, int64_t) {
        return ir::load(code_.bias(), channels(z_block, v));
    };
    if (at_.passes() == 1 && !at_.has_panel) {
        return for_tiles(z_block, chunk, [&](const Tile& tile) {
            const Stmt sums = add(tile, {0, {0, size(at_.inputs)}, const_true()}, bias,
                                  [&](const Value& sum) { return finish(tile, sum); });
            return ir::sequence({ask_for_added(tile), sums});
        });
    }
    const auto add_pass = [&](const Tile& tile, const Pass& pass) {
        const Value start = [&](int64_t v, int64_t pixel) -> Expr {
            if (pass.n > 0) return ir::load(code_.scratch(), waiting(tile, v, pixel));
            return Halide::select(pass.is_first, bias(v, pixel),
                                  ir::load(code_.scratch(), waiting(tile, v, pixel)));
        };
        return add(tile, pass, start, [&](const Value& sum) {
            std::vector<Stmt> stores;
            for (int64_t pixel = 0; pixel < tile.pixels; ++pixel) {
                for (int64_t v = 0; v < at_.vectors; ++v)
                    stores.push_back(ir::store(code_.scratch(), sum(v, pixel),
                                               waiting(tile, v, pixel)));
            }
            return ir::sequence(stores);
        });
    };
    std::vector<Stmt> all;
    for (int64_t n = 0; n < at_.window_rows; ++n) {
        if (n + 1 == at_.window_rows) all.push_back(ask_for_first_outputs(z_block, chunk));
        all.push_back(code_.loop(".inputs", {0, size(at_.input_parts)}, [&](const Expr& part) {
            const Pass pass{n, part_of(part, at_.input_parts, at_.inputs), simplify(part == 0)};
            return for_tiles(z_block, chunk,
                             [&](const Tile& tile) { return add_pass(tile, pass); });
        }));
    }
    if (at_.has_panel) {
        all.push_back(finish_chunk(z_block, chunk));
        return ir::sequence(all);
    }
    all.push_back(for_tiles(z_block, chunk, [&](const Tile& tile) {
        return finish(tile, [&](int64_t v, int64_t pixel) {
            return ir::load(code_.scratch(), waiting(tile, v, pixel));
        });
    }));
    return ir::sequence(all);
}

Stmt MapChannels::finish_chunk(const Expr& z_block, const Interval& chunk) const {
    const Expr begin = first_pixel(chunk.begin), end = first_pixel(chunk.end);
    const Expr lanes = size(at_.lanes);
    const auto outputs = [&](const Expr& n, const Expr& first, const Expr& wanted) {
        const Tile tile{n, simplify(first), at_.lanes, z_block, simplify(first - begin)};
        const auto sum = [&](int64_t v, int64_t pixel) {
            return ir::load(code_.scratch(), waiting(tile, v, pixel));
        };
        std::vector<Stmt> parts;
        const Expr ahead = simplify(Halide::min(first + size(asked_ahead()), end - 1));
        for (int64_t z = 0; z < at_.block(); ++z)
            parts.push_back(ask_for_outputs(z_block, size(z), ahead));
        for (int64_t v = 0; v < at_.vectors; ++v)
            parts.push_back(finish_transposed(tile, v, sum, wanted));
        return ir::sequence(parts);
    };
    const Expr whole = simplify((end - begin) / lanes);
    const Expr behind = simplify(begin + whole * lanes);
    // What is behind the last whole run is the end of a run that begins early.
    const Expr last = end - lanes;
    const Expr is_new = lanes_from(simplify(last), at_.lanes) >= broadcast(behind, at_.lanes);
    return ir::sequence(
        {code_.loop(".outputs", {0, whole},
                    [&](const Expr& n) { return outputs(n, begin + n * lanes, Expr()); }),
         ir::guarded(simplify(behind < end), outputs(whole, last, is_new))});
}

Stmt MapChannels::add(const Tile& tile, const Pass& pass, const Value& start,
                      const std::function<Stmt(const Value&)>& put) const {
    const Accumulators sums{unique_name(p_.name + ".sum"), at_.lanes};
    const int64_t pixels = tile.pixels;
    std::vector<Stmt> parts;
    for (int64_t v = 0; v < at_.vectors; ++v) {
        for (int64_t pixel = 0; pixel < pixels; ++pixel)
            parts.push_back(sums.set(v * pixels + pixel, start(v, pixel)));
    }
    const auto sum = [&](const Interval& inputs, const std::function<Stmt(const Expr&)>& ask) {
        const int64_t together = at_.inputs_together();
        const Interval steps{simplify(inputs.begin / size(together)),
                             simplify(inputs.end / size(together))};
        return code_.loop(".i", steps, [&](const Expr& step) {
            const Expr first = simplify(step * size(together));
            std::vector<Stmt> all{ask_ahead(tile, pass, first), ask(first)};
            for (int64_t n = 0; n < together; ++n)
                all.push_back(products(sums, tile, pass, simplify(first + size(n))));
            return ir::sequence(all);
        });
    };
    parts.push_back(reads_in_place()
                        ? code_.loop(".asking", {0, 2},
                                     [&](const Expr& n) {
                                         const AskedInputs asked = asked_inputs(tile, pass, n);
                                         return sum(asked.inputs, [&](const Expr& i) {
                                             return ask_for_inputs(tile, pass, i, asked.distance);
                                         });
                                     })
                        : sum(pass.inputs, [](const Expr&) { return Stmt(); }));
    parts.push_back(
        put([&](int64_t v, int64_t pixel) { return sums.get(v * pixels + pixel); }));
    return sums.around(at_.vectors * pixels, ir::sequence(parts));
}

Stmt MapChannels::products(const Accumulators& sums, const Tile& tile, const Pass& pass,
                           const Expr& i) const {
    std::vector<Stmt> taps;
    for (int64_t m = 0; m < p_.x().kernel; ++m) {
        const auto multiply = [&](const std::vector<Expr>& weights) {
            std::vector<Stmt> all;
            for (int64_t pixel = 0; pixel < tile.pixels; ++pixel) {
                const std::optional<Expr> in = input(tile, pass, i, pixel, m);
                if (!in) continue;
                all.push_back(ir::with_values(
                    p_.name + ".in", {broadcast(*in, at_.lanes)},
                    [&](const std::vector<Expr>& value) {
                        std::vector<Stmt> uses;
                        for (int64_t v = 0; v < at_.vectors; ++v) {
                            const int64_t sum = v * tile.pixels + pixel;
                            uses.push_back(sums.set(sum, sums.get(sum) +
                                                             value.front() *
                                                                 weights[static_cast<size_t>(v)]));
                        }
                        return ir::sequence(uses);
                    }));
            }
            return ir::sequence(all);
        };
        std::vector<Expr> weights;
        for (int64_t v = 0; v < at_.vectors; ++v) {
            const Expr first = weight(tile.z_block, pass.n, i) + size(m * at_.block() + v * at_.lanes);
            weights.push_back(ir::load(code_.weights(), lanes_from(first, at_.lanes)));
        }
        bool meets_picture = false;
        for (int64_t pixel = 0; pixel < tile.pixels; ++pixel)
            meets_picture = meets_picture || input(tile, pass, i, pixel, m).has_value();
        if (meets_picture) taps.push_back(ir::with_values(p_.name + ".w", weights, multiply));
    }
    return ir::sequence(taps);
}

Stmt MapChannels::ask_ahead(const Tile& tile, const Pass& pass, const Expr& i) const {
    if (at_.pixels == 1) return {};
    const int64_t tiles = std::max<int64_t>(1, at_.tiles / at_.chunks);
    const int64_t of_input = p_.x().kernel * at_.block(), line_of_each = ir::elements_of_line * tiles;
    const Expr inputs = simplify(pass.inputs.end - pass.inputs.begin);
    const Expr step = (tile.number % size(tiles)) * inputs + (i - pass.inputs.begin);
    // Nothing lies behind the last pass of the last block, which asks for its own weights.
    const Expr last = weight(size(at_.blocks), 0, 0) - inputs * size(of_input);
    const Expr next = Halide::min(weight(tile.z_block, pass.n, pass.inputs.end), last);
    std::vector<Stmt> all;
    for (int64_t n = 0; n < ceil_div(at_.inputs_together() * of_input, line_of_each); ++n) {
        const Expr line = step * size(of_input) / size(line_of_each) + size(n);
        all.push_back(
            ir::prefetch(code_.weights(), simplify(next + line * size(ir::elements_of_line))));
    }
    return ir::sequence(all);
}

// A tile reads a piece of a line or two of each channel, a map apart, and the processor does not see them
// coming. Pieces begin anywhere, so the last element may be in a line of its own.
Stmt MapChannels::ask_for_inputs(const Tile& tile, const Pass& pass, const Expr& i,
                                 const Expr& distance) const {
    const Expr first = is_pointwise(p_) ? tile.first : Expr(size(0));
    std::set<int64_t> read;
    for (int64_t pixel = 0; pixel < tile.pixels; ++pixel) {
        for (int64_t m = 0; m < p_.x().kernel; ++m) {
            if (const std::optional<Expr> at = tap(tile, pixel, pass.n, m))
                read.insert(*Halide::Internal::as_const_int(simplify(*at - first)));
        }
    }
    // 64-bit, because LLVM would otherwise widen each index at every use.
    const auto i64 = [](const Expr& e) { return Halide::cast<int64_t>(e); };
    const Expr channel =
        i64(i) * Expr(p_.y().in * p_.x().in) + i64(simplify(first + distance));
    std::vector<Stmt> all;
    for (auto at = read.begin(); at != read.end(); at = read.lower_bound(*at + ir::elements_of_line))
        all.push_back(ir::prefetch("X", channel + Expr(*at)));
    if (read.size() > 1) all.push_back(ir::prefetch("X", channel + Expr(*read.rbegin())));
    return ir::sequence(all);
}

MapChannels::AskedInputs MapChannels::asked_inputs(const Tile& tile, const Pass& pass,
                                                   const Expr& n) const {
    const int64_t map = p_.y().in * p_.x().in;
    const auto& [begin, end] = pass.inputs;
    const Expr split = Halide::max(begin, end - size(channels_ahead));
    const Expr to_first =
        (begin - split) * size(map) + size(is_pointwise(p_) ? tile.pixels : 0);
    const auto either = [&](const Expr& first, const Expr& second) {
        return simplify(Halide::select(n == 0, first, second));
    };
    return {{either(begin, split), either(split, end)},
            either(size(channels_ahead * map), to_first)};
}

Stmt MapChannels::ask_for_added(const Tile& tile) const {
    if (!code_.output().prefetch(0, 1).defined() || at_.pixels == 1) return Evaluate::make(0);
    return code_.loop(".added", {0, size(at_.block())}, [&](const Expr& z) {
        return code_.output().prefetch(
            simplify(existing_channel(tile.z_block, z) * size(at_.pixels) + tile.first),
            tile.pixels);
    });
}

Stmt MapChannels::ask_for_outputs(const Expr& z_block, const Expr& z, const Expr& pixel) const {
    if (stays_in_scratch_) return Evaluate::make(0);
    const Expr first = simplify(existing_channel(z_block, z) * size(at_.pixels) + pixel);
    const Stmt added = code_.output().prefetch(first, at_.lanes);
    const Stmt stored = code_.output().prefetch_stored(first);
    return added.defined() ? ir::sequence({added, stored}) : stored;
}

Stmt MapChannels::ask_for_first_outputs(const Expr& z_block, const Interval& chunk) const {
    if (!at_.has_panel)
        return for_tiles(z_block, chunk, [&](const Tile& tile) { return ask_for_added(tile); });
    return code_.loop(".asked", {0, size(at_.block())}, [&](const Expr& z) {
        std::vector<Stmt> all;
        const Expr begin = first_pixel(chunk.begin), last = first_pixel(chunk.end) - 1;
        for (int64_t n = 0; n < asked_ahead(); n += ir::elements_of_line)
            all.push_back(ask_for_outputs(z_block, z, Halide::min(begin + size(n), last)));
        return ir::sequence(all);
    });
}

Stmt MapChannels::finish(const Tile& tile, const Value& sum) const {
    // Stores under a mask are slow on processors without mask registers.
    constexpr int64_t lanes_of_masks = 16;
    std::vector<Stmt> parts;
    if (at_.lanes >= lanes_of_masks && at_.pixels > 1 && tile.pixels <= at_.lanes) {
        for (int64_t v = 0; v < at_.vectors; ++v) parts.push_back(finish_transposed(tile, v, sum));
        return ir::sequence(parts);
    }
    const auto store = [&](int64_t v, int64_t pixel, const Expr& value) {
        const Expr wanted =
            p_[Dim::z] % at_.block() == 0
                ? Expr()
                : channels(tile.z_block, v) < broadcast(size(p_[Dim::z]), at_.lanes);
        const Expr to = simplify(begin_ + first_channel(tile.z_block, v) * size(at_.pixels) +
                                 tile.first + size(pixel));
        return code_.output().store_activated(channels(tile.z_block, v), value,
                                              lanes_from(to, at_.lanes, at_.pixels), wanted);
    };
    const auto for_sums = [&](const std::function<Stmt(int64_t v, int64_t pixel)>& make) {
        for (int64_t v = 0; v < at_.vectors; ++v) {
            for (int64_t pixel = 0; pixel < tile.pixels; ++pixel) parts.push_back(make(v, pixel));
        }
    };
    if (!ir::takes_registers(code_.output().layer().activation)) {
        for_sums([&](int64_t v, int64_t pixel) {
            const Expr channel = channels(tile.z_block, v);
            return store(v, pixel, code_.output().activated(channel, sum(v, pixel)));
        });
        return ir::sequence(parts);
    }
    const Accumulators finished{unique_name(p_.name + ".finished"), at_.lanes};
    const int64_t count = at_.vectors * tile.pixels;
    for_sums([&](int64_t v, int64_t pixel) {
        return finished.set(v * tile.pixels + pixel, sum(v, pixel));
    });
    parts.push_back(ir::activate_waiting(code_.output().layer().activation, finished, count));
    for_sums([&](int64_t v, int64_t pixel) {
        return store(v, pixel, finished.get(v * tile.pixels + pixel));
    });
    return finished.around(count, ir::sequence(parts));
}

/// The transposed square of vectors: element n of vector m becomes element m of vector n. `name`
/// gives a value a name.
std::vector<Expr> transposed(std::vector<Expr> rows, ir::Values& name) {
    const auto lanes = std::ssize(rows);
    // Bit by bit of the two numbers of an element: pairs of vectors exchange their halves, then
    // pairs of vectors the alternate quarters, ...
    for (int64_t half = lanes / 2; half >= 1; half /= 2) {
        std::vector<Expr> next(rows.size());
        for (int64_t n = 0; n < lanes; ++n) {
            if ((n & half) != 0) continue;
            std::vector<int> low, high;
            for (int64_t e = 0; e < lanes; ++e) {
                const bool is_upper = (e & half) != 0;
                low.push_back(static_cast<int>(is_upper ? lanes + e - half : e));
                high.push_back(static_cast<int>(is_upper ? lanes + e : e + half));
            }
            const auto a = static_cast<size_t>(n), b = static_cast<size_t>(n + half);
            next[a] = name(Shuffle::make({rows[a], rows[b]}, low));
            next[b] = name(Shuffle::make({rows[a], rows[b]}, high));
        }
        rows = std::move(next);
    }
    return rows;
}

Stmt MapChannels::finish_transposed(const Tile& tile, int64_t v, const Value& sum,
                                    const Expr& some) const {
    ir::Values name(p_.name + ".t");
    const int64_t pixels = tile.pixels;
    std::vector<Expr> rows;
    for (int64_t n = 0; n < at_.lanes; ++n)
        rows.push_back(n < pixels ? name(sum(v, n)) : rows.front());
    const std::vector<Expr> columns = transposed(std::move(rows), name);
    const Expr wanted = pixels == at_.lanes
                            ? some
                            : lanes_from(0, at_.lanes) < broadcast(size(pixels), at_.lanes);
    const auto store = [&](const Expr& z, const Expr& value) {
        const Expr channel = simplify(first_channel(tile.z_block, v) + z);
        const Expr to =
            lanes_from(simplify(begin_ + channel * size(at_.pixels) + tile.first), at_.lanes);
        const Stmt stored = code_.output().store_activated(channel, value, to, wanted);
        return p_[Dim::z] % at_.block() == 0 ? stored
                                             : ir::guarded(channel < size(p_[Dim::z]), stored);
    };
    std::vector<Stmt> stores;
    if (!ir::takes_registers(code_.output().layer().activation)) {
        for (int64_t z = 0; z < at_.lanes; ++z) {
            const Expr channel = simplify(first_channel(tile.z_block, v) + size(z));
            const Expr& column = columns[static_cast<size_t>(z)];
            stores.push_back(store(size(z), code_.output().activated(channel, column)));
        }
        return name.around(ir::sequence(stores));
    }
    const Accumulators finished{unique_name(p_.name + ".finished"), at_.lanes};
    for (int64_t z = 0; z < at_.lanes; ++z)
        stores.push_back(finished.set(z, columns[static_cast<size_t>(z)]));
    constexpr int64_t together = ir::activated_together;
    stores.push_back(code_.loop(".finished", {0, size(at_.lanes / together)}, [&](const Expr& n) {
        const Expr first = simplify(n * size(together));
        return ir::activate_waiting(code_.output().layer().activation, finished, first, together,
                                    [&](int64_t z, const Expr& value) {
                                        return store(simplify(first + size(z)), value);
                                    });
    }));
    return finished.around(at_.lanes, name.around(ir::sequence(stores)));
}

}  // namespace

Stmt map_channels_block(const MapCode& code, const MapChannelsLayout& at, const Expr& z_block,
                        const Interval& tiles, const Expr& begin) {
    return MapChannels(code, at, begin).block(z_block, tiles);
}

Stmt map_channels_panel(const MapCode& code, const MapChannelsLayout& at) {
    return at.has_panel ? MapChannels(code, at).panel({0, size(at.tiles)}) : Evaluate::make(0);
}

GroupCode map_channels_code(LayerOutput output, const MapChannelsLayout& at) {
    MapCode code(std::move(output), at.block());
    const Stmt body = MapChannels(code, at).body();
    GroupCode made = std::move(code).code(body, at.scratch_elements(), at.parts());
    made.strips_together = at.parts_together();
    return made;
}

}  // namespace laminate
