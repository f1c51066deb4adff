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
    /// Of sessions of one compiled network: times alone.
    explicit StepReport(const Manifest& manifest);
    /// The same, and what the model says of the groups of `schedule`, which have the kernels of the code.
    StepReport(const Manifest& manifest, const Network& network, const Schedule& schedule,
               const CpuSpeed& speed, int threads);

    /// A run's Session::step_times().
    void add(const std::vector<StepTime>& run);

    /// A row for each step: median of its time by the clock of the caller's thread, and how much of it threads
    /// waited; of a group that the model knows, also GFLOP/s by the layers' definition, and the part of
    /// `peak_gflops`, the machine's, by the multiplications that kernels execute. Without a model none is needed.
    [[nodiscard]] std::string table(double peak_gflops = 0) const;
    /// [{"step", "layers", "median_ms", "waiting_ms", "predicted_ms", "macs", "multiplications", "bytes",
    /// "kernels"}], of layers outside groups and without a model only the first four.
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
