// Everything that reads what others wrote, as a function from bytes: whatever they are, it ends well or throws InputError.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace laminate::fuzz {

struct Target {
    const char* name;
    std::vector<std::string> (*seeds)();  ///< whole inputs, which must be accepted
    void (*read)(std::string_view bytes);
};

/// onnx (read, and run where the network is small), schedule_text, schedule_json, machine, manifest, npy, png, jpeg.
[[nodiscard]] const std::vector<Target>& targets();

}  // namespace laminate::fuzz
