// The vocabulary of generators/ir that the sources of kernels use without its namespace.
#pragma once

#include "generators/ir/arrays.h"

namespace laminate {

using ir::Accumulators;
using ir::broadcast;
using ir::guarded;
using ir::lanes_from;
using ir::size;
using ir::strided_load;
using ir::Values;

}  // namespace laminate
