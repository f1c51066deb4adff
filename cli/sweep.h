// Many explorations as one list of jobs (`laminate sweep JOBS.json -o DIR`): which jobs a list
// holds, and who runs which.
//
// A job is one `laminate explore` in a process of its own, and leaves in DIR the directory ID that
// explore made and ID.json, its outcome, which is written last: a job with an outcome is done, all
// others are still to do, and so are those that failed. ID is a hash of the job's arguments, so a
// list may grow, and directories may be merged by copying one into the other.
//
// Any number of processes may work on one DIR at a time, on this machine or on others that see the
// same files: started by hand, or by mpirun. A process claims a job by a lock on a byte of
// DIR/claims that ends with the process; so nothing is to be cleared up after a kill.
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
/// Does what is left to do and merges; started several times by a launcher, all do jobs and the
/// first one merges and prints.
Exit run_sweep(const SweepRequest& request, const CommonOptions& common, const Output& output);

/// Claims of jobs among processes; each claim ends with release(), and with the process.
class JobClaims {
public:
    /// `file` is made when it is not there. Throws InputError when it cannot be written.
    explicit JobClaims(const std::filesystem::path& file);
    ~JobClaims();
    JobClaims(const JobClaims&) = delete;
    JobClaims& operator=(const JobClaims&) = delete;

    /// False when another process has it.
    [[nodiscard]] bool claim(const SweepJob& job);
    void release(const SweepJob& job);

private:
    int file_ = -1;
};

}  // namespace laminate::cli
