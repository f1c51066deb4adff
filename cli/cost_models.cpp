#include "cli/cost_models.h"

#include <fmt/core.h>

#include <csignal>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/files.h"

namespace laminate::cli {

namespace {

std::atomic<bool> interrupted{false};
extern "C" void note_interrupt(int) { interrupted.store(true); }

/// The models of a verb, and which was chosen.
class ModelChoice {
public:
    ModelChoice(CLI::App& verb, const std::vector<CostModel>& models);
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

ModelChoice::ModelChoice(CLI::App& verb, const std::vector<CostModel>& models) : chosen_(models.front().name) {
    std::vector<std::string> names;
    for (const CostModel& model : models) names.push_back(model.name);
    verb.add_option("--model", chosen_, "Cost model")->check(CLI::IsMember(names))->capture_default_str();
    for (const CostModel& model : models) {
        CLI::App* options = verb.add_option_group("--model " + model.name, model.about);
        entries_.push_back({model.name, options, model.declare(*options)});
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
                throw UsageError(fmt::format("{}: an option of --model {}, not of --model {}", option->get_name(), entry.name, chosen_));
        }
    }
    return (*chosen)(request, output);
}

}  // namespace

InterruptHandler::InterruptHandler() : before_(std::signal(SIGINT, note_interrupt)) {}
InterruptHandler::~InterruptHandler() { std::signal(SIGINT, before_); }
std::atomic<bool>* InterruptHandler::stop() const { return &interrupted; }

ModelVerb declare_models(const Program& program, CLI::App* verb, const std::vector<CostModel>& models, bool with_directory) {
    auto request = std::make_shared<ModelRequest>();
    request->network.declare(verb);
    if (with_directory)
        verb->add_option("-o,--output", request->directory, "Directory to make; what an explore left there before is replaced")->type_name("DIR");
    verb->add_option("--machine", request->machine, "Machine (machines/README.md): a file, or a name of `laminate machine list`")->type_name("FILE|NAME");
    auto choice = std::make_shared<ModelChoice>(*verb, models);
    const Action run = [request, choice, with_directory, &program](const Output& output) {
        request->common = program.common();
        std::optional<InterruptHandler> handler;
        if (with_directory) {
            handler.emplace();
            request->stop = handler->stop();
        }
        return choice->run(*request, output);
    };
    return {request, run};
}

bool holds_answer(const std::filesystem::path& directory, const std::string& file, const std::string& schema) {
    try {
        const auto answer = nlohmann::json::parse(read_file(directory / file), nullptr, false);
        return answer.is_object() && answer.value("schema", "") == schema;
    } catch (const InputError&) {
        return false;
    }
}

}  // namespace laminate::cli
