#include "nets/network/picture_views.h"

#include <algorithm>

namespace laminate {

namespace {

constexpr size_t n_axis = 0, c_axis = 1, h_axis = 2, w_axis = 3, map_rank = 4;

}  // namespace

GeneralOperator part_of(const std::vector<int64_t>& map, const std::array<int64_t, 3>& first,
                        const std::array<int64_t, 3>& extent) {
    GeneralOperator op{.kind = GeneralKind::view, .dims = map, .steps = row_major_steps(map)};
    for (size_t d = 0; d < 3; ++d) {
        op.dims[c_axis + d] = extent[d];
        op.first += first[d] * op.steps[c_axis + d];
    }
    for (size_t d = 0; d < map_rank; ++d) {
        if (op.dims[d] == 1) op.steps[d] = 0;
    }
    return op;
}

std::optional<std::array<int64_t, 3>> first_of_part(const GeneralOperator& op,
                                                    const std::vector<int64_t>& map) {
    if (op.kind != GeneralKind::view || op.dims.size() != map_rank || map.size() != map_rank ||
        op.dims[n_axis] != map[n_axis])
        return {};
    const std::array<int64_t, 3> first{op.first / (map[h_axis] * map[w_axis]),
                                       op.first / map[w_axis] % map[h_axis],
                                       op.first % map[w_axis]};
    for (size_t d = 0; d < 3; ++d) {
        if (first[d] + op.dims[c_axis + d] > map[c_axis + d]) return {};
    }
    const GeneralOperator expected =
        part_of(map, first, {op.dims[c_axis], op.dims[h_axis], op.dims[w_axis]});
    for (size_t d = 0; d < map_rank; ++d) {
        if (op.dims[d] > 1 && op.steps[d] != expected.steps[d]) return {};
    }
    return first;
}

GeneralOperator repeated(const std::vector<int64_t>& map, const std::array<int64_t, 2>& times) {
    GeneralOperator op{.kind = GeneralKind::resample, .tap_counts = {1, 1, 1, 1}};
    for (size_t d = 0; d < map_rank; ++d) {
        const int64_t repeats = d == h_axis ? times[0] : d == w_axis ? times[1] : 1;
        op.dims.push_back(map[d] * repeats);
        for (int64_t at = 0; at < op.dims[d]; ++at) op.sources.push_back(at / repeats);
    }
    return op;
}

std::optional<std::array<int64_t, 2>> repetitions_of(const GeneralOperator& op) {
    if (op.kind != GeneralKind::resample || op.dims.size() != map_rank || !op.factors.empty())
        return {};
    const auto begin = op.sources.begin() + op.dims[n_axis] + op.dims[c_axis];
    const auto repeats = [](auto from, int64_t extent) {
        return static_cast<int64_t>(
            std::find_if(from, from + extent, [](int64_t source) { return source != 0; }) - from);
    };
    const std::array<int64_t, 2> times{repeats(begin, op.dims[h_axis]),
                                       repeats(begin + op.dims[h_axis], op.dims[w_axis])};
    if (times[0] < 1 || times[1] < 1 || op.dims[h_axis] % times[0] != 0 ||
        op.dims[w_axis] % times[1] != 0)
        return {};
    const GeneralOperator expected = repeated({op.dims[n_axis], op.dims[c_axis],
                                               op.dims[h_axis] / times[0],
                                               op.dims[w_axis] / times[1]},
                                              times);
    if (op.tap_counts != expected.tap_counts || op.sources != expected.sources) return {};
    return times;
}

}  // namespace laminate
