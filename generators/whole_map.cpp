#include "generators/whole_map.h"

#include <algorithm>
#include <functional>
#include <limits>

#include "generators/arrays.h"
#include "generators/constants.h"
#include "generators/register_tile.h"
#include "scheduler/halide/group_lowering.h"
#include "scheduler/line_buffers.h"
#include "scheduler/problem.h"

namespace laminate {

using namespace Halide::Internal;
using ir::Accumulators;
using ir::broadcast;
using ir::lanes_from;
using ir::size;

namespace {

/// What threads divide, when there is enough of it.
constexpr int64_t parts_wanted = 8;

/// A vector of a row or of the map: `lanes` elements from `first` on, of which those from `begin` to `end` are wanted.
struct Run {
    int64_t first = 0;
    int64_t lanes = 1;
    int64_t begin = 0;
    int64_t end = 1;
};

/// [0, extent) in vectors; a last one of half the lanes where those are enough, because processors with two halves do two such at a time.
std::vector<Run> runs_of(int64_t extent, const VectorUnit& unit) {
    std::vector<Run> runs;
    for (int64_t first = 0; first < extent; first += unit.lanes) {
        const int64_t left = extent - first;
        const int64_t half = unit.lanes / 2;
        runs.push_back({first, half >= 4 && left <= half ? half : unit.lanes, 0, std::min(left, unit.lanes)});
    }
    return runs;
}

/// The same run as late as it fits into [0, extent), which may reach back over elements that another one has.
Run inside(Run run, int64_t extent) {
    const int64_t back = std::min(run.first, std::max<int64_t>(0, run.first + run.lanes - extent));
    return {run.first - back, run.lanes, run.begin + back, run.end + back};
}

/// Part number `part` of `parts` of [0, extent), as even as can be.
Interval part_of(const Expr& part, int64_t parts, int64_t extent) {
    return {simplify(part * size(extent) / size(parts)), simplify((part + 1) * size(extent) / size(parts))};
}

class WholeMap {
public:
    WholeMap(const LayerProblem& problem, const Layer& layer, const VectorUnit& unit)
        : p_(problem), layer_(layer), unit_(unit), pixels_(p_[Dim::y] * p_[Dim::x]) {}

    GroupCode code() {
        GroupCode code;
        Stmt body = p_.groups > 1 ? depthwise() : pointwise();
        for (const auto& [name, offset] : constant_offsets_) body = ir::with_array(name, argument::constants, offset, body);
        body = ir::with_pointer("X", argument::inputs, 0, body);
        body = ir::with_pointer("Y", argument::outputs, 0, body);
        code.body = simplify(body);
        code.arrays = {{"X", ArrayRole::external_input, 0}, {"Y", ArrayRole::external_output, 0}};
        code.inputs = {p_.inputs.front().name};
        code.constants = std::move(constants_).take();
        code.strips = strips_;
        return code;
    }

private:
    using Make = std::function<Stmt(Expr)>;

    std::string constant(const std::string& name, const std::vector<float>& values) {
        constant_offsets_.emplace_back(unique_name(p_.name + name), constants_.append(values));
        return constant_offsets_.back().first;
    }
    void pack(int64_t block) {
        weights_ = constant(".packed", packed_weights(canonical_weights(layer_, p_), p_, block));
        bias_ = constant(".bias", padded(canonical_bias(layer_, p_), block));
        const std::vector<float> slope = canonical_slope(layer_, p_);
        if (!slope.empty()) slope_ = constant(".slope", padded(slope, block));
    }
    [[nodiscard]] Stmt loop(const std::string& name, const Interval& range, const Make& make) const {
        return GroupLowering::for_each(p_.name + name, range, make);
    }
    [[nodiscard]] Stmt for_parts(int64_t parts, const Make& make) {
        strips_ = parts;
        const auto bound = [](const char* name) { return Variable::make(Halide::Int(32), name); };
        return loop(".part", {bound(argument::strip_begin), bound(argument::strip_end)}, make);
    }
    /// Of one channel for all lanes, or of as many channels as there are lanes.
    [[nodiscard]] static Expr per_channel(const std::string& array, const Expr& channel, int64_t lanes) {
        const Expr value = ir::load(array, channel);
        return channel.type().is_scalar() ? broadcast(value, lanes) : value;
    }
    [[nodiscard]] Expr finished(const Expr& channel, const Expr& sum) const {
        const int64_t lanes = sum.type().lanes();
        return ir::activate(layer_.activation, sum, slope_.empty() ? broadcast(Expr(0.0F), lanes) : per_channel(slope_, channel, lanes));
    }
    /// None when all are.
    [[nodiscard]] static Expr wanted_lanes(const Run& run) {
        if (run.begin == 0 && run.end == run.lanes) return {};
        const Expr lane = lanes_from(0, run.lanes);
        return lane >= broadcast(size(run.begin), run.lanes) && lane < broadcast(size(run.end), run.lanes);
    }

    /// Sums that may be of several widths: `count` of each run. Each in an array of its own: LLVM keeps two halves of one in one register and takes them apart
    /// for every product.
    class Sums {
    public:
        Sums(const std::string& name, const std::vector<Run>& runs, int64_t count) : count_(count) {
            for (const Run& run : runs) {
                for (int64_t n = 0; n < count; ++n) sums_.push_back({unique_name(name), run.lanes});
            }
        }
        [[nodiscard]] const Accumulators& of(size_t run, int64_t n) const { return sums_[run * static_cast<size_t>(count_) + static_cast<size_t>(n)]; }
        [[nodiscard]] Expr get(size_t run, int64_t n) const { return of(run, n).get(0); }
        [[nodiscard]] Stmt start(size_t run, int64_t n, const Expr& value) const { return of(run, n).set(0, broadcast(value, of(run, n).lanes)); }
        [[nodiscard]] Stmt add(size_t run, int64_t n, const Expr& value) const { return of(run, n).set(0, get(run, n) + value); }
        [[nodiscard]] Stmt around(Stmt body) const {
            for (const Accumulators& sum : sums_) body = sum.around(1, body);
            return body;
        }

    private:
        int64_t count_;
        std::vector<Accumulators> sums_;
    };
    // ------------------------------------------------------------------------------------------------------------ pointwise

    /// What is in registers at once.
    struct Tile {
        VectorAxis axis = VectorAxis::x;
        int64_t channels = 1;  ///< axis z: whole vectors
        int64_t pixels = 1;    ///< axis x: whole vectors
    };

    /// The tile that takes the fewest cycles, one product a cycle: lanes left empty at the ends cost as much as full ones, and a column of
    /// outputs is stored one by one.
    [[nodiscard]] Tile pointwise_tile() const {
        constexpr int64_t latency = 4, lane_store = 2;
        const int64_t lanes = unit_.lanes;
        const int64_t di = p_[Dim::i];
        Tile best;
        int64_t least = std::numeric_limits<int64_t>::max();
        const auto consider = [&](const Tile& tile, int64_t cycles) {
            if (cycles < least) {
                least = cycles;
                best = tile;
            }
        };
        const auto products = [&](int64_t a, int64_t b) { return std::max({a * b, a + b, latency}); };
        for (const int64_t vectors : {3, 4, 2}) {
            const int64_t channels = std::min(unit_.accumulators / vectors, p_[Dim::z]);
            if (pixels_ < lanes || (pixels_ < vectors * lanes && vectors > 2)) continue;
            const int64_t all = ceil_div(pixels_, lanes);
            const int64_t rest = all % vectors;
            const int64_t of_block = all / vectors * products(vectors, channels) + (rest == 0 ? 0 : products(rest, channels));
            consider({VectorAxis::x, channels, vectors * lanes}, ceil_div(p_[Dim::z], channels) * of_block * di);
        }
        for (const int64_t vectors : {1, 2, 3, 4}) {
            // Single elements come from as many streams as there are input channels.
            if (pixels_ > 4 * lanes) continue;
            // Weights and one element at a time leave room for a few more sums.
            const int64_t most = (unit_.accumulators + unit_.accumulators / 6) / vectors;
            const int64_t pixels = ceil_div(pixels_, ceil_div(pixels_, most));
            const int64_t rest = pixels_ % pixels;
            // Weights come from memory once, for the first pixels.
            constexpr int64_t bytes_per_cycle = 4;
            const int64_t arrival = vectors * lanes * bytes_per_element / bytes_per_cycle;
            const int64_t of_block = std::max(products(vectors, pixels), arrival) + (pixels_ / pixels - 1) * products(vectors, pixels) +
                                     (rest == 0 ? 0 : products(vectors, rest));
            const int64_t stores = vectors * pixels_ * lanes * lane_store;
            consider({VectorAxis::z, vectors * lanes, pixels}, ceil_div(p_[Dim::z], vectors * lanes) * (of_block * di + stores));
        }
        // One pixel: its weights are read once, so what counts is a long stream of them without zeros at the end, and something for every thread.
        if (pixels_ == 1) best = {VectorAxis::z, dense_vectors() * lanes, 1};
        return best;
    }

    /// Enough sums that none waits for its predecessor.
    [[nodiscard]] int64_t dense_vectors() const {
        const int64_t all = ceil_div(p_[Dim::z], unit_.lanes);
        constexpr int64_t fewest = 4, most = 12;
        int64_t best = std::min(fewest, all);
        for (int64_t vectors = best + 1; vectors <= std::min({most, all, unit_.accumulators}); ++vectors) {
            const bool wastes_no_more = ceil_div(all, vectors) * vectors <= ceil_div(all, best) * best;
            if (wastes_no_more && ceil_div(all, vectors) >= std::min(parts_wanted, ceil_div(all, fewest))) best = vectors;
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
        const int64_t full = pixels_ / step;
        std::vector<Run> last;
        for (int64_t x = full * step; x < pixels_; x += unit_.lanes) {
            last.push_back(inside({x, unit_.lanes, 0, std::min(unit_.lanes, pixels_ - x)}, pixels_));
        }
        std::vector<Run> whole;
        for (int64_t v = 0; v < vectors; ++v) whole.push_back({v * unit_.lanes, unit_.lanes, 0, unit_.lanes});
        const int64_t tiles = full + (last.empty() ? 0 : 1);
        // A chunk of pixels stays in the second-level cache while the channels of a part are computed.
        constexpr int64_t cached_bytes = 384 * 1024;
        const int64_t chunks = std::min(tiles, ceil_div(tiles * step * p_[Dim::i] * bytes_per_element, cached_bytes));
        const int64_t channel_parts = std::min(blocks, ceil_div(parts_wanted, 2 * chunks) * 2);
        return for_parts(chunks * channel_parts, [&](const Expr& part) {
            const Interval channels = part_of(simplify(part % size(channel_parts)), channel_parts, blocks);
            const Interval chunk = part_of(simplify(part / size(channel_parts)), chunks, tiles);
            return loop(".z", channels, [&](const Expr& z) {
                std::vector<Stmt> all;
                const Interval whole_tiles{chunk.begin, simplify(Halide::min(chunk.end, size(full)))};
                if (full > 0) all.push_back(loop(".x", whole_tiles, [&](const Expr& x) { return pixel_tile(z, block, simplify(x * size(step)), whole); }));
                if (!last.empty()) all.push_back(ir::guarded(chunk.end == size(tiles), pixel_tile(z, block, 0, last)));
                return ir::sequence(all);
            });
        });
    }

    /// `block` output channels x the runs of pixels from `x` on.
    [[nodiscard]] Stmt pixel_tile(const Expr& z_block, int64_t block, const Expr& x, const std::vector<Run>& runs) const {
        const Sums sums(p_.name + ".sum", runs, block);
        const Expr z0 = simplify(z_block * size(block));
        std::vector<Stmt> parts;
        for (size_t v = 0; v < runs.size(); ++v) {
            for (int64_t z = 0; z < block; ++z) parts.push_back(sums.start(v, z, ir::load(bias_, z0 + size(z))));
        }
        parts.push_back(loop(".i", {0, size(p_[Dim::i])}, [&](const Expr& i) {
            std::vector<Expr> values;
            for (const Run& run : runs) {
                const Expr from = lanes_from(simplify(i * size(pixels_) + x + size(run.first)), run.lanes);
                values.push_back(ir::load("X", from, ir::Alignment::element));
            }
            return ir::with_values(p_.name + ".in", values, [&](const std::vector<Expr>& in) {
                std::vector<Stmt> products;
                for (int64_t z = 0; z < block; ++z) {
                    const Expr weight = ir::load(weights_, (z_block * size(p_[Dim::i]) + i) * size(block) + size(z));
                    products.push_back(ir::with_values(p_.name + ".w", {broadcast(weight, unit_.lanes)}, [&](const std::vector<Expr>& w) {
                        std::vector<Stmt> uses;
                        for (size_t v = 0; v < runs.size(); ++v) uses.push_back(sums.add(v, z, in[v] * w.front()));
                        return ir::sequence(uses);
                    }));
                }
                return ir::sequence(products);
            });
        }));
        for (int64_t z = 0; z < block; ++z) {
            const Expr channel = simplify(z0 + size(z));
            std::vector<Stmt> stores;
            for (size_t v = 0; v < runs.size(); ++v) {
                const Expr to = lanes_from(simplify(channel * size(pixels_) + x + size(runs[v].first)), runs[v].lanes);
                stores.push_back(ir::store("Y", finished(channel, sums.get(v, z)), to, ir::Alignment::element, wanted_lanes(runs[v])));
            }
            const Stmt all = ir::sequence(stores);
            parts.push_back(p_[Dim::z] % block != 0 ? ir::guarded(channel < size(p_[Dim::z]), all) : all);
        }
        return sums.around(ir::sequence(parts));
    }

    /// Lanes are output channels: tile.channels of them x tile.pixels.
    Stmt along_channels(const Tile& tile) {
        const int64_t block = tile.channels;
        pack(block);
        const int64_t blocks = ceil_div(p_[Dim::z], block);
        const int64_t full = pixels_ / tile.pixels;
        const int64_t last = pixels_ - full * tile.pixels;
        // With few blocks of channels, threads divide the pixels too.
        const int64_t chunks = std::clamp<int64_t>(full, 1, ceil_div(parts_wanted, std::min(blocks, parts_wanted)));
        const int64_t channel_parts = std::min(blocks, parts_wanted);
        return for_parts(chunks * channel_parts, [&](const Expr& part) {
            const Expr number = simplify(part / size(channel_parts));
            const Interval chunk = part_of(number, chunks, full);
            return loop(".z", part_of(simplify(part % size(channel_parts)), channel_parts, blocks), [&](const Expr& z) {
                std::vector<Stmt> all;
                if (full > 0) {
                    all.push_back(loop(".x", chunk, [&](const Expr& x) { return channel_tile(z, block, simplify(x * size(tile.pixels)), tile.pixels); }));
                }
                if (last > 0) all.push_back(ir::guarded(number == size(chunks - 1), channel_tile(z, block, size(full * tile.pixels), last)));
                return ir::sequence(all);
            });
        });
    }

    [[nodiscard]] Stmt channel_tile(const Expr& z_block, int64_t block, const Expr& x, int64_t pixels) const {
        const int64_t lanes = unit_.lanes;
        const int64_t vectors = block / lanes;
        const Accumulators sums{unique_name(p_.name + ".sum"), lanes};
        const auto channel = [&](int64_t v) { return lanes_from(simplify(z_block * size(block) + size(v * lanes)), lanes); };
        std::vector<Stmt> parts;
        for (int64_t v = 0; v < vectors; ++v) {
            for (int64_t c = 0; c < pixels; ++c) parts.push_back(sums.set(v * pixels + c, ir::load(bias_, channel(v))));
        }
        parts.push_back(loop(".i", {0, size(p_[Dim::i])}, [&](const Expr& i) {
            std::vector<Expr> vectors_of_weights;
            for (int64_t v = 0; v < vectors; ++v) {
                vectors_of_weights.push_back(ir::load(weights_, lanes_from((z_block * size(p_[Dim::i]) + i) * size(block) + size(v * lanes), lanes)));
            }
            return ir::with_values(p_.name + ".w", vectors_of_weights, [&](const std::vector<Expr>& weights) {
                std::vector<Stmt> products;
                for (int64_t c = 0; c < pixels; ++c) {
                    const Expr in = ir::load("X", simplify(i * size(pixels_) + x + size(c)), ir::Alignment::element);
                    products.push_back(ir::with_values(p_.name + ".in", {broadcast(in, lanes)}, [&](const std::vector<Expr>& value) {
                        std::vector<Stmt> uses;
                        for (int64_t v = 0; v < vectors; ++v) {
                            uses.push_back(sums.set(v * pixels + c, sums.get(v * pixels + c) + value.front() * weights[static_cast<size_t>(v)]));
                        }
                        return ir::sequence(uses);
                    }));
                }
                return ir::sequence(products);
            });
        }));
        for (int64_t v = 0; v < vectors; ++v) {
            const Expr wanted = p_[Dim::z] % block == 0 ? Expr() : channel(v) < broadcast(size(p_[Dim::z]), lanes);
            for (int64_t c = 0; c < pixels; ++c) {
                const Expr to = lanes_from(simplify((z_block * size(block) + size(v * lanes)) * size(pixels_) + x + size(c)), lanes, pixels_);
                parts.push_back(ir::store("Y", finished(channel(v), sums.get(v * pixels + c)), to, ir::Alignment::element, wanted));
            }
        }
        return sums.around(vectors * pixels, ir::sequence(parts));
    }

    // ------------------------------------------------------------------------------------------------------------ depthwise

    Stmt depthwise() {
        pack(1);
        const std::vector<Run> runs = runs_of(p_[Dim::x], unit_);
        const auto vectors = static_cast<int64_t>(runs.size());
        const int64_t most_rows = std::max<int64_t>(1, unit_.accumulators * 2 / 3 / vectors);
        const int64_t rows = ceil_div(p_[Dim::y], ceil_div(p_[Dim::y], most_rows));
        const int64_t parts = std::min(p_[Dim::z], parts_wanted);
        return for_parts(parts, [&](const Expr& part) {
            return loop(".z", part_of(part, parts, p_[Dim::z]), [&](const Expr& z) {
                std::vector<Stmt> tiles;
                for (int64_t y = 0; y < p_[Dim::y]; y += rows) tiles.push_back(depthwise_rows(z, y, std::min(rows, p_[Dim::y] - y), runs));
                return ir::sequence(tiles);
            });
        });
    }

    /// Rows y .. y + rows of a channel. Which rows and columns are padding is known here.
    [[nodiscard]] Stmt depthwise_rows(const Expr& z, int64_t y, int64_t rows, const std::vector<Run>& runs) const {
        const AxisWindow& wy = p_.y();
        const AxisWindow& wx = p_.x();
        const Sums sums(p_.name + ".sum", runs, rows);
        std::vector<Stmt> parts;
        for (size_t v = 0; v < runs.size(); ++v) {
            for (int64_t r = 0; r < rows; ++r) parts.push_back(sums.start(v, r, ir::load(bias_, z)));
        }
        for (int64_t in = 0; in < wy.in; ++in) {
            std::vector<std::pair<int64_t, int64_t>> served;  // row of the tile, n
            for (int64_t r = 0; r < rows; ++r) {
                const int64_t reach = in + wy.pad_begin - (y + r) * wy.stride;
                if (reach >= 0 && reach % wy.dilation == 0 && reach / wy.dilation < wy.kernel) served.emplace_back(r, reach / wy.dilation);
            }
            if (served.empty()) continue;
            for (int64_t m = 0; m < wx.kernel; ++m) {
                for (size_t v = 0; v < runs.size(); ++v) {
                    const int64_t column = runs[v].first * wx.stride + m * wx.dilation - wx.pad_begin;
                    const Expr row = simplify((z * size(wy.in) + size(in)) * size(wx.in));
                    parts.push_back(ir::with_values(p_.name + ".in", {row_of_input(row, column, runs[v])}, [&](const std::vector<Expr>& value) {
                        std::vector<Stmt> uses;
                        for (const auto& [r, n] : served) {
                            const Expr weight = ir::load(weights_, z * size(wy.kernel * wx.kernel) + size(n * wx.kernel + m));
                            uses.push_back(sums.add(v, r, value.front() * broadcast(weight, runs[v].lanes)));
                        }
                        return ir::sequence(uses);
                    }));
                }
            }
        }
        for (int64_t r = 0; r < rows; ++r) {
            for (size_t v = 0; v < runs.size(); ++v) {
                const Expr to = lanes_from(simplify((z * size(wy.out) + size(y + r)) * size(wx.out) + size(runs[v].first)), runs[v].lanes);
                parts.push_back(ir::store("Y", finished(z, sums.get(v, r)), to, ir::Alignment::element, wanted_lanes(runs[v])));
            }
        }
        return sums.around(ir::sequence(parts));
    }

    /// Columns column, column + stride, ... of a row of X; zero where there are none.
    [[nodiscard]] Expr row_of_input(const Expr& row, int64_t column, const Run& run) const {
        const int64_t stride = p_.x().stride;
        const int64_t wide = run.lanes * stride;
        const int64_t first = std::max<int64_t>(0, -column);
        const int64_t end = std::min(wide, p_.x().in - column);
        const Expr index = lanes_from(simplify(row + size(column)), wide);
        const Expr lane = lanes_from(0, wide);
        Expr value = make_zero(Halide::Float(32, static_cast<int>(wide)));
        if (first == 0 && end == wide) {
            value = ir::load("X", index, ir::Alignment::element);
        } else if (first < end) {
            const Expr inside = lane >= broadcast(size(first), wide) && lane < broadcast(size(end), wide);
            value = Halide::select(inside, ir::load("X", index, ir::Alignment::element, inside), value);
        }
        return stride == 1 ? value : Shuffle::make_slice(value, 0, static_cast<int>(stride), static_cast<int>(run.lanes));
    }

    const LayerProblem& p_;
    const Layer& layer_;
    VectorUnit unit_;
    int64_t pixels_;
    std::string weights_, bias_, slope_;
    ConstantBlock constants_;
    std::vector<std::pair<std::string, int64_t>> constant_offsets_;
    int64_t strips_ = 1;
};

}  // namespace

std::optional<GroupCode> whole_map_code(const Network& network, const GroupSchedule& group, const VectorUnit& unit) {
    if (group.nests.size() != 1) return std::nullopt;
    const Nest& nest = group.nests.front();
    const LayerId id = network.find_layer(nest.layer);
    const LayerProblem problem = layer_problem(network, id);
    if (!suits_whole_map(problem) || nest.loops.front().band == Band::strip) return std::nullopt;
    for (const Dim d : {Dim::z, Dim::x, Dim::i}) {
        if (nest[d] != problem[d]) return std::nullopt;
    }
    return WholeMap(problem, network.layer(id), unit).code();
}

}  // namespace laminate
