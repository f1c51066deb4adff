#include "papers/layer_optimum/network_optima.h"

#include <chrono>
#include <mutex>
#include <set>
#include <stdexcept>
#include <variant>

#include "base/cpu_time.h"
#include "base/error.h"
#include "base/parallel.h"
#include "base/units.h"

namespace laminate {

namespace {

using Clock = std::chrono::steady_clock;

[[nodiscard]] bool is_set(const std::atomic<bool>* stop) { return stop != nullptr && stop->load(); }

[[noreturn]] void refuse_without_layers(const Network& network) {
    std::set<std::string> kinds;
    for (const Layer& layer : network.layers) kinds.insert(to_string(layer.kind));
    std::string found;
    for (const std::string& kind : kinds) found += (found.empty() ? "" : ", ") + kind;
    throw InputError(network.name +
                     ": no layer with loops over weights that a schedule covers; expected a "
                     "convolution, a transposed convolution or a Gemm, found " +
                     found);
}

/// The layers to be solved; `left_out` gets the others with weights.
std::vector<SolvedLayer> layers_of(const Network& network, const NetworkOptimaOptions& options,
                                   std::vector<std::string>& left_out) {
    std::vector<SolvedLayer> layers;
    for (LayerId id = 0; id < static_cast<LayerId>(network.layers.size()); ++id) {
        const Layer& layer = network.layer(id);
        if (!must_be_scheduled(network, id)) {
            if (layer.kind == LayerKind::conv || layer.kind == LayerKind::conv_transpose ||
                layer.kind == LayerKind::gemm)
                left_out.push_back(layer.name);
            continue;
        }
        SolvedLayer& added = layers.emplace_back();
        added.name = layer.name;
        added.kind = layer.kind;
        added.problem = convolution_problem(network, id);
        if (options.grouped_as_one) added.problem = with_groups_as_published(added.problem);
    }
    if (layers.empty()) refuse_without_layers(network);
    return layers;
}

std::vector<CurvePoint> dram_curve(const ConvolutionProblem& problem, const LayerMachine& machine,
                                   const NetworkOptimaOptions& options) {
    std::vector<CurvePoint> curve;
    for (int64_t bytes = 1 << 10; bytes <= 4 << 20 && !is_set(options.stop); bytes *= 2) {
        CurvePoint& point = curve.emplace_back(CurvePoint{bytes, {}});
        const BankedBuffer buffer{machine.buffer.banks,
                                  bytes * 8 / machine.word_bits / machine.buffer.banks};
        if (buffer.bank_words < 1) continue;
        auto found = layer_optimum(problem, buffer, options.evaluator, options.limits);
        if (auto* optimum = std::get_if<LayerOptimum>(&found)) point.optimum = std::move(*optimum);
    }
    return curve;
}

/// False where it was stopped before it was complete.
bool solve(SolvedLayer& layer, const LayerMachine& machine, const NetworkOptimaOptions& options) {
    if (is_set(options.stop)) return false;
    const auto begin = Clock::now();
    const double cpu_begin = thread_milliseconds();
    auto found = layer_optimum(layer.problem, machine.buffer, options.evaluator, options.limits);
    if (const auto* small = std::get_if<BufferTooSmall>(&found)) {
        throw InfeasibleError(layer.name + ": " + std::to_string(machine.buffer.banks) +
                              " banks; the smallest budget that works is " +
                              std::to_string(small->banks_needed) + " banks");
    }
    layer.optimum = std::get<LayerOptimum>(std::move(found));
    layer.cpu_seconds = (thread_milliseconds() - cpu_begin) / 1000;
    layer.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    layer.by_other =
        divide_banks(layer.problem, layer.optimum.order, machine.buffer, other(options.evaluator));
    if (options.front_up_to) {
        layer.front_sram_words = static_cast<int64_t>(
            *options.front_up_to * static_cast<double>(sram_words(layer.problem, {})));
        layer.front = dram_sram_front(layer.problem, machine.buffer, machine.registers,
                                      layer.front_sram_words, options.stop);
    }
    if (!options.curve) return true;
    layer.curve = dram_curve(layer.problem, machine, options);
    return !is_set(options.stop);
}

}  // namespace

bool SolvedLayer::is_proven(const DramSramPoint& chosen, double weight) const {
    // Beyond the end of the front an order has no fewer DRAM accesses than the layer's fewest, and
    // more SRAM accesses than the end.
    const auto cost = [&](int64_t dram, int64_t sram) {
        return static_cast<double>(dram) + weight * static_cast<double>(sram);
    };
    return front.is_complete && cost(chosen.dram_words, chosen.sram_words) <=
                                    cost(optimum.lower_bound_words, front_sram_words);
}

std::vector<std::string> NetworkOptima::unfinished_fronts() const {
    std::vector<std::string> names;
    for (const SolvedLayer& layer : layers)
        if (!layer.front.is_complete) names.push_back(layer.name);
    return names;
}

std::map<std::string, LayerTraffic> NetworkOptima::totals() const {
    std::map<std::string, LayerTraffic> totals;
    for (const SolvedLayer& layer : layers) {
        LayerTraffic& total = totals[to_string(layer.kind)];
        total.dram = checked_add(total.dram, layer.optimum.dram_words);
        total.compulsory = checked_add(total.compulsory, compulsory_words(layer.problem));
        total.sram = checked_add(total.sram, layer.sram_words());
    }
    return totals;
}

std::map<std::string, LayerOptimum> NetworkOptima::by_shape() const {
    std::map<std::string, LayerOptimum> optima;
    for (const SolvedLayer& layer : layers) optima.emplace(to_text(layer.problem), layer.optimum);
    return optima;
}

NetworkOptima network_optima(const Network& network, const LayerMachine& machine,
                             const NetworkOptimaOptions& options) {
    NetworkOptima result;
    std::vector<SolvedLayer> layers = layers_of(network, options, result.left_out);
    std::vector<size_t> firsts;  // of every shape
    std::map<std::string, size_t> first_of;
    for (size_t n = 0; n < layers.size(); ++n)
        if (first_of.emplace(to_text(layers[n].problem), n).second) firsts.push_back(n);
    std::vector<char> is_solved(layers.size(), 0);
    std::mutex mutex;
    size_t done = 0;
    in_parallel(firsts.size(), options.threads, [&](size_t index) {
        SolvedLayer& layer = layers[firsts[index]];
        if (!solve(layer, machine, options)) return;
        is_solved[firsts[index]] = 1;
        if (!options.progress) return;
        const std::lock_guard lock(mutex);
        options.progress(++done, firsts.size(), layer.name);
    });
    for (SolvedLayer& layer : layers) {
        const size_t first = first_of.at(to_text(layer.problem));
        if (is_solved[first] == 0) {
            result.unsolved.push_back(layer.name);
            continue;
        }
        SolvedLayer& solved = result.layers.emplace_back(layers[first]);
        if (&layer == &layers[first]) continue;
        solved.name = layer.name;
        solved.kind = layer.kind;
        solved.problem = layer.problem;
        solved.seconds = solved.cpu_seconds = 0;
    }
    if (result.layers.empty())
        throw std::runtime_error("explore: interrupted before any layer was solved");
    return result;
}

}  // namespace laminate
