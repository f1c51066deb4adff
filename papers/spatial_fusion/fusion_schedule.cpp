#include "papers/spatial_fusion/fusion_schedule.h"

namespace laminate::spatial_fusion {

namespace {

std::vector<Loop> loops(std::initializer_list<Dim> outer) {
    std::vector<Loop> result;
    for (const Dim d : outer) result.push_back({d, Band::outer});
    for (const Dim d : all_dims) result.push_back({d, Band::inner});
    return result;
}

}  // namespace

GroupSchedule fusion_group(const Network& network, const PlannedStack& stack) {
    const Stack problems = layer_problems(network, stack.layers);
    const int sink = static_cast<int>(problems.size()) - 1;
    GroupSchedule group;
    for (const LayerProblem& problem : problems) {
        Nest nest;
        nest.layer = problem.name;
        nest.tile = problem.extent;
        nest.loops = loops({Dim::y, Dim::x, Dim::z, Dim::i});
        if (problem.has_weights()) nest.w = Placement{};
        group.nests.push_back(std::move(nest));
    }
    Nest& last = group.nests.back();
    const LayerProblem& bottom = problems.back();
    last.tile = {stack.tile.out_channels, stack.tile.y, stack.tile.x, bottom[Dim::i]};
    const auto level = [&](Dim d, Band band) { return Level{sink, last.find({d, band})}; };
    const Level tile = level(Dim::x, Band::outer);
    const Level channels = level(Dim::z, Band::outer);
    const bool all_channels = stack.tile.out_channels == bottom[Dim::z];
    if (stack.is_join) {
        last.tile = {1, 1, 1, 1};
        const Level element = level(Dim::z, Band::outer);
        for (int operand = 0; operand < static_cast<int>(bottom.inputs.size()); ++operand)
            last.x.push_back({operand, {element, element}});
        last.y = {element, element};
        return group;
    }
    if (stack.keeps_halos) {
        const Placement kept{Level{}, tile};
        group.nests.front().x = {{0, kept}};
        for (Nest& nest : group.nests) nest.y = kept;  // the sink's is set below
        if (last.w && !all_channels) last.w = Placement{channels, channels};
    } else {
        // Eq. 2: an input tile with all its channels stays while output channels change; otherwise
        // its channels come one tile after the other.
        last.tile[Dim::i] = is_channelwise(bottom)
                                ? 1
                                : std::max<int64_t>(1, stack.tile.in_channels / bottom.groups);
        const bool all_inputs =
            !is_channelwise(bottom) && stack.tile.in_channels == bottom.inputs.front().channels;
        const Level inputs = all_inputs               ? tile
                             : is_channelwise(bottom) ? channels
                                                      : level(Dim::i, Band::outer);
        last.x = {{0, {inputs, inputs}}};
        if (last.w && !(all_channels && (all_inputs || is_channelwise(bottom)))) {
            const Level weights =
                is_channelwise(bottom) || all_inputs ? channels : level(Dim::i, Band::outer);
            last.w = Placement{weights, weights};
        }
    }
    last.y = {channels, channels};
    return group;
}

Schedule fusion_schedule(const Network& network, const FusionPlan& plan) {
    std::vector<GroupSchedule> groups;
    for (const PlannedStack& stack : plan.stacks) groups.push_back(fusion_group(network, stack));
    return {network, std::move(groups)};
}

}  // namespace laminate::spatial_fusion
