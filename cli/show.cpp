// laminate show F: a schedule as text, as a loop nest, and as the plan of its code.
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "answers/front_file.h"
#include "answers/front_report.h"
#include "answers/network_argument.h"
#include "base/error.h"
#include "base/files.h"
#include "base/parse_json.h"
#include "cli/halide.h"
#include "cli/verbs.h"
#include "generators/compile/executable.h"
#include "generators/kernels/group_kernels.h"
#include "nets/zoo/zoo.h"
#include "scheduler/counts/plan_text.h"
#include "scheduler/schedule/loop_nest.h"

namespace laminate::cli {

namespace {

/// The network that a front was made for, or that a schedule file names when it is one of the zoo's
/// at its default size.
Network network_of_schedule_file(const std::string& path) {
    if (const std::optional<FrontReference> reference = front_reference(path))
        return to_run(network_of_front(reference->file, read_front(reference->file)), path);
    const auto refuse = [&](const std::string& found) {
        return InputError(path + ": " + found + "; give the network with --net");
    };
    const auto file = parsed_json<nlohmann::json>(read_file(path));
    if (!file.is_object() || !file.contains("network") || !file["network"].is_string()) {
        throw refuse("names no network");
    }
    const auto name = file["network"].get<std::string>();
    try {
        return zoo_network(name);
    } catch (const InputError&) {
        throw refuse("is for network \"" + name + "\", which is not in the zoo");
    }
}

struct ShowOptions {
    std::string file;
    NetworkArgument network;
    bool plan = false;
    std::string target = "host";
    bool halide = false;
    HalideFileOptions halide_file{};
};

/// Both halves: kernels that the schedule leaves open are the default ones.
Schedule with_kernels(const Network& network, const Schedule& schedule, const std::string& target) {
    return with_default_kernels(network, schedule, vector_unit(code_target(target)));
}

nlohmann::ordered_json show_json(const Network& network, const Schedule& schedule) {
    return {{"schema", "laminate.show"},
            {"version", 2},
            {"network", network.name},
            {"schedule", to_text(schedule)}};
}

Exit show_halide(const Network& network, const Schedule& schedule, const HalideFileOptions& options,
                 const Output& output) {
    const std::string text = halide_file(network, schedule, options);
    output.print(text);
    nlohmann::ordered_json json = show_json(network, schedule);
    json["halide"] = text;
    output.json(json);
    return Exit::ok;
}

Exit show(const Network& network, const Schedule& schedule, bool with_plan, const Output& output) {
    const std::string nest = loop_nest_text(network, schedule);
    output.print(to_text(schedule) + "\n\n" + nest);
    nlohmann::ordered_json json = show_json(network, schedule);
    json["loop_nest"] = nest;
    if (with_plan) {
        std::string plan;
        for (const GroupSchedule& group : schedule.groups())
            plan += plan_text(group, group_problems(network, group));
        output.print(plan);
        json["plan"] = plan;
    }
    output.json(json);
    return Exit::ok;
}

}  // namespace

void add_show(Program& program) {
    CLI::App* verb =
        program.add_verb("show", "A schedule as the loop nest a person would write",
                         "  laminate show front#3\n"
                         "  laminate show front#3 --plan\n"
                         "  laminate show schedule.json --net net.onnx --height 540 --width 960\n"
                         "  laminate show front#3 --halide > net.cpp");
    auto options = std::make_shared<ShowOptions>();
    verb->add_option("F", options->file, schedule_help)->required();
    options->network.declare_option(verb);
    auto* plan = verb->add_flag(
        "--plan", options->plan,
        "The boxes that each kernel computes, what it multiplies, and the scratch block");
    verb->add_option("--target", options->target,
                     "Kernels that the schedule leaves open are chosen for this Halide target")
        ->capture_default_str();
    auto* halide = verb->add_flag("--halide", options->halide,
                                  "A C++ file with a Halide::Generator for each group instead");
    halide->excludes(plan);
    verb->add_flag("--closest", options->halide_file.closest,
                   "Where Halide does not execute the schedule exactly, the nearest that it does")
        ->needs(halide);
    verb->add_option("--name", options->halide_file.name,
                     "Name of the generator instead of the network's")
        ->needs(halide);
    verb->add_option("--constants", options->halide_file.constants,
                     "Also write weights, biases and slopes to this directory, as .npy")
        ->type_name("DIR")
        ->needs(halide);
    program.on(verb, [options](const Output& output) {
        const Network network = options->network.spec.empty()
                                    ? network_of_schedule_file(options->file)
                                    : to_run(options->network.open(), options->file);
        const Schedule schedule = read_schedule(network, options->file);
        if (options->halide) return show_halide(network, schedule, options->halide_file, output);
        return show(network, with_kernels(network, schedule, options->target), options->plan,
                    output);
    });
}

}  // namespace laminate::cli
