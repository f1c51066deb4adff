// No group's code fails the check that compiling makes (check_group.h): replacing a group by its
// layers hides a mistake of ours.
#include <gtest/gtest.h>

#include "generators/compile/compile.h"
#include "nets/random/random_network.h"
#include "nets/zoo/zoo.h"
#include "scheduler/explore/planner/line_buffers.h"
#include "tests/support/sanitized.h"

namespace laminate {
namespace {

/// Vectors and registers of AVX-512 and of AVX2; a processor without the first takes two of its
/// own for one.
constexpr VectorUnit units[] = {{16, 24}, {8, 12}};

void expect_none_replaced(const Network& network, const std::string& what) {
    const Schedule schedule = std::get<Schedule>(line_buffer_schedule(network));
    for (const VectorUnit& unit : units) {
        CompileOptions options;
        options.threads = 1;
        options.note = [&](const std::string& line) {
            ADD_FAILURE() << what << ", vectors of " << unit.lanes << ": " << line;
        };
        SCOPED_TRACE(what);
        const JitNetwork compiled(network, with_default_kernels(network, schedule, unit), options);
    }
}

TEST(ReplacedGroups, NoneOfRandomNetworks) {
    for (uint64_t seed = 1; seed <= test::samples<uint64_t>(4); ++seed)
        expect_none_replaced(random_network(seed), "seed " + std::to_string(seed));
}

/// A hundred seeds each, so that several run at once.
class ReplacedGroupsLong : public testing::TestWithParam<uint64_t> {};

TEST_P(ReplacedGroupsLong, NoneOfAHundredRandomNetworks) {
    for (uint64_t n = 1; n <= 100; ++n) {
        const uint64_t seed = 100 * GetParam() + n;
        expect_none_replaced(random_network(seed), "seed " + std::to_string(seed));
    }
}

INSTANTIATE_TEST_SUITE_P(Seeds, ReplacedGroupsLong, testing::Range<uint64_t>(0, 20));

std::vector<std::string> zoo_names() {
    std::vector<std::string> names;
    for (const ZooEntry& entry : zoo_entries()) names.push_back(entry.name);
    return names;
}

/// Every network of the zoo at its own size.
class ReplacedGroupsOfTheZooLong : public testing::TestWithParam<std::string> {};

TEST_P(ReplacedGroupsOfTheZooLong, None) {
    expect_none_replaced(zoo_network(GetParam()), GetParam());
}

INSTANTIATE_TEST_SUITE_P(Networks, ReplacedGroupsOfTheZooLong, testing::ValuesIn(zoo_names()));

}  // namespace
}  // namespace laminate
