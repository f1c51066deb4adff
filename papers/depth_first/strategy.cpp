#include "papers/depth_first/strategy.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <stdexcept>

#include "base/error.h"

namespace laminate::depth_first {

namespace {

template <typename Value, size_t count>
Value parse_named(const std::array<Value, count>& values, const std::string& text,
                  const std::string& what) {
    std::string names;
    for (const Value value : values) {
        if (text == to_string(value)) return value;
        names += (names.empty() ? "" : ", ") + std::string(to_string(value));
    }
    throw InputError(what + ": found \"" + text + "\", expected one of " + names);
}

}  // namespace

const char* to_string(Overlap overlap) {
    switch (overlap) {
        case Overlap::recompute:
            return "recompute";
        case Overlap::h_cached:
            return "h-cached";
        case Overlap::fully_cached:
            return "fully-cached";
        case Overlap::v_cached:
            return "v-cached";
    }
    throw std::logic_error("to_string(Overlap)");
}

Overlap parse_overlap(const std::string& text) {
    return parse_named(
        std::array{Overlap::recompute, Overlap::h_cached, Overlap::fully_cached, Overlap::v_cached},
        text, "overlap");
}

const char* to_string(Stacks stacks) {
    switch (stacks) {
        case Stacks::weights_fit:
            return "weights-fit";
        case Stacks::single_layer:
            return "single-layer";
        case Stacks::all:
            return "all";
    }
    throw std::logic_error("to_string(Stacks)");
}

Stacks parse_stacks(const std::string& text) {
    return parse_named(std::array{Stacks::weights_fit, Stacks::single_layer, Stacks::all}, text,
                       "stacks");
}

Overlap Strategy::overlap_of(const std::string& map) const {
    const auto found = of_maps.find(map);
    return found != of_maps.end() ? found->second : overlap;
}

bool goes_by_columns(const Workload& workload, const std::vector<size_t>& layers,
                     const Strategy& strategy) {
    std::set<size_t> maps(layers.begin(), layers.end());
    for (const size_t layer : layers)
        maps.insert(workload.layers[layer].sources.begin(), workload.layers[layer].sources.end());
    maps.erase(layers.back());
    std::optional<size_t> along_rows, along_columns;
    for (const size_t map : maps) {
        if (strategy.overlap_of(workload.layers[map].name) == Overlap::h_cached) along_rows = map;
        if (strategy.overlap_of(workload.layers[map].name) == Overlap::v_cached)
            along_columns = map;
    }
    if (along_rows && along_columns) {
        throw InputError(
            "overlap: found h-cached for " + workload.layers[*along_rows].name +
            " and v-cached for " + workload.layers[*along_columns].name +
            " in one stack, expected one of the two: its tiles go row by row or column by column");
    }
    return along_columns.has_value();
}

}  // namespace laminate::depth_first
