#include "generators/compile/compile.h"

#include <algorithm>
#include <cctype>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <variant>

#include "base/aligned.h"
#include "base/error.h"
#include "base/files.h"
#include "base/new_directory.h"
#include "base/parallel.h"
#include "generators/compile/compiled_files.h"
#include "generators/compile/executable.h"
#include "generators/compile/group_compiler.h"
#include "generators/compile/hooks.h"
#include "generators/kernels/group_kernels.h"
#include "runtime/any_size.h"
#include "scheduler/explore/planner/any_size.h"
#include "scheduler/explore/planner/line_buffers.h"
#include "scheduler/schedule/kernels/layer_forms.h"
#include "scheduler/schedule/open_group.h"
#include "source_version.h"

namespace laminate {

namespace {

std::string identifier_for(const std::string& name) {
    std::string text;
    for (const char c : name) text += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
    if (text.empty() || std::isdigit(static_cast<unsigned char>(text.front())) != 0)
        text.insert(0, "net_");
    return text;
}

/// The features of runtime/cpu.h that code for this target may use.
std::vector<std::string> cpu_features(const Halide::Target& target) {
    using Target = Halide::Target;
    static const std::vector<std::pair<Target::Feature, std::vector<std::string>>> table{
        {Target::SSE41, {"sse4.1"}},
        {Target::AVX, {"avx"}},
        {Target::AVX2, {"avx2"}},
        {Target::FMA, {"fma"}},
        {Target::F16C, {"f16c"}},
        {Target::AVX512, {"avx512f", "avx512cd"}},
        {Target::AVX512_Skylake, {"avx512f", "avx512cd", "avx512vl", "avx512bw", "avx512dq"}},
        {Target::AVX512_Cannonlake, {"avx512f", "avx512cd", "avx512vl", "avx512bw", "avx512dq"}},
        {Target::AVX512_Zen4,
         {"avx512f", "avx512cd", "avx512vl", "avx512bw", "avx512dq", "avx512vnni", "avx512bf16"}},
        {Target::AVX512_Zen5,
         {"avx512f", "avx512cd", "avx512vl", "avx512bw", "avx512dq", "avx512vnni", "avx512bf16"}},
        {Target::AVX512_SapphireRapids,
         {"avx512f", "avx512cd", "avx512vl", "avx512bw", "avx512dq", "avx512vnni", "avx512bf16"}},
    };
    std::vector<std::string> names;
    for (const auto& [feature, implied] : table) {
        if (!target.has_feature(feature)) continue;
        for (const std::string& name : implied) {
            if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
        }
    }
    return names;
}

std::string halide_version() {
    return std::to_string(HALIDE_VERSION_MAJOR) + "." + std::to_string(HALIDE_VERSION_MINOR) + "." +
           std::to_string(HALIDE_VERSION_PATCH);
}

/// A group whose code computes what it should.
struct CheckedGroup {
    GroupSchedule schedule;
    GroupCode code;
    std::shared_ptr<const JitGroup> jit;  ///< of all groups with the same code
    bool is_scheduled = false;            ///< of the schedule, not of a layer outside it
};

/// Code of every distinct group, constants of the whole network, and the manifest that says how
/// they run.
struct BuiltNetwork {
    std::vector<std::shared_ptr<const JitGroup>> functions;
    std::vector<Halide::Internal::Stmt> bodies;  ///< of the functions, with hooks if wanted
    std::unique_ptr<AlignedFloats> constants;
    Manifest manifest;
};

/// The constants of all steps, one after the other on 64-byte boundaries: code loads them as whole
/// vectors.
class ConstantsOfSteps {
public:
    /// Returns where they begin, in elements.
    int64_t append(std::vector<float> values) {
        const int64_t begin = elements_;
        elements_ = round_up(begin + std::ssize(values), boundary);
        blocks_.push_back({begin, std::move(values)});
        return begin;
    }
    /// Copies everything into one array. Several threads do it, since new pages take most of the time.
    [[nodiscard]] std::unique_ptr<AlignedFloats> joined(int threads) && {
        auto all = std::make_unique<AlignedFloats>(AlignedFloats::uninitialized(
            static_cast<size_t>(elements_)));
        in_parallel(blocks_.size(), threads, [&](size_t n) {
            auto& [begin, values] = blocks_[n];
            float* to = all->data() + begin;
            std::copy(values.begin(), values.end(), to);
            std::fill(to + values.size(), to + round_up(std::ssize(values), boundary), 0.0F);
            values = {};
        });
        return all;
    }

private:
    /// Elements.
    static constexpr int64_t boundary = AlignedFloats::alignment_bytes / sizeof(float);
    struct Block {
        int64_t begin = 0;
        std::vector<float> values;
    };
    std::vector<Block> blocks_;
    int64_t elements_ = 0;
};

/// The zoo draws weights when they are first read. Here all threads do, before the hash reads them
/// one after the other.
void draw_weights(const Network& network, int threads) {
    in_parallel(network.layers.size(), threads, [&](size_t n) {
        const ConstantPtr& weights = network.layers[n].weights;
        if (weights) (void)weights->values.begin();
    });
}

class Builder {
public:
    Builder(const Network& network, const CompileOptions& options, const Halide::Target& target)
        : network_(network),
          options_(options),
          unit_(vector_unit(target)),
          compiler_(network, options, target) {
        Manifest& m = built_.manifest;
        m.network = network.name;
        draw_weights(network, thread_count(options));
        m.network_hash = network_hash(network);
        m.library = options.name.empty() ? identifier_for(network.name) : options.name;
        if (!is_identifier(m.library)) {
            throw InputError(
                "name \"" + m.library +
                "\" is no identifier; expected letters, digits and _, not a digit first");
        }
        if (m.library == "laminate")
            throw InputError("name \"laminate\" is that of the runtime library; expected another");
        m.target = target.to_string();
        m.halide_version = halide_version();
        m.cpu_features = cpu_features(target);
        m.tensors = network.tensors;
        m.inputs = network.inputs;
        m.outputs = network.outputs;
        m.instrumented = options.instrumented;
        m.strict = options.kernels.strict;
        if (options.any_size != nullptr) {
            const TensorSizes& sizes = *options.any_size;
            m.open = OpenSizes{sizes.reference(), sizes.least().rows, sizes.least().columns, {}};
            for (const auto& dims : sizes.dims()) m.open->dims.push_back(dims);
        }
    }

    BuiltNetwork build(const Schedule& schedule) && {
        const std::vector<GroupSchedule> groups = groups_with_code(schedule);
        const int threads = thread_count(options_);
        std::vector<CompiledGroup> compiled = compiler_.compiled(groups);
        const std::string record = record_of_checks(groups);
        is_checked_ = options_.cache && !options_.checker && options_.cache->find(record);
        std::vector<std::vector<Piece>> pieces(groups.size());
        const size_t scheduled = schedule.groups().size();
        tell_in_parallel(options_.progress, "checking group", groups.size(), threads, [&](size_t g) {
            settle(groups[g], compiled[g], g < scheduled, pieces[g]);
        });
        if (options_.cache && !options_.checker && !is_checked_ &&
            built_.manifest.replaced_groups.empty())
            options_.cache->keep(record, "");
        if (options_.times != nullptr) {
            for (CompiledGroup& one : compiled) options_.times->groups.push_back(std::move(one.times));
        }

        // A group runs where its last layer stands: its inputs exist by then, and nobody needs its
        // output earlier.
        std::map<LayerId, std::vector<Piece>> by_layer;
        for (const LayerId id : outside_of(groups)) {
            require_one_operator(id);
            by_layer[id].emplace_back(id);
        }
        for (size_t g = 0; g < groups.size(); ++g)
            by_layer[network_.find_layer(groups[g].nests.back().layer)] = std::move(pieces[g]);
        for (auto& [id, all] : by_layer) {
            for (Piece& piece : all) add(std::move(piece));
        }
        built_.constants = std::move(constants_).joined(threads);
        return std::move(built_);
    }

    [[nodiscard]] Bytes scratch_per_thread(const Schedule& schedule) const {
        const std::vector<GroupSchedule> groups = groups_with_code(schedule);
        std::vector<int64_t> bytes(groups.size());
        in_parallel(groups.size(), thread_count(options_),
                    [&](size_t g) { bytes[g] = group_code(network_, groups[g]).scratch_bytes; });
        return Bytes(bytes.empty() ? 0 : *std::max_element(bytes.begin(), bytes.end()));
    }

private:
    using Piece = std::variant<CheckedGroup, LayerId>;

    /// The schedule's, and those of layers that no group has got but that have code of their own
    /// (with_layers_alone).
    [[nodiscard]] std::vector<GroupSchedule> groups_with_code(const Schedule& schedule) const {
        std::vector<GroupSchedule> groups = with_layers_alone(network_, schedule).groups();
        for (GroupSchedule& group : groups) group = with_kernels(group);
        return groups;
    }
    [[nodiscard]] GroupSchedule with_kernels(const GroupSchedule& group) const {
        return with_default_kernels(group_problems(network_, group), group, unit_,
                                    options_.kernels);
    }
    /// The layer alone, as it is compiled where its group failed.
    [[nodiscard]] GroupSchedule single(LayerId id) const {
        return with_kernels(line_buffer_group(network_, {id}));
    }

    [[nodiscard]] std::vector<LayerId> outside_of(const std::vector<GroupSchedule>& groups) const {
        std::vector<bool> is_grouped(network_.layers.size(), false);
        for (const GroupSchedule& group : groups) {
            for (const Nest& nest : group.nests)
                is_grouped[static_cast<size_t>(network_.find_layer(nest.layer))] = true;
        }
        std::vector<LayerId> outside;
        for (LayerId id = 0; id < std::ssize(network_.layers); ++id) {
            if (!is_grouped[static_cast<size_t>(id)]) outside.push_back(id);
        }
        return outside;
    }

    /// A layer outside groups runs with the attributes that the manifest has, whatever the size.
    void require_one_operator(LayerId id) const {
        if (options_.any_size == nullptr) return;
        SizeValues other = options_.any_size->reference();
        ++other.rows;
        ++other.columns;
        if (options_.any_size->network_at(other).layer(id).general.dims !=
            network_.layer(id).general.dims)
            throw InputError("layer " + network_.layer(id).name +
                             ": cannot be of any size: it is in no group, and its attributes depend "
                             "on the size");
    }

    /// What runs instead of the group: itself, unless it fails its check. Called by several
    /// threads.
    void settle(const GroupSchedule& schedule, CompiledGroup& compiled, bool is_scheduled,
                std::vector<Piece>& pieces) {
        const std::string wrong = wrong_in(schedule, compiled);
        if (wrong.empty()) {
            pieces.emplace_back(
                CheckedGroup{schedule, std::move(compiled.code), compiled.jit, is_scheduled});
            return;
        }
        if (compiler_.is_of_any_size(schedule)) {
            throw InputError(network_.name + ": cannot be of any size: group " + name_of(schedule) +
                             " computes a wrong result (" + wrong + ")");
        }
        note_replaced(name_of(schedule));
        const std::string found =
            "group " + name_of(schedule) + " computes a wrong result (" + wrong + "); ";
        const LayerId last = network_.find_layer(schedule.nests.back().layer);
        const bool is_last_form = schedule.nests.size() == 1 &&
                                  (!must_be_scheduled(network_, last) || schedule == single(last));
        if (is_last_form) {
            note(found + "the reference operators run it");
            pieces.emplace_back(last);
            return;
        }
        note(found + "its layers are compiled one by one");
        for (const Nest& nest : schedule.nests) {
            const LayerId id = network_.find_layer(nest.layer);
            if (must_be_scheduled(network_, id)) {
                const GroupSchedule alone = single(id);
                CompiledGroup one = compiler_.compiled(alone);
                settle(alone, one, false, pieces);
            } else {
                pieces.emplace_back(id);
            }
        }
    }

    [[nodiscard]] CheckOptions check_options() const {
        CheckOptions check = options_.check;
        check.specials = check.specials || options_.kernels.strict;
        return check;
    }
    [[nodiscard]] std::string wrong_in(const GroupSchedule& schedule,
                                       CompiledGroup& compiled) const {
        if (is_checked_) return "";
        const CpuClock clock;
        const auto checker = options_.checker ? options_.checker : wrong_result;
        CheckOptions check = check_options();
        // The first group of this code shows that it is right, the others that it is for their
        // weights too.
        if (compiled.times.is_equal) check.reference_macs = Macs(check.reference_macs.value() / 8);
        std::string wrong = checker(network_, schedule, compiled.code, compiled.jit->function(), check);
        if (compiled.code.open_scratch_bytes && wrong.empty())
            wrong = wrong_at_other_sizes(schedule, compiled.code, *compiled.jit, checker);
        compiled.times.check = clock.seconds();
        return wrong;
    }

    /// At small sizes, which are quickly checked and have strips and tiles that end everywhere.
    template <class Checker>
    [[nodiscard]] std::string wrong_at_other_sizes(const GroupSchedule& schedule,
                                                   const GroupCode& code, const JitGroup& jit,
                                                   const Checker& checker) const {
        const TensorSizes& sizes = *options_.any_size;
        const std::vector<LayerProblem> problems = group_problems(network_, schedule);
        const SizeValues least = sizes.least();
        for (const auto& [more_rows, more_columns] : {std::pair{61, 67}, std::pair{30, 114}}) {
            const SizeValues size{.rows = least.rows + more_rows,
                                  .columns = least.columns + more_columns,
                                  .strip_rows = 2 * strip_unit(schedule, problems, Dim::y),
                                  .strip_columns = strip_unit(schedule, problems, Dim::x)};
            const Network network = sizes.network_at(size);
            std::vector<LayerId> layers;
            for (const LayerProblem& p : problems) layers.push_back(p.layer);
            const std::vector<LayerProblem> there = layer_problems(network, layers);
            const GroupSchedule at = group_at(schedule, problems, there, size);
            const std::string wrong = checker(network, at, code_at(code, at, there, size),
                                              jit.function(), check_options());
            if (!wrong.empty()) return wrong + ", at " + size_text(size);
        }
        return "";
    }

    /// The entry of a network all of whose groups have passed their checks. Whether they pass may
    /// depend on its weights.
    [[nodiscard]] std::string record_of_checks(const std::vector<GroupSchedule>& groups) const {
        const CheckOptions check = check_options();
        std::string text = built_.manifest.network_hash + " seed " + std::to_string(check.seed) +
                           " reference " + std::to_string(check.reference_macs.value()) +
                           (check.specials ? " specials" : "") + "\n";
        if (options_.any_size != nullptr) {
            const SizeValues least = options_.any_size->least();
            text += "any size from " + size_text(least) + "\n";
            for (const GroupSchedule& group : groups) text += compiler_.key_of(group) + "\n";
        }
        for (const GroupSchedule& group : groups) text += to_text(group) + "\n";
        return cache_key("checked", text);
    }

    /// In the order of the names, whichever thread comes first.
    void note_replaced(const std::string& group) {
        const std::lock_guard lock(mutex_);
        std::vector<std::string>& names = built_.manifest.replaced_groups;
        names.insert(std::upper_bound(names.begin(), names.end(), group), group);
    }

    void note(const std::string& line) {
        const std::lock_guard lock(mutex_);
        options_.note(line);
    }

    void add(LayerId id) {
        std::vector<float> values;
        LayerStep step = layer_step(network_.layer(id), values);
        const int64_t begin = constants_.append(std::move(values));
        for (auto* range : {&step.weights, &step.bias, &step.slope}) {
            if (*range) (*range)->offset_elements += begin;
        }
        built_.manifest.steps.emplace_back(std::move(step));
    }

    void add(CheckedGroup&& group) {
        auto& functions = built_.functions;
        const auto known = std::find(functions.begin(), functions.end(), group.jit);
        GroupStep step;
        step.group = static_cast<int32_t>(known - functions.begin());
        if (known == functions.end()) {
            functions.push_back(group.jit);
            built_.bodies.push_back(
                options_.instrumented
                    ? hooked_body(network_, group.schedule, hook_symbol(built_.manifest.library))
                    : group.code.body);
        }
        step.name = name_of(group.schedule);
        for (const Nest& nest : group.schedule.nests) step.layers.push_back(nest.layer);
        step.schedule = to_text(group.schedule);
        for (const GroupTensor& tensor : group_tensors(group_problems(network_, group.schedule))) {
            if (tensor.is_external()) step.inputs.push_back(tensor.tensor);
        }
        step.outputs = {
            network_.layer(network_.find_layer(group.schedule.nests.back().layer)).output};
        step.constants_count_elements = std::ssize(group.code.constants);
        step.constants_offset_elements = constants_.append(std::move(group.code.constants));
        step.scratch_bytes = group.code.scratch_bytes;
        step.strips = static_cast<int32_t>(group.code.strips);
        step.strips_together = static_cast<int32_t>(group.code.strips_together);
        if (group.code.open_scratch_bytes)
            step.open = open_step(group.schedule, *group.code.open_scratch_bytes);
        if (options_.instrumented && group.is_scheduled)
            step.trace = promise_of(network_, group.schedule);
        built_.manifest.steps.emplace_back(std::move(step));
    }

    [[nodiscard]] OpenStep open_step(const GroupSchedule& group,
                                     const SizeFormula& scratch_bytes) const {
        const std::vector<LayerProblem> problems = group_problems(network_, group);
        const Nest& sink = group.nests.back();
        OpenStep step{scratch_bytes, {}, {}};
        const auto rule = [&](Dim d) {
            return StripRule{options_.any_size->extent(problems.back().output, d),
                             strip_unit(group, problems, d), 0, 0};
        };
        if (sink.strip[0] != 0) {
            step.rows = rule(Dim::y);
            step.rows->repeated = rows_repeated_per_seam(group, problems);
        }
        if (sink.strip[1] != 0) {
            step.columns = rule(Dim::x);
            step.columns->most = widest_strip(group, problems, options_.strips_cache);
        }
        return step;
    }

    void add(Piece&& piece) {
        std::visit([&](auto&& what) { add(std::forward<decltype(what)>(what)); }, std::move(piece));
    }

    const Network& network_;
    const CompileOptions& options_;
    VectorUnit unit_;
    GroupCompiler compiler_;
    BuiltNetwork built_;
    ConstantsOfSteps constants_;
    bool is_checked_ = false;  ///< the same network with the same code was, by another process
    std::mutex mutex_;
};

}  // namespace

std::string cache_key(const std::string& kind, const std::string& of) {
    return kind + "\nsources " + source_version + "\nhalide " + halide_version() + "\ntarget " +
           Halide::get_host_target().to_string() + "\n" + of;
}

Bytes scratch_per_thread(const Network& network, const Schedule& schedule,
                         const CompileOptions& options) {
    return Builder(network, options, code_target(options.target)).scratch_per_thread(schedule);
}

// ---- in this process

struct JitNetwork::Implementation {
    BuiltNetwork built;
    std::string manifest_text;
    std::vector<laminate_group_function> functions;
    std::vector<HookedJitGroup> hooked;
    std::vector<laminate_hooked_group_function> hooked_functions;
    laminate_compiled_network descriptor{};
};

JitNetwork::JitNetwork(const Network& network, const Schedule& schedule,
                       const CompileOptions& options)
    : implementation_(std::make_unique<Implementation>()) {
    Implementation& it = *implementation_;
    it.built = Builder(network, options, Halide::get_host_target()).build(schedule);
    it.manifest_text = to_json(it.built.manifest);
    for (const auto& function : it.built.functions) it.functions.push_back(function->function());
    if (options.instrumented) {
        for (const Halide::Internal::Stmt& body : it.built.bodies) {
            it.hooked.emplace_back(body, hook_symbol(it.built.manifest.library));
            it.hooked_functions.push_back(it.hooked.back().function());
        }
    }
    it.descriptor = {LAMINATE_ABI_VERSION,
                     it.manifest_text.c_str(),
                     it.built.constants->data(),
                     it.built.constants->size(),
                     it.functions.data(),
                     static_cast<uint32_t>(it.functions.size()),
                     it.hooked_functions.data()};
}

JitNetwork::JitNetwork(JitNetwork&&) noexcept = default;
JitNetwork& JitNetwork::operator=(JitNetwork&&) noexcept = default;
JitNetwork::~JitNetwork() = default;

const laminate_compiled_network& JitNetwork::descriptor() const {
    return implementation_->descriptor;
}
const Manifest& JitNetwork::manifest() const { return implementation_->built.manifest; }

// ---- as files

namespace {

/// Writes the code of all groups into object files, and returns their names. Code for this machine
/// is there already.
std::vector<std::string> write_objects(const BuiltNetwork& built, const CompileOptions& options,
                                       const Halide::Target& target,
                                       const std::filesystem::path& directory) {
    const std::string& name = built.manifest.library;
    const bool is_made =
        loads_objects && !options.instrumented && target == Halide::get_host_target();
    std::vector<std::vector<std::string>> files(built.functions.size());
    in_parallel(files.size(), thread_count(options), [&](size_t g) {
        const std::string symbol = group_symbol(name, g);
        std::vector<std::string> objects;
        if (is_made) {
            for (const std::string& object : built.functions[g]->objects())
                objects.push_back(with_functions_renamed(object, JitGroup::symbol, symbol));
        } else {
            objects.push_back(
                object_code({{symbol, built.bodies[g], options.instrumented}}, symbol, target));
        }
        for (size_t n = 0; n < objects.size(); ++n) {
            files[g].push_back("group" + std::to_string(g) + "_" + std::to_string(n) + ".o");
            write_file_atomically(directory / files[g].back(), objects[n]);
        }
    });
    std::vector<std::string> all;
    for (const std::vector<std::string>& of_group : files)
        all.insert(all.end(), of_group.begin(), of_group.end());
    return all;
}

}  // namespace

Manifest compile_network(const Network& network, const Schedule& schedule,
                         const CompileOptions& options, const std::filesystem::path& directory) {
    NewDirectory files(
        directory, compiled_files,
        "laminate compile");  // before the work: a directory that is in the way is refused at once
    const Halide::Target target = code_target(options.target);
    Builder builder(network, options, target);
    const LinkTools tools{options.compiler, options.archiver};
    // Before minutes of compiling: tools that cannot link what is made.
    const std::string trial = "trial.o";
    write_object({{"laminate_trial", Halide::Internal::Evaluate::make(0)}}, "laminate_trial",
                 target, (files.aside() / trial).string());
    check_tools(files.aside(), trial, options.target, tools);
    BuiltNetwork built = std::move(builder).build(schedule);

    const std::string& name = built.manifest.library;
    const std::vector<std::string> object_files =
        write_objects(built, options, target, files.aside());
    const Schedule compiled =
        with_default_kernels(network, schedule, vector_unit(target), options.kernels);
    write_file_atomically(files.aside() / "schedule.json", to_json(network, compiled));
    write_file_atomically(files.aside() / manifest_file, to_json(built.manifest));
    write_file_atomically(files.aside() / (name + ".h"), header_text(built.manifest));
    const double linking =
        link_libraries(files.aside(), built.manifest,
                       {built.constants->data(), built.constants->size()}, built.bodies.size(),
                       object_files, tools);
    if (options.times != nullptr) options.times->libraries += linking;
    built.manifest.library_file = identity_of(files.aside() / shared_library_file(built.manifest));
    write_file_atomically(files.aside() / manifest_file, to_json(built.manifest));
    files.publish();
    return std::move(built.manifest);
}

}  // namespace laminate
