// A group as what a Halide user would write: Funcs for the layers and for the copies into internal
// memory, and a schedule of ordinary directives.
//
// One value, two readers: text.h prints it as a C++ Generator, and instrumentation/halide_witness.h
// runs it in this process and counts. Every definition and directive stands here once, so what is
// printed is what was counted.
//
// Tensors are indexed (x, y, z): column, row, channel, column fastest, one image. Weights are
// indexed (m, n, i, z): kernel column, kernel row, input channel within the group, output channel.
#pragma once

#include <Halide.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "generators/group_code.h"
#include "generators/halide/levels.h"
#include "nets/network/network.h"
#include "scheduler/schedule/schedule.h"

namespace laminate {

/// An array of the caller's: an input of the group, weights, biases or slopes.
struct HalideInput {
    Halide::ImageParam param;
    std::vector<int64_t> extents;  ///< fastest first
    std::string axes;              ///< "x, y, z"
    int nest = -1;  ///< of weights, biases and slopes; -1: external input number `tensor`
    int tensor = -1;
    enum class Values { activations, weights, bias, slope } values = Values::activations;
};

/// f(args) = value, or an update of it.
struct HalideDefinition {
    std::vector<std::pair<std::string, Halide::Expr>> locals;  ///< names for parts of the value
    Halide::Expr value;
};

struct HalideFunc {
    std::string identifier;  ///< in C++; Halide's own name has a number behind it where it must
    Halide::Func func;
    std::vector<Halide::Var> args;
    std::vector<int64_t> reduction;  ///< extents of the reduction domain that the updates share
    Halide::Expr condition;          ///< of the reduction domain; undefined: none
    std::vector<HalideDefinition> definitions;  ///< the pure one, then the updates
    std::optional<CodeArray> buffer;            ///< how the group's counts call its storage
    [[nodiscard]] std::string name() const { return func.name(); }
    [[nodiscard]] std::string domain() const { return identifier + "_r"; }
};

/// A loop of a Func, by the name of its variable; the root: no Func.
struct HalideLoop {
    int func = -1;
    std::string var;
    friend bool operator==(const HalideLoop&, const HalideLoop&) = default;
};

enum class HalideVerb {
    split,      ///< vars: old, outer, inner; tails guarded
    rename,     ///< vars: old, new
    reorder,    ///< vars: innermost first
    compute,    ///< compute_at or compute_root
    store,      ///< store_at or store_root
    fold,       ///< vars: dimension; rotates with `factor` coordinates
    bound,      ///< vars: dimension of the output; its extent is `factor`
    vectorize,  ///< vars: a loop; by the GeneratorParam `lanes`
    unroll,     ///< vars: a loop
    parallel,   ///< vars: a loop
};

struct HalideDirective {
    HalideVerb verb = HalideVerb::split;
    int func = 0;
    int stage = -1;  ///< of split, rename and reorder: an update; -1: the pure definition
    std::vector<std::string> vars{};
    /// A number; or, where there is a parameter, `scale` times that GeneratorParam and the rest.
    int64_t factor = 0;
    std::string parameter{};
    int64_t scale = 1;
    HalideLoop at{};
};

struct HalideParameter {
    std::string name;
    int64_t value = 0;
};

struct HalideProgram {
    std::vector<HalideInput> inputs;
    std::vector<HalideFunc> funcs;  ///< producers first; the last one is the output
    std::vector<HalideParameter> parameters;
    std::vector<HalideDirective> directives;  ///< the output's first
    /// For speed, applied where HalideSpeed asks for them. They change no result.
    std::vector<HalideDirective> fast_directives;
    std::vector<std::string> input_tensors;  ///< names of the external inputs
    std::vector<int64_t> output_extents;     ///< x, y, z
    /// Why counts differ from the schedule's; empty: Halide executes it exactly.
    std::vector<HalideExclusion> exclusions;

    [[nodiscard]] const HalideFunc& output() const { return funcs.back(); }
};

/// The zero that a tap on padding multiplies.
enum class HalidePadding {
    constant,  ///< 0.0f: Halide sees that such taps change nothing, and cuts loops at the edge
    opaque,    ///< a parameter of value 0: every tap stays, as docs/counting.md counts it
};

/// The GeneratorParams of these names.
struct HalideSpeed {
    int64_t lanes = 0;  ///< floats of a vector; 0: one element at a time, in the schedule's order
    bool threads = false;
};

/// The group with its definitions made and its directives applied. Throws InputError for layers
/// that have no form here (transposed windows, unusual activations).
[[nodiscard]] HalideProgram halide_program(const Network& network, const GroupSchedule& group,
                                           HalidePadding padding = HalidePadding::constant,
                                           HalideSpeed speed = {});

/// The elements of weights, biases or slopes, x or m fastest.
[[nodiscard]] std::vector<float> halide_constants(const Network& network,
                                                  const GroupSchedule& group,
                                                  const HalideInput& input);

}  // namespace laminate
