#include "scheduler/explore/group_search/spatial_axis.h"

#include <algorithm>
#include <array>
#include <utility>

namespace laminate::search {

namespace {

std::vector<AxisWindow> windows(const std::vector<LayerProblem>& problems, size_t axis) {
    std::vector<AxisWindow> result;
    for (const LayerProblem& p : problems) result.push_back(p.window[axis]);
    return result;
}

}  // namespace

SpatialUse spatial_use(const LayerStructure& s, size_t axis) {
    SpatialUse use;
    use.kind = s.kind[axis];
    switch (s.weights) {
        case WeightsLife::own:
            use.weights = s.weights_per_tile[axis] ? SpatialUse::Weights::per_tile
                                                   : SpatialUse::Weights::per_coordinate;
            break;
        case WeightsLife::scope:
            use.weights = SpatialUse::Weights::per_scope;
            break;
        case WeightsLife::resident:
            break;
    }
    use.fold = s.fold[axis];
    use.output_holds = s.output_holds[axis + 1];
    use.whole_calls = s.whole_calls;
    use.disjoint = s.disjoint[axis];
    return use;
}

SpatialAxis::SpatialAxis(const std::vector<LayerProblem>& problems, size_t axis, Tiles tiles,
                         int64_t& steps, int64_t most_steps)
    : terms_(static_cast<int>(problems.size())),
      tiles_(tiles),
      patterns_(windows(problems, axis)),
      steps_(steps),
      most_steps_(most_steps) {
    Option start;
    start.factors.assign(terms_.count(), 1);
    start.pattern = patterns_.whole();
    nothing_.layer = terms_.n + 1;
    nothing_.is_made = true;
    nothing_.options = Options(decided(nothing_.layer), 0);
    nothing_.options.add(start);
    nothing_.is_marked = {1};
    lists_.resize(problems.size() + 1);
}

SpatialAxis::List& SpatialAxis::longer(List& list, const SpatialUse& use) {
    std::unique_ptr<List>& next = list.longer[use];
    if (!next) {
        next = std::make_unique<List>();
        next->before = &list;
        next->use = use;
        next->layer = list.layer - 1;
        lists_[next->layer].push_back(next.get());
    }
    return *next;
}

AxisTree& SpatialAxis::tree(List& list, const std::vector<Residence>& residence, Residences key) {
    const int k = list.layer;
    auto& tree = list.trees[key];
    if (tree) return *tree;
    make(list);
    if (k == 1) {
        // Nothing extends these options, and there is one tree of them.
        const size_t before = list.options.counted_bytes(terms_.count());
        tree = std::make_unique<AxisTree>(std::exchange(list.options, {}), terms_.count(),
                                          &list.is_marked);
        stored_ += tree->counted_bytes() - before;
        check_memory(0);
        return *tree;
    }
    AxisFactors factors = list.options.by_term(terms_.count());
    std::vector<double>& input = factors.columns[terms_.input()].by_option;
    for (size_t n = 0; n < list.options.size(); ++n) {
        const AxisPatterns::Facts& facts = patterns_.facts(k - 1, list.options.pattern(n));
        input.push_back(static_cast<double>(facts.least_input));
        for (int j = 1; j < k; ++j) {
            factors.columns[terms_.macs(j)].by_option.push_back(
                static_cast<double>(facts.least_taps[static_cast<size_t>(j - 1)]));
            if (residence[static_cast<size_t>(j - 1)] == Residence::no)
                factors.columns[terms_.weights(j)].by_option.push_back(
                    static_cast<double>(facts.scopes));
        }
    }
    for (int j = 1; j < k; ++j)
        factors.columns[terms_.buffer(j - 1)].all = static_cast<double>(patterns_.least_window(j));
    tree = std::make_unique<AxisTree>(factors, list.options, &list.is_marked);
    stored_ += tree->counted_bytes();
    check_memory(0);
    return *tree;
}

std::vector<size_t> SpatialAxis::decided(int k) const {
    std::vector<size_t> terms;
    if (k == 1) terms.push_back(terms_.input());
    for (int j = k; j <= terms_.n; ++j) terms.push_back(terms_.weights(j));
    for (int j = k; j <= terms_.n; ++j) terms.push_back(terms_.macs(j));
    for (int j = k; j <= terms_.n; ++j) terms.push_back(terms_.buffer(j - 1));
    terms.push_back(terms_.output_buffer());
    return terms;
}

void SpatialAxis::make(List& list) {
    if (list.is_made) return;
    list.is_made = true;
    const List& before = *list.before;
    const int k = list.layer;
    list.options = Options(decided(k), static_cast<size_t>(terms_.n - k + 1));
    size_t untidied = least_untidied;
    for (size_t n = 0; n < before.options.size(); ++n) {
        if (before.is_marked[n] == 0) continue;
        // The last layer is never cut, because bounds rest on it.
        if (k < terms_.n && steps_ >= most_steps_) {
            list.is_cut = true;
            break;
        }
        extend(before, n, list);
        check_memory(0);
        if (list.options.size() < untidied) continue;
        list.options = keep_useful(std::move(list.options), k > 1);
        untidied = 2 * list.options.size() + least_untidied;
        check_memory(list.options.counted_bytes(terms_.count()));
    }
    list.options = keep_useful(std::move(list.options), k > 1);
    list.is_marked.assign(list.options.size(), 0);
    stored_ += list.options.counted_bytes(terms_.count());
    check_memory(0);
}

void SpatialAxis::finish(int k) {
    for (List* list : lists_[k]) {
        for (const auto& [key, tree] : list->trees) stored_ -= tree->counted_bytes();
        stored_ -= list->options.counted_bytes(terms_.count());
        list->trees.clear();
        Options marked = list->options.none();
        for (size_t n = 0; n < list->options.size(); ++n) {
            if (list->is_marked[n] != 0) marked.add(list->options, n);
        }
        marked.shrink_to_fit();
        list->options = std::move(marked);
        list->is_marked.assign(list->options.size(), 1);
        stored_ += list->options.counted_bytes(terms_.count());
    }
    if (k >= terms_.n) return;
    for (List* list : lists_[k + 1]) {
        stored_ -= list->options.counted_bytes(terms_.count());
        list->options = {};
    }
}

void SpatialAxis::check_memory(size_t more) {
    // Pairs are searched to the end. In longer groups, patterns that would not fit if each call were
    // stored are too much work.
    const size_t patterns =
        terms_.n <= layers_of_a_pair ? patterns_.bytes() : patterns_.bytes_of_all_calls();
    if (stored_ + more + patterns > most_bytes) steps_ = std::max(steps_, most_steps_);
}

void SpatialAxis::extend(const List& before, size_t n, List& list) {
    const int k = list.layer;
    const AxisPatterns::Id calls = before.options.pattern(n);
    // Options of equal patterns are neighbours.
    if (last_.list != &list || last_.calls != calls) {
        last_ = {&list, calls, 0, {}};
        find_tiles(calls, list.use, k);
    }
    steps_ += last_.steps;
    const double taps = static_cast<double>(patterns_.facts(k, calls).taps);
    for (const TileOfLayer& t : last_.tiles) {
        double* factors = list.options.add(before.options.tiles(n), t.tile, t.pattern);
        if (k == 1) *factors++ = t.brought;
        const double* later = before.options.factors(n);
        for (const double own : {t.weights, taps, t.held}) {
            *factors++ = own;
            factors = std::copy_n(later, terms_.n - k, factors);
            later += terms_.n - k;
        }
        *factors = k == terms_.n ? t.output : *later;
    }
}

void SpatialAxis::find_tiles(AxisPatterns::Id calls, const SpatialUse& use, int k) {
    const AxisPatterns::Facts& facts = patterns_.facts(k, calls);
    std::vector<int64_t> tiles{facts.largest};
    const bool matters = use.kind == Kind::between || use.kind == Kind::below || use.output_holds ||
                         use.weights == SpatialUse::Weights::per_tile;
    if (!use.whole_calls && matters) tiles = tile_candidates(facts.largest, tiles_);
    double weights = 1;
    if (use.weights == SpatialUse::Weights::per_coordinate)
        weights = static_cast<double>(facts.brought);
    if (use.weights == SpatialUse::Weights::per_scope) weights = static_cast<double>(facts.scopes);
    const bool is_own =
        use.kind == Kind::above || use.kind == Kind::between || use.kind == Kind::below;
    std::array<double, 4> last{};
    // Tiles that overlap are none where they must be disjoint, so all of them are tried there.
    const bool may_skip = k == 1 && is_own && !use.disjoint;
    int64_t next = 0;
    for (const int64_t tile : tiles) {
        if (may_skip && tile < next) continue;
        if (may_skip) next = patterns_.next_input_tile(calls, tile);
        last_.steps += steps_of_a_tile;
        if (use.weights == SpatialUse::Weights::per_tile)
            weights = static_cast<double>(patterns_.tiles(k, calls, tile));
        const double output = k == terms_.n && use.output_holds ? static_cast<double>(tile) : 1;
        AxisPatterns::Id pattern = 0;
        double held = 0;
        double brought = 0;
        if (k == 1 && is_own) {
            const AxisPatterns::InputStep step = patterns_.input_step(calls, use.kind, tile);
            if (use.disjoint && step.overlaps) continue;
            held = static_cast<double>(use.fold > 0 ? step.folded : step.whole);
            brought = static_cast<double>(step.brought);
        } else {
            const AxisPatterns::Step& step = patterns_.step(k, calls, use.kind, tile);
            if (use.disjoint && step.overlaps) continue;
            held = static_cast<double>(step.held[static_cast<size_t>(use.fold)]);
            pattern = step.pattern;
            if (k > 1) last_.steps += patterns_.facts(k - 1, pattern).size / 16;
            if (k == 1) brought = static_cast<double>(patterns_.facts(0, pattern).brought);
        }
        // Most tiles make the same calls as the tile before and are only a little larger.
        const std::array<double, 4> these{weights, held, brought, output};
        if (k == 1 && last[1] > 0 && these[0] >= last[0] && these[1] >= last[1] &&
            these[2] >= last[2] && these[3] >= last[3])
            continue;
        last = these;
        last_.tiles.push_back({tile, pattern, weights, held, brought, output});
    }
}

}  // namespace laminate::search
