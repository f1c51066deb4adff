#include "generators/kernels/map_depthwise.h"

#include <algorithm>
#include <utility>

#include "generators/ir/activations.h"
#include "generators/ir/arrays.h"
#include "generators/kernels/ir_names.h"
#include "generators/kernels/map_code.h"
#include "generators/lowering/group_lowering.h"

namespace laminate {

using namespace Halide::Internal;

namespace {

class DepthwiseTiles {
public:
    DepthwiseTiles(const DepthwiseSums& sums, const MapDepthwiseLayout& at)
        : sums_(sums), p_(sums.output.problem()), at_(at) {}

    [[nodiscard]] Stmt channel(const Expr& z, const Interval& tiles) const;

private:
    /// Rows of one channel z that are summed at once.
    struct Tile {
        Expr z;
        Expr y;  ///< first output row
        MapDepthwiseLayout::Rows rows;
        int64_t least_y = 0, most_y = 0;  ///< y in all executions of this code
    };

    /// Neighbouring runs that are summed at once. Each begins x columns further than it says.
    struct Together {
        std::vector<VectorRun> runs;
        Expr number;  ///< of the first one
        Expr x;
    };
    /// What becomes of the sum of row r of the n-th of such runs.
    using PutRow = std::function<Stmt(int64_t n, int64_t r, const Expr& sum)>;

    [[nodiscard]] Stmt tile(const Tile& tile) const;
    /// `make` of all runs, neighbours that read no padding in a loop.
    [[nodiscard]] Stmt for_runs(const std::function<Stmt(const Together&)>& make) const;
    /// Runs of a tile. Which columns are padding is known here.
    [[nodiscard]] Stmt runs_of_tile(const Tile& tile, const Together& together,
                                    const PutRow& put) const;
    /// Asks for what the next channel reads in the tile's place.
    [[nodiscard]] Stmt ask_for_next(const Tile& tile, const Expr& x, const VectorRun& run) const;
    /// Adds the products of input row `in`, counted from the first that the tile's windows reach.
    [[nodiscard]] std::vector<Stmt> add_row(const RunSums& sums, const Tile& tile, int64_t in,
                                            const Together& together) const;
    /// Which column each lane of a run's sums has; none if in order. Of two vectors of eight, AVX2 takes
    /// every other element with one instruction, but half by half. Another one puts them in order, which
    /// sums need once and each of their inputs would need.
    [[nodiscard]] std::vector<int> order_of(const VectorRun& run) const {
        constexpr int64_t lanes_of_halves = 8;
        if (p_.x().stride != 2 || run.lanes != lanes_of_halves) return {};
        return {0, 1, 4, 5, 2, 3, 6, 7};
    }
    [[nodiscard]] Expr in_order(const VectorRun& run, const Expr& sum) const {
        const std::vector<int> order = order_of(run);  // its own inverse
        return order.empty() ? sum : Shuffle::make({sum}, order);
    }
    [[nodiscard]] Stmt loop(const std::string& name, const Interval& range,
                            const MapCode::Make& make) const {
        return GroupLowering::for_each(p_.name + name, range, make);
    }

    const DepthwiseSums& sums_;
    const LayerProblem& p_;
    const MapDepthwiseLayout& at_;
};

Stmt DepthwiseTiles::channel(const Expr& z, const Interval& tiles) const {
    const int64_t rows = at_.tile_rows;
    std::vector<Stmt> all;
    const auto written_out = [&](int64_t n) {
        const int64_t y = n * rows;
        all.push_back(ir::guarded(has(tiles, n), tile({z, size(y), at_.rows_of(n), y, y})));
    };
    for (int64_t n = 0; n < at_.inner_begin; ++n) written_out(n);
    if (at_.inner_begin < at_.inner_end) {
        const Interval inner = common(tiles, at_.inner_begin, at_.inner_end);
        all.push_back(loop(".y", inner, [&](const Expr& n) {
            return tile({z, simplify(n * size(rows)), at_.rows_of(at_.inner_begin),
                         at_.inner_begin * rows, (at_.inner_end - 1) * rows});
        }));
    }
    for (int64_t n = at_.inner_end; n < at_.tiles; ++n) written_out(n);
    return ir::sequence(all);
}

Stmt DepthwiseTiles::for_runs(const std::function<Stmt(const Together&)>& make) const {
    std::vector<Stmt> all;
    const auto runs = [&](int64_t begin, int64_t end) -> std::vector<VectorRun> {
        return {at_.runs.begin() + begin, at_.runs.begin() + end};
    };
    const auto written_out = [&](int64_t begin, int64_t end) {
        for (int64_t n = begin; n < end; n += at_.runs_together)
            all.push_back(make({runs(n, std::min(end, n + at_.runs_together)), size(n), 0}));
    };
    written_out(0, at_.loop_begin);
    if (at_.loop_begin < at_.loop_end) {
        const std::vector<VectorRun> first = runs(at_.loop_begin, at_.loop_begin + at_.runs_together);
        const int64_t times = (at_.loop_end - at_.loop_begin) / at_.runs_together;
        all.push_back(loop(".x", {0, size(times)}, [&](const Expr& n) {
            const Expr further = simplify(n * size(at_.runs_together));
            return make({first, simplify(size(at_.loop_begin) + further),
                         simplify(further * size(first.front().lanes))});
        }));
    }
    written_out(at_.loop_end, std::ssize(at_.runs));
    return ir::sequence(all);
}

Stmt DepthwiseTiles::tile(const Tile& tile) const {
    const auto put = [&](const Together& together, int64_t n, int64_t r, const Expr& value) {
        return sums_.put(tile.z, simplify(tile.y + size(r)), together.x, value,
                         together.runs[static_cast<size_t>(n)]);
    };
    int64_t lanes = 0;
    for (const VectorRun& run : at_.runs) lanes = std::max(lanes, run.lanes);
    const int64_t vectors = tile.rows.count * std::ssize(at_.runs);
    constexpr int64_t most_elements = 4096;  // 16 KiB, half of a first-level cache
    if (!ir::takes_registers(sums_.output.layer().activation) || vectors * lanes > most_elements) {
        return for_runs([&](const Together& together) {
            return runs_of_tile(tile, together, [&](int64_t n, int64_t r, const Expr& sum) {
                return put(together, n, r, sums_.output.activated(tile.z, sum));
            });
        });
    }
    // A core sees few vectors ahead. If each were summed and finished at once, it would wait for both
    // in turn.
    const ir::Accumulators finished{unique_name(p_.name + ".finished"), lanes};
    const auto place = [&](const Together& together, int64_t n, int64_t r) {
        const Expr row = (together.number + size(n)) * size(tile.rows.count) + size(r);
        return lanes_from(simplify(row * size(lanes)), together.runs[static_cast<size_t>(n)].lanes);
    };
    const Stmt sums = for_runs([&](const Together& together) {
        return runs_of_tile(tile, together, [&](int64_t n, int64_t r, const Expr& sum) {
            return ir::store(finished.name, sum, place(together, n, r));
        });
    });
    // One code for all runs but a last one that is not like the others: long functions written out for each
    // would leave the cache of instructions.
    const int64_t rows = tile.rows.count;
    const auto outputs_of = [&](const Expr& number, const Expr& x, const VectorRun& run) {
        return ir::activate_waiting(
            sums_.output.layer().activation, finished, simplify(number * size(rows)), rows,
            [&](int64_t r, const Expr& value) {
                const Expr wanted = Shuffle::make_slice(value, 0, 1, static_cast<int>(run.lanes));
                return sums_.put(tile.z, simplify(tile.y + size(r)), x, wanted, run);
            });
    };
    const VectorRun& last = at_.runs.back();
    const int64_t before = std::ssize(at_.runs) - 1;
    const bool are_alike = last.is_whole() && last.lanes == lanes;
    const Stmt first = loop(
        ".finished", {0, size(before + (are_alike ? 1 : 0))}, [&](const Expr& n) {
            return outputs_of(n, simplify(Halide::min(n * size(lanes), size(last.first))),
                              {0, lanes, 0, lanes});
        });
    const Stmt outputs = are_alike ? first : ir::sequence({first, outputs_of(size(before), 0, last)});
    return finished.around(vectors, ir::sequence({sums, outputs}));
}

Stmt DepthwiseTiles::runs_of_tile(const Tile& tile, const Together& together,
                                  const PutRow& put) const {
    const RunSums sums(p_.name + ".sum", together.runs, tile.rows.count);
    const auto count = std::ssize(together.runs);
    std::vector<Stmt> parts;
    for (int64_t n = 0; n < count; ++n) {
        for (int64_t r = 0; r < tile.rows.count; ++r)
            parts.push_back(
                sums.start(static_cast<size_t>(n), r, ir::load(sums_.bias, tile.z)));
        if (sums_.input == "X")
            parts.push_back(
                ask_for_next(tile, together.x, together.runs[static_cast<size_t>(n)]));
    }
    for (int64_t in = tile.rows.input_begin; in < tile.rows.input_end; ++in) {
        const std::vector<Stmt> row = add_row(sums, tile, in, together);
        parts.insert(parts.end(), row.begin(), row.end());
    }
    for (int64_t n = 0; n < count; ++n) {
        for (int64_t r = 0; r < tile.rows.count; ++r)
            parts.push_back(put(n, r, in_order(together.runs[static_cast<size_t>(n)],
                                               sums.get(static_cast<size_t>(n), r))));
    }
    return sums.around(ir::sequence(parts));
}

Stmt DepthwiseTiles::ask_for_next(const Tile& tile, const Expr& x, const VectorRun& run) const {
    const AxisWindow& wy = p_.y();
    const AxisWindow& wx = p_.x();
    const Expr next = Halide::min(tile.z + 1, size(p_[Dim::z] - 1));
    std::vector<Stmt> all;
    for (int64_t n = 0; n < tile.rows.count * wy.stride; ++n) {
        const Expr row = next * size(wy.in) + tile.y * size(wy.stride) + size(n);
        for (int64_t m = 0; m < wx.stride; ++m) {
            const Expr column = (x + size(run.first)) * size(wx.stride) + size(m * run.lanes);
            all.push_back(ir::prefetch("X", simplify(row * size(wx.in) + column)));
        }
    }
    return ir::sequence(all);
}

std::vector<Stmt> DepthwiseTiles::add_row(const RunSums& sums, const Tile& tile, int64_t in,
                                          const Together& together) const {
    const AxisWindow& wy = p_.y();
    const AxisWindow& wx = p_.x();
    std::vector<std::pair<int64_t, int64_t>> served;  // row of the tile, row of the kernel
    for (int64_t r = 0; r < tile.rows.count; ++r) {
        const int64_t reach = in - r * wy.stride;
        if (reach >= 0 && reach % wy.dilation == 0 && reach / wy.dilation < wy.kernel)
            served.emplace_back(r, reach / wy.dilation);
    }
    std::vector<Stmt> all;
    if (served.empty()) return all;
    const int64_t offset = in - wy.pad_begin;
    const RowsAround around{tile.least_y * wy.stride + offset,
                            wy.in - 1 - (tile.most_y * wy.stride + offset)};
    const Expr row =
        simplify(sums_.input_begin +
                 (tile.z * size(wy.in) + tile.y * size(wy.stride) + size(offset)) * size(wx.in) +
                 together.x * size(wx.stride));
    for (int64_t m = 0; m < wx.kernel; ++m) {
        std::vector<Expr> inputs;
        for (const VectorRun& run : together.runs) {
            const int64_t column = run.first * wx.stride + m * wx.dilation - wx.pad_begin;
            inputs.push_back(
                row_of_input(wx, row, column, run, around, sums_.input, order_of(run)));
        }
        all.push_back(
            ir::with_values(p_.name + ".in", inputs, [&](const std::vector<Expr>& values) {
                std::vector<Stmt> uses;
                for (const auto& [r, n] : served) {
                    const Expr weight =
                        ir::load(sums_.weights,
                                 tile.z * size(wy.kernel * wx.kernel) + size(n * wx.kernel + m));
                    for (size_t v = 0; v < values.size(); ++v)
                        uses.push_back(
                            sums.add(v, r, values[v] * broadcast(weight, together.runs[v].lanes)));
                }
                return ir::sequence(uses);
            }));
    }
    return all;
}

/// Stores a run of outputs to Y's elements from `to` on.
Stmt store_run(const LayerOutput& output, const Expr& z, const Expr& value, const Expr& to,
               const VectorRun& run) {
    const int64_t half = run.lanes / 2;
    if (!run.is_stored_as_halves())
        return output.store_activated(z, value, lanes_from(to, run.lanes), wanted_lanes(run));
    const auto part = [&](int64_t first) {
        const Expr lanes =
            Shuffle::make_slice(value, static_cast<int>(first), 1, static_cast<int>(half));
        return output.store_activated(z, lanes, lanes_from(simplify(to + size(first)), half));
    };
    return ir::sequence({part(0), part(run.end - half)});
}

}  // namespace

Stmt depthwise_tiles(const DepthwiseSums& sums, const MapDepthwiseLayout& at, const Expr& z,
                     const Interval& tiles) {
    return DepthwiseTiles(sums, at).channel(z, tiles);
}

DepthwiseSums::Put stored_depthwise(const LayerOutput& output) {
    return [&output](const Expr& z, const Expr& y, const Expr& x, const Expr& value,
                     const VectorRun& run) {
        const LayerProblem& p = output.problem();
        const Expr row = (z * size(p.y().out) + y) * size(p.x().out);
        return store_run(output, z, value, simplify(row + x + size(run.first)), run);
    };
}

GroupCode map_depthwise_code(LayerOutput output, const MapDepthwiseLayout& at) {
    MapCode code(std::move(output), 1);
    const LayerProblem& p = code.problem();
    const DepthwiseSums sums{code.output(), code.weights(), code.bias(),
                             stored_depthwise(code.output())};
    const Stmt body = code.for_parts([&](const Expr& part) {
        const Interval tiles = part_of(part, at.parts, at.tiles, at.divides_rows);
        return code.loop(".z", part_of(part, at.parts, p[Dim::z], !at.divides_rows),
                         [&](const Expr& z) { return depthwise_tiles(sums, at, z, tiles); });
    });
    return std::move(code).code(body, at.scratch_elements(), at.parts);
}

}  // namespace laminate
