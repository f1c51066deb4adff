// `--model` of `explore` and of `cost`: each model declares options of its own and runs; what all
// share is declared once.
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

#include "answers/network_argument.h"
#include "answers/program.h"

namespace laminate::cli {

/// While it lives an interrupt sets a flag instead of ending the program.
class InterruptHandler {
public:
    InterruptHandler();
    ~InterruptHandler();
    InterruptHandler(const InterruptHandler&) = delete;
    InterruptHandler& operator=(const InterruptHandler&) = delete;
    [[nodiscard]] std::atomic<bool>* stop() const;

private:
    void (*before_)(int);
};

/// What every model may be asked with. An option that several models know belongs here.
struct ModelRequest {
    NetworkArgument network;
    std::string machine;    ///< --machine; empty: not given
    std::string directory;  ///< -o; empty: not given. Always empty in `cost`
    CommonOptions common;
    std::atomic<bool>* stop =
        nullptr;  ///< set by an interrupt: hand over what was found. Null in `cost`
};

using RunModel = std::function<Exit(const ModelRequest&, const Output&)>;

struct CostModel {
    std::string name;   ///< value of --model
    std::string about;  ///< one line, heads its options in --help
    /// Adds its own options to `options` and returns what runs with them.
    std::function<RunModel(CLI::App& options)> declare;
};

/// What a verb with models was asked, after parsing, and what answers it.
struct ModelVerb {
    std::shared_ptr<const ModelRequest> request;
    Action run;
};
/// NET, --machine and --model, the first of `models` by default, on a verb; with_directory: -o too,
/// and an interrupt is handed to the model. Options of a model that was not chosen are refused with
/// UsageError.
[[nodiscard]] ModelVerb declare_models(const Program& program, CLI::App* verb,
                                       const std::vector<CostModel>& models, bool with_directory);

/// The files that an `explore` or `study` may have written into this directory; none unless `file`
/// in it is JSON of this schema.
[[nodiscard]] std::optional<std::vector<std::string>> answer_files(
    const std::filesystem::path& directory, const std::string& file, const std::string& schema);

}  // namespace laminate::cli
