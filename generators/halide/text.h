// A group's Halide program as a C++ file that a Halide user would write: one Generator, complete
// with its schedule, that stock Halide 21 builds.
#pragma once

#include <string>
#include <vector>

#include "generators/halide/program.h"

namespace laminate {

/// `name` is the generator's, an identifier; `comment` stands above the class, a line per entry.
[[nodiscard]] std::string halide_generator_text(const HalideProgram& program,
                                                const std::string& name,
                                                const std::vector<std::string>& comment);

/// An identifier for C++ and Halide made of a name.
[[nodiscard]] std::string halide_identifier(const std::string& name);

}  // namespace laminate
