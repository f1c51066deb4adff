// Computes costs from terms (axis_options.h). Accesses and MACs are sums of terms; memory is a
// nested sum and maximum of buffers, because some buffers do not live at the same time. Costs are
// computed for one schedule (or the least of a set), and for rows of schedules that differ along
// one axis. Rows are compared with known costs.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <vector>

#include "scheduler/explore/group_search/axis_tree.h"
#include "scheduler/explore/pareto.h"

namespace laminate::search {

struct BufferPlace {
    size_t term = 0;
    int nest = 0;           ///< 0 if the buffer always lives
    bool is_below = false;  ///< whether it is dead while the nest's producer runs
};

/// Costs of neighbouring schedules.
struct CostRow {
    static constexpr size_t most = 64;
    std::array<double, most> accesses;
    std::array<double, most> memory;
    std::array<double, most> macs;  ///< only if asked for
};

/// The least of `size` values; infinite if there are none.
[[nodiscard]] double least(const double* values, size_t size);

/// A table of the accesses that known schedules reach, by memory. Rows are compared with it as
/// vectors before single schedules are compared.
class KnownAccesses {
public:
    KnownAccesses() { fewest_.fill(std::numeric_limits<double>::infinity()); }
    void add(const Cost& known);

    /// One byte per schedule of a row.
    using Flags = std::array<unsigned char, CostRow::most>;
    /// Clears the flag of schedules that move more than `most`, or more than a known one in no more
    /// memory, except some that need nearly the same memory.
    void compare(const CostRow& row, size_t size, double most, Flags& may_matter) const;

private:
    static constexpr size_t parts_of_an_octave = 16;
    /// Ranges of memory, each a sixteenth of an octave. Smaller and larger values belong to the
    /// first and last one.
    static constexpr size_t ranges = parts_of_an_octave * 56;
    std::array<double, ranges> fewest_;  ///< with no more memory than the begin of the range
};

class CostPlan {
public:
    static constexpr int most_layers = 32;

    CostPlan(Terms terms, std::vector<BufferPlace> places)
        : terms_(terms), places_(std::move(places)) {}

    /// `product` has the value of every term.
    [[nodiscard]] Cost cost(const double* product) const;

    /// The parts of the costs that vary along one axis, made once for many rows.
    class Row {
    public:
        Row(const CostPlan& plan, const AxisTree& axis);
        /// Costs of the schedules with the options at places `first` .. `first + size` - 1 of the
        /// axis, at most CostRow::most. `product` has the value of each term over all other axes,
        /// times this axis' factor if it does not vary.
        void costs(const double* product, uint32_t first, size_t size, bool with_macs,
                   CostRow& row) const;

    private:
        struct Sum {
            std::vector<size_t> fixed;
            std::vector<size_t> varying;
            void add(size_t term, bool varies) { (varies ? varying : fixed).push_back(term); }
            [[nodiscard]] bool is_nothing() const { return fixed.empty() && varying.empty(); }
        };
        void evaluate(const Sum& sum, const double* product, uint32_t first, size_t size,
                      double* result) const;

        const AxisTree* axis_;
        Sum accesses_;
        Sum macs_;
        Sum held_always_;
        struct Nest {
            Sum held;
            Sum below;
        };
        std::vector<Nest> nests_;  ///< inside out
    };

private:
    Terms terms_;
    std::vector<BufferPlace> places_;
};

}  // namespace laminate::search
