// What LLVM may fuse in the code of a normalisation.
#include "generators/ir/normalisation.h"

#include <Halide.h>
#include <gtest/gtest.h>

#include "generators/kernels/group_kernels.h"
#include "scheduler/explore/planner/default_kernels.h"
#include "scheduler/explore/planner/line_buffers.h"
#include "tests/generators/kernels/code_by_kernel.h"
#include "tests/support/chain.h"

namespace laminate {
namespace {

/// Products of vectors, strict ones apart, which are never part of a fused multiply-addition.
class Products : public Halide::Internal::IRVisitor {
public:
    explicit Products(const Halide::Internal::Stmt& body) { body.accept(this); }
    int fusible = 0, strict = 0;

private:
    using Halide::Internal::IRVisitor::visit;
    void visit(const Halide::Internal::Mul* op) override {
        if (op->type.is_float()) ++fusible;
        IRVisitor::visit(op);
    }
    void visit(const Halide::Internal::Call* op) override {
        if (op->is_intrinsic(Halide::Internal::Call::strict_mul)) ++strict;
        IRVisitor::visit(op);
    }
};

/// An exponential has ten products, one of them strict; where a sum takes it, and where a result does.
TEST(Normalisation, ExponentialsOfASoftmaxAreNotPartOfStrictSums) {
    Network network = empty_network(100, 1, 16);
    append(network, "softmax", {.kind = LayerKind::softmax, .inputs = {0}});
    const VectorUnit unit = vector_unit(Halide::get_host_target());
    const Products products(default_code(network, line_buffer_group(network, {0}), unit).body);
    EXPECT_GE(products.fusible, 18);
    EXPECT_LT(3 * products.strict, products.fusible);
}

}  // namespace
}  // namespace laminate
