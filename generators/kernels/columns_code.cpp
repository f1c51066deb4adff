#include "generators/kernels/columns_code.h"

#include "generators/group_code.h"
#include "generators/ir/activations.h"
#include "generators/ir/packing.h"
#include "generators/kernels/ir_names.h"
#include "generators/lowering/group_lowering.h"

namespace laminate {

using namespace Halide::Internal;

ColumnsCode::ColumnsCode(const Network& network, const std::vector<LayerProblem>& chain,
                         const ColumnsLayout& at, const ColumnsSizes& sizes,
                         const GroupExtents& extents, NamedConstants& constants)
    : network_(network),
      chain_(chain),
      at_(at),
      sizes_(sizes),
      extents_(extents),
      row_name_(unique_name("row")),
      sums_name_(unique_name("sums")),
      products_name_(unique_name("products")) {
    for (const ColumnWindow& w : at.windows) filters_.emplace_back(w.taps);
    for (size_t t = 0; t <= chain.size(); ++t) tile_names_.push_back(unique_name("tiles"));
    for (size_t t = 0; t < chain.size(); ++t)
        line_names_.push_back(unique_name(t == 0 ? "X.lines" : chain[t - 1].name + ".lines"));
    for (int k = 0; k <= sink(); ++k) parameters_.push_back(parameters(k, constants));
}

ColumnsCode::Parameters ColumnsCode::parameters(int k, NamedConstants& constants) const {
    const LayerProblem& p = problem(k);
    const int64_t block = blocks(k).scalars;
    const bool is_scattered = line(k).form == LineForm::scattered;
    const auto append = [&](const char* name, const Packing& packing) {
        return constants.append(unique_name(p.name + name), packing, layer(k), p);
    };
    Parameters names;
    names.weights =
        append(".transformed",
               {.layer = k,
                .order = is_scattered ? Packing::Order::scattered : Packing::Order::gathered,
                .block = block});
    const int64_t filled = is_scattered ? 1 : block;
    names.bias = append(".bias", {.layer = k, .source = Packing::Source::bias, .block = filled});
    names.slope = append(".slope", {.layer = k, .source = Packing::Source::slope, .block = filled});
    return names;
}

Stmt ColumnsCode::with_arrays(Stmt body) const {
    for (size_t t = 0; t < line_names_.size(); ++t)
        body = ir::with_array(line_names_[t], argument::scratch, expression(sizes_.lines[t].offset), body);
    body = ir::with_array(row_name_, argument::scratch, expression(sizes_.row_offset), body);
    body = ir::with_array(sums_name_, argument::scratch, expression(sizes_.sums_offset), body);
    return ir::with_array(products_name_, argument::scratch, expression(sizes_.products_offset),
                          body);
}

Expr ColumnsCode::tile_variable(int t, const char* end) const {
    return Variable::make(Halide::Int(32), tile_names_[index(t)] + end);
}

Expr ColumnsCode::shift(int t) const { return simplify(first_tile(t + 1) - first_tile(t)); }

Stmt ColumnsCode::over_tiles(const std::string& name, const Expr& count, int64_t vectors,
                             const std::function<Stmt(const Expr&, int64_t)>& make) const {
    const Expr all = simplify((count + size(lanes() - 1)) / size(lanes()));
    const Expr whole = simplify(all / size(vectors));
    std::vector<Stmt> parts;
    parts.push_back(GroupLowering::for_each(name, {0, whole}, [&](const Expr& n) {
        return make(simplify(n * size(vectors * lanes())), vectors);
    }));
    if (vectors > 1) {
        parts.push_back(GroupLowering::for_each(
            name, {simplify(whole * size(vectors)), all},
            [&](const Expr& n) { return make(simplify(n * size(lanes())), 1); }));
    }
    return ir::sequence(parts);
}

Expr ColumnsCode::line_row(int t, const Expr& y) const {
    const ColumnsSizes::Line& of = sizes_.lines[index(t)];
    return (of.rotates ? y % expression(of.rows) : y) * expression(of.row_elements);
}

Expr ColumnsCode::line_plane(int t, const Expr& plane, const Expr& channel) const {
    return (plane * size(line(t).channels) + channel) * pitch(t);
}

Stmt ColumnsCode::with_planes(int t, const Expr& y,
                              const std::function<Stmt(const RowPlanes&)>& make) const {
    const ColumnLine& to = line(t);
    // Beside a row that will be transformed there is room for zeros.
    if (to.form != LineForm::plain)
        return make({row_name_, size(at_.line()), to.channels,
                     expression(sizes_.row_pitch[index(t)])});
    Values name(line_name(t) + ".row");
    const Expr base = name(line_row(t, y));
    return name.around(make({line_name(t), base, to.channels, pitch(t)}));
}

Expr ColumnsCode::per_channel(const std::string& array, const Expr& channel) const {
    return broadcast(ir::load(array, channel), lanes());
}

Expr ColumnsCode::bias(int k, const Expr& channel) const {
    return per_channel(parameters_[index(k)].bias, channel);
}

Expr ColumnsCode::activated(int k, const Expr& channel, const Expr& value) const {
    const std::string& slope = parameters_[index(k)].slope;
    return ir::activate(layer(k).activation, value,
                        slope.empty() ? make_zero(value.type()) : per_channel(slope, channel));
}

std::vector<Expr> ColumnsCode::finished(Values& name, int k, const Expr& channel,
                                        const std::vector<Expr>& products) const {
    std::vector<Expr> columns;
    for (const Expr& sum : filter(k).of_products(name, products, bias(k, channel)))
        columns.push_back(name(activated(k, channel, sum)));
    return columns;
}

}  // namespace laminate
