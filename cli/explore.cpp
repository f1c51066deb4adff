// laminate explore NET: the best schedules under a cost model.
#include <memory>

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
                         "  laminate explore zoo:alexnet?batch=4 --model layer-optimum --machine cnnflow_eyeriss\n"
                         "  laminate explore zoo:fsrcnn-defines --model depth-first --machine meta_proto_df -o tiles/");
    auto request = std::make_shared<ModelRequest>();
    request->network.declare(verb);
    verb->add_option("-o,--output", request->directory, "Directory to make; what an explore left there before is replaced")->type_name("DIR");
    verb->add_option("--machine", request->machine, "Machine (machines/README.md): a file, or a name of `laminate machine list`")->type_name("FILE|NAME");
    auto choice = std::make_shared<ModelChoice>(
        *verb, std::vector<CostModel>{explore_two_level(), explore_layer_optimum(), explore_depth_first()});
    program.on(verb, [request, choice, &program](const Output& output) {
        const InterruptHandler handler;
        request->common = program.common();
        request->stop = &handler.stop();
        return choice->run(*request, output);
    });
}

}  // namespace laminate::cli
