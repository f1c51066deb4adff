// Code with hooks: an emulated memory of two levels that does what the code tells counts what the
// model counts, and the outputs are the same bits as without hooks.
#include "generators/compile/hooks.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <set>

#include "base/files.h"
#include "generators/compile/compile.h"
#include "nets/random/random_network.h"
#include "nets/zoo/zoo.h"
#include "runtime/session.h"
#include "runtime/two_level_memory.h"
#include "scheduler/counts/two_level/two_level.h"
#include "scheduler/explore/planner/line_buffers.h"
#include "scheduler/explore/random_kernels.h"
#include "scheduler/explore/random_schedule.h"
#include "tests/support/sanitized.h"

namespace laminate {
namespace {

using Arrays = std::vector<std::vector<float>>;

Arrays random_inputs(const Session& session, uint64_t seed) {
    Rng rng(seed);
    Arrays inputs;
    for (const Tensor& tensor : session.inputs()) {
        inputs.emplace_back(static_cast<size_t>(element_count(tensor.dims)));
        for (float& value : inputs.back()) value = static_cast<float>(rng.between(-3, 3));
    }
    return inputs;
}

Arrays outputs_of(Session& session, const Arrays& inputs) {
    Arrays outputs;
    std::vector<const float*> in;
    std::vector<float*> out;
    for (const auto& array : inputs) in.push_back(array.data());
    for (const Tensor& tensor : session.outputs())
        outputs.emplace_back(static_cast<size_t>(element_count(tensor.dims)));
    for (auto& array : outputs) out.push_back(array.data());
    session.run(in, out);
    return outputs;
}

/// What the model says of a buffer: by role and layer, for X by tensor.
struct Expected {
    int64_t reads = 0, writes = 0, macs = 0, size = 0;
};

Expected expected_of(const GroupCounts& counts, const laminate_buffer& buffer) {
    if (buffer.role == LAMINATE_INPUT) {
        for (const InputCounts& x : counts.inputs) {
            if (x.tensor == buffer.tensor) return {x.reads.value(), 0, 0, x.buffer.value()};
        }
    }
    for (const LayerCounts& layer : counts.layers) {
        if (layer.layer != buffer.layer) continue;
        const int64_t macs = layer.macs.value(), size = layer.output_buffer.value();
        if (buffer.role == LAMINATE_WEIGHTS)
            return {layer.weight_reads.value(), 0, 0, layer.weight_buffer.value()};
        if (buffer.role == LAMINATE_INTERMEDIATE) return {0, 0, macs, size};
        return {counts.output_reads.value(), counts.output_writes.value(), macs, size};
    }
    return {-1, -1, -1, -1};
}

/// Empty, or how what the memory saw differs from the model: every number of every buffer, and
/// what was held at once.
std::string difference(const Network& network, const Schedule& schedule, const Session& session,
                       const TwoLevelMemory& memory) {
    std::string text = memory.failure();
    int64_t accesses = 0;
    for (const GroupSchedule& group : schedule.groups()) {
        const GroupCounts counts = two_level_counts(network, group);
        accesses += counts.accesses().value();
        int step = -1;
        for (const laminate_buffer* buffer : session.buffers()) {
            const Step& its = session.manifest().steps[static_cast<size_t>(buffer->step)];
            if (std::get<GroupStep>(its).layers.back() != group.nests.back().layer) continue;
            step = buffer->step;
            const Expected model = expected_of(counts, *buffer);
            const TwoLevelMemory::Traffic seen = memory.traffic(buffer);
            const auto compare = [&](const char* what, int64_t found, int64_t expected) {
                if (found == expected) return;
                text += std::string(to_string(buffer->role)) + " of " + buffer->tensor + " " +
                        what + ": seen " + std::to_string(found) + ", model " +
                        std::to_string(expected) + "; ";
            };
            compare("reads", seen.reads, model.reads);
            compare("writes", seen.writes, model.writes);
            compare("macs", seen.macs, model.macs);
            compare("size", seen.size, model.size);
        }
        if (memory.peak(step) != counts.live_total.value())
            text += "held " + std::to_string(memory.peak(step)) + ", model " +
                    std::to_string(counts.live_total.value()) + "; ";
    }
    if (memory.accesses() != accesses) text += "accesses " + std::to_string(memory.accesses());
    return text;
}

Schedule with_random_kernels(const Network& network, const Schedule& schedule, uint64_t seed) {
    Rng rng(seed);
    std::vector<GroupSchedule> groups;
    for (const GroupSchedule& group : schedule.groups())
        groups.push_back(random_kernels(group_problems(network, group), group, rng));
    return {network, std::move(groups)};
}

void expect_seen(const Network& network, const Schedule& schedule, uint64_t seed) {
    const std::string what = "seed " + std::to_string(seed) + ": " + to_text(schedule);
    const JitNetwork plain(network, schedule);
    CompileOptions options;
    options.instrumented = true;
    std::string notes;
    options.note = [&](const std::string& line) { notes += line + "; "; };
    const JitNetwork hooked(network, schedule, options);
    ASSERT_TRUE(hooked.manifest().replaced_groups.empty()) << notes << what;
    Session session = Session::open(&hooked.descriptor(), {2});
    Session without = Session::open(&plain.descriptor(), {1});
    const Arrays inputs = random_inputs(session, seed);
    const Arrays expected = outputs_of(without, inputs);

    const int64_t live = two_level_counts(network, schedule).live_total.value();
    TwoLevelMemory memory(live * bytes_per_element), too_small(live * bytes_per_element - 1);
    session.set_trace(TwoLevelMemory::observe, &memory);
    EXPECT_EQ(outputs_of(session, inputs), expected) << what;
    EXPECT_EQ(difference(network, schedule, session, memory), "") << what;
    session.set_trace(TwoLevelMemory::observe, &too_small);
    EXPECT_EQ(outputs_of(session, inputs), expected) << what;
    EXPECT_NE(too_small.failure().find("the memory has " + std::to_string(live * 4 - 1)),
              std::string::npos)
        << what << too_small.failure();
}

template <class MakeNetwork>
void expect_seen_at_random(const MakeNetwork& make, uint64_t first, uint64_t last) {
    for (uint64_t seed = first; seed <= last; ++seed) {
        const Network network = make(seed);
        const Schedule schedule = random_schedule(network, seed);
        if (schedule.groups().empty()) continue;
        expect_seen(network, with_random_kernels(network, schedule, seed), seed);
        if (testing::Test::HasFailure()) return;
    }
}

TEST(Hooks, RandomSchedulesAndKernelsMoveWhatTheModelCounts) {
    expect_seen_at_random(random_chain, 1, test::samples<uint64_t>(4));
    expect_seen_at_random(random_network, 1, test::samples<uint64_t>(4));
}

TEST(HooksLong, Chains) { expect_seen_at_random(random_chain, 5, test::samples<uint64_t>(100)); }

TEST(HooksLong, Graphs) { expect_seen_at_random(random_network, 5, test::samples<uint64_t>(30)); }

}  // namespace
}  // namespace laminate
