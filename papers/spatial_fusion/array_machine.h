// The machine as the model sees it: an array of PEs with registers, one on-chip memory that all
// tensors share, external memory, and constants that the paper does not give. HW-Flow-Fusion Tables
// 3 and 4; machines/hwff_1.json to hwff_6.json.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/indexed.h"
#include "scheduler/machine/machine.h"

namespace laminate::spatial_fusion {

/// Bytes of a PE's registers for each operand.
using RegisterSections = PerEnum<int64_t, Operand, all_operands.size()>;

struct ArrayMachine {
    std::string name;
    int64_t columns = 1;  ///< PEx, the first axis of the array
    int64_t rows = 1;     ///< PEy
    int64_t on_chip_bytes = 0;
    int64_t register_bytes = 0;  ///< of one PE
    /// The machine file's register_weight_bytes, register_input_bytes and register_output_bytes;
    /// none if it lacks one.
    std::optional<RegisterSections> register_sections;
    int64_t element_bits = 8;
    std::optional<double> mac_pj;  ///< none if the machine prices MACs of another width
    double on_chip_pj = 0;         ///< per element, read or written
    double dram_pj = 0;            ///< per element, read or written
    // Constants of the machine file:
    double dram_bytes_per_cycle = 0;
    double on_chip_accesses_per_mac = 0;  ///< elements between the array and the on-chip memory
    double ctc_divisor = 0;               ///< CTC = operations / (ctc_divisor x elements moved)

    [[nodiscard]] int64_t element_bytes() const { return element_bits / 8; }
    /// Elements that fit on chip.
    [[nodiscard]] int64_t capacity() const { return on_chip_bytes / element_bytes(); }
};

/// `element_bits` replaces the machine's width of all tensors. Throws InputError, naming the
/// machine, unless the array has two axes without loops; the memories are registers of every PE,
/// one on-chip memory and external memory; elements are whole bytes of one width; and all constants
/// are there.
[[nodiscard]] ArrayMachine array_machine(const Machine& machine,
                                         std::optional<int64_t> element_bits = {});

}  // namespace laminate::spatial_fusion
