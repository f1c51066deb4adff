// How the arrays in a group's block of constants are made of the weights, biases and slopes of its
// layers. Code knows their order and none of their values, so code that is kept for later is kept
// with its packings, and each network packs its own values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nets/network/network.h"
#include "scheduler/schedule/problem.h"

namespace laminate {

struct Packing {
    enum class Source {
        weights,
        bias,
        slope,
        numbers,  ///< `values` themselves, which no layer holds
    };
    /// In blocks of `block` output channels, the last one filled up with zeros. Biases and slopes
    /// have the first order only.
    enum class Order {
        by_row,      ///< packed_weights() (constants.h); by output channel
        by_input,    ///< [block][input channel][row and column of the kernel][channel of the block]
        by_tap,      ///< [block][row and column of the kernel][input channel][channel of the block]
        winograd_1,  ///< winograd_weights() (kernels/winograd.h) for one row
        winograd_2,  ///< the same for two rows
        gathered,    ///< gathered_weights() (kernels/column_filters.h)
        scattered,   ///< scattered_weights(); blocks are of rows of the kernel
        winograd_4,  ///< winograd_weights() for four rows
        winograd_6,  ///< the same for six rows
    };
    int layer = 0;  ///< its place in the group
    Source source = Source::weights;
    Order order = Order::by_row;
    int64_t block = 1;
    int64_t behind = 0;  ///< zeros after the last block
    std::vector<float> values{};
    friend bool operator==(const Packing&, const Packing&) = default;
};

/// The elements of the array. None for the slopes of a layer that has none.
[[nodiscard]] std::vector<float> packed(const Packing& packing, const Layer& layer,
                                        const LayerProblem& problem);
/// The block of constants of a group, its layers in the order of `problems`.
[[nodiscard]] std::vector<float> packed_block(const std::vector<Packing>& packings,
                                              const Network& network,
                                              const std::vector<LayerProblem>& problems);

/// One line without its end, and what such a line says. Throws InputError "WHERE: ...".
[[nodiscard]] std::string to_text(const Packing& packing);
[[nodiscard]] Packing parse_packing(const std::string& line, const std::string& where);

}  // namespace laminate
