#include "generators/kernels/pixel_products.h"

#include <algorithm>

#include "base/units.h"
#include "generators/ir/activations.h"
#include "generators/ir/arrays.h"
#include "generators/kernels/ir_names.h"

namespace laminate {

using namespace Halide::Internal;

Expr PixelProducts::channel(const Expr& z_block, int64_t z) const {
    return simplify(z_block * size(block_) + size(z));
}

Expr PixelProducts::bias(const Expr& z_block, int64_t z) const {
    return broadcast(ir::load(code_.bias(), channel(z_block, z)), lanes_);
}

Stmt PixelProducts::sums(const Expr& z_block, const Expr& n, int64_t inputs,
                         const std::vector<VectorRun>& runs, const Start& start,
                         const Pixels& pixels, const Put& put, const Also& also) const {
    const int64_t taps = p_.x().kernel;
    const RunSums sums(p_.name + ".sum", runs, block_);
    std::vector<Stmt> parts;
    for (size_t v = 0; v < runs.size(); ++v) {
        for (int64_t z = 0; z < block_; ++z) parts.push_back(sums.of(v, z).set(0, start(z, v)));
    }
    const Expr row = simplify((z_block * size(p_.y().kernel) + n) * size(p_[Dim::i]));
    const auto multiply = [&](const Expr& i, int64_t m, const std::vector<Expr>& in) {
        std::vector<Stmt> products;
        for (int64_t z = 0; z < block_; ++z) {
            const Expr weight =
                ir::load(code_.weights(), (row + i) * size(taps * block_) + size(m * block_ + z));
            products.push_back(ir::with_values(
                p_.name + ".w", {broadcast(weight, lanes_)}, [&](const std::vector<Expr>& w) {
                    std::vector<Stmt> uses;
                    for (size_t v = 0; v < runs.size(); ++v)
                        uses.push_back(sums.add(v, z, in[v] * w.front()));
                    return ir::sequence(uses);
                }));
        }
        return ir::sequence(products);
    };
    parts.push_back(code_.loop(".i", {0, size(inputs)}, [&](const Expr& i) {
        std::vector<Stmt> steps;
        for (int64_t m = 0; m < taps; ++m) {
            std::vector<Expr> values;
            for (size_t v = 0; v < runs.size(); ++v) values.push_back(pixels(i, m, v));
            steps.push_back(
                ir::with_values(p_.name + ".in", values, [&](const std::vector<Expr>& in) {
                    return also ? ir::sequence({also(i, m, in), multiply(i, m, in)})
                                : multiply(i, m, in);
                }));
        }
        return ir::sequence(steps);
    }));
    for (int64_t z = 0; z < block_; ++z) {
        const Expr number = channel(z_block, z);
        std::vector<Stmt> stores;
        for (size_t v = 0; v < runs.size(); ++v)
            stores.push_back(put(number, z, v, sums.get(v, z)));
        // The last block may be filled up with zero weights.
        const Stmt all = ir::sequence(stores);
        parts.push_back(p_[Dim::z] % block_ != 0 ? ir::guarded(number < size(p_[Dim::z]), all)
                                                 : all);
    }
    return sums.around(ir::sequence(parts));
}

Stmt PixelProducts::outputs(const Expr& z_block, const Expr& x, const std::vector<VectorRun>& runs,
                            const Pixels& pixels, const Also& also) const {
    const int64_t all_pixels = p_[Dim::y] * p_[Dim::x];
    std::vector<Stmt> parts;
    const int64_t count = runs.back().first + runs.back().lanes - runs.front().first;
    const Expr here = simplify(z_block * size(block_ * all_pixels) + x);
    const Expr next =
        Halide::select(z_block + 1 < size(ceil_div(p_[Dim::z], block_)),
                       here + size(block_ * all_pixels), x + size(count));
    // The channels that fill up the last block have no pixels.
    const Expr last_channel = size((p_[Dim::z] - 1) * all_pixels) + x;
    for (int64_t z = 0; z < block_; ++z) {
        Expr begin = (asks_ahead_ ? next : here) + size(z * all_pixels);
        if (z >= p_[Dim::z] % block_ && p_[Dim::z] % block_ != 0)
            begin = Halide::min(begin, last_channel);
        const Expr first = simplify(begin + size(runs.front().first));
        const Stmt added = code_.output().prefetch(first, count);
        parts.push_back(added);
        // Lines that are stored to come from memory too, in pieces of a map each, and a core brings
        // in few of them for the stores that wait. Where a vector is half a line, asking takes as
        // many instructions as storing, which pays for short sums alone.
        if (lanes_ < ir::elements_of_line && !added.defined() && !asks_ahead_) continue;
        for (int64_t n = 0; n < count - 1 + ir::elements_of_line; n += ir::elements_of_line)
            parts.push_back(
                code_.output().prefetch_stored(first + size(std::min(n, count - 1))));
    }
    const Start start = [&](int64_t z, size_t) { return bias(z_block, z); };
    const auto store_activated = [&](const Expr& number, size_t v, const Expr& value) {
        const Expr to = simplify(number * size(all_pixels) + x + size(runs[v].first));
        return code_.output().store_activated(number, value, lanes_from(to, runs[v].lanes),
                                              wanted_lanes(runs[v]));
    };
    const Put store = [&](const Expr& number, int64_t, size_t v, const Expr& sum) {
        return store_activated(number, v, code_.output().activated(number, sum));
    };
    const int64_t inputs = p_[Dim::i] * p_.y().kernel;
    if (!ir::takes_registers(code_.output().layer().activation)) {
        parts.push_back(sums(z_block, 0, inputs, runs, start, pixels, store, also));
        return ir::sequence(parts);
    }
    // The function gets the registers of the sums, which wait in an array.
    const auto vectors = std::ssize(runs);
    const ir::Accumulators finished{unique_name(p_.name + ".finished"), lanes_};
    const Put keep = [&](const Expr&, int64_t z, size_t v, const Expr& sum) {
        return finished.set(z * vectors + static_cast<int64_t>(v), sum);
    };
    parts.push_back(sums(z_block, 0, inputs, runs, start, pixels, keep, also));
    parts.push_back(ir::activate_waiting(code_.output().layer().activation, finished, block_ * vectors));
    const Expr left = simplify(size(p_[Dim::z]) - z_block * size(block_));
    const Interval channels{0, p_[Dim::z] % block_ == 0 ? size(block_) : min(left, size(block_))};
    parts.push_back(code_.loop(".finished", channels, [&](const Expr& z) {
        std::vector<Stmt> stores;
        for (int64_t v = 0; v < vectors; ++v)
            stores.push_back(store_activated(
                simplify(z_block * size(block_) + z), static_cast<size_t>(v),
                ir::load(finished.name, finished.index(z * size(vectors) + size(v)))));
        return ir::sequence(stores);
    }));
    return finished.around(block_ * vectors, ir::sequence(parts));
}

Expr PixelProducts::panel_index(const Expr& i, int64_t m, size_t v,
                                const std::vector<VectorRun>& runs, const Expr& first) const {
    const auto vectors = std::ssize(runs);
    return lanes_from(simplify(first + i * size(p_.x().kernel * vectors * lanes_)) +
                          size((m * vectors + static_cast<int64_t>(v)) * lanes_),
                      lanes_);
}

PixelProducts::Pixels PixelProducts::of_panel(const std::vector<VectorRun>& runs,
                                              const Expr& first) const {
    return [this, &runs, first](const Expr& i, int64_t m, size_t v) {
        return ir::load(code_.scratch(), panel_index(i, m, v, runs, first));
    };
}

Stmt PixelProducts::by_panel(
    const Interval& blocks, const std::vector<VectorRun>& runs, const Pixels& pixels,
    const Make& make,
    const std::function<Also(const Interval& others, const Expr& z_block)>& ahead,
    const Expr& first) const {
    const Also fill = [&](const Expr& i, int64_t m, const std::vector<Expr>& vectors) {
        std::vector<Stmt> stores;
        for (size_t v = 0; v < vectors.size(); ++v)
            stores.push_back(
                ir::store(code_.scratch(), vectors[v], panel_index(i, m, v, runs, first)));
        return ir::sequence(stores);
    };
    const Interval others{simplify(blocks.begin + 1), blocks.end};
    return ir::sequence({make(blocks.begin, pixels, fill),
                         code_.loop(".z", others, [&](const Expr& z) {
                             return make(z, of_panel(runs, first), ahead ? ahead(others, z) : Also());
                         })});
}

}  // namespace laminate
