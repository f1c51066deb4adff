// Dense layers of several images, as layers of one map.
#include "nets/network/dense_images.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "nets/operators/reference_operators.h"
#include "nets/zoo/zoo.h"
#include "tests/nets/onnx/builder.h"

namespace laminate {
namespace {

using test::ModelBuilder;

std::vector<float> random_values(int64_t count) {
    Rng rng(3);
    std::vector<float> values(static_cast<size_t>(count));
    for (float& value : values) value = static_cast<float>(rng.between(-4, 4)) / 4;
    return values;
}

/// Two dense layers with their activations and sum, and a Softmax of the result.
Network of_images(int64_t images) {
    ModelBuilder m({images, 6});
    m.weights("v", {6, 5}).weights("w", {5, 5}).weights("b", {5});
    m.node("Gemm", {"x", "v", "b"}, "dense", "first");
    m.node("Elu", {"dense"}, "active");
    m.node("Gemm", {"active", "w"}, "again", "second");
    m.node("Add", {"again", "active"}, "sum");
    m.node("Softmax", {"sum"}, "y").integer("axis", 1);
    return m.parse();
}

int64_t count_of(const Network& network, LayerKind kind) {
    return std::ranges::count(network.layers, kind, &Layer::kind);
}

TEST(DenseImages, BecomePixelsOfOneMap) {
    const Network given = of_images(7);
    const Network together = with_dense_images_together(given);
    check(together);
    EXPECT_EQ(count_of(together, LayerKind::gemm), 0);
    EXPECT_EQ(count_of(together, LayerKind::conv), 2);
    EXPECT_EQ(count_of(together, LayerKind::general), 2);  // views before and behind
    EXPECT_EQ(together.layer(together.find_layer("second")).kind, LayerKind::conv);
    EXPECT_EQ(together.tensor(together.inputs[0]).name, "x");
    EXPECT_EQ(together.tensor(together.outputs[0]).name, "y");
    EXPECT_EQ(together.tensor(together.outputs[0]).dims, (std::vector<int64_t>{7, 5}));

    const std::vector<float> x = random_values(7 * 6);
    const std::vector<float> expected = run_reference_network(given, {x})[0];
    const std::vector<float> found = run_reference_network(together, {x})[0];
    ASSERT_EQ(found.size(), expected.size());
    for (size_t n = 0; n < found.size(); ++n) EXPECT_NEAR(found[n], expected[n], 1e-6) << n;
}

TEST(DenseImages, OfOneImageStay) {
    const Network given = of_images(1);
    EXPECT_EQ(network_hash(with_dense_images_together(given)), network_hash(given));
}

/// A result that a layer of rows reads, or that is an output, has its rows written once beside its map.
TEST(DenseImages, ResultsWithOtherReadersAreWritten) {
    ModelBuilder m({3, 4});
    m.weights("v", {4, 4}).weights("w", {4, 2});
    m.node("Gemm", {"x", "v"}, "first_rows", "first");
    m.node("Gemm", {"first_rows", "w"}, "y", "second");
    m.node("ReduceSum", {"first_rows"}, "sums", "sums").integer("keepdims", 1);
    m.model.mutable_graph()->add_output()->set_name("sums");
    m.model.mutable_graph()->add_output()->set_name("first_rows");
    const Network given = m.parse();
    const Network together = with_dense_images_together(given);
    check(together);
    EXPECT_EQ(count_of(together, LayerKind::general), count_of(given, LayerKind::general) + 3);
    for (size_t k = 0; k < given.outputs.size(); ++k) {
        EXPECT_EQ(together.tensor(together.outputs[k]).name, given.tensor(given.outputs[k]).name);
        EXPECT_EQ(together.tensor(together.outputs[k]).dims, given.tensor(given.outputs[k]).dims);
    }
    const std::vector<float> x = random_values(3 * 4);
    EXPECT_EQ(run_reference_network(together, {x}), run_reference_network(given, {x}));
}

/// An output may hold integers of the file.
TEST(DenseImages, OutputsKeepNameAndType) {
    Network given = of_images(3);
    const TensorId dense = given.layer(given.find_layer("second")).output;
    given.layers.resize(static_cast<size_t>(given.find_layer("second")) + 1);
    given.tensors.resize(static_cast<size_t>(dense) + 1);
    given.tensors.back().type = ElementType::int8;
    given.outputs = {dense};
    check(given);
    const Network together = with_dense_images_together(given);
    check(together);
    const Tensor& output = together.tensor(together.outputs[0]);
    EXPECT_EQ(output.name, given.tensor(dense).name);
    EXPECT_EQ(output.type, ElementType::int8);
    EXPECT_EQ(together.tensor(together.layer(together.find_layer("second")).output).type,
              ElementType::float32);
}

/// A classifier of several images computes the classes of each.
TEST(DenseImages, BehindConvolutions) {
    const Network given = zoo_network("alexnet", {.height = 67, .width = 67, .batch = 2});
    const Network together = with_dense_images_together(given);
    check(together);
    EXPECT_EQ(count_of(together, LayerKind::gemm), 0);
    EXPECT_EQ(together.tensor(together.outputs[0]).dims, given.tensor(given.outputs[0]).dims);
}

}  // namespace
}  // namespace laminate
