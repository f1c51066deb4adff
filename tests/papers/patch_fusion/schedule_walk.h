// Runs a patch-fused schedule of convolutions, pools, additions and concatenations column by column
// and looks at what it holds and computes. Shares the graph with the model, and no formula.
#pragma once

#include "papers/patch_fusion/patch_front.h"

namespace laminate::patch_fusion {

struct Walked {
    int64_t bytes = 0;
    int64_t macs = 0;
};

/// The most bytes held at once while the block runs, and the MACs that it does.
[[nodiscard]] Walked walk(const PatchGraph& graph, const PatchBlock& block);

}  // namespace laminate::patch_fusion
