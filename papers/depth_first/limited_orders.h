// The artifact's mapper (LOMA). It merges prime factors until few loops remain, tries all their
// orders and lets MappedLayer::allocate() choose the allocation of each.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "papers/depth_first/single_layer.h"

namespace laminate::depth_first {

/// All orders of a multiset of loops, each once, by Williams' prefix shifts (SODA 2009). The first
/// is the non-increasing order by (name of the dimension, trips). Which of two mappings with equal
/// energy wins depends on this order of visit.
class LoopOrders {
public:
    explicit LoopOrders(LoopOrder loops);
    [[nodiscard]] const LoopOrder& current() const { return current_; }
    /// False after the last one.
    [[nodiscard]] bool next();

private:
    struct Node {
        Loop loop;
        size_t next;
    };
    void read();
    std::vector<Node> nodes_;
    size_t head_ = 0, i_ = 0, j_ = 0;
    LoopOrder current_;
};

/// The prime factors of the temporal loops, merged until at most `limit` remain; 0 means no limit.
/// Each step merges the two smallest factors of the dimension that has most (ties: the first of G K
/// C OY OX FY FX).
[[nodiscard]] LoopOrder limited_factors(const MappedLayer& layer, size_t limit);

/// The best mapping among all orders of at most `limit` factors; the first visited wins ties.
/// nullopt if no order fits.
[[nodiscard]] std::optional<LayerMapping> best_limited_mapping(const MappedLayer& layer,
                                                               size_t limit,
                                                               const MappingGoal& goal = {});

}  // namespace laminate::depth_first
