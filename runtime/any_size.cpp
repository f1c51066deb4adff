#include "runtime/any_size.h"

#include <algorithm>
#include <limits>
#include <stdexcept>

#include "base/error.h"
#include "base/units.h"

namespace laminate {

namespace {

/// Code counts the elements of an image's tensors, and of scratch, in 32 bits.
constexpr int64_t most_elements = std::numeric_limits<int32_t>::max();

[[noreturn]] void refuse(const SizeValues& size, const std::string& why) {
    throw InputError("size " + size_text(size) + ": " + why);
}

void require_possible(const OpenSizes& open, const SizeValues& size) {
    constexpr int64_t longest = int64_t{1} << 24;
    if (size.images < 1 || size.images > longest || size.rows > longest || size.columns > longest)
        refuse(size, "expected 1 to " + std::to_string(longest) + " images, rows and columns");
    if (size.rows < open.least_rows || size.columns < open.least_columns) {
        refuse(size, "expected " + std::to_string(open.least_rows) + " rows and " +
                         std::to_string(open.least_columns) + " columns or more");
    }
}

void set_tensors(Manifest& at, const OpenSizes& open, const SizeValues& size) {
    for (size_t n = 0; n < at.tensors.size(); ++n) {
        Tensor& tensor = at.tensors[n];
        for (size_t d = 0; d < tensor.dims.size(); ++d) {
            tensor.dims[d] = open.dims[n][d].at(size);
            if (tensor.dims[d] < 1)
                refuse(size, "tensor " + tensor.name + " would be " + dims_text(tensor.dims));
        }
        if (element_count(tensor.dims) / tensor.dims.front() > most_elements) {
            refuse(size, "tensor " + tensor.name + " would be " + dims_text(tensor.dims) +
                             ", expected at most " + std::to_string(most_elements) +
                             " elements of an image");
        }
    }
}

void set_group(GroupStep& step, const SizeValues& size, int threads) {
    const OpenStep& open = *step.open;
    step.size = size;
    // Threads divide the outermost loop over strips, which is that of rows where there is one.
    int64_t strips = 1;
    const auto length = [&](const StripRule& rule) {
        const int64_t extent = rule.extent.at(size);
        const int64_t strip = strip_length(rule, extent, threads);
        strips = ceil_div(extent, strip);
        return strip;
    };
    if (open.columns) step.size.strip_columns = length(*open.columns);
    if (open.rows) step.size.strip_rows = length(*open.rows);
    step.strips = static_cast<int32_t>(strips);
    step.scratch_bytes = open.scratch_bytes.at(step.size);
    if (step.scratch_bytes / bytes_per_element > most_elements)
        refuse(size, "group " + step.name + " would keep " + std::to_string(step.scratch_bytes) +
                         " bytes of scratch");
}

}  // namespace

std::string size_text(const SizeValues& size) {
    return std::to_string(size.images) + " x " + std::to_string(size.rows) + " x " +
           std::to_string(size.columns);
}

int64_t strip_length(const StripRule& rule, int64_t extent, int threads) {
    const auto in_parts = [&](int64_t parts) {
        return round_up(ceil_div(extent, parts), rule.unit);
    };
    if (rule.most > 0) return in_parts(ceil_div(extent, rule.most));
    if (threads <= 1) return in_parts(1);
    // Two strips per thread even out disturbances by other work; one is the choice where two repeat
    // too much, and fewer than that on small maps.
    const auto repeats = [&](int64_t strips, int64_t percent) {
        return 100 * (strips - 1) * rule.repeated > percent * extent;
    };
    constexpr int64_t little = 3, much = 25;
    if (!repeats(2 * int64_t{threads}, little)) return in_parts(2 * int64_t{threads});
    int64_t strips = threads;
    while (strips > 1 && repeats(strips, much)) --strips;
    return in_parts(strips);
}

Manifest manifest_at(const Manifest& manifest, const SizeValues& size, int threads) {
    if (!manifest.open) {
        throw InputError("network " + manifest.network +
                         ": was compiled for one size; expected laminate compile --any-size");
    }
    Manifest at = manifest;
    require_possible(*manifest.open, size);
    try {
        set_tensors(at, *manifest.open, size);
        for (Step& step : at.steps) {
            auto* group = std::get_if<GroupStep>(&step);
            if (group != nullptr && group->open) set_group(*group, size, threads);
        }
    } catch (const std::overflow_error&) {
        refuse(size, "numbers beyond 64 bits");
    }
    return at;
}

}  // namespace laminate
