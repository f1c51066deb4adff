// `--model` of `explore` and `cost`. Each model declares its own options and runs; options that
// several models share are declared once.
//
// To add one: a file with a CostModel in it, its declaration in cli/verbs.h or papers/verbs.h, its
// name in the list of the verb (explore.cpp or cost.cpp).
#pragma once

#include <CLI/App.hpp>
#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "answers/interrupt.h"
#include "answers/network_argument.h"
#include "answers/program.h"

namespace laminate::cli {

/// The request to a model. An option that several models know belongs here.
struct ModelRequest {
    NetworkArgument network;
    std::string machine;    ///< --machine; empty: not given
    std::string directory;  ///< -o; empty: not given. Always empty in `cost`
    CommonOptions common;
    /// Becomes true when the model is to hand over what it has found. Null in `cost`.
    std::atomic<bool>* stop = nullptr;
};

using RunModel = std::function<Exit(const ModelRequest&, const Output&)>;

struct CostModel {
    std::string name;   ///< value of --model
    std::string about;  ///< one line, heads its options in --help
    /// Adds the model's own options to `options` and returns the function that runs with them.
    std::function<RunModel(CLI::App& options)> declare;
};

/// The request to a verb with models, filled by parsing, and the action that answers it.
struct ModelVerb {
    std::shared_ptr<const ModelRequest> request;
    Action run;
};
/// Declares NET, --machine and --model on a verb; the first of `models` is the default. With
/// `with_directory` it declares -o too, and signals ask the model to stop instead of ending the
/// program. The action throws UsageError for options of a model that was not chosen, and --help
/// shows those of the chosen one alone.
[[nodiscard]] ModelVerb declare_models(Program& program, CLI::App* verb,
                                       const std::vector<CostModel>& models, bool with_directory);

/// Names of files that an `explore` or `study` may have written into this directory; nullopt unless
/// `file` in it is JSON of this schema.
[[nodiscard]] std::optional<std::vector<std::string>> answer_files(
    const std::filesystem::path& directory, const std::string& file, const std::string& schema);

}  // namespace laminate::cli
