#include "papers/depth_first/hierarchy_walk.h"

#include <algorithm>
#include <set>

namespace laminate {

namespace {

using depth_first::Dim;
using depth_first::Role;

/// Whether the layer looks up the operand by the loop's index.
bool indexes(Role role, Dim dim) {
    switch (role) {
        case Role::output:
            return dim == Dim::g || dim == Dim::k || dim == Dim::oy || dim == Dim::ox;
        case Role::weight:
            return dim != Dim::oy && dim != Dim::ox;
        case Role::input:
        case Role::second_input:
            return dim != Dim::k;
    }
    return false;
}

}  // namespace

HierarchyWalk::HierarchyWalk(const depth_first::LayerShape& layer,
                             const depth_first::LoopOrder& order)
    : layer_(layer), order_(order) {
    depth_first::Sizes step;
    for (const depth_first::Loop& loop : order) {
        trips_.push_back(static_cast<int64_t>(loop.size));
        steps_.push_back(step[loop.dim]);
        step[loop.dim] *= trips_.back();
    }
}

HierarchyWalk::Boundary HierarchyWalk::boundary(Role role, std::optional<size_t> loops) const {
    const size_t below = loops.value_or(0);
    Boundary result;
    std::vector<int64_t> at(order_.size(), 0), held;
    std::set<std::vector<int64_t>> known;
    bool first = true;
    do {
        if (std::any_of(at.begin(), at.begin() + static_cast<ptrdiff_t>(below),
                        [](int64_t i) { return i != 0; }))
            continue;
        std::vector<int64_t> tile;  // the indices of the loops above, which name the tile
        for (size_t n = below; n < order_.size(); ++n) {
            if (indexes(role, order_[n].dim)) tile.push_back(at[n]);
        }
        if (!first && loops && tile == held) continue;
        first = false;
        held = tile;
        result.elements += tile_elements(role, at, below);
        result.comes_back = !known.insert(std::move(tile)).second || result.comes_back;
    } while (next(at));
    return result;
}

bool HierarchyWalk::next(std::vector<int64_t>& at) const {
    for (size_t n = 0; n < at.size(); ++n) {
        if (++at[n] < trips_[n]) return true;
        at[n] = 0;
    }
    return false;
}

/// The number of different elements that the loops below the boundary touch.
int64_t HierarchyWalk::tile_elements(Role role, std::vector<int64_t> at, size_t loops) const {
    std::set<std::array<int64_t, 5>> touched;
    while (true) {
        depth_first::Sizes i;
        for (const Dim dim : depth_first::all_dims) i[dim] = 0;
        for (size_t n = 0; n < order_.size(); ++n) i[order_[n].dim] += at[n] * steps_[n];
        switch (role) {
            case Role::output:
                touched.insert({i[Dim::g], i[Dim::k], i[Dim::oy], i[Dim::ox], 0});
                break;
            case Role::weight:
                touched.insert({i[Dim::g], i[Dim::k], i[Dim::c], i[Dim::fy], i[Dim::fx]});
                break;
            case Role::input:
            case Role::second_input:
                touched.insert({i[Dim::g], i[Dim::c],
                                i[Dim::oy] * layer_.stride.y + i[Dim::fy] * layer_.dilation.y,
                                i[Dim::ox] * layer_.stride.x + i[Dim::fx] * layer_.dilation.x, 0});
                break;
        }
        size_t n = 0;
        while (n < loops && ++at[n] == trips_[n]) at[n++] = 0;
        if (n == loops) return static_cast<int64_t>(touched.size());
    }
}

}  // namespace laminate
