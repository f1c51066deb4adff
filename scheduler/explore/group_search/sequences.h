// ConvFusion's sequences: runs of layers that feed one another and may be executed as one group.
#pragma once

#include <vector>

#include "nets/network/network.h"

namespace laminate::search {

/// May be in a group with others in ConvFusion's spaces: neither grouped nor fully connected, nor a
/// transposed convolution whose kernel is its stride.
[[nodiscard]] bool may_fuse(const Network& network, LayerId layer);

/// The schedulable chains of a network, ended where a layer may not be in a group with others.
/// Every layer that must be scheduled is in one.
[[nodiscard]] std::vector<std::vector<LayerId>> sequences_of(const Network& network);

}  // namespace laminate::search
