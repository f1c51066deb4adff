// Where the time of a network's runs goes, step by step, as its sessions measure it.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "runtime/session.h"
#include "scheduler/counts/group_figures.h"
#include "scheduler/machine/cpu_speed.h"

namespace laminate::cli {

class StepReport {
public:
    /// Reports times alone, of sessions of one compiled network.
    explicit StepReport(const Manifest& manifest);
    /// Also reports what the model says of the groups of `schedule`, which have the kernels of the code.
    StepReport(const Manifest& manifest, const Network& network, const Schedule& schedule,
               const CpuSpeed& speed, int threads);

    /// Adds a run's Session::step_times().
    void add(const std::vector<StepTime>& run);

    /// Prints a row for each step. It has the median of the step's time in the caller's thread, in milliseconds,
    /// and the part of it that threads waited. A group that the model knows also has GFLOP/s by the definition
    /// of its layers, and the part of `peak_gflops`, the machine's, that the executed multiplications are. Without
    /// a model the peak is not used.
    [[nodiscard]] std::string table(double peak_gflops = 0) const;
    /// Returns [{"step", "layers", "median_ms", "waiting_ms", "predicted_ms", "macs", "multiplications", "bytes",
    /// "kernels"}]. Layers outside groups, and all steps without a model, have only the first four.
    [[nodiscard]] nlohmann::ordered_json json() const;

private:
    struct Row {
        std::string name;
        std::vector<std::string> layers;
        std::vector<double> ms{}, waiting_ms{};  ///< by run
        std::optional<GroupFigures> figures{};
        double predicted_ms = 0;
    };
    std::vector<Row> rows_;  ///< by step of the manifest; steps that have nothing to do have no times
};

}  // namespace laminate::cli
