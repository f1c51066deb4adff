// From what a user types to a Network: an .onnx path, a zoo name with options, or the seed of a
// random network.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "nets/network/network.h"

namespace laminate {

/// Values for symbolic dimensions of the network's inputs. `height`, `width`, `batch` set the H, W,
/// N dimension of every 4-D input whatever its symbol; `symbols` set one named symbol ("H") and win
/// over them.
struct InputSizes {
    std::optional<int64_t> height{};
    std::optional<int64_t> width{};
    std::optional<int64_t> batch{};
    std::map<std::string, int64_t> symbols{};
};

/// `spec`: "path/to/net.onnx", "zoo:NAME?height=540&width=960&batch=1&seed=7", or "random:SEED"
/// (also "zoo:random:SEED"; random_network.h; takes no sizes). An option in the spec wins over
/// `sizes`. A batch that is symbolic and not given is 1; a spatial size that is symbolic and not
/// given is an InputError that names the input and the option to use.
[[nodiscard]] Network open_network(const std::string& spec, const InputSizes& sizes = {});

}  // namespace laminate
