// Where the tensors of a compiled network lie during a run: in the caller's arrays, or in the arena
// by liveness (arena_plan.h).
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/manifest.h"

namespace laminate {

/// Where a tensor's elements lie during a run.
struct Place {
    enum class In { arena, input, output } in = In::arena;
    int64_t at = 0;  ///< arena: offset in bytes; else the position among inputs or outputs
    int64_t offset_bytes = 0;  ///< from the beginning of that input or output; 0 in the arena
};

struct TensorPlaces {
    std::vector<Place> places;      ///< by tensor
    std::vector<bool> is_in_place;  ///< by step: nothing to do, what it reads is its output already
    int64_t arena_bytes = 0;
};

/// Flatten and reshape give their input another shape in the same place. What is joined (concat
/// along the outermost dimension of more than one element) is computed within the whole, which
/// copies nothing; but the whole then has to be there from its first part on. Where that would make
/// the arena larger, only those joins are taken that do not, in the order of the steps; the others
/// copy.
[[nodiscard]] TensorPlaces place_tensors(const Manifest& manifest);

}  // namespace laminate
