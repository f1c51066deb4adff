// Where a group over line buffers keeps its rows and transforms: the scratch block of one thread.
//
// A tensor lies as [row slot][channel][column], a ring of rows. It has the rows and channels of its
// buffer (buffer_shapes.h); a row has the buffer's columns, the padding around them, and room for
// the vectors that run over its end. Where channels or columns fold, the ring slides along them.
//
// A long chain needs few rows of a tensor from one step of its row loops to the next, and many while
// its reader works. Such a ring has two parts: rows that stay, in a ring of their own, and rows that
// come in with a step, in a block that other tensors use at other times. What a later step needs
// moves from the block to the ring when the step ends. Where a strip begins, the ring holds nothing
// yet and takes the first of the rows that come in.
//
// Behind rings and blocks follow what nests use in turn: a block of transformed weights, where a chain
// has so many that they are transformed again and again, and patches and products of Winograd's
// filtering.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/size_formula.h"
#include "scheduler/schedule/buffer_shapes.h"
#include "scheduler/schedule/kernels/layout/winograd_rows.h"
#include "scheduler/schedule/schedule.h"
#include "scheduler/schedule/tensor_sizes.h"

namespace laminate {

/// The two parts of a ring.
struct RingParts {
    struct Block {
        int64_t rows = 0;     ///< that come in with a step
        int64_t in_ring = 0;  ///< of these, the first ones, for which the ring has room
        int64_t offset = 0;   ///< in the scratch block: where the others lie
    };
    int64_t kept = 0;           ///< rows of the ring
    std::vector<Block> blocks;  ///< for each number of rows that come in together
};

/// Of one tensor; extents and offsets in elements.
struct RingLayout {
    int64_t rows = 1;
    int64_t channels = 1;
    int64_t pitch = 16;       ///< from one channel's row to the next channel's
    int64_t columns = 0;      ///< of these, the ones of the buffer (docs/counting.md section 5)
    int64_t padding = 0;      ///< and those of padding around them; the rest is for vectors
    int64_t coordinates = 1;  ///< rows of the whole tensor
    int64_t offset = 0;       ///< in the scratch block
    std::optional<Slide> channel_slide;
    std::optional<Slide> column_slide;
    std::optional<RingParts> parts;
    [[nodiscard]] int64_t row_elements() const { return channels * pitch; }
    [[nodiscard]] int64_t elements() const { return (parts ? parts->kept : rows) * row_elements(); }
    /// What a ring in one part has beyond its buffer.
    [[nodiscard]] int64_t overhead() const { return rows * channels * (pitch - columns); }
};

struct LinePlan {
    int64_t lanes = 1;
    std::vector<RingLayout> rings;                      ///< by tensor, as group_tensors()
    std::vector<std::optional<WinogradTile>> winograd;  ///< by nest; none: another kernel
    std::vector<char> has_whole_rows;  ///< by nest with such a tile: whether its boxes have
    int64_t blocks_offset = 0;   ///< of what comes in with steps
    int64_t weights_offset = 0;  ///< of weights that code transforms
    int64_t transforms_offset = 0;
    int64_t scratch_elements = 0;
};

/// An external input that comes in as short pieces of rows of some channels at a time: no processor
/// foresees where the next ones lie, so code asks for them ahead. Channels from one trip of the
/// innermost loop around to the next; none: nothing is asked for.
[[nodiscard]] std::optional<int64_t> channels_asked_ahead(const GroupSchedule& group,
                                                          const std::vector<LayerProblem>& problems,
                                                          const GroupTensor& tensor);

/// Every nest of the group has a kernel of KernelScope::nest. `loops`: the group's, if known.
[[nodiscard]] LinePlan line_plan(const GroupSchedule& group,
                                 const std::vector<LayerProblem>& problems,
                                 GroupLoops* loops = nullptr);

/// What of a plan depends on the size of the picture, in formulas; elements.
struct LineSizes {
    struct Ring {
        bool rotates = true;  ///< else it has every row of the tensor
        SizeFormula rows;
        SizeFormula pitch;
        SizeFormula offset;
    };
    std::vector<Ring> rings;  ///< by tensor
    SizeFormula transforms_offset;
    SizeFormula scratch_elements;
};
/// The plan's own numbers.
[[nodiscard]] LineSizes line_sizes(const LinePlan& plan);
/// The same of any size. `plan`: at the size of the problems; its rings become whole, its rows of
/// Winograd's filtering those of any kind. Throws InputError as kept_rows().
[[nodiscard]] LineSizes open_line_sizes(LinePlan& plan, const GroupSchedule& group,
                                        const std::vector<LayerProblem>& problems,
                                        const TensorSizes& sizes);

}  // namespace laminate
