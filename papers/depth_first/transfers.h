// What one memory of an operand moves in each of four directions: a tile's elements per period.
#pragma once

#include <cmath>
#include <cstdint>

#include "base/indexed.h"
#include "scheduler/machine/machine.h"

namespace laminate::depth_first {

/// One direction. Nothing moves where `count` is 0.
struct PeriodicTransfer {
    double amount = 0;  ///< elements per period
    double period = 0;  ///< cycles
    double count = 0;   ///< periods
    int64_t bits = 0;   ///< of an element
    /// Cycles that the transfer occupies a port in each period.
    [[nodiscard]] double cycles(const WordAccess& access) const {
        return std::ceil(amount * static_cast<double>(bits) /
                         static_cast<double>(access.word_bits));
    }
};

using Transfers = PerEnum<PeriodicTransfer, Transfer, 4>;

}  // namespace laminate::depth_first
