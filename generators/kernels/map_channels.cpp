#include "generators/kernels/map_channels.h"

#include <utility>

#include "generators/ir/arrays.h"
#include "generators/kernels/ir_names.h"
#include "generators/kernels/map_code.h"

namespace laminate {

using namespace Halide::Internal;

namespace {

class MapChannels {
public:
    MapChannels(const MapCode& code, const MapChannelsLayout& at)
        : code_(code), p_(code.problem()), at_(at) {}

    [[nodiscard]] Stmt body() const;

private:
    /// A block of output channels x the `pixels` pixels from `x` on.
    [[nodiscard]] Stmt tile(const Expr& z_block, const Expr& x, int64_t pixels) const;
    /// Adds the products of input channel i.
    [[nodiscard]] Stmt products(const Accumulators& sums, const Expr& z_block, const Expr& i,
                                const Expr& x, int64_t pixels) const;
    /// Vector v of the channels of a block.
    [[nodiscard]] Expr channels(const Expr& z_block, int64_t v) const {
        return lanes_from(simplify(z_block * size(at_.block()) + size(v * at_.lanes)), at_.lanes);
    }

    const MapCode& code_;
    const LayerProblem& p_;
    const MapChannelsLayout& at_;
};

Stmt MapChannels::body() const {
    return code_.for_parts([&](const Expr& part) {
        const Expr number = simplify(part / size(at_.channel_parts));
        const Interval chunk = part_of(number, at_.chunks, at_.whole_tiles());
        const Interval blocks =
            part_of(simplify(part % size(at_.channel_parts)), at_.channel_parts, at_.blocks);
        return code_.loop(".z", blocks, [&](const Expr& z) {
            std::vector<Stmt> all;
            if (at_.whole_tiles() > 0) {
                all.push_back(code_.loop(".x", chunk, [&](const Expr& x) {
                    return tile(z, simplify(x * size(at_.tile_pixels)), at_.tile_pixels);
                }));
            }
            if (at_.rest() > 0) {
                all.push_back(
                    ir::guarded(number == size(at_.chunks - 1),
                                tile(z, size(at_.whole_tiles() * at_.tile_pixels), at_.rest())));
            }
            return ir::sequence(all);
        });
    });
}

Stmt MapChannels::tile(const Expr& z_block, const Expr& x, int64_t pixels) const {
    const Accumulators sums{unique_name(p_.name + ".sum"), at_.lanes};
    std::vector<Stmt> parts;
    for (int64_t v = 0; v < at_.vectors; ++v) {
        for (int64_t c = 0; c < pixels; ++c)
            parts.push_back(sums.set(v * pixels + c, ir::load(code_.bias(), channels(z_block, v))));
    }
    parts.push_back(code_.loop(".i", {0, size(at_.inputs)}, [&](const Expr& i) {
        return products(sums, z_block, i, x, pixels);
    }));
    for (int64_t v = 0; v < at_.vectors; ++v) {
        const Expr wanted = p_[Dim::z] % at_.block() == 0
                                ? Expr()
                                : channels(z_block, v) < broadcast(size(p_[Dim::z]), at_.lanes);
        for (int64_t c = 0; c < pixels; ++c) {
            const Expr first = z_block * size(at_.block()) + size(v * at_.lanes);
            const Expr to =
                lanes_from(simplify(first * size(at_.pixels) + x + size(c)), at_.lanes, at_.pixels);
            parts.push_back(
                code_.output().store(channels(z_block, v), sums.get(v * pixels + c), to, wanted));
        }
    }
    return sums.around(at_.vectors * pixels, ir::sequence(parts));
}

Stmt MapChannels::products(const Accumulators& sums, const Expr& z_block, const Expr& i,
                           const Expr& x, int64_t pixels) const {
    std::vector<Expr> vectors_of_weights;
    for (int64_t v = 0; v < at_.vectors; ++v) {
        const Expr index =
            (z_block * size(at_.inputs) + i) * size(at_.block()) + size(v * at_.lanes);
        vectors_of_weights.push_back(ir::load(code_.weights(), lanes_from(index, at_.lanes)));
    }
    return ir::with_values(p_.name + ".w", vectors_of_weights, [&](const std::vector<Expr>& w) {
        std::vector<Stmt> all;
        for (int64_t c = 0; c < pixels; ++c) {
            const Expr in =
                ir::load("X", simplify(i * size(at_.pixels) + x + size(c)), ir::Alignment::element);
            all.push_back(ir::with_values(
                p_.name + ".in", {broadcast(in, at_.lanes)}, [&](const std::vector<Expr>& value) {
                    std::vector<Stmt> uses;
                    for (int64_t v = 0; v < at_.vectors; ++v) {
                        const int64_t n = v * pixels + c;
                        uses.push_back(
                            sums.set(n, sums.get(n) + value.front() * w[static_cast<size_t>(v)]));
                    }
                    return ir::sequence(uses);
                }));
        }
        return ir::sequence(all);
    });
}

}  // namespace

GroupCode map_channels_code(LayerOutput output, const MapChannelsLayout& at) {
    MapCode code(std::move(output), at.block());
    const Stmt body = MapChannels(code, at).body();
    return std::move(code).code(body, at.scratch_elements(), at.parts());
}

}  // namespace laminate
