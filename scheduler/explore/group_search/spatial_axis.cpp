#include "scheduler/explore/group_search/spatial_axis.h"

#include <algorithm>
#include <array>

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
    nothing_.options = {std::move(start)};
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
        const size_t before = bytes_of(list.options);
        tree = std::make_unique<AxisTree>(std::move(list.options), terms_.count(), &list.is_marked);
        stored_ += tree->bytes() - before;
        check_memory(0);
        return *tree;
    }
    std::vector<Option> options = list.options;
    for (Option& o : options) {
        o.tiles = {};  // only needed of whole choices
        const AxisPatterns::Facts& facts = patterns_.facts(k - 1, o.pattern);
        o.factors[terms_.input()] = static_cast<double>(facts.least_input);
        for (int j = 1; j < k; ++j) {
            o.factors[terms_.macs(j)] =
                static_cast<double>(facts.least_taps[static_cast<size_t>(j - 1)]);
            const bool once = residence[static_cast<size_t>(j - 1)] != Residence::no;
            o.factors[terms_.weights(j)] = once ? 1.0 : static_cast<double>(facts.scopes);
            o.factors[terms_.buffer(j - 1)] = static_cast<double>(patterns_.least_window(j));
        }
    }
    tree = std::make_unique<AxisTree>(std::move(options), terms_.count(), &list.is_marked);
    stored_ += tree->bytes();
    check_memory(0);
    return *tree;
}

void SpatialAxis::make(List& list) {
    if (list.is_made) return;
    list.is_made = true;
    const List& before = *list.before;
    const int k = list.layer;
    size_t untidied = least_untidied;
    for (size_t n = 0; n < before.options.size(); ++n) {
        if (before.is_marked[n] == 0) continue;
        // The last layer is never cut, because bounds rest on it.
        if (k < terms_.n && steps_ >= most_steps_) {
            list.is_cut = true;
            break;
        }
        extend(before.options[n], list.use, k, list.options);
        check_memory(0);
        if (list.options.size() < untidied) continue;
        list.options = keep_useful(std::move(list.options), k > 1);
        untidied = 2 * list.options.size() + least_untidied;
        check_memory(bytes_of(list.options));
    }
    list.options = keep_useful(std::move(list.options), k > 1);
    list.is_marked.assign(list.options.size(), 0);
    stored_ += bytes_of(list.options);
    check_memory(0);
}

void SpatialAxis::finish(int k) {
    for (List* list : lists_[k]) {
        for (const auto& [key, tree] : list->trees) stored_ -= tree->bytes();
        stored_ -= bytes_of(list->options);
        list->trees.clear();
        std::vector<Option> marked;
        for (size_t n = 0; n < list->options.size(); ++n) {
            if (list->is_marked[n] != 0) marked.push_back(std::move(list->options[n]));
        }
        marked.shrink_to_fit();
        list->options = std::move(marked);
        list->is_marked.assign(list->options.size(), 1);
        stored_ += bytes_of(list->options);
    }
    if (k >= terms_.n) return;
    for (List* list : lists_[k + 1]) {
        stored_ -= bytes_of(list->options);
        list->options = {};
    }
}

void SpatialAxis::check_memory(size_t more) {
    if (stored_ + more + patterns_.bytes() > most_bytes) steps_ = std::max(steps_, most_steps_);
}

void SpatialAxis::extend(const Option& before, const SpatialUse& use, int k,
                         std::vector<Option>& options) {
    const AxisPatterns::Facts& facts = patterns_.facts(k, before.pattern);
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
    for (const int64_t tile : tiles) {
        steps_ += steps_of_a_tile;
        if (use.weights == SpatialUse::Weights::per_tile)
            weights = static_cast<double>(patterns_.tiles(k, before.pattern, tile));
        const double output = k == terms_.n && use.output_holds ? static_cast<double>(tile) : 1;
        AxisPatterns::Id pattern = 0;
        double held = 0;
        double brought = 0;
        if (k == 1 && is_own) {
            const AxisPatterns::InputStep step =
                patterns_.input_step(before.pattern, use.kind, tile);
            if (use.disjoint && step.overlaps) continue;
            held = static_cast<double>(use.fold > 0 ? step.folded : step.whole);
            brought = static_cast<double>(step.brought);
        } else {
            const AxisPatterns::Step& step = patterns_.step(k, before.pattern, use.kind, tile);
            if (use.disjoint && step.overlaps) continue;
            held = static_cast<double>(step.held[static_cast<size_t>(use.fold)]);
            pattern = step.pattern;
            if (k > 1) steps_ += patterns_.facts(k - 1, pattern).size / 16;
            if (k == 1) brought = static_cast<double>(patterns_.facts(0, pattern).brought);
        }
        // Most tiles make the same calls as the tile before and are only a little larger.
        const std::array<double, 4> these{weights, held, brought, output};
        if (k == 1 && last[1] > 0 && these[0] >= last[0] && these[1] >= last[1] &&
            these[2] >= last[2] && these[3] >= last[3])
            continue;
        last = these;
        Option o = before;
        o.tiles.push_back(tile);
        o.pattern = pattern;
        o.factors[terms_.macs(k)] = static_cast<double>(facts.taps);
        o.factors[terms_.weights(k)] = weights;
        o.factors[terms_.buffer(k - 1)] = held;
        if (k == terms_.n) o.factors[terms_.output_buffer()] = output;
        if (k == 1) o.factors[terms_.input()] = brought;
        options.push_back(std::move(o));
    }
}

}  // namespace laminate::search
