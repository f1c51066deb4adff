// A schedule says how a network is cut into groups and how each group's loop nests run. It is an
// immutable value, and its constructor refuses what is illegal, so code that receives a schedule
// need not check it again. docs/counting.md defines its meaning.
//
// The text form is a schedule's identity: parse_schedule(to_text(s)) == s. A group stands in
// braces, with its nests in execution order joined by " & ", the sink last. `n m` are always
// innermost and are there for the reader only:
//
//   {conv1: zo yo xo io | zi yi xi ii n m; tile z4 y18 x18 i3;
//           X root/conv2.yo; W root/root; Y root/conv2.yo &
//    conv2: zo yo xo io | zi yi xi ii n m; tile z4 y4 x16 i4; W root/root; Y xi/xi}
//
// `X store/compute` places an external input of the group at the first nest that reads it; if that
// nest has several, they are `X0`, `X1`, ... by operand. `W` places the weights, if the layer has
// any. `Y` places the output: for the sink at a level of its own path, for another layer as the
// buffer of the intermediate tensor, on the paths of all nests that read it. A level is a loop of
// the nest itself (`yi`), a loop of a nest around it (`conv2.yo`), or `root`, and means the body of
// that loop. A sink with strips reads
//   conv2: ys xs || zo yo xo io | zi yi xi ii n m; strip y270 x480; tile ...
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "nets/network/network.h"
#include "scheduler/schedule/kernels/kernel.h"
#include "scheduler/schedule/problem.h"

namespace laminate {

enum class Band { strip = 0, outer = 1, inner = 2 };

struct Loop {
    Dim dim = Dim::z;
    Band band = Band::outer;
    friend auto operator<=>(const Loop&, const Loop&) = default;
};
/// "ys", "zo", "xi".
[[nodiscard]] std::string to_text(Loop loop);

/// The body of loop number `loop` (an index into Nest::loops) of nest number `nest` of the group.
/// The root has nest == -1.
struct Level {
    int nest = -1;
    int loop = -1;
    [[nodiscard]] bool is_root() const { return nest < 0; }
    friend auto operator<=>(const Level&, const Level&) = default;
};

struct Placement {
    Level store;
    Level compute;
    friend auto operator<=>(const Placement&, const Placement&) = default;
};

/// Where operand number `operand` of the nest's layer, an external input, is kept.
struct InputPlacement {
    int operand = 0;
    Placement placement;
    friend auto operator<=>(const InputPlacement&, const InputPlacement&) = default;
};

struct Nest {
    std::string layer;
    /// Outermost first: strip loops (sink only), the four outer loops, the four inner loops.
    std::vector<Loop> loops;
    PerDim<int64_t> tile{1, 1, 1, 1};  ///< T by Dim, 1 <= T <= D
    /// Strip extents in y and x; 0 without such a strip loop.
    std::array<int64_t, 2> strip{0, 0};
    std::vector<InputPlacement> x;  ///< external inputs that no earlier nest reads, by operand
    std::optional<Placement> w;     ///< layers with weights
    Placement y;
    Kernel kernel{};  ///< how its boxes are computed; none: not chosen yet
    [[nodiscard]] int64_t operator[](Dim d) const { return tile[d]; }
    /// Coordinates of its dimension that one trip of a loop covers: a strip, a tile, or 1 for an
    /// inner loop.
    [[nodiscard]] int64_t step(Loop loop) const;
    /// Position of a loop in `loops`, or -1 if absent.
    [[nodiscard]] int find(Loop loop) const;
    friend auto operator<=>(const Nest&, const Nest&) = default;
};

struct GroupSchedule {
    std::vector<Nest> nests;  ///< producers first, sink last
    [[nodiscard]] Nest& nest(int k) { return nests[static_cast<size_t>(k)]; }
    [[nodiscard]] const Nest& nest(int k) const { return nests[static_cast<size_t>(k)]; }
    /// The loop of a level other than the root.
    [[nodiscard]] Loop loop(Level level) const {
        return nest(level.nest).loops[static_cast<size_t>(level.loop)];
    }
    [[nodiscard]] int sink() const { return static_cast<int>(nests.size()) - 1; }
    /// Whether anything is stored or computed at `level`.
    [[nodiscard]] bool is_placed(Level level) const;
    friend auto operator<=>(const GroupSchedule&, const GroupSchedule&) = default;
};

struct TensorReader {
    int nest = 0;
    int operand = 0;
    friend auto operator<=>(const TensorReader&, const TensorReader&) = default;
};

/// A tensor that nests of a group read.
struct GroupTensor {
    TensorId tensor = -1;
    std::string name;
    int producer = -1;                  ///< nest number, or -1 for an external input
    std::vector<TensorReader> readers;  ///< in order of nests
    [[nodiscard]] bool is_external() const { return producer < 0; }
    /// Read by several nests (docs/counting.md section 4 rule 8).
    [[nodiscard]] bool is_shared() const { return readers.size() > 1; }
};
/// External inputs first, by first reader and operand, then the outputs of all nests but the sink,
/// in order.
[[nodiscard]] std::vector<GroupTensor> group_tensors(const std::vector<LayerProblem>& problems);
/// The elements of the map that an external tensor is.
[[nodiscard]] Elements external_elements(const GroupTensor& tensor,
                                         const std::vector<LayerProblem>& problems);
[[nodiscard]] const Placement& placement_of(const GroupSchedule& group, const GroupTensor& tensor);
/// Nests whose outputs a shared tensor must outlive (docs/counting.md section 4 rule 8). They are
/// the nests that read it or anything computed from it, up to the nest where these branches meet.
/// The meeting nest is included only if it reads the tensor itself; the sink never is.
[[nodiscard]] std::vector<int> branch_nests(const std::vector<GroupTensor>& tensors,
                                            const GroupTensor& tensor);

/// Levels that enclose the innermost body of a nest, outermost first: the root, the loops of the
/// nests around it down to its compute level, and its own loops.
[[nodiscard]] std::vector<Level> path(const GroupSchedule& group, int nest);
/// Position of a level on such a path, or -1 if it is not there.
[[nodiscard]] int position(const std::vector<Level>& path, Level level);
/// Whether `outer` is `inner` or encloses it. Both are on path(group, nest).
[[nodiscard]] bool encloses(const GroupSchedule& group, int nest, Level outer, Level inner);

class Schedule {
public:
    /// Throws InputError that names the layer, what was found and what would be legal, such as
    ///   conv2: compute level of X is yo, outside its store level xi; legal: xi, ii
    /// Every layer that must be scheduled is in exactly one group; other schedulable layers are in
    /// at most one. Groups come in an order in which the inputs of each have been computed.
    Schedule(const Network& network, std::vector<GroupSchedule> groups);

    [[nodiscard]] const std::vector<GroupSchedule>& groups() const { return groups_; }
    friend bool operator==(const Schedule&, const Schedule&) = default;
    friend auto operator<=>(const Schedule&, const Schedule&) = default;

private:
    std::vector<GroupSchedule> groups_;
};

/// Throws InputError if the group is illegal in this network.
void check_group(const Network& network, const GroupSchedule& group);
/// The loop problems of a legal group's nests, in order.
[[nodiscard]] std::vector<LayerProblem> group_problems(const Network& network,
                                                       const GroupSchedule& group);
/// Images of the batch that a group of the network is run for.
[[nodiscard]] int64_t images_of(const Network& network, const GroupSchedule& group);

[[nodiscard]] std::string to_text(const GroupSchedule& group);
[[nodiscard]] std::string to_text(const Schedule& schedule);
[[nodiscard]] std::string level_text(const GroupSchedule& group, int nest, Level level);

/// Throws InputError with the column and what was expected there.
[[nodiscard]] GroupSchedule parse_group(const Network& network, const std::string& text);
[[nodiscard]] Schedule parse_schedule(const Network& network, const std::string& text);

/// JSON file
/// {"schema":"laminate.schedule","version":2,"network":NAME,"structure_hash":HASH,"schedule":TEXT}.
[[nodiscard]] std::string to_json(const Network& network, const Schedule& schedule);
/// Reads a schedule file (JSON, or the bare text form). Refuses one made for a network of another
/// structure.
[[nodiscard]] Schedule load_schedule(const Network& network, const std::string& path);

}  // namespace laminate
