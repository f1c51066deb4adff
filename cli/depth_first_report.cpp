#include "cli/depth_first_report.h"

#include <fmt/core.h>

#include <charconv>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cli/output.h"

namespace laminate::cli {

namespace {

using depth_first::DepthFirst;
using depth_first::DepthFirstCost;
using depth_first::WordCounts;

double energy_of(const Memory& memory, const WordCounts& words) {
    return memory.read.word_pj * words.reads() + memory.write.word_pj * words.writes();
}

nlohmann::ordered_json words_json(const Memory& memory, const WordCounts& words) {
    return {{"reads_words", words.reads()},
            {"writes_words", words.writes()},
            {"read_to_lower_words", words.read_to_lower},
            {"write_from_lower_words", words.write_from_lower},
            {"read_to_higher_words", words.read_to_higher},
            {"write_from_higher_words", words.write_from_higher},
            {"energy_pj", energy_of(memory, words)}};
}

}  // namespace

void DepthFirstFidelity::declare(CLI::App& options) {
    options.add_flag("--as-published", as_published, "The paper's public artifact to the letter, with its quirks (docs/defines.md)");
    options.add_option("--lpf-limit", lpf_limit,
                       "Map layers by orders of at most N merged prime factors, as LOMA does; 0: all factors and allocations, exactly")
        ->type_name("N")
        ->capture_default_str();
}

depth_first::Fidelity DepthFirstFidelity::get() const {
    depth_first::Fidelity fidelity;
    if (as_published) fidelity.quirks = depth_first::Quirks::as_published();
    fidelity.loop_limit = lpf_limit;
    return fidelity;
}

depth_first::TileSize parse_tile(const std::string& text) {
    depth_first::TileSize tile;
    const size_t cross = text.find('x');
    const auto number = [&](size_t begin, size_t end, int64_t& value) {
        const auto [stop, error] = std::from_chars(text.data() + begin, text.data() + end, value);
        return error == std::errc() && stop == text.data() + end && value >= 1;
    };
    if (cross == std::string::npos || !number(0, cross, tile.x) || !number(cross + 1, text.size(), tile.y))
        throw UsageError(fmt::format("tile: found \"{}\", expected COLUMNSxROWS as in 60x72", text));
    return tile;
}

std::string depth_first_text(const DepthFirst& model, const DepthFirstCost& cost) {
    Table table({{"memory"}, {"I uJ", Align::right}, {"W uJ", Align::right}, {"O uJ", Align::right}, {"copies uJ", Align::right},
                 {"sum uJ", Align::right}});
    const auto micro = [](double pj) { return fmt::format("{:.2f}", pj / 1e6); };
    const std::vector<Memory>& memories = model.machine().memories;
    for (size_t m = 0; m < memories.size(); ++m) {
        std::vector<std::string> cells{memories[m].name};
        double sum = 0;
        for (const Operand operand : all_operands) {
            const double energy = energy_of(memories[m], cost.words[m][static_cast<size_t>(operand)]);
            sum += energy;
            cells.push_back(memories[m].serves(operand) ? micro(energy) : "");
        }
        const double copies = energy_of(memories[m], cost.copy_words[m]);
        cells.push_back(micro(copies));
        cells.push_back(micro(sum + copies));
        table.add(std::move(cells));
    }
    table.add({"multiply-accumulate", "", "", "", "", micro(cost.mac_pj)});
    table.add_rule();
    table.add({"total", "", "", "", micro(cost.copy_pj), micro(cost.energy_pj)});
    std::string stacks;
    for (const std::vector<size_t>& stack : cost.stacks) {
        const auto& layers = model.workload().layers;
        stacks += stacks.empty() ? "" : ", ";
        stacks += stack.size() == 1 ? layers[stack.front()].name : layers[stack.front()].name + ".." + layers[stack.back()].name;
    }
    return table.text() + fmt::format("{:.4f} mJ, {} cycles, {} MACs, {} kinds of tiles\n{} stack{}: {}", cost.energy_pj / 1e9,
                                      grouped(cost.latency_cycles), grouped(cost.macs), cost.tile_kinds, cost.stacks.size(),
                                      cost.stacks.size() == 1 ? "" : "s", stacks);
}

nlohmann::ordered_json depth_first_json(const DepthFirst& model, const depth_first::Strategy& strategy, const DepthFirstCost& cost) {
    auto memories = nlohmann::ordered_json::array();
    for (size_t m = 0; m < cost.words.size(); ++m) {
        const Memory& memory = model.machine().memories[m];
        nlohmann::ordered_json entry{{"memory", memory.name}};
        for (const Operand operand : all_operands) {
            if (memory.serves(operand)) entry[to_string(operand)] = words_json(memory, cost.words[m][static_cast<size_t>(operand)]);
        }
        entry["copies"] = words_json(memory, cost.copy_words[m]);
        memories.push_back(std::move(entry));
    }
    auto stacks = nlohmann::ordered_json::array();
    for (const std::vector<size_t>& stack : cost.stacks) {
        auto names = nlohmann::ordered_json::array();
        for (const size_t layer : stack) names.push_back(model.workload().layers[layer].name);
        stacks.push_back(std::move(names));
    }
    return {{"tile_columns", strategy.tile.x},
            {"tile_rows", strategy.tile.y},
            {"overlap", depth_first::to_string(strategy.overlap)},
            {"stack_rule", depth_first::to_string(strategy.stacks)},
            {"energy_pj", cost.energy_pj},
            {"mac_energy_pj", cost.mac_pj},
            {"copy_energy_pj", cost.copy_pj},
            {"latency_cycles", cost.latency_cycles},
            {"macs", cost.macs},
            {"tile_kinds", cost.tile_kinds},
            {"stacks", stacks},
            {"memories", memories}};
}

}  // namespace laminate::cli
