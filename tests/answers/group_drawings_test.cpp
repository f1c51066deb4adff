#include "answers/group_drawings.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "nets/random/random_network.h"
#include "nets/zoo/zoo.h"
#include "scheduler/counts/two_level/two_level.h"
#include "scheduler/explore/random_schedule.h"
#include "scheduler/schedule/loop_nest.h"

namespace laminate::cli {
namespace {

using Json = nlohmann::ordered_json;

// As in tests/scheduler/counts/memory_timeline_test.cpp: conv1 in rows for strips of 4 of conv2's
// 16 rows, 2 rows kept between them.
constexpr const char* fused_rows =
    "{conv1: zo yo xo io | zi yi xi ii n m; tile z4 y18 x18 i3; X conv2.yo/conv2.yo; W root/root; "
    "Y root/conv2.yo & "
    "conv2: zo yo xo io | zi yi xi ii n m; tile z4 y4 x16 i4; W root/root; Y yo/yo}";

Json drawing(const Network& network, const GroupSchedule& group) {
    return Json::parse(group_drawings(network, {&group})).at(0);
}

TEST(GroupDrawings, TrafficPerTensorAndMemoryPerPhase) {
    const Network network = zoo_network("l2net");
    const Json group = drawing(network, parse_group(network, fused_rows));
    EXPECT_EQ(group["layers"], Json({"conv1", "conv2"}));
    // X: four strips; a strip's new rows of conv1 are 6, 4, 4, 4, for which it reads 8, 6, 6, 6
    // rows of 3 x 20: 26 * 60 = 1560.
    EXPECT_EQ(group["traffic"][0],
              Json({{"name", "X input"}, {"reads", 1560}, {"writes", 0}, {"elements", 1200}}));
    EXPECT_EQ(group["traffic"][1],
              Json({{"name", "W conv1"}, {"reads", 108}, {"writes", 0}, {"elements", 108}}));
    EXPECT_EQ(group["traffic"][2],
              Json({{"name", "W conv2"}, {"reads", 144}, {"writes", 0}, {"elements", 144}}));
    EXPECT_EQ(group["traffic"][3],
              Json({{"name", "Y conv2"}, {"reads", 0}, {"writes", 1024}, {"elements", 1024}}));
    EXPECT_EQ(group["accesses"], 1560 + 108 + 144 + 1024);
    EXPECT_EQ(group["least"], 1200 + 108 + 144 + 1024);
    EXPECT_EQ(group["live"], 1420);
    EXPECT_EQ(group["phases"].size(), 2u);
    // Runs of one phase; conv1 and conv2 take turns in the four strips of 4 rows, drawn channel by
    // channel and row by row of conv2.
    EXPECT_EQ(group["steps"], Json::parse("[[0,1],[1,16],[0,1],[1,16],[0,1],[1,16],[0,1],[1,16]]"));
    EXPECT_NE(group["nest"].get<std::string>().find("for conv2.yo"), std::string::npos);
}

/// Groups of several schedules: some are alike up to names, some up to a size.
std::vector<GroupSchedule> some_groups(const Network& network, uint64_t seed) {
    std::vector<GroupSchedule> groups;
    for (uint64_t n = 0; n < 3; ++n) {
        const Schedule schedule = random_schedule(network, 10 * seed + n);
        groups.insert(groups.end(), schedule.groups().begin(), schedule.groups().end());
    }
    return groups;
}

void expect_each_as_by_itself(const Network& network, const std::vector<GroupSchedule>& groups) {
    std::vector<const GroupSchedule*> pointers;
    for (const GroupSchedule& group : groups) pointers.push_back(&group);
    const std::string together = group_drawings(network, pointers);
    EXPECT_EQ(group_drawings(network, pointers, 3), together);
    const Json all = Json::parse(together);
    ASSERT_EQ(all.size(), groups.size());
    for (size_t n = 0; n < groups.size(); ++n) {
        SCOPED_TRACE(to_text(groups[n]));
        EXPECT_EQ(all[n], drawing(network, groups[n]));
        const GroupCounts counts = two_level_counts(network, groups[n]);
        EXPECT_EQ(all[n]["accesses"], counts.accesses().value());
        EXPECT_EQ(all[n]["macs"], counts.macs().value());
        EXPECT_EQ(all[n]["live"], counts.live_total.value());
        EXPECT_EQ(all[n]["nest"], loop_nest_text(network, groups[n]));
        int64_t moved = 0;
        for (const Json& tensor : all[n]["traffic"])
            moved += tensor["reads"].get<int64_t>() + tensor["writes"].get<int64_t>();
        EXPECT_EQ(moved, counts.accesses().value());
        for (size_t k = 0; k < groups[n].nests.size(); ++k) {
            EXPECT_EQ(all[n]["layers"][k], groups[n].nests[k].layer);
            EXPECT_EQ(all[n]["phases"][k]["layer"], groups[n].nests[k].layer);
            EXPECT_EQ(all[n]["phases"][k]["macs"], counts.layers[k].macs.value());
        }
    }
}

TEST(GroupDrawings, GroupsAreDrawnTogetherAsEachByItself) {
    const Network alike =
        zoo_network("dmcnn-vd", {.height = 20, .width = 20});  // 18 layers of one shape
    const std::vector<GroupSchedule> schedule = some_groups(alike, 1);
    expect_each_as_by_itself(alike, schedule);
    // The same nest on every layer.
    std::vector<GroupSchedule> renamed;
    for (LayerId id = 1; id < 6; ++id) {
        renamed.push_back(parse_group(
            alike, "{" + alike.layer(id).name +
                       ": zo yo xo io | zi yi xi ii n m; tile z8 y20 x5 i64; X xo/xo; W "
                       "root/root; Y zo/zo}"));
    }
    expect_each_as_by_itself(alike, renamed);
    for (uint64_t seed = 1; seed <= 12; ++seed) {
        const Network network = random_network(seed);
        expect_each_as_by_itself(network, some_groups(network, seed));
    }
}

TEST(GroupDrawings, NamesMayHoldAnyBytes) {
    Network network = zoo_network("l2net");
    const auto rename = [&](const std::string& from, const std::string& to) {
        for (Layer& layer : network.layers) {
            if (layer.name == from) layer.name = to;
        }
        for (Tensor& tensor : network.tensors) {
            if (tensor.name == from) tensor.name = to;
        }
    };
    GroupSchedule group = parse_group(network, fused_rows);
    rename("conv1",
           "\x7f"
           "1\x7f</script>\"\n");
    rename("conv2", "caf\xc3\xa9 \xff");
    rename("input",
           "\x7f"
           "0\x7f");
    group.nests[0].layer = network.layers[0].name;
    group.nests[1].layer = network.layers[1].name;
    const std::string text = group_drawings(network, {&group});
    EXPECT_EQ(text.find('<'), std::string::npos);
    const Json drawn = Json::parse(text).at(0);
    EXPECT_EQ(drawn["layers"], Json({"\x7f"
                                     "1\x7f</script>\"\n",
                                     "caf\xc3\xa9 \xef\xbf\xbd"}));
    EXPECT_EQ(drawn["traffic"][0]["name"],
              "X \x7f"
              "0\x7f");
    EXPECT_EQ(drawn["traffic"][1]["name"],
              "W \x7f"
              "1\x7f</script>\"\n");
    EXPECT_EQ(drawn["phases"][1]["layer"], "caf\xc3\xa9 \xef\xbf\xbd");
    EXPECT_NE(drawn["nest"].get<std::string>().find("output of \x7f"
                                                    "1\x7f</script>\"\n"),
              std::string::npos);
}

}  // namespace
}  // namespace laminate::cli
