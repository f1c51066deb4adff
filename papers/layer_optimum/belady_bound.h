// A lower bound on the spills of one tensor under Belady's replacement, in closed form: what the
// stream of belady.h spills at least, without going through it.
//
// Choose any set of steps. At each, at most M words are present, so of the intervals between two
// uses of a word that span at least one of the steps, all but the sum of the room at the steps are
// spills. The bound takes the steps at the borders between rounds of a reuse loop or iterations of
// a partial one, each of which gives (words that cross) - M. For the rounds of a reuse group it may
// take every step but one per round. Where a group spills in all of its instances, the intervals of
// the groups outside it all span such a step.
#pragma once

#include <cstdint>
#include <vector>

#include "papers/layer_optimum/block_schedule.h"
#include "papers/layer_optimum/convolution.h"

namespace laminate {

/// Never above BeladyStream::spills(), for any memory.
class BeladyBound {
public:
    /// With `is_prefix`, the bound holds for every order that begins with this one: it leaves out
    /// the steps that loops further in could take away.
    BeladyBound(const ConvolutionProblem& problem, Operand operand, const BlockOrder& order,
                bool is_prefix = false);
    [[nodiscard]] int64_t spills(int64_t memory) const;

private:
    /// Instances whose blocks have the same extents in all related loops outside, summed apart: the
    /// last, smaller blocks have room to spare that the full ones cannot use.
    struct AlikeInstances {
        int64_t instances = 1;
        int64_t crossing = 0;  ///< words that cross at one step of each, together
        int64_t all = 0;       ///< words of their intervals
    };
    struct Group {
        std::vector<AlikeInstances> alike;
        int64_t all = 0;    ///< words of its intervals, all instances together
        int64_t steps = 0;  ///< of one instance
        int64_t instances = 1;
        int64_t smallest = 0;  ///< words that cross in the smallest instance
        int64_t largest = 0;   ///< and in one of full blocks
        int64_t beside = 0;    ///< further words present at that step, in each instance
        /// As `beside` for a step further in, with words that the next inner group would count.
        int64_t inner = 0;
        int64_t rounds = 1;  ///< of a reuse group
        /// Words that windows inside a reuse group hold in the midst of a round.
        int64_t sweep = 0;
        bool is_reuse = false;
        bool has_subgroups = false;  ///< related loops between this group and the next one
    };
    class Walk;  ///< over the loops of the order: makes the groups

    /// With `apart`, alike instances count by themselves, so that those of the last blocks take
    /// nothing from what full ones spill. A step of a reuse group further out may then be one that
    /// is counted already, with all words of such an instance.
    [[nodiscard]] int64_t spills(int64_t memory, bool apart) const;
    std::vector<Group> groups_;  ///< outermost first
};

}  // namespace laminate
