#include "generators/compile/compiled_files.h"

#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <sstream>

#include "base/error.h"
#include "base/files.h"
#include "base/memory_file.h"
#include "compiled_network_text.h"
#include "nets/network/network.h"

extern char** environ;

namespace laminate {

namespace fs = std::filesystem;

std::optional<std::vector<std::string>> compiled_files(const fs::path& directory) {
    try {
        const Manifest manifest =
            parse_manifest(read_file(directory / manifest_file), manifest_file);
        return std::vector<std::string>{manifest_file, "schedule.json", manifest.library + ".h",
                                        "lib" + manifest.library + ".a",
                                        shared_library_file(manifest)};
    } catch (const InputError&) {
        return {};
    }
}

// ---- header

std::string group_symbol(const std::string& name, size_t group) {
    return name + "_group" + std::to_string(group);
}

std::string hook_symbol(const std::string& name) { return name + "_hook"; }

namespace {

/// Names come from a file somebody else wrote: nothing in them may end a comment or a line.
std::string in_comment(const std::string& text) {
    std::string safe;
    for (const char c : text) {
        const bool ends_comment = c == '/' && !safe.empty() && safe.back() == '*';
        safe += std::isprint(static_cast<unsigned char>(c)) == 0 || ends_comment ? '?' : c;
    }
    return safe;
}

std::string tensor_defines(const std::string& prefix, const std::string& kind,
                           const Manifest& manifest, const std::vector<TensorId>& ids) {
    std::string text =
        "#define " + prefix + "_" + kind + "_COUNT " + std::to_string(ids.size()) + "\n";
    for (size_t k = 0; k < ids.size(); ++k) {
        const Tensor& tensor = manifest.tensors[static_cast<size_t>(ids[k])];
        const std::string stem = "#define " + prefix + "_" + kind + std::to_string(k) + "_";
        std::string dims;
        for (const int64_t d : tensor.dims) dims += (dims.empty() ? "" : ", ") + std::to_string(d);
        text += "/* " + in_comment(tensor.name) + ": " + dims_text(tensor.dims) +
                " 32-bit floats, row major */\n";
        text += stem + "ELEMENTS " + std::to_string(element_count(tensor.dims)) + "\n";
        text += stem + "RANK " + std::to_string(tensor.dims.size()) + "\n";
        text += stem + "DIMS { " + dims + " }\n";
    }
    return text;
}

}  // namespace

std::string header_text(const Manifest& manifest) {
    const std::string& name = manifest.library;
    std::string upper = name;
    std::transform(upper.begin(), upper.end(), upper.begin(),
                   [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    const std::string guard = "LAMINATE_COMPILED_" + upper + "_H";
    return "/* Network " + in_comment(manifest.network) + " (" + manifest.network_hash +
           "), compiled by Laminate for " + in_comment(manifest.target) + ".\n * Link lib" + name +
           ".a or lib" + name + ".so, and the runtime: laminate_open_linked(&" + name +
           "_network, 0)." +
           (manifest.instrumented ? "\n * It has hooks: laminate_set_trace()." : "") +
           " */\n#ifndef " + guard + "\n#define " + guard + "\n\n" + compiled_network_text + "\n" +
           tensor_defines(upper, "INPUT", manifest, manifest.inputs) +
           tensor_defines(upper, "OUTPUT", manifest, manifest.outputs) +
           "\n#ifdef __cplusplus\nextern \"C\" {\n#endif\nextern const laminate_compiled_network " +
           name + "_network;\n#ifdef __cplusplus\n}\n#endif\n#endif\n";
}

// ---- libraries

namespace {

/// The line of a tool's output that says why: it may be surrounded by headings, and by a compiler's
/// word that the linker, which has said why, failed.
std::string reason_in(const std::string& said) {
    std::istringstream in(said);
    std::string first, summary;
    for (std::string line; std::getline(in, line);) {
        if (line.find("ld returned") != std::string::npos ||
            line.find("linker command failed") != std::string::npos) {
            summary = line;
            continue;
        }
        if (line.find("rror") != std::string::npos ||
            line.find("No space left") != std::string::npos)
            return line;
        if (first.empty()) first = line;
    }
    if (first.empty()) first = summary;
    return first.empty() ? "no reason given" : first;
}

/// Runs a program in `directory` and returns its CPU seconds; `expected`: what is said of one that
/// fails, beside its reason.
double run_tool(const fs::path& directory, const std::vector<std::string>& command,
              const std::string& expected = "") {
    const MemoryFile said;
    std::vector<char*> arguments;
    for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);

    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, said.descriptor(), STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, said.descriptor(), STDERR_FILENO);
    posix_spawn_file_actions_addchdir_np(&actions, directory.c_str());
    pid_t child = 0;
    const int failed =
        posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    if (failed != 0)
        throw InputError(command[0] + ": cannot be run: " + std::strerror(failed) +
                         "; expected it on the search path");
    int status = 0;
    rusage use{};
    while (wait4(child, &status, 0, &use) < 0 && errno == EINTR) {
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
        const auto seconds = [](const timeval& t) {
            return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
        };
        return seconds(use.ru_utime) + seconds(use.ru_stime);
    }
    throw InputError(command[0] + " " + command[1] + ": failed: " + reason_in(said.contents()) +
                     (expected.empty() ? "" : "; expected " + expected));
}

/// Constants and manifest as they lie in their files, on the boundaries that the code expects.
std::string data_assembly(const std::string& name, bool has_constants) {
    const auto label = [&](const std::string& what) {
        return "    .hidden " + name + what + "\n    .globl " + name + what + "\n" + name + what +
               ":\n";
    };
    return "    .section .rodata." + name + ",\"a\",%progbits\n    .balign 64\n" +
           label("_constants") +
           (has_constants ? "    .incbin \"constants.bin\"\n" : "    .zero 64\n") +
           "    .balign 64\n" + label("_manifest") + "    .incbin \"" + manifest_file +
           "\"\n    .byte 0\n    .section .note.GNU-stack,\"\",%progbits\n";
}

/// What laminate_compiled_network names of a library: functions, declared or defined, and arrays of
/// them.
struct FunctionTables {
    std::string text;
    std::string hooked = "0";  ///< the array of those with hooks
};

FunctionTables plain_functions(const std::string& name, size_t count) {
    FunctionTables tables;
    std::string names;
    for (size_t g = 0; g < count; ++g) {
        const std::string symbol = group_symbol(name, g);
        tables.text +=
            "int " + symbol +
            "(const float* const*, float* const*, const float*, void*, int32_t, int32_t);\n";
        names += symbol + ", ";
    }
    tables.text += "static const laminate_group_function groups[] = {" + names + "0};\n";
    return tables;
}

/// A group with hooks runs the same code whether a listener is set or not.
FunctionTables hooked_functions(const std::string& name, size_t count) {
    FunctionTables tables;
    tables.text = "HIDDEN int " + hook_symbol(name) +
                  "(const laminate_hook* hook, int32_t kind, int32_t buffer, int32_t z0, "
                  "int32_t z1, int32_t y0, int32_t y1, int32_t x0, int32_t x1, int32_t i0, "
                  "int32_t i1) {\n    const int32_t box[8] = {z0, z1, y0, y1, x0, x1, i0, i1};\n"
                  "    if (hook) hook->function(hook->context, kind, buffer, box);\n"
                  "    return 0;\n}\n";
    std::string plain, hooked;
    for (size_t g = 0; g < count; ++g) {
        const std::string symbol = group_symbol(name, g), without = "without" + std::to_string(g);
        const std::string arguments =
            "(const float* const* x, float* const* y, const float* c, void* s, int32_t b, "
            "int32_t e";
        tables.text += "int " + symbol + arguments + ", const laminate_hook* hook);\nstatic int " +
                       without + arguments + ") { return " + symbol + "(x, y, c, s, b, e, 0); }\n";
        plain += without + ", ";
        hooked += symbol + ", ";
    }
    tables.text += "static const laminate_group_function groups[] = {" + plain + "0};\n" +
                   "static const laminate_hooked_group_function hooked[] = {" + hooked + "0};\n";
    tables.hooked = "hooked";
    return tables;
}

std::string descriptor_source(const Manifest& manifest, size_t constant_count, size_t group_count) {
    const std::string& name = manifest.library;
    const FunctionTables functions = manifest.instrumented ? hooked_functions(name, group_count)
                                                           : plain_functions(name, group_count);
    return std::string(compiled_network_text) +
           "#define HIDDEN __attribute__((visibility(\"hidden\")))\nHIDDEN extern const float " +
           name + "_constants[];\nHIDDEN extern const char " + name + "_manifest[];\n" +
           functions.text + "const laminate_compiled_network " + name +
           "_network = {LAMINATE_ABI_VERSION, " + name + "_manifest, " + name + "_constants, " +
           std::to_string(constant_count) + "u, groups, " + std::to_string(group_count) + "u, " +
           functions.hooked +
           "};\n/* What a loader looks for; weak, so that several networks can be linked into one "
           "program. */\n"
           "extern const laminate_compiled_network laminate_network __attribute__((weak, alias(\"" +
           name + "_network\")));\n";
}

}  // namespace

void check_tools(const fs::path& directory, const std::string& object_file,
                 const std::string& target, const LinkTools& tools) {
    const std::string expected = "tools for target " + target + ": --cc, --ar";
    const std::string archive = "trial.a", library = "trial.so";
    (void)run_tool(directory, {tools.archiver, "rcsD", archive, object_file}, expected);
    (void)run_tool(directory, {tools.compiler, "-shared", "-o", library, object_file}, expected);
    for (const std::string& file : {archive, library, object_file}) fs::remove(directory / file);
}

double link_libraries(const fs::path& directory, const Manifest& manifest,
                      std::span<const float> constants, size_t function_count,
                      const std::vector<std::string>& object_files, const LinkTools& tools) {
    const std::string& name = manifest.library;
    write_file_atomically(
        directory / "constants.bin",
        {reinterpret_cast<const char*>(constants.data()), constants.size() * sizeof(float)});
    write_file_atomically(directory / "data.s", data_assembly(name, !constants.empty()));
    write_file_atomically(directory / "network.c",
                          descriptor_source(manifest, constants.size(), function_count));
    double seconds =
        run_tool(directory, {tools.compiler, "-c", "-fPIC", "-O1", "network.c", "data.s"});
    std::vector<std::string> objects{"network.o", "data.o"};
    objects.insert(objects.end(), object_files.begin(), object_files.end());
    const auto make = [&](std::vector<std::string> command, const std::vector<std::string>& after) {
        command.insert(command.end(), objects.begin(), objects.end());
        command.insert(command.end(), after.begin(), after.end());
        seconds += run_tool(directory, command);
    };
    make({tools.archiver, "rcsD", "lib" + name + ".a"}, {});
    make({tools.compiler, "-shared", "-Wl,--no-undefined",
          "-Wl,-soname," + shared_library_file(manifest), "-o", shared_library_file(manifest)},
         {"-lm"});
    for (const std::string& object : objects) fs::remove(directory / object);
    for (const char* source : {"constants.bin", "data.s", "network.c"})
        fs::remove(directory / source);
    return seconds;
}

}  // namespace laminate
