// ConvFusion's formulas for one layer that is not fused, as printed (IEEE Access 2021, sections
// IV-B to IV-D): for comparison only. Where execution differs from them two_level.h counts what is
// executed; docs/convfusion.md lists the differences, its examples are the test of this file.
//
// Read literally, with two exceptions where the print leaves nothing to compute: F holds the loops
// CL <= l < SL (the set is printed with CL < l, but the text and Figure 2 fold the loop of CL
// itself), and GT_X, which is never defined, is GE_X.
#pragma once

#include <vector>

#include "scheduler/counts/counts.h"
#include "scheduler/schedule/problem.h"
#include "scheduler/schedule/schedule.h"

namespace laminate::convfusion {

/// Elements and MACs under the paper's names.
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

/// A group of one ungrouped layer without strips, every level one of its inner loops or the
/// innermost outer loop (III-C); throws InputError otherwise. Padding and dilation do not occur in
/// the formulas and are not looked at.
[[nodiscard]] LayerFormulas formulas(const LayerProblem& problem, const GroupSchedule& group);

/// Fewest accesses of a fused segment (one layer or more, producers first) in the paper's model,
/// everything once: the first layer's input (D - 1) S + K rows and columns large, which holds its
/// zero padding and the gaps of its strides; all weights; the last layer's output.
[[nodiscard]] Elements fewest_accesses(const std::vector<LayerProblem>& segment);

}  // namespace laminate::convfusion
