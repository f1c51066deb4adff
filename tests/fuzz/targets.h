// Every reader of files as a function from bytes. For any bytes it succeeds or throws InputError of one
// line.
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

/// onnx (read, and run where the network is small), tensor (.pb), schedule_text, schedule_json,
/// front, jobs, machine, manifest, npy, png, jpeg, raster (PNM and .npy by parts), y4m.
[[nodiscard]] const std::vector<Target>& targets();
/// Throws std::runtime_error for an unknown name.
[[nodiscard]] const Target& target(std::string_view name);

/// True when the bytes were read, false when they were refused with InputError. Any other exception is
/// a finding and passes through.
[[nodiscard]] bool accepts(const Target& target, std::string_view bytes);

/// The files of tests/fuzz/corpus/NAME: inputs that once did harm.
[[nodiscard]] std::vector<std::string> corpus(const Target& target);

}  // namespace laminate::fuzz
