#include "cli/sweep_jobs.h"

#include <cctype>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/hash.h"
#include "base/json_object.h"

namespace laminate::cli {

namespace {

/// A recognisable name: the network's without zoo:, folders and sizes.
std::string short_name(const std::string& network) {
    std::string name = network.substr(0, network.find('?'));
    if (name.rfind("zoo:", 0) == 0) name = name.substr(4);
    name = std::filesystem::path(name).stem().string();
    for (char& c : name) {
        if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '-';
    }
    return name.substr(0, 40);
}

std::string job_id(const SweepJob& job) {
    XxHash64 hash;
    for (const std::string& argument : job.arguments) hash.add(argument + '\n');
    return short_name(job.network) + "-" + hash.text();
}

/// The texts of a key, or one empty text when the key is missing.
std::vector<std::string> texts_or_none(JsonObject& sweep, const std::string& key) {
    return sweep.has(key) ? sweep.texts(key) : std::vector<std::string>{""};
}

}  // namespace

std::vector<SweepJob> sweep_jobs(const std::string& text, const std::string& where) {
    const nlohmann::json json = parse_json(text, where);
    JsonObject list(json, where);
    (void)list.header("laminate.jobs");
    std::vector<SweepJob> jobs;
    std::set<std::string> known;
    for (JsonObject& sweep : list.objects("sweeps")) {
        const std::vector<std::string> networks = sweep.texts("networks"),
                                       machines = texts_or_none(sweep, "machines"),
                                       budgets = texts_or_none(sweep, "memory");
        for (const auto& [key, texts] :
             {std::pair{"networks", &networks}, {"machines", &machines}, {"memory", &budgets}}) {
            if (texts->empty()) sweep.fail(key, "none", "at least one");
        }
        const std::vector<std::string> arguments =
            sweep.has("arguments") ? sweep.texts("arguments") : std::vector<std::string>{};
        for (const std::string& argument : arguments) {
            for (const char* ours : {"-o", "--output", "--json", "--threads"}) {
                if (argument == ours || argument.rfind(std::string(ours) + "=", 0) == 0)
                    sweep.fail(
                        "arguments", argument,
                        std::string("options of explore without ") + ours + ", which sweep gives");
            }
        }
        sweep.refuse_other_keys();
        std::string options;
        for (const std::string& argument : arguments)
            options += (options.empty() ? "" : " ") + argument;
        for (const std::string& network : networks) {
            for (const std::string& machine : machines) {
                for (const std::string& memory : budgets) {
                    SweepJob job{"", network, machine, memory, options, {network}};
                    if (!machine.empty()) job.arguments.push_back("--machine=" + machine);
                    if (!memory.empty()) job.arguments.push_back("--memory=" + memory);
                    job.arguments.insert(job.arguments.end(), arguments.begin(), arguments.end());
                    job.id = job_id(job);
                    if (known.insert(job.id).second) jobs.push_back(std::move(job));
                }
            }
        }
    }
    list.refuse_other_keys();
    return jobs;
}

}  // namespace laminate::cli
