#include "scheduler/schedule/kernels/layout/columns.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/units.h"
#include "scheduler/schedule/kernels/register_tile.h"

namespace laminate {

namespace {

/// Elements from one channel to the next. Vectors run over the last tile. Whole lines of the
/// caches, so that two vectors of eight lie in one. An odd number of them: planes that are powers
/// of two apart would meet in few cache sets.
int64_t pitch_for(int64_t tiles, int64_t lanes) {
    const int64_t line = ColumnsLayout::elements_of_line(lanes);
    return (ceil_div((ceil_div(tiles, lanes) + 1) * lanes, line) | 1) * line;
}

LineForm form_of(const LayerProblem& p, const ColumnWindow& window) {
    return window.is_plain() ? LineForm::plain
           : is_scattered(p) ? LineForm::scattered
                             : LineForm::gathered;
}

std::vector<int64_t> most_tiles_of(const std::vector<LayerProblem>& chain, const ColumnsLayout& at,
                                   int64_t strip_columns) {
    const int64_t all = chain.back()[Dim::x];
    const int64_t columns = strip_columns == 0 ? all : std::min(strip_columns, all);
    const int64_t step = tile_columns * at.windows.back().phases;
    const bool is_aligned = columns % step == 0 || columns == all;
    std::vector<int64_t> most(chain.size() + 1);
    most.back() = ceil_div(columns, step) + (is_aligned ? 0 : 1);
    for (size_t k = chain.size(); k-- > 0;) {
        most[k] = std::min(at.picture_tiles[k],
                           most[k + 1] + at.windows[k].last_tile() - at.windows[k].first_tile());
    }
    return most;
}

/// Blocks of a layer's output channels, or of the rows of the kernel of a scattered one, that take
/// the least time over a row of `tiles` tiles.
ColumnBlocks blocks_of(const LayerProblem& p, const ColumnWindow& window, int64_t tiles,
                       const VectorUnit& unit) {
    constexpr int64_t most_vectors = 4;
    const int64_t outputs = is_scattered(p) && !window.is_plain() ? p.y().kernel : p[Dim::z];
    const int64_t all = ceil_div(tiles, unit.lanes);
    // Three vectors of half a line touch two lines, every other of which comes again for the next
    // three.
    constexpr double part_of_line = 0.05;
    const int64_t line = ColumnsLayout::elements_of_line(unit.lanes);
    const auto price_of_lines = [&](int64_t vectors) {
        return 1 + part_of_line * (1 / used_part(vectors * unit.lanes, line) - 1);
    };
    ColumnBlocks best;
    double least = 0;
    for (int64_t vectors = 1; vectors <= std::min(most_vectors, all); ++vectors) {
        for (int64_t scalars = 1; scalars <= std::min(unit.sums_per_vector(vectors), outputs);
             ++scalars) {
            ColumnBlocks blocks{scalars, vectors, ceil_div(outputs, scalars), 1};
            // Not as many as could be: with a single vector LLVM loads scalars ahead and then has
            // no register for them.
            const int64_t most_of_rest = unit.sums_per_vector(1) * 3 / 4;
            for (int64_t n = 1; n <= blocks.count; ++n) {
                if (blocks.count % n == 0 && n * scalars <= most_of_rest) blocks.rest = n;
            }
            const int64_t rest = all % vectors;
            const double cycles =
                (static_cast<double>(all - rest) / product_efficiency(vectors, scalars) +
                 static_cast<double>(rest) / product_efficiency(1, blocks.rest * scalars)) /
                used_part(outputs, scalars) * price_of_lines(vectors);
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

/// All output channels, if their products are less than what they are made of, which then stays in
/// the first-level cache for all of them; else those whose sums are in registers.
ColumnsLayout::ProductsAtOnce products_at_once(const LayerProblem& p, const ColumnWindow& window,
                                               const ColumnBlocks& blocks) {
    const int64_t all = blocks.count * blocks.scalars;
    if (all < p.y().kernel * p[Dim::i] * window.pieces) return {all, all};
    return {blocks.together(1) * blocks.scalars, blocks.together(blocks.vectors) * blocks.scalars};
}

/// Hands out the scratch block in whole lines of the caches.
class Scratch {
public:
    explicit Scratch(int64_t line) : line_(line) {}
    int64_t take(int64_t elements) { return std::exchange(end_, end_ + round_up(elements, line_)); }
    [[nodiscard]] int64_t end() const { return end_; }

private:
    int64_t line_;
    int64_t end_ = 0;
};

/// The line of tensor k, without its place.
ColumnLine line_of(const ColumnsLayout& at, const LayerProblem& p, size_t k, int64_t kept_rows) {
    const ColumnWindow& w = at.windows[k];
    ColumnLine line;
    line.form = form_of(p, w);
    const bool is_block = line.form == LineForm::scattered;
    line.rows = is_block ? 1 : kept_rows;
    line.channels = p[Dim::i];
    line.planes = w.patch();
    line.pitch = is_block
                     ? (at.blocks[k].vectors + at.extra_vectors(static_cast<int>(k))) * at.lanes
                     : pitch_for(at.most_tiles[k + 1] + w.pieces - 1, at.lanes);
    line.coordinates = p.y().in;
    return line;
}

void place(ColumnsLayout& at, const std::vector<LayerProblem>& chain,
           const std::vector<int64_t>& kept_rows) {
    Scratch scratch(at.line());
    int64_t row_elements = 0, products = 0;
    for (size_t k = 0; k < chain.size(); ++k) {
        const LayerProblem& p = chain[k];
        const ColumnWindow& w = at.windows[k];
        const int64_t rows = std::max<int64_t>(1, kept_rows[k]);
        ColumnLine line = line_of(at, p, k, rows);
        line.offset = scratch.take(line.rows * line.row_elements());
        // Beside a row that will be transformed there is room for zeros.
        const int64_t row_tiles = std::max(at.most_tiles[k], at.most_tiles[k + 1] + w.pieces - 1);
        const bool is_transformed = line.form != LineForm::plain;
        at.row_pitch.push_back(
            is_transformed ? at.line() + pitch_for(row_tiles, at.lanes) + at.line() : 0);
        row_elements = std::max(row_elements, tile_columns * line.channels * at.row_pitch.back());
        if (line.form == LineForm::scattered) {
            const int64_t step = p.y().transposed ? p.y().stride : 1;
            at.sums_rows = std::min(p.y().out, (rows - 1) * step + p.y().kernel);
            at.sums_pitch = pitch_for(at.most_tiles[k + 1], at.lanes);
            at.sums_row_elements = at.outputs_at_once * w.patch() * at.sums_pitch;
            at.sums_offset = scratch.take(at.sums_rows * at.sums_row_elements);
        }
        at.lines.push_back(line);
        if (!at.is_direct(static_cast<int>(k))) {
            const auto& [of_one, of_all] = at.products_at_once[k];
            products = std::max({products, w.patch() * of_one * at.lanes,
                                 w.patch() * of_all * at.blocks[k].vectors * at.lanes});
        }
    }
    at.row_offset = scratch.take(row_elements);
    at.products_offset = scratch.take(products);
    at.elements = scratch.end();
}

/// Rows of the kernel that find a row of the input for output row y.
int64_t rows_there(const AxisWindow& w, int64_t y) {
    int64_t rows = 0;
    for (int64_t n = 0; n < w.kernel; ++n) rows += w.input(y, n) ? 1 : 0;
    return rows;
}

/// Input rows that output rows [begin, end) read.
std::pair<int64_t, int64_t> rows_read(const AxisWindow& w, std::pair<int64_t, int64_t> outputs) {
    std::pair<int64_t, int64_t> rows{w.in, 0};
    for (int64_t y = outputs.first; y < outputs.second; ++y) {
        for (int64_t n = 0; n < w.kernel; ++n) {
            const std::optional<int64_t> row = w.input(y, n);
            if (!row) continue;
            rows.first = std::min(rows.first, *row);
            rows.second = std::max(rows.second, *row + 1);
        }
    }
    return rows;
}

}  // namespace

std::vector<ColumnsLayout::Tiles> ColumnsLayout::tiles_for(int64_t begin, int64_t end) const {
    const int64_t step = tile_columns * windows.back().phases;
    std::vector<Tiles> tiles(windows.size() + 1);
    tiles.back() = {begin / step, ceil_div(end, step)};
    for (size_t k = windows.size(); k-- > 0;) {
        tiles[k] = {std::max<int64_t>(tiles[k + 1].first + windows[k].first_tile(), 0),
                    std::min(tiles[k + 1].end + windows[k].last_tile(), picture_tiles[k])};
    }
    return tiles;
}

int64_t ColumnsLayout::multiplications_of_row(const LayerProblem& p, int k, int64_t y,
                                              int64_t tiles) const {
    const auto n = static_cast<size_t>(k);
    const ColumnWindow& w = windows[n];
    const int64_t channels = blocks[n].count * blocks[n].scalars;
    const int64_t products = lines[n].form == LineForm::scattered
                                 ? outputs_at_once * channels  // rows of the kernel
                                 : rows_there(p.y(), y) * channels;
    return products * p[Dim::i] * w.pieces * w.patch() * ceil_div(tiles, lanes) * lanes;
}

std::vector<int64_t> ColumnsLayout::multiplications(const std::vector<LayerProblem>& chain,
                                                    int64_t begin, int64_t end) const {
    const std::vector<Tiles> tiles = tiles_for(begin, end);
    std::vector<int64_t> products(chain.size(), 0);
    std::pair<int64_t, int64_t> outputs{0, chain.back()[Dim::y]};
    for (size_t k = chain.size(); k-- > 0;) {
        const std::pair<int64_t, int64_t> inputs = rows_read(chain[k].y(), outputs);
        const auto& [first, last] = lines[k].form == LineForm::scattered ? inputs : outputs;
        for (int64_t y = first; y < last; ++y)
            products[k] +=
                multiplications_of_row(chain[k], static_cast<int>(k), y, tiles[k + 1].count());
        outputs = inputs;
    }
    return products;
}

ColumnsLayout columns_layout(const std::vector<LayerProblem>& chain,
                             const std::vector<int64_t>& kept_rows, int64_t strip_columns,
                             const VectorUnit& unit) {
    ColumnsLayout at;
    at.lanes = unit.lanes;
    for (const LayerProblem& p : chain) {
        at.windows.emplace_back(p.x());
        at.picture_tiles.push_back(ceil_div(p.x().in, tile_columns));
    }
    at.most_tiles = most_tiles_of(chain, at, strip_columns);
    for (size_t k = 0; k < chain.size(); ++k) {
        at.blocks.push_back(blocks_of(chain[k], at.windows[k], at.most_tiles[k + 1], unit));
        at.products_at_once.push_back(products_at_once(chain[k], at.windows[k], at.blocks[k]));
    }
    at.outputs_at_once = chain.back()[Dim::z] * at.windows.back().phases;
    place(at, chain, kept_rows);
    return at;
}

}  // namespace laminate
