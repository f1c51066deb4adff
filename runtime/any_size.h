// A compiled network of any size at one of them: formulas (base/size_formula.h) become the numbers
// of a manifest, and each group gets strips.
//
//   const Manifest at = manifest_at(manifest, {1, 270, 480}, threads);   // at.tensors, at.steps
//
// No result depends on the strips, so none depends on the number of threads either.
#pragma once

#include <cstdint>
#include <string>

#include "base/size_formula.h"
#include "runtime/manifest.h"

namespace laminate {

/// "1 x 270 x 480": images x rows x columns.
[[nodiscard]] std::string size_text(const SizeValues& size);

/// Of the length of strips only, which must be a multiple of rule.unit: whole outputs, or as many
/// strips as keep `threads` threads busy while what they repeat stays small.
[[nodiscard]] int64_t strip_length(const StripRule& rule, int64_t extent, int threads);

/// The manifest with the dims, scratch and strips of a size; it still says how others are found.
/// Throws InputError for a network of one size only, a size below the least, and one whose tensors
/// have more elements than code can address.
[[nodiscard]] Manifest manifest_at(const Manifest& manifest, const SizeValues& size, int threads);

}  // namespace laminate
