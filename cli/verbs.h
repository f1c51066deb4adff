// The verbs of `laminate`, one file each, and the models of `cost` and `explore` besides those of
// papers/verbs.h.
#pragma once

#include "answers/cost_models.h"
#include "answers/program.h"

namespace laminate::cli {

/// Adds every verb to a program, in the order of --help.
void add_verbs(Program& program);

void add_info(Program& program);
void add_zoo(Program& program);
void add_machine(Program& program);
void add_cost(Program& program);
void add_show(Program& program);
void add_validate(Program& program);
void add_compile(Program& program);
void add_run(Program& program);
void add_bench(Program& program);
void add_cache(Program& program);
void add_explore(Program& program);
void add_report(Program& program);

[[nodiscard]] CostModel explore_two_level();  ///< explore_two_level.cpp
[[nodiscard]] CostModel cost_two_level();     ///< cost.cpp

}  // namespace laminate::cli
