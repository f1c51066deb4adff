#include "generators/kernels/map_pooling.h"

#include <limits>
#include <utility>

#include "generators/ir/activations.h"
#include "generators/ir/arrays.h"
#include "generators/kernels/ir_names.h"
#include "generators/kernels/map_code.h"

namespace laminate {

using namespace Halide::Internal;

namespace {

class MapPooling {
public:
    MapPooling(MapCode& code, const MapPoolingLayout& at)
        : code_(code), p_(code.problem()), at_(at) {}

    [[nodiscard]] Stmt body();

private:
    using Taps = std::vector<int64_t>;  ///< rows of the window

    [[nodiscard]] Stmt channel(const Expr& z, const Interval& part_rows);
    /// A row of outputs, from the rows of the window that exist.
    [[nodiscard]] Stmt row(const Expr& z, const Expr& y, const Taps& taps);
    [[nodiscard]] Expr maximum(const Expr& z, const Expr& y, const Taps& taps,
                               const VectorRun& run) const;
    [[nodiscard]] Expr average(const Expr& z, const Expr& y, const Taps& taps,
                               const VectorRun& run);

    // Strided columns are taken out of wide vectors that several taps share.
    /// Where the wide vector of tap m begins, in columns from the window's first.
    [[nodiscard]] int64_t wide_begin(int64_t m) const {
        const AxisWindow& w = p_.x();
        return w.dilation == 1 ? m / w.stride * w.stride : m * w.dilation;
    }
    /// The wide vector of row n of the window for tap m.
    [[nodiscard]] Expr wide(const Expr& z, const Expr& y, int64_t n, int64_t m,
                            const VectorRun& run) const;
    /// What tap m reads of its wide vector.
    [[nodiscard]] Expr of_tap(int64_t m, const VectorRun& run, const Expr& columns) const {
        return every(p_.x().stride, m * p_.x().dilation - wide_begin(m), run, columns);
    }
    [[nodiscard]] float outside() const {
        const bool is_max = p_.operation == Operation::max_pool;
        return is_max ? -std::numeric_limits<float>::infinity() : 0.0F;
    }
    /// By how many elements the averages of a run of columns divide if `rows` rows of their windows
    /// exist: ir::averaged_elements, known here.
    [[nodiscard]] Expr averaged(int64_t rows, const VectorRun& run);

    MapCode& code_;
    const LayerProblem& p_;
    const MapPoolingLayout& at_;
};

Stmt MapPooling::body() {
    return code_.for_parts([&](const Expr& part) {
        const Interval rows = part_of(part, at_.parts, p_[Dim::y], at_.divides_rows);
        return code_.loop(".z", part_of(part, at_.parts, p_[Dim::z], !at_.divides_rows),
                          [&](const Expr& z) { return channel(z, rows); });
    });
}

Stmt MapPooling::channel(const Expr& z, const Interval& part_rows) {
    const AxisWindow& w = p_.y();
    std::vector<Stmt> rows;
    const auto at_end = [&](int64_t y) {
        Taps taps;
        for (int64_t n = 0; n < w.kernel; ++n) {
            if (w.input(y, n)) taps.push_back(n);
        }
        rows.push_back(ir::guarded(has(part_rows, y), row(z, size(y), taps)));
    };
    Taps all_taps;
    for (int64_t n = 0; n < w.kernel; ++n) all_taps.push_back(n);
    for (int64_t y = 0; y < at_.inner_begin; ++y) at_end(y);
    if (at_.inner_begin < at_.inner_end) {
        rows.push_back(code_.loop(".y", common(part_rows, at_.inner_begin, at_.inner_end),
                                  [&](const Expr& y) { return row(z, y, all_taps); }));
    }
    for (int64_t y = at_.inner_end; y < p_[Dim::y]; ++y) at_end(y);
    return ir::sequence(rows);
}

Stmt MapPooling::row(const Expr& z, const Expr& y, const Taps& taps) {
    std::vector<Stmt> stores;
    for (const VectorRun& run : at_.runs) {
        const Expr value = p_.operation == Operation::max_pool ? maximum(z, y, taps, run)
                                                               : average(z, y, taps, run);
        const Expr to = lanes_from(
            simplify((z * size(p_.y().out) + y) * size(p_.x().out) + size(run.first)), run.lanes);
        stores.push_back(code_.output().store(z, value, to, wanted_lanes(run)));
    }
    return ir::sequence(stores);
}

Expr MapPooling::wide(const Expr& z, const Expr& y, int64_t n, int64_t m,
                      const VectorRun& run) const {
    const AxisWindow& wy = p_.y();
    const AxisWindow& wx = p_.x();
    const Expr first =
        simplify((z * size(wy.in) + y * size(wy.stride) + size(n * wy.dilation - wy.pad_begin)) *
                 size(wx.in));
    return columns_of_input(wx, first, run.first * wx.stride + wide_begin(m) - wx.pad_begin,
                            run.lanes * wx.stride, outside());
}

Expr MapPooling::maximum(const Expr& z, const Expr& y, const Taps& taps,
                         const VectorRun& run) const {
    std::vector<Expr> columns;
    for (int64_t m = 0; m < p_.x().kernel; ++m) {
        // One register at a time: the compiler makes masks of more lanes in many instructions.
        std::vector<Expr> registers;
        for (int64_t part = 0; part < p_.x().stride; ++part) {
            std::vector<Expr> rows;
            for (const int64_t n : taps) {
                rows.push_back(Shuffle::make_slice(wide(z, y, n, m, run),
                                                   static_cast<int>(part * run.lanes), 1,
                                                   static_cast<int>(run.lanes)));
            }
            registers.push_back(ir::largest(rows));
        }
        columns.push_back(of_tap(m, run, Shuffle::make_concat(registers)));
    }
    return ir::largest(columns);
}

Expr MapPooling::average(const Expr& z, const Expr& y, const Taps& taps, const VectorRun& run) {
    Expr value = broadcast(Expr(outside()), run.lanes);
    for (const int64_t n : taps) {
        // The order of the taps does not depend on where a column lies in its run.
        for (int64_t m = 0; m < p_.x().kernel; ++m)
            value = Halide::strict_float(value + of_tap(m, run, wide(z, y, n, m, run)));
    }
    return value / averaged(std::ssize(taps), run);
}

Expr MapPooling::averaged(int64_t rows, const VectorRun& run) {
    const AxisWindow& wx = p_.x();
    const bool counts_padding = code_.layer().count_include_pad;
    const int64_t of_rows = counts_padding ? p_.y().kernel : rows;
    std::vector<float> counts;
    for (int64_t x = run.first; x < run.first + run.lanes; ++x) {
        int64_t columns = 0;
        for (int64_t m = 0; m < wx.kernel; ++m)
            columns += counts_padding || x >= wx.out || wx.input(x, m) ? 1 : 0;
        counts.push_back(static_cast<float>(of_rows * columns));
    }
    // The compiler multiplies by the reciprocal of a number that it knows. So does the kernel over
    // lines where no window reaches padding, and only there.
    if (counts_padding || (!ir::reaches_padding(p_.y()) && !ir::reaches_padding(wx)))
        return broadcast(Expr(counts.front()), run.lanes);
    const Packing averaged{.source = Packing::Source::numbers, .values = std::move(counts)};
    return ir::load(code_.constant(".averaged", averaged), lanes_from(0, run.lanes));
}

}  // namespace

GroupCode map_pooling_code(LayerOutput output, const MapPoolingLayout& at) {
    MapCode code(std::move(output), 1);
    const Stmt body = MapPooling(code, at).body();
    return std::move(code).code(body, at.scratch_elements(), at.parts);
}

}  // namespace laminate
