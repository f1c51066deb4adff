// Where the tensors of a compiled network lie during a run: in the caller's arrays, among the
// network's constants, or in the arena, where tensors that live at different times share memory
// (arena_plan.h).
#pragma once

#include <cstdint>
#include <vector>

#include "base/indexed.h"
#include "runtime/manifest.h"

namespace laminate {

/// Where a tensor's elements lie during a run.
struct Place {
    enum class In { arena, constants, input, output } in = In::arena;
    /// In the arena and among the constants: offset in bytes; else the position among inputs or
    /// outputs.
    int64_t at = 0;
    int64_t offset_bytes = 0;  ///< from the beginning of that input or output; else 0
    [[nodiscard]] bool is_callers() const { return in == In::input || in == In::output; }
};

struct TensorPlaces {
    IndexVector<Place, TensorId> places;
    std::vector<bool> is_in_place;  ///< by step: it has nothing to do, its output is there
    int64_t arena_bytes = 0;
};

/// Flatten and reshape keep their input's place, and a constant map is read where the constants
/// lie, unless it is an output or part of a join. The operands of a join (a concat along the
/// outermost dimension of more than one element) are computed within its output, so the join copies
/// nothing; but its output must then live from its first operand on. Where all joins together make
/// the arena larger, each is tried in the order of the steps, and those that still enlarge it copy.
[[nodiscard]] TensorPlaces place_tensors(const Manifest& manifest);

}  // namespace laminate
