// The model over a whole network: every layer with weights at its optimum, with its front of DRAM
// and SRAM accesses and its curve over buffer sizes where they are asked for. Layers of one shape
// are solved once; shapes are shared among threads.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "nets/network/network.h"
#include "papers/layer_optimum/dram_sram_front.h"
#include "papers/layer_optimum/layer_machine.h"
#include "papers/layer_optimum/optimum.h"

namespace laminate {

/// Fewest DRAM accesses in a buffer of a size; no optimum where it is too small.
struct CurvePoint {
    int64_t buffer_bytes = 0;
    std::optional<LayerOptimum> optimum;
};

struct SolvedLayer {
    std::string name;
    LayerKind kind = LayerKind::conv;
    ConvolutionProblem problem;
    LayerOptimum optimum;
    /// The optimum's order under the other evaluator; none where its stream is too long.
    std::optional<DividedBanks> by_other;
    DramSramFront front;           ///< empty unless asked for
    int64_t front_sram_words = 0;  ///< where the front ends
    std::vector<CurvePoint> curve;
    double seconds = 0;  ///< of the search for the optimum; 0 for a shape that was solved before
    double cpu_seconds = 0;

    [[nodiscard]] int64_t sram_words() const {
        return laminate::sram_words(problem, optimum.order);
    }
    /// Whether no order, however many SRAM accesses it has, has a smaller DRAM + weight * SRAM than
    /// this point of the front.
    [[nodiscard]] bool is_proven(const DramSramPoint& chosen, double weight) const;
};

/// Words of several layers together.
struct LayerTraffic {
    int64_t dram = 0;
    int64_t compulsory = 0;
    int64_t sram = 0;
};

struct NetworkOptima {
    std::vector<SolvedLayer> layers;
    std::vector<std::string> unsolved;  ///< stopped before their shape was solved
    /// Layers with weights that no schedule covers: some of their outputs read padding alone.
    std::vector<std::string> left_out;

    /// Layers whose front was stopped.
    [[nodiscard]] std::vector<std::string> unfinished_fronts() const;
    /// By the name of the layers' kind.
    [[nodiscard]] std::map<std::string, LayerTraffic> totals() const;
    /// Optima by to_text() of their problems.
    [[nodiscard]] std::map<std::string, LayerOptimum> by_shape() const;
};

struct NetworkOptimaOptions {
    SpillEvaluator evaluator = SpillEvaluator::eq7;
    StreamLimits limits;
    bool grouped_as_one = false;  ///< with_groups_as_published()
    /// The front of DRAM and SRAM accesses up to so many times the least SRAM accesses.
    std::optional<double> front_up_to;
    bool curve = false;  ///< for buffers of 1 KiB to 4 MiB in the machine's number of banks
    int threads = 1;
    const std::atomic<bool>* stop = nullptr;
    /// Called from one thread at a time.
    std::function<void(size_t done, size_t shapes, const std::string& layer)> progress = {};
};

[[nodiscard]] constexpr SpillEvaluator other(SpillEvaluator evaluator) {
    return evaluator == SpillEvaluator::eq7 ? SpillEvaluator::belady : SpillEvaluator::eq7;
}

/// Throws InputError for a network without a layer that the model covers, InfeasibleError where a
/// layer needs more banks, and std::runtime_error where it was stopped before any layer was solved.
[[nodiscard]] NetworkOptima network_optima(const Network& network, const LayerMachine& machine,
                                           const NetworkOptimaOptions& options = {});

}  // namespace laminate
