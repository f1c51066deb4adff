#include "scheduler/counts/energy.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "base/error.h"
#include "base/json_object.h"
#include "scheduler/machine/embedded_machines.h"

namespace laminate {

EnergyTable parse_energy_table(const std::string& json, const std::string& where) {
    const nlohmann::json parsed = parse_json(json, where);
    JsonObject file(parsed, where);
    EnergyTable table;
    table.name = file.header("laminate.energy_table");
    table.element_bits = file.positive_sourced_number("element_bits");
    table.mac_pj = file.sourced_number("mac_pj");
    table.external_access_pj = file.sourced_number("external_access_pj");
    table.internal_accesses_per_mac = file.sourced_number("internal_accesses_per_mac");
    table.internal_access_base_pj = file.sourced_number("internal_access_base_pj");
    table.internal_access_pj_per_root_bit = file.sourced_number("internal_access_pj_per_root_bit");
    if (file.has("bank_bits") || file.has("bank_select_fraction_per_log"))
        table.banks = {file.positive_sourced_number("bank_bits"),
                       file.sourced_number("bank_select_fraction_per_log")};
    if (file.has("register_file_elements") || file.has("register_file_access_pj")) {
        table.register_file = {
            Elements(static_cast<int64_t>(file.positive_sourced_number("register_file_elements"))),
            file.sourced_number("register_file_access_pj")};
    }
    file.refuse_other_keys();
    return table;
}

std::vector<std::string> energy_table_names() { return names_of(embedded_energy_tables()); }

EnergyTable open_energy_table(const std::string& name_or_file) {
    const FoundFile found = find_file(embedded_energy_tables(), "energy table", name_or_file);
    return parse_energy_table(found.text, found.where);
}

EnergyCounts energy_counts(const std::vector<GroupCounts>& groups, Elements footprint) {
    EnergyCounts counts;
    for (const GroupCounts& group : groups) {
        counts.macs += group.macs();
        counts.external_reads += group.input_reads() + group.weight_reads() + group.output_reads;
        counts.external_writes += group.output_writes;
    }
    counts.footprint = footprint;
    return counts;
}

double internal_access_pj(const EnergyTable& table, Elements footprint) {
    const double bits = table.element_bits * static_cast<double>(footprint.value());
    const auto one_memory = [&](double size) {
        return table.internal_access_base_pj +
               table.internal_access_pj_per_root_bit * std::sqrt(size);
    };
    if (!table.banks || bits == 0) return one_memory(bits);
    const double count = std::ceil(bits / table.banks->bits);
    return one_memory(std::min(bits, table.banks->bits)) *
           (1 + table.banks->select_fraction_per_log * std::log(count));
}

Energy energy(const EnergyTable& table, const EnergyCounts& counts) {
    const auto operand_accesses =
        table.internal_accesses_per_mac * static_cast<double>(counts.macs.value());
    const Elements accesses = counts.external_reads + counts.external_writes;
    Energy energy;
    energy.macs_pj = table.mac_pj * static_cast<double>(counts.macs.value());
    energy.external_pj = table.external_access_pj * static_cast<double>(accesses.value());
    auto internal_accesses = static_cast<double>(counts.external_reads.value());
    if (table.register_file) {
        if (!counts.register_file_misses)
            throw std::invalid_argument("energy: misses of the register file are not known");
        energy.register_file_pj = table.register_file->access_pj * operand_accesses;
        internal_accesses += static_cast<double>(counts.register_file_misses->value());
    } else {
        internal_accesses += operand_accesses;
    }
    energy.internal_pj = internal_access_pj(table, counts.footprint) * internal_accesses;
    return energy;
}

}  // namespace laminate
