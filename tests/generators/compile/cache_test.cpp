// Networks compiled with a cache: the same bits, nothing compiled or checked twice, and damage
// noticed.
#include <Halide.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "base/disk_cache.h"
#include "base/files.h"
#include "base/rng.h"
#include "generators/compile/compile.h"
#include "generators/compile/object_code.h"
#include "nets/zoo/zoo.h"
#include "runtime/session.h"
#include "scheduler/explore/planner/line_buffers.h"
#include "tests/support/scratch_directory.h"

namespace laminate {
namespace {

namespace fs = std::filesystem;

class CompileCache : public testing::Test {
protected:
    void SetUp() override {
        if (!loads_objects) GTEST_SKIP() << "objects of this processor are not loaded";
    }

    /// What a run makes of a network, and what compiling it took.
    struct Outcome {
        std::vector<float> output;
        CompileTimes times;
        std::vector<std::string> replaced;

        [[nodiscard]] int compiled() const {
            int count = 0;
            for (const GroupTimes& group : times.groups)
                count += group.is_equal || group.is_cached ? 0 : 1;
            return count;
        }
        [[nodiscard]] int checked() const {
            int count = 0;
            for (const GroupTimes& group : times.groups) count += group.check > 0 ? 1 : 0;
            return count;
        }
    };
    [[nodiscard]] Outcome outcome_of(const Network& network, bool cached = true,
                                     CompileOptions options = {}) const {
        Outcome outcome;
        if (cached) options.cache = std::make_shared<DiskCache>(DiskCache::Options{root_});
        options.times = &outcome.times;
        const JitNetwork compiled(network, layer_by_layer_schedule(network), options);
        outcome.replaced = compiled.manifest().replaced_groups;
        Session session = Session::open(&compiled.descriptor(), {2});
        Rng rng(3);
        std::vector<float> input(static_cast<size_t>(element_count(session.inputs()[0].dims)));
        for (float& value : input) value = static_cast<float>(rng.between(-9, 9)) / 7;
        outcome.output.resize(static_cast<size_t>(element_count(session.outputs()[0].dims)));
        session.run({input.data()}, {outcome.output.data()});
        return outcome;
    }
    [[nodiscard]] std::vector<fs::path> files() const {
        std::vector<fs::path> all;
        for (const auto& entry : fs::directory_iterator(root_)) all.push_back(entry.path());
        return all;
    }

    const ScratchDirectory scratch_;
    const fs::path root_ = scratch_ / "code";
};

TEST_F(CompileCache, AWarmRunComputesTheSameBitsAndCompilesAndChecksNothing) {
    for (const std::string name : {"l3net", "fsrcnn"}) {
        const Network network = zoo_network(name, {.height = 24, .width = 40});
        const Outcome without = outcome_of(network, false), cold = outcome_of(network),
                      warm = outcome_of(network);
        EXPECT_EQ(cold.output, without.output) << name;
        EXPECT_EQ(warm.output, without.output) << name;
        EXPECT_GT(cold.compiled(), 0) << name;
        EXPECT_EQ(cold.checked(), static_cast<int>(cold.times.groups.size())) << name;
        EXPECT_EQ(warm.compiled(), 0) << name;
        EXPECT_EQ(warm.checked(), 0) << name;
        EXPECT_EQ(warm.times.groups.size(), cold.times.groups.size()) << name;
    }
}

/// Whether code passes its check may depend on the weights, so other weights are checked.
TEST_F(CompileCache, OtherWeightsShareTheCodeAndAreChecked) {
    Network network = zoo_network("l3net");
    (void)outcome_of(network);
    Constant weights = *network.layers.front().weights;
    std::vector<float> values(weights.values.begin(), weights.values.end());
    values.front() += 1;
    network.layers.front().weights =
        std::make_shared<const Constant>(Constant{weights.dims, std::move(values)});
    const Outcome other = outcome_of(network);
    EXPECT_EQ(other.compiled(), 0);
    EXPECT_EQ(other.checked(), static_cast<int>(other.times.groups.size()));
    EXPECT_EQ(other.output, outcome_of(network, false).output);
}

TEST_F(CompileCache, OptionsOfTheCheckArePartOfWhatIsKnown) {
    const Network network = zoo_network("l3net");
    (void)outcome_of(network);
    CompileOptions options;
    options.check.specials = true;
    EXPECT_GT(outcome_of(network, true, options).checked(), 0);
    options = {};
    options.check.seed = 2;
    EXPECT_GT(outcome_of(network, true, options).checked(), 0);
    EXPECT_EQ(outcome_of(network).checked(), 0);
}

TEST_F(CompileCache, DamagedEntriesAreMadeAnew) {
    const Network network = zoo_network("l3net");
    const Outcome cold = outcome_of(network);
    for (const fs::path& file : files()) {
        std::string bytes = read_file(file);
        bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 4);
        std::ofstream(file, std::ios::binary) << bytes;
    }
    const Outcome again = outcome_of(network);
    EXPECT_EQ(again.compiled(), cold.compiled());
    EXPECT_EQ(again.checked(), cold.checked());
    EXPECT_EQ(again.output, cold.output);
    EXPECT_EQ(outcome_of(network).compiled(), 0);
}

/// Code of another version of Laminate, of Halide or for another processor is never loaded.
TEST_F(CompileCache, AKeySaysWhatMadeTheCode) {
    (void)outcome_of(zoo_network("l3net"));
    ASSERT_FALSE(files().empty());
    for (const fs::path& file : files()) {
        const std::string bytes = read_file(file);
        const size_t sources = bytes.find("\nsources ");
        ASSERT_NE(sources, std::string::npos);
        const std::string version = bytes.substr(sources + 9, 64);
        EXPECT_EQ(version.find_first_not_of("0123456789abcdef"), std::string::npos) << version;
        EXPECT_NE(bytes.find("\nhalide " + std::to_string(HALIDE_VERSION_MAJOR) + "."),
                  std::string::npos);
        EXPECT_NE(bytes.find("\ntarget " + Halide::get_host_target().to_string() + "\n"),
                  std::string::npos);
    }
}

/// A checker of one's own sees every group, and what it refuses is no business of the cache.
TEST_F(CompileCache, AGroupThatFailsItsCheckFailsItAgain) {
    const Network network = zoo_network("l3net");
    (void)outcome_of(network);
    std::atomic<int> calls = 0;
    CompileOptions options;
    options.checker = [&](const Network&, const GroupSchedule& group, const GroupCode&,
                          laminate_group_function, const CheckOptions&) -> std::string {
        ++calls;
        return group.nests.front().layer == "conv2" ? "no" : "";
    };
    for (int n = 0; n < 2; ++n) {
        calls = 0;
        const Outcome outcome = outcome_of(network, true, options);
        EXPECT_GE(calls, 3);
        EXPECT_FALSE(outcome.replaced.empty());
    }
    EXPECT_TRUE(outcome_of(network).replaced.empty());
}

}  // namespace
}  // namespace laminate
