#include "nets/operators/matrix_product.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/shared_loop.h"
#include "base/units.h"

namespace laminate {
namespace {

/// Part of one product, which one thread computes: some rows of some columns.
struct ProductPart {
    const float* left;   ///< its first row
    const float* right;  ///< its first column
    float* output;
    const float* bias;          ///< of its first column, or null
    int64_t rows, columns;      ///< of the part
    int64_t depth, row_length;  ///< of the whole: rows of `right` and of `output`
};

/// Rows of `right` that are packed at a time: two vectors of each fill half of a first-level cache.
constexpr int64_t packed_depth = 192;
/// Columns of a part of a large product, and the fewest.
constexpr int64_t wide_part = 256, narrow_part = 32;

/// What sums begin with and where they go: row r begins with `start` + r * start_step.
struct SumRows {
    const float* start;
    int64_t start_step;
    float* output;
    int64_t output_step;
};

/// What a block reads: rows of `left`, and a packed panel. Meanwhile it asks for the lines of the
/// next panel, row by row, because the processor foresees no such steps.
struct Factors {
    LeftMatrix left;
    const float* panel;
    int64_t panel_step;
    int64_t depth;
    const float* next;
    int64_t next_step;
    /// Where the last vector of a row begins. It may overlap the one before.
    int64_t last_vector;
};

/// `rows` x `vectors` sums, whose order of additions is that of the depth.
template <int64_t lanes, int64_t rows, int64_t vectors>
[[gnu::always_inline]] inline void add_products(const Factors& factors, const SumRows& to) {
    using Lanes [[gnu::vector_size(lanes * sizeof(float))]] = float;
    constexpr int64_t line = 64 / sizeof(float), width = vectors * lanes;
    Lanes sums[rows][vectors];
    const int64_t last_vector = factors.last_vector;
    const auto place = [last_vector](int64_t v) {
        return v + 1 < vectors ? v * lanes : last_vector;
    };
#pragma GCC unroll 16
    for (int64_t r = 0; r < rows; ++r) {
#pragma GCC unroll 8
        for (int64_t v = 0; v < vectors; ++v)
            std::memcpy(&sums[r][v], to.start + r * to.start_step + place(v), sizeof(Lanes));
    }
    const auto [first, row_step, depth_step] = factors.left;
    const float *left = first, *next = factors.next;
    for (int64_t i = 0; i < factors.depth; ++i, left += depth_step, next += factors.next_step) {
        Lanes values[vectors];
#pragma GCC unroll 8
        for (int64_t v = 0; v < vectors; ++v)
            std::memcpy(&values[v], factors.panel + i * factors.panel_step + place(v),
                        sizeof(Lanes));
#pragma GCC unroll 8
        for (int64_t x = 0; x < width; x += line) __builtin_prefetch(next + x, 0, 2);
#pragma GCC unroll 16
        for (int64_t r = 0; r < rows; ++r) {
            const float factor = left[r * row_step];
#pragma GCC unroll 8
            for (int64_t v = 0; v < vectors; ++v) sums[r][v] += factor * values[v];
        }
    }
#pragma GCC unroll 16
    for (int64_t r = 0; r < rows; ++r) {
#pragma GCC unroll 8
        for (int64_t v = 0; v < vectors; ++v)
            std::memcpy(to.output + r * to.output_step + place(v), &sums[r][v], sizeof(Lanes));
    }
}

/// Calls add_products() for `rows` <= most rows.
template <int64_t lanes, int64_t most, int64_t vectors>
[[gnu::always_inline]] inline void add_row_products(int64_t rows, const Factors& factors,
                                                    const SumRows& to) {
    if constexpr (most > 1) {
        if (rows < most) return add_row_products<lanes, most - 1, vectors>(rows, factors, to);
    }
    add_products<lanes, most, vectors>(factors, to);
}

/// The columns of one panel. `count` <= vectors * lanes.
template <int64_t lanes, int64_t most_rows, int64_t vectors>
[[gnu::always_inline]] inline void compute_panel(const ProductPart& part, int64_t column,
                                                 int64_t count) {
    constexpr int64_t width = lanes * vectors;
    alignas(64) std::array<float, static_cast<size_t>(packed_depth * width)> panel;
    alignas(64) std::array<float, static_cast<size_t>(most_rows * width)> edge;
    alignas(64) std::array<float, static_cast<size_t>(width)> bias{};
    if (part.bias != nullptr) std::copy_n(part.bias + column, count, bias.data());
    // Rows of equal blocks keep the multipliers busier than full blocks and a rest.
    const int64_t block = ceil_div(part.rows, ceil_div(part.rows, most_rows));
    const int64_t length = part.row_length;
    for (int64_t begin = 0; begin < part.depth; begin += packed_depth) {
        const int64_t depth = std::min(packed_depth, part.depth - begin);
        const float* right = part.right + begin * length + column;
        // What one block of rows reads once is read where it is.
        const bool packs = part.rows > block || count < width;
        for (int64_t i = 0; packs && i < depth; ++i) {
            float* to = panel.data() + i * width;
            if (count == width) {
                std::memcpy(to, right + i * length, width * sizeof(float));
            } else {
                std::fill(std::copy_n(right + i * length, count, to), to + width, 0.0F);
            }
        }
        const bool has_next = column + 2 * width <= part.columns;
        for (int64_t row = 0; row < part.rows; row += block) {
            const int64_t rows = std::min(block, part.rows - row);
            float* output = part.output + row * length + column;
            SumRows sums{bias.data(), 0, output, length};
            if (count < width) {
                for (int64_t r = 0; r < rows && begin > 0; ++r)
                    std::copy_n(output + r * length, count, edge.data() + r * width);
                sums.output = edge.data();
                sums.output_step = width;
            }
            if (begin > 0) {
                sums.start = sums.output;
                sums.start_step = sums.output_step;
            }
            add_row_products<lanes, most_rows, vectors>(
                rows,
                {{part.left + row * part.depth + begin, part.depth, 1},
                 packs ? panel.data() : right,
                 packs ? width : length,
                 depth,
                 has_next ? right + width : panel.data(),
                 has_next ? length : 0,
                 width - lanes},
                sums);
            for (int64_t r = 0; r < rows && count < width; ++r)
                std::copy_n(edge.data() + r * width, count, output + r * length);
        }
    }
}

template <int64_t lanes, int64_t most_rows>
[[gnu::always_inline]] inline void compute_part(const ProductPart& part) {
    constexpr int64_t width = 2 * lanes;
    int64_t column = 0;
    for (; part.columns - column > lanes; column += width)
        compute_panel<lanes, most_rows, 2>(part, column, std::min(width, part.columns - column));
    if (column < part.columns)
        compute_panel<lanes, most_rows, 1>(part, column, part.columns - column);
}

/// The most rows of a part that compute_few() computes.
constexpr int64_t most_few = 4;

/// Rows of `right` that compute_few() reads for all columns of a part before it reads the next
/// ones: their pieces of a row are long enough to come from memory in streams, and all of them stay
/// in a first-level cache until the lines that two panels share have been read twice.
constexpr int64_t few_depth = 32;

/// Up to most_rows rows of some columns, at most `vectors` and at least one vector of them, in
/// place. The last vector overlaps the one before, whose sums are the same.
template <int64_t lanes, int64_t most_rows, int64_t vectors>
[[gnu::always_inline]] inline void add_columns(const ProductPart& part, const Factors& factors,
                                               int64_t column, int64_t count) {
    if constexpr (vectors > 1) {
        if (count <= (vectors - 1) * lanes)
            return add_columns<lanes, most_rows, vectors - 1>(part, factors, column, count);
    }
    Factors of_columns = factors;
    of_columns.panel += column;
    of_columns.next += column;
    of_columns.last_vector = count - lanes;
    float* output = part.output + column;
    add_row_products<lanes, most_rows, vectors>(part.rows, of_columns,
                                                {output, part.row_length, output, part.row_length});
}

/// Up to most_rows rows in panels of so many vectors: what few rows take of each row of `right` is
/// not packed. Panels are as even as can be, because one vector alone would wait for its own sums.
template <int64_t lanes, int64_t most_rows, int64_t vectors>
[[gnu::always_inline]] inline void compute_few(const ProductPart& part) {
    if (part.columns < lanes) return compute_panel<lanes, most_rows, 1>(part, 0, part.columns);
    for (int64_t r = 0; r < part.rows; ++r) {
        float* output = part.output + r * part.row_length;
        if (part.bias == nullptr)
            std::fill_n(output, part.columns, 0.0F);
        else
            std::copy_n(part.bias, part.columns, output);
    }
    // The last panel takes the most vectors, so that its last one may overlap another of the same
    // panel.
    const int64_t all = ceil_div(part.columns, lanes), panels = ceil_div(all, vectors);
    for (int64_t begin = 0; begin < part.depth; begin += few_depth) {
        const float* right = part.right + begin * part.row_length;
        const bool has_next = begin + 2 * few_depth <= part.depth;
        const Factors factors{{part.left + begin, part.depth, 1},
                              right,
                              part.row_length,
                              std::min(few_depth, part.depth - begin),
                              has_next ? right + few_depth * part.row_length : right,
                              part.row_length,
                              0};
        for (int64_t panel = 0; panel < panels; ++panel) {
            const int64_t column = panel * all / panels * lanes;
            const int64_t end = std::min((panel + 1) * all / panels * lanes, part.columns);
            add_columns<lanes, most_rows, vectors>(part, factors, column, end - column);
        }
    }
}

/// Products with a packed panel.
struct PanelProducts {
    LeftMatrix left;
    int64_t rows;
    const float* panel;
    int64_t width, depth;
    float* sums;
};

template <int64_t lanes, int64_t most_rows, int64_t vectors>
[[gnu::always_inline]] inline void add_block_products(const PanelProducts& p) {
    const int64_t block = ceil_div(p.rows, ceil_div(p.rows, most_rows));
    for (int64_t row = 0; row < p.rows; row += block) {
        float* sums = p.sums + row * p.width;
        add_row_products<lanes, most_rows, vectors>(
            std::min(block, p.rows - row),
            {{p.left.first + row * p.left.row_step, p.left.row_step, p.left.depth_step},
             p.panel,
             p.width,
             p.depth,
             p.panel,
             0,
             p.width - lanes},
            {sums, p.width, sums, p.width});
    }
}

template <int64_t lanes, int64_t most_rows>
[[gnu::always_inline]] inline void add_panel(const PanelProducts& p) {
    if (p.width == lanes) return add_block_products<lanes, most_rows, 1>(p);
    add_block_products<lanes, most_rows, 2>(p);
}

// So many rows leave registers for two vectors of `right` and one value of `left`.
void compute_plain(const ProductPart& part) { compute_part<4, 6>(part); }
void compute_row_plain(const ProductPart& part) { compute_few<4, 1, 8>(part); }
void compute_few_plain(const ProductPart& part) { compute_few<4, most_few, 2>(part); }
void add_plain(const PanelProducts& products) { add_panel<4, 6>(products); }
#if defined(__x86_64__)
__attribute__((target("avx2,fma"))) void compute_avx2(const ProductPart& part) {
    compute_part<8, 6>(part);
}
__attribute__((target("avx2,fma"))) void compute_row_avx2(const ProductPart& part) {
    compute_few<8, 1, 8>(part);
}
__attribute__((target("avx2,fma"))) void compute_few_avx2(const ProductPart& part) {
    compute_few<8, most_few, 3>(part);
}
__attribute__((target("avx2,fma"))) void add_avx2(const PanelProducts& products) {
    add_panel<8, 6>(products);
}
__attribute__((target("avx512f"))) void compute_avx512(const ProductPart& part) {
    compute_part<16, 12>(part);
}
__attribute__((target("avx512f"))) void compute_row_avx512(const ProductPart& part) {
    compute_few<16, 1, 8>(part);
}
__attribute__((target("avx512f"))) void compute_few_avx512(const ProductPart& part) {
    compute_few<16, most_few, 3>(part);
}
__attribute__((target("avx512f"))) void add_avx512(const PanelProducts& products) {
    add_panel<16, 12>(products);
}
#endif

struct OfProcessor {
    int64_t lanes;
    void (*compute)(const ProductPart&);
    void (*compute_row)(const ProductPart&);
    void (*compute_few)(const ProductPart&);
    void (*add)(const PanelProducts&);
};

const OfProcessor& of_processor() {
    static const OfProcessor chosen = [] {
#if defined(__x86_64__)
        if (__builtin_cpu_supports("avx512f"))
            return OfProcessor{16, compute_avx512, compute_row_avx512, compute_few_avx512, add_avx512};
        if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
            return OfProcessor{8, compute_avx2, compute_row_avx2, compute_few_avx2, add_avx2};
#endif
        return OfProcessor{4, compute_plain, compute_row_plain, compute_few_plain, add_plain};
    }();
    return chosen;
}

}  // namespace

int64_t panel_width() { return 2 * of_processor().lanes; }

void add_panel_products(const LeftMatrix& left, int64_t rows, const float* panel, int64_t width,
                        int64_t depth, float* sums) {
    of_processor().add({left, rows, panel, width, depth, sums});
}

void multiply_matrices(const MatrixProducts& products, float* output, int threads) {
    const auto& [batches, rows, depth, columns, left_of, right_of, bias] = products;
    // Wide parts read long runs of `right`. Small products need narrow ones for all threads, and
    // if they are too few, parts of the rows, each of which packs its columns anew.
    constexpr int64_t fewest_rows = 48, parts_per_thread = 4;
    const int64_t wanted = threads == 1 ? 1 : team_size(threads) * parts_per_thread;
    const int64_t fair = ceil_div(columns, ceil_div(wanted, batches));
    const int64_t width = std::clamp(ceil_div(fair, narrow_part) * narrow_part, narrow_part, wide_part);
    const int64_t across = ceil_div(columns, width);
    const int64_t height =
        std::max(fewest_rows, ceil_div(rows, ceil_div(wanted, batches * across)));
    const int64_t down = ceil_div(rows, height);
    parallel_for(batches * across * down, threads, [&](int64_t k) {
        const int64_t column = k % across * width, row = k / across % down * height,
                      batch = k / across / down;
        const int64_t part_rows = std::min(height, rows - row);
        const OfProcessor& processor = of_processor();
        const auto compute = part_rows == 1          ? processor.compute_row
                             : part_rows <= most_few ? processor.compute_few
                                                     : processor.compute;
        compute(
            {left_of(batch) + row * depth, right_of(batch) + column,
             output + (batch * rows + row) * columns + column,
             bias == nullptr ? nullptr : bias + column, part_rows,
             std::min(width, columns - column), depth, columns});
    });
}

}  // namespace laminate
