#include "generators/compile/group_compiler.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <map>
#include <mutex>
#include <string_view>
#include <utility>

#include "base/parallel.h"
#include "generators/ir/activations.h"
#include "generators/ir/code_parts.h"
#include "generators/ir/shared_bodies.h"
#include "generators/kernels/group_kernels.h"
#include "generators/lowering/extents.h"
#include "nets/network/picture_views.h"
#include "scheduler/schedule/open_group.h"

namespace laminate {

namespace {

/// Everything of a group that its code depends on: all but names and the values of constants, of
/// which it knows ir::is_maximum() alone.
std::string code_key(const Network& network, const GroupSchedule& group) {
    GroupSchedule nameless = group;
    std::string key;
    for (size_t k = 0; k < group.nests.size(); ++k) {
        nameless.nests[k].layer = "n" + std::to_string(k);
        const LayerId id = network.find_layer(group.nests[k].layer);
        const Activation& activation = network.layer(id).activation;
        const LayerProblem p = layer_problem(network, id);
        const auto add = [&](auto value) { key += std::to_string(value) + " "; };
        for (const int64_t extent : p.extent) add(extent);
        for (const LayerInput& input : p.inputs) {
            add(input.channels);
            add(input.first_output_channel);
            add(input.is_pixel);
            add(input.is_plane);
        }
        std::vector<int64_t> windows;
        for (const AxisWindow& w : p.window) append_window(windows, w);
        for (const int64_t value : windows) add(value);
        add(static_cast<int>(p.operation));
        if (p.operation == Operation::resample) {
            // Its code depends on what each output reads, and by how much.
            const GeneralOperator& general = network.layer(id).general;
            add(std::bit_cast<uint32_t>(general.alpha));
            for (const int64_t taps : general.tap_counts) add(taps);
            for (const int64_t source : general.sources) add(source);
            for (const float factor : general.factors) add(std::bit_cast<uint32_t>(factor));
        }
        if (p.operation == Operation::normalise) {
            add(static_cast<int>(*normalisation_of(network.layer(id))));
            add(std::bit_cast<uint32_t>(network.layer(id).general.alpha));
        }
        add(network.layer(id).count_include_pad);
        add(p.groups);
        add(p.shuffle);
        add(static_cast<int>(activation.kind));
        add(static_cast<int>(activation.function));
        add(ir::is_maximum(activation));
        for (const float value :
             {activation.alpha, activation.beta, activation.low, activation.high})
            add(std::bit_cast<uint32_t>(value));
    }
    for (const GroupTensor& tensor : group_tensors(group_problems(network, group))) {
        for (const TensorReader& reader : tensor.readers)
            key += std::to_string(reader.nest) + "." + std::to_string(reader.operand) + " ";
        key += "; ";
    }
    return key + to_text(nameless);
}

/// The formulas of the sizes, by which code of any size differs from other code.
std::string any_size_key(const std::vector<LayerProblem>& problems, const TensorSizes& sizes) {
    std::string key = " any size";
    for (const LayerProblem& p : problems) {
        for (const Dim d : {Dim::y, Dim::x}) {
            for (const TensorId id : {p.inputs.front().tensor, p.output})
                key += " " + to_text(sizes.extent(id, d));
        }
    }
    return key;
}

size_t length_of(const std::vector<CodePart>& parts) {
    size_t length = 0;
    for (const CodePart& part : parts) length += part.length;
    return length;
}

}  // namespace

void tell_in_parallel(const CompileProgress& progress, const std::string& what, size_t count,
                      int threads, const std::function<void(size_t)>& work) {
    std::mutex mutex;
    size_t done = 0;
    in_parallel(count, threads, [&](size_t n) {
        {
            const std::lock_guard lock(mutex);
            progress(what, done, count);
        }
        work(n);
        const std::lock_guard lock(mutex);
        ++done;
    });
}

GroupCompiler::GroupCompiler(const Network& network, const CompileOptions& options,
                             const Halide::Target& target)
    : network_(network),
      options_(options),
      is_for_host_(target == Halide::get_host_target()) {}

std::vector<CompiledGroup> GroupCompiler::compiled(const std::vector<GroupSchedule>& groups) const {
    std::vector<Made> made(groups.size());
    const int threads = thread_count(options_);
    in_parallel(groups.size(), threads, [&](size_t g) { made[g].key = key_of(groups[g]); });
    std::map<std::string_view, Made*> first;
    std::vector<Made*> distinct;
    std::vector<size_t> others;
    for (size_t g = 0; g < groups.size(); ++g) {
        if (first.try_emplace(made[g].key, &made[g]).second) {
            distinct.push_back(&made[g]);
        } else {
            others.push_back(g);
        }
    }
    const auto group_of = [&](const Made* one) -> const GroupSchedule& {
        return groups[static_cast<size_t>(one - made.data())];
    };
    tell_in_parallel(options_.progress, "lowering group", distinct.size(), threads,
                     [&](size_t n) { make(group_of(distinct[n]), *distinct[n]); });
    share(distinct, threads);
    compile(distinct, threads, options_.progress);
    // Groups that share a body come after the one that has it.
    const auto last = std::ranges::stable_partition(
        distinct, [](const Made* one) { return one->code_of == nullptr; });
    const size_t own = distinct.size() - last.size();
    in_parallel(own, threads, [&](size_t n) { load(*distinct[n]); });
    in_parallel(last.size(), threads, [&](size_t n) { load(*distinct[own + n]); });
    in_parallel(others.size(), threads, [&](size_t n) {
        const GroupSchedule& group = groups[others[n]];
        CompiledGroup& other = made[others[n]].group;
        const CompiledGroup& one = first.at(made[others[n]].key)->group;
        const CpuClock clock;
        other.code.body = one.code.body;
        take_code(group, one.code, other.code);
        other.jit = one.jit;
        other.times = {.name = name_of(group),
                       .halide = clock.seconds(),
                       .is_equal = true,
                       .is_cached = one.times.is_cached};
    });
    std::vector<CompiledGroup> all;
    for (Made& one : made) all.push_back(std::move(one.group));
    return all;
}

CompiledGroup GroupCompiler::compiled(const GroupSchedule& group) const {
    Made made;
    made.key = key_of(group);
    make(group, made);
    compile({&made}, 1, [](const std::string&, size_t, size_t) {});  // other threads do so, too
    load(made);
    return std::move(made.group);
}

/// Finds the code of a key in the cache, or else makes its body.
void GroupCompiler::make(const GroupSchedule& schedule, Made& made) const {
    const CpuClock clock;
    CompiledGroup& group = made.group;
    if (std::optional<KeptCode> kept = kept_of(made.key)) {
        take_code(schedule, kept->code, group.code);
        made.objects = std::move(kept->objects);
        group.times.is_cached = true;
    } else {
        group.code = is_of_any_size(schedule)
                         ? open_group_code(network_, schedule, *options_.any_size)
                         : group_code(network_, schedule);
    }
    group.times.name = name_of(schedule);
    group.times.halide = clock.seconds();
}

/// Lets groups whose bodies differ in numbers alone share one of them.
void GroupCompiler::share(const std::vector<Made*>& made, int threads) const {
    // Hooks are put into code by the names of a group's own arrays.
    if (!loads_objects || !is_for_host_ || options_.instrumented) return;
    std::vector<Made*> own;
    std::vector<Halide::Internal::Stmt> bodies;
    for (Made* one : made) {
        if (!one->objects.empty()) continue;
        own.push_back(one);
        bodies.push_back(one->group.code.body);
    }
    for (SharedBody& shared : shared_bodies(bodies, threads)) {
        for (size_t n = 0; n < shared.groups.size(); ++n) {
            Made& one = *own[shared.groups[n]];
            if (n > 0) one.code_of = own[shared.groups.front()];
            GroupCode& code = one.group.code;
            code.body = shared.body;
            code.constants.insert(code.constants.begin(), shared.numbers[n].begin(),
                                  shared.numbers[n].end());
            code.packings.insert(code.packings.begin(),
                                 {.source = Packing::Source::numbers,
                                  .values = std::move(shared.numbers[n])});
        }
    }
}

/// Compiles file by file. The longest comes first, so that no thread is left with it at the end.
void GroupCompiler::compile(const std::vector<Made*>& made, int threads,
                            const CompileProgress& progress) const {
    if (!loads_objects) return;
    struct Task {
        Made* made;
        const std::vector<CodePart>* parts;
        std::string* object;
        size_t length = 0;
        double seconds = 0;
    };
    std::vector<std::vector<std::vector<CodePart>>> parts(made.size());
    std::vector<Task> tasks;
    for (size_t g = 0; g < made.size(); ++g) {
        if (!made[g]->objects.empty() || made[g]->code_of != nullptr) continue;
        parts[g] = object_parts(code_parts(made[g]->group.code.body, JitGroup::symbol));
        made[g]->objects.resize(parts[g].size());
        for (size_t n = 0; n < parts[g].size(); ++n)
            tasks.push_back({made[g], &parts[g][n], &made[g]->objects[n], length_of(parts[g][n])});
    }
    std::ranges::stable_sort(tasks, std::greater<>(), &Task::length);
    const Halide::Target host = Halide::get_host_target();
    tell_in_parallel(progress, "compiling object file", tasks.size(), threads, [&](size_t n) {
        const CpuClock clock;
        *tasks[n].object = object_of_parts(*tasks[n].parts, host);
        tasks[n].seconds = clock.seconds();
    });
    for (const Task& task : tasks) task.made->group.times.llvm += task.seconds;
}

/// Loads the functions into this process, and keeps what is new.
void GroupCompiler::load(Made& made) const {
    const CpuClock clock;
    CompiledGroup& group = made.group;
    if (made.code_of != nullptr) {
        group.jit = made.code_of->group.jit;
    } else if (made.objects.empty()) {
        group.jit = std::make_shared<const JitGroup>(group.code.body);
    } else {
        group.jit = std::make_shared<const JitGroup>(std::move(made.objects));
    }
    if (!group.times.is_cached && options_.cache && !group.jit->objects().empty()) {
        options_.cache->keep(cache_key("code", made.key),
                             to_bytes(group.code, group.jit->objects()));
    }
    group.times.llvm += clock.seconds();
}

/// The code of an equal group, kept or just made, with constants of this group.
void GroupCompiler::take_code(const GroupSchedule& schedule, const GroupCode& equal,
                              GroupCode& code) const {
    const std::vector<LayerProblem> problems = group_problems(network_, schedule);
    code.packings = equal.packings;
    code.constants = packed_block(equal.packings, network_, problems);
    code.scratch_bytes = equal.scratch_bytes;
    code.strips = equal.strips;
    code.strips_together = equal.strips_together;
    code.open_scratch_bytes = equal.open_scratch_bytes;
    if (code.open_scratch_bytes)
        code.size = GroupExtents(schedule, problems, options_.any_size).reference();
}

/// The code that another process kept under this key, or nothing. Code for another processor or with hooks is
/// made of the body each time.
std::optional<KeptCode> GroupCompiler::kept_of(const std::string& key) const {
    if (!options_.cache || !loads_objects || !is_for_host_ || options_.instrumented)
        return std::nullopt;
    const std::optional<std::string> bytes = options_.cache->find(cache_key("code", key));
    return bytes ? parse_kept_code(*bytes) : std::nullopt;
}

std::string GroupCompiler::key_of(const GroupSchedule& schedule) const {
    std::string key = code_key(network_, schedule);
    if (is_of_any_size(schedule))
        key += any_size_key(group_problems(network_, schedule), *options_.any_size);
    return key;
}

bool GroupCompiler::is_of_any_size(const GroupSchedule& group) const {
    return options_.any_size != nullptr &&
           depends_on_size(group_problems(network_, group), *options_.any_size);
}

std::string name_of(const GroupSchedule& group) {
    const std::string& last = group.nests.back().layer;
    return group.nests.size() == 1 ? last : group.nests.front().layer + " .. " + last;
}

int thread_count(const CompileOptions& options) {
    return options.threads > 0 ? options.threads : available_cores();
}

}  // namespace laminate
