// Replays the seeds and the corpus of a target, and seeded damage to them. Any exception other than
// InputError fails, and so does a crash or a run-away allocation.
//
//   fuzz_smoke TARGET [ROUNDS [SEED]]
#include <sys/resource.h>

#include <algorithm>
#include <iostream>
#include <iterator>
#include <string>

#include "base/rng.h"
#include "tests/fuzz/targets.h"
#include "tests/support/sanitized.h"

namespace laminate::fuzz {
namespace {

/// A seed after a few changes of the kinds that find faults: bits, values at the limits of their type,
/// pieces repeated, swapped, removed, or taken from another seed.
std::string damaged(const std::vector<std::string>& seeds, Rng& rng) {
    const auto any = [&]() -> const std::string& {
        return seeds[static_cast<size_t>(rng.below(std::ssize(seeds)))];
    };
    std::string bytes = any();
    for (int64_t change = rng.between(1, 4); change > 0 && !bytes.empty(); --change) {
        const auto at = static_cast<size_t>(rng.below(std::ssize(bytes)));
        const auto length =
            std::min<size_t>(static_cast<size_t>(rng.between(1, 32)), bytes.size() - at);
        switch (rng.below(8)) {
            case 0:
                bytes[at] = static_cast<char>(bytes[at] ^ (1 << rng.below(8)));
                break;
            case 1:
                bytes[at] = static_cast<char>(rng.below(256));
                break;
            case 2: {  // in a text, a number at its limits
                static constexpr const char* numbers[] = {
                    "0",     "-1",  "2147483648", "9223372036854775807", "-9223372036854775808",
                    "1e999", "NaN", "4294967296"};
                bytes.replace(at, std::min<size_t>(length, 3), numbers[rng.below(8)]);
                break;
            }
            case 3: {  // in a binary file likewise: a varint of 64 ones, a little-endian 0x7fffffff
                static constexpr std::string_view values[] = {
                    {"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 10},
                    {"\xff\xff\xff\x7f", 4},
                    {"\0\0\0\0", 4},
                    {"\x80\x80\x80\x80\x10", 5}};
                bytes.replace(at, std::min(length, values[0].size()), values[rng.below(4)]);
                break;
            }
            case 4:
                bytes.insert(at, bytes.substr(at, length));
                break;
            case 5:
                bytes.erase(at, length);
                break;
            case 6:
                bytes.resize(at);
                break;
            default: {
                const std::string& other = any();
                const auto from = static_cast<size_t>(rng.below(std::ssize(other)));
                bytes.replace(at, length, other.substr(from, length));
            }
        }
    }
    return bytes;
}

int smoke(const Target& target, int64_t rounds, uint64_t seed) {
    std::vector<std::string> seeds = target.seeds();
    for (const std::string& bytes : seeds) target.read(bytes);
    const size_t whole = seeds.size();
    std::ranges::move(corpus(target), std::back_inserter(seeds));
    int64_t accepted = 0;
    std::string place;
    try {
        for (size_t n = whole; n < seeds.size(); ++n) {
            place = "file " + std::to_string(n - whole + 1) + " of the corpus";
            (void)accepts(target, seeds[n]);
        }
        for (int64_t round = 0; round < rounds; ++round) {
            place = "seed " + std::to_string(seed + static_cast<uint64_t>(round));
            Rng rng(seed + static_cast<uint64_t>(round));
            accepted += accepts(target, damaged(seeds, rng)) ? 1 : 0;
        }
    } catch (const std::exception& error) {
        std::cout << target.name << ": " << place << ": " << error.what() << '\n';
        return 1;
    }
    std::cout << target.name << ": " << whole << " seeds, " << seeds.size() - whole
              << " files of the corpus, " << rounds << " damaged inputs, " << accepted
              << " of them accepted\n";
    return 0;
}

}  // namespace
}  // namespace laminate::fuzz

int main(int count, char** words) {
    const std::string name = count > 1 ? words[1] : "";
    // A file that asks for more memory than this must be refused.
#if !LAMINATE_SANITIZED
    const rlimit memory{rlim_t{4} << 30, rlim_t{4} << 30};
    setrlimit(RLIMIT_AS, &memory);
#endif
    try {
        return laminate::fuzz::smoke(laminate::fuzz::target(name),
                                     count > 2 ? std::stoll(words[2]) : 1000,
                                     count > 3 ? std::stoull(words[3]) : 1);
    } catch (const std::exception& error) {
        std::cerr << "fuzz_smoke: " << error.what() << '\n';
        return 2;
    }
}
