// Generated code made runnable: in this process by the JIT, or as an object file for a linker.
#pragma once

#include <Halide.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "generators/compile/object_code.h"
#include "generators/group_code.h"
#include "generators/ir/code_parts.h"
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

struct NamedBody {
    std::string symbol;
    Halide::Internal::Stmt body;
    bool hooked = false;  ///< whether it has the hook argument
};

/// An object file with functions of one group. Throws as object_code().
[[nodiscard]] std::string object_of_parts(const std::vector<CodePart>& parts,
                                          const Halide::Target& target);

/// An object file with a laminate_group_function, or laminate_hooked_group_function, per body; it
/// needs no Halide runtime. Throws InputError for a target that Halide cannot generate code for.
[[nodiscard]] std::string object_code(const std::vector<NamedBody>& bodies,
                                      const std::string& module_name,
                                      const Halide::Target& target);
/// The same in a file.
void write_object(const std::vector<NamedBody>& bodies, const std::string& module_name,
                  const Halide::Target& target, const std::string& path);

/// A group compiled into this process; the functions live as long as the object. Compiling does not
/// load Halide's runtime, which takes LLVM as long as a network of a few layers.
class JitGroup {
public:
    /// What a group is called in objects().
    static constexpr const char* symbol = "laminate_group";

    /// `counted`: the body has the counters argument. `target`: one that this processor runs.
    explicit JitGroup(const Halide::Internal::Stmt& body, bool counted = false,
                      const Halide::Target& target = Halide::get_host_target());
    /// What objects() of a group that is not counted returned, perhaps in an earlier process, or
    /// object_of_parts() of each of its object_parts(). Throws std::runtime_error for anything else.
    explicit JitGroup(std::vector<std::string> objects);
    [[nodiscard]] laminate_group_function function() const;
    [[nodiscard]] CountedGroupFunction counted_function() const;
    /// The object files that were loaded, the one of the group's own function first; none where objects cannot
    /// be loaded (loads_objects).
    [[nodiscard]] const std::vector<std::string>& objects() const { return objects_; }

private:
    void load(const std::map<std::string, const void*>& symbols);

    std::vector<std::string> objects_;
    std::vector<LoadedObject> loaded_;
    Halide::Internal::JITModule module_;  ///< where objects cannot be loaded
    void* function_ = nullptr;
    bool counted_ = false;
};

/// A group that calls Halide's runtime, which traces it.
class TracedJitGroup {
public:
    explicit TracedJitGroup(const Halide::Internal::Stmt& body);
    [[nodiscard]] laminate_group_function function() const;

private:
    Halide::Internal::JITModule module_;
};

/// A group with hooks (generators/compile/hooks.h), compiled into this process.
class HookedJitGroup {
public:
    /// `symbol`: what the body calls.
    HookedJitGroup(const Halide::Internal::Stmt& body, const std::string& symbol);
    [[nodiscard]] laminate_hooked_group_function function() const;

private:
    std::optional<LoadedObject> loaded_;
    Halide::Internal::JITModule module_;  ///< where objects cannot be loaded
    void* function_ = nullptr;
};

}  // namespace laminate
