// The page of a sweep's directory: compares its jobs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "answers/output.h"
#include "cli/sweep_jobs.h"

namespace laminate::cli {

/// A job whose front is drawn.
struct JobCurve {
    SweepJob job;
    struct Point {
        int64_t bytes = 0;
        int64_t accesses = 0;
    };
    std::vector<Point> points;
};

/// HTML that needs nothing else: the table of all jobs, whose first column holds their ids, and for
/// each network the accesses of its jobs against memory. `pages` are the ids of jobs with a page of
/// their own, ID/report.html.
[[nodiscard]] std::string jobs_page(const std::string& name, const Table& table,
                                    const std::vector<JobCurve>& curves,
                                    const std::vector<std::string>& pages);

}  // namespace laminate::cli
