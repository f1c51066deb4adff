// A front of schedules as table, JSON and CSV; report_page.h makes the page for the browser.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "answers/front_file.h"
#include "answers/network_argument.h"
#include "answers/output.h"
#include "answers/program.h"
#include "nets/network/network.h"
#include "scheduler/counts/bounds.h"
#include "scheduler/counts/energy.h"
#include "scheduler/explore/front.h"

namespace laminate::cli {

/// Facts about a front's points besides their counts, by point.
struct FrontNotes {
    /// Each holds for every schedule whose groups are of the front's kind.
    std::vector<Certificate> bounds;
    std::optional<EnergyTable> machine;
    std::vector<Energy> energies;  ///< on the machine; empty without one
    /// The point of least energy. It has the least energy of all schedules only when MACs are an
    /// axis of the front (energy.h).
    [[nodiscard]] size_t least_energy() const;
};
/// `misses`: register_file_misses() of the machine.
[[nodiscard]] FrontNotes front_notes(const Network& network, const Front& front,
                                     const std::optional<EnergyTable>& machine,
                                     std::optional<Elements> misses);

/// At most `most` rows, evenly spread, including the first and the last.
[[nodiscard]] std::string front_table(const Front& front, const FrontNotes& notes, size_t most);

/// One line: complete, or how far below the front the proven bounds lie. `only_accesses`: of
/// search/fewest_accesses.h.
[[nodiscard]] std::string front_gap(const Front& front, bool only_accesses);

/// {"schema":"laminate.front", "version":3, "model", "network", "structure_hash", "footprint",
///  "complete", "gap", "bounds":[{"memory_elements","accesses_elements"}], "macs_is_axis",
///  "layer_by_layer":{"accesses_elements", "live_total_elements", "sum_total_elements", "macs",
///                    "groups"},
///  "group_schedules":[TEXT...],
///  "points":[{"accesses_elements", "bound_accesses_elements", "achieved_over_bound",
///             "live_total_elements", "live_bytes", "sum_total_elements", "macs", "groups",
///             "energy", "names":[NAME...], "schedule":[INDEX...]}]}
/// A point's schedule lists its groups by their places in "group_schedules", because points share
/// most of them. "complete" is false when something was left out; "bounds" lie below that too, and
/// "gap" is null when nothing bounds it. "energy" (energy_report.h) is there with a machine.
/// "names" are further names of a point: "least-energy". The caller may add other keys:
/// "network_given" (network_of_front()), "page" (the file that `report` writes, else report.html),
/// and what the page of a model shows beside the schedules: "headline", a sentence; "findings", a
/// list of finding_json(); "found_groups", names of layers by group, where these are not the
/// schedule's groups.
[[nodiscard]] nlohmann::ordered_json front_json(const Network& network, const Front& front,
                                                const FrontNotes& notes, bool is_complete);
/// The same for schedules that another model, "model", has found, counted by the two-level model.
/// It claims nothing about schedules that the other model did not look at.
[[nodiscard]] nlohmann::ordered_json found_front(const Network& network,
                                                 const std::vector<Schedule>& schedules,
                                                 const std::string& model,
                                                 const NetworkArgument& given);
/// A table of a model on the page of its schedules: {"title", "text", "columns", "rows"}, the last
/// two as Table::json() gives them. `text` says how to read it.
[[nodiscard]] nlohmann::ordered_json finding_json(const std::string& title, const std::string& text,
                                                  const Table& table);
/// The layers of the front's schedules, each a group of its own: what fusion is compared with.
[[nodiscard]] Schedule layers_alone(const Network& network, const Front& front);

/// The text of the file: one line per point and group.
[[nodiscard]] std::string front_text(const nlohmann::ordered_json& front);
/// Gives point n another name.
void name_point(nlohmann::ordered_json& front, size_t n, const std::string& name);

/// One line per point.
[[nodiscard]] std::string front_csv(const Front& front, const FrontNotes& notes);

}  // namespace laminate::cli
