#include "scheduler/explore/timed/pricing.h"

#include <algorithm>
#include <set>

#include "scheduler/counts/done.h"
#include "scheduler/explore/front_builder.h"
#include "scheduler/explore/pareto.h"
#include "scheduler/explore/planner/tiled_layer.h"
#include "scheduler/schedule/kernel_legality.h"

namespace laminate::timed {

Pricing::Pricing(const Network& network, const TimedOptions& options)
    : network_(network), options_(options) {
    for (const Layer& layer : network.layers) {
        if (layer.weights) weights_ += to_bytes(Elements(element_count(layer.weights->dims)));
    }
}

std::pair<Priced*, bool> Pricing::place_of(const GroupSchedule& group,
                                           const std::vector<LayerProblem>& problems) {
    GroupSchedule nameless = group;
    for (Nest& nest : nameless.nests) nest.layer.clear();
    Shape shape = shape_key(problems);
    shape.push_back(images_of(network_, group));
    shape.push_back(kernel_options(group).constant_weights.value());
    const auto [place, is_new] =
        by_shape_.try_emplace(std::pair(std::move(shape), std::move(nameless)));
    return {&place->second, is_new};
}

void Pricing::price_together(const std::vector<const GroupSchedule*>& groups) {
    struct Task {
        const GroupSchedule* group;
        std::vector<LayerProblem> problems;
        Priced* place;
    };
    std::vector<Task> tasks;
    for (const GroupSchedule* group : groups) {
        std::vector<LayerProblem> problems = group_problems(network_, *group);
        if (const auto [place, is_new] = place_of(*group, problems); is_new)
            tasks.push_back({group, std::move(problems), place});
    }
    in_parallel_with<TwoLevelCache>(
        tasks.size(), options_.planning_threads(), [&](size_t n, TwoLevelCache& cache) {
            *tasks[n].place = priced(*tasks[n].group, tasks[n].problems, cache);
        });
}

const Priced& Pricing::price(const GroupSchedule& group) {
    const auto [known, is_new] = by_text_.try_emplace(to_text(group));
    if (!is_new) return known->second;
    const std::vector<LayerProblem> problems = group_problems(network_, group);
    const auto [like, is_first] = place_of(group, problems);
    if (is_first) *like = priced(group, problems, cache_);
    known->second = *like;
    for (size_t k = 0; k < group.nests.size(); ++k)
        known->second.group.nests[k].layer = group.nests[k].layer;
    known->second.sink = network_.find_layer(group.nests.back().layer);
    return known->second;
}

const std::vector<const Priced*>& Pricing::tiled(LayerId layer, const Priced& alone) {
    const auto [known, is_new] = tiled_.try_emplace(layer);
    if (!is_new) return known->second;
    const std::vector<LayerProblem> problems = layer_problems(network_, {layer});
    const auto [like, is_first] = tiled_shapes_.try_emplace(shape_key(problems));
    if (is_first) like->second = best_tiled(problems, alone);
    for (const GroupSchedule& form : like->second)
        known->second.push_back(&price(search::on_layers(network_, form, {layer})));
    return known->second;
}

std::vector<GroupSchedule> Pricing::best_tiled(const std::vector<LayerProblem>& problems,
                                               const Priced& alone) {
    const LayerProblem& p = problems.front();
    Bytes most = alone.memory();
    if (options_.memory) most = std::min(most, Bytes(options_.memory->value() + 1));
    // Kernels and their time take much longer to find than counts, so only those forms get them
    // that no other one beats in accesses, memory and the number of its tiles.
    search::Archive<GroupSchedule> counted(true);
    for (GroupSchedule& form : tiled_layer_forms(p, options_.threads)) {
        const GroupCounts counts = two_level_counts(problems, form, &cache_);
        if (to_bytes(counts.live_total) >= most) continue;
        double tiles = 1;
        for (const Dim d : all_dims)
            tiles *= static_cast<double>(ceil_div(p[d], form.nests.front().tile[d]));
        counted.offer({static_cast<double>(counts.accesses().value()),
                       static_cast<double>(counts.live_total.value()), tiles},
                      std::move(form));
    }
    search::Archive<GroupSchedule> best(true);
    for (const GroupSchedule& form : counted.items()) {
        const Priced with_time = priced(form, problems, cache_);
        if (with_time.memory() >= most) continue;
        best.offer({static_cast<double>(with_time.accesses.value()),
                    static_cast<double>(with_time.memory().value()), with_time.milliseconds},
                   form);
    }
    return best.items();
}

Priced Pricing::priced(const GroupSchedule& group, const std::vector<LayerProblem>& problems,
                       TwoLevelCache& cache) const {
    Priced priced;
    const GroupCounts counts = two_level_counts(problems, group, &cache);
    priced.accesses = counts.accesses();
    priced.live = counts.live_total;
    GroupLoops loops(group, problems);
    choose_kernels(priced, problems, group, loops);
    priced.scratch = scratch_bytes(priced.group, problems, &loops);
    return priced;
}

/// Beside a tensor between groups, transformed weights of a quarter of it are little memory.
KernelOptions Pricing::kernel_options(const GroupSchedule& group) const {
    constexpr int64_t part_of_tensor = 4;
    KernelOptions kernels = options_.kernels;
    kernels.second_level_cache = options_.second_level_cache;
    if (options_.memory) return kernels;
    std::set<TensorId> made;
    Bytes between;
    const auto note = [&](TensorId id) {
        between = std::max(between, to_bytes(Elements(element_count(network_.tensor(id).dims))));
    };
    for (const Nest& nest : group.nests) {
        const Layer& layer = network_.layer(network_.find_layer(nest.layer));
        for (const TensorId id : layer.inputs) {
            const bool is_given = std::ranges::find(network_.inputs, id) != network_.inputs.end();
            if (!is_given && !made.contains(id)) note(id);
        }
        made.insert(layer.output);
    }
    const TensorId output = network_.layer(network_.find_layer(group.nests.back().layer)).output;
    if (!network_.is_output(output)) note(output);
    kernels.constant_weights = Bytes(between.value() / part_of_tensor);
    return kernels;
}

namespace {

/// Whether the group has winograd_channels, and all that it filters have few inputs. With many, whole maps are
/// faster than lines of tiles, of which the model of time expects too much there.
bool has_few_by_channels(const GroupSchedule& group, const std::vector<LayerProblem>& problems) {
    constexpr int64_t many_inputs = 64;
    bool has_such = false;
    for (size_t k = 0; k < problems.size(); ++k) {
        const KernelKind kind = group.nests[k].kernel.kind;
        if (kernel_row(kind).filters && problems[k][Dim::i] >= many_inputs) return false;
        has_such = has_such || kind == KernelKind::winograd_channels;
    }
    return has_such;
}

}  // namespace

/// The default kernels; those with other tiles of minimal filtering if they are faster, or those
/// without it if they are clearly faster.
void Pricing::choose_kernels(Priced& priced, const std::vector<LayerProblem>& problems,
                             const GroupSchedule& group, GroupLoops& loops) const {
    Bytes own;
    for (const LayerProblem& p : problems) own += to_bytes(p.weight_elements());
    const int64_t images = images_of(network_, group);
    const auto time = [&](const GroupSchedule& with_kernels) {
        return predicted_milliseconds(with_kernels, problems, options_.speed, options_.threads,
                                      Bytes(weights_.value() - own.value()), images, &loops);
    };
    KernelOptions kernels = kernel_options(group);
    priced.group = with_default_kernels(problems, group, options_.unit, kernels, &loops);
    priced.milliseconds = time(priced.group);
    if (!options_.kernels.filters() || group.nests.front().kernel.is_chosen()) return;
    const auto offer = [&](double bar) {
        GroupSchedule other = with_default_kernels(problems, group, options_.unit, kernels, &loops);
        if (other == priced.group) return;
        const double milliseconds = time(other);
        if (milliseconds >= bar * priced.milliseconds) return;
        priced.group = std::move(other);
        priced.milliseconds = milliseconds;
    };
    const bool is_map = is_whole_map_group(group, problems) &&
                        kernel_pays(problems.front(), KernelKind::winograd_map);
    for (const int64_t rows : {6, 4, 2}) {
        if (rows > options_.kernels.tile_rows) continue;
        kernels.tile_rows = rows;
        kernels.fewest_tile_rows = is_map ? rows : 2;
        const bool has_higher = std::ranges::any_of(priced.group.nests, [&](const Nest& nest) {
            return kernel_row(nest.kernel.kind).filters && rows_of_tile(nest.kernel) > rows;
        });
        if (is_map || has_higher) offer(1);
    }
    kernels.tiles_as_lanes = has_few_by_channels(priced.group, problems);
    for (const int64_t rows : {6, 4, 2}) {
        if (!kernels.tiles_as_lanes || rows > options_.kernels.tile_rows) continue;
        kernels.tile_rows = rows;
        offer(1);
    }
    const auto filters = [](const Nest& nest) { return kernel_row(nest.kernel.kind).filters; };
    if (std::ranges::none_of(priced.group.nests, filters)) return;
    kernels.winograd = false;
    offer(surely_faster);
}

}  // namespace laminate::timed
