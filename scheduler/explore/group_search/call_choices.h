// The choices that CallBound (call_bound.h) takes the least of: where each layer's weights live and
// how many channels each call makes. Section numbers and symbols are those of call_bound.h.
#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/schedule/problem.h"

namespace laminate::search {

/// Sizes of a chain of layers 1 .. n, by the number of a layer; index 0 stands for its input X.
struct ChainSizes {
    explicit ChainSizes(const std::vector<LayerProblem>& problems);

    size_t layers = 0;             ///< n
    std::vector<double> pixels;    ///< S_0 .. S_n
    std::vector<double> weights;   ///< V_k
    std::vector<double> channels;  ///< D_k; D_0 are the input channels of layer 1
    double all_weights = 0;        ///< sum of V_k
    double output = 0;             ///< elements of Y
    [[nodiscard]] double input() const { return channels[0] * pixels[0]; }  ///< needed ones of X
};

/// Which halos count: calls of the last layer may take part of its inputs.
enum class Halos : uint8_t { none, of_parts, of_whole };

/// A choice for all layers.
struct CallChoice {
    double held = 0;   ///< sum of R_k
    double roots = 0;  ///< sum of the square roots of the a_k
    double again = 1;  ///< rho_0
    Halos halos = Halos::none;
    double output = 0;      ///< accesses of Y
    double per_memory = 0;  ///< V_n S_n T_z of 6
    double needs = 0;       ///< memory
};

/// All choices that no other one beats in every respect, by rising `held`.
[[nodiscard]] std::vector<CallChoice> call_choices(const ChainSizes& sizes);

/// The smallest tile of the last layer's input channels in the class of tiles that holds the whole.
[[nodiscard]] double least_of_whole(const LayerProblem& last);

/// MACs of what is needed for the whole output, each once.
[[nodiscard]] double least_macs(const std::vector<LayerProblem>& problems);

}  // namespace laminate::search
