// Many explorations as one list of jobs (`laminate sweep JOBS.json -o DIR`): runs the jobs of a
// list, shared among processes.
//
// A job is one `laminate explore` in a process of its own. It leaves two things in DIR: the
// directory ID that explore made, and its outcome ID.json, which is written last. A job with an
// outcome is done; all others are still to do, and so are failed ones. ID is a hash of the job's
// arguments, so a list may grow, and two directories are merged by copying one into the other.
//
// Any number of processes may work on one DIR at a time, on this machine or on others that see the
// same files, started by hand or by mpirun. A process claims a job by a lock on a byte of
// DIR/claims. The lock ends with the process, so nothing has to be cleared up after a kill.
#pragma once

#include <filesystem>
#include <string>

#include "answers/program.h"
#include "cli/sweep_jobs.h"

namespace laminate::cli {

void add_sweep(Program& program);

struct SweepRequest {
    std::string jobs;  ///< file of the list
    std::string directory;
    int processes = 0;  ///< jobs at a time; 0: one per core
};
/// Runs the jobs that are left and merges the outcomes. Of several processes of a launcher, all run
/// jobs, and the first one merges and prints.
Exit run_sweep(const SweepRequest& request, const CommonOptions& common, const Output& output);

/// Claims of jobs among processes. A claim ends with release() or with the process.
class JobClaims {
public:
    /// Creates `file` if needed. Throws InputError when it cannot be written.
    explicit JobClaims(const std::filesystem::path& file);
    ~JobClaims();
    JobClaims(const JobClaims&) = delete;
    JobClaims& operator=(const JobClaims&) = delete;

    /// False when another process has the job.
    [[nodiscard]] bool claim(const SweepJob& job);
    void release(const SweepJob& job);

private:
    int file_ = -1;
};

}  // namespace laminate::cli
