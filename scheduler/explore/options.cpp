#include "scheduler/explore/options.h"

#include "scheduler/explore/group_search/group_search.h"

namespace laminate {

int64_t default_max_depth(Space space) {
    return space == Space::dag ? 8 : search::GroupSearch::most_layers;
}

search::Tiles search_tiles(const ExploreOptions& options) {
    if (options.space == Space::baseline) return search::Tiles::whole;
    switch (options.tiles) {
        case TileSizes::divisors:
            return search::Tiles::divisors;
        case TileSizes::powers_of_two:
            return search::Tiles::powers_of_two;
        case TileSizes::all:
            break;
    }
    return search::Tiles::all;
}

std::vector<int64_t> tile_sizes(int64_t extent, TileSizes kind) {
    ExploreOptions options;
    options.tiles = kind;
    return search::tile_candidates(extent, search_tiles(options));
}

}  // namespace laminate
