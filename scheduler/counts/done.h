// What the code of a group's kernels does, predicted from the schedule alone, beside what the
// schedule needs: a kernel computes whole tiles, vectors and blocks of channels, so it does more
// than is scheduled, and minimal filtering multiplies less. docs/counting.md section 7.
//
// Measured on the code itself by instrumentation/deployed.h.
#pragma once

#include <string>
#include <vector>

#include "base/units.h"
#include "scheduler/schedule/schedule.h"

namespace laminate {

/// One nest, for one image. `scheduled` are the multiplications of the boxes that its loops ask
/// for, `done` those that its kernel executes with weights or transformed weights.
struct NestDone {
    std::string layer;
    Macs scheduled;
    Macs done;
    friend bool operator==(const NestDone&, const NestDone&) = default;
};

struct DoneCounts {
    std::vector<NestDone> nests;  ///< in schedule order, sink last
    /// Elements of external inputs that are copied into line buffers. Kernels that read the
    /// caller's arrays in place copy nothing that is counted here.
    Elements copied;
    Elements output_reads;   ///< partial sums of Y
    Elements output_writes;  ///< elements of Y
    Bytes scratch;           ///< of one thread
    friend bool operator==(const DoneCounts&, const DoneCounts&) = default;

    [[nodiscard]] Macs scheduled() const {
        Macs sum;
        for (const NestDone& nest : nests) sum += nest.scheduled;
        return sum;
    }
    [[nodiscard]] Macs done() const {
        Macs sum;
        for (const NestDone& nest : nests) sum += nest.done;
        return sum;
    }
};

/// Every nest of the group has a kernel; its strips are executed from first to last by one thread.
[[nodiscard]] DoneCounts done_counts(const GroupSchedule& group,
                                     const std::vector<LayerProblem>& problems);

/// The bytes of one thread's scratch block alone, which take no boxes to know.
[[nodiscard]] Bytes scratch_bytes(const GroupSchedule& group,
                                  const std::vector<LayerProblem>& problems);

/// Empty when equal, else one line naming every field that differs.
[[nodiscard]] std::string difference(const DoneCounts& a, const std::string& a_name,
                                     const DoneCounts& b, const std::string& b_name);

}  // namespace laminate
