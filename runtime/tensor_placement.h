// Where the tensors of a compiled network lie during a run: in the caller's arrays, or in the
// arena, where tensors that live at different times share memory (arena_plan.h).
#pragma once

#include <cstdint>
#include <vector>

#include "base/indexed.h"
#include "runtime/manifest.h"

namespace laminate {

/// Where a tensor's elements lie during a run.
struct Place {
    enum class In { arena, input, output } in = In::arena;
    int64_t at = 0;  ///< in the arena: offset in bytes; else the position among inputs or outputs
    int64_t offset_bytes = 0;  ///< from the beginning of that input or output; 0 in the arena
};

struct TensorPlaces {
    IndexVector<Place, TensorId> places;
    std::vector<bool> is_in_place;  ///< by step: it has nothing to do, as its input is its output
    int64_t arena_bytes = 0;
};

/// Flatten and reshape keep their input's place. The operands of a join (a concat along the
/// outermost dimension of more than one element) are computed within its output, so the join copies
/// nothing; but its output must then live from its first operand on. Where all joins together make
/// the arena larger, each is tried in the order of the steps, and those that still enlarge it copy.
[[nodiscard]] TensorPlaces place_tensors(const Manifest& manifest);

}  // namespace laminate
