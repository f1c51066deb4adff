// laminate compile NET -o DIR: a directory that runs without Halide.
#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "answers/front_file.h"
#include "answers/network_argument.h"
#include "base/error.h"
#include "cli/compiled.h"
#include "cli/execution.h"
#include "cli/verbs.h"
#include "generators/compile/compile.h"
#include "scheduler/schedule/tensor_sizes.h"

namespace laminate::cli {

namespace {

struct VerbOptions {
    NetworkArgument network;
    ScheduleArgument schedule;
    CacheArgument cache;
    std::string directory;
    bool any_size = false;
    CompileOptions compile;
};

/// The sizes that a network of any size is planned for unless the options say: those of most
/// pictures' measurements in docs/performance.md.
constexpr int64_t usual_height = 540, usual_width = 960;

/// Throws InputError where NET leaves no rows and columns open, or where the size decides more than
/// extents: opens it at two other sizes.
void require_open_sizes(const NetworkArgument& argument, const Network& network,
                        const SizeValues& size) {
    for (const auto& [rows, columns] : {std::pair{1, 1}, std::pair{2, 3}}) {
        NetworkArgument other = argument;
        other.sizes.height = size.rows + rows;
        other.sizes.width = size.columns + columns;
        const Network at = other.open();
        for (const TensorId id : network.inputs) {
            const std::vector<int64_t>& dims = at.tensor(id).dims;
            if (dims.size() == 4 && (dims[2] != *other.sizes.height || dims[3] != *other.sizes.width))
                throw InputError(fmt::format(
                    "{}: cannot be of any size: input {} is {}, expected open rows and columns",
                    network.name, at.tensor(id).name, dims_text(dims)));
        }
        require_same_layers(network, at);
    }
}

/// A network, and whether it is to be of any size.
struct Opened {
    NetworkArgument argument;
    std::optional<Network> network;
    bool any_size = false;
    bool is_implied = false;  ///< by a file that leaves rows and columns open
};

void open_at_usual_size(Opened& opened) {
    if (!opened.argument.spec.starts_with("zoo:")) {
        InputSizes& sizes = opened.argument.sizes;
        if (!sizes.height) sizes.height = usual_height;
        if (!sizes.width) sizes.width = usual_width;
    }
    opened.network = opened.argument.open();
}

/// A file that opens only when its rows and columns are given is of any size, unless the options
/// ask for what such code has not.
Opened opened(const VerbOptions& options) {
    Opened opened{options.network, {}, options.any_size, false};
    if (options.any_size) {
        open_at_usual_size(opened);
        return opened;
    }
    const InputSizes& sizes = options.network.sizes;
    const bool may_be_any = !sizes.height && !sizes.width && options.network.symbols.empty() &&
                            !options.compile.instrumented && options.schedule.memory.empty() &&
                            !options.schedule.layer_by_layer;
    try {
        opened.network = to_run(opened.argument.open(), options.schedule.schedule);
    } catch (const InputError&) {
        if (!may_be_any) throw;
        try {
            open_at_usual_size(opened);
        } catch (const InputError&) {
        }
        if (!opened.network) throw;
        opened.any_size = opened.is_implied = true;
    }
    return opened;
}

Exit compile(const VerbOptions& options, const Opened& opened, PreparationTimes& times,
             const CommonOptions& common, const Output& output) {
    const Network& network = *opened.network;
    std::optional<TensorSizes> sizes;
    if (opened.any_size) {
        if (options.compile.instrumented)
            throw UsageError("--any-size: code of any size has no hooks (--instrumented)");
        sizes.emplace(network);
        require_open_sizes(opened.argument, network, sizes->reference());
    }
    ScheduleArgument wanted = options.schedule;
    // Only the instructions of another machine are known, not its caches.
    if (options.compile.target != CompileOptions{}.target)
        wanted.second_level_cache = usual_second_level_cache;
    const std::shared_ptr<DiskCache> cache = options.cache.open(output);
    ScheduleArgument::For wish{.threads = common.thread_count(),
                               .cache = cache,
                               .target = options.compile.target,
                               .any_size = sizes ? &*sizes : nullptr};
    const Schedule schedule = timed(times.planning, [&] {
        if (sizes) wish.strips_cache = wanted.strips_cache(wish);
        return wanted.choose(network, wish);
    });
    require_memory_to_check(network, schedule);
    CompileOptions compile_options = options.compile;
    compile_options.check.seed = common.seed;
    compile_options.kernels = options.schedule.kernels();
    compile_options.threads = common.threads;
    compile_options.note = [&](const std::string& line) { output.note("laminate: " + line); };
    StepNotes steps(output);
    compile_options.progress = [&](const std::string& what, size_t done, size_t total) {
        steps.note(what, static_cast<int64_t>(done), static_cast<int64_t>(total));
    };
    compile_options.cache = cache;
    compile_options.times = &times.compile;
    compile_options.any_size = wish.any_size;
    compile_options.strips_cache = wish.strips_cache;
    const Manifest manifest =
        compile_network(network, schedule, compile_options, options.directory);

    output.detail(times.text());

    const auto is_group = [](const Step& step) { return std::holds_alternative<GroupStep>(step); };
    const auto groups = std::count_if(manifest.steps.begin(), manifest.steps.end(), is_group);
    output.print(steps_table(manifest));
    output.print(fmt::format("{}: lib{}.a, lib{}.so, {}.h, manifest.json, schedule.json; {}{}",
                             options.directory, manifest.library, manifest.library,
                             manifest.library, manifest.target,
                             manifest.instrumented ? ", with hooks" : "") +
                 (manifest.open ? fmt::format(", any size from {} x {}", manifest.open->least_rows,
                                              manifest.open->least_columns)
                                : ""));
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
                 {"any_size", manifest.open.has_value()},
                 {"schedule", to_text(schedule)},
                 {"cpu_seconds", times.json()}});
    return Exit::ok;
}

Exit compile(const VerbOptions& options, const CommonOptions& common, const Output& output) {
    PreparationTimes times;
    const Opened network = timed(times.import, [&] { return opened(options); });
    if (!network.is_implied) return compile(options, network, times, common, output);
    output.note("laminate: the file leaves rows and columns open: one directory for any size");
    try {
        return compile(options, network, times, common, output);
    } catch (const InputError& error) {
        throw InputError(std::string(error.what()) +
                         "; expected --height and --width, for code of one size");
    }
}

}  // namespace

void add_compile(Program& program) {
    CLI::App* verb = program.add_verb(
        "compile", "Make libraries, a C header and a manifest that run without Halide",
        "  laminate compile zoo:fsrcnn -o fsrcnn/\n"
        "  laminate compile net.onnx --height 540 --width 960 --memory 256KiB -o net/\n"
        "  laminate compile zoo:fsrcnn --any-size -o fsrcnn/\n"
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
    verb->add_flag("--any-size", options->any_size,
                   "One directory for pictures of every size, which the runtime is told "
                   "(Session::resize); --height and --width say which size it is planned for. "
                   "A file that leaves rows and columns open implies it where neither is given");
    verb->add_option("--cc", options->compile.compiler, "C compiler for the target")
        ->capture_default_str();
    verb->add_option("--ar", options->compile.archiver, "Archiver for the target")
        ->capture_default_str();
    program.on(verb, [options, &program](const Output& output) {
        return compile(*options, program.common(), output);
    });
}

}  // namespace laminate::cli
