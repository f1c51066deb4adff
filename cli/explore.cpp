// laminate explore NET: the best schedules under a cost model. For a list of jobs, all of its
// explorations (sweep.h).
#include <fmt/core.h>

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "cli/launcher.h"
#include "cli/sweep.h"
#include "cli/verbs.h"
#include "papers/verbs.h"

namespace laminate::cli {

namespace {

bool is_job_list(const std::string& spec) {
    return std::filesystem::path(spec).extension() == ".json";
}

/// Names of the options on the command line, including those of groups.
std::vector<std::string> given_options(const CLI::App& app) {
    std::vector<std::string> given;
    for (const CLI::Option* option : app.get_options())
        if (option->count() > 0) given.push_back(option->get_name());
    for (const CLI::App* group : app.get_subcommands([](const CLI::App*) { return true; })) {
        for (std::string& name : given_options(*group)) given.push_back(std::move(name));
    }
    return given;
}

/// Explores a list of jobs, which brings its own options.
Exit explore_list(const CLI::App& verb, const ModelRequest& request, const CommonOptions& common,
                  const Output& output) {
    const std::set<std::string> shared{"NET",    "--output",  "--json", "--threads",
                                       "--seed", "--verbose", "--quiet"};
    for (const std::string& name : given_options(verb)) {
        if (shared.count(name) == 0)
            throw UsageError(fmt::format(
                "{}: {} is a list of jobs, which brings its own options; expected --output DIR",
                name, request.network.spec));
    }
    if (request.directory.empty()) throw UsageError("--output is required with a list of jobs");
    return run_sweep({request.network.spec, request.directory}, common, output);
}

}  // namespace

void add_explore(Program& program) {
    CLI::App* verb = program.add_verb(
        "explore", "The best schedules under a cost model",
        "  laminate explore zoo:l2net -o front/\n"
        "  laminate explore zoo:l3net --space fusion --tiles all --footprint sum -o front/\n"
        "  laminate explore zoo:resnet18 --space dag --max-depth 6 -o front/\n"
        "  laminate explore zoo:fsrcnn --memory 64KiB --max-depth 4 --tiles pow2 -o front/\n"
        "  laminate explore zoo:l3net --machine machines/convfusion-40nm-banked.json -o front/\n"
        "  laminate explore 'zoo:alexnet?batch=4' --model layer-optimum --machine cnnflow_eyeriss\n"
        "  laminate explore zoo:fsrcnn-defines --model depth-first --machine meta_proto_df -o "
        "tiles/\n"
        "  laminate explore zoo:resnet18 --model spatial-fusion --machine hwff_1 -o stacks/\n"
        "  laminate explore zoo:googlenet --model dag-groups --machine optimus_base -o groups/\n"
        "  mpirun -np 4 laminate explore jobs.json -o sweep/");
    const ModelVerb models =
        declare_models(program, verb,
                       {explore_two_level(), explore_layer_optimum(), explore_depth_first(),
                        explore_spatial_fusion(), explore_dag_groups(), explore_patch_fusion()},
                       true);
    program.on(verb, [verb, models, &program](const Output& output) {
        if (is_job_list(models.request->network.spec))
            return explore_list(*verb, *models.request, program.common(), output);
        if (is_first_of_command()) return models.run(output);
        output.note(
            fmt::format("rank {}: one network is explored by the first process alone; a list of "
                        "jobs is shared among all",
                        launcher_rank()));
        return Exit::ok;
    });
}

}  // namespace laminate::cli
