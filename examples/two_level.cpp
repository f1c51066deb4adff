// Runs a network that was compiled with hooks and emulates a memory of two levels while it does:
// how many elements cross between external memory and an internal memory of so many bytes.
//
//   two_level fsrcnn_compiled/ 262144   opens a directory of `laminate compile --instrumented`
//   two_level 262144                    with the network linked in
//                                       (built with -DLINKED_NETWORK=SYMBOL)
//
// Exit code 4 when the buffers of the schedule do not fit.
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <vector>

#include "base/units.h"
#include "runtime/laminate.h"
#include "runtime/two_level_memory.h"

#ifdef LINKED_NETWORK
extern "C" const laminate_compiled_network LINKED_NETWORK;
#endif

namespace {

constexpr int failed = 1, does_not_fit = 4;

struct CloseSession {
    void operator()(laminate_session* session) const { laminate_close(session); }
};

int fail(const char* message, int code = failed) {
    std::fprintf(stderr, "two_level: %s\n", message);
    return code;
}

int64_t elements(const int64_t* dims, int32_t rank) {
    int64_t count = 1;
    for (int32_t d = 0; d < rank; ++d) count *= dims[d];
    return count;
}

/// One run. What a network moves does not depend on the values that it is given.
int32_t run(laminate_session* session) {
    std::vector<std::vector<float>> inputs, outputs;
    std::vector<const float*> in;
    std::vector<float*> out;
    for (int32_t k = 0; k < laminate_input_count(session); ++k)
        inputs.emplace_back(
            elements(laminate_input_dims(session, k), laminate_input_rank(session, k)));
    for (int32_t k = 0; k < laminate_output_count(session); ++k)
        outputs.emplace_back(
            elements(laminate_output_dims(session, k), laminate_output_rank(session, k)));
    for (const auto& array : inputs) in.push_back(array.data());
    for (auto& array : outputs) out.push_back(array.data());
    return laminate_run(session, in.data(), out.data());
}

int count(laminate_session* session, const char* size) {
    char* end = nullptr;
    const int64_t bytes = std::strtoll(size, &end, 10);
    if (end == size || *end != '\0' || bytes < 0) return fail("expected a memory size in bytes");
    laminate::TwoLevelMemory memory(bytes);
    if (laminate_set_trace(session, laminate::TwoLevelMemory::observe, &memory) != 0 ||
        run(session) != 0)
        return fail(laminate_last_error());
    if (!memory.failure().empty()) return fail(memory.failure().c_str(), does_not_fit);

    constexpr const char* roles[] = {"X", "W", "intermediate", "Y"};
    std::printf("%-20s %-12s %-20s %12s %12s %12s\n", "group", "buffer", "tensor", "elements",
                "reads", "writes");
    for (int32_t k = 0; k < laminate_buffer_count(session); ++k) {
        const laminate_buffer* buffer = laminate_buffer_at(session, k);
        const laminate::TwoLevelMemory::Traffic seen = memory.traffic(buffer);
        std::printf("%-20s %-12s %-20s %12" PRId64 " %12" PRId64 " %12" PRId64 "\n", buffer->group,
                    roles[buffer->role], buffer->tensor, seen.size, seen.reads, seen.writes);
    }
    std::printf("accesses %" PRId64 " elements; held at most %" PRId64 " of %" PRId64 " bytes\n",
                memory.accesses(), memory.peak() * laminate::bytes_per_element, bytes);
    return 0;
}

}  // namespace

int main(int argc, char** argv) try {
#ifdef LINKED_NETWORK
    if (argc != 2) return fail("usage: two_level BYTES");
    const std::unique_ptr<laminate_session, CloseSession> session(
        laminate_open_linked(&LINKED_NETWORK, 0));
#else
    if (argc != 3) return fail("usage: two_level DIRECTORY BYTES");
    const std::unique_ptr<laminate_session, CloseSession> session(laminate_open(argv[1], 0));
#endif
    if (!session) return fail(laminate_last_error());
    return count(session.get(), argv[argc - 1]);
} catch (const std::exception& error) {
    return fail(error.what());
}
