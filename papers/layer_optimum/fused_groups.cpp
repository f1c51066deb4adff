#include "papers/layer_optimum/fused_groups.h"

#include <algorithm>
#include <array>
#include <memory>
#include <mutex>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "base/parallel.h"
#include "base/units.h"
#include "papers/layer_optimum/managed_schedule.h"
#include "scheduler/counts/two_level/two_level.h"
#include "scheduler/explore/dag/dag_groups.h"
#include "scheduler/explore/explore.h"

namespace laminate {

namespace {

int64_t images_of(const Network& network, const LayerProblem& problem) {
    return network.tensor(problem.output).dims.front();
}

/// Along one axis, padding included: from the first to the last word that the outputs touch.
int64_t span_of(const AxisWindow& w) { return w.transposed ? w.in : input_span(w, w.out); }

/// Outputs of a transposed window, those that are cropped included.
int64_t uncropped(const AxisWindow& w) { return steps_of(w).span(w.in, w.kernel); }

/// Words of the output as layer_optimum() counts them: those of a transposed convolution include
/// what is cropped.
int64_t output_words(const LayerProblem& p) {
    int64_t words = p[Dim::z];
    for (const AxisWindow& w : p.window)
        words = checked_multiply(
            words, w.transposed ? std::max(w.out, steps_of(w).touched(w.in, w.kernel)) : w.out);
    return words;
}

// ---- one layer, finished blocks

int64_t words_once(const Network& network, const LayerProblem& p) {
    return checked_multiply(images_of(network, p),
                            (p.input_elements() + p.output_elements()).value());
}

OptimumGroup of_optimum(std::vector<LayerId> layers, GroupMeans means, LayerOptimum optimum) {
    OptimumGroup group;
    group.layers = std::move(layers);
    group.means = means;
    group.dram_words = optimum.dram_words;
    group.lower_bound_words = optimum.lower_bound_words;
    for (const int64_t banks : optimum.division.banks) group.banks += banks;
    group.optimum = std::move(optimum);
    return group;
}

OptimumGroup layer_alone(const Network& network, LayerId layer, const BankedBuffer& buffer,
                         const FusionOptions& options) {
    if (!must_be_scheduled(network, layer)) {
        OptimumGroup group;
        group.layers = {layer};
        group.dram_words = group.lower_bound_words =
            words_once(network, layer_problem(network, layer));
        return group;
    }
    const ConvolutionProblem problem = convolution_problem(network, layer);
    const auto known = options.known.find(to_text(problem));
    if (known != options.known.end())
        return of_optimum({layer}, GroupMeans::layer_optimum, known->second);
    auto found = layer_optimum(problem, buffer, options.evaluator, options.limits);
    return of_optimum({layer}, GroupMeans::layer_optimum, std::get<LayerOptimum>(std::move(found)));
}

/// Columns and rows of the first layer's output that a block has to hold whole so that the others
/// can follow it; none where they cannot.
std::optional<PerAxis<int64_t>> finished_steps(const std::vector<LayerProblem>& problems) {
    if (!problems.front().has_weights() || problems.front().y().transposed) return {};
    PerAxis<int64_t> steps{1, 1};
    for (size_t k = 1; k < problems.size(); ++k) {
        const LayerProblem& p = problems[k];
        if (p.has_weights() || p.inputs.size() != 1 ||
            p.inputs.front().tensor != problems[k - 1].output)
            return {};
        for (const MapAxis axis : map_axes) {
            const AxisWindow& w = axis == MapAxis::x ? p.x() : p.y();
            // One window over everything, or windows that do not reach into their neighbours.
            if (w.pad_begin != 0 || w.dilation != 1 || (w.out > 1 && w.kernel > w.stride))
                return {};
            steps[axis] = checked_multiply(steps[axis], w.out == 1 ? w.in : w.stride);
        }
    }
    steps[MapAxis::x] = std::min(steps[MapAxis::x], problems.front()[Dim::x]);
    steps[MapAxis::y] = std::min(steps[MapAxis::y], problems.front()[Dim::y]);
    return steps;
}

std::optional<OptimumGroup> in_finished_blocks(const Network& network,
                                               const std::vector<LayerId>& layers,
                                               const std::vector<LayerProblem>& problems,
                                               const BankedBuffer& buffer,
                                               const FusionOptions& options) {
    const auto steps = finished_steps(problems);
    if (!steps) return {};
    ConvolutionProblem problem = convolution_problem(network, layers.front());
    problem.finished = steps;
    auto found = layer_optimum(problem, buffer, options.evaluator, options.limits);
    auto* optimum = std::get_if<LayerOptimum>(&found);
    if (optimum == nullptr) return {};
    const int64_t saved =
        tensor_words(problem, Operand::output) -
        checked_multiply(images_of(network, problems.back()), output_words(problems.back()));
    optimum->dram_words -= saved;
    optimum->lower_bound_words -= saved;
    return of_optimum(layers, GroupMeans::finished_blocks, std::move(*optimum));
}

// ---- schedules

/// The problems of a group with the padding of its first layers stored and what its last one crops
/// kept, so that both count. None where layers that share an input pad it differently.
std::optional<std::vector<LayerProblem>> with_padding_as_data(std::vector<LayerProblem> problems) {
    for (const GroupTensor& tensor : group_tensors(problems)) {
        if (!tensor.is_external()) continue;
        for (size_t axis = 0; axis < 2; ++axis) {
            const auto window = [&](const TensorReader& reader) -> AxisWindow& {
                return problems[static_cast<size_t>(reader.nest)].window[axis];
            };
            const AxisWindow first = window(tensor.readers.front());
            const auto is_inside = [&](const TensorReader& r) {
                return window(r).pad_begin == 0 && span_of(window(r)) <= window(r).in;
            };
            const auto is_like_first = [&](const TensorReader& r) {
                return !window(r).transposed && window(r).pad_begin == first.pad_begin &&
                       span_of(window(r)) == span_of(first);
            };
            if (first.transposed && tensor.readers.size() == 1) continue;
            if (std::all_of(tensor.readers.begin(), tensor.readers.end(), is_inside)) continue;
            if (!std::all_of(tensor.readers.begin(), tensor.readers.end(), is_like_first))
                return {};
            for (const TensorReader& reader : tensor.readers) {
                window(reader).in = span_of(first);
                window(reader).pad_begin = 0;
            }
        }
    }
    LayerProblem& sink = problems.back();
    for (size_t axis = 0; axis < 2; ++axis) {
        AxisWindow& w = sink.window[axis];
        if (!w.transposed || uncropped(w) < w.pad_begin + w.out) continue;
        w.pad_begin = 0;
        w.out = uncropped(w);
        sink.extent[axis == 0 ? Dim::y : Dim::x] = w.out;
    }
    return problems;
}

struct ScheduleCost {
    int64_t words = 0;
    int64_t banks = 0;
};

ScheduleCost schedule_cost(const std::vector<LayerProblem>& problems, const GroupSchedule& group,
                           int64_t images, const BankedBuffer& buffer) {
    const GroupCounts counts = two_level_counts(problems, group);
    Elements every_image = counts.output_reads + counts.output_writes + counts.input_reads();
    Elements once;
    for (size_t k = 0; k < problems.size(); ++k) {
        const std::optional<Placement>& w = group.nests[k].w;
        const bool stays = w && w->store.is_root() && w->compute.is_root();
        (stays ? once : every_image) += counts.layers[k].weight_reads;
    }
    return {checked_add(checked_multiply(images, every_image.value()), once.value()),
            banks_of(counts, buffer)};
}

/// Chains up to this length are also searched completely, with tiles that divide.
constexpr size_t longest_searched = 2;
/// Their ExploreOptions::max_steps; pairs get ten times as many.
constexpr int64_t search_steps = 400'000;

}  // namespace

std::optional<OptimumGroup> searched_schedule(const Network& network,
                                              const std::vector<LayerId>& layers,
                                              const BankedBuffer& buffer,
                                              const FusionOptions& options) {
    const std::vector<LayerProblem> real = layer_problems(network, layers);
    const auto problems = with_padding_as_data(real);
    if (!problems) return {};
    ExploreOptions explore;
    explore.tiles = TileSizes::all;
    explore.footprint = Footprint::sum;
    explore.macs_is_axis = false;
    explore.memory = Elements(checked_multiply(buffer.banks, buffer.bank_words));
    explore.stop = options.stop;
    std::vector<GroupPoint> points = family_front(*problems, explore, explore.tiles);
    const bool is_chain = std::all_of(layers.begin(), layers.end(), [&](LayerId l) {
        return must_be_scheduled(network, l) && network.layer(l).kind != LayerKind::gemm;
    });
    if (is_chain && layers.size() <= longest_searched) {
        explore.tiles = TileSizes::divisors;
        explore.max_steps = search_steps;
        for (GroupPoint& point : group_front(*problems, explore))
            points.push_back(std::move(point));
    }
    const int64_t images = images_of(network, real.back());
    std::optional<OptimumGroup> best;
    for (const GroupPoint& point : points) {
        const ScheduleCost cost = schedule_cost(*problems, point.group, images, buffer);
        if (cost.banks > buffer.banks ||
            (best && std::tie(best->dram_words, best->banks) <= std::tie(cost.words, cost.banks)))
            continue;
        best.emplace();
        best->dram_words = cost.words;
        best->banks = cost.banks;
        best->schedule = point.group;
    }
    if (!best) return {};
    // Columns and rows that the network crops do not belong to its layers.
    for (size_t k = 0; k < real.size(); ++k) {
        PerDim<int64_t>& tile = best->schedule->nests[k].tile;
        for (const Dim d : all_dims) tile[d] = std::min(tile[d], real[k][d]);
    }
    best->layers = layers;
    best->means = GroupMeans::schedule;
    return best;
}

namespace {

// ---- lower bound

/// Rows and columns of a map.
using NeededPlaces = std::array<std::vector<bool>, 2>;

/// Places of an axis of its input that a window reads for these places of its output. With padding,
/// places count from the first padded one.
std::vector<bool> places_read(const AxisWindow& w, const std::vector<bool>& outputs,
                              bool with_padding) {
    with_padding = with_padding && !w.transposed;
    std::vector<bool> places(static_cast<size_t>(with_padding ? std::max(span_of(w), w.in) : w.in),
                             false);
    for (int64_t out = 0; out < w.out; ++out) {
        if (!outputs[static_cast<size_t>(out)]) continue;
        for (int64_t tap = 0; tap < w.kernel; ++tap) {
            const std::optional<int64_t> at =
                with_padding && !w.is_sampled()
                    ? std::optional(out * w.stride + tap * w.dilation)
                    : w.input(out, tap);
            if (at) places[static_cast<size_t>(*at)] = true;
        }
    }
    return places;
}

// ---- covers

struct Total {
    int64_t words = infinite_words;
    int64_t groups = 0;
    struct Link {
        size_t group;
        std::shared_ptr<const Link> next;
    };
    std::shared_ptr<const Link> chosen;
};

/// The cover with the least words, then the fewest groups, by the words of every group.
Total best_cover(const Network& network, const OneSinkGroups& groups,
                 const std::vector<int64_t>& words) {
    return over_covers(
        network, groups, Total{0, 0, nullptr}, Total{},
        [&](const Total& before, size_t group, Total& target) {
            const int64_t sum = checked_add(before.words, words[group]);
            if (std::tuple(sum, before.groups + 1) >= std::tuple(target.words, target.groups))
                return;
            target = {sum, before.groups + 1,
                      std::make_shared<const Total::Link>(Total::Link{group, before.chosen})};
        });
}

}  // namespace

const char* to_string(GroupMeans means) {
    switch (means) {
        case GroupMeans::layer_optimum:
            return "layer optimum";
        case GroupMeans::once:
            return "once";
        case GroupMeans::finished_blocks:
            return "finished blocks";
        case GroupMeans::schedule:
            break;
    }
    return "schedule";
}

int64_t compulsory_words(const Network& network, const std::vector<LayerId>& layers) {
    const std::vector<LayerProblem> problems = layer_problems(network, layers);
    std::vector<NeededPlaces> needed(problems.size());  // of every layer's output
    for (size_t axis = 0; axis < 2; ++axis)
        needed.back()[axis].assign(static_cast<size_t>(problems.back().window[axis].out), true);
    std::vector<GroupTensor> tensors = group_tensors(problems);
    // Readers first.
    std::sort(tensors.begin(), tensors.end(),
              [](const GroupTensor& a, const GroupTensor& b) { return a.producer > b.producer; });
    int64_t each = output_words(problems.back());
    for (const GroupTensor& tensor : tensors) {
        int64_t most = -1;  // of one reader: two may read different places, or the same
        for (const TensorReader& reader : tensor.readers) {
            const LayerProblem& p = problems[static_cast<size_t>(reader.nest)];
            NeededPlaces places;
            int64_t words = p.inputs[static_cast<size_t>(reader.operand)].channels;
            for (size_t axis = 0; axis < 2; ++axis) {
                if (p.inputs[static_cast<size_t>(reader.operand)].is_pixel) {
                    places[axis].assign(1, true);
                    continue;
                }
                places[axis] =
                    places_read(p.window[axis], needed[static_cast<size_t>(reader.nest)][axis],
                                tensor.is_external());
                words = checked_multiply(
                    words, std::count(places[axis].begin(), places[axis].end(), true));
            }
            if (words <= most) continue;
            most = words;
            if (!tensor.is_external())
                needed[static_cast<size_t>(tensor.producer)] = std::move(places);
        }
        if (tensor.is_external()) each = checked_add(each, most);
    }
    int64_t once = 0;
    for (const LayerProblem& p : problems) once = checked_add(once, p.weight_elements().value());
    return checked_add(checked_multiply(images_of(network, problems.back()), each), once);
}

std::optional<OptimumGroup> optimum_group(const Network& network,
                                          const std::vector<LayerId>& layers,
                                          const BankedBuffer& buffer,
                                          const FusionOptions& options) {
    if (buffer.banks < 3)
        throw InputError(
            std::to_string(buffer.banks) +
            " banks, expected three or more, one at least for each of input, weights and output");
    if (layers.size() == 1) return layer_alone(network, layers.front(), buffer, options);
    const std::vector<LayerProblem> problems = layer_problems(network, layers);
    std::optional<OptimumGroup> best =
        in_finished_blocks(network, layers, problems, buffer, options);
    std::optional<OptimumGroup> schedule = searched_schedule(network, layers, buffer, options);
    if (schedule && (!best || schedule->dram_words < best->dram_words)) best = std::move(schedule);
    if (best) best->lower_bound_words = compulsory_words(network, layers);
    return best;
}

FusedOptimum fused_optimum(const Network& network, const BankedBuffer& buffer,
                           const FusionOptions& options) {
    OneSinkGroups groups = one_sink_groups(network, options.max_layers);
    if (groups.layers.empty())
        throw InputError("network " + network.name + ": no layer that a schedule covers");
    FusedOptimum result;
    result.groups_looked_at = static_cast<int64_t>(groups.layers.size());
    std::map<std::pair<std::vector<int64_t>, int64_t>, size_t> shapes;
    std::vector<size_t> like;
    std::vector<size_t> work;
    for (size_t g = 0; g < groups.layers.size(); ++g) {
        const std::vector<LayerProblem> problems = layer_problems(network, groups.layers[g]);
        like.push_back(
            shapes.emplace(std::pair(shape_key(problems), images_of(network, problems.back())), g)
                .first->second);
        if (like.back() == g) work.push_back(g);
    }
    result.shapes = static_cast<int64_t>(work.size());
    // Start large groups first: they take longest. The single layers, which every answer needs, are
    // not skipped on a stop.
    std::stable_sort(work.begin(), work.end(), [&](size_t a, size_t b) {
        return groups.layers[a].size() > groups.layers[b].size();
    });
    std::vector<std::optional<OptimumGroup>> found(groups.layers.size());
    std::vector<char> is_skipped(groups.layers.size(), 0);
    std::mutex mutex;
    int64_t done = 0;
    in_parallel(work.size(), std::max(1, options.threads), [&](size_t n) {
        const std::vector<LayerId>& layers = groups.layers[work[n]];
        if (layers.size() > 1 && options.stop != nullptr && options.stop->load()) {
            is_skipped[work[n]] = 1;
            return;
        }
        found[work[n]] = optimum_group(network, layers, buffer, options);
        if (!options.progress) return;
        const std::lock_guard lock(mutex);
        options.progress(++done, result.shapes,
                         network.layer(layers.front()).name +
                             (layers.size() > 1 ? " .. " + network.layer(layers.back()).name : ""));
    });
    result.is_complete = std::none_of(is_skipped.begin(), is_skipped.end(),
                                      [](char skipped) { return skipped != 0; }) &&
                         (options.stop == nullptr || !options.stop->load());

    std::vector<int64_t> words;
    std::vector<int64_t> least;
    for (size_t g = 0; g < groups.layers.size(); ++g) {
        const std::optional<OptimumGroup>& group = found[like[g]];
        words.push_back(group ? group->dram_words : infinite_words);
        least.push_back(groups.layers[g].size() == 1 ? group.value().lower_bound_words
                                                     : compulsory_words(network, groups.layers[g]));
        if (groups.layers[g].size() == 1)
            result.layer_by_layer_words = checked_add(result.layer_by_layer_words, words.back());
    }
    result.lower_bound_words = best_cover(network, groups, least).words;
    for (std::vector<size_t>& ending : groups.ending_at)
        std::erase_if(ending, [&](size_t g) { return words[g] == infinite_words; });
    const Total best = best_cover(network, groups, words);
    result.dram_words = best.words;
    for (const Total::Link* link = best.chosen.get(); link != nullptr; link = link->next.get()) {
        OptimumGroup group = found[like[link->group]].value();
        group.layers = groups.layers[link->group];
        if (group.schedule)
            for (size_t k = 0; k < group.layers.size(); ++k)
                group.schedule->nests[k].layer = network.layer(group.layers[k]).name;
        result.groups.push_back(std::move(group));
    }
    return result;
}

}  // namespace laminate
