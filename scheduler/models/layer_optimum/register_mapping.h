// Whether the registers of a PE array can serve a block computation without extra accesses of the buffer. CNNFlow section 6.
//
// Every loop may be spread over lanes of at most one axis of the array (its batch P; the product of the batches on an axis is the
// number of its lanes); each PE then works on ceil(block / P) consecutive iterations, in an order of its own that all PEs share, and holds words
// of the three tensors. No tensor has to come from the buffer twice when the PE can hold, of each, what its iterations touch inside
// the outermost loop that uses words of it again. That is a sufficient condition, exact for weights and outputs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "scheduler/machine/machine.h"
#include "scheduler/models/layer_optimum/bank_division.h"
#include "scheduler/models/layer_optimum/convolution.h"

namespace laminate {

/// Register files of equal size, one per PE of an array.
struct RegisterArray {
    std::vector<int64_t> lanes;  ///< of every axis of the array
    int64_t words = 0;           ///< of one PE, shared among the tensors
};

struct RegisterMapping {
    LoopExtents lanes{1, 1, 1, 1, 1, 1, 1};  ///< P of every loop
    std::string order;                       ///< of the loops within a PE, outermost first: "cmnfxyk"
    PerOperand words{};                      ///< of registers, at most RegisterArray::words together
};

/// All ways to spread loops over an array: 2772 for 12 x 14.
[[nodiscard]] std::vector<LoopExtents> lane_batches(const std::vector<int64_t>& lanes);

class RegisterMapper {
public:
    RegisterMapper(const ConvolutionProblem& problem, const RegisterArray& registers);
    /// A mapping of one block computation without extra accesses, the first in a fixed order; nothing where the condition finds none.
    [[nodiscard]] std::optional<RegisterMapping> without_extra_accesses(const LoopExtents& blocks) const;

private:
    const ConvolutionProblem& problem_;
    RegisterArray registers_;
    std::vector<LoopExtents> batches_;
    std::vector<std::string> orders_;
    std::array<TensorAccess, 3> access_;
};

}  // namespace laminate
