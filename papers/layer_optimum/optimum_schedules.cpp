#include "papers/layer_optimum/optimum_schedules.h"

#include <algorithm>
#include <map>
#include <utility>

#include "papers/layer_optimum/managed_schedule.h"
#include "scheduler/counts/two_level/two_level.h"
#include "scheduler/explore/dag/dag_groups.h"

namespace laminate {

namespace {

struct Made {
    GroupSchedule group;
    WrittenAs means = WrittenAs::found;
    GroupCounts counts;
    int64_t banks = 0;
};

/// The schedule that needs the fewest banks, whatever it moves.
GroupSchedule smallest_schedule(const Network& network, LayerId layer) {
    ExploreOptions explore;
    explore.footprint = Footprint::sum;
    const std::vector<GroupPoint> points = dag_group_front(network, {layer}, explore);
    return std::min_element(
               points.begin(), points.end(),
               [](const GroupPoint& a, const GroupPoint& b) { return a.live_total < b.live_total; })
        ->group;
}

class Writer {
public:
    Writer(const Network& network, const BankedBuffer& buffer, const FusionOptions& options)
        : network_(network), buffer_(buffer), options_(options) {}

    void write(const OptimumGroup& group, int64_t number) {
        const std::optional<Made>& made = known_by_shape(group);
        if (made && (made->means == WrittenAs::found || group.layers.size() == 1))
            return add(*made, group.layers, number);
        Elements apart;
        std::vector<Made> alone;
        for (const LayerId layer : group.layers) {
            alone.push_back(
                *known_by_shape(optimum_group(network_, {layer}, buffer_, options_).value()));
            if (alone.back().means != WrittenAs::too_large) alone.back().means = WrittenAs::apart;
            apart += alone.back().counts.accesses();
        }
        if (made && made->counts.accesses() <= apart) return add(*made, group.layers, number);
        for (size_t k = 0; k < alone.size(); ++k) add(alone[k], {group.layers[k]}, number);
    }
    [[nodiscard]] OptimumSchedule finished() && {
        return {Schedule(network_, std::move(groups_)), std::move(written_)};
    }

private:
    /// None for several layers of which no schedule fits.
    const std::optional<Made>& known_by_shape(const OptimumGroup& group) {
        std::pair<std::vector<int64_t>, std::string> key{
            shape_key(layer_problems(network_, group.layers)), ""};
        if (group.schedule) key.second = to_text(*group.schedule);
        if (group.optimum) key.second = to_text(group.optimum->order);
        const auto [entry, is_new] = made_.try_emplace(std::move(key));
        if (is_new) entry->second = make(group);
        return entry->second;
    }

    [[nodiscard]] Made counted(GroupSchedule group, WrittenAs means) const {
        GroupCounts counts = two_level_counts(network_, group);
        const int64_t banks = banks_of(counts, buffer_);
        return {std::move(group), means, std::move(counts), banks};
    }

    [[nodiscard]] std::optional<Made> make(const OptimumGroup& group) const {
        if (group.schedule) return counted(*group.schedule, WrittenAs::found);
        if (group.optimum) {
            if (auto found = managed(group, group.optimum->order, WrittenAs::found)) return found;
        }
        if (auto other = of_another_order(group)) return other;
        if (group.layers.size() > 1) return {};
        return counted(smallest_schedule(network_, group.layers.front()), WrittenAs::too_large);
    }

    [[nodiscard]] std::optional<Made> managed(const OptimumGroup& group, const BlockOrder& order,
                                              WrittenAs means) const {
        auto schedule = managed_schedule(network_, group.layers, order, buffer_);
        if (!schedule) return {};
        return Made{std::move(schedule->group), means, std::move(schedule->counts),
                    schedule->banks};
    }

    [[nodiscard]] std::optional<Made> of_another_order(const OptimumGroup& group) const {
        std::optional<Made> best;
        if (auto searched = searched_schedule(network_, group.layers, buffer_, options_))
            best = counted(std::move(*searched->schedule),
                           group.optimum ? WrittenAs::other : WrittenAs::found);
        if (!group.optimum) return best;
        BlockOrder whole_kernels = group.optimum->order;
        std::erase_if(whole_kernels, [](const BlockLoop& l) {
            return l.loop == ConvolutionLoop::m || l.loop == ConvolutionLoop::n;
        });
        if (whole_kernels == group.optimum->order) return best;
        auto other = managed(group, whole_kernels, WrittenAs::other);
        return other && (!best || other->counts.accesses() < best->counts.accesses()) ? other
                                                                                      : best;
    }

    void add(const Made& made, const std::vector<LayerId>& layers, int64_t number) {
        GroupSchedule& group = groups_.emplace_back(made.group);
        for (size_t k = 0; k < layers.size(); ++k)
            group.nests[k].layer = network_.layer(layers[k]).name;
        WrittenGroup& written = written_.emplace_back(
            WrittenGroup{layers, made.means, number, made.counts, made.banks});
        for (size_t k = 0; k < layers.size(); ++k)
            written.counts.layers[k].layer = group.nests[k].layer;
        const std::vector<GroupTensor> tensors = group_tensors(layer_problems(network_, layers));
        for (size_t n = 0; n < written.counts.inputs.size(); ++n)
            written.counts.inputs[n].tensor = tensors[n].name;
    }

    const Network& network_;
    const BankedBuffer& buffer_;
    const FusionOptions& options_;
    std::map<std::pair<std::vector<int64_t>, std::string>, std::optional<Made>> made_;
    std::vector<GroupSchedule> groups_;
    std::vector<WrittenGroup> written_;
};

}  // namespace

const char* to_string(WrittenAs means) {
    switch (means) {
        case WrittenAs::found:
            return "found";
        case WrittenAs::other:
            return "other";
        case WrittenAs::apart:
            return "apart";
        case WrittenAs::too_large:
            break;
    }
    return "too large";
}

OptimumSchedule optimum_schedule(const Network& network, const std::vector<OptimumGroup>& groups,
                                 const BankedBuffer& buffer, const FusionOptions& options) {
    Writer writer(network, buffer, options);
    for (size_t n = 0; n < groups.size(); ++n) writer.write(groups[n], static_cast<int64_t>(n));
    return std::move(writer).finished();
}

std::vector<OptimumGroup> layers_alone(const Network& network, const BankedBuffer& buffer,
                                       const FusionOptions& options) {
    std::vector<OptimumGroup> groups;
    for (LayerId id = 0; id < static_cast<LayerId>(network.layers.size()); ++id)
        if (is_schedulable(network, id))
            groups.push_back(optimum_group(network, {id}, buffer, options).value());
    return groups;
}

}  // namespace laminate
