// ConvFusion's formulas for one unfused layer, as printed (IEEE Access 2021, sections IV-B to
// IV-D), for comparison only. two_level.h counts what is executed; docs/convfusion.md lists where
// the formulas differ from that, and its examples test this file.
//
// The formulas are read literally except in two places that cannot be computed as printed. F holds
// the loops CL <= l < SL: the set is printed with CL < l, but the text and Figure 2 fold the loop
// of CL itself. GT_X, which is never defined, is taken for GE_X.
#pragma once

#include <vector>

#include "scheduler/counts/counts.h"
#include "scheduler/schedule/problem.h"
#include "scheduler/schedule/schedule.h"

namespace laminate::convfusion {

/// Elements and MACs, by the paper's names.
struct LayerFormulas {
    Elements buf_w;  ///< IV-B.1
    Elements buf_x;  ///< IV-B.2
    Elements buf_y;  ///< IV-B.3
    Elements acc_w;  ///< IV-C.1, Vol_W * Trans_W
    Elements acc_x;  ///< IV-C.2, Vol_X * Trans_X
    Elements acc_y;  ///< IV-C.3
    Macs macs;       ///< IV-D, PMACs * OVol * Trans_X
    [[nodiscard]] Elements accesses() const { return acc_x + acc_w + acc_y; }
    [[nodiscard]] Elements footprint() const { return buf_x + buf_w + buf_y; }
};

/// For a group of one ungrouped layer without strips, in which every level is an inner loop or the
/// innermost outer loop (III-C); throws InputError otherwise. The formulas ignore padding and
/// dilation.
[[nodiscard]] LayerFormulas formulas(const LayerProblem& problem, const GroupSchedule& group);

/// Fewest accesses of a fused segment (one or more layers, producers first) in the paper's model,
/// in which everything crosses once: the first layer's input of (D - 1) S + K rows and columns,
/// which include zero padding and the gaps of strides; all weights; and the last layer's output.
[[nodiscard]] Elements fewest_accesses(const std::vector<LayerProblem>& segment);

}  // namespace laminate::convfusion
