#include "papers/depth_first/mapping_space.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include "base/error.h"
#include "base/vector_width.h"

namespace laminate::depth_first {

namespace {

/// Doubles of a vector.
constexpr size_t lanes = 4;
using Vector = double __attribute__((vector_size(lanes * sizeof(double))));

/// Some rows of `here` to fill with least sums, from the back. A point's next step is a boundary of
/// one of `roles` roles, which costs `costs` plus the sum behind it in `next`, or one more loop:
/// the next point of the row, or the same point of another row (`next_rows`, as distances, from
/// begin_of_next[row] on).
struct RowFill {
    const uint32_t* rows;
    size_t count;
    size_t size;  ///< of a row
    const size_t* begin_of_next;
    const uint32_t* next_rows;
    std::array<const double*, 3> costs, next;
    size_t roles;
    double* here;
    size_t end;  ///< the point where paths end, or one beyond all
    double at_end;
};

LAMINATE_FOR_EACH_VECTOR_WIDTH
void fill_rows(const RowFill& fill) {
    constexpr double none = MappingSpace::infinity;
    const Vector nothing{none, none, none, none};
    // Copying avoids a reference to a misaligned vector, and a vector passed by value, whose ABI
    // depends on the instruction set.
    const auto load = [](Vector& to, const double* values) {
        std::memcpy(&to, values, sizeof(Vector));
    };
    Vector placed, behind, after;
    for (size_t n = 0; n < fill.count; ++n) {
        const size_t row = fill.rows[n];
        double below = none;
        for (size_t end = fill.size; end > 0; end -= lanes) {
            const size_t s = row * fill.size + end - lanes;
            Vector least = nothing;
            if (s <= fill.end && fill.end < s + lanes) least[fill.end - s] = fill.at_end;
            for (size_t r = 0; r < fill.roles; ++r) {
                load(placed, fill.costs[r] + s);
                load(behind, fill.next[r] + s);
                placed += behind;
                least = placed < least ? placed : least;
            }
            for (size_t other = fill.begin_of_next[row]; other < fill.begin_of_next[row + 1];
                 ++other) {
                load(after, fill.here + s + fill.next_rows[other]);
                least = after < least ? after : least;
            }
            const Vector before{below, below, below, below};
            least = before < least ? before : least;
            const Vector by_one = __builtin_shufflevector(least, nothing, 1, 2, 3, 4);
            least = by_one < least ? by_one : least;
            const Vector by_two = __builtin_shufflevector(least, nothing, 2, 3, 4, 5);
            least = by_two < least ? by_two : least;
            std::memcpy(fill.here + s, &least, sizeof(Vector));
            below = least[0];
        }
    }
}

}  // namespace

MappingSpace::MappingSpace(const MappedLayer& layer) : layer_(layer) {
    find_factors();
    number_multisets();
    tabulate_multisets();
    for (size_t r = 0; r < roles(); ++r) {
        placed_step_[r] = placed_count_;
        placed_count_ *= levels(r);
    }
    tabulate_bits();
    watch();
    tabulate_energy();
    find_rows();
}

void MappingSpace::find_factors() {
    for (const auto& [dim, primes] : layer_.temporal_factors()) {
        for (const int64_t prime : primes) {
            total_ *= static_cast<double>(prime);
            if (!factors_.empty() && factors_.back().dim == dim && factors_.back().prime == prime) {
                ++factors_.back().count;
            } else {
                factors_.push_back({dim, prime, 1, 0, 0});
            }
        }
    }
}

/// The factor that wastes least of its padding has the last digit.
void MappingSpace::number_multisets() {
    const auto rows = [](const Factor& factor) { return (factor.count + lanes) / lanes * lanes; };
    for (size_t f = 0; f < factors_.size(); ++f) {
        if (!last_digit_ || rows(factors_[f]) * (factors_[*last_digit_].count + 1) <
                                rows(factors_[*last_digit_]) * (factors_[f].count + 1))
            last_digit_ = f;
    }
    multisets_ = lanes;
    if (last_digit_) {
        Factor& last = factors_[*last_digit_];
        last.step = 1;
        multisets_ = last.rows = rows(last);
    }
    for (size_t f = 0; f < factors_.size(); ++f) {
        Factor& factor = factors_[f];
        if (f != last_digit_) {
            factor.step = multisets_;
            factor.rows = factor.count + 1;
            multisets_ *= factor.rows;
        }
        all_ += factor.step * factor.count;
    }
}

void MappingSpace::tabulate_multisets() {
    products_.resize(multisets_);
    ranks_.resize(multisets_);
    products_[0] = no_loops;
    for (size_t r = 0; r < roles(); ++r) seen_[r] = unseen_[r] = {0};
    std::vector<uint32_t> known{0};
    for (const Factor& factor : factors_) {
        const auto step = static_cast<uint32_t>(factor.step);
        const auto with_more = [&](std::vector<uint32_t>& list) {
            const size_t before = list.size();
            for (size_t n = 0; n < factor.count * before; ++n) list.push_back(list[n] + step);
        };
        const size_t before = known.size();
        with_more(known);
        // Derive each from the one with one loop less.
        for (size_t n = before; n < known.size(); ++n) {
            products_[known[n]] = products_[known[n] - step];
            products_[known[n]][factor.dim] *= static_cast<double>(factor.prime);
            ranks_[known[n]] = static_cast<uint32_t>(n);
        }
        for (size_t r = 0; r < roles(); ++r)
            with_more(layer_.irrelevant(r, factor.dim) ? unseen_[r] : seen_[r]);
    }
    reduction_left_.assign(multisets_, true);
    for (const uint32_t seen : seen_[0]) reduction_left_[seen + unseen_[0].back()] = false;
    periods_.assign(multisets_, 0);
    for (const uint32_t s : known) {
        double cycles = 1;
        for (const double trips : products_[s]) cycles *= trips;
        periods_[s] = std::floor(total_ / cycles);
    }
}

/// For all levels but each role's highest.
void MappingSpace::tabulate_bits() {
    bits_.resize(roles());
    sum_bits_.assign(levels(0) - 1, std::vector<double>(multisets_, 0));
    std::vector<double> elements;
    for (size_t r = 0; r < roles(); ++r) {
        bits_[r].assign(levels(r) - 1, std::vector<double>(multisets_, 0));
        const auto spread = [&](uint32_t seen, double bits, std::vector<double>& of_level) {
            for (const uint32_t unseen : unseen_[r]) of_level[seen + unseen] = bits;
        };
        for (const uint32_t seen : seen_[r]) {
            layer_.level_elements(r, products_[seen], elements);
            for (size_t level = 0; level + 1 < levels(r); ++level) {
                spread(seen, elements[level] * layer_.element_bits(r, false), bits_[r][level]);
                if (r == 0)
                    spread(seen, elements[level] * layer_.element_bits(r, true), sum_bits_[level]);
            }
        }
    }
}

void MappingSpace::watch() {
    std::vector<double> whole(layer_.machine().memories.size(), 0);
    for (size_t r = 0; r < roles(); ++r) {
        for (size_t level = 0; level < levels(r); ++level)
            whole[layer_.hierarchy(r)[level]] +=
                layer_.level_bits(r, level, products_[all()], true);
    }
    for (size_t at = 0; at < layer_.memories().size(); ++at) {
        const size_t memory = layer_.memories()[at];
        if (layer_.served()[at].size() < 2 ||
            whole[memory] <= static_cast<double>(layer_.machine().memories[memory].capacity_bits))
            continue;
        Watched watched{memory, {}, {}};
        for (const size_t r : layer_.served()[at]) {
            const std::vector<size_t>& hierarchy = layer_.hierarchy(r);
            const auto level =
                static_cast<size_t>(std::ranges::find(hierarchy, memory) - hierarchy.begin());
            watched.sharers.emplace_back(r, level);
            if (level + 1 == levels(r)) {
                watched.bits.push_back({layer_.level_bits(r, level, products_[all()], false)});
                continue;
            }
            std::vector<double>& least = watched.bits.emplace_back(bits_[r][level]);
            if (r > 0) continue;
            for (size_t s = 0; s < multisets_; ++s) {
                if (reduction_left_[s]) least[s] = sum_bits_[level][s];
            }
        }
        watched_.push_back(std::move(watched));
    }
    if (watched_.size() > most_watched) {
        throw InputError("machine " + layer_.machine().name + ": found " +
                         std::to_string(watched_.size()) +
                         " memories that operands compete for, expected at most " +
                         std::to_string(most_watched));
    }
}

void MappingSpace::tabulate_energy() {
    std::vector<double> tops(layer_.machine().memories.size(), 0);
    for (size_t r = 0; r < roles(); ++r)
        tops[layer_.hierarchy(r).back()] +=
            layer_.level_bits(r, levels(r) - 1, products_[all()], false);
    energy_.resize(roles());
    std::vector<double> elements;
    for (size_t r = 0; r < roles(); ++r) {
        energy_[r].assign(levels(r) - 1, std::vector<double>(multisets_, infinity));
        std::vector<double> room;
        for (size_t level = 0; level + 1 < levels(r); ++level) {
            const size_t memory = layer_.hierarchy(r)[level];
            room.push_back(static_cast<double>(layer_.machine().memories[memory].capacity_bits) -
                           tops[memory]);
        }
        for (const uint32_t seen : seen_[r]) {
            bool is_known = false;
            for (size_t level = 1; level < levels(r); ++level) {
                if (bits_[r][level - 1][seen] > room[level - 1]) continue;
                if (!std::exchange(is_known, true))
                    layer_.tile_elements(r, products_[seen], elements);
                std::vector<double>& energy = energy_[r][level - 1];
                const auto tabulate = [&](bool as_sum, auto begin, auto end) {
                    if (begin == end) return;
                    const BoundaryPeriod period =
                        layer_.boundary_period(r, level, elements[level], as_sum);
                    for (; begin != end; ++begin)
                        energy[seen + *begin] =
                            layer_.boundary_energy(r, level, period, periods_[seen + *begin]);
                };
                // Outputs are finished if no loop of the sum is left.
                const auto finished = r == 0 ? unseen_[r].end() - 1 : unseen_[r].begin();
                tabulate(true, unseen_[r].begin(), finished);
                tabulate(false, finished, unseen_[r].end());
            }
        }
    }
}

size_t MappingSpace::placed_index(const Placed& levels) const {
    size_t index = 0;
    for (size_t r = 0; r < roles(); ++r) index += levels[r] * placed_step_[r];
    return index;
}

MappingSpace::State MappingSpace::start() const {
    State state;
    state.reduction = reduction_left_[0];
    return state;
}

bool MappingSpace::finished(const State& state) const {
    return state.multiset == all() && placed_index(state.levels) + 1 == placed_count_;
}

bool MappingSpace::all_placed(size_t w, const State& state) const {
    return std::ranges::all_of(watched_[w].sharers, [&](const auto& sharer) {
        return state.levels[sharer.first] > sharer.second;
    });
}

bool MappingSpace::fits(size_t r, size_t level, size_t multiset, bool reduction,
                        State& state) const {
    const size_t memory = layer_.hierarchy(r)[level];
    const double bits = this->bits(r, level, multiset, reduction);
    const auto capacity = static_cast<double>(layer_.machine().memories[memory].capacity_bits);
    const auto found = std::ranges::find(watched_, memory, &Watched::memory);
    if (found == watched_.end()) return bits <= capacity;
    const auto w = static_cast<size_t>(found - watched_.begin());
    double& used = state.used[w];
    if (used + bits > capacity) return false;
    used += bits;
    // Once all tiles are placed, the room left no longer matters.
    if (all_placed(w, state)) used = 0;
    return true;
}

bool MappingSpace::place(size_t r, State& state) const {
    const size_t level = state.levels[r];
    ++state.levels[r];
    if (!fits(r, level, state.multiset, state.reduction, state)) return false;
    if (r == 0) state.reduction = reduction_left_[state.multiset];
    state.role = static_cast<uint8_t>(r);
    return true;
}

bool MappingSpace::highest_fit(State state) const {
    for (size_t r = 0; r < roles(); ++r) {
        if (!fits(r, levels(r) - 1, state.multiset, state.reduction, state)) return false;
    }
    return true;
}

/// Finds the rows in which a path may continue: those where the next boundary of every role fits at
/// the first multiset of the row. More loops only make tiles larger, so all other rows stay
/// infinite.
void MappingSpace::find_rows() {
    row_size_ = last_digit_ ? factors_[*last_digit_].rows : lanes;
    const size_t rows = multisets_ / row_size_;
    begin_of_next_ = {0};
    for (size_t row = 0; row < rows; ++row) {
        for (size_t f = 0; f < factors_.size(); ++f) {
            if (f != last_digit_ && count_of(row * row_size_, factors_[f]) < factors_[f].count)
                next_rows_.push_back(static_cast<uint32_t>(factors_[f].step));
        }
        begin_of_next_.push_back(next_rows_.size());
    }
    // Whether the boundary above a level has a place, [role][level][row]. A role's highest level
    // has no boundary above it.
    std::vector<std::vector<std::vector<uint8_t>>> has_place(roles());
    for (size_t r = 0; r < roles(); ++r) {
        has_place[r].assign(levels(r), std::vector<uint8_t>(rows, 1));
        for (size_t level = 0; level + 1 < levels(r); ++level) {
            for (size_t row = 0; row < rows; ++row)
                has_place[r][level][row] = energy_[r][level][row * row_size_] != infinity;
        }
    }
    const std::vector<uint8_t> always(rows, 1);
    rows_.resize(placed_count_ * rows);
    size_t count = 0;
    begin_of_placed_ = {0};
    for (size_t placed = 0; placed < placed_count_; ++placed) {
        std::array<const uint8_t*, 3> of_role{always.data(), always.data(), always.data()};
        for (size_t r = 0; r < roles(); ++r) of_role[r] = has_place[r][placed_of(placed, r)].data();
        for (size_t row = rows; row-- > 0;) {
            rows_[count] = static_cast<uint32_t>(row);
            count += of_role[0][row] & of_role[1][row] & of_role[2][row];
        }
        begin_of_placed_.push_back(count);
    }
}

/// Goes backwards from all boundaries placed and all loops below. Searches spend much of their time
/// here.
void MappingSpace::fill_rest(const BoundaryCosts& costs, double at_end, Rest& rest) const {
    // Rows from which no path continues are never written.
    if (rest.size() != placed_count_ * multisets_)
        rest.assign(placed_count_ * multisets_, infinity);
    for (size_t placed = placed_count_; placed-- > 0;) {
        double* here = rest.data() + placed * multisets_;
        RowFill fill{.rows = rows_.data() + begin_of_placed_[placed],
                     .count = begin_of_placed_[placed + 1] - begin_of_placed_[placed],
                     .size = row_size_,
                     .begin_of_next = begin_of_next_.data(),
                     .next_rows = next_rows_.data(),
                     .costs = {},
                     .next = {},
                     .roles = 0,
                     .here = here,
                     .end = placed + 1 == placed_count_ ? all() : multisets_,
                     .at_end = at_end};
        for (size_t r = 0; r < roles(); ++r) {
            const size_t level = placed_of(placed, r);
            if (level + 1 == levels(r)) continue;
            fill.costs[fill.roles] = costs[r][level].data();
            fill.next[fill.roles++] = here + placed_step_[r] * multisets_;
        }
        fill_rows(fill);
    }
}

MappingSpace::Path MappingSpace::follow(const BoundaryCosts& costs, const Rest& rest) const {
    Path path{{start()}, true};
    State state = path.states.front();
    while (!finished(state)) {
        const double* of_placed = rest.data() + placed_index(state.levels) * multisets_;
        const double here = of_placed[state.multiset];
        bool moved = false;
        for (size_t f = 0; f < factors_.size() && !moved; ++f) {
            if (count_of(state.multiset, factors_[f]) == factors_[f].count) continue;
            if (of_placed[state.multiset + factors_[f].step] != here) continue;
            state.multiset += static_cast<uint32_t>(factors_[f].step);
            state.role = 0;
            moved = true;
        }
        for (size_t r = 0; r < roles() && !moved; ++r) {
            const size_t level = state.levels[r];
            if (level + 1 == levels(r)) continue;
            if (costs[r][level][state.multiset] +
                    of_placed[placed_step_[r] * multisets_ + state.multiset] !=
                here)
                continue;
            path.fits = place(r, state) && path.fits;
            moved = true;
        }
        path.states.push_back(state);
    }
    path.fits = path.fits && highest_fit(state);
    return path;
}

LayerMapping MappingSpace::mapping(const std::vector<State>& path) const {
    LayerMapping result;
    result.allocation.resize(roles());
    for (size_t i = 1; i < path.size(); ++i) {
        for (const Factor& factor : factors_) {
            if (path[i].multiset == path[i - 1].multiset + factor.step)
                result.order.push_back({factor.dim, static_cast<double>(factor.prime)});
        }
        for (size_t r = 0; r < roles(); ++r) {
            if (path[i].levels[r] != path[i - 1].levels[r])
                result.allocation[r].push_back(result.order.size());
        }
    }
    for (std::vector<size_t>& bounds : result.allocation) bounds.push_back(result.order.size());
    return result;
}

}  // namespace laminate::depth_first
