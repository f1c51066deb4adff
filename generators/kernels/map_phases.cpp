#include "generators/kernels/map_phases.h"

#include <utility>
#include <vector>

#include "generators/ir/arrays.h"
#include "generators/kernels/ir_names.h"
#include "generators/kernels/map_code.h"

namespace laminate {

using namespace Halide::Internal;

namespace {

class MapPhases {
public:
    MapPhases(const MapCode& code, const MapPhasesLayout& at)
        : code_(code), p_(code.problem()), wy_(p_.y()), wx_(p_.x()), at_(at) {}

    /// Some blocks of output channels of some panels.
    [[nodiscard]] Stmt code(const Interval& blocks, const Interval& panels) const;

private:
    /// `count` tiles of `vectors` vectors each, from vector `first` of the map on.
    struct Panel {
        Expr first;
        Expr count;
        int64_t vectors;
    };
    /// Where a vector of positions lies.
    struct Place {
        Expr row, column;  ///< of its first position
        Expr stored_from;  ///< the first lane that no vector before it has stored; undefined if it
                           ///< is 0
    };

    [[nodiscard]] bool is_ragged() const { return wx_.in % at_.lanes != 0; }
    [[nodiscard]] Place place(Values& name, const Expr& vector) const;
    /// The panel's element of input channel i of vector v of a tile.
    [[nodiscard]] Expr panel_index(const Panel& panel, const Expr& tile, const Expr& i,
                                   int64_t v) const {
        const Expr of_tile = (tile * size(at_.inputs) + i) * size(panel.vectors * at_.lanes);
        return lanes_from(of_tile + size(v * at_.lanes), at_.lanes);
    }
    [[nodiscard]] Stmt filled(const Panel& panel) const;
    /// Asks for a share of the inputs of the panel behind this one, another one with each block.
    [[nodiscard]] Stmt next_panel_ahead(const Panel& panel, const Interval& blocks,
                                        const Expr& z) const;
    [[nodiscard]] Stmt all_of(const Panel& panel, const Interval& blocks) const;
    [[nodiscard]] Stmt tile(const Panel& panel, const Expr& number, const Expr& z) const;
    /// The first output of row `f` of the phases of a vector.
    [[nodiscard]] Expr output_at(const Expr& channel, const Place& at, int64_t f) const {
        const Expr row = channel * size(wy_.out) + at.row * size(wy_.stride) + size(f);
        return row * size(wx_.out) + at.column * size(wx_.stride);
    }
    /// Row f of the phases of a vector and a channel.
    [[nodiscard]] Stmt stored(const Expr& channel, const Place& at, int64_t f,
                              const std::vector<Expr>& phases) const;

    const MapCode& code_;
    const LayerProblem& p_;
    const AxisWindow& wy_;
    const AxisWindow& wx_;
    const MapPhasesLayout& at_;
};

MapPhases::Place MapPhases::place(Values& name, const Expr& vector) const {
    const Expr row = name(simplify(vector / size(at_.row_vectors)));
    const Expr wanted = simplify((vector - row * size(at_.row_vectors)) * size(at_.lanes));
    if (!is_ragged()) return {row, name(wanted), {}};
    const Expr column = name(Halide::min(wanted, size(wx_.in - at_.lanes)));
    return {row, column, name(wanted - column)};
}

Stmt MapPhases::filled(const Panel& panel) const {
    return code_.loop(".panel", {0, panel.count}, [&](const Expr& tile) {
        Values name(p_.name + ".place");
        std::vector<Expr> places;
        for (int64_t v = 0; v < panel.vectors; ++v) {
            const Place at =
                place(name, simplify(panel.first + tile * size(panel.vectors) + size(v)));
            places.push_back(name(at.row * size(wx_.in) + at.column));
        }
        return name.around(code_.loop(".i", {0, size(at_.inputs)}, [&](const Expr& i) {
            std::vector<Stmt> all;
            for (int64_t v = 0; v < panel.vectors; ++v) {
                const Expr from = i * size(wy_.in * wx_.in) + places[static_cast<size_t>(v)];
                all.push_back(
                    ir::store(code_.scratch(),
                              ir::load("X", lanes_from(from, at_.lanes), ir::Alignment::element),
                              panel_index(panel, tile, i, v)));
            }
            return ir::sequence(all);
        }));
    });
}

Stmt MapPhases::next_panel_ahead(const Panel& panel, const Interval& blocks, const Expr& z) const {
    Values name(p_.name + ".ahead");
    const Expr positions = panel.count * size(panel.vectors * at_.lanes);
    const Place next = place(name, simplify(panel.first + panel.count * size(panel.vectors)));
    const Expr first = name(next.row * size(wx_.in) + next.column);
    const Expr number = name(z - blocks.begin), count = name(blocks.end - blocks.begin);
    const Interval channels{name(number * size(at_.inputs) / count),
                            name((number + 1) * size(at_.inputs) / count)};
    const Expr lines = name(positions / size(ir::elements_of_line) + 1);
    return name.around(code_.loop(".ahead", channels, [&](const Expr& i) {
        return code_.loop(".line", {0, lines}, [&](const Expr& line) {
            const Expr position = Halide::min(first + line * size(ir::elements_of_line),
                                              size(wy_.in * wx_.in - 1));
            return ir::prefetch("X", i * size(wy_.in * wx_.in) + position);
        });
    }));
}

Stmt MapPhases::all_of(const Panel& panel, const Interval& blocks) const {
    return ir::sequence({filled(panel), code_.loop(".z", blocks, [&](const Expr& z) {
                             return ir::sequence(
                                 {next_panel_ahead(panel, blocks, z),
                                  code_.loop(".tile", {0, panel.count}, [&](const Expr& number) {
                                      return tile(panel, number, z);
                                  })});
                         })});
}

Stmt MapPhases::tile(const Panel& panel, const Expr& number, const Expr& z) const {
    Values name(p_.name + ".place");
    std::vector<Place> places;
    for (int64_t v = 0; v < panel.vectors; ++v)
        places.push_back(
            place(name, simplify(panel.first + number * size(panel.vectors) + size(v))));
    const Expr first_channel = name(simplify(z * size(at_.block)));
    const auto channel = [&](int64_t n) { return first_channel + size(n); };
    std::vector<Stmt> parts;
    for (int64_t n = 0; n < at_.block; ++n) {
        for (int64_t f = 0; f < wy_.stride; ++f) {
            for (const Place& at : places) {
                const Expr to = name(output_at(channel(n), at, f));
                for (int64_t e = 0; e < at_.lanes * wx_.stride; e += ir::elements_of_line)
                    parts.push_back(code_.output().prefetch_stored(to + size(e)));
            }
        }
    }
    // Sums of a vector by phase, then channel of the block, as weights lie.
    std::vector<std::vector<Expr>> sums(static_cast<size_t>(panel.vectors));
    const ir::SumTerm term{const_true(), size(at_.inputs),
                           [&](const Expr& i, int64_t v) {
                               return ir::load(code_.scratch(), panel_index(panel, number, i, v));
                           },
                           [&](const Expr& i, int64_t n) {
                               const Expr row =
                                   (z * size(at_.inputs) + i) * size(at_.phases * at_.block);
                               return ir::load(code_.weights(), row + size(n));
                           }};
    const auto start = [&](int64_t, int64_t n) {
        return broadcast(ir::load(code_.bias(), channel(n % at_.block)), at_.lanes);
    };
    const auto store = [&](int64_t v, int64_t n, const Expr& sum) -> Stmt {
        std::vector<Expr>& of_vector = sums[static_cast<size_t>(v)];
        of_vector.push_back(sum);
        if (n + 1 < at_.phases * at_.block) return {};
        std::vector<Stmt> stores;
        for (int64_t c = 0; c < at_.block; ++c) {
            std::vector<Stmt> of_channel;
            for (int64_t f = 0; f < wy_.stride; ++f) {
                std::vector<Expr> phases;
                for (int64_t g = 0; g < wx_.stride; ++g)
                    phases.push_back(
                        of_vector[static_cast<size_t>((f * wx_.stride + g) * at_.block + c)]);
                of_channel.push_back(stored(channel(c), places[static_cast<size_t>(v)], f, phases));
            }
            // The last block may be filled up with zero weights.
            const Stmt all = ir::sequence(of_channel);
            stores.push_back(
                p_[Dim::z] % at_.block == 0 ? all : guarded(channel(c) < size(p_[Dim::z]), all));
        }
        return ir::sequence(stores);
    };
    parts.push_back(ir::sums_of_products(
        p_.name, {at_.lanes, panel.vectors, at_.phases * at_.block}, {term}, store, start));
    return name.around(ir::sequence(parts));
}

Stmt MapPhases::stored(const Expr& channel, const Place& at, int64_t f,
                       const std::vector<Expr>& phases) const {
    const int64_t count = at_.lanes * wx_.stride;
    const Expr all = phases.size() == 1 ? phases.front() : Shuffle::make_interleave(phases);
    Values name(p_.name + ".finished");
    const Expr value = name(code_.output().activated(channel, all));
    const Expr to = lanes_from(output_at(channel, at, f), count);
    const Stmt whole = code_.output().store_activated(channel, value, to);
    if (!is_ragged()) return name.around(whole);
    const Expr wanted = lanes_from(0, count) >= broadcast(at.stored_from * size(wx_.stride), count);
    return name.around(IfThenElse::make(
        at.stored_from == 0, whole, code_.output().store_activated(channel, value, to, wanted)));
}

Stmt MapPhases::code(const Interval& blocks, const Interval& panels) const {
    const int64_t whole = at_.whole_panels();
    std::vector<Stmt> all;
    if (whole > 0) {
        all.push_back(code_.loop(".p", common(panels, 0, whole), [&](const Expr& n) {
            const Expr first = simplify(n * size(at_.tiles_of_panel));
            const Expr count =
                simplify(Halide::min(size(at_.tiles.whole) - first, size(at_.tiles_of_panel)));
            return all_of({simplify(first * size(at_.vectors)), count, at_.vectors}, blocks);
        }));
    }
    int64_t first = at_.tiles.whole * at_.vectors, number = whole;
    for (const int64_t vectors : at_.tiles.rest) {
        all.push_back(guarded(has(panels, number++), all_of({size(first), 1, vectors}, blocks)));
        first += vectors;
    }
    return ir::sequence(all);
}

}  // namespace

GroupCode map_phases_code(LayerOutput output, const MapPhasesLayout& at) {
    MapCode code(std::move(output), at.block, Packing::Order::by_input);
    const MapPhases phases(code, at);
    const Stmt body = code.for_parts([&](const Expr& part) {
        const Interval blocks =
            part_of(simplify(part % size(at.channel_parts)), at.channel_parts, at.blocks);
        const Interval panels =
            part_of(simplify(part / size(at.channel_parts)), at.chunks, at.panels());
        return phases.code(blocks, panels);
    });
    return std::move(code).code(body, at.scratch_elements(), at.parts());
}

}  // namespace laminate
