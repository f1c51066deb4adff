#include "cli/execution.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <limits>

#include "base/error.h"
#include "base/units.h"
#include "cli/resident_memory.h"
#include "generators/compile/check_group.h"
#include "scheduler/explore/planner/line_buffers.h"

namespace laminate::cli {

void ScheduleArgument::declare(CLI::App* verb, bool with_layer_by_layer) {
    auto* file = verb->add_option("--schedule", schedule, schedule_help);
    auto* size =
        verb->add_option(
                "--memory", memory,
                "Choose the schedule with the fewest accesses whose internal memory, the scratch "
                "of "
                "one thread, stays within this size, e.g. 256KiB. Tensors between groups are in "
                "external memory")
            ->type_name("SIZE");
    file->excludes(size);
    verb->add_flag(
        "--no-winograd", no_winograd,
        "Compute every convolution by its definition, without minimal filtering, whose sums round "
        "differently");
    if (!with_layer_by_layer) return;
    auto* layers = verb->add_flag("--layer-by-layer", layer_by_layer,
                                  "Run every layer on its own, in the same kind of code");
    file->excludes(layers);
    size->excludes(layers);
}

Schedule ScheduleArgument::choose(const Network& network, int threads,
                                  const std::string& target) const {
    if (!schedule.empty()) return read_schedule(network, schedule);
    if (layer_by_layer) return layer_by_layer_schedule(network, threads, !no_winograd);
    LineBufferOptions options;
    options.winograd = !no_winograd;
    options.threads = threads;
    options.second_level_cache = second_level_cache;
    if (!memory.empty()) return choose_within(network, options, target);
    return std::get<Schedule>(line_buffer_schedule(network, options));
}

/// The model counts live elements, but code pads its lines. A schedule whose code turns out larger
/// than the budget is chosen again with a smaller one.
Schedule ScheduleArgument::choose_within(const Network& network, LineBufferOptions options,
                                         const std::string& target) const {
    const Bytes budget(parse_bytes("--memory", memory));
    CompileOptions code;
    code.target = target;
    code.kernels = kernels();
    int64_t least = std::numeric_limits<int64_t>::max();  // scratch of any code so far
    const auto scratch_of = [&](const Schedule& found) {
        const int64_t bytes = scratch_per_thread(network, found, code).value();
        least = std::min(least, bytes);
        return bytes;
    };
    // In steps, because code with less live memory may use another kernel and take more scratch.
    constexpr int rounds = 8;
    constexpr double step = 0.85;
    options.memory = budget;
    std::optional<Schedule> tried;
    for (int round = 0; round < rounds; ++round) {
        auto found = line_buffer_schedule(network, options);
        auto* plan = std::get_if<Schedule>(&found);
        if (plan == nullptr) break;
        if (!tried || to_text(*tried) != to_text(*plan)) {
            if (scratch_of(*plan) <= budget.value()) return std::move(*plan);
            tried = std::move(*plan);
        }
        options.memory =
            Bytes(static_cast<int64_t>(step * static_cast<double>(options.memory->value())));
    }
    // The smallest schedule there is.
    options.memory = Bytes(0);
    if (const auto none = line_buffer_schedule(network, options);
        std::holds_alternative<Infeasible>(none))
        options.memory = to_bytes(std::get<Infeasible>(none).demand);
    Schedule smallest = std::get<Schedule>(line_buffer_schedule(network, options));
    if (scratch_of(smallest) <= budget.value()) return smallest;
    throw InfeasibleError(
        fmt::format("{}: no schedule fits in {}; the smallest budget that works is {} bytes ({})",
                    network.name, bytes_text(budget.value()), least, bytes_text(least)));
}

KernelOptions ScheduleArgument::kernels() const {
    KernelOptions kernels{.winograd = !no_winograd};
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
                     const CommonOptions& common, const Output& output)
    : network_(std::move(network)), schedule_(std::move(schedule)) {
    require_memory_to_check(*network_, *schedule_);
    CompileOptions options;
    options.check.seed = common.seed;
    options.kernels = kernels;
    options.threads = common.threads;
    options.note = [&](const std::string& line) { output.note("laminate: " + line); };
    compiled_ = std::make_unique<JitNetwork>(*network_, *schedule_, options);
    open_session(common);
}

void Execution::open_session(const CommonOptions& common) {
    session_ = opened(network_->name, [&] {
        return Session::open(&compiled_->descriptor(), {common.thread_count()});
    });
}

Execution::Execution(const std::string& directory, const CommonOptions& common)
    : session_(opened(directory, [&] {
          return Session::open(std::filesystem::path(directory), {common.thread_count()});
      })) {}

bool is_compiled_directory(const NetworkArgument& argument) {
    std::error_code error;
    if (!std::filesystem::is_directory(argument.spec, error)) return false;
    const InputSizes& sizes = argument.sizes;
    if (sizes.height || sizes.width || sizes.batch || !argument.symbols.empty()) {
        throw UsageError(argument.spec +
                         ": a compiled directory has the sizes it was compiled for; --height, "
                         "--width, --batch and --dim want the network");
    }
    return true;
}

std::string arena_text(const ArenaUse& use) {
    return fmt::format("arena {}: {} between steps, {} thread{} × {} of scratch",
                       bytes_text(use.total_bytes), bytes_text(use.tensors_bytes), use.threads,
                       use.threads == 1 ? "" : "s", bytes_text(use.scratch_per_thread_bytes));
}

}  // namespace laminate::cli
