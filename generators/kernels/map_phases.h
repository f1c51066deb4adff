// Transposed convolutions whose kernel is their stride S, without padding:
//
//     Y[z][q S + f][r S + g] = h(b[z] + sum over i of W[z][i][f][g] * X[i][q][r])
//
// A vector is a run of positions r of one row of the input; its S phases along columns interleave
// to S vectors of a row of the output. A panel holds the inputs of some tiles side by side for all
// output channels, because rows of many channels lie a power of two apart in X and meet in few sets
// of a cache.
#pragma once

#include "generators/group_code.h"
#include "generators/ir/layer_output.h"
#include "scheduler/schedule/kernels/layout/map_phases.h"

namespace laminate {

[[nodiscard]] GroupCode map_phases_code(LayerOutput output, const MapPhasesLayout& at);

}  // namespace laminate
