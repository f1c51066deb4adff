// What the code of a group's kernels does, predicted from the schedule alone, beside what the
// schedule needs: a kernel computes whole tiles, vectors and blocks of channels, so it does more
// than is scheduled, and minimal filtering multiplies less. docs/counting.md section 7.
//
// Measured on the code itself by instrumentation/deployed.h.
#pragma once

#include <string>
#include <vector>

#include "base/units.h"
#include "scheduler/schedule/buffer_shapes.h"
#include "scheduler/schedule/schedule.h"

namespace laminate {

/// Elements that the schedule moves or computes, and what the code does instead.
struct ElementsDone {
    Elements scheduled;
    Elements done;
    ElementsDone& operator+=(const ElementsDone& other) {
        scheduled += other.scheduled;
        done += other.done;
        return *this;
    }
    friend bool operator==(const ElementsDone&, const ElementsDone&) = default;
};

/// One nest, for one image. `scheduled` are the multiplications of the boxes that its loops ask
/// for, `done` those that its kernel executes with weights or transformed weights.
struct NestDone {
    std::string layer;
    Macs scheduled;
    Macs done;
    /// Elements of its output. Done: stored by its kernel, with the columns behind a row's end for
    /// which a line buffer has room.
    ElementsDone computed;
    /// Elements of its weights that come in. Done: read for the first time in a lifetime, with the
    /// channels of zero weights that fill up the last ones. The code cannot drop weights while a
    /// kernel runs, so lifetimes that the schedule begins inside what a kernel executes in one go
    /// are one.
    ElementsDone weights;
    friend bool operator==(const NestDone&, const NestDone&) = default;
};

/// One external input.
struct InputDone {
    std::string tensor;
    /// Done: copied into line buffers, or read in place for the first time in a lifetime.
    ElementsDone reads;
    friend bool operator==(const InputDone&, const InputDone&) = default;
};

struct DoneCounts {
    std::vector<NestDone> nests;    ///< in schedule order, sink last
    std::vector<InputDone> inputs;  ///< in the order of group_tensors()
    ElementsDone output_reads;      ///< partial sums of Y
    ElementsDone output_writes;     ///< elements of Y
    Bytes scratch;                  ///< of one thread
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
    [[nodiscard]] ElementsDone input_reads() const {
        ElementsDone sum;
        for (const InputDone& input : inputs) sum += input.reads;
        return sum;
    }
    [[nodiscard]] ElementsDone weight_reads() const {
        ElementsDone sum;
        for (const NestDone& nest : nests) sum += nest.weights;
        return sum;
    }
    [[nodiscard]] ElementsDone computed() const {
        ElementsDone sum;
        for (const NestDone& nest : nests) sum += nest.computed;
        return sum;
    }
};

/// Every nest of the group has a kernel; its strips are executed from first to last by one thread.
[[nodiscard]] DoneCounts done_counts(const GroupSchedule& group,
                                     const std::vector<LayerProblem>& problems);

/// The bytes of one thread's scratch block alone, which take no boxes to know.
/// `loops`: the group's, if known.
[[nodiscard]] Bytes scratch_bytes(const GroupSchedule& group,
                                  const std::vector<LayerProblem>& problems,
                                  GroupLoops* loops = nullptr);

/// Empty when equal, else one line naming every field that differs.
[[nodiscard]] std::string difference(const DoneCounts& a, const std::string& a_name,
                                     const DoneCounts& b, const std::string& b_name);

}  // namespace laminate
