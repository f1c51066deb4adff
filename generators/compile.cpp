#include "generators/compile.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <map>
#include <new>
#include <optional>

#include "base/error.h"
#include "base/files.h"
#include "generators/compiled_files.h"
#include "generators/executable.h"
#include "generators/optimised.h"
#include "scheduler/line_buffers.h"

namespace laminate {

namespace {

std::string identifier_for(const std::string& name) {
    std::string text;
    for (const char c : name) text += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
    if (text.empty() || std::isdigit(static_cast<unsigned char>(text.front())) != 0) text.insert(0, "net_");
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
    return std::to_string(HALIDE_VERSION_MAJOR) + "." + std::to_string(HALIDE_VERSION_MINOR) + "." + std::to_string(HALIDE_VERSION_PATCH);
}

/// One group of the manifest with its code, checked.
struct BuiltGroup {
    GroupSchedule schedule;
    GroupCode code;
    JitGroup jit;
};

/// Code of every group, constants of the whole network, and the manifest that says how they run.
struct BuiltNetwork {
    std::vector<BuiltGroup> groups;
    std::vector<float> constants;
    Manifest manifest;
};

class Builder {
public:
    Builder(const Network& network, const CompileOptions& options, const Halide::Target& target)
        : network_(network), options_(options), unit_(vector_unit(target)) {
        Manifest& m = built_.manifest;
        m.network = network.name;
        m.network_hash = network_hash(network);
        m.library = options.name.empty() ? identifier_for(network.name) : options.name;
        if (!is_identifier(m.library)) {
            throw InputError("name \"" + m.library + "\" is no identifier; expected letters, digits and _, not a digit first");
        }
        m.target = target.to_string();
        m.halide_version = halide_version();
        m.cpu_features = cpu_features(target);
        m.tensors = network.tensors;
        m.inputs = network.inputs;
        m.outputs = network.outputs;
    }

    BuiltNetwork build(const Schedule& schedule) && {
        // A group runs where its last layer stands: its only input exists by then, and nobody needs its output earlier.
        std::map<LayerId, const GroupSchedule*> by_sink;
        std::vector<bool> is_grouped(network_.layers.size(), false);
        for (const GroupSchedule& group : schedule.groups()) {
            for (const Nest& nest : group.nests) is_grouped[static_cast<size_t>(network_.find_layer(nest.layer))] = true;
            by_sink[network_.find_layer(group.nests.back().layer)] = &group;
        }
        for (LayerId id = 0; id < std::ssize(network_.layers); ++id) {
            if (const auto group = by_sink.find(id); group != by_sink.end()) {
                add_group(*group->second);
            } else if (!is_grouped[static_cast<size_t>(id)]) {
                built_.manifest.steps.emplace_back(layer_step(network_.layer(id), built_.constants));
            }
        }
        return std::move(built_);
    }

private:
    static std::string name_of(const GroupSchedule& group) {
        const std::string& last = group.nests.back().layer;
        return group.nests.size() == 1 ? last : group.nests.front().layer + " .. " + last;
    }

    void add_group(const GroupSchedule& schedule) {
        GroupCode code = optimised_code(network_, schedule, unit_);
        JitGroup jit(code.body, false);
        if (const std::string wrong = wrong_result(network_, schedule, code, jit.function(), options_.check); !wrong.empty()) {
            replace(schedule, wrong);
            return;
        }
        GroupStep step;
        step.group = static_cast<int32_t>(built_.groups.size());
        step.name = name_of(schedule);
        for (const Nest& nest : schedule.nests) step.layers.push_back(nest.layer);
        step.schedule = to_text(schedule);
        step.inputs = {network_.layer(network_.find_layer(schedule.nests.front().layer)).inputs[0]};
        step.outputs = {network_.layer(network_.find_layer(schedule.nests.back().layer)).output};
        constexpr size_t boundary = 16;  // elements: code loads constants as whole vectors
        built_.constants.resize((built_.constants.size() + boundary - 1) / boundary * boundary);
        step.constants_offset_elements = std::ssize(built_.constants);
        step.constants_count_elements = std::ssize(code.constants);
        built_.constants.insert(built_.constants.end(), code.constants.begin(), code.constants.end());
        code.constants = {};
        step.scratch_bytes = code.scratch_bytes;
        step.strips = static_cast<int32_t>(code.strips);
        built_.manifest.steps.emplace_back(std::move(step));
        built_.groups.push_back({schedule, std::move(code), std::move(jit)});
    }

    void replace(const GroupSchedule& schedule, const std::string& wrong) {
        const std::string found = "group " + name_of(schedule) + " computes a wrong result (" + wrong + "); ";
        const LayerId last = network_.find_layer(schedule.nests.back().layer);
        const bool is_plain = schedule.nests.size() == 1 && schedule == line_buffer_group(network_, {last});
        if (is_plain) {
            options_.note(found + "the reference operators run it");
            built_.manifest.steps.emplace_back(layer_step(network_.layer(last), built_.constants));
            return;
        }
        options_.note(found + "its layers are compiled one by one");
        for (const Nest& nest : schedule.nests) add_group(line_buffer_group(network_, {network_.find_layer(nest.layer)}));
    }

    const Network& network_;
    const CompileOptions& options_;
    VectorUnit unit_;
    BuiltNetwork built_;
};

struct FreeArray {
    void operator()(float* array) const { std::free(array); }
};

}  // namespace

// ------------------------------------------------------------------------------------------------------------ in this process

struct JitNetwork::Implementation {
    BuiltNetwork built;
    std::string manifest_text;
    std::unique_ptr<float, FreeArray> constants;  ///< on a 64-byte boundary
    std::vector<laminate_group_function> functions;
    laminate_compiled_network descriptor{};
};

JitNetwork::JitNetwork(const Network& network, const Schedule& schedule, const CompileOptions& options)
    : implementation_(std::make_unique<Implementation>()) {
    Implementation& it = *implementation_;
    it.built = Builder(network, options, Halide::get_host_target()).build(schedule);
    it.manifest_text = to_json(it.built.manifest);
    const size_t count = it.built.constants.size();
    it.constants.reset(static_cast<float*>(std::aligned_alloc(64, (count + 16) / 16 * 16 * sizeof(float))));
    if (it.constants == nullptr) throw std::bad_alloc();
    std::copy(it.built.constants.begin(), it.built.constants.end(), it.constants.get());
    it.built.constants = {};
    for (const BuiltGroup& group : it.built.groups) it.functions.push_back(group.jit.function());
    it.descriptor = {LAMINATE_ABI_VERSION,
                     it.manifest_text.c_str(),
                     it.constants.get(),
                     count,
                     it.functions.data(),
                     static_cast<uint32_t>(it.functions.size())};
}

JitNetwork::JitNetwork(JitNetwork&&) noexcept = default;
JitNetwork& JitNetwork::operator=(JitNetwork&&) noexcept = default;
JitNetwork::~JitNetwork() = default;

const laminate_compiled_network& JitNetwork::descriptor() const { return implementation_->descriptor; }
const Manifest& JitNetwork::manifest() const { return implementation_->built.manifest; }

// ------------------------------------------------------------------------------------------------------------------- as files

Manifest compile_network(const Network& network, const Schedule& schedule, const CompileOptions& options,
                         const std::filesystem::path& directory) {
    CompiledDirectory files(directory);  // before the work: a directory that is in the way is refused at once
    const Halide::Target target = code_target(options.target);
    BuiltNetwork built = Builder(network, options, target).build(schedule);

    const std::string& name = built.manifest.library;
    std::vector<NamedBody> bodies;
    for (size_t g = 0; g < built.groups.size(); ++g) bodies.push_back({group_symbol(name, g), built.groups[g].code.body});
    if (!bodies.empty()) write_object(bodies, name, target, (files.aside() / "groups.o").string());
    write_file_atomically(files.aside() / "schedule.json", to_json(network, schedule));
    write_file_atomically(files.aside() / manifest_file, to_json(built.manifest));
    write_file_atomically(files.aside() / (name + ".h"), header_text(built.manifest));
    link_libraries(files.aside(), built.manifest, built.constants, bodies.size(), {options.compiler, options.archiver});
    files.publish();
    return std::move(built.manifest);
}

}  // namespace laminate
