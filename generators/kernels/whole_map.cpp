#include "generators/kernels/whole_map.h"

#include <algorithm>
#include <functional>
#include <limits>

#include "generators/ir/arrays.h"
#include "generators/ir/code_frame.h"
#include "generators/ir/constants.h"
#include "generators/ir/layer_output.h"
#include "generators/kernels/register_tile.h"
#include "generators/lowering/group_lowering.h"
#include "scheduler/explore/planner/line_buffers.h"
#include "scheduler/schedule/problem.h"

namespace laminate {

using namespace Halide::Internal;
using ir::Accumulators;
using ir::broadcast;
using ir::lanes_from;
using ir::size;

namespace {

/// What threads divide, when there is enough of it.
constexpr int64_t parts_wanted = 8;

/// Blocks of output channels that must read a panel of pixels to make up for filling it.
constexpr int64_t fewest_reads = 4;

/// A vector of a row or of the map: `lanes` elements from `first` on, of which those from `begin`
/// to `end` are wanted.
struct Run {
    int64_t first = 0;
    int64_t lanes = 1;
    int64_t begin = 0;
    int64_t end = 1;
};

/// [0, extent) in vectors; a last one of half the lanes where those are enough, because processors
/// with two halves do two such at a time.
std::vector<Run> runs_of(int64_t extent, const VectorUnit& unit) {
    std::vector<Run> runs;
    for (int64_t first = 0; first < extent; first += unit.lanes) {
        const int64_t left = extent - first;
        const int64_t half = unit.lanes / 2;
        runs.push_back(
            {first, half >= 4 && left <= half ? half : unit.lanes, 0, std::min(left, unit.lanes)});
    }
    return runs;
}

/// The same run as late as it fits into [0, extent), which may reach back over elements that
/// another one has.
Run inside(Run run, int64_t extent) {
    const int64_t back = std::min(run.first, std::max<int64_t>(0, run.first + run.lanes - extent));
    return {run.first - back, run.lanes, run.begin + back, run.end + back};
}

/// Part number `part` of `parts` of [0, extent), as even as can be.
Interval part_of(const Expr& part, int64_t parts, int64_t extent) {
    return {simplify(part * size(extent) / size(parts)),
            simplify((part + 1) * size(extent) / size(parts))};
}

/// Rows of a map that are known to lie before one of them in memory, and after it.
struct Around {
    int64_t before = 0;
    int64_t after = 0;
};

class WholeMap {
public:
    WholeMap(LayerOutput output, const VectorUnit& unit, const KernelOptions& kernels)
        : output_(std::move(output)),
          unit_(unit),
          kernels_(kernels),
          pixels_(p_[Dim::y] * p_[Dim::x]) {}

    GroupCode code() {
        const Stmt body = p_.operation == Operation::add ? addition()
                          : !p_.has_weights()            ? pooling()
                          : p_.groups > 1                ? depthwise()
                          : is_pointwise(p_)             ? pointwise()
                          : reads_few(p_)                ? windows_at_once()
                                                         : windows();
        return output_.code(body, std::move(constants_), copy_, copy_elements_ * bytes_per_element,
                            strips_);
    }

private:
    using Make = std::function<Stmt(Expr)>;

    std::string constant(const std::string& name, const std::vector<float>& values) {
        return constants_.append(unique_name(p_.name + name), values);
    }
    void pack(int64_t block) {
        weights_ = constant(".packed", packed_weights(canonical_weights(layer_, p_), p_, block));
        bias_ = constant(".bias", padded(canonical_bias(layer_, p_), block));
        output_.pack(block, constants_);
    }
    [[nodiscard]] Stmt loop(const std::string& name, const Interval& range,
                            const Make& make) const {
        return GroupLowering::for_each(p_.name + name, range, make);
    }
    [[nodiscard]] Stmt for_parts(int64_t parts, const Make& make) {
        strips_ = parts;
        const auto bound = [](const char* name) { return Variable::make(Halide::Int(32), name); };
        return loop(".part", {bound(argument::strip_begin), bound(argument::strip_end)}, make);
    }
    /// None when all are.
    [[nodiscard]] static Expr wanted_lanes(const Run& run) {
        if (run.begin == 0 && run.end == run.lanes) return {};
        const Expr lane = lanes_from(0, run.lanes);
        return lane >= broadcast(size(run.begin), run.lanes) &&
               lane < broadcast(size(run.end), run.lanes);
    }

    /// Sums that may be of several widths: `count` of each run. Each in an array of its own: LLVM
    /// keeps two halves of one in one register and takes them apart for every product.
    class Sums {
    public:
        Sums(const std::string& name, const std::vector<Run>& runs, int64_t count) : count_(count) {
            for (const Run& run : runs) {
                for (int64_t n = 0; n < count; ++n) sums_.push_back({unique_name(name), run.lanes});
            }
        }
        [[nodiscard]] const Accumulators& of(size_t run, int64_t n) const {
            return sums_[run * static_cast<size_t>(count_) + static_cast<size_t>(n)];
        }
        [[nodiscard]] Expr get(size_t run, int64_t n) const { return of(run, n).get(0); }
        [[nodiscard]] Stmt start(size_t run, int64_t n, const Expr& value) const {
            return of(run, n).set(0, broadcast(value, of(run, n).lanes));
        }
        [[nodiscard]] Stmt add(size_t run, int64_t n, const Expr& value) const {
            return of(run, n).set(0, get(run, n) + value);
        }
        [[nodiscard]] Stmt around(Stmt body) const {
            for (const Accumulators& sum : sums_) body = sum.around(1, body);
            return body;
        }

    private:
        int64_t count_;
        std::vector<Accumulators> sums_;
    };
    // ---- pointwise

    /// What is in registers at once.
    struct Tile {
        VectorAxis axis = VectorAxis::x;
        int64_t channels = 1;  ///< axis z: whole vectors
        int64_t pixels = 1;    ///< axis x: whole vectors
    };

    struct Choice {
        Tile tile;
        int64_t cycles = std::numeric_limits<int64_t>::max();  ///< one product a cycle
        void consider(const Choice& other) {
            if (other.cycles < cycles) *this = other;
        }
    };
    /// Cycles of an input channel for a x b sums.
    [[nodiscard]] int64_t cycles_of(int64_t a, int64_t b) const {
        return std::max({a * b, a + b, unit_.latency()});
    }

    /// Tiles of `vectors`, and smaller ones: where one vector would be left alone, whose sums are
    /// too few to keep the multipliers busy, two such tiles share with it.
    struct Division {
        int64_t whole = 0;
        std::vector<int64_t> rest{};
    };
    [[nodiscard]] static Division division(int64_t all, int64_t vectors) {
        const int64_t rest = all % vectors;
        if (rest == 1 && all > vectors && vectors > 2)
            return {all / vectors - 1, {(vectors + 1) - (vectors + 1) / 2, (vectors + 1) / 2}};
        return {all / vectors, rest == 0 ? std::vector<int64_t>{} : std::vector<int64_t>{rest}};
    }

    /// Of tiles of whole vectors of `pixels` side by side, the one that takes the fewest cycles:
    /// lanes left empty at the ends cost as much as full ones.
    [[nodiscard]] Choice pixels_tile(int64_t pixels) const {
        const int64_t lanes = unit_.lanes;
        Choice best;
        for (const int64_t vectors : {3, 4, 2}) {
            const int64_t channels = std::min(unit_.sums_per_vector(vectors), p_[Dim::z]);
            if (pixels < lanes || (pixels <= (vectors - 1) * lanes && vectors > 2)) continue;
            const Division all = division(ceil_div(pixels, lanes), vectors);
            int64_t of_block = all.whole * cycles_of(vectors, channels);
            for (const int64_t rest : all.rest) of_block += cycles_of(rest, channels);
            best.consider({{VectorAxis::x, channels, vectors * lanes},
                           ceil_div(p_[Dim::z], channels) * of_block * p_[Dim::i]});
        }
        return best;
    }

    /// A column of outputs is stored one by one.
    [[nodiscard]] Tile pointwise_tile() const {
        constexpr int64_t lane_store = 2;
        const int64_t lanes = unit_.lanes;
        Choice best = pixels_tile(pixels_);
        for (const int64_t vectors : {1, 2, 3, 4}) {
            // Single elements come from as many streams as there are input channels.
            if (pixels_ > 4 * lanes) continue;
            // Weights and one element at a time leave the other registers to sums.
            const int64_t most = (unit_.registers() - vectors - 1) / vectors;
            const int64_t pixels = ceil_div(pixels_, ceil_div(pixels_, most));
            const int64_t rest = pixels_ % pixels;
            // Weights come from memory once, for the first pixels, a byte while one product is
            // computed (measured on an Intel Xeon).
            const int64_t arrival = vectors * lanes * bytes_per_element;
            const int64_t of_block = std::max(cycles_of(vectors, pixels), arrival) +
                                     (pixels_ / pixels - 1) * cycles_of(vectors, pixels) +
                                     (rest == 0 ? 0 : cycles_of(vectors, rest));
            const int64_t stores = vectors * pixels_ * lanes * lane_store;
            best.consider(
                {{VectorAxis::z, vectors * lanes, pixels},
                 ceil_div(p_[Dim::z], vectors * lanes) * (of_block * p_[Dim::i] + stores)});
        }
        // One pixel: its weights are read once, so what counts is a long stream of them without
        // zeros at the end, and something for every thread.
        if (pixels_ == 1) return {VectorAxis::z, dense_vectors() * lanes, 1};
        return best.tile;
    }

    /// Enough sums that none waits for its predecessor.
    [[nodiscard]] int64_t dense_vectors() const {
        const int64_t all = ceil_div(p_[Dim::z], unit_.lanes);
        constexpr int64_t fewest = 4, most = 12;
        int64_t best = std::min(fewest, all);
        for (int64_t vectors = best + 1; vectors <= std::min({most, all, unit_.accumulators});
             ++vectors) {
            const bool wastes_no_more =
                ceil_div(all, vectors) * vectors <= ceil_div(all, best) * best;
            if (wastes_no_more &&
                ceil_div(all, vectors) >= std::min(parts_wanted, ceil_div(all, fewest)))
                best = vectors;
        }
        return best;
    }

    Stmt pointwise() {
        const Tile tile = pointwise_tile();
        return tile.axis == VectorAxis::x ? along_pixels(tile) : along_channels(tile);
    }

    Stmt along_pixels(const Tile& tile) {
        const int64_t vectors = tile.pixels / unit_.lanes;
        const int64_t block = tile.channels;
        pack(block);
        const int64_t blocks = ceil_div(p_[Dim::z], block);
        const int64_t step = tile.pixels;
        // A last vector of fewer pixels belongs to the tiles that are written out.
        Division division = WholeMap::division(ceil_div(pixels_, unit_.lanes), vectors);
        if (division.rest.empty() && pixels_ % unit_.lanes != 0) {
            --division.whole;
            division.rest = {vectors};
        }
        const int64_t full = division.whole;
        std::vector<std::vector<Run>> last;
        int64_t begin = full * step;
        for (const int64_t count : division.rest) {
            std::vector<Run>& runs = last.emplace_back();
            for (int64_t v = 0; v < count; ++v, begin += unit_.lanes)
                runs.push_back(inside(
                    {begin, unit_.lanes, 0, std::min(unit_.lanes, pixels_ - begin)}, pixels_));
        }
        std::vector<Run> whole;
        for (int64_t v = 0; v < vectors; ++v)
            whole.push_back({v * unit_.lanes, unit_.lanes, 0, unit_.lanes});
        const int64_t tiles = full + std::ssize(last);
        // Blocks of channels that read the same pixels find them in a panel, aligned and one after
        // the other: from there they come out of the second-level cache as fast as the multipliers
        // take them; out of X, rows far apart and across lines, they do not. A map of one tile is
        // such a panel itself.
        const int64_t panel = panel_elements(tile);
        const bool packs =
            tiles > 1 && blocks >= fewest_reads &&
            (!kernels_.scratch || panel * bytes_per_element <= kernels_.scratch->value());
        if (packs) copy_elements_ = panel;
        // Parts are pixels before they are channels, for every part fills its panels itself.
        const int64_t chunks = std::min(tiles, parts_wanted);
        const int64_t channel_parts =
            std::min(packs ? std::max<int64_t>(1, blocks / fewest_reads) : blocks,
                     ceil_div(parts_wanted, chunks));
        return for_parts(chunks * channel_parts, [&](const Expr& part) {
            const Interval channels =
                part_of(simplify(part % size(channel_parts)), channel_parts, blocks);
            const Interval chunk = part_of(simplify(part / size(channel_parts)), chunks, tiles);
            const auto tile_of = [&](const Expr& x, const std::vector<Run>& runs) {
                const Pixels in_place = [&](const Expr& i, int64_t, size_t v) {
                    return of_map(i, x, runs[v]);
                };
                const Pixels pixels = packs ? of_panel(runs) : in_place;
                const Stmt products = loop(".z", channels, [&](const Expr& z) {
                    return pixel_tile(z, block, x, runs, pixels);
                });
                return packs ? ir::sequence({fill_panel(runs, in_place), products}) : products;
            };
            std::vector<Stmt> all;
            const Interval whole_tiles{chunk.begin, simplify(Halide::min(chunk.end, size(full)))};
            if (full > 0)
                all.push_back(loop(".x", whole_tiles, [&](const Expr& x) {
                    return tile_of(simplify(x * size(step)), whole);
                }));
            for (int64_t n = 0; n < std::ssize(last); ++n)
                all.push_back(
                    ir::guarded(has(chunk, full + n), tile_of(0, last[static_cast<size_t>(n)])));
            return ir::sequence(all);
        });
    }
    [[nodiscard]] static Expr has(const Interval& range, int64_t n) {
        return simplify(range.begin <= size(n) && size(n) < range.end);
    }

    /// Vector v of what a tile reads of input channel i through tap m of a row of the window.
    using Pixels = std::function<Expr(const Expr& i, int64_t m, size_t v)>;
    /// What a sum starts from and what becomes of it; z: the channel within its block.
    using Start = std::function<Expr(int64_t z, size_t v)>;
    using Put = std::function<Stmt(const Expr& channel, int64_t z, size_t v, const Expr& sum)>;

    [[nodiscard]] Expr of_map(const Expr& i, const Expr& x, const Run& run) const {
        return ir::load("X",
                        lanes_from(simplify(i * size(pixels_) + x + size(run.first)), run.lanes),
                        ir::Alignment::element);
    }

    /// A panel holds what all input channels give a tile through a row of the window:
    /// [i][m][v][lane].
    [[nodiscard]] Expr panel_index(const Expr& i, int64_t m, size_t v,
                                   const std::vector<Run>& runs) const {
        const auto vectors = std::ssize(runs);
        return lanes_from(simplify(i * size(p_.x().kernel * vectors * unit_.lanes)) +
                              size((m * vectors + static_cast<int64_t>(v)) * unit_.lanes),
                          unit_.lanes);
    }
    [[nodiscard]] int64_t panel_elements(const Tile& tile) const {
        return p_[Dim::i] * p_.x().kernel * tile.pixels;
    }
    [[nodiscard]] Pixels of_panel(const std::vector<Run>& runs) const {
        return [this, &runs](const Expr& i, int64_t m, size_t v) {
            return ir::load(copy_, panel_index(i, m, v, runs));
        };
    }
    [[nodiscard]] Stmt fill_panel(const std::vector<Run>& runs, const Pixels& pixels) const {
        return loop(".panel", {0, size(p_[Dim::i])}, [&](const Expr& i) {
            std::vector<Stmt> stores;
            for (int64_t m = 0; m < p_.x().kernel; ++m) {
                for (size_t v = 0; v < runs.size(); ++v)
                    stores.push_back(ir::store(copy_, pixels(i, m, v), panel_index(i, m, v, runs)));
            }
            return ir::sequence(stores);
        });
    }

    /// Sums in registers, `block` output channels x vectors of pixels, over `inputs` input channels
    /// of the window's rows from n on, one row after the other.
    [[nodiscard]] Stmt sums_of_tile(const Expr& z_block, int64_t block, const Expr& n,
                                    int64_t inputs, const std::vector<Run>& runs,
                                    const Start& start, const Pixels& pixels,
                                    const Put& put) const {
        const int64_t taps = p_.x().kernel;
        const Sums sums(p_.name + ".sum", runs, block);
        std::vector<Stmt> parts;
        for (size_t v = 0; v < runs.size(); ++v) {
            for (int64_t z = 0; z < block; ++z) parts.push_back(sums.of(v, z).set(0, start(z, v)));
        }
        const Expr row = simplify((z_block * size(p_.y().kernel) + n) * size(p_[Dim::i]));
        parts.push_back(loop(".i", {0, size(inputs)}, [&](const Expr& i) {
            std::vector<Stmt> steps;
            for (int64_t m = 0; m < taps; ++m) {
                std::vector<Expr> values;
                for (size_t v = 0; v < runs.size(); ++v) values.push_back(pixels(i, m, v));
                steps.push_back(
                    ir::with_values(p_.name + ".in", values, [&](const std::vector<Expr>& in) {
                        std::vector<Stmt> products;
                        for (int64_t z = 0; z < block; ++z) {
                            const Expr weight = ir::load(
                                weights_, (row + i) * size(taps * block) + size(m * block + z));
                            products.push_back(ir::with_values(
                                p_.name + ".w", {broadcast(weight, unit_.lanes)},
                                [&](const std::vector<Expr>& w) {
                                    std::vector<Stmt> uses;
                                    for (size_t v = 0; v < runs.size(); ++v)
                                        uses.push_back(sums.add(v, z, in[v] * w.front()));
                                    return ir::sequence(uses);
                                }));
                        }
                        return ir::sequence(products);
                    }));
            }
            return ir::sequence(steps);
        }));
        for (int64_t z = 0; z < block; ++z) {
            const Expr channel = simplify(z_block * size(block) + size(z));
            std::vector<Stmt> stores;
            for (size_t v = 0; v < runs.size(); ++v)
                stores.push_back(put(channel, z, v, sums.get(v, z)));
            parts.push_back(of_channel(channel, block, ir::sequence(stores)));
        }
        return sums.around(ir::sequence(parts));
    }
    /// The last block may be filled up with zero weights.
    [[nodiscard]] Stmt of_channel(const Expr& channel, int64_t block, const Stmt& stores) const {
        return p_[Dim::z] % block != 0 ? ir::guarded(channel < size(p_[Dim::z]), stores) : stores;
    }
    [[nodiscard]] Expr bias_of(const Expr& z_block, int64_t block, int64_t z) const {
        return broadcast(ir::load(bias_, simplify(z_block * size(block) + size(z))), unit_.lanes);
    }

    /// `block` output channels x the runs of pixels from `x` on.
    [[nodiscard]] Stmt pixel_tile(const Expr& z_block, int64_t block, const Expr& x,
                                  const std::vector<Run>& runs, const Pixels& pixels) const {
        std::vector<Stmt> parts;
        for (int64_t z = 0; z < block; ++z) {
            const Expr channel = simplify(z_block * size(block) + size(z));
            parts.push_back(
                output_.prefetch(simplify(channel * size(pixels_) + x + size(runs.front().first)),
                                 runs.back().first + runs.back().lanes - runs.front().first));
        }
        parts.push_back(sums_of_tile(
            z_block, block, 0, p_[Dim::i] * p_.y().kernel, runs,
            [&](int64_t z, size_t) { return bias_of(z_block, block, z); }, pixels,
            [&](const Expr& channel, int64_t, size_t v, const Expr& sum) {
                const Expr to = lanes_from(
                    simplify(channel * size(pixels_) + x + size(runs[v].first)), runs[v].lanes);
                return output_.store(channel, sum, to, wanted_lanes(runs[v]));
            }));
        return ir::sequence(parts);
    }

    /// Lanes are output channels: tile.channels of them x tile.pixels.
    Stmt along_channels(const Tile& tile) {
        const int64_t block = tile.channels;
        pack(block);
        const int64_t blocks = ceil_div(p_[Dim::z], block);
        const int64_t full = pixels_ / tile.pixels;
        const int64_t last = pixels_ - full * tile.pixels;
        // With few blocks of channels, threads divide the pixels too.
        const int64_t chunks =
            std::clamp<int64_t>(full, 1, ceil_div(parts_wanted, std::min(blocks, parts_wanted)));
        const int64_t channel_parts = std::min(blocks, parts_wanted);
        return for_parts(chunks * channel_parts, [&](const Expr& part) {
            const Expr number = simplify(part / size(channel_parts));
            const Interval chunk = part_of(number, chunks, full);
            return loop(".z", part_of(simplify(part % size(channel_parts)), channel_parts, blocks),
                        [&](const Expr& z) {
                            std::vector<Stmt> all;
                            if (full > 0) {
                                all.push_back(loop(".x", chunk, [&](const Expr& x) {
                                    return channel_tile(z, block, simplify(x * size(tile.pixels)),
                                                        tile.pixels);
                                }));
                            }
                            if (last > 0)
                                all.push_back(ir::guarded(
                                    number == size(chunks - 1),
                                    channel_tile(z, block, size(full * tile.pixels), last)));
                            return ir::sequence(all);
                        });
        });
    }

    [[nodiscard]] Stmt channel_tile(const Expr& z_block, int64_t block, const Expr& x,
                                    int64_t pixels) const {
        const int64_t lanes = unit_.lanes;
        const int64_t vectors = block / lanes;
        const Accumulators sums{unique_name(p_.name + ".sum"), lanes};
        const auto channel = [&](int64_t v) {
            return lanes_from(simplify(z_block * size(block) + size(v * lanes)), lanes);
        };
        std::vector<Stmt> parts;
        for (int64_t v = 0; v < vectors; ++v) {
            for (int64_t c = 0; c < pixels; ++c)
                parts.push_back(sums.set(v * pixels + c, ir::load(bias_, channel(v))));
        }
        parts.push_back(loop(".i", {0, size(p_[Dim::i])}, [&](const Expr& i) {
            std::vector<Expr> vectors_of_weights;
            for (int64_t v = 0; v < vectors; ++v) {
                vectors_of_weights.push_back(ir::load(
                    weights_,
                    lanes_from((z_block * size(p_[Dim::i]) + i) * size(block) + size(v * lanes),
                               lanes)));
            }
            return ir::with_values(
                p_.name + ".w", vectors_of_weights, [&](const std::vector<Expr>& weights) {
                    std::vector<Stmt> products;
                    for (int64_t c = 0; c < pixels; ++c) {
                        const Expr in = ir::load("X", simplify(i * size(pixels_) + x + size(c)),
                                                 ir::Alignment::element);
                        products.push_back(ir::with_values(
                            p_.name + ".in", {broadcast(in, lanes)},
                            [&](const std::vector<Expr>& value) {
                                std::vector<Stmt> uses;
                                for (int64_t v = 0; v < vectors; ++v) {
                                    uses.push_back(sums.set(
                                        v * pixels + c,
                                        sums.get(v * pixels + c) +
                                            value.front() * weights[static_cast<size_t>(v)]));
                                }
                                return ir::sequence(uses);
                            }));
                    }
                    return ir::sequence(products);
                });
        }));
        for (int64_t v = 0; v < vectors; ++v) {
            const Expr wanted =
                p_[Dim::z] % block == 0 ? Expr() : channel(v) < broadcast(size(p_[Dim::z]), lanes);
            for (int64_t c = 0; c < pixels; ++c) {
                const Expr to =
                    lanes_from(simplify((z_block * size(block) + size(v * lanes)) * size(pixels_) +
                                        x + size(c)),
                               lanes, pixels_);
                parts.push_back(output_.store(channel(v), sums.get(v * pixels + c), to, wanted));
            }
        }
        return sums.around(vectors * pixels, ir::sequence(parts));
    }

    // ---- windows

    /// Windows of few taps and channels in all: a panel in the nearest cache holds all that a run
    /// of a row's pixels reads, [n][i][m][v][lane], so that sums stay in registers from the first
    /// tap to the last.
    Stmt windows_at_once() {
        const Tile tile = pixels_tile(p_[Dim::x]).tile;
        const int64_t block = tile.channels;
        pack(block);
        copy_elements_ = p_.y().kernel * panel_elements(tile);
        const int64_t parts = std::min(p_[Dim::y], parts_wanted);
        const Interval blocks{0, size(ceil_div(p_[Dim::z], block))};
        return for_parts(parts, [&](const Expr& part) {
            return loop(".y", part_of(part, parts, p_[Dim::y]), [&](const Expr& y) {
                std::vector<Stmt> tiles;
                const Division all =
                    division(ceil_div(p_[Dim::x], unit_.lanes), tile.pixels / unit_.lanes);
                std::vector<int64_t> widths(static_cast<size_t>(all.whole),
                                            tile.pixels / unit_.lanes);
                widths.insert(widths.end(), all.rest.begin(), all.rest.end());
                int64_t x = 0;
                for (const int64_t vectors : widths) {
                    std::vector<Run> runs;
                    for (int64_t v = 0; v < vectors; ++v, x += unit_.lanes)
                        runs.push_back({x, unit_.lanes, 0, std::min(unit_.lanes, p_[Dim::x] - x)});
                    tiles.push_back(fill_windows(y, runs));
                    tiles.push_back(loop(".z", blocks, [&](const Expr& z) {
                        return pixel_tile(z, block, simplify(y * size(p_[Dim::x])), runs,
                                          of_panel(runs));
                    }));
                }
                return ir::sequence(tiles);
            });
        });
    }

    /// All that the runs of output row y read.
    [[nodiscard]] Stmt fill_windows(const Expr& y, const std::vector<Run>& runs) const {
        const AxisWindow& wy = p_.y();
        const AxisWindow& wx = p_.x();
        return loop(".panel", {0, size(wy.kernel)}, [&](const Expr& n) {
            const Expr row =
                simplify(y * size(wy.stride) + n * size(wy.dilation) - size(wy.pad_begin));
            const auto fill = [&](const std::function<Expr(const Expr& from, int64_t column,
                                                           const Run&)>& value) {
                return loop(".i", {0, size(p_[Dim::i])}, [&](const Expr& i) {
                    const Expr from = simplify((i * size(wy.in) + row) * size(wx.in));
                    const Expr to = simplify(n * size(p_[Dim::i]) + i);
                    std::vector<Stmt> stores;
                    for (int64_t m = 0; m < wx.kernel; ++m) {
                        for (size_t v = 0; v < runs.size(); ++v) {
                            const int64_t column =
                                runs[v].first * wx.stride + m * wx.dilation - wx.pad_begin;
                            stores.push_back(ir::store(copy_, value(from, column, runs[v]),
                                                       panel_index(to, m, v, runs)));
                        }
                    }
                    return ir::sequence(stores);
                });
            };
            const Stmt inside = fill([&](const Expr& from, int64_t column, const Run& run) {
                return row_of_input(from, column, run);
            });
            if (!ir::reaches_padding(wy)) return inside;
            const Stmt outside = fill([&](const Expr&, int64_t, const Run& run) {
                return broadcast(Expr(0.0F), run.lanes);
            });
            return IfThenElse::make(row >= 0 && row < size(wy.in), inside, outside);
        });
    }

    /// A copy of X in which every tap of the window finds the pixels of a tile side by side,
    /// whatever the stride and over the ends of rows: rows and columns that the same taps read lie
    /// together (a phase), padding is in it, and rows follow each other without gap. Pixel q is in
    /// row q / columns; the last columns of a row are computed for nothing.
    struct Grid {
        std::array<int64_t, 2> phases{1, 1};
        int64_t rows = 1, columns = 1;  ///< of a phase
        int64_t pixels = 1;             ///< from the first output to the last
        explicit Grid(const LayerProblem& p) {
            for (size_t axis = 0; axis < 2; ++axis) {
                const AxisWindow& w = p.window[axis];
                for (int64_t n = 0; n < w.kernel; ++n)
                    phases[axis] = std::max(phases[axis], n * w.dilation % w.stride + 1);
            }
            rows = p[Dim::y] + (p.y().kernel - 1) * p.y().dilation / p.y().stride;
            columns = p[Dim::x] + (p.x().kernel - 1) * p.x().dilation / p.x().stride;
            pixels = (p[Dim::y] - 1) * columns + p[Dim::x];
        }
        [[nodiscard]] int64_t plane() const { return rows * columns; }
        [[nodiscard]] int64_t channel() const { return phases[0] * phases[1] * plane(); }
    };

    [[nodiscard]] static bool has_one_tap(const LayerProblem& p) {
        return p.y().kernel * p.x().kernel == 1;
    }

    Stmt windows() {
        const Grid grid(p_);
        const Tile tile = pixels_tile(grid.pixels).tile;
        const int64_t block = tile.channels;
        pack(block);
        const int64_t blocks = ceil_div(p_[Dim::z], block);
        const int64_t step = tile.pixels;
        const Division division =
            WholeMap::division(ceil_div(grid.pixels, unit_.lanes), step / unit_.lanes);
        const int64_t full = division.whole;
        const int64_t tiles = full + std::ssize(division.rest);
        const auto runs = [&](int64_t vectors, int64_t pixels) {
            std::vector<Run> all;
            for (int64_t v = 0; v < vectors; ++v)
                all.push_back({v * unit_.lanes, unit_.lanes, 0,
                               std::min(unit_.lanes, pixels - v * unit_.lanes)});
            return all;
        };
        // Every part copies what it reads.
        constexpr int64_t parts = parts_wanted / 2;
        const int64_t chunks = std::min(tiles, parts);
        const int64_t channel_parts =
            std::min(std::max<int64_t>(1, blocks / fewest_reads), ceil_div(parts, chunks));
        sums_offset_ = panel_elements(tile);
        grid_offset_ =
            sums_offset_ + (has_one_tap(p_) ? 0 : ceil_div(blocks, channel_parts) * block * step);
        // Vectors run over the end, of the copied rows and of the grid itself.
        copy_elements_ = grid_offset_ +
                         ceil_div(grid.channel() * p_[Dim::i] + 2 * unit_.lanes, int64_t{16}) * 16;
        return for_parts(chunks * channel_parts, [&](const Expr& part) {
            const Interval channels =
                part_of(simplify(part % size(channel_parts)), channel_parts, blocks);
            const Interval chunk = part_of(simplify(part / size(channel_parts)), chunks, tiles);
            const Expr first_row =
                simplify(Halide::min(chunk.begin, size(full)) * size(step) / size(grid.columns));
            // Smaller tiles at the end reach less far than whole ones would.
            const Expr end_row = simplify((chunk.end * size(step) - 1) / size(grid.columns) +
                                          size(grid.rows - p_[Dim::y] + 1));
            std::vector<Stmt> all{
                fill_grid(grid, {first_row, Halide::min(end_row, size(grid.rows))})};
            const Interval whole_tiles{chunk.begin, simplify(Halide::min(chunk.end, size(full)))};
            if (full > 0)
                all.push_back(loop(".x", whole_tiles, [&](const Expr& x) {
                    return window_tile(grid, channels, block, simplify(x * size(step)),
                                       runs(step / unit_.lanes, step));
                }));
            int64_t first = full * step;
            for (int64_t n = 0; n < std::ssize(division.rest); ++n) {
                const int64_t vectors = division.rest[static_cast<size_t>(n)];
                all.push_back(ir::guarded(has(chunk, full + n),
                                          window_tile(grid, channels, block, size(first),
                                                      runs(vectors, grid.pixels - first))));
                first += vectors * unit_.lanes;
            }
            return ir::sequence(all);
        });
    }

    /// In the order of memory, for vectors run over the ends of rows.
    [[nodiscard]] Stmt fill_grid(const Grid& grid, const Interval& rows) const {
        const auto row_of = [&](const Expr& i, int64_t py, const Expr& row) {
            const Expr y = simplify(row * size(p_.y().stride) + size(py - p_.y().pad_begin));
            const Expr from = simplify(
                (i * size(p_.y().in) + Halide::clamp(y, 0, size(p_.y().in - 1))) * size(p_.x().in));
            const Expr is_inside = y >= 0 && y < size(p_.y().in);
            return std::pair{from, is_inside};
        };
        return loop(".grid", {0, size(p_[Dim::i])}, [&](const Expr& i) {
            std::vector<Stmt> phases;
            for (int64_t py = 0; py < grid.phases[0]; ++py) {
                for (int64_t px = 0; px < grid.phases[1]; ++px) {
                    phases.push_back(loop(".row", rows, [&](const Expr& row) {
                        const auto [from, is_inside] = row_of(i, py, row);
                        std::vector<Stmt> stores;
                        for (const Run& run : runs_of(grid.columns, unit_)) {
                            const Expr inside = row_of_input(
                                from, run.first * p_.x().stride + px - p_.x().pad_begin, run);
                            const Expr value = Halide::select(broadcast(is_inside, run.lanes),
                                                              inside, make_zero(inside.type()));
                            const Expr to =
                                simplify(i * size(grid.channel()) + row * size(grid.columns)) +
                                size(grid_offset_ + (py * grid.phases[1] + px) * grid.plane() +
                                     run.first);
                            stores.push_back(ir::store(copy_, value, lanes_from(to, run.lanes),
                                                       ir::Alignment::element));
                        }
                        return ir::sequence(stores);
                    }));
                }
            }
            return ir::sequence(phases);
        });
    }

    /// A tile of the grid's pixels and all channels of a part: a row of the window after the other,
    /// for a panel of all would not stay in the second-level cache; the sums meanwhile lie
    /// [channel][pixel]. Then row by row to where they belong.
    [[nodiscard]] Stmt window_tile(const Grid& grid, const Interval& channels, int64_t block,
                                   const Expr& x, const std::vector<Run>& runs) const {
        const AxisWindow& wy = p_.y();
        const AxisWindow& wx = p_.x();
        const auto width = std::ssize(runs) * unit_.lanes;
        const auto sums_at = [&](const Expr& z_block, int64_t z, size_t v) {
            return lanes_from(simplify((z_block - channels.begin) * size(block * width)) +
                                  size(sums_offset_ + z * width + runs[v].first),
                              unit_.lanes);
        };
        const auto pixels_of = [&](const Expr& row) -> Pixels {
            return [this, &grid, &wx, &runs, row, x](const Expr& i, int64_t m, size_t v) {
                const int64_t tap =
                    m * wx.dilation % wx.stride * grid.plane() + m * wx.dilation / wx.stride;
                return ir::load(copy_,
                                lanes_from(simplify(i * size(grid.channel()) + row + x) +
                                               size(grid_offset_ + tap + runs[v].first),
                                           unit_.lanes),
                                ir::Alignment::element);
            };
        };
        // One tap: sums of the only row are finished, and the grid, without columns in between, is
        // in Y's order.
        if (has_one_tap(p_)) {
            const Stmt tiles = loop(".z", channels, [&](const Expr& z) {
                return pixel_tile(z, block, x, runs, of_panel(runs));
            });
            return ir::sequence({fill_panel(runs, pixels_of(0)), tiles});
        }
        const Stmt products = loop(".n", {0, size(wy.kernel)}, [&](const Expr& n) {
            const Expr row =
                n * size(wy.dilation) % size(wy.stride) * size(grid.phases[1] * grid.plane()) +
                n * size(wy.dilation) / size(wy.stride) * size(grid.columns);
            const Stmt tiles = loop(".z", channels, [&](const Expr& z_block) {
                const Start start = [&](int64_t z, size_t v) {
                    const Expr bias = bias_of(z_block, block, z);
                    return wy.kernel == 1
                               ? bias
                               : Halide::select(n > 0, ir::load(copy_, sums_at(z_block, z, v)),
                                                bias);
                };
                const Put put = [&](const Expr&, int64_t z, size_t v, const Expr& sum) {
                    return ir::store(copy_, sum, sums_at(z_block, z, v));
                };
                return sums_of_tile(z_block, block, n, p_[Dim::i], runs, start, of_panel(runs),
                                    put);
            });
            return ir::sequence({fill_panel(runs, pixels_of(row)), tiles});
        });
        const Interval rows{simplify(x / size(grid.columns)),
                            simplify(Halide::min((x + size(width - 1)) / size(grid.columns) + 1,
                                                 size(p_[Dim::y])))};
        const Interval all_channels{
            simplify(channels.begin * size(block)),
            simplify(Halide::min(channels.end * size(block), size(p_[Dim::z])))};
        const Stmt copies = loop(".zi", all_channels, [&](const Expr& channel) {
            return loop(".row", rows, [&](const Expr& row) {
                std::vector<Stmt> stores;
                for (const Run& run : runs_of(p_[Dim::x], unit_)) {
                    const Expr first = simplify(row * size(grid.columns) - x +
                                                size(run.first));  // of the tile's pixels
                    const Expr pixel = lanes_from(first, run.lanes);
                    Expr wanted = pixel >= broadcast(Expr(0), run.lanes) &&
                                  pixel < broadcast(size(width), run.lanes);
                    if (const Expr of_row = wanted_lanes(run); of_row.defined())
                        wanted = wanted && of_row;
                    const Expr sum =
                        ir::load(copy_,
                                 lanes_from((channel - all_channels.begin) * size(width) + first +
                                                size(sums_offset_),
                                            run.lanes),
                                 ir::Alignment::element, wanted);
                    const Expr to = simplify((channel * size(p_[Dim::y]) + row) * size(p_[Dim::x]) +
                                             size(run.first));
                    stores.push_back(
                        output_.store(channel, sum, lanes_from(to, run.lanes), wanted));
                }
                return ir::sequence(stores);
            });
        });
        return ir::sequence({products, copies});
    }

    // ---- depthwise

    Stmt depthwise() {
        pack(1);
        const AxisWindow& w = p_.y();
        const std::vector<Run> runs = whole_runs(p_[Dim::x]);
        const int64_t rows = depthwise_row_count(std::ssize(runs));
        const int64_t tiles = ceil_div(p_[Dim::y], rows);
        // Tiles of rows that reach no padding share their code.
        const auto is_inner = [&](int64_t tile) {
            const int64_t last = ((tile + 1) * rows - 1) * w.stride - w.pad_begin + w.span() - 1;
            return tile * rows * w.stride >= w.pad_begin && last < w.in &&
                   (tile + 1) * rows <= p_[Dim::y];
        };
        int64_t begin = 0;
        while (begin < tiles && !is_inner(begin)) ++begin;
        int64_t end = begin;
        while (end < tiles && is_inner(end)) ++end;
        // Threads divide channels: what a map is read from is one run of memory, and no line of it
        // is another thread's.
        const int64_t parts = std::min(p_[Dim::z], parts_wanted);
        return for_parts(parts, [&](const Expr& part) {
            return loop(".z", part_of(part, parts, p_[Dim::z]), [&](const Expr& z) {
                std::vector<Stmt> all;
                const auto at_end = [&](int64_t tile) {
                    const int64_t y = tile * rows;
                    const int64_t here = std::min(rows, p_[Dim::y] - y);
                    const int64_t top = y * w.stride - w.pad_begin;
                    const Rows of_tile{size(y),
                                       here,
                                       {y, y},
                                       {std::max<int64_t>(0, -top),
                                        std::min((here - 1) * w.stride + w.span(), w.in - top)}};
                    all.push_back(depthwise_rows(z, of_tile, runs));
                };
                for (int64_t tile = 0; tile < begin; ++tile) at_end(tile);
                if (begin < end) {
                    all.push_back(loop(".y", {size(begin), size(end)}, [&](const Expr& tile) {
                        const Rows of_tile{simplify(tile * size(rows)),
                                           rows,
                                           {begin * rows, (end - 1) * rows},
                                           {0, (rows - 1) * w.stride + w.span()}};
                        return depthwise_rows(z, of_tile, runs);
                    }));
                }
                for (int64_t tile = end; tile < tiles; ++tile) at_end(tile);
                return ir::sequence(all);
            });
        });
    }

    /// Rows of a tile, a vector of columns after the other: no more than the registers hold sums
    /// for, few of long rows, and no smaller one at the end, if that can be.
    [[nodiscard]] int64_t depthwise_row_count(int64_t runs) const {
        constexpr int64_t most_vectors = 16, fewest_rows = 2;
        const int64_t extent = p_[Dim::y];
        const int64_t most = std::min(
            {unit_.accumulators * 2 / 3, std::max(fewest_rows, most_vectors / runs), extent});
        return ceil_div(extent, ceil_div(extent, most));
    }

    /// A tile of output rows. Of the rows that their windows reach, counted from the first one's,
    /// those from inputs.first to inputs.second are there; the others are padding.
    struct Rows {
        Expr y;
        int64_t count = 1;
        std::pair<int64_t, int64_t> range;  ///< least and largest y
        std::pair<int64_t, int64_t> inputs;
    };

    /// [0, extent) in vectors or halves of them; the last one as late as it fits, so that it is
    /// full, and writes what another one has written too.
    [[nodiscard]] std::vector<Run> whole_runs(int64_t extent) const {
        std::vector<Run> runs = runs_of(extent, unit_);
        Run& last = runs.back();
        const int64_t back = std::min(last.first, last.lanes - last.end);
        last = {last.first - back, last.lanes, 0, last.end + back};
        return runs;
    }

    /// make(0, run) for every run, or, for neighbours that read no padding, in a loop: make(x, run)
    /// for the run x columns further.
    [[nodiscard]] Stmt for_runs(
        const std::vector<Run>& runs,
        const std::function<Stmt(const Expr& x, const Run& run)>& make) const {
        constexpr size_t worth_a_loop = 3;
        const AxisWindow& w = p_.x();
        const auto reads_inside = [&](const Run& run) {
            const int64_t column = run.first * w.stride - w.pad_begin;
            return column >= 0 && column + w.span() - 1 + run.lanes * w.stride <= w.in;
        };
        size_t begin = 0;
        while (begin < runs.size() && !reads_inside(runs[begin])) ++begin;
        size_t end = begin;
        const auto is_next = [&](const Run& run) {  // a last one of half the lanes is not
            return run.first ==
                       runs[begin].first + static_cast<int64_t>(end - begin) * unit_.lanes &&
                   run.lanes == unit_.lanes && run.begin == 0 && run.end == run.lanes;
        };
        while (end < runs.size() && reads_inside(runs[end]) && is_next(runs[end])) ++end;
        if (end - begin < worth_a_loop) end = begin;
        std::vector<Stmt> all;
        for (size_t n = 0; n < begin; ++n) all.push_back(make(0, runs[n]));
        if (begin < end) {
            all.push_back(
                loop(".x", {0, size(static_cast<int64_t>(end - begin))},
                     [&](const Expr& n) { return make(n * size(unit_.lanes), runs[begin]); }));
        }
        for (size_t n = end; n < runs.size(); ++n) all.push_back(make(0, runs[n]));
        return ir::sequence(all);
    }

    [[nodiscard]] Stmt depthwise_rows(const Expr& z, const Rows& rows,
                                      const std::vector<Run>& runs) const {
        return for_runs(
            runs, [&](const Expr& x, const Run& run) { return depthwise_tile(z, rows, x, run); });
    }

    /// Rows of a channel in a run x columns further. Which columns are padding is known here.
    [[nodiscard]] Stmt depthwise_tile(const Expr& z, const Rows& rows, const Expr& x,
                                      const Run& run) const {
        const AxisWindow& wy = p_.y();
        const AxisWindow& wx = p_.x();
        const Sums sums(p_.name + ".sum", {run}, rows.count);
        std::vector<Stmt> parts;
        for (int64_t r = 0; r < rows.count; ++r)
            parts.push_back(sums.start(0, r, ir::load(bias_, z)));
        for (int64_t in = rows.inputs.first; in < rows.inputs.second; ++in) {
            std::vector<std::pair<int64_t, int64_t>> served;  // row of the tile, n
            for (int64_t r = 0; r < rows.count; ++r) {
                const int64_t reach = in - r * wy.stride;
                if (reach >= 0 && reach % wy.dilation == 0 && reach / wy.dilation < wy.kernel)
                    served.emplace_back(r, reach / wy.dilation);
            }
            if (served.empty()) continue;
            const int64_t offset = in - wy.pad_begin;
            const Around around{rows.range.first * wy.stride + offset,
                                wy.in - 1 - (rows.range.second * wy.stride + offset)};
            const Expr row =
                simplify((z * size(wy.in) + rows.y * size(wy.stride) + size(offset)) * size(wx.in) +
                         x * size(wx.stride));
            for (int64_t m = 0; m < wx.kernel; ++m) {
                const int64_t column = run.first * wx.stride + m * wx.dilation - wx.pad_begin;
                parts.push_back(ir::with_values(
                    p_.name + ".in", {row_of_input(row, column, run, around)},
                    [&](const std::vector<Expr>& value) {
                        std::vector<Stmt> uses;
                        for (const auto& [r, n] : served) {
                            const Expr weight = ir::load(weights_, z * size(wy.kernel * wx.kernel) +
                                                                       size(n * wx.kernel + m));
                            uses.push_back(
                                sums.add(0, r, value.front() * broadcast(weight, run.lanes)));
                        }
                        return ir::sequence(uses);
                    }));
            }
        }
        for (int64_t r = 0; r < rows.count; ++r) {
            const Expr to = simplify((z * size(wy.out) + rows.y + size(r)) * size(wx.out) + x +
                                     size(run.first));
            parts.push_back(store_run(z, sums.get(0, r), to, run));
        }
        return sums.around(ir::sequence(parts));
    }

    /// A run of sums to the elements from `to` on. Where half of its lanes or more are wanted,
    /// those are two halves that may have elements in common: processors take their time for stores
    /// that leave lanes out.
    [[nodiscard]] Stmt store_run(const Expr& z, const Expr& sum, const Expr& to,
                                 const Run& run) const {
        const int64_t half = run.lanes / 2;
        const int64_t wanted = run.end - run.begin;
        const Expr value = output_.activated(z, sum);
        if (run.begin != 0 || wanted == run.lanes || wanted < half || half < 2)
            return output_.store_activated(z, value, lanes_from(to, run.lanes), wanted_lanes(run));
        const auto part = [&](int64_t first) {
            return output_.store_activated(
                z, Shuffle::make_slice(value, static_cast<int>(first), 1, static_cast<int>(half)),
                lanes_from(simplify(to + size(first)), half));
        };
        return ir::sequence({part(0), part(wanted - half)});
    }

    /// Columns column, column + stride, ... of a row of X; zero where there are none.
    [[nodiscard]] Expr row_of_input(const Expr& row, int64_t column, const Run& run,
                                    const Around& around = {}) const {
        return every(p_.x().stride, 0, run,
                     columns_of_input(row, column, run.lanes * p_.x().stride, 0.0F, around));
    }
    /// `wide` columns of a row of X from `column` on; `fill` where there are none.
    [[nodiscard]] Expr columns_of_input(const Expr& row, int64_t column, int64_t wide, float fill,
                                        const Around& around = {}) const {
        const int64_t first = std::max<int64_t>(0, -column);
        const int64_t end = std::min(wide, p_.x().in - column);
        const Expr index = lanes_from(simplify(row + size(column)), wide);
        const Expr lane = lanes_from(0, wide);
        if (first == 0 && end == wide) return ir::load("X", index, ir::Alignment::element);
        Expr value = broadcast(Expr(fill), wide);
        if (first >= end) return value;
        const Expr inside =
            lane >= broadcast(size(first), wide) && lane < broadcast(size(end), wide);
        // What lies beside the row is read and left out where it is known to be there: quicker than
        // not to read it.
        const bool is_there =
            first <= around.before * p_.x().in && wide - end <= around.after * p_.x().in;
        return Halide::select(
            inside, ir::load("X", index, ir::Alignment::element, is_there ? Expr() : inside),
            value);
    }
    [[nodiscard]] static Expr every(int64_t stride, int64_t first, const Run& run,
                                    const Expr& wide) {
        return stride == 1
                   ? wide
                   : Shuffle::make_slice(wide, static_cast<int>(first), static_cast<int>(stride),
                                         static_cast<int>(run.lanes));
    }

    // ---- pooling

    Stmt pooling() {
        output_.pack(1, constants_);
        const AxisWindow& w = p_.y();
        const std::vector<Run> runs = runs_of(p_[Dim::x], unit_);
        // Rows of the window that are there: known for the rows at the ends, all of them in
        // between.
        const auto is_inner = [&](int64_t y) {
            return y * w.stride >= w.pad_begin && y * w.stride - w.pad_begin + w.span() - 1 < w.in;
        };
        int64_t begin = 0;
        while (begin < p_[Dim::y] && !is_inner(begin)) ++begin;
        int64_t end = begin;
        while (end < p_[Dim::y] && is_inner(end)) ++end;
        const int64_t parts = std::min(p_[Dim::z], parts_wanted);
        return for_parts(parts, [&](const Expr& part) {
            return loop(".z", part_of(part, parts, p_[Dim::z]), [&](const Expr& z) {
                std::vector<Stmt> rows;
                const auto at_end = [&](int64_t y) {
                    std::vector<int64_t> taps;
                    for (int64_t n = 0; n < w.kernel; ++n) {
                        if (w.input(y, n)) taps.push_back(n);
                    }
                    rows.push_back(pooled_row(z, size(y), taps, runs));
                };
                std::vector<int64_t> taps;
                for (int64_t n = 0; n < w.kernel; ++n) taps.push_back(n);
                for (int64_t y = 0; y < begin; ++y) at_end(y);
                if (begin < end)
                    rows.push_back(loop(".y", {size(begin), size(end)}, [&](const Expr& y) {
                        return pooled_row(z, y, taps, runs);
                    }));
                for (int64_t y = end; y < p_[Dim::y]; ++y) at_end(y);
                return ir::sequence(rows);
            });
        });
    }

    /// A row of outputs through the rows `taps` of the window. Strided columns are taken out of
    /// wide vectors that several taps share. A maximum of rows comes before that of columns; a sum
    /// is taken tap by tap, in the order of the kernel over lines.
    [[nodiscard]] Stmt pooled_row(const Expr& z, const Expr& y, const std::vector<int64_t>& taps,
                                  const std::vector<Run>& runs) {
        const AxisWindow& wy = p_.y();
        const AxisWindow& wx = p_.x();
        const bool is_max = p_.operation == Operation::max_pool;
        const float outside = is_max ? -std::numeric_limits<float>::infinity() : 0.0F;
        std::vector<Stmt> stores;
        for (const Run& run : runs) {
            // Which wide vector has tap m, and from which element on.
            const auto wide_of = [&](int64_t m) {
                return wx.dilation == 1 ? m / wx.stride * wx.stride : m * wx.dilation;
            };
            const auto wide = [&](int64_t n, int64_t column) {
                const Expr row = simplify(
                    (z * size(wy.in) + y * size(wy.stride) + size(n * wy.dilation - wy.pad_begin)) *
                    size(wx.in));
                return columns_of_input(row, run.first * wx.stride + column - wx.pad_begin,
                                        run.lanes * wx.stride, outside);
            };
            const auto of_tap = [&](int64_t m, const Expr& columns) {
                return every(wx.stride, m * wx.dilation - wide_of(m), run, columns);
            };
            Expr value = broadcast(Expr(outside), run.lanes);
            for (int64_t m = 0; is_max && m < wx.kernel; ++m) {
                Expr all = wide(taps.front(), wide_of(m));
                for (size_t n = 1; n < taps.size(); ++n)
                    all = Halide::max(all, wide(taps[n], wide_of(m)));
                value = Halide::max(value, of_tap(m, all));
            }
            if (!is_max) {
                for (const int64_t n : taps) {
                    // In this order wherever a column lies in its run.
                    for (int64_t m = 0; m < wx.kernel; ++m)
                        value = Halide::strict_float(value + of_tap(m, wide(n, wide_of(m))));
                }
                value = value / averaged(std::ssize(taps), run);
            }
            const Expr to = lanes_from(
                simplify((z * size(wy.out) + y) * size(wx.out) + size(run.first)), run.lanes);
            stores.push_back(output_.store(z, value, to, wanted_lanes(run)));
        }
        return ir::sequence(stores);
    }

    /// By how many elements the averages of a run of columns divide, `rows` rows of their windows
    /// being there: ir::averaged_elements, known here.
    [[nodiscard]] Expr averaged(int64_t rows, const Run& run) {
        const AxisWindow& wx = p_.x();
        const int64_t of_rows = layer_.count_include_pad ? p_.y().kernel : rows;
        std::vector<float> counts;
        for (int64_t x = run.first; x < run.first + run.lanes; ++x) {
            int64_t columns = 0;
            for (int64_t m = 0; m < wx.kernel; ++m)
                columns += layer_.count_include_pad || x >= wx.out || wx.input(x, m) ? 1 : 0;
            counts.push_back(static_cast<float>(of_rows * columns));
        }
        // The compiler multiplies by the reciprocal of a number that it knows. So does the kernel
        // over lines where no window reaches padding, and only there.
        if (layer_.count_include_pad || (!ir::reaches_padding(p_.y()) && !ir::reaches_padding(wx)))
            return broadcast(Expr(counts.front()), run.lanes);
        return ir::load(constant(".averaged", counts), lanes_from(0, run.lanes));
    }

    // ---- addition

    /// The elements of all maps are one axis, unless the activation has a slope for each.
    Stmt addition() {
        output_.pack(1, constants_);
        const bool by_map = layer_.activation.kind == ActivationKind::prelu;
        const int64_t maps = by_map ? p_[Dim::z] : 1;
        const int64_t elements = pixels_ * (by_map ? 1 : p_[Dim::z]);
        constexpr int64_t vectors = 4;
        const int64_t step = vectors * unit_.lanes;
        const int64_t full = elements / step;
        const int64_t chunks = std::clamp<int64_t>(full, 1, parts_wanted);
        return for_parts(chunks, [&](const Expr& part) {
            return loop(".z", {0, size(maps)}, [&](const Expr& map) {
                const auto sum = [&](const Expr& first, const Run& run) {
                    const Expr at = lanes_from(
                        simplify(map * size(elements) + first + size(run.first)), run.lanes);
                    return output_.store_sum(map, at, wanted_lanes(run));
                };
                std::vector<Stmt> all;
                if (full > 0) {
                    all.push_back(loop(".x", part_of(part, chunks, full), [&](const Expr& x) {
                        std::vector<Stmt> sums;
                        for (int64_t v = 0; v < vectors; ++v)
                            sums.push_back(sum(x * size(step),
                                               {v * unit_.lanes, unit_.lanes, 0, unit_.lanes}));
                        return ir::sequence(sums);
                    }));
                }
                std::vector<Stmt> rest;
                for (int64_t first = full * step; first < elements; first += unit_.lanes)
                    rest.push_back(
                        sum(0, {first, unit_.lanes, 0, std::min(unit_.lanes, elements - first)}));
                if (!rest.empty())
                    all.push_back(ir::guarded(part == size(chunks - 1), ir::sequence(rest)));
                return ir::sequence(all);
            });
        });
    }

    LayerOutput output_;
    const LayerProblem& p_ = output_.problem();
    const Layer& layer_ = output_.layer();
    VectorUnit unit_;
    const KernelOptions& kernels_;
    int64_t pixels_;
    std::string weights_, bias_;
    NamedConstants constants_;
    std::string copy_ = unique_name("copy");  ///< in the scratch block: a panel of pixels; with
                                              ///< windows sums and a grid behind it
    int64_t sums_offset_ = 0, grid_offset_ = 0;
    int64_t copy_elements_ = 0;
    int64_t strips_ = 1;
};

}  // namespace

bool kernel_pays(const LayerProblem& p, KernelKind::map_pooling) {
    // Rows are written out vector by vector, and windows tap by tap.
    constexpr int64_t fewest_columns = 4, most_columns = 256, most_taps = 25, most_stride = 4;
    return (p.operation == Operation::max_pool || p.operation == Operation::average_pool) &&
           p[Dim::x] >= fewest_columns && p[Dim::x] <= most_columns &&
           p.x().kernel * p.y().kernel <= most_taps && p.x().stride <= most_stride;
}

std::optional<GroupCode> whole_map_code(const Network& network, const GroupSchedule& group,
                                        const VectorUnit& unit, const KernelOptions& kernels) {
    std::optional<LayerOutput> output = LayerOutput::of(network, group);
    if (!output) return std::nullopt;
    const LayerProblem& p = output->problem();
    if (p.operation != Operation::add && !a_map_kernel_pays(p) && !kernel_pays(p, KernelKind::map_pooling))
        return std::nullopt;
    GroupCode code = WholeMap(*std::move(output), unit, kernels).code();
    if (kernels.scratch && code.scratch_bytes > kernels.scratch->value()) return std::nullopt;
    return code;
}

}  // namespace laminate
