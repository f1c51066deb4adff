// Runs ONNX models by the reference operators alone, one for each line of standard input: the
// directory that holds net.onnx and its inputs in0.f32, in1.f32, ... (32-bit floats, row major, in
// the order of the network's inputs), and sizes of symbolic dimensions ("DIRECTORY batch=1 H=64").
// Writes the outputs to out0.f32, ... and answers each line with one line: "ok" and the shape of
// every output ("ok 1x2x3 4"), or "refused" and the message.
//
// reference.py keeps one such process for thousands of models; generated code is not involved.
#include <cstring>
#include <filesystem>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "nets/onnx/onnx.h"
#include "nets/operators/reference_operators.h"

namespace laminate {
namespace {

std::vector<float> read_floats(const std::string& path) {
    const std::string bytes = read_file(path);
    std::vector<float> values(bytes.size() / sizeof(float));
    std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
    return values;
}

InputSizes read_sizes(std::istringstream& words) {
    InputSizes sizes;
    for (std::string word; words >> word;) {
        const size_t equals = word.find('=');
        const std::string key = word.substr(0, equals);
        const int64_t value = std::stoll(word.substr(equals + 1));
        if (key == "batch") {
            sizes.batch = value;
        } else if (key == "height") {
            sizes.height = value;
        } else if (key == "width") {
            sizes.width = value;
        } else {
            sizes.symbols[key] = value;
        }
    }
    return sizes;
}

std::string run(const std::string& line) {
    std::istringstream words(line);
    std::filesystem::path directory;
    words >> directory;
    const Network network = load_onnx((directory / "net.onnx").string(), read_sizes(words));
    std::vector<std::vector<float>> inputs;
    for (size_t k = 0; k < network.inputs.size(); ++k)
        inputs.push_back(read_floats((directory / ("in" + std::to_string(k) + ".f32")).string()));
    const auto outputs = run_reference_network(network, inputs, {}, 1);
    std::string answer = "ok";
    for (size_t k = 0; k < outputs.size(); ++k) {
        write_file_atomically(
            (directory / ("out" + std::to_string(k) + ".f32")).string(),
            {reinterpret_cast<const char*>(outputs[k].data()), outputs[k].size() * sizeof(float)});
        answer += " " + dims_text(network.tensor(network.outputs[k]).dims);
    }
    return answer;
}

}  // namespace
}  // namespace laminate

int main() {
    for (std::string line; std::getline(std::cin, line);) {
        try {
            std::cout << laminate::run(line) << std::endl;
        } catch (const std::exception& error) {
            std::cout << "refused " << error.what() << std::endl;
        }
    }
}
