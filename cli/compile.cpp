// laminate compile NET -o DIR: a directory that runs without Halide.
#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "answers/network_argument.h"
#include "base/error.h"
#include "cli/compiled.h"
#include "cli/execution.h"
#include "cli/verbs.h"
#include "generators/compile/compile.h"

namespace laminate::cli {

namespace {

struct VerbOptions {
    NetworkArgument network;
    ScheduleArgument schedule;
    CacheArgument cache;
    std::string directory;
    CompileOptions compile;
};

Exit compile(const VerbOptions& options, const CommonOptions& common, const Output& output) {
    PreparationTimes times;
    const Network network = timed(times.import, [&] { return options.network.open(); });
    ScheduleArgument wanted = options.schedule;
    // Only the instructions of another machine are known, not its caches.
    if (options.compile.target != CompileOptions{}.target)
        wanted.second_level_cache = usual_second_level_cache;
    const Schedule schedule = timed(times.planning, [&] {
        return wanted.choose(network, common.thread_count(), options.compile.target);
    });
    require_memory_to_check(network, schedule);
    CompileOptions compile_options = options.compile;
    compile_options.check.seed = common.seed;
    compile_options.kernels = options.schedule.kernels();
    compile_options.threads = common.threads;
    compile_options.note = [&](const std::string& line) { output.note("laminate: " + line); };
    compile_options.cache = options.cache.open(output);
    compile_options.times = &times.compile;
    const Manifest manifest =
        compile_network(network, schedule, compile_options, options.directory);

    output.detail(times.text());

    const auto is_group = [](const Step& step) { return std::holds_alternative<GroupStep>(step); };
    const auto groups = std::count_if(manifest.steps.begin(), manifest.steps.end(), is_group);
    output.print(steps_table(manifest));
    output.print(fmt::format("{}: lib{}.a, lib{}.so, {}.h, manifest.json, schedule.json; {}{}",
                             options.directory, manifest.library, manifest.library,
                             manifest.library, manifest.target,
                             manifest.instrumented ? ", with hooks" : ""));
    output.json({{"schema", "laminate.compile"},
                 {"version", 1},
                 {"network", manifest.network},
                 {"network_hash", manifest.network_hash},
                 {"directory", options.directory},
                 {"library", manifest.library},
                 {"target", manifest.target},
                 {"groups", groups},
                 {"steps", manifest.steps.size()},
                 {"replaced_groups", manifest.replaced_groups},
                 {"instrumented", manifest.instrumented},
                 {"schedule", to_text(schedule)},
                 {"cpu_seconds", times.json()}});
    return Exit::ok;
}

}  // namespace

void add_compile(Program& program) {
    CLI::App* verb = program.add_verb(
        "compile", "Make libraries, a C header and a manifest that run without Halide",
        "  laminate compile zoo:fsrcnn -o fsrcnn/\n"
        "  laminate compile net.onnx --height 540 --width 960 --memory 256KiB -o net/\n"
        "  laminate compile zoo:resnet18 --target x86-64-linux-avx2-fma -o resnet18/");
    auto options = std::make_shared<VerbOptions>();
    options->network.declare(verb);
    options->schedule.declare(verb);
    options->cache.declare(verb);
    verb->add_option(
            "-o,--output", options->directory,
            "Directory to write; an earlier compilation in it is replaced, other files stay")
        ->required()
        ->type_name("DIR");
    verb->add_option("--name", options->compile.name,
                     "Name in files and symbols (default: the network's)")
        ->type_name("NAME");
    verb->add_option("--target", options->compile.target, "host, or a Halide target")
        ->capture_default_str();
    verb->add_flag("--instrumented", options->compile.instrumented,
                   "With hooks: the library tells which boxes it fetches, computes and writes, for "
                   "run DIR --counts and programs of your own (docs/instrumented.md)");
    verb->add_option("--cc", options->compile.compiler, "C compiler for the target")
        ->capture_default_str();
    verb->add_option("--ar", options->compile.archiver, "Archiver for the target")
        ->capture_default_str();
    program.on(verb, [options, &program](const Output& output) {
        return compile(*options, program.common(), output);
    });
}

}  // namespace laminate::cli
