// A front of schedules as table, JSON and CSV; report_page.h makes the page for the browser.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "answers/front_file.h"
#include "answers/network_argument.h"
#include "answers/program.h"
#include "nets/network/network.h"
#include "scheduler/counts/bounds.h"
#include "scheduler/counts/energy.h"
#include "scheduler/explore/front.h"

namespace laminate::cli {

/// Positions of `most` of `count` points (of all when there are fewer), evenly, the first and the
/// last among them.
[[nodiscard]] std::vector<size_t> evenly(size_t count, size_t most);

/// What is told of a front's points beside their counts; by point.
struct FrontNotes {
    std::vector<Certificate>
        bounds;  ///< for every schedule with groups of the kind that the front has
    std::optional<EnergyTable> machine;
    std::vector<Energy> energies;  ///< on the machine; empty without one
    /// The point of least energy. The front needs MACs as an axis for it to be the least of all
    /// schedules (energy.h).
    [[nodiscard]] size_t least_energy() const;
};
/// `misses`: register_file_misses() of the machine.
[[nodiscard]] FrontNotes front_notes(const Network& network, const Front& front,
                                     const std::optional<EnergyTable>& machine,
                                     std::optional<Elements> misses);

/// At most `most` rows: the first, the last, and some between, evenly.
[[nodiscard]] std::string front_table(const Front& front, const FrontNotes& notes, size_t most);

/// One line: complete, or how far below the front the proven bounds lie. `only_accesses`: of
/// search/fewest_accesses.h.
[[nodiscard]] std::string front_gap(const Front& front, bool only_accesses);

/// {"schema":"laminate.front","version":3,"model","network","structure_hash","footprint","complete",
///  "gap","bounds":[{"memory_elements","accesses_elements"}],"macs_is_axis",
///  "group_schedules":[TEXT...],"points":[{"accesses_elements","bound_accesses_elements",
///  "achieved_over_bound","live_total_elements","live_bytes","sum_total_elements","macs","groups",
///  "schedule":[INDEX...]}]};
///  a point's schedule is the texts of its groups, by place in
/// "group_schedules": points share most of them. `complete` is false when something was left out:
/// `bounds` is below it; `gap` is null where nothing bounds it. With a machine every point has
/// "energy" (energy_report.h). "names":[NAME...] of a point are what else than its number it is
/// known by: "least-energy". Other keys, for whoever explores to add: "network_given"
/// (network_of_front()), "page" (the file that `report` writes, else report.html).
[[nodiscard]] nlohmann::ordered_json front_json(const Network& network, const Front& front,
                                                const FrontNotes& notes, bool is_complete);
/// The same of schedules that another model found, "model", as the two-level model counts them;
/// nothing is said of schedules that it did not look at.
[[nodiscard]] nlohmann::ordered_json found_front(const Network& network,
                                                 const std::vector<Schedule>& schedules,
                                                 const std::string& model,
                                                 const NetworkArgument& given);
/// For a file: one line per point and group.
[[nodiscard]] std::string front_text(const nlohmann::ordered_json& front);
/// `name` is another name of point n.
void name_point(nlohmann::ordered_json& front, size_t n, const std::string& name);

/// One line per point.
[[nodiscard]] std::string front_csv(const Front& front, const FrontNotes& notes);

}  // namespace laminate::cli
