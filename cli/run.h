// What the ways to run a network on files share: whole files (run.cpp), a picture in windows
// (run_stream.cpp), videos and folders (run_frames.cpp).
#pragma once

#include <string>
#include <vector>

#include "answers/network_argument.h"
#include "answers/output.h"
#include "answers/program.h"
#include "cli/execution.h"

namespace laminate::cli {

/// The options of `laminate run` as they were given.
struct RunOptions {
    NetworkArgument network;  ///< or a compiled directory
    ScheduleArgument schedule;
    // "[NAME=]FILE" each (tensor_files.h); a video and a folder have one of both.
    std::vector<std::string> inputs;  ///< none: random elements
    std::vector<std::string>
        outputs;  ///< by extension; those without a file are summed up in a line
    std::vector<std::string> expected;  ///< what outputs must be; exit code 1 when they are not
    /// An element may differ from what is expected by atol + rtol * |expected|.
    double rtol = 1e-3;
    double atol = 1e-5;
    std::string compare;  ///< picture for the PSNR of luma; empty: none
    int64_t border = 6;   ///< pixels on each side that the PSNR leaves out
    bool counts = false;  ///< model and generated code side by side
    bool stream = false;  ///< in windows, whatever the picture's size
};

/// Throws UsageError naming the first option that only runs on whole files know: --expected,
/// --compare, --counts.
void refuse_options_of_whole_files(const RunOptions& options, const std::string& what);

/// One picture file in windows, in constant memory: `--stream`.
[[nodiscard]] Exit run_stream(const RunOptions& options, const CommonOptions& common,
                              const Output& output);
/// Whether the inputs are one PNM or .pfm file so large that it had better be streamed.
[[nodiscard]] bool wants_stream(const RunOptions& options);

/// Every frame of a Y4M video, or every picture of a folder.
[[nodiscard]] Exit run_video(const RunOptions& options, const CommonOptions& common,
                             const Output& output);
[[nodiscard]] Exit run_folder(const RunOptions& options, const CommonOptions& common,
                              const Output& output);
/// Whether the input is "-" or a .y4m file; whether it is a folder.
[[nodiscard]] bool is_video(const RunOptions& options);
[[nodiscard]] bool is_folder(const RunOptions& options);

}  // namespace laminate::cli
