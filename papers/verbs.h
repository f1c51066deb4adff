// What the papers add to the command line: models of `cost` and `explore`, and the verb `study`.
#pragma once

#include "answers/cost_models.h"
#include "answers/program.h"

namespace laminate::cli {

[[nodiscard]] CostModel explore_layer_optimum();   ///< layer_optimum/explore_verb.cpp
[[nodiscard]] CostModel explore_depth_first();     ///< depth_first/explore_verb.cpp
[[nodiscard]] CostModel explore_spatial_fusion();  ///< spatial_fusion/explore_verb.cpp
[[nodiscard]] CostModel explore_dag_groups();      ///< dag_groups/explore_verb.cpp
[[nodiscard]] CostModel explore_patch_fusion();    ///< patch_fusion/explore_verb.cpp
[[nodiscard]] CostModel cost_depth_first();        ///< depth_first/cost_verb.cpp

void add_study(Program& program);  ///< depth_first/study_verb.cpp

}  // namespace laminate::cli
