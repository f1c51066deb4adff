// Turns what a user types into a Network: an .onnx path, a zoo name with options, or the seed of a
// random network.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "nets/network/network.h"

namespace laminate {

/// Values for symbolic dimensions of the network's inputs. `height`, `width` and `batch` set the H,
/// W and N dimensions of every 4-D input, whatever their symbols. `symbols` sets single symbols by
/// name ("H") and takes precedence. `integers` are the values of inputs of integers, row major, that
/// the network then has no more: shapes may depend on them.
struct InputSizes {
    std::optional<int64_t> height{};
    std::optional<int64_t> width{};
    std::optional<int64_t> batch{};
    std::map<std::string, int64_t> symbols{};
    std::map<std::string, std::vector<int64_t>> integers{};
};

/// `spec` is "path/to/net.onnx", "zoo:NAME?height=540&width=960&batch=1&seed=7", or "random:SEED"
/// (also "zoo:random:SEED" and "random:picture:SEED"; random_network.h; takes no sizes). An option in
/// the spec takes precedence over `sizes`. A symbolic batch that is not given is 1. A symbolic spatial size that
/// is not given is an InputError that names the input and the option to use.
[[nodiscard]] Network open_network(const std::string& spec, const InputSizes& sizes = {});

}  // namespace laminate
