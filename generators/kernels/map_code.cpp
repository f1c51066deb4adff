#include "generators/kernels/map_code.h"

#include <algorithm>
#include <utility>

#include "generators/kernels/ir_names.h"
#include "generators/lowering/group_lowering.h"

namespace laminate {

using namespace Halide::Internal;

MapCode::MapCode(LayerOutput output, int64_t block, Packing::Order order)
    : output_(std::move(output)), scratch_(unique_name("work")) {
    arrays_ = pack(output_, block, order);
}

MapCode::Arrays MapCode::pack(LayerOutput& output, int64_t block, Packing::Order order) {
    Arrays arrays;
    const LayerProblem& p = output.problem();
    const auto add = [&](const char* name, const Packing& packing) {
        return constants_.append(unique_name(p.name + name), packing, output.layer(), p);
    };
    if (p.has_weights()) {
        arrays.weights = add(".packed", {.layer = output.place(), .order = order, .block = block});
        arrays.bias = add(".bias", {.layer = output.place(), .source = Packing::Source::bias, .block = block});
    }
    output.pack(block, constants_);
    return arrays;
}

std::string MapCode::constant(const std::string& name, const Packing& packing) {
    return constants_.append(unique_name(problem().name + name), packing, layer(), problem());
}

Stmt MapCode::loop(const std::string& name, const Interval& range, const Make& make) const {
    return GroupLowering::for_each(problem().name + name, range, make);
}

Stmt MapCode::for_parts(const Make& make) const {
    const auto bound = [](const char* name) { return Variable::make(Halide::Int(32), name); };
    return loop(".part", {bound(argument::strip_begin), bound(argument::strip_end)}, make);
}

Stmt MapCode::for_parts_of(
    const std::string& name, int64_t of_each,
    const std::function<Stmt(const Expr& number, const Interval& parts)>& make) const {
    const auto bound = [](const char* limit) { return Variable::make(Halide::Int(32), limit); };
    const Expr begin = bound(argument::strip_begin), end = bound(argument::strip_end);
    if (of_each == 1)
        return loop(name, {begin, end}, [&](const Expr& n) { return make(n, {0, 1}); });
    const Expr each = size(of_each);
    return loop(name, {simplify(begin / each), simplify((end + each - 1) / each)},
                [&](const Expr& n) {
                    return make(n, {simplify(Halide::max(begin - n * each, 0)),
                                    simplify(Halide::min(end - n * each, each))});
                });
}

GroupCode MapCode::code(const Stmt& body, int64_t scratch_elements, int64_t parts) && {
    return output_.code(body, std::move(constants_), scratch_, scratch_elements * bytes_per_element,
                        parts);
}

Interval part_of(const Expr& part, int64_t parts, int64_t extent) {
    return {simplify(part * size(extent) / size(parts)),
            simplify((part + 1) * size(extent) / size(parts))};
}

Interval part_of(const Expr& part, int64_t parts, int64_t extent, bool is_divided) {
    return is_divided ? part_of(part, parts, extent) : Interval{0, size(extent)};
}

Interval common(const Interval& range, int64_t begin, int64_t end) {
    return {simplify(Halide::max(range.begin, size(begin))),
            simplify(Halide::min(range.end, size(end)))};
}

Expr has(const Interval& range, int64_t n) {
    return simplify(range.begin <= size(n) && size(n) < range.end);
}

Expr wanted_lanes(const VectorRun& run) {
    if (run.is_whole()) return {};
    const Expr lane = lanes_from(0, run.lanes);
    return lane >= broadcast(size(run.begin), run.lanes) &&
           lane < broadcast(size(run.end), run.lanes);
}

Expr columns_of_input(const AxisWindow& x, const Expr& row, int64_t column, int64_t wide,
                      float fill, const RowsAround& around, const std::string& array) {
    const int64_t first = std::max<int64_t>(0, -column);
    const int64_t end = std::min(wide, x.in - column);
    const Expr index = lanes_from(simplify(row + size(column)), wide);
    const Expr lane = lanes_from(0, wide);
    if (first == 0 && end == wide) return ir::load(array, index, ir::Alignment::element);
    Expr value = broadcast(Expr(fill), wide);
    if (first >= end) return value;
    const Expr inside = lane >= broadcast(size(first), wide) && lane < broadcast(size(end), wide);
    // Where elements are known to lie beside the row, reading them and dropping them is quicker
    // than not reading them. Of strided lanes, LLVM makes half a minute of work then.
    const bool is_there = x.stride == 1 && first <= around.before * x.in &&
                          wide - end <= around.after * x.in;
    return Halide::select(
        inside, ir::load(array, index, ir::Alignment::element, is_there ? Expr() : inside), value);
}

Expr every(int64_t stride, int64_t first, const VectorRun& run, const Expr& wide) {
    return stride == 1 ? wide
                       : Shuffle::make_slice(wide, static_cast<int>(first),
                                             static_cast<int>(stride), static_cast<int>(run.lanes));
}

Expr row_of_input(const AxisWindow& x, const Expr& row, int64_t column, const VectorRun& run,
                  const RowsAround& around, const std::string& array, const std::vector<int>& order) {
    const int64_t wide = run.lanes * x.stride, end = std::min(wide, x.in - column);
    const int64_t beyond = wide - end;
    // Each lane takes its column from those that are loaded.
    const auto taken = [&](const Expr& loaded, int64_t further) {
        std::vector<int> lanes;
        for (int64_t n = 0; n < run.lanes; ++n) {
            const int64_t number = order.empty() ? n : order[static_cast<size_t>(n)];
            lanes.push_back(static_cast<int>(std::min(number * x.stride + further, wide - 1)));
        }
        return Shuffle::make({loaded}, lanes);
    };
    // Neighbouring taps take the even and the odd columns of the same two vectors. An odd column's tap loads
    // from the column before it, so both use the same loads.
    if (x.stride == 2 && beyond == 0 && column % 2 == 1)
        return taken(columns_of_input(x, row, column - 1, wide, 0.0F, around, array), 1);
    if (x.stride == 1 || beyond == 0 || end <= 0 || column < beyond) {
        const Expr columns = columns_of_input(x, row, column, wide, 0.0F, around, array);
        return x.stride == 1 ? columns : taken(columns, 0);
    }
    // The last columns of the row instead, which need no mask; the lanes lie further on in them.
    const Expr columns = lanes_from(simplify(row + size(column - beyond)), wide);
    const Expr value = taken(ir::load(array, columns, ir::Alignment::element), beyond);
    const int64_t there = ceil_div(end, x.stride);
    if (there >= run.lanes) return value;
    const Expr number = order.empty() ? lanes_from(0, run.lanes)
                                      : Shuffle::make({lanes_from(0, run.lanes)}, order);
    return Halide::select(number < broadcast(size(there), run.lanes), value,
                          broadcast(Expr(0.0F), run.lanes));
}

RunSums::RunSums(const std::string& name, const std::vector<VectorRun>& runs, int64_t count)
    : count_(count) {
    for (const VectorRun& run : runs) {
        for (int64_t n = 0; n < count; ++n) sums_.push_back({unique_name(name), run.lanes});
    }
}

Stmt RunSums::start(size_t run, int64_t n, const Expr& value) const {
    return of(run, n).set(0, broadcast(value, of(run, n).lanes));
}

Stmt RunSums::add(size_t run, int64_t n, const Expr& value) const {
    return of(run, n).set(0, get(run, n) + value);
}

Stmt RunSums::around(Stmt body) const {
    for (const ir::Accumulators& sum : sums_) body = sum.around(1, body);
    return body;
}

}  // namespace laminate
