// Generated code made runnable: in this process by the JIT, or as an object file for a linker.
#pragma once

#include <Halide.h>

#include <memory>
#include <string>
#include <vector>

#include "generators/group_code.h"
#include "runtime/compiled_network.h"

namespace laminate {

/// Name of the extra argument of counted code (instrumentation/count_pass.h).
inline constexpr const char* counters_argument = "counters";
/// Name of the extra argument of code with hooks (generators/compile/hooks.h).
inline constexpr const char* hook_argument = "hook";

/// A laminate_group_function with one more argument, the counters that the code updates.
using CountedGroupFunction = int (*)(const float* const* inputs, float* const* outputs,
                                     const float* constants, void* scratch, int32_t strip_begin,
                                     int32_t strip_end, int64_t* counters);

/// "host", or a Halide target such as "x86-64-linux-avx2-fma"; throws InputError naming the text.
[[nodiscard]] Halide::Target code_target(const std::string& text);

/// A group compiled into this process; the functions live as long as the object.
class JitGroup {
public:
    /// `counted`: the body has the counters argument. `target`: one that this processor runs.
    JitGroup(const Halide::Internal::Stmt& body, bool counted,
             const std::string& name = "laminate_group",
             const Halide::Target& target = Halide::get_host_target());
    [[nodiscard]] laminate_group_function function() const;
    [[nodiscard]] CountedGroupFunction counted_function() const;

private:
    Halide::Internal::JITModule module_;
    bool counted_ = false;
};

/// A group with hooks (generators/compile/hooks.h), compiled into this process.
class HookedJitGroup {
public:
    /// `symbol`: what the body calls.
    HookedJitGroup(const Halide::Internal::Stmt& body, const std::string& symbol);
    [[nodiscard]] laminate_hooked_group_function function() const;

private:
    Halide::Internal::JITModule module_;
};

struct NamedBody {
    std::string symbol;
    Halide::Internal::Stmt body;
    bool hooked = false;  ///< whether it has the hook argument
};

/// Writes one object file with a laminate_group_function, or laminate_hooked_group_function, per
/// body; needs no Halide runtime.
void write_object(const std::vector<NamedBody>& bodies, const std::string& module_name,
                  const Halide::Target& target, const std::string& path);

}  // namespace laminate
