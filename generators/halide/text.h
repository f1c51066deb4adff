// Halide programs as a C++ file that a Halide user would write: a Generator for each group,
// complete with its schedule, that stock Halide 21 builds.
#pragma once

#include <string>
#include <vector>

#include "generators/halide/program.h"

namespace laminate {

struct HalideGenerator {
    HalideProgram program;
    std::string name;                  ///< the generator's, an identifier
    std::vector<std::string> comment;  ///< above its class, a line per entry
};

/// `comment` stands at the head of the file.
[[nodiscard]] std::string halide_generator_file(const std::vector<HalideGenerator>& generators,
                                                const std::vector<std::string>& comment);

/// An identifier for C++ and Halide made of a name.
[[nodiscard]] std::string halide_identifier(const std::string& name);

}  // namespace laminate
