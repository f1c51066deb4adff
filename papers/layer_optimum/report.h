// The answer of explore --model layer-optimum, and its one writer: JSON, tables, CSV and curves.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "answers/curve_page.h"
#include "answers/output.h"
#include "papers/layer_optimum/fused_groups.h"
#include "papers/layer_optimum/layer_machine.h"
#include "papers/layer_optimum/network_optima.h"
#include "papers/layer_optimum/optimum_schedules.h"

namespace laminate::cli {

struct LayerOptimumAnswer {
    const Network& network;
    std::string machine_name;
    LayerMachine machine;
    SpillEvaluator evaluator = SpillEvaluator::eq7;
    bool grouped_as_one = false;
    std::optional<double> weight;  ///< of SRAM accesses, where points of the fronts are chosen
    NetworkOptima optima;

    int64_t max_group_layers = 0;
    std::optional<FusedOptimum> fused;
    double fused_seconds = 0;

    std::string directory;  ///< the schedule's
    std::optional<OptimumSchedule> schedule;

    [[nodiscard]] int64_t word_bytes() const { return machine.word_bits / 8; }
    /// Whether nothing was interrupted.
    [[nodiscard]] bool is_complete() const;
};

/// `network_given`: the network as the user named it.
[[nodiscard]] nlohmann::ordered_json to_json(const LayerOptimumAnswer& answer,
                                             const nlohmann::ordered_json& network_given);
/// What the page of its schedule shows beside it, as front_json() names it.
[[nodiscard]] nlohmann::ordered_json findings_json(const LayerOptimumAnswer& answer);
void print(const LayerOptimumAnswer& answer, const Output& output);
[[nodiscard]] std::string curves_csv(const LayerOptimumAnswer& answer);
[[nodiscard]] std::vector<LayerCurve> page_curves(const LayerOptimumAnswer& answer);

}  // namespace laminate::cli
