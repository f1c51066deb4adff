// One directory for pictures of every size, against directories made for each.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/rng.h"
#include "generators/compile/compile.h"
#include "generators/kernels/group_kernels.h"
#include "nets/zoo/zoo.h"
#include "runtime/session.h"
#include "scheduler/explore/planner/any_size.h"
#include "scheduler/schedule/open_group.h"

namespace laminate {
namespace {

std::vector<float> random_values(int64_t count, uint64_t seed) {
    Rng rng(seed);
    std::vector<float> values(static_cast<size_t>(count));
    for (float& value : values) value = static_cast<float>(rng.below(2001)) / 1000.0F - 1.0F;
    return values;
}

/// The values of all outputs, one after the other.
std::vector<float> result_of(Session& session, const std::vector<float>& input) {
    std::vector<int64_t> begin{0};
    for (const auto& output : session.outputs())
        begin.push_back(begin.back() + element_count(output.dims));
    std::vector<float> values(static_cast<size_t>(begin.back()));
    std::vector<float*> arrays;
    for (size_t n = 0; n + 1 < begin.size(); ++n) arrays.push_back(values.data() + begin[n]);
    session.run({input.data()}, arrays);
    return values;
}

/// A network compiled for any size, and for single ones by the same schedule.
class AnySize {
public:
    explicit AnySize(Network network)
        : network_(std::move(network)),
          sizes_(network_),
          schedule_(any_size_schedule(network_, sizes_,
                                      {.unit = vector_unit(Halide::get_host_target())})),
          compiled_(network_, schedule_, {.any_size = &sizes_}) {}

    [[nodiscard]] Session open(int threads) const {
        return Session::open(&compiled_.descriptor(), {.threads = threads, .least_operations = 0});
    }
    [[nodiscard]] const TensorSizes& sizes() const { return sizes_; }

    /// What code for that size alone makes of the input.
    [[nodiscard]] std::vector<float> expected(const SizeValues& size,
                                              const std::vector<float>& input) const {
        const Network network = sizes_.network_at(size);
        std::vector<GroupSchedule> groups;
        for (const GroupSchedule& group : schedule_.groups()) {
            const std::vector<LayerProblem> problems = group_problems(network_, group);
            std::vector<LayerId> layers;
            for (const LayerProblem& p : problems) layers.push_back(p.layer);
            const std::vector<LayerProblem> there = layer_problems(network, layers);
            // Any strips give the same bits.
            const SizeValues strips{
                .strip_rows = 3 * strip_unit(group, problems, Dim::y),
                .strip_columns = 2 * strip_unit(group, problems, Dim::x)};
            groups.push_back(group_at(group, problems, there, strips));
        }
        const JitNetwork compiled(network, Schedule(network, groups));
        Session session = Session::open(&compiled.descriptor(), {.threads = 1});
        return result_of(session, input);
    }

private:
    Network network_;
    TensorSizes sizes_;
    Schedule schedule_;
    JitNetwork compiled_;
};

void expect_equal_at(const AnySize& network, Session& session, const SizeValues& size) {
    session.resize(size.images, size.rows, size.columns);
    const std::vector<int64_t> dims = session.inputs().front().dims;
    EXPECT_EQ((SizeValues{.images = dims[0], .rows = dims[2], .columns = dims[3]}), size);
    const std::vector<float> input = random_values(element_count(dims), 7);
    const std::vector<float> found = result_of(session, input);
    const std::vector<float> expected = network.expected(size, input);
    ASSERT_EQ(found.size(), expected.size());
    size_t different = 0;
    for (size_t n = 0; n < found.size(); ++n) different += found[n] == expected[n] ? 0 : 1;
    EXPECT_EQ(different, 0) << size.rows << " x " << size.columns;
}

TEST(AnySize, FsrcnnHasTheBitsOfCodeForEachSize) {
    const AnySize network(zoo_network("fsrcnn", {.height = 160, .width = 256}));
    Session session = network.open(2);
    EXPECT_TRUE(session.is_any_size());
    EXPECT_EQ(session.inputs().front().dims, (std::vector<int64_t>{1, 1, 160, 256}));
    expect_equal_at(network, session, {.rows = 67, .columns = 401});
    expect_equal_at(network, session, {.images = 2, .rows = 90, .columns = 65});
}

/// Two convolutions in two groups, as both are outputs, whose code is the same. Each is checked with
/// its own strips.
TEST(AnySize, EqualGroupsShareTheirCode) {
    const std::vector<int64_t> map{1, 12, 40, 50};
    const auto convolution = [](const std::string& name, TensorId x, TensorId y, uint64_t seed) {
        Layer layer{.name = name, .kind = LayerKind::conv, .inputs = {x}, .output = y};
        layer.window = {.kernel = {3, 3}, .pad_begin = {1, 1}, .pad_end = {1, 1}};
        layer.weights = std::make_shared<const Constant>(
            Constant{{12, 12, 3, 3}, random_values(int64_t{12} * 12 * 3 * 3, seed)});
        return layer;
    };
    const Network two{.name = "two",
                      .tensors = {{"x", map}, {"y", map}, {"z", map}},
                      .layers = {convolution("first", 0, 1, 1), convolution("second", 1, 2, 2)},
                      .inputs = {0},
                      .outputs = {1, 2},
                      .folded = {}};
    const AnySize network(two);
    Session session = network.open(2);
    expect_equal_at(network, session, {.rows = 33, .columns = 65});
}

/// Memory that a session has taken is used again, and no result depends on what came before or on
/// the number of threads.
TEST(AnySize, SizesComeInAnyOrder) {
    const AnySize network(zoo_network("mc-cnn", {.height = 64, .width = 128}));
    Session session = network.open(2), alone = network.open(1);
    Rng rng(3);
    int64_t most = 0;
    for (int n = 0; n < 40; ++n) {
        const auto rows = static_cast<int64_t>(64 + rng.below(150));
        const auto columns = static_cast<int64_t>(64 + rng.below(200));
        session.resize(rows, columns);
        alone.resize(rows, columns);
        const std::vector<float> input =
            random_values(element_count(session.inputs().front().dims), 3);
        EXPECT_EQ(result_of(session, input), result_of(alone, input)) << rows << " x " << columns;
        most = std::max(most, session.arena_bytes());
        Session fresh = network.open(2);
        fresh.resize(rows, columns);
        EXPECT_EQ(fresh.arena_bytes(), session.arena_bytes());
    }
    EXPECT_GT(most, 0);
}

TEST(AnySize, RefusesWhatItCannotBe) {
    const AnySize network(zoo_network("fsrcnn-defines", {.height = 96, .width = 128}));
    Session session = network.open(1);
    const auto refusal = [&](int64_t rows, int64_t columns) -> std::string {
        try {
            session.resize(rows, columns);
        } catch (const InputError& error) {
            return error.what();
        }
        return "";
    };
    const SizeValues least = network.sizes().least();
    EXPECT_GT(least.rows, 1);
    EXPECT_EQ(refusal(least.rows - 1, 100),
              "size 1 x " + std::to_string(least.rows - 1) + " x 100: expected " +
                  std::to_string(least.rows) + " rows and " + std::to_string(least.columns) +
                  " columns or more");
    EXPECT_NE(refusal(1 << 16, 1 << 16).find("elements of an image"), std::string::npos);
    EXPECT_EQ(session.inputs().front().dims[2], 96);
    EXPECT_EQ(refusal(least.rows, least.columns), "");
}

}  // namespace
}  // namespace laminate
