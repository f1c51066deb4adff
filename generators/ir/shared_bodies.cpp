#include "generators/ir/shared_bodies.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/units.h"
#include "generators/ir/alike_bodies.h"
#include "generators/ir/arrays.h"
#include "generators/ir/code_parts.h"
#include "generators/lowering/group_lowering.h"

namespace laminate {

using namespace Halide::Internal;
using Halide::Expr;

namespace {

constexpr const char* numbers_array = "shared.numbers";
constexpr const char* other_constants = "shared.constants";

/// The body with its numbers taken from the front of the constants. Returns nothing if a number is too large for
/// an array of floats to hold exactly.
std::optional<SharedBody> shared_by(AlikeBodies alike) {
    constexpr int64_t boundary = 16, most_exact = 1 << 24;
    const auto count = static_cast<size_t>(round_up(std::ssize(alike.number_names), boundary));
    SharedBody shared{std::move(alike.members), {}, {}};
    for (const std::vector<int64_t>& numbers : alike.numbers) {
        if (std::ranges::any_of(numbers, [](int64_t n) { return std::abs(n) > most_exact; }))
            return std::nullopt;
        shared.numbers.emplace_back(numbers.begin(), numbers.end());
        shared.numbers.back().resize(count);
    }
    Stmt body = substitute(argument::constants,
                           Variable::make(Halide::type_of<float*>(), other_constants), alike.body);
    body = ir::with_array(other_constants, argument::constants, static_cast<int64_t>(count), body);
    for (size_t n = 0; n < alike.number_names.size(); ++n) {
        const Expr value = Halide::cast<int32_t>(
            ir::load(numbers_array, static_cast<int32_t>(n), ir::Alignment::element));
        body = LetStmt::make(alike.number_names[n], value, body);
    }
    shared.body = ir::with_array(numbers_array, argument::constants, 0, body);
    return shared;
}

}  // namespace

std::vector<SharedBody> shared_bodies(const std::vector<Stmt>& bodies, int threads) {
    std::set<std::string> kept;
    for (const LoweredArgument& argument : group_arguments()) kept.insert(argument.name);
    std::vector<SharedBody> all;
    for (AlikeBodies& alike : alike_bodies(bodies, kept, "shared.", threads)) {
        if (std::optional<SharedBody> shared = shared_by(std::move(alike)))
            all.push_back(*std::move(shared));
    }
    return all;
}

}  // namespace laminate
