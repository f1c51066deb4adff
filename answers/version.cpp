// The only file of this room that includes Halide: its version, and the features it finds on this
// CPU.
#include <Halide.h>
#include <fmt/core.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "answers/version.h"

namespace laminate::cli {

namespace {

std::string halide_version() {
    return fmt::format("{}.{}.{}", HALIDE_VERSION_MAJOR, HALIDE_VERSION_MINOR,
                       HALIDE_VERSION_PATCH);
}

/// The system's name of the CPU, or its architecture when the system does not say.
std::string cpu_name(const std::string& target) {
    std::ifstream in("/proc/cpuinfo");
    for (std::string line; std::getline(in, line);) {
        const size_t colon = line.find(": ");
        if (line.rfind("model name", 0) == 0 && colon != std::string::npos)
            return line.substr(colon + 2);
    }
    return target.substr(0, target.find('-'));
}

}  // namespace

nlohmann::ordered_json made_by() {
    const std::string target = Halide::get_host_target().to_string();
    return {{"laminate", LAMINATE_VERSION},
            {"halide", halide_version()},
            {"host_target", target},
            {"cpu", cpu_name(target)},
            {"cores", std::thread::hardware_concurrency()}};
}

std::string program_version() { return LAMINATE_VERSION; }

std::string other_error_text(const std::exception_ptr& error) {
    try {
        std::rethrow_exception(error);
    } catch (const Halide::Error& failed) {
        return fmt::format("code generation: {}", failed.what());
    } catch (...) {
        return "an exception of unknown type";
    }
}

std::string version_text() {
    std::string features;
    // A target's text is arch-bits-os-feature-feature...: the features follow the third dash.
    const std::string text = Halide::get_host_target().to_string();
    size_t at = 0;
    for (int dash = 0; dash < 3 && at != std::string::npos; ++dash) at = text.find('-', at + 1);
    if (at != std::string::npos) features = text.substr(at + 1);
    for (char& c : features) {
        if (c == '-') c = ' ';
    }
    return fmt::format("laminate {}\nHalide {}\nhost target {}\nCPU features {}", LAMINATE_VERSION,
                       halide_version(), text, features.empty() ? "none" : features);
}

}  // namespace laminate::cli
