// Launchers of parallel programs (mpirun, mpiexec, srun) start one command several times and say by
// the environment which of them a process is. Nothing of MPI itself is needed: what processes
// share, they share through a directory (sweep.h).
#pragma once

namespace laminate::cli {

/// Rank among the processes of the launch: Open MPI, MPICH and Intel MPI, Slurm. 0 without a
/// launcher.
[[nodiscard]] int launcher_rank();

/// Of the processes that run the same command, the one that does what can be done only once. One
/// launch may have several commands (Open MPI: `mpirun A : B`); each has its first.
[[nodiscard]] bool is_first_of_command();

/// Processes of the launch on this machine, at least 1.
[[nodiscard]] int launcher_local_processes();

/// For a process that starts others: they are nobody's rank.
void forget_launcher();

}  // namespace laminate::cli
