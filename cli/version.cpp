// The one file of the frame that sees Halide: which compiler this is and what it finds on this CPU.
#include <Halide.h>
#include <fmt/core.h>

#include "cli/verbs.h"

namespace laminate::cli {

std::string version_text() {
    const Halide::Target host = Halide::get_host_target();
    std::string features;
    // A target's text is arch-bits-os-feature-feature...; the features are what is left after the third dash.
    const std::string text = host.to_string();
    size_t at = 0;
    for (int dash = 0; dash < 3 && at != std::string::npos; ++dash) at = text.find('-', at + 1);
    if (at != std::string::npos) features = text.substr(at + 1);
    for (char& c : features) {
        if (c == '-') c = ' ';
    }
    return fmt::format("laminate {}\nHalide {}.{}.{}\nhost target {}\nCPU features {}", LAMINATE_VERSION,
                       HALIDE_VERSION_MAJOR, HALIDE_VERSION_MINOR, HALIDE_VERSION_PATCH, text,
                       features.empty() ? "none" : features);
}

}  // namespace laminate::cli
