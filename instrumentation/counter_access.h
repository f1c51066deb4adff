// Elements of the counters argument (generators/compile/executable.h) in code that counts.
#pragma once

#include <Halide.h>

#include "generators/compile/executable.h"

namespace laminate {

[[nodiscard]] inline Halide::Expr counter_at(const Halide::Expr& index) {
    using namespace Halide::Internal;
    return Load::make(Halide::Int(64), counters_argument, index, Halide::Buffer<>(),
                      Halide::Parameter(), const_true(), ModulusRemainder());
}

[[nodiscard]] inline Halide::Internal::Stmt set_counter(const Halide::Expr& index,
                                                        const Halide::Expr& value) {
    using namespace Halide::Internal;
    return Store::make(counters_argument, value, index, Halide::Parameter(), const_true(),
                       ModulusRemainder());
}

}  // namespace laminate
