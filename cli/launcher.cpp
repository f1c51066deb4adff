#include "cli/launcher.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <span>
#include <sstream>

namespace laminate::cli {

namespace {

constexpr const char* ranks[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"};
constexpr const char* local_processes[] = {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"};
/// "0 2": the first ranks of the commands.
constexpr const char* first_ranks = "OMPI_FIRST_RANKS";

std::optional<int> number_in(std::span<const char* const> names) {
    for (const char* name : names) {
        const char* text = std::getenv(name);
        int value = 0;
        if (text != nullptr &&
            std::from_chars(text, text + std::strlen(text), value).ec == std::errc())
            return value;
    }
    return std::nullopt;
}

}  // namespace

int launcher_rank() { return number_in(ranks).value_or(0); }

bool is_first_of_command() {
    const int rank = launcher_rank();
    const char* text = std::getenv(first_ranks);
    if (text == nullptr) return rank == 0;
    std::istringstream firsts(text);
    for (int first = 0; firsts >> first;) {
        if (first == rank) return true;
    }
    return rank == 0;
}

int launcher_local_processes() { return std::max(1, number_in(local_processes).value_or(1)); }

void forget_launcher() {
    for (const char* name : ranks) ::unsetenv(name);
    for (const char* name : local_processes) ::unsetenv(name);
    ::unsetenv(first_ranks);
}

}  // namespace laminate::cli
