// libFuzzer's program. `fuzzer --target=NAME DIR` starts from the files in DIR, adds those it finds
// useful, and stops at the first finding. `fuzzer --seeds=DIR` writes a directory for each target, with
// its seeds and corpus, to start from. libFuzzer ignores options that begin with two dashes.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/files.h"
#include "tests/fuzz/targets.h"

namespace {

const laminate::fuzz::Target* chosen = nullptr;

void write_seeds(const std::filesystem::path& place) {
    for (const laminate::fuzz::Target& target : laminate::fuzz::targets()) {
        const std::filesystem::path directory = place / target.name;
        std::filesystem::create_directories(directory);
        int n = 0;
        for (const auto& list : {target.seeds(), laminate::fuzz::corpus(target)}) {
            for (const std::string& bytes : list)
                laminate::write_file_atomically(directory / ("seed_" + std::to_string(n++)), bytes);
        }
        std::printf("%s\n", target.name);
    }
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* count, char*** words) {
    for (int n = 1; n < *count; ++n) {
        const std::string_view word = (*words)[n];
        if (word.starts_with("--seeds=")) {
            write_seeds(word.substr(8));
            std::exit(0);
        }
        if (word.starts_with("--target=")) chosen = &laminate::fuzz::target(word.substr(9));
    }
    if (chosen != nullptr) return 0;
    std::fprintf(stderr, "fuzzer: expected --target=NAME or --seeds=DIR\n");
    std::exit(2);
}

/// An exception other than a refusal ends the program and so becomes a finding.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    (void)laminate::fuzz::accepts(*chosen, {reinterpret_cast<const char*>(data), size});
    return 0;
}
