#include "generators/compile/executable.h"

#include <cstdlib>
#include <map>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "generators/lowering/group_lowering.h"

namespace laminate {

using namespace Halide::Internal;

namespace {

/// What a function has besides the arguments of a laminate_group_function.
enum class Extra { none, counters, hook };

LoweredFunc lowered_function(const std::string& name, const Stmt& body, Extra extra,
                             Halide::LinkageType linkage) {
    std::vector<LoweredArgument> arguments;
    const auto add = [&](const char* argument_name, Halide::Type type) {
        arguments.emplace_back(argument_name, Halide::Argument::InputScalar, type, 0,
                               Halide::ArgumentEstimates{});
    };
    add(argument::inputs, Halide::Handle());
    add(argument::outputs, Halide::Handle());
    add(argument::constants, Halide::type_of<float*>());
    add(argument::scratch, Halide::type_of<float*>());
    add(argument::strip_begin, Halide::Int(32));
    add(argument::strip_end, Halide::Int(32));
    if (extra == Extra::counters) add(counters_argument, Halide::type_of<int64_t*>());
    if (extra == Extra::hook) add(hook_argument, Halide::Handle());
    return {name, arguments, body, linkage, Halide::NameMangling::C};
}

/// Whether sums are to be taken as they are written somewhere (Halide::strict_float): the compiler
/// then looks at each operation, otherwise at none.
bool has_strict_sums(const Stmt& body) {
    class Finder : public IRVisitor {
    public:
        bool found = false;

    protected:
        using IRVisitor::visit;
        void visit(const Call* call) override {
            found = found || call->is_strict_float_intrinsic();
            IRVisitor::visit(call);
        }
    } finder;
    body.accept(&finder);
    return finder.found;
}

/// Only Halide's JIT calls the second function, NAME_argv, of ExternalPlusArgv.
void append(Halide::Module& module, const std::string& name, const Stmt& body, Extra extra,
            Halide::LinkageType linkage = Halide::LinkageType::External) {
    if (has_strict_sums(body)) module.set_any_strict_float(true);
    module.append(lowered_function(name, body, extra, linkage));
}

JITModule jit_module(const std::string& name, const Stmt& body, Extra extra,
                     const Halide::Target& target = Halide::get_host_target(),
                     const std::vector<JITModule>& dependencies = {}) {
    Halide::Module module(name, target.with_feature(Halide::Target::JIT));
    append(module, name, body, extra, Halide::LinkageType::ExternalPlusArgv);
    return {module, module.functions().back(), dependencies};
}

std::string object_of(const Halide::Module& module, const Halide::Target& target) {
    try {
        const Halide::Buffer<uint8_t> object = module.compile_to_buffer();
        return {reinterpret_cast<const char*>(object.data()), object.size_in_bytes()};
    } catch (const Halide::CompileError& error) {
        throw InputError("target \"" + target.to_string() + "\": " + error.what());
    }
}

// What instrumented code, which allocates its buffers, calls instead of Halide's runtime.
void* allocate(void*, size_t bytes) {
    constexpr size_t boundary = 128;
    return std::aligned_alloc(boundary, (bytes + 2 * boundary - 1) / boundary * boundary);
}
void release(void*, void* memory) { std::free(memory); }
int out_of_memory(void*) { return halide_error_code_out_of_memory; }

std::map<std::string, const void*> memory_functions() {
    return {{"halide_malloc", reinterpret_cast<const void*>(allocate)},
            {"halide_free", reinterpret_cast<const void*>(release)},
            {"halide_error_out_of_memory", reinterpret_cast<const void*>(out_of_memory)}};
}

/// What code with hooks calls in this process; a library has a function of its own.
int32_t call_hook(const laminate_hook* hook, int32_t kind, int32_t buffer, int32_t z_begin,
                  int32_t z_end, int32_t y_begin, int32_t y_end, int32_t x_begin, int32_t x_end,
                  int32_t i_begin, int32_t i_end) {
    const int32_t box[]{z_begin, z_end, y_begin, y_end, x_begin, x_end, i_begin, i_end};
    if (hook != nullptr) hook->function(hook->context, kind, buffer, box);
    return 0;
}

std::vector<JITModule> exporting(const std::string& symbol) {
    JITModule module;
    module.add_symbol_for_export(symbol, JITModule::Symbol(reinterpret_cast<void*>(call_hook)));
    return {module};
}

}  // namespace

Halide::Target code_target(const std::string& text) {
    if (text == "host") return Halide::get_host_target();
    if (!Halide::Target::validate_target_string(text)) {
        throw InputError(
            "target \"" + text +
            "\" is not known; expected host or a Halide target such as x86-64-linux-avx2-fma");
    }
    const Halide::Target target(text);
    if (target.arch != Halide::Target::X86 && target.arch != Halide::Target::ARM)
        throw InputError("target \"" + text +
                         "\" is of an architecture without kernels, expected x86-64 or arm-64");
    // The code computes addresses in 64 bits, and in vectors of a known width.
    if (target.bits != 64) {
        throw InputError("target \"" + text + "\" has addresses of " + std::to_string(target.bits) +
                         " bits, expected 64");
    }
    if (target.vector_bits != 0 ||
        target.features_any_of({Halide::Target::SVE, Halide::Target::SVE2})) {
        throw InputError("target \"" + text +
                         "\" has vectors of no fixed width, expected a target without");
    }
    return target;
}

std::string object_code(const std::vector<NamedBody>& bodies, const std::string& module_name,
                        const Halide::Target& target) {
    Halide::Module module(module_name, target.with_feature(Halide::Target::NoRuntime));
    for (const NamedBody& body : bodies)
        append(module, body.symbol, body.body, body.hooked ? Extra::hook : Extra::none);
    return object_of(module, target);
}

void write_object(const std::vector<NamedBody>& bodies, const std::string& module_name,
                  const Halide::Target& target, const std::string& path) {
    write_file_atomically(path, object_code(bodies, module_name, target));
}

JitGroup::JitGroup(const Stmt& body, bool counted, const Halide::Target& target)
    : counted_(counted) {
    const Extra extra = counted ? Extra::counters : Extra::none;
    if (!loads_objects) {
        module_ = jit_module(symbol, body, extra, target);
        function_ = module_.main_function();
        return;
    }
    Halide::Module module(symbol, target.with_feature(Halide::Target::NoRuntime));
    append(module, symbol, body, extra);
    object_ = object_of(module, target);
    loaded_.emplace(object_, memory_functions());
    function_ = loaded_->function(symbol);
}

JitGroup::JitGroup(std::string object)
    : object_(std::move(object)), loaded_(object_), function_(loaded_->function(symbol)) {}

laminate_group_function JitGroup::function() const {
    return counted_ ? nullptr : reinterpret_cast<laminate_group_function>(function_);
}

CountedGroupFunction JitGroup::counted_function() const {
    return counted_ ? reinterpret_cast<CountedGroupFunction>(function_) : nullptr;
}

TracedJitGroup::TracedJitGroup(const Stmt& body)
    : module_(jit_module(JitGroup::symbol, body, Extra::none)) {}

laminate_group_function TracedJitGroup::function() const {
    return reinterpret_cast<laminate_group_function>(module_.main_function());
}

HookedJitGroup::HookedJitGroup(const Stmt& body, const std::string& symbol) {
    const Halide::Target host = Halide::get_host_target();
    if (!loads_objects) {
        module_ = jit_module(JitGroup::symbol, body, Extra::hook, host, exporting(symbol));
        function_ = module_.main_function();
        return;
    }
    loaded_.emplace(object_code({{JitGroup::symbol, body, true}}, JitGroup::symbol, host),
                    std::map<std::string, const void*>{
                        {symbol, reinterpret_cast<const void*>(call_hook)}});
    function_ = loaded_->function(JitGroup::symbol);
}

laminate_hooked_group_function HookedJitGroup::function() const {
    return reinterpret_cast<laminate_hooked_group_function>(function_);
}

}  // namespace laminate
