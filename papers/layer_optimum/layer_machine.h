// What the model of one layer needs of a machine: the banked buffer below external memory, and the
// PE array with its registers.
#pragma once

#include <cstdint>
#include <optional>

#include "papers/layer_optimum/bank_division.h"
#include "papers/layer_optimum/register_mapping.h"
#include "scheduler/machine/machine.h"

namespace laminate {

struct LayerMachine {
    int64_t word_bits = 0;
    BankedBuffer buffer;
    std::optional<RegisterArray> registers;  ///< none where the buffer is the lowest memory
};

/// Throws InputError, naming the machine, where widths of words differ, where operands have
/// memories of their own, where the memory below the highest has fewer than three banks, or where a
/// memory between it and the array is no register file of every PE.
[[nodiscard]] LayerMachine layer_machine(const Machine& machine);

}  // namespace laminate
