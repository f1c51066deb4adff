#include "cli/kernel_speed.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <numeric>
#include <set>
#include <stdexcept>
#include <utility>
#include <vector>

#include "base/aligned.h"
#include "base/caches.h"
#include "base/cpu_time.h"
#include "base/error.h"
#include "base/rng.h"
#include "cli/machine_speed.h"
#include "generators/compile/executable.h"
#include "generators/kernels/group_kernels.h"
#include "nets/network/network.h"
#include "nets/open.h"
#include "scheduler/counts/two_level/two_level.h"
#include "scheduler/counts/work.h"
#include "scheduler/explore/planner/line_buffers.h"
#include "scheduler/explore/planner/tiled_layer.h"
#include "scheduler/schedule/problem.h"

namespace laminate::cli {

namespace {

/// Layers of the zoo that, with those of enlarging() below, have every kernel, large and small.
struct Probed {
    const char* network;
    bool all_shapes;  ///< else every layer in two of the shapes below
};
constexpr Probed probed[] = {
    {"zoo:fsrcnn?height=66&width=240", true},
    {"zoo:fsrcnn?height=40&width=640", true},
    {"zoo:fsrcnn-x2?height=68&width=240", false},
    {"zoo:fsrcnn-x2?height=40&width=400", true},
    {"zoo:mc-cnn?height=66&width=240", true},
    {"zoo:mc-cnn?height=36&width=512", true},
    {"zoo:mc-cnn-64?height=34&width=260", true},
    {"zoo:dmcnn-vd?height=36&width=90", false},
    {"zoo:dmcnn-vd?height=24&width=200", false},
    {"zoo:fsrcnn?height=200&width=960", false},
    {"zoo:mc-cnn?height=200&width=960", false},
    {"zoo:mobilenetv2", true},
    {"zoo:mcunet-320kb", false},
    {"zoo:resnet18", false},
    {"zoo:resnet18?height=256&width=320", false},
    {"zoo:squeezenet", false},
    {"zoo:inceptionv3?height=171&width=171", false},
    {"zoo:vgg16", false},
};

struct Shape {
    LineBufferSizes sizes;
    size_t layers;
    bool winograd;
};
/// Whole rows, strips of columns, and chains; each by minimal filtering and by the definition.
constexpr Shape shapes[] = {
    {{4, 0, 0}, 1, true},   {{4, 0, 0}, 1, false}, {{1, 0, 0}, 1, false}, {{4, 0, 40}, 1, false},
    {{2, 0, 24}, 1, false}, {{4, 0, 0}, 2, true},  {{4, 0, 0}, 2, false}, {{4, 0, 0}, 3, true},
    {{1, 0, 64}, 2, true},  {{4, 0, 128}, 2, true},
    {{4, 0, 0, true}, 3, true},
};

struct Probe {
    Network network;
    GroupSchedule group;
};

/// Layers in tiles of channels and columns, some of the smallest that there are.
void add_tiled(
    const Network& network,
    const std::function<void(const Network&, GroupSchedule, const KernelOptions&)>& add) {
    TwoLevelCache cache;
    for (LayerId id = 0; id < std::ssize(network.layers); ++id) {
        if (!must_be_scheduled(network, id)) continue;
        const std::vector<GroupPoint> points =
            tiled_layer_points(layer_problems(network, {id}), 1, cache);
        for (const size_t part : {3, 6, 7}) {
            constexpr size_t parts = 8;
            add(network, points[points.size() * part / parts].group, {.winograd = false});
        }
    }
}

/// A transposed layer whose kernel is its stride, as decoders of U-Nets have them. The zoo has none.
Network enlarging(int64_t inputs, int64_t outputs, int64_t side) {
    constexpr int64_t twice = 2;
    Network network;
    network.name = "enlarging";
    network.tensors = {{"input", {1, inputs, side, side}},
                       {"output", {1, outputs, twice * side, twice * side}}};
    network.inputs = {0};
    network.outputs = {1};
    Layer layer{.name = "up", .onnx_name = "up", .kind = LayerKind::conv_transpose, .inputs = {0}};
    layer.output = 1;
    layer.window = {.kernel = {twice, twice}, .stride = {twice, twice}};
    const std::vector<int64_t> dims{inputs, outputs, twice, twice};
    constexpr float weight = 0.125F;
    layer.weights = std::make_shared<const Constant>(
        Constant{dims, std::vector<float>(static_cast<size_t>(element_count(dims)), weight)});
    network.layers = {std::move(layer)};
    check(network);
    return network;
}

/// Layers of the same shape once, and not more work than takes a few milliseconds. Minimal filtering of
/// whole maps has a quarter of the products, and only wide maps of many channels tell its transforms
/// from them.
std::vector<Probe> probes(const VectorUnit& unit) {
    constexpr int64_t most_macs = 250'000'000, most_of_map = 2'000'000'000;
    std::vector<Probe> all;
    std::set<std::pair<std::vector<int64_t>, GroupSchedule>> known;
    const auto add_group = [&](const Network& network, GroupSchedule group) {
        const std::vector<LayerProblem> problems = group_problems(network, group);
        GroupSchedule nameless = group;
        for (Nest& nest : nameless.nests) nest.layer.clear();
        const bool is_map = group.nests.front().kernel.kind == KernelKind::winograd_map;
        if (two_level_work(problems, group) > Macs(is_map ? most_of_map : most_macs) ||
            !known.emplace(shape_key(problems), std::move(nameless)).second)
            return;
        all.push_back({network, std::move(group)});
    };
    const auto add = [&](const Network& network, const GroupSchedule& group,
                         const KernelOptions& options) {
        add_group(network, with_default_kernels(group_problems(network, group), group, unit, options));
    };
    size_t at = 0;
    for (const auto& [spec, all_shapes] : probed) {
        const Network network = open_network(spec);
        for (const std::vector<LayerId>& chain : schedulable_chains(network)) {
            for (size_t begin = 0; begin < chain.size(); ++begin) {
                std::vector<Shape> of_layer{shapes[0], shapes[at++ % std::size(shapes)]};
                if (all_shapes) of_layer.assign(std::begin(shapes), std::end(shapes));
                for (const Shape& wanted : of_layer) {
                    const size_t end = std::min(begin + wanted.layers, chain.size());
                    const std::vector<LayerId> segment(
                        chain.begin() + static_cast<std::ptrdiff_t>(begin),
                        chain.begin() + static_cast<std::ptrdiff_t>(end));
                    add(network, line_buffer_group(network, segment, wanted.sizes),
                        {.winograd = wanted.winograd});
                }
            }
        }
        add_tiled(network, add);
        // Layers with an Add behind them.
        const auto planned = line_buffer_schedule(network, {});
        for (const GroupSchedule& group : std::get<Schedule>(planned).groups()) {
            if (group.nests.size() > 1) add(network, group, {});
        }
        for (LayerId id = 0; id < std::ssize(network.layers); ++id) {
            if (!is_schedulable(network, id)) continue;
            GroupSchedule alone = line_buffer_group(network, {id});
            if (!must_be_scheduled(network, id)) add(network, alone, {});
            const LayerProblem p = layer_problem(network, id);
            if (kernel_pays(p, KernelKind::winograd_map)) {
                for (const int64_t rows : {2, 4, 6})
                    add(network, alone, {.tile_rows = rows, .fewest_tile_rows = rows});
                add(network, alone, {.winograd = false});
            }
            // Where vectors are short, map_channels takes most of its layers by panel.
            if (kernel_pays(p, KernelKind::map_windows)) {
                alone.nests.front().kernel = kernel_for(KernelKind::map_windows, unit);
                add_group(network, std::move(alone));
            }
        }
    }
    for (const auto& [inputs, outputs, side] :
         {std::array<int64_t, 3>{256, 128, 24}, {128, 64, 56}, {64, 32, 100}, {384, 96, 20}}) {
        const Network network = enlarging(inputs, outputs, side);
        add(network, line_buffer_group(network, {0}), {});
    }
    return all;
}

/// A probe's code and arrays.
class Runner {
public:
    Runner(const Probe& probe, const Halide::Target& target)
        : code_(group_code(probe.network, probe.group)),
          jit_(code_.body, false, target),
          constants_(code_.constants) {
        const std::vector<LayerProblem> problems = group_problems(probe.network, probe.group);
        for (const GroupTensor& tensor : group_tensors(problems)) {
            if (!tensor.is_external()) continue;
            const std::vector<int64_t>& dims = probe.network.tensor(tensor.tensor).dims;
            inputs_.emplace_back(static_cast<size_t>(element_count(dims)), 0.5F);
        }
        output_.emplace_back(static_cast<size_t>(problems.back().output_elements().value()), 0.0F);
    }

    [[nodiscard]] size_t scratch_elements() const {
        return static_cast<size_t>(code_.scratch_bytes) / sizeof(float);
    }

    /// Time of one run on this thread. As in a network, whose groups share an arena, the output's
    /// place has been written not long ago and inputs just now, and the scratch is what the last probe
    /// used; code and weights are as cold as the other probes have made them.
    double nanoseconds(AlignedFloats& scratch) {
        std::fill_n(output_.front().data(), output_.front().size(), 0.0F);
        std::vector<const float*> in;
        for (AlignedFloats& input : inputs_) {
            std::fill_n(input.data(), input.size(), 0.5F);
            in.push_back(input.data());
        }
        float* out = output_.front().data();
        const double start = thread_milliseconds();
        if (jit_.function()(in.data(), &out, constants_.data(), scratch.data(), 0,
                            static_cast<int32_t>(code_.strips)) != 0)
            throw std::logic_error("the code of a probe failed");
        return (thread_milliseconds() - start) * 1e6;
    }

private:
    GroupCode code_;
    JitGroup jit_;
    AlignedFloats constants_;
    std::vector<AlignedFloats> inputs_, output_;
};

}  // namespace

WorkTerms probed_work(const VectorUnit& unit, const CoreCaches& caches) {
    WorkTerms sums;
    for (const Probe& probe : probes(unit)) {
        const std::vector<LayerProblem> problems = group_problems(probe.network, probe.group);
        for (const auto& [term, amount] : group_work(probe.group, problems, caches))
            sums[term] += amount;
    }
    return sums;
}

MeasuredSpeed measured_cpu_speed(const std::string& target, double gigabytes_per_second,
                                 const std::function<void(size_t done, size_t all)>& note) {
    MeasuredSpeed measured;
    CpuSpeed& speed = measured.speed;
    speed.second_level_cache = second_level_cache();
    speed.third_level_cache = speed.second_level_cache;
    for (const Cache& cache : data_caches()) {
        if (cache.level == 3) speed.third_level_cache = cache.size;
    }
    if (speed.third_level_cache > speed.second_level_cache) {
        // The model leaves half of the third level to others (scheduler/counts/work.cpp): an array that
        // stays there has half of what the model is to know.
        const int64_t reached = reached_bytes(speed.second_level_cache.value(),
                                              speed.third_level_cache.value(), load_nanoseconds);
        speed.third_level_cache = std::min(speed.third_level_cache, Bytes(2 * reached));
    }
    const CoreCaches caches{speed.second_level_cache, speed.third_level_cache};
    const std::vector<Probe> all = probes(vector_unit(code_target(target)));
    std::vector<Runner> runners;
    Bytes weights;
    for (const Probe& probe : all) {
        runners.emplace_back(probe, code_target(target));
        for (const LayerProblem& p : group_problems(probe.network, probe.group))
            weights += to_bytes(p.weight_elements());
        note(runners.size(), all.size());
    }
    size_t most_scratch = 0;
    for (const Runner& runner : runners)
        most_scratch = std::max(most_scratch, runner.scratch_elements());
    AlignedFloats scratch(most_scratch, 0.0F);
    // The lower quartile of what a probe took: what else the machine does, and its neighbours where it
    // is a virtual one, only adds time. Each round has an order of its own, because a probe may find
    // caches and tables of pages as the one before it leaves them.
    constexpr size_t rounds = 15;
    std::vector<size_t> order(all.size());
    std::iota(order.begin(), order.end(), size_t{0});
    Rng rng(rounds);
    std::vector<std::vector<double>> times(all.size());
    for (size_t round = 0; round < rounds; ++round) {
        rng.shuffle(order);
        for (const size_t n : order) times[n].push_back(runners[n].nanoseconds(scratch));
    }
    std::vector<TimedWork> timed;
    for (size_t n = 0; n < all.size(); ++n) {
        const std::vector<LayerProblem> problems = group_problems(all[n].network, all[n].group);
        const auto quartile = times[n].begin() + rounds / 4;
        std::nth_element(times[n].begin(), quartile, times[n].end());
        timed.push_back({group_work(all[n].group, problems, caches, weights), *quartile});
        measured.probes.push_back({to_text(all[n].group), timed.back()});
    }
    const VectorUnit unit = vector_unit(code_target(target));
    const double gflops = peak_gflops(1);
    constexpr double operations_per_product = 2, vector_bytes = 64;
    speed.nanoseconds = fitted_nanoseconds(
        timed, {.product_vector = operations_per_product * static_cast<double>(unit.lanes) / gflops,
                .map_vector = vector_bytes / gigabytes_per_second});
    // Code with vectors of four, for instance, has no windows without panels. Such work never counts, but
    // --speed wants a time of every kind.
    const CpuSpeed usual = usual_cpu_speed(unit);
    speed.nanoseconds.insert(usual.nanoseconds.begin(), usual.nanoseconds.end());
    return measured;
}

}  // namespace laminate::cli
