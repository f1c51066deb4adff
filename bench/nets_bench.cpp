// Whole networks, compiled in process as `laminate run` compiles them, on one thread: GFLOP/s by
// the definition's count and the bytes of the arena. `time` is the thread's own clock.
#include <benchmark/benchmark.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

#include "base/aligned.h"
#include "generators/compile/compile.h"
#include "nets/network/dense_images.h"
#include "nets/open.h"
#include "runtime/session.h"
#include "scheduler/explore/planner/line_buffers.h"

namespace laminate {
namespace {

std::vector<AlignedFloats> arrays_of(const std::vector<Tensor>& tensors) {
    std::vector<AlignedFloats> arrays;
    for (const Tensor& tensor : tensors)
        arrays.emplace_back(static_cast<size_t>(element_count(tensor.dims)), 0.5F);
    return arrays;
}

void whole_network(benchmark::State& state, const std::string& spec) {
    const Network network = with_dense_images_together(open_network(spec));
    const auto schedule = line_buffer_schedule(network);
    const JitNetwork compiled(network, std::get<Schedule>(schedule));
    Session session = Session::open(&compiled.descriptor(), {.threads = 1});
    const std::vector<AlignedFloats> inputs = arrays_of(session.inputs());
    std::vector<AlignedFloats> outputs = arrays_of(session.outputs());
    std::vector<const float*> in;
    std::vector<float*> out;
    for (const AlignedFloats& array : inputs) in.push_back(array.data());
    for (AlignedFloats& array : outputs) out.push_back(array.data());
    for (auto _ : state) {
        session.run(in, out);
        benchmark::ClobberMemory();
    }
    double operations = 0;
    for (LayerId id = 0; id < std::ssize(network.layers); ++id) {
        if (must_be_scheduled(network, id))
            operations += 2.0 * static_cast<double>(layer_macs(network, id));
    }
    state.counters["GFLOP/s"] =
        benchmark::Counter(operations * 1e-9, benchmark::Counter::kIsIterationInvariantRate);
    state.counters["arena"] =
        benchmark::Counter(static_cast<double>(session.arena_bytes()),
                           benchmark::Counter::kDefaults, benchmark::Counter::kIs1024);
}

void add(const std::string& spec) {
    benchmark::RegisterBenchmark(spec.substr(4).c_str(), whole_network, spec)
        ->Unit(benchmark::kMillisecond);
}

}  // namespace
}  // namespace laminate

int main(int argc, char** argv) {
    for (const char* spec :
         {"zoo:fsrcnn?height=540&width=960", "zoo:fsrcnn-x2?height=540&width=960",
          "zoo:mc-cnn?height=270&width=480", "zoo:dmcnn-vd?height=135&width=240", "zoo:mobilenetv1",
          "zoo:mobilenetv2", "zoo:squeezenet", "zoo:resnet18", "zoo:resnet50", "zoo:inceptionv3",
          "zoo:vgg16"}) {
        laminate::add(spec);
    }
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
    benchmark::RunSpecifiedBenchmarks();
    benchmark::Shutdown();
    return 0;
}
