// The ways to run a network on files: whole files (run.cpp), a picture in windows (run_stream.cpp),
// videos and folders (run_frames.cpp).
#pragma once

#include <string>
#include <vector>

#include "answers/network_argument.h"
#include "answers/output.h"
#include "answers/program.h"
#include "cli/execution.h"

namespace laminate::cli {

/// The options of `laminate run` as given.
struct RunOptions {
    NetworkArgument network;  ///< or a compiled directory
    ScheduleArgument schedule;
    CacheArgument cache;
    // Texts "[NAME=]FILE" (tensor_files.h). A video and a folder have one input and one output.
    std::vector<std::string> inputs;    ///< empty: random elements
    std::vector<std::string> outputs;   ///< for outputs without a file their range is printed
    std::vector<std::string> expected;  ///< what outputs must be; exit code 1 when they are not
    /// An element may differ from the expected one by atol + rtol * |expected|.
    double rtol = 1e-3;
    double atol = 1e-5;
    std::string compare;  ///< picture for the PSNR of luma; empty: none
    int64_t border = 6;   ///< pixels on each side that the PSNR leaves out
    bool counts = false;  ///< print counts of model and generated code
    bool stream = false;  ///< run in windows, whatever the picture's size
};

/// Throws UsageError for the first given option that only runs on whole files have: --expected,
/// --compare, --counts.
void refuse_options_of_whole_files(const RunOptions& options, const std::string& what);

/// Runs one picture file in windows, in constant memory: `--stream`.
[[nodiscard]] Exit run_stream(const RunOptions& options, const CommonOptions& common,
                              const Output& output);
/// Whether the input is one PNM or .pfm file that is too large to be run whole.
[[nodiscard]] bool wants_stream(const RunOptions& options);

/// Run every frame of a Y4M video, or every picture of a folder.
[[nodiscard]] Exit run_video(const RunOptions& options, const CommonOptions& common,
                             const Output& output);
[[nodiscard]] Exit run_folder(const RunOptions& options, const CommonOptions& common,
                              const Output& output);
/// Whether input or output is "-" or a .y4m file; whether the input is a folder.
[[nodiscard]] bool is_video(const RunOptions& options);
[[nodiscard]] bool is_folder(const RunOptions& options);

}  // namespace laminate::cli
