#include "runtime/session.h"

#include <dlfcn.h>
#include <omp.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>
#include <numeric>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "base/huge_pages.h"
#include "base/indexed.h"
#include "base/shared_loop.h"
#include "base/subnormals.h"
#include "base/team.h"
#include "base/units.h"
#include "nets/operators/reference_operators.h"
#include "runtime/any_size.h"
#include "runtime/arena_plan.h"
#include "runtime/cpu.h"
#include "runtime/group_trace.h"
#include "runtime/part_queue.h"
#include "runtime/tensor_placement.h"

namespace laminate {
namespace {

struct FreeArray {
    void operator()(void* array) const { std::free(array); }
};

struct CloseLibrary {
    void operator()(void* handle) const { dlclose(handle); }
};
using Library = std::unique_ptr<void, CloseLibrary>;

/// Called before the library is loaded: touching the missing pages of a file that was cut short
/// would end the program.
void check_library(const std::filesystem::path& file, const Manifest& manifest) {
    if (!manifest.library_file) return;
    const FileIdentity found = identity_of(file);
    const FileIdentity& expected = *manifest.library_file;
    if (found.bytes != expected.bytes) {
        throw InputError(file.string() +
                         ": is damaged or of another compilation: " + std::to_string(found.bytes) +
                         " bytes, expected " + std::to_string(expected.bytes));
    }
    if (found != expected) {
        throw InputError(file.string() + ": is damaged or of another compilation: its XXH64 is " +
                         found.xxh64 + ", expected " + expected.xxh64);
    }
}

/// Whether `text`, a manifest.json, and the text that the library holds come from one compilation.
bool is_same_compilation(const std::string& text, Manifest manifest, const char* embedded) {
    if (text == embedded) return true;
    manifest.library_file.reset();
    return to_json(manifest) == embedded;
}

/// Loading a library may already execute instructions of its target, so this comes first.
void check_cpu(const Manifest& manifest, const std::string& where) {
    for (const std::string& feature : manifest.cpu_features) {
        if (!cpu_has(feature)) {
            throw InputError(where + ": was compiled for " + manifest.target +
                             ", this machine has no " + feature);
        }
    }
}

/// How long a thread worked on a step, and how long it waited there for others.
struct StepShare {
    std::chrono::nanoseconds work{}, waiting{};
};
/// Measures a thread's share of a step while it lives, if somebody asks for it.
class StepClock {
public:
    using Clock = std::chrono::steady_clock;
    /// `share` is zero when the run begins. If it is null, the clock is never read.
    explicit StepClock(StepShare* share) : share_(share) {
        if (share_) begin_ = Clock::now();
    }
    /// Calls `what`, whose time is work if it returns true, and returns the same.
    template <class What>
    bool work(const What& what) {
        if (!share_) return what();
        const Clock::time_point start = Clock::now();
        const bool has_worked = what();
        if (has_worked) share_->work += Clock::now() - start;
        return has_worked;
    }
    /// Counts all time that was not work as waiting. A thread for which the run ended while it waited does not
    /// call this.
    void end() const {
        if (share_) share_->waiting = Clock::now() - begin_ - share_->work;
    }

private:
    StepShare* share_;
    Clock::time_point begin_;
};

/// A step with everything resolved that does not change from run to run.
struct ReadyStep {
    size_t number = 0;  ///< of the manifest's steps
    // A group. `places` and `..._image_elements` give the pointers of one image.
    laminate_group_function function = nullptr;
    laminate_hooked_group_function hooked = nullptr;
    std::unique_ptr<const GroupTrace> trace;  ///< of a group with hooks that its schedule names
    const GroupStep* group = nullptr;
    const float* constants = nullptr;
    int64_t images = 1;
    std::vector<int64_t> input_image_elements, output_image_elements;
    /// Code of any size finds these numbers behind the inputs.
    std::array<int32_t, size_variables> sizes{};
    // A layer without code of its own.
    Layer layer;
    std::vector<std::vector<int64_t>> input_dims;
    std::vector<int64_t> output_dims;
    std::vector<const float*> input_arrays;  ///< set by each run
};

}  // namespace

struct Session::Implementation {
    Library library;  // first, so that it is closed last
    laminate_compiled_network network{};
    std::string where;  ///< of the network, for messages
    Manifest manifest;
    std::vector<std::optional<Layer>> layers;  ///< by step of the manifest, with their constants
    IndexVector<Place, TensorId> places;
    std::vector<ReadyStep> steps;  ///< without those that have nothing to do
    /// Outputs that share their storage with an input or with another output. They are copied after
    /// the last step.
    std::vector<size_t> copied_outputs;
    ArenaUse use;
    int64_t arena_capacity = 0;     ///< bytes
    std::vector<PartQueue> queues;  ///< by step
    std::optional<SharedLoop> loop;  ///< of the layer that is running
    std::unique_ptr<Team> team;
    bool is_divided = false;        ///< whether there is enough work for several threads
    double least_operations = 0;    ///< from which on there is
    std::atomic<bool> is_running{false};
    TraceListener listener;
    std::vector<const laminate_buffer*> buffers;
    std::unique_ptr<std::byte, FreeArray> arena;
    /// One row of group pointers per thread, padded to whole cache lines so that threads do not
    /// share one.
    size_t pointers_per_thread = 0;
    std::vector<const float*> input_pointers;
    std::vector<float*> output_pointers;
    bool times_steps = false;
    std::vector<StepShare> shares;  ///< of the last run, by thread, then step; empty: not wanted

    void prepare(const laminate_compiled_network& compiled, const SessionOptions& options,
                 const std::string& place);
    /// The steps of the manifest's size, their places and memory.
    void make_ready();
    void resize(const SizeValues& size);
    void add_step(const Step& step);
    void place();
    void allocate();
    [[nodiscard]] float* locate(TensorId id, const float* const* inputs,
                                float* const* outputs) const;
    [[nodiscard]] StepShare* share_of(size_t step, int thread) {
        return shares.empty() ? nullptr : &shares[static_cast<size_t>(thread) * steps.size() + step];
    }
    void run(const float* const* inputs, float* const* outputs);
    void run_alone(const float* const* inputs, float* const* outputs);
    void run_in_team(int threads, const float* const* inputs, float* const* outputs);
    void run_layer(ReadyStep& step, const float* const* inputs, float* const* outputs, int threads);
    /// Runs strips [begin, end) of one image and returns the code's result.
    int run_strips(const ReadyStep& step, int64_t image, int32_t begin, int32_t end, int thread,
                   const float* const* inputs, float* const* outputs);
};

void Session::Implementation::add_step(const Step& step) {
    const auto number = static_cast<size_t>(&step - manifest.steps.data());
    const auto fail = [&](const std::string& message) {
        throw InputError(where + ": step " + name_of(step) + ": " + message);
    };
    const auto dims_of = [&](TensorId id) { return manifest.tensor(id).dims; };
    const auto constant_count = static_cast<int64_t>(network.constant_count);
    ReadyStep ready;
    ready.number = number;
    if (const auto* group = std::get_if<GroupStep>(&step)) {
        if (std::cmp_greater_equal(group->group, network.group_count)) {
            fail("group " + std::to_string(group->group) + " of " +
                 std::to_string(network.group_count));
        }
        ready.function = network.groups[group->group];
        if (!ready.function) fail("group " + std::to_string(group->group) + " has no function");
        if (group->constants_offset_elements > constant_count - group->constants_count_elements) {
            fail("constants end at element " + std::to_string(group->constants_offset_elements) +
                 " + " + std::to_string(group->constants_count_elements) + " of " +
                 std::to_string(constant_count));
        }
        if (group->trace) {
            ready.hooked = network.hooked_groups ? network.hooked_groups[group->group] : nullptr;
            if (!ready.hooked) fail("group " + std::to_string(group->group) + " has no hooks");
            ready.trace =
                std::make_unique<const GroupTrace>(*group, static_cast<int32_t>(number));
            for (const laminate_buffer& buffer : ready.trace->buffers()) buffers.push_back(&buffer);
        }
        ready.group = group;
        ready.constants = network.constants + group->constants_offset_elements;
        ready.images = dims_of(group->inputs[0])[0];
        for (TensorId id : group->inputs)
            ready.input_image_elements.push_back(element_count(dims_of(id)) / ready.images);
        for (TensorId id : group->outputs)
            ready.output_image_elements.push_back(element_count(dims_of(id)) / ready.images);
        ready.sizes = size_arguments(group->size);
    } else {
        std::vector<int64_t> expected;
        try {
            std::optional<Layer>& known = layers[number];
            if (!known)
                known = restored_layer(std::get<LayerStep>(step), network.constants, constant_count);
            ready.layer = *known;
            for (TensorId id : ready.layer.inputs) ready.input_dims.push_back(dims_of(id));
            expected = infer_output_dims(ready.layer, ready.input_dims);
        } catch (const InputError& error) {
            fail(error.what());
        } catch (const std::overflow_error& error) {
            fail(error.what());
        }
        ready.output_dims = dims_of(ready.layer.output);
        if (expected != ready.output_dims) {
            fail("output is " + dims_text(ready.output_dims) + ", expected " + dims_text(expected));
        }
        ready.input_arrays.resize(ready.layer.inputs.size());
    }
    steps.push_back(std::move(ready));
}

namespace {

/// An estimate: for every output element a few operations and one per weight.
double operations_of(const ReadyStep& step, const Manifest& manifest) {
    constexpr double operations_per_element = 4;
    const auto elements_of = [](const std::vector<int64_t>& dims) {
        return static_cast<double>(element_count(dims));
    };
    if (!step.group) return operations_per_element * elements_of(step.output_dims);
    const std::vector<int64_t>& dims = manifest.tensor(step.group->outputs[0]).dims;
    const double weights = static_cast<double>(step.group->constants_count_elements) /
                           static_cast<double>(dims.size() > 1 ? dims[1] : 1);
    return elements_of(dims) * (operations_per_element + weights);
}

}  // namespace

void Session::Implementation::prepare(const laminate_compiled_network& compiled,
                                      const SessionOptions& options, const std::string& place) {
    network = compiled;
    where = place;
    if (network.abi_version != LAMINATE_ABI_VERSION) {
        throw InputError(where + ": is of version " + std::to_string(network.abi_version) +
                         ", this runtime is of version " + std::to_string(LAMINATE_ABI_VERSION));
    }
    if (options.threads < 0 || options.threads > most_threads) {
        throw InputError("threads: found " + std::to_string(options.threads) + ", expected 0 to " +
                         std::to_string(most_threads));
    }
    if (!network.manifest) throw InputError(where + ": has no manifest");
    manifest = parse_manifest(network.manifest, where + ": manifest");
    check_cpu(manifest, where);
    layers.resize(manifest.steps.size());
    least_operations = options.least_operations;
    times_steps = options.times_steps;
    use.threads =
        options.threads > 0 ? options.threads : std::min(omp_get_max_threads(), most_threads);
    team = std::make_unique<Team>(use.threads);
    loop.emplace(use.threads);
    if (manifest.open) manifest = manifest_at(manifest, manifest.open->reference, use.threads);
    make_ready();
}

void Session::Implementation::make_ready() {
    steps.clear();
    copied_outputs.clear();
    queues.clear();
    buffers.clear();
    for (const Step& step : manifest.steps) add_step(step);
    place();
    allocate();
}

void Session::Implementation::resize(const SizeValues& size) {
    Manifest next = manifest_at(manifest, size, use.threads);
    std::swap(manifest, next);
    try {
        make_ready();
    } catch (...) {
        // The memory of the size before is there already.
        manifest = std::move(next);
        make_ready();
        throw;
    }
}

/// Gives every tensor its place and drops the steps that have nothing to do.
void Session::Implementation::place() {
    TensorPlaces placement = place_tensors(manifest);
    places = std::move(placement.places);
    std::vector<ReadyStep> with_work;
    for (size_t k = 0; k < steps.size(); ++k) {
        if (!placement.is_in_place[k]) with_work.push_back(std::move(steps[k]));
    }
    steps = std::move(with_work);
    for (size_t k = 0; k < manifest.outputs.size(); ++k) {
        const Place place = places[manifest.outputs[k]];
        if (place.in != Place::In::output || place.at != static_cast<int64_t>(k))
            copied_outputs.push_back(k);
    }
    use.tensors_bytes = placement.arena_bytes;
}

/// Decides the number of threads and allocates what runs use.
void Session::Implementation::allocate() {
    double operations = 0;
    for (const ReadyStep& step : steps) {
        queues.emplace_back(use.threads);
        operations += operations_of(step, manifest);
    }
    is_divided = operations >= least_operations;
    size_t most = 0;
    use.scratch_per_thread_bytes = 0;
    for (const ReadyStep& step : steps) {
        if (!step.group) continue;
        use.scratch_per_thread_bytes =
            std::max(use.scratch_per_thread_bytes, aligned(step.group->scratch_bytes));
        most = std::max({most, step.group->inputs.size() + 1, step.group->outputs.size()});
    }
    use.total_bytes =
        checked_add(use.tensors_bytes, checked_multiply(use.scratch_per_thread_bytes, use.threads));
    if (use.total_bytes > arena_capacity) {
        std::unique_ptr<std::byte, FreeArray> larger(static_cast<std::byte*>(
            allocate_on_huge_pages(arena_alignment_bytes, static_cast<size_t>(use.total_bytes))));
        if (!larger) throw ArenaError(use.total_bytes);
        arena = std::move(larger);
        arena_capacity = use.total_bytes;
    }
    constexpr size_t line = arena_alignment_bytes / sizeof(float*);
    pointers_per_thread = (most + 2 * line - 1) / line * line;
    input_pointers.resize(pointers_per_thread * static_cast<size_t>(use.threads));
    output_pointers.resize(input_pointers.size());
    if (times_steps) shares.resize(steps.size() * static_cast<size_t>(use.threads));
}

float* Session::Implementation::locate(TensorId id, const float* const* inputs,
                                       float* const* outputs) const {
    const Place place = places[id];
    switch (place.in) {
        case Place::In::arena:
            return reinterpret_cast<float*>(arena.get() + place.at);
        // The casts are safe: check() refuses a step that writes an input, and the only step that
        // would write a constant map has nothing to do.
        case Place::In::constants:
            return const_cast<float*>(network.constants) + place.at / bytes_per_element;
        case Place::In::input:
            return const_cast<float*>(inputs[place.at]) + place.offset_bytes / bytes_per_element;
        case Place::In::output:
            return outputs[place.at] + place.offset_bytes / bytes_per_element;
    }
    return nullptr;
}

int Session::Implementation::run_strips(const ReadyStep& step, int64_t image, int32_t begin,
                                        int32_t end, int thread, const float* const* inputs,
                                        float* const* outputs) {
    const GroupStep& group = *step.group;
    const float** in = input_pointers.data() + static_cast<size_t>(thread) * pointers_per_thread;
    float** out = output_pointers.data() + static_cast<size_t>(thread) * pointers_per_thread;
    for (size_t k = 0; k < group.inputs.size(); ++k)
        in[k] = locate(group.inputs[k], inputs, outputs) + image * step.input_image_elements[k];
    // Behind the inputs, where code of one size never looks.
    in[group.inputs.size()] = reinterpret_cast<const float*>(step.sizes.data());
    for (size_t k = 0; k < group.outputs.size(); ++k)
        out[k] = locate(group.outputs[k], inputs, outputs) + image * step.output_image_elements[k];
    void* scratch = arena.get() + use.tensors_bytes + thread * use.scratch_per_thread_bytes;
    if (!listener.function || !step.trace)
        return step.function(in, out, step.constants, scratch, begin, end);
    const GroupTrace::Call call(*step.trace, listener, image);
    return step.hooked(in, out, step.constants, scratch, begin, end, call.hook());
}

void Session::Implementation::run_layer(ReadyStep& step, const float* const* inputs,
                                        float* const* outputs, int threads) {
    for (size_t k = 0; k < step.input_arrays.size(); ++k)
        step.input_arrays[k] = locate(step.layer.inputs[k], inputs, outputs);
    run_reference_layer(step.layer, step.input_dims, step.input_arrays, step.output_dims,
                        locate(step.layer.output, inputs, outputs), threads);
}

namespace {

[[noreturn]] void throw_failed(const ReadyStep& step, int code) {
    throw RunError("group " + step.group->name + ": the compiled code returned " +
                   std::to_string(code));
}

}  // namespace

void Session::Implementation::run_alone(const float* const* inputs, float* const* outputs) {
    const auto run_step = [&](ReadyStep& step) {
        if (!step.group) {
            run_layer(step, inputs, outputs, 1);
            return;
        }
        // All strips of an image in one call, which costs no more than a call per strip.
        for (int64_t image = 0; image < step.images; ++image) {
            const int code = run_strips(step, image, 0, step.group->strips, 0, inputs, outputs);
            if (code != 0) throw_failed(step, code);
        }
    };
    for (size_t s = 0; s < steps.size(); ++s) {
        StepClock clock(share_of(s, 0));
        clock.work([&] {
            run_step(steps[s]);
            return true;
        });
        clock.end();
    }
}

void Session::Implementation::run_in_team(int threads, const float* const* inputs,
                                          float* const* outputs) {
    for (size_t s = 0; s < steps.size(); ++s) {
        if (const auto& group = steps[s].group) {
            queues[s].fill(steps[s].images * group->strips, group->strips_together);
        } else {
            queues[s].fill(1);
        }
    }
    // The first failure: its step, and the code's result or the exception of a layer. No part runs
    // after it.
    std::atomic<size_t> failed{steps.size()};
    std::atomic<int> failure{0};
    std::exception_ptr thrown;
    constexpr int threw = -1;
    const auto run_parts = [&](size_t s, int64_t begin, int64_t end, int thread) {
        ReadyStep& step = steps[s];
        if (step.group) {
            const int32_t strips = step.group->strips;
            const auto strip = static_cast<int32_t>(begin % strips);
            return run_strips(step, begin / strips, strip, strip + static_cast<int32_t>(end - begin),
                              thread, inputs, outputs);
        }
        try {
            const SharedLoop::Leader leader(&*loop, thread);
            run_layer(step, inputs, outputs, threads);
            return 0;
        } catch (...) {
            thrown = std::current_exception();
            return threw;
        }
    };
    team->run([&](Team::Member& member) {
        const SubnormalsAreZeros of_this_thread(!manifest.strict);
        const int thread = member.number();
        for (size_t s = 0; s < steps.size(); ++s) {
            StepClock clock(share_of(s, thread));
            const auto work = [&](int64_t begin, int64_t end) {
                if (failure.load(std::memory_order_relaxed) != 0) return;
                clock.work([&] {
                    const int code = run_parts(s, begin, end, thread);
                    int none = 0;
                    if (code != 0 && failure.compare_exchange_strong(none, code)) failed = s;
                    return true;
                });
            };
            const auto help = [&] {
                return !steps[s].group && clock.work([&] { return loop->help(thread); });
            };
            const bool goes_on = queues[s].finish(thread, work, help,
                                                  [&](int rounds) { return member.rest(rounds); });
            if (!goes_on) return;
            clock.end();
        }
    });
    if (thrown) std::rethrow_exception(thrown);
    if (failure != 0) throw_failed(steps[failed], failure);
}

namespace {

/// Marks a session as running while it lives.
class Running {
public:
    /// Throws RunError when another run has marked the session.
    explicit Running(std::atomic<bool>& flag) : flag_(flag) {
        if (flag_.exchange(true, std::memory_order_acquire)) {
            throw RunError(
                "session: is busy with another run; expected one run at a time, "
                "or a session per thread");
        }
    }
    ~Running() { flag_.store(false, std::memory_order_release); }
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;

private:
    std::atomic<bool>& flag_;
};

}  // namespace

void Session::Implementation::run(const float* const* inputs, float* const* outputs) {
    for (size_t k = 0; k < manifest.inputs.size(); ++k) {
        if (!inputs[k])
            throw InputError("input " + manifest.tensor(manifest.inputs[k]).name + ": no array");
    }
    for (size_t k = 0; k < manifest.outputs.size(); ++k) {
        if (!outputs[k])
            throw InputError("output " + manifest.tensor(manifest.outputs[k]).name + ": no array");
    }
    const Running running(is_running);
    const SubnormalsAreZeros of_this_thread(!manifest.strict);
    const int threads = omp_in_parallel() || is_in_team() ? 1 : team_size(use.threads);
    std::ranges::fill(shares, StepShare{});
    if (threads > 1 && is_divided && !listener.function) {
        run_in_team(threads, inputs, outputs);
    } else {
        run_alone(inputs, outputs);
    }
    for (const size_t k : copied_outputs) {
        const TensorId id = manifest.outputs[k];
        const int64_t bytes = element_count(manifest.tensor(id).dims) * bytes_per_element;
        std::memcpy(outputs[k], locate(id, inputs, outputs), static_cast<size_t>(bytes));
    }
}

bool Session::is_any_size() const { return manifest().open.has_value(); }

void Session::resize(int64_t rows, int64_t columns) {
    const std::vector<Tensor> all = inputs();
    const auto map = std::find_if(all.begin(), all.end(),
                                  [](const Tensor& input) { return input.dims.size() == 4; });
    resize(map == all.end() ? 1 : map->dims.front(), rows, columns);
}

void Session::resize(int64_t images, int64_t rows, int64_t columns) {
    const Running running(implementation_->is_running);
    implementation_->resize({.images = images, .rows = rows, .columns = columns});
}

void Session::set_trace(laminate_trace_function trace, void* user) {
    if (!manifest().instrumented) {
        throw InputError(manifest().network +
                         ": was compiled without hooks, expected laminate compile --instrumented");
    }
    if (!manifest().replaced_groups.empty()) {
        throw InputError(manifest().network +
                         ": its code is not that of its schedule, because group " +
                         manifest().replaced_groups.front() + " was replaced");
    }
    const Running running(implementation_->is_running);
    implementation_->listener = {trace, user};
}

const std::vector<const laminate_buffer*>& Session::buffers() const {
    return implementation_->buffers;
}

Session::Session(std::unique_ptr<Implementation> implementation)
    : implementation_(std::move(implementation)) {}
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;
Session::~Session() = default;

Session Session::open(const laminate_compiled_network* network, const SessionOptions& options) {
    if (!network) throw InputError("compiled network: found none");
    auto implementation = std::make_unique<Implementation>();
    implementation->prepare(*network, options, "compiled network");
    return Session(std::move(implementation));
}

Session Session::open(const std::filesystem::path& directory, const SessionOptions& options) {
    const std::string text = read_file(directory / manifest_file);
    const Manifest manifest = parse_manifest(text, (directory / manifest_file).string());
    const std::filesystem::path file = directory / shared_library_file(manifest);
    std::error_code error;
    if (!std::filesystem::is_regular_file(file, error))
        throw InputError(file.string() + ": no such file");
    check_cpu(manifest, file.string());
    check_library(file, manifest);
    auto implementation = std::make_unique<Implementation>();
    // An absolute path: dlopen() looks for a bare name in the system's directories.
    implementation->library.reset(
        dlopen(std::filesystem::absolute(file).c_str(), RTLD_NOW | RTLD_LOCAL));
    if (!implementation->library) {
        const char* reason = dlerror();
        throw InputError(file.string() +
                         ": cannot be loaded: " + (reason ? reason : "no reason given"));
    }
    const auto* network = static_cast<const laminate_compiled_network*>(
        dlsym(implementation->library.get(), "laminate_network"));
    if (!network)
        throw InputError(
            file.string() +
            ": has no symbol laminate_network, expected a library of `laminate compile`");
    if (network->abi_version == LAMINATE_ABI_VERSION && network->manifest &&
        !is_same_compilation(text, manifest, network->manifest)) {
        throw InputError(file.string() + ": was not made together with " +
                         (directory / manifest_file).string());
    }
    implementation->prepare(*network, options, file.string());
    return Session(std::move(implementation));
}

const Manifest& Session::manifest() const { return implementation_->manifest; }

std::vector<Tensor> Session::inputs() const { return manifest().tensors_of(manifest().inputs); }

std::vector<Tensor> Session::outputs() const { return manifest().tensors_of(manifest().outputs); }

ArenaUse Session::arena() const { return implementation_->use; }

std::vector<StepTime> Session::step_times() const {
    using Milliseconds = std::chrono::duration<double, std::milli>;
    const Implementation& all = *implementation_;
    std::vector<StepTime> times;
    for (size_t s = 0; all.times_steps && s < all.steps.size(); ++s) {
        StepTime& time = times.emplace_back(StepTime{all.steps[s].number, {}, {}});
        for (size_t n = s; n < all.shares.size(); n += all.steps.size()) {
            time.work_ms.push_back(Milliseconds(all.shares[n].work).count());
            time.waiting_ms.push_back(Milliseconds(all.shares[n].waiting).count());
        }
    }
    return times;
}

void Session::run(const std::vector<const float*>& inputs, const std::vector<float*>& outputs) {
    const auto expect = [](size_t found, size_t expected, const char* what) {
        if (found != expected) {
            throw InputError("run: found " + std::to_string(found) + " " + what + ", expected " +
                             std::to_string(expected));
        }
    };
    expect(inputs.size(), manifest().inputs.size(), "inputs");
    expect(outputs.size(), manifest().outputs.size(), "outputs");
    implementation_->run(inputs.data(), outputs.data());
}

void Session::run(const float* const* inputs, float* const* outputs) {
    implementation_->run(inputs, outputs);
}

}  // namespace laminate
