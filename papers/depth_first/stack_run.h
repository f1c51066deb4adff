// The cost of one stack under one strategy: its kinds of tiles, the memory level of each kind of
// data, copies and mappings. DeFiNES section III; depth_first.h lists the steps.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "papers/depth_first/cost.h"
#include "papers/depth_first/quirks.h"
#include "papers/depth_first/strategy.h"
#include "papers/depth_first/tiles.h"
#include "scheduler/machine/machine.h"

namespace laminate::depth_first {

/// Index into Machine::memories; none if there is no cache, or no weights.
using Level = std::optional<size_t>;

/// The tiles of a stack along one axis.
struct AxisPlan {
    /// Tiles that are alike.
    struct Kind {
        int64_t tile = 0;
        bool first = false;
        AxisTile actual;
        AxisTile sizing;  ///< decides the levels of the caches; differs from `actual` by quirk
        std::vector<int64_t> written;  ///< outputs that are new to the cache
        auto operator<=>(const Kind&) const = default;
    };
    /// Tiles that also have the same neighbours; indices of kinds, none outside the map.
    struct Position {
        std::optional<size_t> before{};
        size_t here = 0;
        std::optional<size_t> after{};
        auto operator<=>(const Position&) const = default;
    };
    std::vector<Kind> kinds;
    std::map<Position, int64_t> positions;  ///< how often each
    Position first;
};

/// Remembers the plans of one model's stacks: a sweep asks for the same plan with every tile size
/// along the other axis. May be called from several threads.
class AxisPlans {
public:
    struct Key {
        std::vector<size_t> layers;  ///< of the stack
        Axis axis = Axis::x;
        int64_t tile = 0;
        /// By member of the stack: whether a tile finds what earlier tiles had of the map.
        std::vector<bool> keeps;
        bool keeps_nothing = false;  ///< the strategy's overlap is recompute
        auto operator<=>(const Key&) const = default;
    };
    [[nodiscard]] std::shared_ptr<const AxisPlan> get(const Key& key,
                                                      const std::function<AxisPlan()>& make);

private:
    std::mutex mutex_;
    std::map<Key, std::shared_ptr<const AxisPlan>> plans_;
};

class StackRun {
public:
    using MappingPtr = std::shared_ptr<const std::optional<LayerMapping>>;
    /// Maps a layer of the workload in this shape, with the memories of MappedLayer's `tops`, after
    /// halving lanes `halvings` times. nullopt if nothing fits. A null pointer means that the
    /// mapping is not made yet; tiles that need it are not charged.
    using Map = std::function<MappingPtr(size_t layer, const LayerShape& shape,
                                         const std::vector<size_t>& tops, int halvings)>;

    /// Keeps references to all arguments but `map`. `by_columns`: goes_by_columns() of the stack.
    StackRun(const Machine& machine, const Stack& stack, const Quirks& quirks,
             const Strategy& strategy, bool by_columns, bool with_details, AxisPlans& plans,
             Map map);

    /// Throws InfeasibleMapping.
    void add_to(DepthFirstCost& total);

private:
    using Kind = AxisPlan::Kind;
    struct Levels {
        Level columns, rows, weights;
        int64_t bits = 0;  ///< of maps, caches and weights together
    };
    /// Bits that a kind of tile needs room for.
    struct Demand {
        int64_t alive = 0;         ///< maps at once
        int64_t columns = 0;       ///< cache of columns
        int64_t rows = 0;          ///< cache of rows
        int64_t both = 0;          ///< where the two caches overlap
        int64_t weights = 0;       ///< of the stack
        bool has_weights = false;  ///< any layer has, be it without bits
    };
    /// All that the cost of a tile depends on.
    struct TileKind {
        size_t x = 0, y = 0;  ///< kinds
        bool weights_from_top = false;
        Level make_columns{}, use_columns{}, make_rows{}, use_rows{};
        auto operator<=>(const TileKind&) const = default;
    };

    /// A layer as it is executed in one kind of tile.
    struct Mapped {
        std::vector<LayerShape> shapes;    ///< executed_shapes()
        std::vector<MappingPtr> mappings;  ///< parallel to shapes
        size_t input_level = 0, output_level = 0;
        std::vector<size_t> tops;
        bool is_made = true;  ///< all of `mappings` are
    };
    /// Where a member's output lies.
    struct Stored {
        size_t memory = 0;
        int64_t bits = 0;
        bool input = false;  ///< of the stack
    };

    /// Whether any map but the output is cached.
    [[nodiscard]] bool caches_columns() const {
        return std::find(keeps_columns_.begin(), keeps_columns_.end() - 1, true) !=
               keeps_columns_.end() - 1;
    }
    [[nodiscard]] bool caches_rows() const {
        return std::find(keeps_rows_.begin(), keeps_rows_.end() - 1, true) != keeps_rows_.end() - 1;
    }
    [[nodiscard]] const std::vector<size_t>& hierarchy(Operand operand) const {
        return hierarchies_[operand];
    }
    [[nodiscard]] bool single(size_t memory) const {
        return machine_.memories[memory].replicated_along.empty();
    }
    [[nodiscard]] bool holds_inputs(size_t memory) const {
        return machine_.memories[memory].serves(Operand::input) && single(memory);
    }
    [[nodiscard]] int64_t capacity(size_t memory) const {
        return machine_.memories[memory].capacity_bits;
    }

    /// The size of the stack's output.
    [[nodiscard]] int64_t size_along(Axis axis) const {
        return stack_.members.back().layer.shape.sizes[axis == Axis::x ? Dim::ox : Dim::oy];
    }
    [[nodiscard]] std::shared_ptr<const AxisPlan> plan(Axis axis, int64_t tile) const;
    [[nodiscard]] AxisPlan make_plan(Axis axis, int64_t tile) const;
    [[nodiscard]] int64_t input_bits(size_t member, size_t operand, const AxisTile& x,
                                     const AxisTile& y) const;
    [[nodiscard]] int64_t output_bits(size_t member, const AxisTile& x, const AxisTile& y) const;
    [[nodiscard]] int64_t largest_alive(const AxisTile& x, const AxisTile& y) const;
    [[nodiscard]] Demand demand(const Kind& x, const Kind& y) const;
    [[nodiscard]] Levels levels(const Kind& x, const Kind& y) const;
    [[nodiscard]] Level weight_level(const Demand& demand, Level next, int64_t with_next,
                                     Level line, int64_t with_line) const;
    [[nodiscard]] std::map<TileKind, int64_t> tile_kinds(
        const std::vector<std::vector<Levels>>& found, Level rows) const;
    [[nodiscard]] Place place(size_t memory, Operand operand) const;
    [[nodiscard]] Mapped lowest_levels(size_t member, const TileKind& kind) const;
    void make_mappings(size_t member, const TileKind& kind, int halvings, Mapped& mapped) const;
    [[nodiscard]] Mapped mapped(size_t member, const TileKind& kind) const;
    [[nodiscard]] Stored fetched(int64_t bits, std::vector<DataCopy>& bundle) const;
    void add_weight_copy(size_t member, const Mapped& mapped, std::vector<DataCopy>& bundle) const;
    void add_input_copies(size_t member, const TileKind& kind, size_t input_level,
                          const std::vector<Stored>& stored, std::vector<DataCopy>& bundle) const;
    [[nodiscard]] std::vector<DataCopy> cache_writes(size_t member, const TileKind& kind,
                                                     size_t memory) const;
    void charge(const CopyCost& cost, int64_t times, DepthFirstCost& total) const;
    void charge(const LayerShape& shape, const LayerCost& cost, int64_t times,
                DepthFirstCost& total) const;
    void add_details(size_t member, const Mapped& mapped, int64_t times, CopyCost copies,
                     DepthFirstCost& total) const;
    void add_tile(const TileKind& kind, int64_t times, DepthFirstCost& total) const;

    const Machine& machine_;
    const Stack& stack_;
    const Quirks& quirks_;
    const Strategy& strategy_;
    bool by_columns_;
    bool with_details_;
    Map map_;
    PerOperand<std::vector<size_t>> hierarchies_;
    std::vector<bool> keeps_columns_, keeps_rows_;  ///< per member
    AxisPlans& plans_;
    std::shared_ptr<const AxisPlan> x_, y_;
    Level weights_;  ///< where all tiles but the first find the weights
};

}  // namespace laminate::depth_first
