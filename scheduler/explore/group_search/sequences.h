// ConvFusion's sequences: runs of layers that feed one another and may form one group.
#pragma once

#include <vector>

#include "nets/network/network.h"

namespace laminate::search {

/// Whether a layer may be in a group with others in ConvFusion's spaces: it is neither grouped nor
/// fully connected, nor a transposed convolution whose kernel equals its stride.
[[nodiscard]] bool may_fuse(const Network& network, LayerId layer);

/// The schedulable chains of a network, cut at layers that may not be in a group with others. Every
/// layer that must be scheduled is in one sequence.
[[nodiscard]] std::vector<std::vector<LayerId>> sequences_of(const Network& network);

}  // namespace laminate::search
