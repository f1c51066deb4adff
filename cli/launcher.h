// Launchers of parallel programs (mpirun, mpiexec, srun) start a command several times and tell
// each process its number in the environment. MPI itself is not needed: processes share their work
// through a directory (sweep.h).
#pragma once

namespace laminate::cli {

/// Rank among the processes of the launch (Open MPI, MPICH, Intel MPI, Slurm); 0 without a
/// launcher.
[[nodiscard]] int launcher_rank();

/// Whether this process is the first of its command, which does what must be done only once. A
/// launch may have several commands (Open MPI: `mpirun A : B`), each with its first process.
[[nodiscard]] bool is_first_of_command();

/// Processes of the launch on this machine, at least 1.
[[nodiscard]] int launcher_local_processes();

/// Removes the launcher's variables, so that programs started by this process do not take its rank.
void forget_launcher();

}  // namespace laminate::cli
