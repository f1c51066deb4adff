#include "cli/cost_models.h"

#include <fmt/core.h>

#include <csignal>

#include "base/error.h"

namespace laminate::cli {

namespace {

std::atomic<bool> interrupted{false};
extern "C" void note_interrupt(int) { interrupted.store(true); }

}  // namespace

InterruptHandler::InterruptHandler() : before_(std::signal(SIGINT, note_interrupt)) {}
InterruptHandler::~InterruptHandler() { std::signal(SIGINT, before_); }
std::atomic<bool>& InterruptHandler::stop() const { return interrupted; }

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

}  // namespace laminate::cli
