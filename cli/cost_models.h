// `--model` of `explore` and of `cost`: each model declares options of its own and runs; what all share is declared once.
//
// To add one: a file with a CostModel in it, its declaration below, its name in the list of the verb (explore.cpp or cost.cpp).
#pragma once

#include <CLI/CLI.hpp>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cli/verbs.h"

namespace laminate::cli {

/// What every model may be asked with. An option that several models know belongs here.
struct ModelRequest {
    NetworkArgument network;
    std::string machine;    ///< --machine; empty: not given
    std::string directory;  ///< -o; empty: not given. Always empty in `cost`
    CommonOptions common;
    std::atomic<bool>* stop = nullptr;  ///< set by an interrupt: hand over what was found. Null in `cost`
};

using RunModel = std::function<Exit(const ModelRequest&, const Output&)>;

struct CostModel {
    std::string name;   ///< value of --model
    std::string about;  ///< one line, heads its options in --help
    /// Adds its own options to `options` and returns what runs with them.
    std::function<RunModel(CLI::App& options)> declare;
};

/// --model with one of several models on a verb, the first by default; refuses options of the models that were not chosen.
class ModelChoice {
public:
    ModelChoice(CLI::App& verb, const std::vector<CostModel>& models);
    /// Throws UsageError when an option of another model was given.
    [[nodiscard]] Exit run(const ModelRequest& request, const Output& output) const;

private:
    struct Entry {
        std::string name;
        CLI::App* options;
        RunModel run;
    };
    std::string chosen_;
    std::vector<Entry> entries_;
};

/// `stop` of a request is set while this lives and the user interrupts.
class InterruptHandler {
public:
    InterruptHandler();
    ~InterruptHandler();
    InterruptHandler(const InterruptHandler&) = delete;
    InterruptHandler& operator=(const InterruptHandler&) = delete;
    [[nodiscard]] std::atomic<bool>& stop() const;

private:
    void (*before_)(int);
};

[[nodiscard]] CostModel explore_two_level();      ///< explore_two_level.cpp
[[nodiscard]] CostModel explore_layer_optimum();  ///< layer_optimum.cpp
[[nodiscard]] CostModel cost_two_level();     ///< cost.cpp
[[nodiscard]] CostModel explore_depth_first();  ///< explore_depth_first.cpp
[[nodiscard]] CostModel cost_depth_first();   ///< depth_first.cpp

}  // namespace laminate::cli
