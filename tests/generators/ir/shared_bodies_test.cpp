#include "generators/ir/shared_bodies.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "generators/compile/executable.h"
#include "generators/ir/arrays.h"
#include "generators/lowering/group_lowering.h"

namespace laminate {
namespace {

using namespace Halide::Internal;
using Halide::Expr;

Expr number_called(const std::string& name) { return Variable::make(Halide::Int(32), name); }

/// For a row y below `rows` and a column x below `columns`: s[y columns + x] = c[y columns + x] + x,
/// with c at `offset` of the constants.
struct Copies {
    int rows = 2;
    int columns = 16;
    int64_t offset = 0;
    int lanes_apart = 1;
    ir::Alignment alignment = ir::Alignment::element;
    std::string name = "copy";

    [[nodiscard]] Stmt body() const {
        const Expr y = number_called(name + ".y"), x = number_called(name + ".x");
        const Expr at = ir::lanes_from(y * columns + x, 4, lanes_apart);
        const Expr value =
            ir::load(name + ".c", at, alignment) + ir::broadcast(Halide::cast<float>(x), 4);
        const Stmt inner = loop(name + ".x", columns, ir::store("s", value, at, alignment));
        return ir::with_array("s", argument::scratch, 0,
                              ir::with_array(name + ".c", argument::constants, offset,
                                             loop(name + ".y", rows, inner)));
    }

private:
    static Stmt loop(const std::string& of, int extent, const Stmt& inner) {
        return For::make(of, 0, extent, ForType::Serial, Halide::Partition::Never,
                         Halide::DeviceAPI::None, inner);
    }
};

std::vector<float> run_of(const Stmt& body, const std::vector<float>& constants) {
    std::vector<float> out(1024, -1.0F);
    EXPECT_EQ(JitGroup(body).function()(nullptr, nullptr, constants.data(), out.data(), 0, 1), 0);
    return out;
}

TEST(SharedBodies, GroupsWithOtherNumbersRunTheSameCode) {
    const std::vector<Copies> all{{.rows = 2, .columns = 16, .offset = 32, .name = "first"},
                                  {.rows = 3, .columns = 20, .offset = 64, .name = "second"},
                                  {.rows = 3, .columns = 12, .offset = 32, .name = "third"}};
    std::vector<Stmt> bodies;
    for (const Copies& copies : all) bodies.push_back(copies.body());
    const std::vector<SharedBody> shared = shared_bodies(bodies);
    ASSERT_EQ(shared.size(), 1U);
    EXPECT_EQ(shared[0].groups, (std::vector<size_t>{0, 1, 2}));
    std::vector<float> constants(512);
    for (size_t n = 0; n < constants.size(); ++n) constants[n] = static_cast<float>(n * n);
    for (size_t g = 0; g < bodies.size(); ++g) {
        const std::vector<float>& numbers = shared[0].numbers[g];
        // Rows, columns, and the place of the constants.
        EXPECT_EQ(numbers.size(), 16U);
        std::vector<float> with_numbers = numbers;
        with_numbers.insert(with_numbers.end(), constants.begin(), constants.end());
        EXPECT_EQ(run_of(shared[0].body, with_numbers), run_of(bodies[g], constants)) << g;
    }
}

TEST(SharedBodies, AlignmentsAreThoseThatHoldForAllGroups) {
    const auto reading = [](int from, const ModulusRemainder& alignment) {
        const Expr value = Load::make(Halide::Float(32, 4), argument::constants, ir::lanes_from(from, 4),
                                      Halide::Buffer<>(), Halide::Parameter(), const_true(4), alignment);
        return Store::make(argument::scratch, value, ir::lanes_from(from, 4), Halide::Parameter(),
                           const_true(4), alignment);
    };
    struct Alignments final : IRVisitor {
        std::vector<ModulusRemainder> all;
        using IRVisitor::visit;
        void visit(const Load* load) override {
            if (load->type.lanes() == 4) all.push_back(load->alignment);
            IRVisitor::visit(load);
        }
        void visit(const Store* store) override {
            all.push_back(store->alignment);
            IRVisitor::visit(store);
        }
    };
    const auto shared_alignment = [&](const ModulusRemainder& of_one, const ModulusRemainder& of_other) {
        const std::vector<SharedBody> shared = shared_bodies({reading(16, of_one), reading(48, of_other)});
        EXPECT_EQ(shared.size(), 1U);
        Alignments alignments;
        shared.at(0).body.accept(&alignments);
        EXPECT_EQ(alignments.all.size(), 2U);
        EXPECT_EQ(alignments.all.at(0), alignments.all.at(1));
        return alignments.all.at(0);
    };
    EXPECT_EQ(shared_alignment({16, 0}, {16, 0}), ModulusRemainder(16, 0));
    EXPECT_EQ(shared_alignment({16, 0}, {24, 0}), ModulusRemainder(8, 0));
    EXPECT_EQ(shared_alignment({16, 0}, {16, 3}), ModulusRemainder(1, 0));
}

TEST(SharedBodies, OnlyNumbersThatArgumentsCanGiveMayDiffer) {
    const Stmt one = Copies{}.body();
    EXPECT_EQ(shared_bodies({one, Copies{.rows = 3}.body()}).size(), 1U);
    EXPECT_TRUE(shared_bodies({one, Copies{.lanes_apart = 2}.body()}).empty());
    EXPECT_TRUE(shared_bodies({one, Copies{.alignment = ir::Alignment::vector}.body()}).empty());
    EXPECT_TRUE(shared_bodies({one, LetStmt::make("q", number_called("strip") / 3, one)}).empty());
    const auto divided = [&](int by) {
        return LetStmt::make("q", number_called(argument::strip_begin) / by, one);
    };
    EXPECT_EQ(shared_bodies({divided(3), divided(3)}).size(), 1U);
    EXPECT_TRUE(shared_bodies({divided(3), divided(5)}).empty());
    // No float holds this number and the other one exactly.
    const auto far = [&](int from) {
        return LetStmt::make("q", number_called(argument::strip_begin) + from, one);
    };
    EXPECT_EQ(shared_bodies({far(1), far(1 << 24)}).size(), 1U);
    EXPECT_TRUE(shared_bodies({far(1), far((1 << 24) + 1)}).empty());
}

}  // namespace
}  // namespace laminate
