#include "nets/network/constant_values.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "nets/zoo/zoo.h"

namespace laminate {
namespace {

TEST(ConstantValues, AreMadeOnceWhenTheyAreRead) {
    std::atomic<int> made = 0;
    const ConstantValues values(3, [&made] {
        ++made;
        return std::vector<float>{1, 2, 3};
    });
    const ConstantValues copy = values;
    EXPECT_EQ(values.size(), 3u);
    EXPECT_FALSE(values.empty());
    EXPECT_EQ(made, 0);
    std::vector<std::thread> readers;
    for (int n = 0; n < 4; ++n) readers.emplace_back([&] { EXPECT_EQ(copy[1], 2.0f); });
    for (std::thread& reader : readers) reader.join();
    EXPECT_EQ(values, (std::vector<float>{1, 2, 3}));
    EXPECT_EQ(values.data(), copy.data());
    EXPECT_EQ(made, 1);
}

TEST(ConstantValues, OfTheZooDoNotDependOnTheOrderOfReading) {
    const Network forward = zoo_network("mc-cnn");
    const Network backward = zoo_network("mc-cnn");
    for (size_t k = backward.layers.size(); k-- > 0;) (void)backward.layers[k].bias->values.data();
    for (size_t k = 0; k < forward.layers.size(); ++k) {
        EXPECT_EQ(forward.layers[k].weights->values, backward.layers[k].weights->values) << k;
        EXPECT_EQ(forward.layers[k].bias->values, backward.layers[k].bias->values) << k;
    }
}

}  // namespace
}  // namespace laminate
