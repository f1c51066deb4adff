// Inside the class that generators/halide/levels.h states, what Halide's own inference makes of a
// schedule moves, computes and holds what the closed form says, and its output is right.
#include "instrumentation/halide_witness.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <map>
#include <ostream>
#include <set>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include "base/error.h"
#include "nets/random/random_network.h"
#include "nets/zoo/zoo.h"
#include "scheduler/counts/two_level/two_level.h"
#include "scheduler/explore/random_schedule.h"
#include "tests/instrumentation/join_networks.h"

namespace laminate {
namespace {

Network residual() {
    JoinBuilder b;
    const TensorId x = b.input(3, 12, 13);
    const TensorId a = b.conv(x, 4, 3, 1, 1, ActivationKind::relu);
    b.add(b.conv(a, 4, 3), a, ActivationKind::relu);
    return b.finish("residual");
}

Network residual_of_the_input() {
    JoinBuilder b;
    const TensorId x = b.input(4, 11, 14);
    const TensorId a = b.conv(x, 4, 3, 1, 1, ActivationKind::relu);
    b.add(b.conv(a, 4, 3), x, ActivationKind::relu);
    return b.finish("residual_of_the_input");
}

Network depthwise() {
    JoinBuilder b;
    const TensorId x = b.input(3, 17, 15);
    const TensorId a = b.conv(b.conv(x, 6, 1), 6, 3, 2, 6, ActivationKind::relu);
    b.conv(a, 4, 1);
    return b.finish("depthwise");
}

Network pools() {
    JoinBuilder b;
    const TensorId x = b.input(3, 14, 12);
    b.average_pool(b.conv(b.max_pool(x, 3, 2, 1), 4, 3), 2, 1, 0, false);
    return b.finish("pools");
}

Network branches() {
    JoinBuilder b;
    const TensorId x = b.input(3, 12, 13);
    b.conv(b.concat({b.conv(x, 4, 3), b.conv(x, 3, 1)}), 2, 3);
    return b.finish("branches");
}

/// Squeeze and excitation without the mean: a factor per channel and one per position.
Network excited() {
    JoinBuilder b;
    const TensorId x = b.input(3, 11, 13);
    const TensorId factors = b.conv(b.input(2, 1, 1), 4, 1);
    const TensorId a = b.both(GeneralFunction::multiply, b.conv(x, 4, 3), factors);
    const TensorId plane = b.conv(a, 1, 1);
    b.conv(b.both(GeneralFunction::multiply, plane, a), 2, 3);
    return b.finish("excited");
}

/// A slope per position.
Network sloped() {
    JoinBuilder b;
    const TensorId a = b.conv(b.input(3, 11, 13), 4, 3);
    b.conv(b.both(GeneralFunction::prelu, a, b.conv(a, 1, 1)), 2, 3);
    return b.finish("sloped");
}

Network raised() {
    JoinBuilder b;
    const TensorId x = b.input(3, 11, 13);
    b.both(GeneralFunction::power, x, b.conv(x, 3, 1));
    return b.finish("raised");
}

const std::map<std::string, std::function<Network()>> networks{
    {"l2net", [] { return zoo_network("l2net"); }},
    {"l3net", [] { return zoo_network("l3net"); }},
    {"fsrcnn", [] { return zoo_network("fsrcnn", {.height = 14, .width = 12}); }},
    {"residual", residual},
    {"residual_of_the_input", residual_of_the_input},
    {"depthwise", depthwise},
    {"pools", pools},
    {"branches", branches},
    {"excited", excited},
    {"sloped", sloped},
    {"raised", raised},
};

struct Seen {
    int inside = 0;
    int outside = 0;
    int without_form = 0;
};

constexpr HalideSpeed speeds[]{{}, {.lanes = 8}, {.lanes = 16, .threads = true}};

/// Random schedules of a network, all groups; those inside the class are equal, and so is what
/// their printed files compute.
void check(const std::string& name, const Network& network, uint64_t first_seed, int schedules,
           Seen& seen) {
    for (int n = 0; n < schedules; ++n) {
        const Schedule schedule = random_schedule(network, first_seed + static_cast<uint64_t>(n),
                                                  {.max_macs = Macs(2'000'000), .max_depth = 3});
        for (const GroupSchedule& group : schedule.groups()) {
            HalideMeasurement halide;
            try {
                halide = measure_halide(network, group, first_seed);
            } catch (const InputError&) {  // a transposed convolution
                ++seen.without_form;
                continue;
            }
            if (!halide.exclusions.empty()) {
                // Nothing is said of counts, but what Halide runs is right.
                ++seen.outside;
                EXPECT_EQ(halide.wrong_result, "") << name << ": " << to_text(group);
                continue;
            }
            ++seen.inside;
            EXPECT_EQ(printed_difference(network, group, first_seed, speeds[n % 3]), "")
                << name << ": " << to_text(group);
            EXPECT_EQ(halide.refused, "") << name << ": " << to_text(group);
            EXPECT_EQ(halide.wrong_result, "") << name << ": " << to_text(group);
            EXPECT_EQ(
                difference(two_level_counts(network, group), "model", halide.counts, "Halide"), "")
                << name << ": " << to_text(group);
        }
    }
}

TEST(HalideWitness, InsideTheClassRandomSchedulesCountAsTheModelDoes) {
    Seen seen;
    for (const auto& [name, network] : networks) check(name, network(), 20'000, 4, seen);
    EXPECT_GE(seen.inside, 31);  // counted: 33
}

/// Functions of one element behind a convolution, in the printed file, too.
TEST(HalideWitness, ActivationsAreWhatTheOperatorsCompute) {
    Seen seen;
    for (const auto& [function, alpha, beta] :
         {std::tuple{GeneralFunction::absolute, 0.0F, 0.0F},
          {GeneralFunction::hard_sigmoid, 0.25F, 0.5F},
          {GeneralFunction::hard_swish, 0.0F, 0.0F},
          {GeneralFunction::swish, 1.0F, 0.0F},
          {GeneralFunction::gelu, 0.0F, 0.0F},
          {GeneralFunction::gelu_tanh, 0.0F, 0.0F}}) {
        JoinBuilder b;
        b.conv(b.conv(b.input(2, 9, 10), 3, 3), 2, 3);
        Network network = b.finish("activated");
        network.layers.front().activation = {.kind = ActivationKind::unary,
                                             .function = function,
                                             .alpha = alpha,
                                             .beta = beta};
        check(to_string(function), network, 3, 2, seen);
        EXPECT_EQ(seen.without_form, 0) << to_string(function);
    }
    EXPECT_GE(seen.inside, 6);
}

void check_random_network(uint64_t network_seed, int schedules, Seen& seen) {
    const std::string name = "random network " + std::to_string(network_seed);
    check(name, random_network(network_seed), network_seed * 1'000, schedules, seen);
}

/// Strides, dilations, padding of one side, groups and joins that the networks above have not.
TEST(HalideWitness, InsideTheClassRandomNetworksCountAsTheModelDoes) {
    Seen seen;
    for (const uint64_t network : {17, 35, 49, 126}) check_random_network(network, 2, seen);
    EXPECT_GE(seen.inside, 20);  // counted: 21
}

class HalideWitnessLong : public testing::TestWithParam<uint64_t> {};

/// Counted: 743 groups inside the class, 128 to 176 in a part.
TEST_P(HalideWitnessLong, InsideTheClassRandomNetworksCountAsTheModelDoes) {
    Seen seen;
    for (uint64_t network = 1; network <= 30; ++network)
        check_random_network(30 * GetParam() + network, 3, seen);
    EXPECT_GE(seen.inside, 122);
    EXPECT_GE(seen.outside, 38);
}
INSTANTIATE_TEST_SUITE_P(Parts, HalideWitnessLong, testing::Range<uint64_t>(0, 5));

TEST(HalideReasons, AreAllOnThePage) {
    std::ifstream in(LAMINATE_SOURCE "/docs/halide.md");
    std::stringstream page;
    page << in.rdbuf();
    for (int r = 0; r <= static_cast<int>(last_halide_reason); ++r) {
        const std::string reason = to_text(static_cast<HalideReason>(r));
        EXPECT_NE(page.str().find("\n| " + reason + " |"), std::string::npos) << reason;
    }
}

/// The networks above with the groups inside the class that 90 schedules have, less one in twenty.
struct CountedNetwork {
    std::string name;
    int inside = 0;
};
void PrintTo(const CountedNetwork& network, std::ostream* out) { *out << network.name; }

class HalideNetworksLong : public testing::TestWithParam<CountedNetwork> {};

/// Counted: 854 groups inside the class.
TEST_P(HalideNetworksLong, InsideTheClassRandomSchedulesCountAsTheModelDoes) {
    Seen seen;
    check(GetParam().name, networks.at(GetParam().name)(), 30'000, 90, seen);
    EXPECT_GE(seen.inside, GetParam().inside);
    EXPECT_GE(seen.outside, 40);
}

INSTANTIATE_TEST_SUITE_P(
    Networks, HalideNetworksLong,
    testing::ValuesIn(std::vector<CountedNetwork>{{"branches", 120},
                                                  {"depthwise", 91},
                                                  {"fsrcnn", 142},
                                                  {"l2net", 74},
                                                  {"l3net", 77},
                                                  {"pools", 92},
                                                  {"residual", 126},
                                                  {"residual_of_the_input", 87}}),
    [](const auto& test) { return test.param.name; });

/// A chain whose intermediate rows are kept line by line, and one of the reasons for each kind of
/// schedule that Halide does otherwise.
GroupSchedule l2net_group(const Network& network, const std::string& text) {
    return parse_group(network, text);
}

TEST(HalideWitness, KeepsLinesOfAChain) {
    const Network network = zoo_network("l2net");
    const GroupSchedule group = l2net_group(
        network,
        "{conv1: zo yo xo io | yi zi xi ii n m; tile z4 y18 x18 i3; X root/conv2.yi; W root/root; "
        "Y root/conv2.yi & conv2: zo yo xo io | yi zi xi ii n m; tile z4 y16 x16 i4; W root/root; "
        "Y "
        "xi/xi}");
    const HalideMeasurement halide = measure_halide(network, group, 1);
    ASSERT_TRUE(halide.exclusions.empty()) << halide.exclusions.front().text;
    EXPECT_EQ(halide.wrong_result, "");
    EXPECT_EQ(halide.counts.input_reads(), Elements(20 * 20 * 3));  // once
    EXPECT_EQ(halide.counts.layers[0].macs, Macs(18 * 18 * 4 * 27));
    EXPECT_EQ(halide.counts.layers[0].output_buffer, Elements(3 * 18 * 4));  // three lines
    EXPECT_LE(halide.live_peak, halide.counts.live_total);
}

struct WindowAtAnEdge {
    uint64_t random_network;
    const char* schedule;
};

/// Windows that end in padding.
TEST(HalideWitness, AWindowMayEndInPadding) {
    for (const WindowAtAnEdge& c :
         {// The last of three trips brings nothing in, since the rows that it needs besides are
          // padding.
          WindowAtAnEdge{17,
                         "{conv2: ys || xo zo io yo | xi zi yi ii n m; strip y3; tile z2 y3 x4 i5; "
                         "X zi/yi; W io/yo; Y ii/ii}"},
          // There is no padding before the first column.
          WindowAtAnEdge{342,
                         "{conv2: xs || zo yo io xo | yi xi zi ii n m; strip x5; tile z1 y1 x1 i1; "
                         "X root/ii; W root/root; Y ii/ii}"}}) {
        const Network network = random_network(c.random_network);
        const GroupSchedule group = parse_group(network, c.schedule);
        const HalideMeasurement halide = measure_halide(network, group, 1);
        ASSERT_TRUE(halide.exclusions.empty()) << halide.exclusions.front().text;
        EXPECT_EQ(halide.refused, "");
        EXPECT_EQ(halide.wrong_result, "");
        EXPECT_EQ(difference(two_level_counts(network, group), "model", halide.counts, "Halide"),
                  "");
    }
}

struct PrintedCase {
    const char* net;
    const char* schedule;
};

/// Files whose text was wrong or refused, or whose code read beyond an alignment that callers need
/// not keep.
const std::vector<PrintedCase> printed_cases{
    // Strips that hold something, and no tiles inside of them.
    {"l2net",
     "{conv1: yo zo xo io | xi ii yi zi n m; tile z1 y8 x3 i3; X conv2.zi/zo; W conv2.zo/yi; Y "
     "conv2.yo/conv2.zi & conv2: xs ys || zo xo io yo | yi xi zi ii n m; strip y8 x15; tile z1 "
     "y16 x13 i4; W io/io; Y zo/zo}"},
    // Sums that are read back.
    {"l2net",
     "{conv2: zo yo io xo | yi zi ii xi n m; tile z1 y1 x9 i1; X root/zi; W io/ii; Y yi/yi}"},
    // An input that is kept around the strips, which are not threads then.
    {"l2net",
     "{conv1: ys || yo io xo zo | yi ii xi zi n m; strip y5; tile z1 y3 x18 i1; X root/zo; W "
     "ys/io; Y xo/xo}"},
    // Another buffer than the one that slides is outside of the class.
    {"l2net",
     "{conv1: io zo xo yo | yi zi ii xi n m; tile z2 y6 x8 i3; X conv2.yo/yo; W conv2.ys/conv2.zo; "
     "Y conv2.io/conv2.xi & conv2: ys || yo xo zo io | zi xi yi ii n m; strip y10; tile z4 y16 x2 "
     "i4; W zo/zi; Y yi/yi}"},
    // Halide's bounds of a strip with a rest reach beyond the input.
    {"l3net",
     "{conv1: xs || xo io zo yo | ii xi yi zi n m; strip x15; tile z3 y20 x10 i3; X root/zo; W "
     "yo/xi; Y xo/xo}"},
};

TEST(HalidePrinted, FilesComputeWhatTheScheduleDoes) {
    for (const PrintedCase& c : printed_cases) {
        const Network network = zoo_network(c.net);
        const GroupSchedule group = parse_group(network, c.schedule);
        for (const HalideSpeed& speed : speeds)
            EXPECT_EQ(printed_difference(network, group, 1, speed), "")
                << c.schedule << "\nlanes " << speed.lanes;
    }
}

struct OutsideCase {
    const char* name;
    const char* schedule;
    HalideReason reason;
    std::function<Network()> network = [] { return zoo_network("l2net"); };
};
void PrintTo(const OutsideCase& c, std::ostream* out) { *out << c.name; }

std::function<Network()> random_of(uint64_t seed) {
    return [seed] { return random_network(seed); };
}

/// Two convolutions of one input that meet again, one of which takes two rows for each row of the
/// other.
Network two_rates() {
    JoinBuilder b;
    const TensorId x = b.input(2, 11, 11);
    const TensorId a = b.padded_conv(x, 2, 3, 2, 0);
    b.add(a, b.padded_conv(x, 2, 7, 1, 0));
    return b.finish("two_rates");
}

/// Two convolutions of two inputs that meet.
Network two_inputs() {
    JoinBuilder b;
    const TensorId x = b.input(2, 9, 9), y = b.input(2, 9, 9);
    const TensorId a = b.padded_conv(x, 2, 3, 1, 0);
    b.add(a, b.padded_conv(y, 2, 3, 1, 0));
    return b.finish("two_inputs");
}

class HalideOutside : public testing::TestWithParam<OutsideCase> {};

TEST_P(HalideOutside, SaysWhyAndComputesTheSame) {
    const Network network = GetParam().network();
    const GroupSchedule group = parse_group(network, GetParam().schedule);
    const HalideMeasurement halide = measure_halide(network, group, 1);
    ASSERT_FALSE(halide.exclusions.empty());
    for (const HalideExclusion& e : halide.exclusions)
        EXPECT_EQ(to_text(e.reason), to_text(GetParam().reason)) << e.text;
    EXPECT_EQ(halide.refused, "");
    EXPECT_EQ(halide.wrong_result, "");
    EXPECT_NE(difference(two_level_counts(network, group), "model", halide.counts, "Halide"), "");
}

/// The reasons that random networks often meet.
const std::vector<OutsideCase> usual_cases{
    OutsideCase{
        "SecondLoop",
        "{conv1: zo yo xo io | zi yi xi ii n m; tile z4 y18 x18 i3; X root/root; W "
        "root/root; Y root/conv2.xo & conv2: zo yo xo io | zi yi xi ii n m; tile z4 y4 x4 "
        "i4; W root/root; Y xo/xo}",
        HalideReason::second_loop},
    OutsideCase{
        "IdleLoop",
        "{conv1: zo yo xo io | zi yi xi ii n m; tile z4 y18 x18 i3; X root/root; W "
        "root/root; Y root/conv2.yo & conv2: zo yo xo io | zi yi xi ii n m; tile z2 y16 x16 "
        "i4; W root/root; Y yo/yo}",
        HalideReason::idle_loop},
    OutsideCase{
        "ShortWindow",
        "{conv1: zo yo xo io | zi yi xi ii n m; tile z4 y18 x18 i3; X root/conv2.yo; W "
        "root/root; Y root/conv2.yo & conv2: zo yo xo io | zi yi xi ii n m; tile z4 y5 x16 "
        "i4; W root/root; Y yo/yo}",
        HalideReason::short_window},
    OutsideCase{
        "InsideWindow",
        "{conv1: zo yo xo io | zi yi xi ii n m; tile z4 y18 x18 i3; X "
        "conv2.yo/conv2.yo; W root/root; Y root/conv2.yo & conv2: zo yo xo io | zi yi xi "
        "ii n m; tile z4 y4 x16 i4; W root/root; Y yo/yo}",
        HalideReason::inside_window},
    OutsideCase{"SkippedRows",
                "{conv1: xo yo io zo | zi yi xi ii n m; tile z6 y2 x1 i1; X yo/yi; W xo/ii; "
                "Y xo/xo}",
                HalideReason::skipped_rows, random_of(13)},
    OutsideCase{"EdgeWindow",
                "{conv2: xo yo io zo | xi ii zi yi n m; tile z1 y8 x1 i3; X xo/io; W xi/xi; "
                "Y yo/yo}",
                HalideReason::edge_window, random_of(35)},
    OutsideCase{"OutsideCall",
                "{pool1: xo io zo yo | ii xi yi zi n m; tile z3 y1 x1 i1; X root/xo; Y "
                "pool2.zi/pool2.ii & pool2: yo xo io zo | xi zi ii yi n m; tile z3 y4 x1 i1; "
                "Y ii/ii}",
                HalideReason::outside_call, random_of(21)},
    OutsideCase{"SharedGaps",
                "{conv1: yo xo io zo | zi xi ii yi n m; tile z1 y2 x2 i2; X add3.zo/add3.yo; "
                "W yi/yi; Y add3.yo/add3.xo & conv2: zo yo xo io | zi ii yi xi n m; tile z1 "
                "y3 x1 i2; W add3.xo/xi; Y add3.zi/add3.zi & add3: ys || io zo yo xo | yi xi "
                "ii zi n m; strip y4; tile z1 y3 x1 i1; Y yi/yi}",
                HalideReason::shared_gaps, random_of(22)},
    OutsideCase{"GroupParts",
                "{conv1: xo zo yo io | ii xi yi zi n m; tile z3 y4 x1 i1; X io/yi; W xo/xo; "
                "Y xi/xi}",
                HalideReason::group_parts, random_of(35)},
    OutsideCase{"ShortTile",
                "{pool1: yo zo io xo | xi zi ii yi n m; tile z5 y8 x4 i1; X xo/ii; Y yo/yo}",
                HalideReason::short_tile, random_of(55)},
    OutsideCase{"ConcatChannels",
                "{concat5: zo io xo yo | ii yi xi zi n m; tile z4 y1 x6 i1; X0 zi/zi; X1 "
                "xi/xi; Y xi/xi}",
                HalideReason::concat_channels, random_of(43)},
    OutsideCase{"SharedChannels",
                "{conv4: zo io xo yo | yi xi zi ii n m; tile z2 y1 x4 i3; X add5.ii/add5.zi; "
                "W io/io; Y add5.zi/add5.zi & add5: io yo zo xo | xi ii zi yi n m; tile z1 "
                "y6 x4 i1; Y yi/yi}",
                HalideReason::shared_channels, random_of(15)},
    OutsideCase{"ShortStrip",
                "{conv2: ys || zo yo xo io | zi yi xi ii n m; strip y10; tile z4 y4 x16 i4; X "
                "yo/yo; W yo/yo; Y yo/yo}",
                HalideReason::short_strip}};

/// The rest.
const std::vector<OutsideCase> rare_cases{
    OutsideCase{"SharedBranch",
                "{conv1: io xo zo yo | yi xi zi ii n m; tile z2 y6 x10 i4; X concat3.ii/io; W "
                "root/concat3.ii; Y concat3.io/concat3.xi & conv2: xo io yo zo | yi ii xi zi n "
                "m; tile z1 y5 x10 i2; W concat3.yi/yi; Y concat3.xi/concat3.xi & concat3: zo "
                "xo yo io | ii yi xi zi n m; tile z3 y2 x6 i1; Y yi/yi}",
                HalideReason::shared_branch, random_of(283)},
    OutsideCase{"BeforeWindow",
                "{conv1: yo zo xo io | xi ii zi yi n m; tile z2 y4 x6 i2; X add3.xi/zo; W "
                "zi/yi; Y add3.yo/add3.ii & conv2: yo io xo zo | zi ii yi xi n m; tile z1 y1 "
                "x1 i2; X add3.zi/zo; W add3.ys/zi; Y add3.zo/add3.ii & add3: ys || io xo zo "
                "yo | yi zi xi ii n m; strip y7; tile z2 y1 x7 i1; Y xi/xi}",
                HalideReason::before_window, two_inputs},
    OutsideCase{"ShortVisit",
                "{conv1: xo io yo zo | xi zi ii yi n m; tile z1 y9 x3 i3; X yo/ii; W zo/xi; Y "
                "zo/zo}",
                HalideReason::short_visit, random_of(159)},
    OutsideCase{"SharedRates",
                "{conv2: io yo xo zo | zi yi ii xi n m; tile z2 y2 x5 i2; X root/add3.ii; W "
                "zi/yi; Y root/add3.ii & conv1: yo zo xo io | yi zi xi ii n m; tile z2 y5 x1 "
                "i2; W zi/zi; Y add3.xo/add3.ii & add3: io yo zo xo | yi ii xi zi n m; tile "
                "z2 y1 x4 i1; Y zi/zi}",
                HalideReason::shared_rates, two_rates},
    OutsideCase{"SharedWindow",
                "{conv3: xo zo io yo | zi yi ii xi n m; tile z1 y5 x2 i5; X add4.xo/add4.yi; W "
                "add4.xi/yo; Y add4.io/add4.xi & conv1: yo io xo zo | yi xi zi ii n m; tile z1 "
                "y2 x2 i5; W add4.zo/ii; Y add4.xo/add4.yi & conv2: yo zo xo io | zi yi xi ii "
                "n m; tile z1 y2 x1 i1; W yi/xi; Y add4.xo/add4.zi & add4: yo xo io zo | yi "
                "ii zi xi n m; tile z1 y5 x4 i1; Y yi/yi}",
                HalideReason::shared_window, random_of(228)},
    OutsideCase{"ParallelWindow",
                "{conv1: zo yo xo io | zi yi xi ii n m; tile z2 y7 x7 i2; X root/add3.yo; W "
                "root/root; Y add3.xo/add3.xo & conv2: zo yo xo io | zi yi xi ii n m; tile z2 "
                "y7 x7 i2; X root/add3.yo; W root/root; Y add3.xo/add3.xo & add3: yo zo xo io "
                "| zi yi xi ii n m; tile z2 y1 x3 i1; Y xo/xo}",
                HalideReason::parallel_window, two_inputs},
    OutsideCase{"FilledWindow",
                "{pool1: yo xo zo io | zi ii xi yi n m; tile z3 y2 x3 i1; X pool2.yi/pool2.ii; "
                "Y pool2.xo/pool2.ii & pool2: ys || xo yo zo io | zi yi xi ii n m; strip y1; "
                "tile z1 y1 x2 i1; Y ys/ys}",
                HalideReason::filled_window, random_of(621)}};

std::string name_of(const testing::TestParamInfo<OutsideCase>& test) { return test.param.name; }
INSTANTIATE_TEST_SUITE_P(Usual, HalideOutside, testing::ValuesIn(usual_cases), name_of);
INSTANTIATE_TEST_SUITE_P(Rare, HalideOutside, testing::ValuesIn(rare_cases), name_of);

TEST(HalideReasons, HaveACaseEach) {
    std::set<HalideReason> reasons;
    for (const auto* cases : {&usual_cases, &rare_cases}) {
        for (const OutsideCase& c : *cases) reasons.insert(c.reason);
    }
    EXPECT_EQ(reasons.size(), static_cast<size_t>(last_halide_reason) + 1);
}

}  // namespace
}  // namespace laminate
