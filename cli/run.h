// What the ways to run a network on files share: whole files (run.cpp), a picture in windows (run_stream.cpp), videos and folders (run_frames.cpp).
#pragma once

#include <string>
#include <vector>

#include "cli/execution.h"
#include "cli/output.h"
#include "cli/verbs.h"

namespace laminate::cli {

struct RunOptions {
    NetworkArgument network;
    ScheduleArgument schedule;
    std::vector<std::string> inputs;
    std::vector<std::string> outputs;
    std::vector<std::string> expected;
    double rtol = 1e-3;
    double atol = 1e-5;
    std::string compare;
    int64_t border = 6;
    bool counts = false;
    bool stream = false;
};

/// Throws UsageError naming the first option that only runs on whole files know: --expected, --compare, --counts.
void refuse_options_of_whole_files(const RunOptions& options, const std::string& what);

/// One picture file in windows, in constant memory: `--stream`.
[[nodiscard]] Exit run_stream(const RunOptions& options, const CommonOptions& common, const Output& output);
/// Whether the inputs are one PNM file so large that it had better be streamed.
[[nodiscard]] bool wants_stream(const RunOptions& options);

/// Every frame of a Y4M video, or every picture of a folder.
[[nodiscard]] Exit run_video(const RunOptions& options, const CommonOptions& common, const Output& output);
[[nodiscard]] Exit run_folder(const RunOptions& options, const CommonOptions& common, const Output& output);
/// Whether the input is "-" or a .y4m file; whether it is a folder.
[[nodiscard]] bool is_video(const RunOptions& options);
[[nodiscard]] bool is_folder(const RunOptions& options);

}  // namespace laminate::cli
