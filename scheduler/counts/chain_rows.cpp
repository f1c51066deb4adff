#include "scheduler/counts/chain_rows.h"

#include <algorithm>
#include <map>

namespace laminate {

namespace {

/// Rows of a nest's output, or of the group's input, with how often they are computed.
const std::map<Range, int64_t>& row_ranges(const BoxRanges& boxes) {
    return std::find_if(boxes.begin(), boxes.end(),
                        [](const AxisRanges& axis) { return axis.dim == Dim::y; })
        ->times;
}

}  // namespace

void for_each_chain_row(const ColumnsLayout& layout, const GroupSchedule& group,
                        const std::vector<LayerProblem>& problems, const AskedBoxes& boxes,
                        const std::function<void(const ChainRow&)>& visit) {
    const int64_t columns = problems.back()[Dim::x];
    const int64_t step = group.nests.back().strip[1] == 0 ? columns : group.nests.back().strip[1];
    // Strips of columns by the tiles that each tensor has in them: most are alike.
    std::map<std::vector<int64_t>, int64_t> strips;
    for (int64_t begin = 0; begin < columns; begin += step) {
        std::vector<int64_t> counts;
        for (const ColumnsLayout::Tiles& tiles :
             layout.tiles_for(begin, std::min(begin + step, columns)))
            counts.push_back(tiles.count());
        ++strips[counts];
    }
    for (const auto& [tiles, alike] : strips) {
        for (size_t k = 0; k < problems.size(); ++k) {
            const BoxRanges& producer = k == 0 ? boxes.inputs.front() : boxes.nests[k - 1];
            for (const bool is_incoming : {true, false}) {
                for (const auto& [range, times] :
                     row_ranges(is_incoming ? producer : boxes.nests[k])) {
                    for (int64_t y = range.begin; y < range.end; ++y)
                        visit({k, is_incoming, y, times * alike, tiles[k + 1]});
                }
            }
        }
    }
}

}  // namespace laminate
