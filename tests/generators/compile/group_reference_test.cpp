// Rows computed alone are rows of the whole result, for every layer kind: strides, dilations,
// paddings, transposed convolutions, pooling, forks and joins.
#include "generators/compile/group_reference.h"

#include <gtest/gtest.h>

#include "nets/operators/reference_operators.h"
#include "nets/random/random_network.h"
#include "scheduler/explore/random_schedule.h"

namespace laminate {
namespace {

/// The whole group by its definition: layer after layer.
std::vector<float> layer_by_layer(const Network& network, const std::vector<LayerProblem>& problems,
                                  const std::vector<std::vector<float>>& inputs) {
    std::vector<std::vector<float>> values(network.tensors.size());
    const auto dims_of = [&](TensorId id) {
        std::vector<int64_t> dims = network.tensor(id).dims;
        dims.front() = 1;
        return dims;
    };
    size_t next = 0;
    for (const GroupTensor& tensor : group_tensors(problems)) {
        if (tensor.is_external()) values[static_cast<size_t>(tensor.tensor)] = inputs.at(next++);
    }
    for (const LayerProblem& p : problems) {
        std::vector<std::vector<int64_t>> dims;
        std::vector<const float*> arrays;
        for (const LayerInput& input : p.inputs) {
            dims.push_back(dims_of(input.tensor));
            arrays.push_back(values[static_cast<size_t>(input.tensor)].data());
        }
        std::vector<float>& output = values[static_cast<size_t>(p.output)];
        output.resize(static_cast<size_t>(element_count(dims_of(p.output))));
        run_reference_layer(network.layer(p.layer), dims, arrays, dims_of(p.output), output.data());
    }
    return values[static_cast<size_t>(problems.back().output)];
}

TEST(ReferenceRows, AreTheRowsOfTheWholeResult) {
    int bands = 0;
    int several_inputs = 0;
    for (uint64_t seed = 1; seed <= 120; ++seed) {
        const Network network = seed % 2 == 0 ? random_network(seed) : random_chain(seed);
        const Schedule schedule = random_schedule(network, seed);
        for (const GroupSchedule& group : schedule.groups()) {
            const std::vector<LayerProblem> problems = group_problems(network, group);
            const std::vector<std::vector<float>> inputs =
                random_group_inputs(network, problems, seed);
            several_inputs += inputs.size() > 1 ? 1 : 0;
            const std::vector<float> whole = layer_by_layer(network, problems, inputs);
            const LayerProblem& sink = problems.back();
            const int64_t height = sink[Dim::y], width = sink[Dim::x];
            EXPECT_EQ(reference_output(network, problems, inputs), whole)
                << "seed " << seed << ": " << to_text(group);
            for (int64_t first = 0; first < height; ++first) {
                for (const int64_t last : {first + 1, std::min(first + 3, height), height}) {
                    const std::vector<float> rows =
                        reference_rows(network, problems, inputs, first, last);
                    ASSERT_EQ(std::ssize(rows), sink[Dim::z] * (last - first) * width)
                        << "seed " << seed << ": " << to_text(group);
                    for (int64_t n = 0; n < std::ssize(rows); ++n) {
                        const int64_t c = n / width / (last - first),
                                      y = first + n / width % (last - first);
                        ASSERT_EQ(rows[static_cast<size_t>(n)],
                                  whole[static_cast<size_t>((c * height + y) * width + n % width)])
                            << "seed " << seed << ", rows " << first << " to " << last
                            << ", element " << n << ": " << to_text(group);
                    }
                    ++bands;
                }
            }
        }
    }
    EXPECT_GT(bands, 500);
    EXPECT_GT(several_inputs, 10);
}

}  // namespace
}  // namespace laminate
