#include "answers/energy_report.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "answers/output.h"
#include "answers/program.h"
#include "base/error.h"
#include "scheduler/explore/explore.h"

namespace laminate::cli {

std::optional<Elements> register_file_misses(const Network& network, const EnergyTable& machine,
                                             int threads) {
    if (!machine.register_file) return std::nullopt;
    const Elements capacity = machine.register_file->elements;
    ExploreOptions options;
    options.threads = threads;
    options.memory = capacity;
    const Front front = explore(network, options);
    if (front.points.empty()) {
        throw InfeasibleError(
            fmt::format("{}: no schedule fits into the register file of {} elements of machine {}",
                        network.name, capacity.value(), machine.name));
    }
    return std::min_element(front.points.begin(), front.points.end(),
                            [](const FrontPoint& a, const FrontPoint& b) {
                                return a.counts.accesses < b.counts.accesses;
                            })
        ->counts.accesses;
}

std::string energy_text(const Energy& energy) {
    Table table({{"energy", Align::left}, {"nJ", Align::right}, {"share", Align::right}});
    const auto row = [&](const std::string& part, double pj) {
        table.add({part, fmt::format("{:.1f}", pj / 1000),
                   fmt::format("{:.1f} %", 100 * pj / energy.total_pj())});
    };
    row("multiply-accumulate", energy.macs_pj);
    if (energy.register_file_pj > 0) row("register file", energy.register_file_pj);
    row("internal memory", energy.internal_pj);
    row("external memory", energy.external_pj);
    table.add_rule();
    row("total", energy.total_pj());
    return table.text();
}

nlohmann::ordered_json energy_json(const EnergyTable& machine, const Energy& energy) {
    return {{"machine", machine.name},
            {"macs_pj", energy.macs_pj},
            {"register_file_pj", energy.register_file_pj},
            {"internal_pj", energy.internal_pj},
            {"external_pj", energy.external_pj},
            {"total_pj", energy.total_pj()}};
}

}  // namespace laminate::cli
