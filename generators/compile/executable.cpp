#include "generators/compile/executable.h"

#include <cstdlib>
#include <map>
#include <ranges>
#include <stdexcept>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "generators/ir/arrays.h"
#include "generators/lowering/group_lowering.h"

namespace laminate {

using namespace Halide::Internal;

namespace {

/// What a function has besides the arguments of a laminate_group_function.
enum class Extra { none, counters, hook };

LoweredFunc lowered_function(const std::string& name, const Stmt& body, Extra extra,
                             Halide::LinkageType linkage) {
    std::vector<LoweredArgument> arguments = group_arguments();
    if (extra == Extra::counters)
        arguments.push_back(scalar_argument(counters_argument, Halide::type_of<int64_t*>()));
    if (extra == Extra::hook) arguments.push_back(scalar_argument(hook_argument, Halide::Handle()));
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

/// The body in a function whose stack begins at a whole vector. LLVM aligns the stack for the arrays that it
/// finds there before it allocates registers; where there are none, vectors that registers have no room for
/// lie across lines of the cache (Halide issue 5598). So there is one; a request for it keeps LLVM from
/// removing it.
Stmt with_aligned_stack(const Stmt& body) {
    const std::string array = unique_name("aligned_stack");
    return Allocate::make(array, Halide::Float(32), Halide::MemoryType::Stack,
                          {ir::size(ir::elements_of_line)}, const_true(),
                          Block::make(ir::prefetch(array, 0), body));
}

void append(Halide::Module& module, const CodePart& part) {
    if (has_strict_sums(part.body)) module.set_any_strict_float(true);
    module.append(LoweredFunc(part.symbol, part.arguments, with_aligned_stack(part.body),
                              Halide::LinkageType::External, Halide::NameMangling::C));
}

/// A group's function, with those of its kernels. Only Halide's JIT calls the second function,
/// NAME_argv, of ExternalPlusArgv.
void append(Halide::Module& module, const std::string& name, const Stmt& body, Extra extra,
            Halide::LinkageType linkage = Halide::LinkageType::External) {
    std::vector<CodePart> parts;
    if (extra == Extra::none) parts = code_parts(body, name);
    for (size_t n = 1; n < parts.size(); ++n) append(module, parts[n]);
    const Stmt& rest = parts.empty() ? body : parts.front().body;
    if (has_strict_sums(rest)) module.set_any_strict_float(true);
    module.append(lowered_function(name, with_aligned_stack(rest), extra, linkage));
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
// It does so in the innermost loops, so blocks are kept: in front of each stands its size.
class KeptBlocks {
public:
    ~KeptBlocks() {
        for (const std::vector<char*>& blocks : by_size_) {
            for (char* block : blocks) std::free(block);
        }
    }
    KeptBlocks() = default;
    KeptBlocks(const KeptBlocks&) = delete;
    KeptBlocks& operator=(const KeptBlocks&) = delete;

    void* take(size_t bytes) {
        // Vectors may load beyond the end.
        const size_t size = (bytes + 2 * boundary - 1) / boundary;
        if (size < by_size_.size() && !by_size_[size].empty()) {
            char* block = by_size_[size].back();
            by_size_[size].pop_back();
            return block + boundary;
        }
        auto* block = static_cast<char*>(std::aligned_alloc(boundary, (size + 1) * boundary));
        if (block == nullptr) return nullptr;
        *reinterpret_cast<size_t*>(block) = size;
        return block + boundary;
    }
    void give_back(void* memory) {
        if (memory == nullptr) return;
        char* block = static_cast<char*>(memory) - boundary;
        const size_t size = *reinterpret_cast<size_t*>(block);
        if (size > largest_kept) return std::free(block);
        if (by_size_.size() <= size) by_size_.resize(size + 1);
        by_size_[size].push_back(block);
    }

private:
    static constexpr size_t boundary = 128;
    static constexpr size_t largest_kept = (size_t{1} << 18) / boundary;
    std::vector<std::vector<char*>> by_size_;  ///< in boundaries
};
thread_local KeptBlocks kept_blocks;

void* allocate(void*, size_t bytes) { return kept_blocks.take(bytes); }
void release(void*, void* memory) { kept_blocks.give_back(memory); }
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

std::string object_of_parts(const std::vector<CodePart>& parts, const Halide::Target& target) {
    Halide::Module module(parts.front().symbol, target.with_feature(Halide::Target::NoRuntime));
    for (const CodePart& part : parts | std::views::reverse) append(module, part);
    return object_of(module, target);
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
    if (counted) {
        Halide::Module module(symbol, target.with_feature(Halide::Target::NoRuntime));
        append(module, symbol, body, extra);
        objects_.push_back(object_of(module, target));
    } else {
        for (const std::vector<CodePart>& parts : object_parts(code_parts(body, symbol)))
            objects_.push_back(object_of_parts(parts, target));
    }
    load(memory_functions());
}

JitGroup::JitGroup(std::vector<std::string> objects) : objects_(std::move(objects)) { load({}); }

void JitGroup::load(const std::map<std::string, const void*>& symbols) {
    std::map<std::string, const void*> known = symbols;
    // The group's own function, which is in the first, comes last: it calls the others.
    for (size_t n = 1; n <= objects_.size(); ++n) {
        loaded_.emplace_back(objects_[n % objects_.size()], known);
        for (const auto& [name, function] : loaded_.back().functions()) known[name] = function;
    }
    if (loaded_.empty()) throw std::runtime_error("object code: there is none");
    function_ = loaded_.back().function(symbol);
}

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
