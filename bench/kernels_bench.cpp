// One layer's code at a time, as layer by layer runs it on one thread: GFLOP/s by the definition's
// count (Winograd's are beyond the peak), CPU time.
#include <benchmark/benchmark.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/aligned.h"
#include "generators/compile/executable.h"
#include "generators/kernels/group_kernels.h"
#include "nets/open.h"
#include "scheduler/explore/planner/line_buffers.h"

namespace laminate {
namespace {

void layer(benchmark::State& state, const std::string& spec, const std::string& name) {
    const Network network = open_network(spec);
    const LayerId id = network.find_layer(name);
    const GroupSchedule group = line_buffer_group(network, {id});
    const LayerProblem problem = layer_problem(network, id);
    const GroupCode code = default_code(network, group, vector_unit(Halide::get_host_target()));
    const JitGroup jit(code.body, false);
    const AlignedFloats constants(code.constants);
    AlignedFloats scratch(static_cast<size_t>(code.scratch_bytes) / sizeof(float), 0.0F);
    const AlignedFloats input(static_cast<size_t>(problem.input_elements().value()), 0.5F);
    AlignedFloats output(static_cast<size_t>(problem.output_elements().value()), 0.0F);
    const float* in = input.data();
    float* out = output.data();
    for (auto _ : state) {
        const int result = jit.function()(&in, &out, constants.data(), scratch.data(), 0,
                                          static_cast<int32_t>(code.strips));
        if (result != 0) throw std::logic_error("the code failed");
        benchmark::ClobberMemory();
    }
    const double operations = 2.0 * static_cast<double>(layer_macs(network, id));
    state.counters["GFLOP/s"] =
        benchmark::Counter(operations * 1e-9, benchmark::Counter::kIsIterationInvariantRate);
}

void add(const char* kernel, const char* spec, const char* name) {
    const std::string title = std::string(kernel) + "/" + (spec + 4) + "/" + name;
    benchmark::RegisterBenchmark(title.c_str(), layer, std::string(spec), std::string(name))
        ->Unit(benchmark::kMicrosecond);
}

}  // namespace
}  // namespace laminate

int main(int argc, char** argv) {
    using laminate::add;
    add("pointwise", "zoo:mobilenetv1", "pointwise5");          // 256 -> 256 at 28 x 28
    add("pointwise", "zoo:mobilenetv1", "pointwise7");          // 512 -> 512 at 14 x 14
    add("pointwise", "zoo:mobilenetv1", "pointwise13");         // 1024 -> 1024 at 7 x 7
    add("pointwise_wide", "zoo:mobilenetv1", "pointwise1");     // 32 -> 64 at 112 x 112
    add("depthwise", "zoo:mobilenetv1", "depthwise7");          // 512 at 14 x 14
    add("depthwise_strided", "zoo:mobilenetv1", "depthwise6");  // 256, 28 to 14
    add("depthwise_wide", "zoo:mobilenetv1", "depthwise1");     // 32 at 112 x 112
    add("dense", "zoo:mobilenetv1", "fc");                      // 1024 -> 1000
    add("first_layer", "zoo:mobilenetv1", "conv1");             // 3 -> 32, 3x3, stride 2
    add("winograd_wide", "zoo:vgg16", "conv1_2");               // 64 -> 64 at 224 x 224
    add("winograd_narrow", "zoo:vgg16", "conv5_1");             // 512 -> 512 at 14 x 14
    add("narrow", "zoo:inceptionv3", "mixed0_5x5_2");           // 5x5 48 -> 64 at 35 x 35
    add("narrow_strided", "zoo:inceptionv3", "mixed3_3x3");     // 288 -> 384, 35 to 17
    add("panels", "zoo:resnet50", "layer3_1_conv1");            // 1x1 1024 -> 256 at 14 x 14
    add("panels", "zoo:inceptionv3", "mixed6_1x1");             // 1x1 768 -> 192 at 17 x 17
    add("columns", "zoo:inceptionv3", "mixed7_7x7dbl_4");       // 7x1 192 -> 192 at 17 x 17
    add("rows", "zoo:inceptionv3", "mixed10_3x3_row");          // 1x3 384 -> 384 at 8 x 8
    add("few_channels", "zoo:fsrcnn", "map1");                  // 3x3 12 -> 12 at 540 x 960
    add("one_channel", "zoo:fsrcnn", "reconstruct");            // 9x9 56 -> 1
    add("transposed", "zoo:fsrcnn-x2", "deconv");               // 9x9 56 -> 1, stride 2
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
    benchmark::RunSpecifiedBenchmarks();
    benchmark::Shutdown();
    return 0;
}
