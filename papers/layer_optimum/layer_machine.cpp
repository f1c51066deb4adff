#include "papers/layer_optimum/layer_machine.h"

#include <string>

#include "papers/machine_view.h"

namespace laminate {

LayerMachine layer_machine(const Machine& machine) {
    const auto refuse = [&](const std::string& what) { return machine_error(machine, what); };
    LayerMachine result;
    result.word_bits = element_bits(machine, PartialSums::as_wide);
    const std::vector<size_t> levels = shared_hierarchy(machine);
    if (levels.size() < 2 || levels.size() > 3) {
        throw refuse(std::to_string(levels.size()) +
                     " memories, expected external memory, a banked buffer and perhaps registers");
    }
    const Memory& buffer = machine.memories[levels[levels.size() - 2]];
    if (buffer.banks < 3) {
        throw refuse(
            "memory " + buffer.name + " has " + std::to_string(buffer.banks) +
            " banks, expected three or more, one at least for each of input, weights and output");
    }
    result.buffer = {buffer.banks, buffer.capacity_bits / buffer.banks / result.word_bits};
    if (result.buffer.bank_words < 1)
        throw refuse("memory " + buffer.name + ": a bank holds no word");
    if (levels.size() == 3) {
        const Memory& registers = machine.memories[levels[0]];
        if (machine.copies(registers) != machine.mac_count())
            throw refuse("memory " + registers.name +
                         " is not one for every lane, expected registers of every PE");
        result.registers.emplace();
        for (const ArrayAxis& axis : machine.axes) result.registers->lanes.push_back(axis.lanes);
        result.registers->words = registers.capacity_bits / result.word_bits;
    }
    return result;
}

}  // namespace laminate
