// laminate study: the case studies of DeFiNES (section V), which sweep tile sizes and overlap modes
// for several networks on several machines.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>

#include "answers/json_text.h"
#include "base/error.h"
#include "base/files.h"
#include "base/new_directory.h"
#include "base/parallel.h"
#include "nets/zoo/zoo.h"
#include "papers/depth_first/report.h"
#include "papers/depth_first/sweep.h"
#include "papers/verbs.h"

namespace laminate::cli {

namespace {

using depth_first::DepthFirst;
using depth_first::Sweep;
using depth_first::SweepPoint;

/// The machines of the paper's Table I, each before its variant for depth-first execution.
const std::vector<std::string> all_machines{"meta_proto", "meta_proto_df", "tpu",    "tpu_df",
                                            "edge_tpu",   "edge_tpu_df",   "ascend", "ascend_df",
                                            "tesla_npu",  "tesla_npu_df"};
const std::vector<std::string> all_networks{"fsrcnn-defines", "dmcnn-vd-defines", "mccnn-defines",
                                            "mobilenetv1-defines", "resnet18-defines"};

struct Study {
    std::string name;
    std::string about;
    std::vector<std::string> machines;
    std::vector<std::string> networks;
};

const std::vector<Study>& studies() {
    static const std::vector<Study> all{
        {"defines-1",
         "FSRCNN on the Meta-proto-like DF machine: tile sizes and overlap modes (section V-A)",
         {"meta_proto_df"},
         {"fsrcnn-defines"}},
        {"defines-2",
         "five networks on the Meta-proto-like DF machine (section V-B)",
         {"meta_proto_df"},
         all_networks},
        {"defines-3", "five networks on ten machines (section V-C)", all_machines, all_networks},
    };
    return all;
}

struct DepthFirstStudyOptions {
    std::string study;
    std::vector<std::string> machines, networks;
    std::string directory;
    std::string objective = "energy";
    DepthFirstFidelity fidelity;
};

struct Cell {
    std::string machine, network;
    Sweep sweep;
};

double geometric_mean(const std::vector<double>& values) {
    double sum = 0;
    for (const double value : values) sum += std::log(value);
    return std::exp(sum / static_cast<double>(values.size()));
}

std::string cost_text(double energy_pj, int64_t latency_cycles) {
    return fmt::format("{:.4g} / {:.1f}", energy_pj / 1e9,
                       static_cast<double>(latency_cycles) / 1e6);
}

/// Case study 2: the gain of each network and the point that reaches it.
std::string networks_text(const std::vector<Cell>& cells) {
    Table table({{"network: mJ / Mcycles"},
                 {"single layers", Align::right},
                 {"layer by layer", Align::right},
                 {"best point", Align::right},
                 {"tile"},
                 {"best per stack", Align::right},
                 {"gain", Align::right}});
    for (const Cell& cell : cells) {
        const Sweep& sweep = cell.sweep;
        const SweepPoint& best = sweep.points[*sweep.best];
        const auto text = [](const std::optional<SweepPoint>& point) {
            return point ? cost_text(point->energy_pj, point->latency_cycles) : "-";
        };
        table.add({cell.network, text(sweep.single_layer), text(sweep.layer_by_layer),
                   cost_text(best.energy_pj, best.latency_cycles), strategy_text(best.strategy),
                   sweep.combination
                       ? cost_text(sweep.combination->energy_pj, sweep.combination->latency_cycles)
                       : "-",
                   sweep.single_layer && sweep.combination
                       ? fmt::format("{:.1f}",
                                     sweep.single_layer->energy_pj / sweep.combination->energy_pj)
                       : "-"});
    }
    return table.text() + "gain: energy of single layers over that of the best per stack\n";
}

/// Geometric means of energy ratios over the networks of a machine. The last two compare a variant
/// for depth-first execution (DF) with its default machine; they are 0 for other machines.
struct Means {
    std::string machine;
    double gain = 0;               ///< layer by layer over the best point
    double best_of_default = 0;    ///< best point on the default over best point on the variant
    double layers_of_default = 0;  ///< layer by layer on the default over best point on the variant
};

std::vector<Means> means_of(const std::vector<Cell>& cells) {
    std::map<std::string, std::map<std::string, const Sweep*>> by_machine;
    std::vector<std::string> order;
    for (const Cell& cell : cells) {
        if (!by_machine.contains(cell.machine)) order.push_back(cell.machine);
        by_machine[cell.machine][cell.network] = &cell.sweep;
    }
    std::vector<Means> result;
    for (const std::string& machine : order) {
        Means means{.machine = machine};
        std::vector<double> gains, bests, layers;
        const bool is_variant = machine.ends_with("_df");
        const auto plain =
            is_variant ? by_machine.find(machine.substr(0, machine.size() - 3)) : by_machine.end();
        for (const auto& [network, sweep] : by_machine[machine]) {
            const double best = sweep->points[*sweep->best].energy_pj;
            if (sweep->layer_by_layer) gains.push_back(sweep->layer_by_layer->energy_pj / best);
            if (plain == by_machine.end() || !plain->second.contains(network)) continue;
            const Sweep& other = *plain->second.at(network);
            bests.push_back(other.points[*other.best].energy_pj / best);
            if (other.layer_by_layer) layers.push_back(other.layer_by_layer->energy_pj / best);
        }
        if (!gains.empty()) means.gain = geometric_mean(gains);
        if (!bests.empty()) means.best_of_default = geometric_mean(bests);
        if (!layers.empty()) means.layers_of_default = geometric_mean(layers);
        result.push_back(means);
    }
    return result;
}

/// Case study 3: layer by layer and the best point of each machine and network, mJ, and Means.
std::string machines_text(const std::vector<Cell>& cells,
                          const std::vector<std::string>& networks) {
    std::vector<Table::Column> columns{{"machine: mJ layer by layer, best"}};
    for (const std::string& network : networks) columns.push_back({network, Align::right});
    Table table(std::move(columns));
    for (size_t begin = 0; begin < cells.size(); begin += networks.size()) {
        std::vector<std::string> row{cells[begin].machine};
        for (size_t n = begin; n < begin + networks.size(); ++n) {
            const Sweep& sweep = cells[n].sweep;
            row.push_back(fmt::format(
                "{}, {:.4g}",
                sweep.layer_by_layer ? fmt::format("{:.4g}", sweep.layer_by_layer->energy_pj / 1e9)
                                     : "-",
                sweep.points[*sweep.best].energy_pj / 1e9));
        }
        table.add(std::move(row));
    }
    Table means({{"geometric means over networks"},
                 {"LBL / best", Align::right},
                 {"best of default / best", Align::right},
                 {"LBL of default / best", Align::right}});
    const auto number = [](double value) { return value > 0 ? fmt::format("{:.2f}", value) : ""; };
    for (const Means& mean : means_of(cells))
        means.add({mean.machine, number(mean.gain), number(mean.best_of_default),
                   number(mean.layers_of_default)});
    return table.text() + "\n" + means.text();
}

nlohmann::ordered_json cell_json(const Cell& cell) {
    const Sweep& sweep = cell.sweep;
    nlohmann::ordered_json json{
        {"machine", cell.machine}, {"network", cell.network}, {"points", sweep.points.size()}};
    if (sweep.single_layer) json["single_layer"] = sweep_point_json(*sweep.single_layer);
    if (sweep.layer_by_layer) json["layer_by_layer"] = sweep_point_json(*sweep.layer_by_layer);
    json["best"] = sweep_point_json(sweep.points[*sweep.best]);
    if (sweep.combination)
        json["best_per_stack"] = {{"energy_pj", sweep.combination->energy_pj},
                                  {"latency_cycles", sweep.combination->latency_cycles}};
    json["worst_mapping_gap"] = worst_gap(sweep);
    return json;
}

/// One line for each cell whose figures are not proven to be the least.
std::string unproven_text(const std::vector<Cell>& cells) {
    std::string text;
    for (const Cell& cell : cells) {
        if (const std::string gap = gap_text(worst_gap(cell.sweep)); !gap.empty())
            text += fmt::format("{} on {}: {}\n", cell.network, cell.machine, gap);
    }
    return text;
}

std::string csv_of(const std::vector<Cell>& cells) {
    std::string csv =
        "machine,network,overlap,tile_columns,tile_rows,energy_pj,latency_cycles,on_chip_bits,macs,"
        "mapping_gap\n";
    for (const Cell& cell : cells) {
        for (const SweepPoint& point : cell.sweep.points) {
            if (!point.fits) continue;
            csv +=
                fmt::format("{},{},{},{},{},{:.17g},{},{},{},{:.17g}\n", cell.machine, cell.network,
                            depth_first::to_string(point.strategy.overlap), point.strategy.tile.x,
                            point.strategy.tile.y, point.energy_pj, point.latency_cycles,
                            point.on_chip_bits, point.macs, point.mapping_gap);
        }
    }
    return csv;
}

std::vector<std::string> chosen(const std::vector<std::string>& wanted,
                                const std::vector<std::string>& all, const std::string& what) {
    if (wanted.empty()) return all;
    for (const std::string& name : wanted) {
        if (std::ranges::find(all, name) != all.end()) continue;
        std::string names;
        for (const std::string& known : all) names += (names.empty() ? "" : ", ") + known;
        throw UsageError(fmt::format("{}: found \"{}\", expected one of {}", what, name, names));
    }
    return wanted;
}

/// What a study compares: every network on every machine.
struct Question {
    std::vector<std::string> machines, networks;
};

struct Answer {
    std::vector<Cell> cells;  ///< by machine, then by network
    double seconds = 0;
};

Question question_of(const DepthFirstStudyOptions& options) {
    const Study& study = *std::ranges::find(studies(), options.study, &Study::name);
    return {chosen(options.machines, study.machines, "--machines"),
            chosen(options.networks, study.networks, "--networks")};
}

/// Two sweeps run at a time: one works while the other waits for the last mappings of a round.
std::vector<Cell> swept_cells(const Question& q, const DepthFirstStudyOptions& options, int threads,
                              const Output& output) {
    std::vector<Cell> cells;
    for (const std::string& machine : q.machines) {
        for (const std::string& network : q.networks) cells.push_back({machine, network, {}});
    }
    const InterruptHandler interrupt;
    OccasionalNotes notes(output);
    std::mutex noting;
    in_parallel(cells.size(), std::min(2, threads), [&](size_t n) {
        Cell& cell = cells[n];
        const DepthFirst model(open_machine(cell.machine), zoo_network(cell.network),
                               options.fidelity.get());
        depth_first::SweepOptions search;
        search.objective = depth_first::parse_objective(options.objective);
        search.threads = threads;
        search.stop = interrupt.stop();
        search.progress = [&](size_t done, size_t total) {
            const std::scoped_lock lock(noting);
            notes.note([&] {
                return fmt::format("{} on {}, {} of {}: {} of {} points", cell.network,
                                   cell.machine, n + 1, cells.size(), done, total);
            });
        };
        cell.sweep = depth_first::sweep(model, search);
    });
    return cells;
}

Answer solve(const Question& q, const DepthFirstStudyOptions& options, int threads,
             const Output& output) {
    const auto begin = std::chrono::steady_clock::now();
    Answer answer{swept_cells(q, options, threads, output)};
    for (const Cell& cell : answer.cells) {
        if (!cell.sweep.complete) throw std::runtime_error("interrupted: nothing was written");
        if (!cell.sweep.best)
            throw InfeasibleError(fmt::format("{}: no tile fits the memories of machine {}",
                                              cell.network, cell.machine));
    }
    answer.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    return answer;
}

nlohmann::ordered_json means_json(const std::vector<Cell>& cells) {
    auto means = nlohmann::ordered_json::array();
    for (const Means& mean : means_of(cells)) {
        nlohmann::ordered_json entry{{"machine", mean.machine},
                                     {"layer_by_layer_over_best", mean.gain}};
        if (mean.best_of_default > 0) {
            entry["best_of_default_over_best"] = mean.best_of_default;
            entry["layer_by_layer_of_default_over_best"] = mean.layers_of_default;
        }
        means.push_back(std::move(entry));
    }
    return means;
}

nlohmann::ordered_json answer_json(const Answer& answer, const DepthFirstStudyOptions& options) {
    auto cells = nlohmann::ordered_json::array();
    for (const Cell& cell : answer.cells) cells.push_back(cell_json(cell));
    return {{"schema", "laminate.study"},
            {"version", 1},
            {"study", options.study},
            {"as_published", options.fidelity.as_published},
            {"lpf_limit", options.fidelity.lpf_limit},
            {"objective", options.objective},
            {"seconds", answer.seconds},
            {"cells", std::move(cells)},
            {"geometric_means", means_json(answer.cells)}};
}

/// The tables of case study 1, 2 or 3, depending on the number of machines and networks.
std::string answer_text(const Question& q, const std::vector<Cell>& cells) {
    if (cells.size() == 1) return sweep_text(cells.front().sweep);
    return (q.machines.size() == 1 ? networks_text(cells) : machines_text(cells, q.networks)) +
           unproven_text(cells);
}

Exit run(const DepthFirstStudyOptions& options, const CommonOptions& common, const Output& output) {
    const Question q = question_of(options);
    std::optional<NewDirectory> files;
    if (!options.directory.empty())
        files.emplace(
            options.directory,
            [](const auto& place) { return answer_files(place, "study.json", "laminate.study"); },
            "laminate study");
    const Answer answer = solve(q, options, common.thread_count(), output);
    const nlohmann::ordered_json json = answer_json(answer, options);
    if (files) {
        write_file_atomically(files->aside() / "study.json", json_text(json));
        write_file_atomically(files->aside() / "study.csv", csv_of(answer.cells));
        files->publish();
    }
    size_t points = 0;
    for (const Cell& cell : answer.cells) points += cell.sweep.points.size();
    output.print(answer_text(q, answer.cells));
    output.print(fmt::format(
        "{} points of {} sweeps in {:.1f} s{}", points, answer.cells.size(), answer.seconds,
        files ? fmt::format("; all in {}: study.json, study.csv", options.directory) : ""));
    output.json(json);
    return Exit::ok;
}

}  // namespace

void add_study(Program& program) {
    CLI::App* verb = program.add_verb(
        "study", "The case studies of DeFiNES, run again",
        "  laminate study defines-1\n"
        "  laminate study defines-2 --as-published --lpf-limit 6\n"
        "  laminate study defines-3 -o study/\n"
        "  laminate study defines-3 --machines tpu,tpu_df --networks fsrcnn-defines");
    auto options = std::make_shared<DepthFirstStudyOptions>();
    std::vector<std::string> names;
    std::string about = "One of";
    for (const Study& study : studies()) {
        names.push_back(study.name);
        about += fmt::format("{} {}: {}", names.size() == 1 ? "" : ";", study.name, study.about);
    }
    verb->add_option("STUDY", options->study, about)->required()->check(CLI::IsMember(names));
    verb->add_option("--machines", options->machines, "Only these of its machines")
        ->delimiter(',')
        ->type_name("NAME");
    verb->add_option("--networks", options->networks, "Only these of its networks")
        ->delimiter(',')
        ->type_name("NAME");
    verb->add_option(
            "-o,--output", options->directory,
            "Directory to make; files of an earlier study there are replaced, other files stay")
        ->type_name("DIR");
    verb->add_option("--objective", options->objective,
                     "What best points and the mapping of each layer minimise: energy, latency or "
                     "edp")
        ->capture_default_str();
    options->fidelity.declare(*verb);
    program.on(verb, [options, &program](const Output& output) {
        return run(*options, program.common(), output);
    });
}

}  // namespace laminate::cli
