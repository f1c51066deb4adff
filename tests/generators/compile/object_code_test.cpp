// Objects of the code generator without a linker: they compute the same, call what is outside, and
// damaged ones are refused.
#include "generators/compile/object_code.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/rng.h"
#include "generators/compile/executable.h"
#include "generators/ir/arrays.h"
#include "generators/lowering/group_lowering.h"

namespace laminate {
namespace {

using namespace Halide::Internal;
using Halide::Expr;

/// scratch[n] = value of constants[n] for eight n.
Stmt body_of(const std::function<Expr(Expr)>& value) {
    const Stmt store = ir::store("s", value(ir::load("c", ir::lanes_from(0, 8))),
                                 ir::lanes_from(0, 8));
    return ir::with_array("s", argument::scratch, 0,
                          ir::with_array("c", argument::constants, 0, store));
}

std::vector<float> run(laminate_group_function function) {
    alignas(64) float in[16] = {0, 1, 2, 3, 4, 5, 6, 7}, out[16] = {};
    EXPECT_EQ(function(nullptr, nullptr, in, out, 0, 1), 0);
    return {out, out + 8};
}

laminate_group_function function_of(const LoadedObject& object, const std::string& name) {
    return reinterpret_cast<laminate_group_function>(object.function(name));
}

Expr half(const Expr& x) { return x * 0.5F; }

class ObjectCode : public testing::Test {
protected:
    void SetUp() override {
        if (!loads_objects) GTEST_SKIP() << "objects of this processor are not loaded";
    }
    const Halide::Target host_ = Halide::get_host_target();
};

/// The kinds of prefetch in x86-64 code: bits 3 to 5 of the byte behind 0F 18, 0 without temporal
/// locality, 1 into all caches.
std::vector<int> prefetches(const std::string& object) {
    std::vector<int> kinds;
    for (size_t at = 0; (at = object.find("\x0f\x18", at)) != std::string::npos && at + 2 < object.size();
         ++at)
        kinds.push_back(static_cast<unsigned char>(object[at + 2]) >> 3 & 7);
    return kinds;
}

TEST_F(ObjectCode, LinesAreAskedForIntoAllCaches) {
    const auto code_of = [&](int64_t ahead) {
        const Stmt body = ir::sequence({ir::prefetch("c", Expr(ahead)),
                                        ir::store("s", half(ir::load("c", ir::lanes_from(0, 8))),
                                                  ir::lanes_from(0, 8))});
        return object_code({{"f", ir::with_array("s", argument::scratch, 0,
                                                 ir::with_array("c", argument::constants, 0, body))}},
                           "asks", host_);
    };
    // Each function asks for its stack, too.
    EXPECT_EQ(prefetches(code_of(4096)), (std::vector<int>{1, 1}));
    // What is asked for need not exist.
    const LoadedObject object(code_of(int64_t{1} << 40));
    EXPECT_EQ(run(function_of(object, "f")), (std::vector<float>{0, 0.5, 1, 1.5, 2, 2.5, 3, 3.5}));
}

TEST_F(ObjectCode, FunctionsOfOneObjectComputeInThisProcess) {
    const LoadedObject object(object_code(
        {{"first", body_of(half)}, {"second", body_of([](const Expr& x) { return x + 3.25F; })}},
        "two", host_));
    EXPECT_EQ(run(function_of(object, "first")),
              (std::vector<float>{0, 0.5, 1, 1.5, 2, 2.5, 3, 3.5}));
    EXPECT_EQ(run(function_of(object, "second")),
              (std::vector<float>{3.25, 4.25, 5.25, 6.25, 7.25, 8.25, 9.25, 10.25}));
    EXPECT_THROW((void)object.function("third"), std::runtime_error);
}

TEST_F(ObjectCode, CallsGoToWhatIsGivenElseToTheLibrariesOfTheProcess) {
    const auto calling = [](const std::string& name) {
        return body_of([&](const Expr& x) {
            const Expr one = Call::make(Halide::Float(32), name, {Shuffle::make_extract_element(x, 4)},
                                        Call::Extern);
            return x + Broadcast::make(one, 8);
        });
    };
    const LoadedObject of_process(object_code({{"f", calling("cbrtf")}}, "f", host_));
    EXPECT_EQ(run(function_of(of_process, "f")).front(), std::cbrt(4.0F));
    const std::string object = object_code({{"f", calling("laminate_nowhere")}}, "f", host_);
    const auto negative = +[](float x) { return -x; };
    const LoadedObject of_test(object, {{"laminate_nowhere", reinterpret_cast<const void*>(negative)}});
    EXPECT_EQ(run(function_of(of_test, "f")).front(), -4);
    try {
        const LoadedObject nobody(object);
        FAIL() << "expected an exception";
    } catch (const std::runtime_error& error) {
        EXPECT_STREQ(error.what(), "object code: calls laminate_nowhere, which does not exist");
    }
}

TEST_F(ObjectCode, AFunctionTakesAnotherName) {
    const std::string object = object_code({{"first", body_of(half)}}, "one", host_);
    const std::string renamed =
        with_functions_renamed(object, "first", "a_name_that_is_longer_than_the_one_before");
    const LoadedObject loaded(renamed);
    EXPECT_EQ(run(function_of(loaded, "a_name_that_is_longer_than_the_one_before"))[7], 3.5F);
    EXPECT_THROW((void)loaded.function("first"), std::runtime_error);
    EXPECT_THROW((void)with_functions_renamed(renamed, "first", "x"), std::runtime_error);
}

/// The cache's checksum finds damage before this is asked; it must still not read outside the file.
TEST_F(ObjectCode, DamagedObjectsAreRefusedOrLoadedNeverReadBeyondTheirEnd) {
    const std::string object = object_code({{"first", body_of(half)}}, "one", host_);
    Rng rng(1);
    int refused = 0;
    for (int n = 0; n < 2000; ++n) {
        std::string damaged = object;
        const bool is_cut = n % 2 == 0;
        if (is_cut) damaged.resize(rng.below(object.size()));
        for (int change = 0; change < 4 && !damaged.empty() && !is_cut; ++change)
            damaged[rng.below(damaged.size())] = static_cast<char>(rng.below(256));
        try {
            const LoadedObject loaded(damaged);
        } catch (const std::exception&) {
            ++refused;
        }
    }
    EXPECT_GE(refused, 1000);
}

}  // namespace
}  // namespace laminate
