#include "scheduler/machine/cpu_speed.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/json_object.h"
#include "scheduler/machine/embedded_machines.h"
#include "scheduler/schedule/kernels/kernel.h"

namespace laminate {

CpuSpeed parse_cpu_speed(const std::string& json, const std::string& where) {
    const nlohmann::json parsed = parse_json(json, where);
    JsonObject file(parsed, where);
    CpuSpeed speed;
    speed.name = file.header("laminate.cpu_speed");
    speed.about = file.text("about");
    speed.source = file.text("source");
    speed.second_level_cache = Bytes(file.positive_integer("second_level_cache_bytes"));
    speed.third_level_cache = Bytes(file.positive_integer("third_level_cache_bytes"));
    JsonObject terms = file.object("nanoseconds");
    for (const auto& [term, value] : parsed["nanoseconds"].items())
        speed.nanoseconds[term] = terms.number(term);
    file.refuse_other_keys();
    // A kernel without any time would look as if it took none.
    for (const KernelRow* row : kernel_table()) {
        const std::string prefix = std::string(row->name) + ".";
        const auto first = speed.nanoseconds.lower_bound(prefix);
        if (first == speed.nanoseconds.end() || !first->first.starts_with(prefix))
            terms.fail(prefix + "*", "none",
                       "a time of each kernel, as laminate machine measure -o writes them");
    }
    return speed;
}

std::string to_json(const CpuSpeed& speed) {
    nlohmann::ordered_json json{{"schema", "laminate.cpu_speed"},
                                {"version", 1},
                                {"name", speed.name},
                                {"about", speed.about},
                                {"source", speed.source},
                                {"second_level_cache_bytes", speed.second_level_cache.value()},
                                {"third_level_cache_bytes", speed.third_level_cache.value()},
                                {"nanoseconds", nlohmann::ordered_json::object()}};
    for (const auto& [term, value] : speed.nanoseconds)
        json["nanoseconds"][term] = std::round(value * 1e4) / 1e4;
    return json.dump(2) + "\n";
}

std::vector<std::string> cpu_speed_names() { return names_of(embedded_cpu_speeds()); }

CpuSpeed open_cpu_speed(const std::string& name_or_file) {
    const FoundFile found = find_file(embedded_cpu_speeds(), "speed of a processor", name_or_file);
    const CpuSpeed speed = parse_cpu_speed(found.text, found.where);
    if (std::ranges::count(cpu_speed_names(), name_or_file) > 0) return speed;
    // Work without a time would look as if it took none, and be chosen everywhere. Files of older
    // versions have fewer kinds of work.
    for (const auto& [term, unused] : usual_cpu_speed({.lanes = 1}).nanoseconds) {
        if (speed.nanoseconds.contains(term)) continue;
        throw InputError(found.where + ": nanoseconds." + term + ": found none, expected a time of " +
                         "each kind of work, as laminate machine measure -o writes them");
    }
    return speed;
}

CpuSpeed usual_cpu_speed(const VectorUnit& unit) {
    constexpr int64_t wide = 16;
    return open_cpu_speed(unit.lanes < wide          ? "avx2"
                          : unit.has_halves          ? "zen4"
                          : unit.adds_in_multipliers ? "xeon6"
                                                     : "avx512");
}

double nanoseconds_of(const std::map<std::string, double>& amounts, const CpuSpeed& speed) {
    double sum = 0;
    for (const auto& [term, amount] : amounts) {
        const auto found = speed.nanoseconds.find(term);
        if (found != speed.nanoseconds.end()) sum += amount * found->second;
    }
    return sum;
}

std::map<std::string, double> fitted_nanoseconds(const std::vector<TimedWork>& rows,
                                                 const LeastNanoseconds& least) {
    // Coordinate descent on the normal equations: convex, and each step has a closed form.
    std::set<std::string> names;
    for (const TimedWork& row : rows) {
        for (const auto& [term, amount] : row.amounts) names.insert(term);
    }
    const std::vector<std::string> terms(names.begin(), names.end());
    std::vector<std::vector<double>> columns(terms.size(), std::vector<double>(rows.size(), 0));
    for (size_t t = 0; t < terms.size(); ++t) {
        for (size_t n = 0; n < rows.size(); ++n) {
            const auto found = rows[n].amounts.find(terms[t]);
            if (found != rows[n].amounts.end()) columns[t][n] = found->second / rows[n].nanoseconds;
        }
    }
    std::vector<double> floors(terms.size(), 0), rest(rows.size(), 1);
    for (size_t t = 0; t < terms.size(); ++t) {
        if (terms[t].find(".products") != std::string::npos) floors[t] = least.product_vector;
        if (terms[t] == "memory.maps") floors[t] = least.map_vector;
        for (size_t n = 0; n < rows.size(); ++n) rest[n] -= floors[t] * columns[t][n];
    }
    std::vector<double> times = floors;
    constexpr int rounds = 20'000;
    constexpr double enough = 1e-10;
    for (int round = 0; round < rounds; ++round) {
        double change = 0;
        for (size_t t = 0; t < terms.size(); ++t) {
            double along = 0, length = 0;
            for (size_t n = 0; n < rows.size(); ++n) {
                along += columns[t][n] * rest[n];
                length += columns[t][n] * columns[t][n];
            }
            if (length == 0) continue;
            const double next = std::max(floors[t], times[t] + along / length);
            const double step = next - times[t];
            for (size_t n = 0; n < rows.size(); ++n) rest[n] -= step * columns[t][n];
            change = std::max(change, step * step * length);
            times[t] = next;
        }
        if (change < enough) break;
    }
    std::map<std::string, double> found;
    for (size_t t = 0; t < terms.size(); ++t) found[terms[t]] = times[t];
    return found;
}

}  // namespace laminate
