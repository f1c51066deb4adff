#include "cli/step_report.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <variant>

#include "answers/output.h"
#include "base/percentile.h"
#include "scheduler/explore/timed/timed_front.h"

namespace laminate::cli {

namespace {

double median_of(std::vector<double> values) {
    std::ranges::sort(values);
    return at_percent(values, 50);
}

}  // namespace

StepReport::StepReport(const Manifest& manifest) {
    for (const Step& step : manifest.steps) {
        const auto* group = std::get_if<GroupStep>(&step);
        const std::string& name = name_of(step);
        rows_.push_back({name, group ? group->layers : std::vector<std::string>{name}});
    }
}

StepReport::StepReport(const Manifest& manifest, const Network& network, const Schedule& schedule,
                       const CpuSpeed& speed, int threads)
    : StepReport(manifest) {
    const std::vector<double> predicted =
        predicted_group_milliseconds(network, schedule, speed, threads);
    for (size_t g = 0; g < predicted.size(); ++g) {
        const GroupSchedule& group = schedule.groups()[g];
        const auto row = std::ranges::find_if(
            rows_, [&](const Row& r) { return r.layers.back() == group.nests.back().layer; });
        if (row == rows_.end()) continue;
        row->figures = group_figures(network, group);
        row->predicted_ms = predicted[g];
    }
}

void StepReport::add(const std::vector<StepTime>& run) {
    for (const StepTime& time : run) {
        Row& row = rows_[time.step];
        row.ms.push_back(time.work_ms.front() + time.waiting_ms.front());
        row.waiting_ms.push_back(
            std::accumulate(time.waiting_ms.begin(), time.waiting_ms.end(), 0.0) /
            static_cast<double>(time.waiting_ms.size()));
    }
}

std::string StepReport::table(double peak_gflops) const {
    const bool has_model = std::ranges::any_of(rows_, [](const Row& row) { return row.figures.has_value(); });
    std::vector<Table::Column> columns{
        {"step"}, {"ms", Align::right}, {"of all", Align::right}, {"waiting", Align::right}};
    if (has_model) {
        columns.insert(columns.end(), {{"predicted ms", Align::right},
                                       {"GFLOP/s", Align::right},
                                       {"of peak", Align::right},
                                       {"GB/s", Align::right},
                                       {"kernels"}});
    }
    double all = 0;
    for (const Row& row : rows_) all += row.ms.empty() ? 0 : median_of(row.ms);
    Table table(columns);
    for (const Row& row : rows_) {
        if (row.ms.empty()) continue;
        const double ms = median_of(row.ms);
        std::vector<std::string> cells{row.name, fmt::format("{:.3f}", ms),
                                       fmt::format("{:.1f} %", 100 * ms / all),
                                       fmt::format("{:.0f} %", 100 * median_of(row.waiting_ms) / ms)};
        if (row.figures) {
            const auto a_second = [&](int64_t amount, double of_one) {
                return of_one * static_cast<double>(amount) / (1e6 * ms);  // in thousands of millions
            };
            const double executed = a_second(row.figures->multiplications.value(), 2);
            cells.insert(cells.end(),
                         {fmt::format("{:.3f}", row.predicted_ms),
                          fmt::format("{:.1f}", a_second(row.figures->macs.value(), 2)),
                          fmt::format("{:.0f} %", 100 * executed / peak_gflops),
                          fmt::format("{:.1f}", a_second(row.figures->bytes.value(), 1)),
                          row.figures->kernels});
        }
        cells.resize(columns.size());
        table.add(cells);
    }
    return table.text();
}

nlohmann::ordered_json StepReport::json() const {
    auto steps = nlohmann::ordered_json::array();
    for (const Row& row : rows_) {
        if (row.ms.empty()) continue;
        nlohmann::ordered_json step{{"step", row.name},
                                    {"layers", row.layers},
                                    {"median_ms", median_of(row.ms)},
                                    {"waiting_ms", median_of(row.waiting_ms)}};
        if (row.figures) {
            step["predicted_ms"] = row.predicted_ms;
            step["macs"] = row.figures->macs.value();
            step["multiplications"] = row.figures->multiplications.value();
            step["bytes"] = row.figures->bytes.value();
            step["kernels"] = row.figures->kernels;
        }
        steps.push_back(std::move(step));
    }
    return steps;
}

}  // namespace laminate::cli
