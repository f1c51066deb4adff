#include "papers/layer_optimum/layer_machine.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace laminate {
namespace {

TEST(LayerMachine, EyerissOfCnnFlow) {
    const LayerMachine machine = layer_machine(open_machine("cnnflow_eyeriss"));
    EXPECT_EQ(machine.word_bits, 16);
    EXPECT_EQ(machine.buffer.banks, 27);
    EXPECT_EQ(machine.buffer.bank_words, 4 * 1024 / 2);
    ASSERT_TRUE(machine.registers);
    EXPECT_EQ(machine.registers->lanes, (std::vector<int64_t>{12, 14}));
    EXPECT_EQ(machine.registers->words, 520 / 2);
}

TEST(LayerMachine, RefusesMemoriesOfTheirOwn) {
    try {
        (void)layer_machine(open_machine("meta_proto"));
        FAIL();
    } catch (const InputError& error) {
        EXPECT_STREQ(error.what(),
                     "machine meta_proto: elements of 8 and 16 bits, expected one width for maps, "
                     "weights and partial sums");
    }
}

}  // namespace
}  // namespace laminate
