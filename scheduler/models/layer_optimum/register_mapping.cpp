#include "scheduler/models/layer_optimum/register_mapping.h"

#include <algorithm>
#include <set>

#include "base/units.h"

namespace laminate {

namespace {

/// Appends to `batches` every spread of `lanes` over the loops from `first` on that `taken` leaves.
void spread(int64_t lanes, size_t first, LoopExtents& batch, std::vector<LoopExtents>& batches,
            const LoopExtents& taken) {
    if (first == convolution_loops) {
        if (lanes == 1) batches.push_back(batch);
        return;
    }
    for (int64_t p = 1; p <= lanes; ++p) {
        if (lanes % p != 0 || (p > 1 && taken[first] > 1)) continue;
        batch[first] = p;
        spread(lanes / p, first + 1, batch, batches, taken);
        batch[first] = 1;
    }
}

/// Orders of the loops with x beside y and m beside n. Where outputs stay and channels come one by one ("cmnfxyk") first: it serves most.
std::vector<std::string> pe_orders() {
    std::vector<std::string> parts{"c", "f", "k", "mn", "xy"};
    std::vector<std::string> orders{"cmnfxyk"};
    do {
        std::string order;
        for (const std::string& part : parts) order += part;
        if (order != orders.front()) orders.push_back(order);
    } while (std::next_permutation(parts.begin(), parts.end()));
    return orders;
}

}  // namespace

std::vector<LoopExtents> lane_batches(const std::vector<int64_t>& lanes) {
    std::vector<LoopExtents> batches{{1, 1, 1, 1, 1, 1, 1}};
    for (const int64_t axis : lanes) {
        std::set<LoopExtents> next;
        for (const LoopExtents& taken : batches) {
            std::vector<LoopExtents> added;
            LoopExtents batch{1, 1, 1, 1, 1, 1, 1};
            spread(axis, 0, batch, added, taken);
            for (LoopExtents& more : added) {
                for (size_t l = 0; l < convolution_loops; ++l) more[l] *= taken[l];
                next.insert(more);
            }
        }
        batches.assign(next.begin(), next.end());
    }
    return batches;
}

RegisterMapper::RegisterMapper(const ConvolutionProblem& problem, const RegisterArray& registers)
    : problem_(problem), registers_(registers), batches_(lane_batches(registers.lanes)), orders_(pe_orders()) {
    for (size_t t = 0; t < 3; ++t) access_[t] = tensor_access(problem, all_operands[t]);
}

std::optional<RegisterMapping> RegisterMapper::without_extra_accesses(const LoopExtents& blocks) const {
    std::set<LoopExtents> seen;
    std::vector<std::pair<LoopExtents, LoopExtents>> shares;  // of a PE, and the batches that give it
    for (const LoopExtents& batch : batches_) {
        LoopExtents share;
        for (size_t l = 0; l < convolution_loops; ++l) share[l] = ceil_div(blocks[l], batch[l]);
        if (seen.insert(share).second) shares.emplace_back(share, batch);
    }
    for (const std::string& order : orders_) {
        for (const auto& [share, batch] : shares) {
            RegisterMapping mapping{batch, order, {}};
            int64_t words = 0;
            for (size_t t = 0; t < 3 && words <= registers_.words; ++t) {
                LoopExtents inside = share;
                for (const char name : order) {
                    const size_t l = std::string("fkcxymn").find(name);
                    if (access_[t].role[l] != LoopRole::related && share[l] > 1) break;
                    if (access_[t].role[l] == LoopRole::related) inside[l] = 1;
                }
                mapping.words[t] = touched_words(problem_, all_operands[t], inside);
                words += mapping.words[t];
            }
            if (words <= registers_.words) return mapping;
        }
    }
    return {};
}

}  // namespace laminate
