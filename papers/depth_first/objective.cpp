#include "papers/depth_first/objective.h"

#include <stdexcept>

#include "base/error.h"

namespace laminate::depth_first {

const char* to_string(Objective objective) {
    switch (objective) {
        case Objective::energy:
            return "energy";
        case Objective::latency:
            return "latency";
        case Objective::energy_delay:
            return "edp";
    }
    throw std::logic_error("to_string(Objective)");
}

Objective parse_objective(const std::string& text) {
    for (const Objective objective :
         {Objective::energy, Objective::latency, Objective::energy_delay}) {
        if (text == to_string(objective)) return objective;
    }
    throw InputError("objective: found \"" + text + "\", expected one of energy, latency, edp");
}

double value(Objective objective, double energy_pj, int64_t latency_cycles) {
    switch (objective) {
        case Objective::energy:
            return energy_pj;
        case Objective::latency:
            return static_cast<double>(latency_cycles);
        case Objective::energy_delay:
            return energy_pj * static_cast<double>(latency_cycles);
    }
    throw std::logic_error("value(Objective)");
}

}  // namespace laminate::depth_first
