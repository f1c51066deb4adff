#include "answers/cost_models.h"

#include <fmt/core.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <stop_token>
#include <thread>

#include "answers/checks.h"
#include "base/error.h"
#include "base/files.h"
#include "base/parse_json.h"

namespace laminate::cli {

namespace {

/// Sets a flag when the time has passed, unless it is destroyed before.
class Deadline {
public:
    Deadline(std::atomic<bool>& flag, double seconds)
        : thread_([&flag, seconds, this](const std::stop_token& is_over) {
              std::mutex mutex;
              std::unique_lock lock(mutex);
              std::condition_variable_any never;
              never.wait_for(lock, is_over, std::chrono::duration<double>(seconds),
                             [] { return false; });
              if (is_over.stop_requested()) return;
              has_passed_ = true;
              flag.store(true);
          }) {}
    [[nodiscard]] bool has_passed() const { return has_passed_; }

private:
    std::atomic<bool> has_passed_{false};
    std::jthread thread_;  // ends first
};

/// The models of a verb and the chosen one.
class ModelChoice {
public:
    ModelChoice(CLI::App& verb, const std::vector<CostModel>& models);
    [[nodiscard]] Exit run(const ModelRequest& request, const Output& output) const;
    /// Leaves only the options of the chosen model in the text of --help.
    void hide_others();

private:
    struct Entry {
        std::string name;
        CLI::App* options;
        RunModel run;
    };
    std::string chosen_;
    std::vector<Entry> entries_;
};

ModelChoice::ModelChoice(CLI::App& verb, const std::vector<CostModel>& models)
    : chosen_(models.front().name) {
    std::vector<std::string> names;
    for (const CostModel& model : models) names.push_back(model.name);
    verb.add_option("--model", chosen_,
                    "Cost model; `--model NAME --help` shows the options of another one")
        ->check(CLI::IsMember(names))
        ->capture_default_str();
    for (const CostModel& model : models) {
        CLI::App* options = verb.add_option_group("--model " + model.name, model.about);
        entries_.push_back({model.name, options, model.declare(*options)});
    }
}

void ModelChoice::hide_others() {
    for (const Entry& entry : entries_) {
        if (entry.name != chosen_) entry.options->group("");
    }
}

Exit ModelChoice::run(const ModelRequest& request, const Output& output) const {
    const RunModel* chosen = nullptr;
    for (const Entry& entry : entries_) {
        if (entry.name == chosen_) {
            chosen = &entry.run;
            continue;
        }
        for (const CLI::Option* option : entry.options->get_options()) {
            if (option->count() > 0)
                throw UsageError(fmt::format("{}: an option of --model {}, not of --model {}",
                                             option->get_name(), entry.name, chosen_));
        }
    }
    return (*chosen)(request, output);
}

}  // namespace

ModelVerb declare_models(Program& program, CLI::App* verb,
                         const std::vector<CostModel>& models, bool with_directory) {
    auto request = std::make_shared<ModelRequest>();
    request->network.declare(verb);
    if (with_directory)
        verb->add_option(
                "-o,--output", request->directory,
                "Directory to write; files of an earlier explore are replaced, other files "
                "stay")
            ->type_name("DIR");
    const auto seconds = std::make_shared<double>(0);
    if (with_directory) {
        verb->add_option("--seconds", *seconds,
                         "Stop the search after this time and hand over what was found, as an "
                         "interrupt does, with the gap that is left (default: search to the end)")
            ->check(above_zero());
    }
    verb->add_option("--machine", request->machine,
                     "Machine (machines/README.md): a file, or a name of `laminate machine list`")
        ->type_name("FILE|NAME");
    auto choice = std::make_shared<ModelChoice>(*verb, models);
    program.before_help([choice] { choice->hide_others(); });
    const Action run = [request, choice, seconds, with_directory, &program](const Output& output) {
        request->common = program.common();
        std::optional<InterruptHandler> handler;
        if (with_directory) {
            handler.emplace();
            request->stop = handler->stop();
        }
        std::optional<Deadline> deadline;
        if (*seconds > 0) deadline.emplace(*request->stop, *seconds);
        const Exit exit = choice->run(*request, output);
        if (deadline && deadline->has_passed())
            output.note(fmt::format("stopped after {} s, as --seconds asked", *seconds));
        return exit;
    };
    return {request, run};
}

std::optional<std::vector<std::string>> answer_files(const std::filesystem::path& directory,
                                                     const std::string& file,
                                                     const std::string& schema) {
    try {
        const auto answer = parsed_json<nlohmann::json>(read_file(directory / file));
        if (!answer.is_object() || answer.value("schema", "") != schema) return {};
    } catch (const InputError&) {
        return {};
    }
    // Pages and tables of an earlier answer go too, because they are no longer true.
    return std::vector<std::string>{"front.json",  "front.csv",  "report.html", "groups.json",
                                    "layers.json", "curves.csv", "curves.html", "schedules.html",
                                    "stacks.json", "sweep.json", "sweep.csv",   "study.json",
                                    "study.csv"};
}

}  // namespace laminate::cli
