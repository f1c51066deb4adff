#include "scheduler/models/layer_optimum/optimum_schedules.h"

#include <algorithm>
#include <map>
#include <utility>

#include "scheduler/models/layer_optimum/managed_schedule.h"
#include "scheduler/models/two_level/two_level.h"
#include "scheduler/search/dag_groups.h"

namespace laminate {

namespace {

/// A group of one of the schedules, before its layers have their names.
struct Made {
    GroupSchedule group;
    WrittenAs means = WrittenAs::found;
};

/// What needs the fewest banks, whatever it moves.
GroupSchedule smallest_schedule(const Network& network, LayerId layer) {
    ExploreOptions explore;
    explore.footprint = Footprint::sum;
    const std::vector<GroupPoint> points = dag_group_front(network, {layer}, explore);
    return std::min_element(points.begin(), points.end(), [](const GroupPoint& a, const GroupPoint& b) { return a.live_total < b.live_total; })->group;
}

class Writer {
public:
    Writer(const Network& network, const BankedBuffer& buffer, const FusionOptions& options) : network_(network), buffer_(buffer), options_(options) {}

    void write(const OptimumGroup& group, int64_t number) {
        if (const std::optional<Made> made = known_by_shape(group)) return add(*made, group.layers, number);
        for (const LayerId layer : group.layers) {
            const OptimumGroup alone = optimum_group(network_, {layer}, buffer_, options_).value();
            Made made = *known_by_shape(alone);
            if (made.means != WrittenAs::too_large) made.means = WrittenAs::apart;
            add(made, alone.layers, number);
        }
    }
    [[nodiscard]] OptimumSchedule finished() && { return {Schedule(network_, std::move(groups_)), std::move(written_)}; }

private:
    /// None: several layers of which no schedule fits.
    const std::optional<Made>& known_by_shape(const OptimumGroup& group) {
        std::pair<std::vector<int64_t>, std::string> key{shape_key(layer_problems(network_, group.layers)), ""};
        if (group.schedule) key.second = to_text(*group.schedule);
        if (group.optimum) key.second = to_text(group.optimum->order);
        const auto [entry, is_new] = made_.try_emplace(std::move(key));
        if (is_new) entry->second = make(group);
        return entry->second;
    }

    [[nodiscard]] std::optional<Made> make(const OptimumGroup& group) const {
        if (group.schedule) return Made{*group.schedule, WrittenAs::found};
        if (group.optimum) {
            if (auto managed = managed_schedule(network_, group.layers, group.optimum->order, buffer_)) return Made{std::move(managed->group), WrittenAs::found};
        }
        if (auto searched = searched_schedule(network_, group.layers, buffer_, options_)) return Made{std::move(*searched->schedule), WrittenAs::searched};
        if (group.layers.size() > 1) return {};
        return Made{smallest_schedule(network_, group.layers.front()), WrittenAs::too_large};
    }

    void add(const Made& made, const std::vector<LayerId>& layers, int64_t number) {
        GroupSchedule& group = groups_.emplace_back(made.group);
        for (size_t k = 0; k < layers.size(); ++k) group.nests[k].layer = network_.layer(layers[k]).name;
        WrittenGroup& written = written_.emplace_back();
        written.layers = layers;
        written.means = made.means;
        written.group = number;
        written.counts = two_level_counts(network_, group, &cache_);
        written.banks = banks_of(written.counts, buffer_);
    }

    const Network& network_;
    const BankedBuffer& buffer_;
    const FusionOptions& options_;
    std::map<std::pair<std::vector<int64_t>, std::string>, std::optional<Made>> made_;
    TwoLevelCache cache_;
    std::vector<GroupSchedule> groups_;
    std::vector<WrittenGroup> written_;
};

}  // namespace

const char* to_string(WrittenAs means) {
    switch (means) {
        case WrittenAs::found: return "found";
        case WrittenAs::searched: return "searched";
        case WrittenAs::apart: return "apart";
        case WrittenAs::too_large: break;
    }
    return "too large";
}

OptimumSchedule optimum_schedule(const Network& network, const std::vector<OptimumGroup>& groups, const BankedBuffer& buffer, const FusionOptions& options) {
    Writer writer(network, buffer, options);
    for (size_t n = 0; n < groups.size(); ++n) writer.write(groups[n], static_cast<int64_t>(n));
    return std::move(writer).finished();
}

std::vector<OptimumGroup> layers_alone(const Network& network, const BankedBuffer& buffer, const FusionOptions& options) {
    std::vector<OptimumGroup> groups;
    for (LayerId id = 0; id < static_cast<LayerId>(network.layers.size()); ++id)
        if (is_schedulable(network, id)) groups.push_back(optimum_group(network, {id}, buffer, options).value());
    return groups;
}

}  // namespace laminate
