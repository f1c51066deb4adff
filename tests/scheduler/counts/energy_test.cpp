#include "scheduler/counts/energy.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "base/files.h"
#include "scheduler/counts/two_level/two_level.h"
#include "tests/support/chain.h"

namespace laminate {
namespace {

EnergyTable machine(const std::string& name) {
    return open_energy_table(std::string(LAMINATE_MACHINES) + "/" + name);
}

TEST(EnergyTable, ConvFusionConstants) {
    const EnergyTable table = machine("convfusion-40nm.json");
    EXPECT_EQ(table.name, "convfusion-40nm");
    EXPECT_EQ(table.mac_pj, 10.2);
    EXPECT_EQ(table.external_access_pj, 70 * 16);
    EXPECT_EQ(table.internal_accesses_per_mac, 4);
    EXPECT_FALSE(table.banks || table.register_file);
}

TEST(EnergyTable, TheThreeMachinesShareTheirNumbers) {
    const EnergyTable single = machine("convfusion-40nm.json");
    for (const char* name : {"convfusion-40nm-banked.json", "convfusion-40nm-banked-rf.json"}) {
        const EnergyTable other = machine(name);
        EXPECT_EQ(other.element_bits, single.element_bits);
        EXPECT_EQ(other.mac_pj, single.mac_pj);
        EXPECT_EQ(other.external_access_pj, single.external_access_pj);
        EXPECT_EQ(other.internal_accesses_per_mac, single.internal_accesses_per_mac);
        EXPECT_EQ(other.internal_access_base_pj, single.internal_access_base_pj);
        EXPECT_EQ(other.internal_access_pj_per_root_bit, single.internal_access_pj_per_root_bit);
        EXPECT_EQ(other.banks.value().bits, 160'000);
    }
    EXPECT_EQ(machine("convfusion-40nm-banked-rf.json").register_file.value().elements,
              Elements(64));
}

TEST(InternalAccess, GrowsWithTheRootOfTheSize) {
    // 10 000 elements of 16 bits: sqrt(160 000) = 400; 0.012 * 400 + 4.61 = 9.41 pJ.
    EXPECT_DOUBLE_EQ(internal_access_pj(machine("convfusion-40nm.json"), Elements(10'000)), 9.41);
    EXPECT_DOUBLE_EQ(internal_access_pj(machine("convfusion-40nm.json"), Elements(40'000)),
                     0.012 * 800 + 4.61);
}

TEST(InternalAccess, BanksKeepTheEnergyOfOneAndAddTheirSelection) {
    const EnergyTable banked = machine("convfusion-40nm-banked.json");
    EXPECT_DOUBLE_EQ(internal_access_pj(banked, Elements(10'000)), 9.41);  // exactly one bank
    // 10 001 elements: two banks, 1 + 3.05e-3 * ln 2.
    EXPECT_DOUBLE_EQ(internal_access_pj(banked, Elements(10'001)),
                     9.41 * (1 + 0.00305 * std::log(2)));
    EXPECT_LT(internal_access_pj(banked, Elements(1'000)), 9.41);
}

TEST(Energy, ByPartForL2NetLayerByLayer) {
    // Fewest accesses: 5 068, of which 1 296 + 1 024 are writes; 34 992 + 36 864 MACs; a memory of
    // 361 elements (ConvFusion's anchor).
    const EnergyCounts counts{Macs(34'992 + 36'864), Elements(5068 - 2320), Elements(2320),
                              Elements(361), Elements(20'000)};
    const double access = 0.012 * std::sqrt(16.0 * 361) + 4.61;
    const Energy single = energy(machine("convfusion-40nm.json"), counts);
    EXPECT_DOUBLE_EQ(single.macs_pj, 10.2 * 71'856);
    EXPECT_DOUBLE_EQ(single.external_pj, 1120.0 * 5068);
    EXPECT_DOUBLE_EQ(single.internal_pj, access * (4 * 71'856 + 2748));
    EXPECT_EQ(single.register_file_pj, 0);
    EXPECT_DOUBLE_EQ(single.total_pj(),
                     10.2 * 71'856 + 1120.0 * 5068 + access * (4 * 71'856 + 2748));
    // With a register file the operands stay there. Internal memory sees its 20 000 misses and the
    // external reads.
    const Energy levels = energy(machine("convfusion-40nm-banked-rf.json"), counts);
    EXPECT_DOUBLE_EQ(levels.register_file_pj, 2.4 * 4 * 71'856);
    EXPECT_DOUBLE_EQ(levels.internal_pj, access * (20'000 + 2748));
    EXPECT_EQ(levels.external_pj, single.external_pj);
}

TEST(Energy, GrowsWithEachAxis) {
    for (const char* name : {"convfusion-40nm.json", "convfusion-40nm-banked.json",
                             "convfusion-40nm-banked-rf.json"}) {
        const EnergyTable table = machine(name);
        const EnergyCounts base{Macs(1000), Elements(200), Elements(100), Elements(300),
                                Elements(500)};
        EnergyCounts more = base;
        more.macs += Macs(1);
        EXPECT_GT(energy(table, more).total_pj(), energy(table, base).total_pj());
        more = base;
        more.external_writes += Elements(1);
        EXPECT_GT(energy(table, more).total_pj(), energy(table, base).total_pj());
        more = base;
        more.footprint += Elements(1);
        EXPECT_GT(energy(table, more).total_pj(), energy(table, base).total_pj());
    }
}

TEST(Energy, RegisterFileNeedsItsMisses) {
    EXPECT_THROW((void)energy(machine("convfusion-40nm-banked-rf.json"), EnergyCounts{}),
                 std::invalid_argument);
}

TEST(EnergyCounts, ReadsAndWritesOfAllGroups) {
    const Network network = l2net();
    std::vector<GroupCounts> groups;
    const std::string nest =
        ": zo yo xo io | zi yi xi ii n m; tile z4 y18 x18 i3; X root/root; W root/root; Y "
        "root/root}";
    groups.push_back(two_level_counts(network, parse_group(network, "{conv1" + nest)));
    groups.push_back(
        two_level_counts(network, parse_group(network,
                                              "{conv2: zo yo xo io | zi yi xi ii n m; tile z4 y16 "
                                              "x16 i4; X root/root; W root/root; Y root/root}")));
    const EnergyCounts counts = energy_counts(groups, Elements(7));
    EXPECT_EQ(counts.macs, Macs(71'856));
    EXPECT_EQ(counts.external_reads, Elements(1200 + 108 + 1296 + 144));
    EXPECT_EQ(counts.external_writes, Elements(1296 + 1024));
    EXPECT_EQ(counts.footprint, Elements(7));
}

/// The file with one text replaced.
std::string refusal(const std::string& from, const std::string& to) {
    std::string json = read_file(std::string(LAMINATE_MACHINES) + "/convfusion-40nm-banked.json");
    const size_t at = json.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    json.replace(at, from.size(), to);
    try {
        (void)parse_energy_table(json, "m.json");
    } catch (const InputError& error) {
        return error.what();
    }
    return "accepted";
}

TEST(EnergyTable, BadFilesAreRefusedByName) {
    EXPECT_EQ(refusal("\"mac_pj\"", "\"mac_nj\""),
              R"(m.json: mac_pj: missing, expected {"value": number >= 0, "source": text})");
    EXPECT_EQ(refusal("\"value\": 10.2", "\"value\": \"10.2\"").substr(0, 21),
              "m.json: mac_pj: found");
    EXPECT_EQ(refusal("\"value\": 10.2", "\"value\": -1").substr(0, 24),
              "m.json: mac_pj: found -1");
    EXPECT_EQ(refusal("\"value\": 160000", "\"value\": 0").substr(0, 26),
              "m.json: bank_bits: found 0");
    EXPECT_EQ(
        refusal("\"source\": \"ConvFusion VII-A.3: three reads and one write\"", "\"note\": \"\"")
            .substr(0, 52),
        "m.json: internal_accesses_per_mac: found no source, ");
    EXPECT_EQ(refusal("\"bank_select_fraction_per_log\"", "\"bank_select\"").substr(0, 44),
              "m.json: bank_select_fraction_per_log: missin");
    EXPECT_EQ(refusal("\"schema\"", "\"sch\""),
              R"(m.json: schema: missing, expected "laminate.energy_table")");
    EXPECT_EQ(refusal("\"version\": 1", "\"version\": 2"), "m.json: version: found 2, expected 1");
    EXPECT_EQ(refusal("\"version\": 1,", "\"version\": 1, \"size\": 3,").substr(0, 33),
              "m.json: unknown key \"size\"; known");
    EXPECT_THROW((void)open_energy_table("no-such-machine.json"), InputError);
}

TEST(EnergyTable, NamesAreTheFilesOfMachines) {
    for (const std::string& name : energy_table_names())
        EXPECT_EQ(open_energy_table(name).name, machine(name + ".json").name);
    EXPECT_EQ(energy_table_names().size(), 3U);
}

}  // namespace
}  // namespace laminate
