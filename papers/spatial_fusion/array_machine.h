// What the model needs of a machine: an array of PEs with registers, one on-chip memory that all
// tensors share, external memory, and the constants that the paper does not give. HW-Flow-Fusion
// Tables 3 and 4; machines/hwff_1.json to hwff_6.json.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "scheduler/machine/machine.h"

namespace laminate::spatial_fusion {

struct ArrayMachine {
    std::string name;
    int64_t columns = 1;  ///< PEx, the first axis of the array
    int64_t rows = 1;     ///< PEy
    int64_t on_chip_bytes = 0;
    int64_t register_bytes = 0;  ///< of one PE
    /// Bytes for weights, inputs and partial sums of a PE, where the machine file gives
    /// register_weight_bytes, register_input_bytes, register_output_bytes.
    std::optional<std::array<int64_t, 3>> register_sections;
    int64_t element_bits = 8;
    std::optional<double> mac_pj;  ///< none where the machine prices MACs of another width
    double on_chip_pj = 0;         ///< an element, read or write
    double dram_pj = 0;
    double dram_bytes_per_cycle = 0;  ///< constant of the machine file
    double on_chip_accesses_per_mac =
        0;  ///< same: elements that the array takes from or gives to the on-chip memory
    double ctc_divisor = 0;  ///< same: CTC = operations / (ctc_divisor x elements moved)

    [[nodiscard]] int64_t element_bytes() const { return element_bits / 8; }
    /// Elements that fit on chip.
    [[nodiscard]] int64_t capacity() const { return on_chip_bytes / element_bytes(); }
};

/// `element_bits`: of all tensors instead of the machine's. Throws InputError, naming the machine,
/// where the array has not two axes without loops, where memories are not registers of every PE,
/// one on-chip memory and external memory, where elements are no whole bytes of one width, or where
/// a constant is missing.
[[nodiscard]] ArrayMachine array_machine(const Machine& machine,
                                         std::optional<int64_t> element_bits = {});

}  // namespace laminate::spatial_fusion
