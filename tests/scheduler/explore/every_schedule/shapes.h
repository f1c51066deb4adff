// Orders and levels of one layer's nest, as far as the counts can tell them apart.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <map>
#include <vector>

#include "scheduler/schedule/problem.h"
#include "tests/scheduler/explore/every_schedule/lifetimes.h"
#include "tests/scheduler/explore/space_of_a_chain.h"

namespace laminate::every {

/// Where the loop of an axis lies, relative to the levels of the tensor that the nest reads. "Kept"
/// places are those of a tensor that lives as long as the nest's output.
enum class Place : uint8_t { above_store, between, below_compute, kept_between, kept_below };

/// What the counts see of a layer's order and levels. Equal shapes have equal counts.
struct Shape {
    std::array<Place, axis_count> place{};
    std::vector<Axis> walk;  ///< own loops between the levels of the input
    bool is_kept = false;    ///< the input lives as long as the output
    int weights = 0;         ///< 0 at a level of the nest, 5 as long as the output, 6 resident
    std::array<bool, axis_count> inside_weights{};  ///< at a level of the nest: the loops inside it
    std::vector<Axis> weights_walk;
    bool weights_below = false;  ///< inside the compute level of the input
    bool output_below = false;
    std::array<bool, axis_count> inside_output{};  ///< last layer: the loops inside ii
    friend auto operator<=>(const Shape&, const Shape&) = default;
};

[[nodiscard]] Shape shape_of(const std::vector<LayerProblem>& problems, size_t k,
                             const ChainSchedule::Layer& layer);

/// Every shape of layer k, each with one order and levels of that shape. `only_resident`: in a
/// fused group, only those with weights at the root.
[[nodiscard]] std::map<Shape, ChainSchedule::Layer> shapes_of(
    const std::vector<LayerProblem>& problems, size_t k, bool only_resident);

}  // namespace laminate::every
