// What one memory of an operand moves in each direction. Of the single-layer model alone.
#pragma once

#include <cmath>
#include <cstdint>
#include <stdexcept>

#include "papers/depth_first/single_layer.h"

namespace laminate::depth_first {

/// Per transfer of one memory: elements per period, period and number of periods in cycles, bits of
/// an element. No periods: nothing moves.
struct MappedLayer::Transfers {
    struct One {
        double amount = 0;
        double period = 0;
        double count = 0;
        int64_t bits = 0;
        /// Of a port, each period.
        [[nodiscard]] double cycles(const WordAccess& access) const {
            return std::ceil(amount * static_cast<double>(bits) /
                             static_cast<double>(access.word_bits));
        }
    };
    One read_to_lower, write_from_lower, read_to_higher, write_from_higher;
    [[nodiscard]] const One& operator[](Transfer transfer) const {
        switch (transfer) {
            case Transfer::write_from_lower:
                return write_from_lower;
            case Transfer::write_from_higher:
                return write_from_higher;
            case Transfer::read_to_lower:
                return read_to_lower;
            case Transfer::read_to_higher:
                return read_to_higher;
        }
        throw std::logic_error("Transfers");
    }
};

}  // namespace laminate::depth_first
