// The operators of nets/network/general_operator.h in C++. The reference operators call them
// for layers of LayerKind::general.
#pragma once

#include <cstdint>
#include <vector>

#include "nets/network/network.h"

namespace laminate {

/// A unary function of one value.
[[nodiscard]] float apply_unary(GeneralFunction function, float x, float alpha, float beta);

/// As run_reference_layer(), for a layer of LayerKind::general whose dims general_output_dims()
/// allows. `output` may be the input's array for reshape (which then copies nothing), and for unary
/// and binary operators if the shapes are equal. Reductions, normalisations and resamplings sum in
/// 64-bit floats.
void run_general_layer(const Layer& layer, const std::vector<std::vector<int64_t>>& input_dims,
                       const std::vector<const float*>& inputs,
                       const std::vector<int64_t>& output_dims, float* output, int threads);

}  // namespace laminate
