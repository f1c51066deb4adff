// The page of a sweep: report.html of `explore --model depth-first`.
#pragma once

#include <string>
#include <vector>

#include "papers/depth_first/depth_first.h"
#include "papers/depth_first/sweep.h"

namespace laminate::cli {

/// What the page says beside the sweep.
struct SweepPageNotes {
    std::string network;
    std::string about;               ///< machine, fidelity, program
    std::vector<std::string> nests;  ///< loop nests of the front's points, parallel to
                                     ///< Sweep::front; empty where a point is no schedule
    bool has_schedules = false;      ///< schedules.html lies beside the page
};

/// One HTML file that needs nothing else: a summary, the front (a point leads to its loop nest),
/// heat maps of energy and latency for each overlap mode, and the best point's energy by memory and
/// operand.
[[nodiscard]] std::string sweep_page(const depth_first::DepthFirst& model,
                                     const depth_first::Sweep& sweep, const SweepPageNotes& notes);

}  // namespace laminate::cli
