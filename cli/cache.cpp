// laminate cache show, laminate cache clear: compiled code that was kept for later.
#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "base/disk_cache.h"
#include "base/error.h"
#include "cli/preparation.h"
#include "cli/verbs.h"

namespace laminate::cli {

namespace {

DiskCache opened() {
    const std::optional<std::filesystem::path> directory = cache_directory();
    if (!directory)
        throw InputError("no cache: LAMINATE_CACHE is off, or HOME is not set; expected a directory in "
                         "LAMINATE_CACHE");
    return DiskCache({.directory = *directory});
}

Exit answer(const DiskCache& cache, const DiskCache::Use& use, const char* what,
            const Output& output) {
    const uint64_t most = cache.options().most_bytes;
    const std::string directory = cache.options().directory.string();
    output.print(fmt::format("{}: {} {} {}, {}; room for {}", directory, what,
                             grouped(static_cast<int64_t>(use.entries)),
                             use.entries == 1 ? "entry" : "entries",
                             bytes_text(static_cast<int64_t>(use.bytes)),
                             bytes_text(static_cast<int64_t>(most))));
    output.json({{"schema", "laminate.cache"},
                 {"version", 1},
                 {"directory", directory},
                 {"entries", use.entries},
                 {"bytes", use.bytes},
                 {"most_bytes", most}});
    return Exit::ok;
}

}  // namespace

void add_cache(Program& program) {
    CLI::App* cache = program.add_verb(
        "cache", "Code and schedules that are kept for later runs",
        "  laminate cache show\n"
        "  laminate cache clear\n"
        "  LAMINATE_CACHE=build/code laminate run zoo:resnet18");
    cache->require_subcommand(1);
    program.on(program.add_verb("show", "Where it is, and how much of its room is taken", "", cache),
               [](const Output& output) {
                   const DiskCache kept = opened();
                   return answer(kept, kept.use(), "holds", output);
               });
    program.on(program.add_verb("clear", "Remove all of it", "", cache), [](const Output& output) {
        DiskCache kept = opened();
        const DiskCache::Use removed = kept.clear();
        return answer(kept, removed, "removed", output);
    });
}

}  // namespace laminate::cli
