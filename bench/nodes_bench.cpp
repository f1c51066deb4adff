// Times each layer that the reference operators run when `laminate run` runs the network: what no
// group can hold. bench/nodes.py prints the times beside those of onnxruntime's nodes.
//
//   nodes_bench NET.onnx THREADS [batch=N] [height=H] [width=W]
//
// Prints one JSON list of {"node", "layer", "does", "output", "ms", "median"}; ms is the least of the
// runs.
#include <algorithm>
#include <chrono>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/aligned.h"
#include "nets/network/dense_images.h"
#include "nets/open.h"
#include "nets/operators/reference_operators.h"
#include "scheduler/schedule/problem.h"

namespace laminate {
namespace {

constexpr double most_seconds = 0.3;
constexpr int fewest_runs = 3, most_runs = 200;

/// Milliseconds of the runs on values between 0 and 1, from the least on.
std::vector<double> milliseconds(const Network& network, const Layer& layer, int threads) {
    std::vector<std::vector<int64_t>> dims;
    std::vector<AlignedFloats> arrays;
    std::vector<const float*> inputs;
    for (const TensorId id : layer.inputs) {
        dims.push_back(network.tensor(id).dims);
        float* array =
            arrays.emplace_back(static_cast<size_t>(element_count(dims.back())), 0.0F).data();
        for (int64_t k = 0; k < element_count(dims.back()); ++k)
            array[k] = static_cast<float>(k * 37 % 101) / 101;
    }
    for (const AlignedFloats& array : arrays) inputs.push_back(array.data());
    const std::vector<int64_t>& out = network.tensor(layer.output).dims;
    AlignedFloats output(static_cast<size_t>(element_count(out)), 0.0F);
    std::vector<double> times;
    double total = 0;
    for (int run = 0; run < most_runs && (run < fewest_runs || total < most_seconds); ++run) {
        const auto start = std::chrono::steady_clock::now();
        run_reference_layer(layer, dims, inputs, out, output.data(), threads);
        const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
        times.push_back(taken.count() * 1e3);
        total += taken.count();
    }
    std::ranges::sort(times);
    return times;
}

bool moves_nothing(const Layer& layer) {
    return layer.kind == LayerKind::flatten ||
           (layer.kind == LayerKind::general && (layer.general.kind == GeneralKind::reshape ||
                                                 layer.general.kind == GeneralKind::constant));
}

InputSizes sizes_of(int count, char** words) {
    InputSizes sizes;
    for (int k = 0; k < count; ++k) {
        const std::string word = words[k], name = word.substr(0, word.find('='));
        const int64_t value = std::stoll(word.substr(name.size() + 1));
        (name == "batch" ? sizes.batch : name == "height" ? sizes.height : sizes.width) = value;
    }
    return sizes;
}

int run(int count, char** words) {
    const int threads = std::stoi(words[2]);
    const Network network = with_dense_images_together(open_network(words[1], sizes_of(count - 3, words + 3)));
    nlohmann::ordered_json rows = nlohmann::ordered_json::array();
    for (LayerId id = 0; id < std::ssize(network.layers); ++id) {
        const Layer& layer = network.layer(id);
        if (is_schedulable(network, id) || moves_nothing(layer)) continue;
        const std::vector<double> times = milliseconds(network, layer, threads);
        rows.push_back({{"node", layer.onnx_name},
                        {"layer", layer.name},
                        {"does", operation_text(layer)},
                        {"output", dims_text(network.tensor(layer.output).dims)},
                        {"ms", times.front()},
                        {"median", times[times.size() / 2]}});
    }
    std::cout << rows.dump(1) << '\n';
    return 0;
}

}  // namespace
}  // namespace laminate

int main(int count, char** words) {
    if (count < 3) {
        std::cerr << "usage: nodes_bench NET.onnx THREADS [batch=N] [height=H] [width=W]\n";
        return 2;
    }
    try {
        return laminate::run(count, words);
    } catch (const std::exception& error) {
        std::cerr << "nodes_bench: " << error.what() << '\n';
        return 3;
    }
}
