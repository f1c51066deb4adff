#include "scheduler/explore/timed/strips_cache.h"

#include <algorithm>

#include "scheduler/explore/timed/timed_front.h"

namespace laminate {

Bytes best_strips_cache(const TensorSizes& sizes, const AnySizeOptions& options,
                        const CpuSpeed& speed) {
    constexpr int64_t large_rows = 2160, large_columns = 3840;
    constexpr double clearly_less = 0.97;
    SizeValues large = sizes.reference();
    large.rows = std::max(large.rows, large_rows);
    large.columns = std::max(large.columns, large_columns);
    const Network network = sizes.network_at(large);
    const auto milliseconds = [&](Bytes strips_cache) {
        AnySizeOptions with = options;
        with.strips_cache = strips_cache;
        return predicted_milliseconds(network, any_size_schedule(network, sizes, with), speed, 1);
    };
    Bytes best = options.second_level_cache;
    double least = milliseconds(best);
    for (const int64_t factor : {2, 4}) {
        const Bytes larger(factor * options.second_level_cache.value());
        const double expected = milliseconds(larger);
        if (expected > clearly_less * least) continue;
        best = larger;
        least = expected;
    }
    return best;
}

}  // namespace laminate
