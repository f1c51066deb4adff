#include "scheduler/explore/group_search/channel_axes.h"

#include <algorithm>
#include <numeric>

#include "base/units.h"

namespace laminate::search {

uint64_t ChannelUse::key() const {
    uint64_t number = static_cast<uint64_t>(fold);
    const auto add = [&](auto value) { number = number << 3U | static_cast<uint64_t>(value); };
    add(kind);
    add(weights);
    for (const bool flag : {input_weights_hold, input_weights_resident, is_known, z_above,
                            output_weights_hold, output_holds, whole_calls})
        add(flag);
    return number;
}

ChannelAxes::ChannelAxes(const std::vector<LayerProblem>& problems, Tiles tiles)
    : problems_(problems), tiles_(tiles), terms_(static_cast<int>(problems.size())) {}

AxisTree& ChannelAxes::tree(int j, int k, const PartialChoice& choice) {
    const ChannelUse asked = use(j, k, choice);
    auto& tree = trees_[{static_cast<uint64_t>(j), asked.key(), choice.residences(j)}];
    if (!tree) {
        std::vector<size_t> all(terms_.count());
        std::iota(all.begin(), all.end(), size_t{0});
        Options table(std::move(all), 2);
        for (const Option& option : options(j, asked, choice)) table.add(option);
        tree = std::make_unique<AxisTree>(keep_useful(std::move(table), false), terms_.count());
    }
    return *tree;
}

ChannelUse ChannelAxes::use(int j, int k, const PartialChoice& choice) const {
    ChannelUse use;
    if (j < terms_.n) {
        const LayerStructure& s = choice.structure(j + 1);
        use.kind = s.channel_kind;
        use.fold = s.fold[ScopeLoop::channel];
        use.input_weights_hold = s.weights_hold_i;
        use.input_weights_resident = s.weights == WeightsLife::resident;
    }
    if (j >= k && j > 0) {
        const LayerStructure& s = choice.structure(j);
        use.is_known = true;
        use.z_above = s.z_above;
        use.output_weights_hold = s.weights_hold_z;
        use.weights = s.weights;
        use.output_holds = s.output_holds[0];
        use.whole_calls = s.whole_calls;
        if (problem(j).groups > 1) {
            use.kind = s.channel_kind;
            use.fold = s.fold[ScopeLoop::channel];
        }
    }
    return use;
}

std::vector<Option> ChannelAxes::options(int j, const ChannelUse& use,
                                         const PartialChoice& choice) const {
    if (j == 1 && terms_.n == 1 && problem(1).groups > 1) return grouped_options(use);
    const bool has_reader = j < terms_.n;
    const int64_t width = has_reader ? problem(j + 1)[Dim::i] : problem(j)[Dim::z];
    const bool may_tile_reader = has_reader && j + 1 == terms_.n && problem(j + 1).groups == 1;
    const std::vector<int64_t> reader_tiles =
        may_tile_reader ? tile_candidates(width, tiles_) : std::vector<int64_t>{width};
    std::vector<Option> options;
    for (const int64_t tile : reader_tiles) {
        Option option;
        option.factors.assign(terms_.count(), 1);
        option.tiles = {tile, 1};
        const Calls calls = has_reader ? add_reader(option, j, tile, use) : Calls{{width, 1}};
        if (j == 0) {
            options.push_back(std::move(option));
        } else if (use.is_known) {
            add_producers(option, j, calls, use, choice, options);
        } else {
            // Layer j runs at least once per lifetime of A_j: once per tile, or once per channel if
            // every channel has a lifetime of its own.
            int64_t lifetimes = 1;
            if (has_reader) lifetimes = use.kind == Kind::above ? width : ceil_div(width, tile);
            repeat_layers_before(option, j, static_cast<double>(lifetimes), choice);
            if (choice.is_resident(j))
                option.factors[terms_.weight_buffer(j)] = static_cast<double>(problem(j)[Dim::z]);
            options.push_back(std::move(option));
        }
    }
    return options;
}

/// Sets the factors of layer j + 1, which reads `tile` channels of A_j at a time. Returns its calls
/// of layer j.
ChannelAxes::Calls ChannelAxes::add_reader(Option& option, int j, int64_t tile,
                                           const ChannelUse& use) const {
    const LayerProblem& reader = problem(j + 1);
    const int64_t width = reader[Dim::i];
    const bool wide = use.kind == Kind::below || use.kind == Kind::kept_below;
    Calls calls{{1, width}};
    if (wide) {
        calls = {{tile, width / tile}};
        if (width % tile != 0) calls.emplace_back(width % tile, 1);
    }
    const bool holds_tile = wide || (use.kind != Kind::above && use.fold == 0);
    if (reader.groups == 1)
        option.factors[terms_.buffer(j)] = holds_tile ? static_cast<double>(tile) : 1;
    const int64_t weights = use.input_weights_resident ? width : use.input_weights_hold ? tile : 1;
    option.factors[terms_.weight_buffer(j + 1)] = static_cast<double>(weights);
    if (j + 1 == terms_.n)
        option.factors[terms_.visits()] = static_cast<double>(2 * ceil_div(width, tile) - 1);
    return calls;
}

/// Adds `reader` with each tile T_z of layer j that matters.
void ChannelAxes::add_producers(const Option& reader, int j, const Calls& calls,
                                const ChannelUse& use, const PartialChoice& choice,
                                std::vector<Option>& options) const {
    const bool has_reader = j < terms_.n;
    const int64_t width = has_reader ? problem(j + 1)[Dim::i] : problem(j)[Dim::z];
    const int64_t largest = calls.front().first;
    const std::vector<int64_t> tiles =
        use.whole_calls ? std::vector<int64_t>{largest} : tile_candidates(largest, tiles_);
    int64_t fewest = INT64_MAX;
    for (const int64_t tile : tiles) {
        int64_t trips = 0;
        for (const auto& [extent, count] : calls) trips += count * ceil_div(extent, tile);
        // A larger tile that saves no trip is useless.
        if (trips == fewest || (use.z_above && fewest != INT64_MAX)) continue;
        fewest = trips;
        Option option = reader;
        option.tiles[1] = tile;
        repeat_layers_before(option, j, static_cast<double>(use.z_above ? width : trips), choice);
        double held = use.output_weights_hold ? static_cast<double>(tile) : 1;
        if (use.weights == WeightsLife::scope)
            held = static_cast<double>(use.kind == Kind::above ? 1 : reader.tiles[0]);
        if (use.weights == WeightsLife::resident) held = static_cast<double>(width);
        option.factors[terms_.weight_buffer(j)] = held;
        if (!has_reader)
            option.factors[terms_.output_buffer()] =
                use.output_holds ? static_cast<double>(tile) : 1;
        options.push_back(std::move(option));
    }
}

/// Makes every layer before j do its work `times` times.
void ChannelAxes::repeat_layers_before(Option& option, int j, double times,
                                       const PartialChoice& choice) const {
    option.factors[terms_.input()] *= times;
    for (int k = 1; k < j; ++k) {
        option.factors[terms_.macs(k)] *= times;
        if (choice.residence(k) == Residence::no) option.factors[terms_.weights(k)] *= times;
    }
}

/// A grouped layer is never fused. It reads the channels of the groups that a tile of z touches.
std::vector<Option> ChannelAxes::grouped_options(const ChannelUse& use) const {
    const LayerProblem& p = problem(1);
    const int64_t outputs = p[Dim::z] / p.groups;
    std::vector<Option> options;
    for (const int64_t tz : tile_candidates(p[Dim::z], tiles_)) {
        int64_t brought = 0;
        int64_t most = 0;
        for (int64_t begin = 0; begin < p[Dim::z]; begin += tz) {
            const int64_t end = std::min(begin + tz, p[Dim::z]);
            const int64_t touched = (end - 1) / outputs - begin / outputs + 1;
            brought += touched;
            most = std::max(most, touched);
        }
        if (use.kind == Kind::above) brought = p[Dim::z];
        if (use.kind == Kind::above || use.fold > 0) most = 1;
        Option o;
        o.factors.assign(terms_.count(), 1);
        o.factors[terms_.input()] = static_cast<double>(brought * p[Dim::i]);
        o.factors[terms_.buffer(0)] = static_cast<double>(most * p[Dim::i]);
        o.factors[terms_.weight_buffer(1)] = use.output_weights_hold ? static_cast<double>(tz) : 1;
        o.factors[terms_.output_buffer()] = use.output_holds ? static_cast<double>(tz) : 1;
        o.tiles = {p[Dim::i], tz};
        options.push_back(std::move(o));
    }
    return options;
}

}  // namespace laminate::search
