// The plain walker's (walker.h) view of a schedule: what happens in the body of each loop.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "base/units.h"
#include "instrumentation/boxes.h"
#include "instrumentation/fold_watch.h"
#include "instrumentation/presence.h"
#include "scheduler/schedule/problem.h"
#include "scheduler/schedule/schedule.h"

namespace laminate::walking {

/// How a nest's reads in the body of a level are found out.
enum class Where {
    here,    ///< the body is one of its own
    called,  ///< the body calls it: its output has this compute level
    inside,  ///< it hangs further inside: rehearsed
};
struct Reader {
    int nest = 0;
    int operand = 0;
    Where where = Where::here;
    size_t output = 0;  ///< called: which of the level's arrivals its output is
};
/// A buffer of which new elements arrive at a level.
struct Arrival {
    size_t buffer = 0;
    std::vector<Reader> readers;
};
/// What the schedule puts in the body of one level, and how often its loop has been there.
struct Site {
    std::vector<size_t> stored;
    std::vector<Arrival> computed;  ///< in execution order; Y is not in it
    bool writes_output = false;
    int64_t trip = 0;    ///< of the present execution of the loop
    int64_t bodies = 0;  ///< begun in all, rehearsals not counted
};
/// What is needed of a shared tensor on one axis alone, by the trips of the loops of that axis
/// around the body.
struct NeedsAlone {
    std::vector<const Site*> loops;
    std::map<std::vector<int64_t>, Interval> needs;
    [[nodiscard]] std::vector<int64_t> trips() const {
        std::vector<int64_t> numbers;
        for (const Site* loop : loops) numbers.push_back(loop->trip);
        return numbers;
    }
};
/// A buffer of the schedule but Y's.
struct Kept {
    enum class Kind { input, weights, intermediate };
    Kind kind = Kind::input;
    int nest = 0;  ///< of weights the layer, of an intermediate tensor the producer
    Placement placement{};
    bool is_shared = false;
    int64_t words = 1;  ///< of an element: weights move by whole kernels
    Presence present;
    FoldWatch watch{};
    Elements reads{};                   ///< external ones
    std::array<NeedsAlone, 3> alone{};  ///< shared: by axis
};

/// What the schedule says: where each buffer is stored, where its elements arrive, and who reads
/// them.
class WalkPlan {
public:
    /// Both outlive the plan.
    WalkPlan(const std::vector<LayerProblem>& problems, const GroupSchedule& group);
    // The sites are pointed at.
    WalkPlan(const WalkPlan&) = delete;
    WalkPlan& operator=(const WalkPlan&) = delete;

    [[nodiscard]] Site& site(Level level) {
        return level.is_root()
                   ? root_
                   : sites_[static_cast<size_t>(level.nest)][static_cast<size_t>(level.loop)];
    }

    std::vector<GroupTensor> tensors;
    std::vector<Kept> kept;  ///< by tensor, then the weights of each layer that has any
    /// Which buffers take part in the execution (index 0) and in the rehearsal for each nest k
    /// (index 1 + k); by buffer.
    std::vector<std::vector<bool>> takes_part;
    /// The innermost loop of each nest in whose body anything is stored, computed or written; by
    /// the same index, by nest.
    std::vector<std::vector<int>> last_site;

private:
    void place_tensors();
    void place_weights();
    template <class Dimension>
    [[nodiscard]] FoldWatch watch(const Placement& placement, int user, const Dimension& dimension);
    void place_shared(Kept& kept, int reader);
    void put_arrivals();
    void find_calls(Site& site) const;
    [[nodiscard]] Where where(int reader, Level level) const;
    void find_parts();
    [[nodiscard]] bool is_needed(const Site& site, size_t part) const;

    const std::vector<LayerProblem>& problems_;
    const GroupSchedule& group_;
    Site root_;
    std::vector<std::vector<Site>> sites_;  ///< by nest, by loop
};

}  // namespace laminate::walking
