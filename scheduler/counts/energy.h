// Energy of a network's schedule from its counts: ConvFusion (IEEE Access 2021) section VII. Counts
// first, prices after: nothing here counts.
//
//   MACs * mac_pj  +  register file  +  internal memory  +  external accesses * external_access_pj
//
// Internal memory (SRAM) is as large as the schedule's footprint, s bits; one access takes E(s) =
// base + per_root_bit
// * sqrt(s) pJ, in a banked memory E(min(s, bank)) * (1 + fraction * log(number of banks)). Without
// a register file every MAC makes four internal accesses, and every external read one more, which
// writes what was read. With one, the four go to the register file, and internal memory sees
// instead the accesses of the best schedule that fits into the register file (the paper's
// approximation of a third level; it does not grow when the chosen schedule recomputes).
//
// Energy grows with MACs, accesses and footprint, so the best schedule is on the front of these
// three axes: MACs must be an axis wherever recomputation is allowed. Exactly that holds for the
// sum of reads and writes at fixed writes; the paper's extra term per external read, 5 to 40 pJ
// against 1120, is no function of the sum.
//
//   const EnergyTable table = open_energy_table("convfusion-40nm");  // or a file
//   const Energy e = energy(table, energy_counts(groups, total(groups).live_total));
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "scheduler/counts/counts.h"

namespace laminate {

/// An energy table (machines/README.md). pj: picojoules per access of one element.
struct EnergyTable {
    struct Banks {
        double bits = 0;                     ///< of one bank
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
    std::optional<Banks> banks;  ///< none: one SRAM of any size
    std::optional<RegisterFile> register_file;
};

/// Those that come with the program.
[[nodiscard]] std::vector<std::string> energy_table_names();
/// Throws InputError: no such name or file, no JSON, a key that is missing, unknown, negative or
/// has no source.
[[nodiscard]] EnergyTable open_energy_table(const std::string& name_or_file);
/// `where` begins the messages.
[[nodiscard]] EnergyTable parse_energy_table(const std::string& json, const std::string& where);

/// What is priced, of one image.
struct EnergyCounts {
    Macs macs;
    Elements external_reads;   ///< X, W, partial sums of Y
    Elements external_writes;  ///< Y
    Elements footprint;        ///< elements of internal memory
    /// Accesses of the schedule with the fewest in register_file.elements; only for tables with a
    /// register file.
    std::optional<Elements> register_file_misses;
};
/// `footprint`: live_total or sum_total of the network, whichever the memory is built for.
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

/// One access of an internal memory of this size.
[[nodiscard]] double internal_access_pj(const EnergyTable& table, Elements footprint);

/// Throws std::invalid_argument when the table has a register file and the counts say nothing of
/// its misses.
[[nodiscard]] Energy energy(const EnergyTable& table, const EnergyCounts& counts);

}  // namespace laminate
