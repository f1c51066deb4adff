// laminate explore NET: the best schedules under a cost model.
#include "cli/cost_models.h"

namespace laminate::cli {

void add_explore(Program& program) {
    CLI::App* verb =
        program.add_verb("explore", "The best schedules under a cost model",
                         "  laminate explore zoo:l2net -o front/\n"
                         "  laminate explore zoo:l3net --space fusion --tiles all --footprint sum -o front/\n"
                         "  laminate explore zoo:resnet18 --space dag --max-depth 6 -o front/\n"
                         "  laminate explore zoo:fsrcnn --memory 64KiB --max-depth 4 --tiles pow2 -o front/\n"
                         "  laminate explore zoo:l3net --machine machines/convfusion-40nm-banked.json -o front/\n"
                         "  laminate explore 'zoo:alexnet?batch=4' --model layer-optimum --machine cnnflow_eyeriss\n"
                         "  laminate explore zoo:fsrcnn-defines --model depth-first --machine meta_proto_df -o tiles/\n"
                         "  laminate explore zoo:resnet18 --model spatial-fusion --machine hwff_1 -o stacks/\n"
                         "  laminate explore zoo:googlenet --model dag-groups --machine optimus_base -o groups/");
    declare_models(program, verb, {explore_two_level(), explore_layer_optimum(), explore_depth_first(), explore_spatial_fusion(), explore_dag_groups()}, true);
}

}  // namespace laminate::cli
