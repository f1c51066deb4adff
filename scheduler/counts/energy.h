// Energy of a network's schedule, computed from its counts by ConvFusion (IEEE Access 2021) section
// VII.
//
//   MACs * mac_pj  +  register file  +  internal memory  +  external accesses * external_access_pj
//
// Internal memory (SRAM) is as large as the schedule's footprint, s bits. An access takes E(s) =
// base + per_root_bit * sqrt(s) pJ, or in a banked memory E(min(s, bank)) * (1 + fraction *
// log(number of banks)). Without a register file, every MAC makes four internal accesses, and every
// external read makes one more to write what was read. With a register file, the four go to it, and
// internal memory sees the accesses of the best schedule that fits into the register file instead.
// This is the paper's approximation of a third level; it does not grow when the chosen schedule
// recomputes.
//
// Energy grows with MACs, accesses and footprint, so the best schedule is on the front of these
// three axes, and MACs must be an axis if recomputation is allowed. Strictly this holds for equal
// numbers of writes: the paper's extra term per external read, 5 to 40 pJ against 1120, is not a
// function of the sum of reads and writes.
//
//   const EnergyTable table = open_energy_table("convfusion-40nm");  // or a file
//   const Energy e = energy(table, energy_counts(groups, total(groups).live_total));
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "scheduler/counts/counts.h"

namespace laminate {

/// An energy table (machines/README.md). `pj` means picojoules per access of one element.
struct EnergyTable {
    struct Banks {
        double bits = 0;                     ///< size of one bank
        double select_fraction_per_log = 0;  ///< natural logarithm of the number of banks
    };
    struct RegisterFile {
        Elements elements;
        double access_pj = 0;
    };
    std::string name;
    double element_bits = 0;
    double mac_pj = 0;
    double external_access_pj = 0;
    double internal_accesses_per_mac = 0;
    double internal_access_base_pj = 0;
    double internal_access_pj_per_root_bit = 0;
    std::optional<Banks> banks;  ///< nullopt: one SRAM of any size
    std::optional<RegisterFile> register_file;
};

/// Names of the tables that come with the program.
[[nodiscard]] std::vector<std::string> energy_table_names();
/// Throws InputError if there is no such name or file, if it is not JSON, or if a key is missing,
/// unknown, negative or without a source.
[[nodiscard]] EnergyTable open_energy_table(const std::string& name_or_file);
/// Messages begin with `where`.
[[nodiscard]] EnergyTable parse_energy_table(const std::string& json, const std::string& where);

/// The counts of one image that are priced.
struct EnergyCounts {
    Macs macs;
    Elements external_reads;   ///< X, W, partial sums of Y
    Elements external_writes;  ///< Y
    Elements footprint;        ///< elements of internal memory
    /// Accesses of the schedule that has the fewest within register_file.elements. Only for tables
    /// with a register file.
    std::optional<Elements> register_file_misses;
};
/// `footprint`: live_total or sum_total of the network, depending on what the memory is built for.
[[nodiscard]] EnergyCounts energy_counts(const std::vector<GroupCounts>& groups,
                                         Elements footprint);

struct Energy {
    double macs_pj = 0;
    double register_file_pj = 0;
    double internal_pj = 0;
    double external_pj = 0;
    [[nodiscard]] double total_pj() const {
        return macs_pj + register_file_pj + internal_pj + external_pj;
    }
};

/// Energy of one access to an internal memory of this size.
[[nodiscard]] double internal_access_pj(const EnergyTable& table, Elements footprint);

/// Throws std::invalid_argument if the table has a register file and the counts lack its misses.
[[nodiscard]] Energy energy(const EnergyTable& table, const EnergyCounts& counts);

}  // namespace laminate
