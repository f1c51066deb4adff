// The mapper of the artifact (LOMA): orders of a few merged prime factors, all of them tried, each
// with the allocation that it chooses for it.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "papers/depth_first/single_layer.h"

namespace laminate::depth_first {

/// Orders of a multiset of loops, each once: Williams' prefix shifts (SODA 2009), beginning with
/// the non-increasing order by (name of the dimension, trips). The order of visit decides between
/// equal energies.
class LoopOrders {
public:
    explicit LoopOrders(LoopOrder loops);
    [[nodiscard]] const LoopOrder& current() const { return current_; }
    /// False when all were visited.
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

/// Prime factors of the temporal loops, merged until at most `limit` remain: of the dimension with
/// most factors (first in the order G K C OY OX FY FX) the two smallest. No limit: 0.
[[nodiscard]] LoopOrder limited_factors(const MappedLayer& layer, size_t limit);

/// The best order among all orders of at most `limit` factors, the first visited on equality. None:
/// no order fits.
[[nodiscard]] std::optional<LayerMapping> best_limited_mapping(const MappedLayer& layer,
                                                               size_t limit,
                                                               const MappingGoal& goal = {});

}  // namespace laminate::depth_first
