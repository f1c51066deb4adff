#include "runtime/cpu.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace laminate {
namespace {

TEST(Cpu, WhatTheHostHasIsKnownAndUnknownNamesAreNotThere) {
    for (const std::string& feature : host_cpu_features()) EXPECT_TRUE(cpu_has(feature)) << feature;
    EXPECT_FALSE(cpu_has("avx4096"));
    EXPECT_FALSE(cpu_has(""));
}

#ifdef __x86_64__
TEST(Cpu, AnX86MachineIsAskedForAvx2) {
    const auto& known = known_cpu_features();
    EXPECT_NE(std::find(known.begin(), known.end(), "avx2"), known.end());
}
#endif

}  // namespace
}  // namespace laminate
