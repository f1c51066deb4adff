#include "papers/spatial_fusion/array_machine.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace laminate::spatial_fusion {
namespace {

TEST(ArrayMachine, TheSixConfigurationsOfTables3And4) {
    struct Row {
        int64_t columns, rows, on_chip_kib, register_bytes;
        double mac_pj, on_chip_pj;
    };
    const Row table[6]{{32, 16, 512, 512, 1.75, 26.70},   {32, 16, 1536, 512, 1.75, 78.16},
                       {32, 32, 1536, 512, 1.75, 78.16},  {48, 32, 1536, 512, 1.75, 78.16},
                       {32, 16, 1536, 1024, 1.79, 78.16}, {32, 16, 1536, 1536, 1.83, 78.16}};
    for (size_t n = 0; n < 6; ++n) {
        const ArrayMachine machine = array_machine(open_machine("hwff_" + std::to_string(n + 1)));
        EXPECT_EQ(machine.columns, table[n].columns);
        EXPECT_EQ(machine.rows, table[n].rows);
        EXPECT_EQ(machine.on_chip_bytes, table[n].on_chip_kib * 1024);
        EXPECT_EQ(machine.register_bytes, table[n].register_bytes);
        EXPECT_DOUBLE_EQ(*machine.mac_pj, table[n].mac_pj);
        EXPECT_DOUBLE_EQ(machine.on_chip_pj, table[n].on_chip_pj);
        EXPECT_DOUBLE_EQ(machine.dram_pj, 200);
    }
}

TEST(ArrayMachine, SixteenBitsHalveTheCapacityAndDoubleTheAccesses) {
    const ArrayMachine machine = array_machine(open_machine("hwff_1"), 16);
    EXPECT_EQ(machine.capacity(), 256 * 1024);
    EXPECT_DOUBLE_EQ(machine.dram_pj, 400);
    EXPECT_FALSE(machine.mac_pj);  // the paper prices MACs of 8 bits
}

TEST(ArrayMachine, ConstantsThatThePaperDoesNotGiveAreMarkedAsFitted) {
    const Machine machine = open_machine("hwff_4");
    for (const char* name : {"ctc_divisor", "on_chip_accesses_per_mac", "dram_bytes_per_cycle"}) {
        ASSERT_NE(machine.constant(name), nullptr) << name;
        EXPECT_TRUE(machine.constant(name)->is_fitted) << name;
    }
    EXPECT_FALSE(machine.constant("register_weight_bytes")->is_fitted);
}

TEST(ArrayMachine, OtherMachinesAreRefusedByName) {
    const auto message = [](const Machine& machine) -> std::string {
        try {
            (void)array_machine(machine);
        } catch (const InputError& error) {
            return error.what();
        }
        return "";
    };
    EXPECT_NE(message(open_machine("meta_proto")).find("machine meta_proto: found an array of"),
              std::string::npos);
    EXPECT_NE(message(open_machine("cnnflow_eyeriss")).find("no constant \"dram_bytes_per_cycle\""),
              std::string::npos);
    EXPECT_THROW((void)array_machine(open_machine("hwff_1"), 12), InputError);
}

}  // namespace
}  // namespace laminate::spatial_fusion
