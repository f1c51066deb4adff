#include "scheduler/machine/machine.h"

#include "scheduler/machine/cpu_speed.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "base/files.h"

namespace laminate {
namespace {

const Memory& memory(const Machine& machine, const std::string& name) {
    for (const Memory& candidate : machine.memories) {
        if (candidate.name == name) return candidate;
    }
    throw std::out_of_range(name);
}

std::string hierarchy_text(const Machine& machine, Operand operand) {
    std::string text;
    for (const size_t level : machine.hierarchy(operand))
        text += (text.empty() ? "" : " ") + machine.memories[level].name;
    return text;
}

TEST(Machine, MetaProtoDfAsInTableI) {
    const Machine machine = open_machine("meta_proto_df");
    EXPECT_EQ(machine.mac_count(), 32 * 2 * 4 * 4);
    EXPECT_EQ(hierarchy_text(machine, Operand::input), "sram_64KB sram_1MB_A dram");
    EXPECT_EQ(hierarchy_text(machine, Operand::weight), "rf_1B sram_32KB sram_1MB_W dram");
    EXPECT_EQ(hierarchy_text(machine, Operand::output), "rf_2B sram_64KB sram_1MB_A dram");
    // Weights are broadcast over OX and OY: a copy per lane of K and C. Outputs are summed over C:
    // per lane of K, OX, OY.
    EXPECT_EQ(machine.copies(memory(machine, "rf_1B")), 32 * 2);
    EXPECT_EQ(machine.copies(memory(machine, "rf_2B")), 32 * 4 * 4);
    EXPECT_EQ(machine.copies(memory(machine, "sram_64KB")), 1);
    EXPECT_EQ(memory(machine, "sram_64KB").capacity_bits, 64 * 1024 * 8);
    EXPECT_EQ(memory(machine, "sram_32KB").read.word_pj, 17.2);
    EXPECT_EQ(memory(machine, "sram_32KB").write.word_pj, 28.4);
    EXPECT_EQ(memory(machine, "sram_32KB").read.smallest_access_bits, 64);
}

TEST(Machine, PortsAreSharedAsInTheArtifact) {
    const Machine machine = open_machine("meta_proto_df");
    // One read and one write port for both operands.
    const Memory& shared = memory(machine, "sram_64KB");
    EXPECT_EQ(&shared.port_of(Operand::input, Transfer::read_to_lower),
              &shared.port_of(Operand::output, Transfer::read_to_higher));
    EXPECT_NE(&shared.port_of(Operand::input, Transfer::read_to_lower),
              &shared.port_of(Operand::input, Transfer::write_from_higher));
    // A register of the outputs has two of each.
    const Memory& outputs = memory(machine, "rf_2B");
    EXPECT_NE(&outputs.port_of(Operand::output, Transfer::read_to_lower),
              &outputs.port_of(Operand::output, Transfer::read_to_higher));
    // DRAM: one port for all.
    const Memory& dram = memory(machine, "dram");
    EXPECT_EQ(dram.ports.size(), 1u);
    EXPECT_EQ(dram.ports[0].carries.size(), 8u);
}

TEST(Machine, TheTenOfDefinesHaveTheSameNumberOfMultipliers) {
    for (const char* name : {"meta_proto", "tpu", "edge_tpu", "ascend", "tesla_npu"}) {
        for (const char* variant : {"", "_df"}) {
            const Machine machine = open_machine(std::string(name) + variant);
            EXPECT_EQ(machine.name, std::string(name) + variant);
            EXPECT_EQ(machine.mac_count(), 1024) << machine.name;
            EXPECT_EQ(machine.mac_pj, 0.04) << machine.name;
            EXPECT_EQ(machine.memories.back().name, "dram");
        }
    }
}

TEST(Machine, TeslaNpuDfHasFourWeightLevelsBelowDram) {
    const Machine machine = open_machine("tesla_npu_df");
    EXPECT_EQ(hierarchy_text(machine, Operand::weight),
              "rf_1B sram_1KB_W sram_64KB_W sram_1MB_W dram");
    EXPECT_EQ(hierarchy_text(machine, Operand::output), "rf_4B sram_64KB_A sram_896KB_A dram");
    // 32 x 1 B, 1024 x 4 B, two of 1 KB, two of 128 KB (artifact), 1 MB and 896 KB.
    EXPECT_EQ(machine.on_chip_bits(), 8 * (32 + 4096 + 2 * 1024 + 2 * 131072 + 1048576 + 917504));
}

/// The message of parse_machine for meta_proto_df with one text replaced.
std::string refusal(const std::string& from, const std::string& to) {
    std::string json = read_file(std::string(LAMINATE_MACHINES) + "/meta_proto_df.json");
    const size_t at = json.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    json.replace(at, from.size(), to);
    try {
        (void)parse_machine(json, "m.json");
    } catch (const InputError& error) {
        return error.what();
    }
    return "accepted";
}

TEST(Machine, BadFilesAreRefusedByKey) {
    EXPECT_EQ(refusal("\"capacity_bits\": 8,", "\"capacity\": 8,"),
              "m.json: memories[0]: capacity_bits: missing, expected an integer > 0");
    EXPECT_EQ(refusal("\"capacity_bits\": 8,", "\"capacity_bits\": 0,"),
              "m.json: memories[0]: capacity_bits: found 0, expected an integer > 0");
    EXPECT_EQ(
        refusal("\"capacity_bits\": 8,", "\"capacity_bits\": 18446744073709551615,"),
        "m.json: memories[0]: capacity_bits: found 18446744073709551615, expected an integer > 0");
    EXPECT_EQ(refusal("\"capacity_bits\": 8,", "\"capacity_bits\": 8, \"banks\": 3,"),
              "m.json: memories[0]: banks: found 3, expected a divisor of capacity_bits 8");
    EXPECT_EQ(
        refusal("\"partial_sum\": 16", "\"partial_sum\": 7"),
        "m.json: element_bits: partial_sum: found 7, expected at least the bits of an output, 8");
    EXPECT_EQ(refusal("\"smallest_access_bits\": 64", "\"smallest_access_bits\": 96"),
              "m.json: memories[2]: read: smallest_access_bits: found 96, expected a divisor of "
              "word_bits 512");
    EXPECT_EQ(refusal("\"word_pj\": 17.2", "\"word_pj\": -17.2"),
              "m.json: memories[2]: read: word_pj: found -17.2, expected a number >= 0");
    EXPECT_EQ(refusal("\"mac_pj\"", "\"mac_nj\""),
              "m.json: array: mac_pj: missing, expected a number >= 0");
    EXPECT_EQ(refusal("\"loop\": \"C\"", "\"loop\": \"Z\""),
              "m.json: array: axes[1]: loop: found \"Z\", expected one of K, C, OX, OY, FX, FY");
    EXPECT_EQ(refusal("\"loop\": \"C\"", "\"loop\": \"K\""),
              "m.json: array: axes[1]: loop: found K twice, expected a loop on one axis");
    EXPECT_EQ(refusal("\"replicated_along\": [\"K\", \"C\"]", "\"replicated_along\": [\"FX\"]"),
              "m.json: memories[0]: replicated_along: found \"FX\", expected \"all\", or loops of "
              "axes of the array");
    EXPECT_EQ(refusal("\"name\": \"rf_2B\"", "\"name\": \"rf_1B\""),
              "m.json: memories[1]: name: found \"rf_1B\" twice, expected one memory of a name");
    EXPECT_EQ(refusal("\"O:read_to_higher\"", "\"O:read_to_lower\""),
              "m.json: memories[1]: ports: found 2 that carry O:read_to_lower, expected 1");
    EXPECT_EQ(refusal("\"O:read_to_higher\"", "\"I:read_to_lower\""),
              "m.json: memories[1]: ports[1]: carries: found \"I:read_to_lower\", expected a "
              "transfer of an operand of "
              "the memory in the "
              "port's direction");
    EXPECT_EQ(refusal("\"array\"", "\"size\": 3, \"array\""),
              "m.json: unknown key \"size\"; known: about, array, element_bits, memories, name, "
              "schema, source, version");
    const auto constants = [](const std::string& fitted, const std::string& name) {
        const std::string first = R"({"name": "a", "value": 1, "source": "s"})";
        return refusal("\"array\"", "\"constants\": [" + first + R"(, {"name": ")" + name +
                                        R"(", "value": 2, "fitted": )" + fitted +
                                        R"(, "source": "s"}], "array")");
    };
    EXPECT_EQ(constants("2", "b"), "m.json: constants[1]: fitted: found 2, expected true or false");
    EXPECT_EQ(constants("true", "a"),
              "m.json: constants[1]: name: found \"a\" twice, expected one constant of a name");
    EXPECT_EQ(constants("true", "b"), "accepted");
    EXPECT_EQ(refusal("\"version\": 1", "\"version\": 2"), "m.json: version: found 2, expected 1");
    EXPECT_EQ(refusal("{", "["), "m.json: found no JSON, expected a JSON object");
}

TEST(Machine, OpensFilesAndListsItsNames) {
    EXPECT_EQ(open_machine(std::string(LAMINATE_MACHINES) + "/tpu.json").name, "tpu");
    try {
        (void)open_machine("no-such-machine");
        FAIL();
    } catch (const InputError& error) {
        EXPECT_NE(
            std::string(error.what())
                .find("machine no-such-machine: no such name or file; names: ascend, ascend_df"),
            std::string::npos)
            << error.what();
    }
}

TEST(Machine, EveryFileOfTheFolderIsEmbedded) {
    for (const auto& entry : std::filesystem::directory_iterator(LAMINATE_MACHINES)) {
        if (entry.path().extension() != ".json") continue;
        const std::string name = entry.path().stem().string();
        if (name.starts_with("convfusion")) continue;  // energy tables
        const std::vector<std::string> speeds = cpu_speed_names();
        if (std::ranges::count(speeds, name) > 0)
            EXPECT_EQ(open_cpu_speed(name).name, name);
        else
            EXPECT_EQ(open_machine(name).name, name);
    }
}

TEST(CpuSpeed, UsualOneIsThatOfTheVectors) {
    EXPECT_EQ(usual_cpu_speed({.lanes = 8, .accumulators = 12}).name, "avx2");
    EXPECT_EQ(usual_cpu_speed({.lanes = 16}).name, "avx512");
    const CpuSpeed halves = usual_cpu_speed({.lanes = 16, .has_halves = true});
    EXPECT_EQ(halves.name, "zen4");
    EXPECT_EQ(usual_cpu_speed({.lanes = 16, .adds_in_multipliers = true}).name, "xeon6");
    EXPECT_GT(halves.nanoseconds.at("map_pixels.products"),
              1.5 * usual_cpu_speed({.lanes = 16}).nanoseconds.at("map_pixels.products"));
}

}  // namespace
}  // namespace laminate
