#include "papers/machine_view.h"

namespace laminate {

InputError machine_error(const Machine& machine, const std::string& what) {
    return InputError("machine " + machine.name + ": " + what);
}

int64_t element_bits(const Machine& machine, PartialSums sums) {
    std::vector<int64_t> others{machine.bits.weight, machine.bits.output};
    if (sums == PartialSums::as_wide) others.push_back(machine.bits.partial_sum);
    for (const int64_t bits : others) {
        if (bits != machine.bits.input)
            throw machine_error(
                machine,
                "elements of " + std::to_string(machine.bits.input) + " and " +
                    std::to_string(bits) + " bits, expected one width for maps" +
                    (sums == PartialSums::as_wide ? ", weights and partial sums" : " and weights"));
    }
    return machine.bits.input;
}

std::vector<size_t> shared_hierarchy(const Machine& machine) {
    std::vector<size_t> levels = machine.hierarchy(Operand::input);
    for (const Operand operand : all_operands) {
        if (machine.hierarchy(operand) != levels)
            throw machine_error(
                machine,
                "operands with memories of their own, expected memories that all operands share");
    }
    return levels;
}

}  // namespace laminate
