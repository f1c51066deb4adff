#include "scheduler/counts/two_level/convfusion_formulas.h"

#include <array>

#include "base/error.h"

namespace laminate::convfusion {

namespace {

constexpr int outer_loops = 4;

/// Loop levels of one array: those below its store level, and the folded ones among them.
class Levels {
public:
    Levels(const Nest& nest, const Placement& placement) : nest_(nest), placement_(placement) {
        for (const Level level : {placement.store, placement.compute}) {
            if (level.is_root() || level.loop < outer_loops - 1)
                throw InputError(
                    nest.layer +
                    ": ConvFusion's formulas have no level outside the innermost outer loop");
        }
    }
    /// l in LT
    [[nodiscard]] bool below_store(Dim d) const { return position(d) > placement_.store.loop; }
    /// l in F
    [[nodiscard]] bool folded(Dim d) const {
        return below_store(d) && position(d) <= placement_.compute.loop;
    }

private:
    [[nodiscard]] int position(Dim d) const { return nest_.find(Loop{d, Band::inner}); }

    const Nest& nest_;
    const Placement& placement_;
};

}  // namespace

LayerFormulas formulas(const LayerProblem& p, const GroupSchedule& group) {
    if (group.nests.size() != 1 || !p.has_weights() || p.groups != 1 ||
        group.nests[0].loops.size() != 2 * outer_loops)
        throw InputError(p.name +
                         ": ConvFusion's formulas are for one ungrouped layer without strips");
    const Nest& nest = group.nests[0];
    const Levels w(nest, *nest.w), x(nest, nest.x.front().placement), y(nest, nest.y);
    const auto window = [&](Dim d) -> const AxisWindow& { return d == Dim::y ? p.y() : p.x(); };
    const auto span = [&](Dim d) { return (nest[d] - 1) * window(d).stride + window(d).kernel; };
    const auto tiles = [&](Dim d) { return ceil_div(p[d], nest[d]); };
    constexpr std::array<Dim, 4> all{Dim::z, Dim::y, Dim::x, Dim::i};
    constexpr std::array<Dim, 2> spatial{Dim::y, Dim::x};

    LayerFormulas f;
    f.buf_w = Elements(p.x().kernel) * p.y().kernel;
    Elements vol_w = f.buf_w, trans_w(1);
    for (const Dim d : {Dim::z, Dim::i}) {
        if (!w.below_store(d)) continue;
        vol_w = vol_w * nest[d];
        if (!w.folded(d)) f.buf_w = f.buf_w * nest[d];
    }
    for (const Dim d : all) trans_w = trans_w * (w.below_store(d) ? tiles(d) : p[d]);
    f.acc_w = vol_w * trans_w.value();

    f.buf_x = Elements(x.below_store(Dim::i) && !x.folded(Dim::i) ? nest[Dim::i] : 1);
    Elements vol_x(x.below_store(Dim::i) ? nest[Dim::i] : 1), trans_x(1);
    for (const Dim d : spatial) {
        vol_x = vol_x * (x.below_store(d) ? span(d) : window(d).kernel);
        f.buf_x = f.buf_x * (x.below_store(d) && !x.folded(d) ? span(d) : window(d).kernel);
    }
    for (const Dim d : all) trans_x = trans_x * (x.below_store(d) ? tiles(d) : p[d]);
    f.acc_x = vol_x * trans_x.value();

    f.buf_y = Elements(1);
    Macs output_volume(1);  // OVol
    for (const Dim d : {Dim::z, Dim::y, Dim::x}) {
        if (y.below_store(d) && !y.folded(d)) f.buf_y = f.buf_y * nest[d];
        if (!x.below_store(d)) output_volume = output_volume * nest[d];
    }
    f.acc_y = p.output_elements() * (2 * tiles(Dim::i) - 1);
    f.macs = output_volume * (p.x().kernel * p.y().kernel * p[Dim::i]) * trans_x.value();
    return f;
}

Elements fewest_accesses(const std::vector<LayerProblem>& segment) {
    const LayerProblem& first = segment.front();
    Elements sum = Elements(first[Dim::i] * first.groups);
    for (const AxisWindow& window : first.window)
        sum = sum * ((window.out - 1) * window.stride + window.kernel);
    for (const LayerProblem& p : segment) sum += p.weight_elements();
    return sum + segment.back().output_elements();
}

}  // namespace laminate::convfusion
