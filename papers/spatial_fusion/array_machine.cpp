#include "papers/spatial_fusion/array_machine.h"

#include "base/error.h"
#include "base/units.h"

namespace laminate::spatial_fusion {

namespace {

/// The mean energy of reading and writing one element.
double element_pj(const Memory& memory, int64_t bits) {
    const auto of = [&](const WordAccess& access) {
        const int64_t moved =
            ceil_div(bits, access.smallest_access_bits) * access.smallest_access_bits;
        return access.word_pj * static_cast<double>(moved) / static_cast<double>(access.word_bits);
    };
    return (of(memory.read) + of(memory.write)) / 2;
}

}  // namespace

ArrayMachine array_machine(const Machine& machine, std::optional<int64_t> element_bits) {
    const auto refuse = [&](const std::string& what) -> InputError {
        return InputError("machine " + machine.name + ": " + what);
    };
    ArrayMachine result;
    result.name = machine.name;
    if (machine.axes.size() != 2 || machine.axes[0].loop || machine.axes[1].loop)
        throw refuse("found an array of " + std::to_string(machine.axes.size()) +
                     " axes, expected two without loops: columns and rows of PEs");
    result.columns = machine.axes[0].lanes;
    result.rows = machine.axes[1].lanes;
    const std::vector<size_t> levels = machine.hierarchy(Operand::input);
    for (const Operand operand : all_operands) {
        if (machine.hierarchy(operand) != levels || levels.size() != 3)
            throw refuse(
                "expected three memories that all operands share: registers, one on chip, "
                "external");
    }
    const Memory& registers = machine.memories[levels[0]];
    if (machine.copies(registers) != machine.mac_count())
        throw refuse("memory " + registers.name + ": expected registers of every PE");
    const Memory& on_chip = machine.memories[levels[1]];
    if (machine.copies(on_chip) != 1)
        throw refuse("memory " + on_chip.name + ": expected one copy");
    const Memory& external = machine.memories[levels[2]];
    for (const int64_t bits : {machine.bits.weight, machine.bits.output}) {
        if (bits != machine.bits.input)
            throw refuse("elements of " + std::to_string(machine.bits.input) + " and " +
                         std::to_string(bits) + " bits, expected one width");
    }
    result.element_bits = element_bits.value_or(machine.bits.input);
    if (result.element_bits % 8 != 0 || result.element_bits < 8)
        throw refuse("elements of " + std::to_string(result.element_bits) +
                     " bits, expected whole bytes");
    result.on_chip_bytes = on_chip.capacity_bits / 8;
    result.register_bytes = registers.capacity_bits / 8;
    if (result.element_bits == machine.bits.input) result.mac_pj = machine.mac_pj;
    result.on_chip_pj = element_pj(on_chip, result.element_bits);
    result.dram_pj = element_pj(external, result.element_bits);
    const MachineConstant* weights = machine.constant("register_weight_bytes");
    const MachineConstant* inputs = machine.constant("register_input_bytes");
    const MachineConstant* outputs = machine.constant("register_output_bytes");
    if (weights != nullptr && inputs != nullptr && outputs != nullptr)
        result.register_sections = RegisterSections{static_cast<int64_t>(inputs->value),
                                                    static_cast<int64_t>(weights->value),
                                                    static_cast<int64_t>(outputs->value)};
    const auto constant = [&](const std::string& name) {
        const MachineConstant* found = machine.constant(name);
        if (found == nullptr || found->value <= 0)
            throw refuse("no constant \"" + name + "\" above 0; machines/hwff_1.json has it");
        return found->value;
    };
    result.dram_bytes_per_cycle = constant("dram_bytes_per_cycle");
    result.on_chip_accesses_per_mac = constant("on_chip_accesses_per_mac");
    result.ctc_divisor = constant("ctc_divisor");
    return result;
}

}  // namespace laminate::spatial_fusion
