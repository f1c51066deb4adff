// The schedule in the plain walker (walker.h): what happens in the body of each loop.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "base/indexed.h"
#include "base/units.h"
#include "instrumentation/boxes.h"
#include "instrumentation/fold_watch.h"
#include "instrumentation/presence.h"
#include "instrumentation/walk_axes.h"
#include "scheduler/schedule/problem.h"
#include "scheduler/schedule/schedule.h"

namespace laminate::walking {

/// How to find what a nest reads in the body of a level.
enum class Where {
    here,    ///< the body belongs to the nest
    called,  ///< the body calls the nest: its output has this compute level
    inside,  ///< the nest is called further inside, so the body is rehearsed
};
struct Reader {
    int nest = 0;
    int operand = 0;
    Where where = Where::here;
    size_t output = 0;  ///< for `called`: which of the level's arrivals is its output
};
/// A buffer whose new elements arrive at a level.
struct Arrival {
    size_t buffer = 0;
    std::vector<Reader> readers;
};
/// What the schedule puts in the body of one level, and how often the body has run.
struct Site {
    std::vector<size_t> stored;
    std::vector<Arrival> computed;  ///< in execution order, without Y
    bool writes_output = false;
    int64_t trip = 0;    ///< of the present execution of the loop
    int64_t bodies = 0;  ///< bodies begun in total, without rehearsals
};
/// What is needed of a shared tensor on one axis alone, by the trips of that axis' loops around the
/// body.
struct NeedsAlone {
    std::vector<const Site*> loops;
    std::map<std::vector<int64_t>, Range> needs;
    [[nodiscard]] std::vector<int64_t> trips() const {
        std::vector<int64_t> numbers;
        for (const Site* loop : loops) numbers.push_back(loop->trip);
        return numbers;
    }
};
/// A buffer of the schedule other than Y's.
struct Kept {
    enum class Kind { input, weights, intermediate };
    Kind kind = Kind::input;
    int nest = 0;  ///< the layer of weights, or the producer of an intermediate tensor
    Placement placement{};
    bool is_shared = false;
    int64_t words = 1;  ///< words per element; weights move by whole kernels
    Presence present;
    FoldWatch watch{};
    Elements reads{};                      ///< external reads
    PerEnum<NeedsAlone, Axis, 3> alone{};  ///< of a shared tensor
};

/// What happens in the trips of a loop that all ask for the same: nothing that arrives in its body
/// depends on the loop's coordinate. Its trips still differ in the part of Y that they compute.
struct LikeTrips {
    bool are_alike = false;
    std::vector<size_t> arriving;  ///< buffers
    std::vector<int> nests;        ///< its own and those called inside
    bool writes_output = false;
};

/// Inner loops of a nest, executed for one buffer alone, or for Y and the MACs.
struct Separate {
    std::optional<size_t> buffer;  ///< none: Y
    int last_site = -1;            ///< innermost loop in whose body anything happens
    IndexVector<LikeTrips, int> like_trips;  ///< by loop
};
/// The loops from `first` on, in which nothing depends on anything else that is present: no other
/// nest is called there, and no tensor has readers elsewhere.
struct SeparateLoops {
    int first = 0;
    std::vector<Separate> parts;
};

/// Where each buffer is stored, where its elements arrive, and who reads them.
class WalkPlan {
public:
    /// Both arguments outlive the plan.
    WalkPlan(const std::vector<LayerProblem>& problems, const GroupSchedule& group);
    // Buffers point at the sites.
    WalkPlan(const WalkPlan&) = delete;
    WalkPlan& operator=(const WalkPlan&) = delete;

    [[nodiscard]] Site& site(Level level) {
        return level.is_root() ? root_ : sites_[level.nest][level.loop];
    }

    std::vector<GroupTensor> tensors;
    std::vector<Kept> kept;  ///< by tensor, then the weights of each layer that has any
    /// Which buffers take part in the execution (index 0) and in the rehearsal for each nest k
    /// (index 1 + k); by buffer.
    IndexVector<std::vector<bool>, int> takes_part;
    /// The innermost loop of each nest in whose body anything is stored, computed or written; by
    /// the same index, by nest.
    IndexVector<IndexVector<int, int>, int> last_site;
    IndexVector<IndexVector<LikeTrips, int>, int> like_trips;  ///< by nest, by loop
    IndexVector<SeparateLoops, int> separate;                  ///< by nest

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
    [[nodiscard]] LikeTrips find_like_trips(Level level) const;
    [[nodiscard]] SeparateLoops find_separate_loops(int nest) const;
    [[nodiscard]] Separate separate_part(int nest, int first, std::optional<size_t> buffer) const;
    [[nodiscard]] bool moves(int nest, const Reader& reader, bool is_weights, Dim dim) const;
    [[nodiscard]] bool is_needed(const Site& site, int part) const;
    [[nodiscard]] const LayerProblem& problem(int nest) const {
        return problems_[static_cast<size_t>(nest)];
    }

    const std::vector<LayerProblem>& problems_;
    const GroupSchedule& group_;
    Site root_;
    IndexVector<IndexVector<Site, int>, int> sites_;  ///< by nest, by loop
};

}  // namespace laminate::walking
