#include "scheduler/explore/group_search/sequences.h"

#include "scheduler/explore/group_search/group_search.h"
#include "scheduler/schedule/problem.h"

namespace laminate::search {

bool may_fuse(const Network& network, LayerId layer) {
    return network.layer(layer).kind != LayerKind::gemm && may_fuse(layer_problem(network, layer));
}

std::vector<std::vector<LayerId>> sequences_of(const Network& network) {
    std::vector<std::vector<LayerId>> sequences;
    for (const std::vector<LayerId>& chain : schedulable_chains(network)) {
        bool goes_on = false;
        for (const LayerId layer : chain) {
            const bool fuses = may_fuse(network, layer);
            if (!goes_on || !fuses) sequences.emplace_back();
            sequences.back().push_back(layer);
            goes_on = fuses;
        }
    }
    return sequences;
}

}  // namespace laminate::search
