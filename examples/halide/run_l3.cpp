// Runs the library that stock Halide makes of `laminate show --halide`:
//   run_l3 CONSTANTS INPUT.npy OUTPUT.npy
// Arrays are float32 .npy files in C order: their last dimension is Halide's first.
#include <HalideBuffer.h>

#include <cstdint>
#include <fstream>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

#include "l3.h"

using Halide::Runtime::Buffer;

namespace {

/// Fills a buffer of known extents; version 1 of .npy has 10 bytes before its header text.
void load(const std::string& path, Buffer<float>& array) {
    std::ifstream file(path, std::ios::binary);
    unsigned char start[10];
    file.read(reinterpret_cast<char*>(start), sizeof start);
    file.ignore(start[8] + 256 * start[9]);
    file.read(reinterpret_cast<char*>(array.data()),
              static_cast<std::streamsize>(array.size_in_bytes()));
    if (!file || file.peek() != EOF) throw std::runtime_error(path + ": another size expected");
}

void save(const std::string& path, const Buffer<float>& array) {
    std::string shape;
    for (int d = array.dimensions(); d-- > 0;)
        shape += std::to_string(array.dim(d).extent()) + ", ";
    std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (1, " + shape + "), }";
    header += std::string(64 - (header.size() + 11) % 64, ' ') + '\n';
    const uint16_t length = static_cast<uint16_t>(header.size());
    std::ofstream file(path, std::ios::binary);
    file.write("\x93NUMPY\x01\x00", 8);
    file.put(static_cast<char>(length % 256)).put(static_cast<char>(length / 256));
    file << header;
    file.write(reinterpret_cast<const char*>(array.data()),
               static_cast<std::streamsize>(array.size_in_bytes()));
    if (!file) throw std::runtime_error(path + ": cannot be written");
}

}  // namespace

int main(int argc, char** argv) try {
    if (argc != 4) throw std::runtime_error("usage: run_l3 CONSTANTS INPUT.npy OUTPUT.npy");
    Buffer<float> input(22, 22, 3), output(16, 16, 4);
    Buffer<float> weights[] = {{3, 3, 3, 4}, {3, 3, 4, 4}, {3, 3, 4, 4}};
    load(argv[2], input);
    for (int layer = 0; layer < 3; ++layer) {
        load(std::string(argv[1]) + "/conv" + std::to_string(layer + 1) + "_weights.npy",
             weights[layer]);
    }
    const int error = l3(input, weights[0], weights[1], weights[2], output);
    if (error != 0) throw std::runtime_error("l3: error " + std::to_string(error));
    save(argv[3], output);
} catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
}
