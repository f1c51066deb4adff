#include "scheduler/models/energy/energy.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>

#include "base/error.h"
#include "base/files.h"

namespace laminate {

namespace {

/// The numbers of a machine file, with their sources checked and the keys that were asked for noted.
class Numbers {
public:
    Numbers(const nlohmann::json& file, const std::string& where) : file_(file), where_(where) {}

    [[nodiscard]] bool has(const std::string& key) const { return file_.contains(key); }

    [[nodiscard]] double operator()(const std::string& key) {
        known_.insert(key);
        if (!has(key)) fail(key, "missing");
        const nlohmann::json& entry = file_[key];
        if (!entry.is_object() || !entry.contains("value") || !entry["value"].is_number())
            fail(key, "found " + entry.dump());
        if (!entry.contains("source") || !entry["source"].is_string() || entry["source"].get<std::string>().empty())
            fail(key, "has no source");
        const auto value = entry["value"].get<double>();
        if (value < 0) fail(key, "found " + entry["value"].dump());
        return value;
    }
    /// As above, but 0 is refused too.
    [[nodiscard]] double positive(const std::string& key) {
        const double value = (*this)(key);
        if (value == 0) fail(key, "found 0");
        return value;
    }

    void refuse_other_keys() const {
        std::string known;
        for (const std::string& key : known_) known += (known.empty() ? "" : ", ") + key;
        for (const auto& [key, entry] : file_.items()) {
            if (key == "schema" || key == "version" || key == "name" || known_.contains(key)) continue;
            throw InputError(where_ + ": unknown key \"" + key + "\"; known: " + known);
        }
    }

private:
    [[noreturn]] void fail(const std::string& key, const std::string& found) const {
        throw InputError(where_ + ": " + key + ": " + found + R"(; expected {"value": number >= 0, "source": text})");
    }

    const nlohmann::json& file_;
    const std::string& where_;
    std::set<std::string> known_;
};

}  // namespace

EnergyTable parse_energy_table(const std::string& json, const std::string& where) {
    const nlohmann::json file = nlohmann::json::parse(json, nullptr, false);
    if (!file.is_object() || !file.contains("schema") || file["schema"] != "laminate.machine")
        throw InputError(where + R"(: no machine file; expected JSON with "schema": "laminate.machine")");
    if (!file.contains("version") || file["version"] != 1)
        throw InputError(where + ": version: found " + (file.contains("version") ? file["version"].dump() : "none") +
                         ", expected 1");
    if (!file.contains("name") || !file["name"].is_string()) throw InputError(where + ": name: missing; expected text");
    EnergyTable table;
    table.name = file["name"].get<std::string>();
    Numbers number(file, where);
    table.element_bits = number.positive("element_bits");
    table.mac_pj = number("mac_pj");
    table.external_access_pj = number("external_access_pj");
    table.internal_accesses_per_mac = number("internal_accesses_per_mac");
    table.internal_access_base_pj = number("internal_access_base_pj");
    table.internal_access_pj_per_root_bit = number("internal_access_pj_per_root_bit");
    if (number.has("bank_bits") || number.has("bank_select_fraction_per_log"))
        table.banks = {number.positive("bank_bits"), number("bank_select_fraction_per_log")};
    if (number.has("register_file_elements") || number.has("register_file_access_pj")) {
        table.register_file = {Elements(static_cast<int64_t>(number.positive("register_file_elements"))),
                               number("register_file_access_pj")};
    }
    number.refuse_other_keys();
    return table;
}

EnergyTable load_energy_table(const std::filesystem::path& file) {
    return parse_energy_table(read_file(file), file.string());
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
        return table.internal_access_base_pj + table.internal_access_pj_per_root_bit * std::sqrt(size);
    };
    if (!table.banks || bits == 0) return one_memory(bits);
    const double count = std::ceil(bits / table.banks->bits);
    return one_memory(std::min(bits, table.banks->bits)) * (1 + table.banks->select_fraction_per_log * std::log(count));
}

Energy energy(const EnergyTable& table, const EnergyCounts& counts) {
    const auto operand_accesses = table.internal_accesses_per_mac * static_cast<double>(counts.macs.value());
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
