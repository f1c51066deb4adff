#include "cli/execution.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/files.h"
#include "base/units.h"
#include "cli/resident_memory.h"
#include "generators/compile/check_group.h"
#include "generators/compile/executable.h"
#include "generators/kernels/group_kernels.h"
#include "scheduler/explore/planner/any_size.h"
#include "scheduler/explore/planner/line_buffers.h"
#include "scheduler/explore/timed/strips_cache.h"

namespace laminate::cli {

void ScheduleArgument::declare(CLI::App* verb, bool with_layer_by_layer) {
    auto* file = verb->add_option("--schedule", schedule, schedule_help);
    auto* size =
        verb->add_option(
                "--memory", memory,
                "Choose the fastest schedule whose internal memory, by the model and as the "
                "scratch "
                "of one thread, stays within this size, e.g. 256KiB. Tensors between groups are in "
                "external memory")
            ->type_name("SIZE");
    file->excludes(size);
    verb->add_flag(
        "--no-winograd", no_winograd,
        "Compute every convolution by its definition, without minimal filtering, whose sums round "
        "differently");
    verb->add_option("--winograd-tiles", tile_rows,
                     "The most rows of a tile of minimal filtering where the schedule names no "
                     "kernels: 2, 4 or 6. Higher tiles multiply less and round worse, by the bounds "
                     "of docs/reliability.md")
        ->check(CLI::IsMember({2, 4, 6}))
        ->capture_default_str();
    verb->add_flag("--strict", strict,
                   "Make of NaN, infinities and values of any magnitude what the operators make of "
                   "them, and check the code on such values; includes --no-winograd");
    verb->add_option("--speed", speed,
                     "Speed of the processor, which the fastest schedule is chosen for: a name of "
                     "`laminate machine list` or a file of `laminate machine measure -o` "
                     "(default: avx512, xeon6, zen4 or avx2)")
        ->type_name("FILE");
    if (!with_layer_by_layer) return;
    auto* layers = verb->add_flag("--layer-by-layer", layer_by_layer,
                                  "Run every layer on its own, in the same kind of code");
    file->excludes(layers);
    size->excludes(layers);
}

namespace {

/// All that the choice of the fastest schedule depends on beside the network's layers.
std::string options_text(const TimedOptions& options) {
    return fmt::format("lanes {} sums {} winograd {} tiles {} strict {} scratch {} threads {} cache {} "
                       "memory {} speed {}",
                       options.unit.lanes, options.unit.accumulators, options.kernels.winograd,
                       options.kernels.tile_rows, options.kernels.strict,
                       options.kernels.scratch.value_or(Bytes(-1)).value(), options.threads,
                       options.second_level_cache.value(),
                       options.memory.value_or(Bytes(-1)).value(), to_json(options.speed));
}

}  // namespace

Schedule ScheduleArgument::choose(const Network& network, const For& what) const {
    const TensorSizes* any_size = what.any_size;
    const TimedOptions options = timed_options(what.threads, what.target);
    if (any_size != nullptr && (!memory.empty() || layer_by_layer))
        throw UsageError("--any-size: excludes --memory and --layer-by-layer");
    if (any_size != nullptr && schedule.empty()) {
        return any_size_schedule(network, *any_size,
                                 {options.unit, options.kernels, options.second_level_cache,
                                  what.strips_cache});
    }
    if (!schedule.empty() || layer_by_layer) {
        const Schedule given = !schedule.empty()
                                   ? read_schedule(network, schedule)
                                   : layer_by_layer_schedule(
                                         network, what.threads, options.kernels.filters());
        return with_default_kernels(network, with_layers_alone(network, given, what.threads),
                                    options.unit, options.kernels);
    }
    if (what.cache == nullptr) return fastest(network, options);
    const std::string key =
        cache_key("schedule", structure_hash(network) + "\n" + options_text(options));
    if (const std::optional<std::string> kept = what.cache->find(key)) {
        try {
            return parse_schedule(network, *kept);
        } catch (const InputError&) {
            // It is of other layers with the same hash, and is made anew.
        }
    }
    Schedule chosen = fastest(network, options);
    what.cache->keep(key, to_text(chosen));
    return chosen;
}

Bytes ScheduleArgument::strips_cache(const For& what) const {
    const TimedOptions options = timed_options(what.threads, what.target);
    return best_strips_cache(*what.any_size,
                             {options.unit, options.kernels, options.second_level_cache},
                             options.speed);
}

Schedule ScheduleArgument::fastest(const Network& network, const TimedOptions& options) const {
    // What memory does not hold is refused before it is priced, box by box: the planner's own
    // schedule fuses most.
    if (const auto planned = line_buffer_schedule(network, {.threads = options.threads});
        const auto* all = std::get_if<Schedule>(&planned))
        require_memory_to_check(network, *all);
    auto found = fastest_schedule(network, options);
    if (const auto* none = std::get_if<Infeasible>(&found)) {
        const int64_t least = to_bytes(none->demand).value();
        throw InfeasibleError(fmt::format(
            "{}: no schedule fits in {}; the smallest budget that works is {} bytes ({})",
            network.name, bytes_text(options.memory->value()), least, bytes_text(least)));
    }
    return std::get<Schedule>(std::move(found));
}

TimedOptions ScheduleArgument::timed_options(int threads, const std::string& target) const {
    TimedOptions options;
    options.unit = vector_unit(code_target(target));
    options.speed = speed.empty() ? usual_cpu_speed(options.unit) : open_cpu_speed(speed);
    options.kernels = kernels();
    options.threads = threads;
    options.second_level_cache = second_level_cache;
    if (!memory.empty()) options.memory = Bytes(parse_bytes("--memory", memory));
    return options;
}

KernelOptions ScheduleArgument::kernels() const {
    KernelOptions kernels{.winograd = !no_winograd, .strict = strict, .tile_rows = tile_rows};
    if (!memory.empty()) kernels.scratch = Bytes(parse_bytes("--memory", memory));
    return kernels;
}

namespace {

int64_t array_bytes(const std::vector<Tensor>& tensors) {
    int64_t bytes = 0;
    for (const Tensor& tensor : tensors)
        bytes = checked_add(bytes, checked_multiply(element_count(tensor.dims), sizeof(float)));
    return bytes;
}

/// A session whose arena, inputs and outputs fit in this machine's memory. Throws InfeasibleError
/// before a page is touched when they do not.
template <class Open>
std::unique_ptr<Session> opened(const std::string& name, const Open& open) {
    try {
        auto session = std::make_unique<Session>(open());
        const int64_t arena = session->arena().total_bytes;
        const int64_t arrays =
            checked_add(array_bytes(session->inputs()), array_bytes(session->outputs()));
        require_available_memory(
            fmt::format("{}: an arena of {} and inputs and outputs take", name, bytes_text(arena)),
            checked_add(arena, arrays));
        return session;
    } catch (const ArenaError& error) {
        throw InfeasibleError(fmt::format("{}: {}", name, error.what()));
    }
}

}  // namespace

void require_memory_to_check(const Network& network, const Schedule& schedule) {
    for (const GroupSchedule& group : schedule.groups()) {
        require_available_memory(fmt::format("{}: checking the code of the group of {} takes",
                                             network.name, group.nests.back().layer),
                                 check_bytes(network, group).value());
    }
}

Execution::Execution(Network network, Schedule schedule, const KernelOptions& kernels,
                     std::shared_ptr<DiskCache> cache, const CommonOptions& common,
                     const Output& output)
    : network_(std::move(network)), schedule_(std::move(schedule)), kernels_(kernels) {
    require_memory_to_check(*network_, *schedule_);
    CompileOptions options;
    options.check.seed = common.seed;
    options.kernels = kernels;
    options.threads = common.threads;
    options.note = [&](const std::string& line) { output.note("laminate: " + line); };
    StepNotes steps(output);
    options.progress = [&](const std::string& what, size_t done, size_t total) {
        steps.note(what, static_cast<int64_t>(done), static_cast<int64_t>(total));
    };
    options.cache = std::move(cache);
    options.times = &times_.compile;
    compiled_ = std::make_unique<JitNetwork>(*network_, *schedule_, options);
    open_session(common);
}

Schedule Execution::schedule_of_code() const {
    return with_default_kernels(*network_, *schedule_, vector_unit(Halide::get_host_target()),
                                kernels_);
}

void Execution::open_session(const CommonOptions& common, bool times_steps) {
    timed(times_.session, [&] {
        session_ = opened(network_->name, [&] {
            return Session::open(&compiled_->descriptor(),
                                 {.threads = common.thread_count(), .times_steps = times_steps});
        });
    });
}

Execution::Execution(const std::string& directory, const CommonOptions& common, bool times_steps)
    : session_(opened(directory, [&] {
          return Session::open(std::filesystem::path(directory),
                               {.threads = common.thread_count(), .times_steps = times_steps});
      })) {}

namespace {

bool is_of_any_size(const std::string& directory) {
    const std::filesystem::path file = std::filesystem::path(directory) / manifest_file;
    return parse_manifest(read_file(file), file.string()).open.has_value();
}

}  // namespace

bool is_compiled_directory(const NetworkArgument& argument) {
    std::error_code error;
    if (!std::filesystem::is_directory(argument.spec, error)) return false;
    const InputSizes& sizes = argument.sizes;
    const bool has_sizes = sizes.height || sizes.width || sizes.batch;
    const bool has_names = !argument.symbols.empty() || !argument.integers.empty();
    if ((has_sizes && !is_of_any_size(argument.spec)) || has_names) {
        throw UsageError(argument.spec +
                         ": a compiled directory has the sizes it was compiled for; --height, "
                         "--width, --batch, --dim and --integers want the network, or a directory "
                         "of compile --any-size the first three");
    }
    return true;
}

std::string arena_text(const ArenaUse& use) {
    return fmt::format("arena {}: {} between steps, {} thread{} × {} of scratch",
                       bytes_text(use.total_bytes), bytes_text(use.tensors_bytes), use.threads,
                       use.threads == 1 ? "" : "s", bytes_text(use.scratch_per_thread_bytes));
}

}  // namespace laminate::cli
