#include "papers/layer_optimum/belady.h"

#include <algorithm>
#include <bit>
#include <map>
#include <utility>

#include "base/units.h"

namespace laminate {

namespace {

/// The words of an axis with windows, by cell, and the cells of the block of outputs i and taps j.
struct WindowCells {
    std::vector<int64_t> words;
    std::vector<std::vector<int32_t>> blocks;  ///< [i * tap blocks + j]
    int64_t tap_blocks = 1;
};

WindowCells window_cells(int64_t outputs, int64_t taps, int64_t output_block, int64_t tap_block,
                         int64_t stride, int64_t dilation) {
    const int64_t output_blocks = ceil_div(outputs, output_block);
    WindowCells cells;
    cells.tap_blocks = ceil_div(taps, tap_block);
    const auto span = static_cast<size_t>((outputs - 1) * stride + (taps - 1) * dilation + 1);
    const auto for_each_word = [&](int64_t block, const auto& visit) {
        std::vector<bool> seen(span, false);
        const int64_t i = block / cells.tap_blocks * output_block;
        const int64_t j = block % cells.tap_blocks * tap_block;
        for (int64_t output = i; output < std::min(i + output_block, outputs); ++output) {
            for (int64_t tap = j; tap < std::min(j + tap_block, taps); ++tap) {
                const auto word = static_cast<size_t>(output * stride + tap * dilation);
                if (!seen[word]) visit(word);
                seen[word] = true;
            }
        }
    };
    // Words start alike; every block tells those inside from those outside.
    std::vector<int32_t> cell_of(span, 0);
    int32_t next = 1;
    for (int64_t block = 0; block < output_blocks * cells.tap_blocks; ++block) {
        std::map<int32_t, int32_t> inside;
        for_each_word(block, [&](size_t word) {
            const auto [entry, is_new] = inside.emplace(cell_of[word], next);
            if (is_new) ++next;
            cell_of[word] = entry->second;
        });
    }
    std::map<int32_t, int32_t> numbers;
    for (int64_t block = 0; block < output_blocks * cells.tap_blocks; ++block) {
        std::vector<int32_t>& list = cells.blocks.emplace_back();
        for_each_word(block, [&](size_t word) {
            const auto [entry, is_new] =
                numbers.emplace(cell_of[word], static_cast<int32_t>(numbers.size()));
            list.push_back(entry->second);
        });
        std::sort(list.begin(), list.end());
        list.erase(std::unique(list.begin(), list.end()), list.end());
    }
    cells.words.assign(numbers.size(), 0);
    for (size_t word = 0; word < span; ++word) {
        const auto entry = numbers.find(cell_of[word]);
        if (entry != numbers.end()) ++cells.words[static_cast<size_t>(entry->second)];
    }
    return cells;
}

int64_t last_block(const ConvolutionProblem& problem, const BlockLoop& l) {
    const int64_t rest = at(problem.extent, l.loop) % l.block;
    return rest == 0 ? l.block : rest;
}

/// A set of numbers below a limit whose largest one is at hand: bits, and bits of the words of bits
/// that hold any.
class LargestOf {
public:
    explicit LargestOf(int64_t limit) {
        do {
            limit = ceil_div(limit, 64);
            levels_.emplace_back(static_cast<size_t>(limit), 0);
        } while (limit > 1);
    }
    void insert(int64_t number) {
        for (std::vector<uint64_t>& level : levels_) {
            uint64_t& word = level[static_cast<size_t>(number / 64)];
            const bool was_empty = word == 0;
            word |= uint64_t{1} << (number % 64);
            if (!was_empty) return;
            number /= 64;
        }
    }
    void erase(int64_t number) {
        for (std::vector<uint64_t>& level : levels_) {
            uint64_t& word = level[static_cast<size_t>(number / 64)];
            word &= ~(uint64_t{1} << (number % 64));
            if (word != 0) return;
            number /= 64;
        }
    }
    /// Of a set that is not empty.
    [[nodiscard]] int64_t largest() const {
        int64_t number = 0;
        for (auto level = levels_.rbegin(); level != levels_.rend(); ++level)
            number = 64 * number + 63 - std::countl_zero((*level)[static_cast<size_t>(number)]);
        return number;
    }

private:
    std::vector<std::vector<uint64_t>> levels_;  ///< finest first
};

}  // namespace

BlockOrder needed_order(const ConvolutionProblem& problem, Operand operand, const BlockOrder& order,
                        int64_t memory) {
    const TensorAccess access = tensor_access(problem, operand);
    LoopExtents extents = problem.extent;
    for (size_t p = 0; p < order.size(); ++p) {
        if (access[order[p].loop] == LoopRole::reuse &&
            touched_words(problem, operand, extents) <= memory)
            return {order.begin(), order.begin() + static_cast<std::ptrdiff_t>(p)};
        at(extents, order[p].loop) = order[p].block;
    }
    return order;
}

int64_t BeladyStream::uses(const ConvolutionProblem& problem, Operand operand,
                           const BlockOrder& whole_order, int64_t memory) {
    const TensorAccess access = tensor_access(problem, operand);
    const BlockOrder order = needed_order(problem, operand, whole_order, memory);
    int64_t steps = 1;
    int64_t patterns = 1;
    int64_t kinds = 1;
    bool is_instance = true;
    for (const BlockLoop& l : order) {
        const bool is_related = access[l.loop] == LoopRole::related;
        is_instance = is_instance && is_related;
        if (is_instance) continue;
        const int64_t iterations = ceil_div(at(problem.extent, l.loop), l.block);
        steps = checked_multiply(steps, iterations);
        if (is_related) continue;
        patterns = checked_multiply(patterns, iterations);
        ++kinds;
    }
    const LoopExtents blocks = block_extents(problem, order);
    for (size_t a = 0; a < 2; ++a) {
        if (access.role[3 + a] != LoopRole::partial) continue;
        // Borders of the neighbours' windows cut a block: about one per window that reaches into
        // it, at most one per word.
        const int64_t width =
            touched_words(blocks[3 + a], blocks[5 + a], problem.stride[a], problem.dilation[a]);
        const int64_t reach = ceil_div(width, blocks[3 + a] * problem.stride[a]) *
                              ceil_div(problem.extent[5 + a], blocks[5 + a]);
        patterns = checked_multiply(patterns, std::min(width, 2 * reach));
    }
    return checked_add(checked_multiply(steps, kinds), patterns);
}

BeladyStream::BeladyStream(const ConvolutionProblem& problem, Operand operand,
                           const BlockOrder& whole_order, int64_t memory)
    : memory_(memory) {
    const TensorAccess access = tensor_access(problem, operand);
    const BlockOrder order = needed_order(problem, operand, whole_order, memory);
    const LoopExtents blocks = block_extents(problem, order);
    size_t begin = 0;
    while (begin < order.size() && access[order[begin].loop] == LoopRole::related) ++begin;

    // Words by which every cell is multiplied: related loops that are whole.
    int64_t common = 1;
    for (size_t l = 0; l < convolution_loops; ++l)
        if (access.role[l] == LoopRole::related && blocks[l] == problem.extent[l])
            common = checked_multiply(common, blocks[l]);
    instances_ = {{1, common}};
    for (size_t p = 0; p < begin; ++p) {
        const int64_t extent = at(problem.extent, order[p].loop);
        const int64_t full = extent / order[p].block;
        const int64_t rest = extent % order[p].block;
        std::vector<Instances> split;
        for (const Instances& i : instances_) {
            split.push_back({i.count * full, i.factor * order[p].block});
            if (rest > 0) split.push_back({i.count, i.factor * rest});
        }
        instances_ = std::move(split);
    }

    std::array<WindowCells, 2> axes;
    for (size_t a = 0; a < 2; ++a) {
        if (access.role[3 + a] == LoopRole::partial) {
            axes[a] = window_cells(problem.extent[3 + a], problem.extent[5 + a], blocks[3 + a],
                                   blocks[5 + a], problem.stride[a], problem.dilation[a]);
        } else {
            axes[a] = {{1}, {{0}}, 1};
        }
    }

    int64_t patterns = 1;
    for (size_t p = order.size(); p-- > begin;) {
        const BlockLoop& l = order[p];
        const int64_t extent = at(problem.extent, l.loop);
        Loop loop{ceil_div(extent, l.block), steps_, 0, 0, 0};
        if (access[l.loop] == LoopRole::related) {
            loop.words = l.block;
            loop.last_words = last_block(problem, l);
        } else {
            loop.pattern_stride = patterns;
            patterns *= loop.iterations;
        }
        steps_ = checked_multiply(steps_, loop.iterations);
        loops_.insert(loops_.begin(), loop);
    }

    // Of every pattern the step that it stands at where related loops are at their first iteration,
    // and its blocks along the axes.
    std::vector<int64_t> step_of(static_cast<size_t>(patterns));
    pattern_begin_.assign(static_cast<size_t>(patterns) + 1, 0);
    pattern_words_.assign(static_cast<size_t>(patterns), 0);
    const size_t y_cells = axes[1].words.size();
    std::vector<int64_t> next(axes[0].words.size() * y_cells,
                              -1);  // pattern of the next use of a cell
    std::vector<std::vector<Wait>> waits(static_cast<size_t>(patterns));
    for (int64_t pattern = patterns; pattern-- > 0;) {
        const auto number = static_cast<size_t>(pattern);
        LoopExtents block_index{};
        for (size_t p = 0; p < loops_.size(); ++p) {
            if (loops_[p].pattern_stride == 0) continue;
            const int64_t index = pattern / loops_[p].pattern_stride % loops_[p].iterations;
            at(block_index, order[begin + p].loop) = index;
            step_of[number] += index * loops_[p].step_stride;
        }
        std::array<const std::vector<int32_t>*, 2> cells{};
        for (size_t a = 0; a < 2; ++a) {
            cells[a] = access.role[3 + a] == LoopRole::partial
                           ? &axes[a].blocks[static_cast<size_t>(
                                 block_index[3 + a] * axes[a].tap_blocks + block_index[5 + a])]
                           : &axes[a].blocks.front();
        }
        std::vector<Wait>& own = waits[number];
        for (const int32_t cell_x : *cells[0]) {
            for (const int32_t cell_y : *cells[1]) {
                const int64_t words = axes[0].words[static_cast<size_t>(cell_x)] *
                                      axes[1].words[static_cast<size_t>(cell_y)];
                pattern_words_[number] += words;
                int64_t& later =
                    next[static_cast<size_t>(cell_x) * y_cells + static_cast<size_t>(cell_y)];
                if (later >= 0) {
                    const int64_t steps = step_of[static_cast<size_t>(later)] - step_of[number];
                    const auto same = std::find_if(own.begin(), own.end(), [&](const Wait& wait) {
                        return wait.steps == steps;
                    });
                    if (same == own.end()) {
                        own.push_back({steps, words});
                    } else {
                        same->words += words;
                    }
                }
                later = pattern;
            }
        }
    }
    for (size_t n = 0; n < waits.size(); ++n) {
        waits_.insert(waits_.end(), waits[n].begin(), waits[n].end());
        pattern_begin_[n + 1] = waits_.size();
    }
}

int64_t BeladyStream::spills() const {
    int64_t words = 0;
    for (const Instances& i : instances_)
        words = checked_add(words, checked_multiply(i.count, spills_of_instance(i.factor)));
    return words;
}

int64_t BeladyStream::spills_of_instance(int64_t factor) const {
    std::vector<int64_t> ending(static_cast<size_t>(steps_),
                                0);  // words that are kept, by the step of their next use
    LargestOf kept(steps_);          // those steps
    int64_t waiting = 0;
    int64_t spilled = 0;
    std::vector<int64_t> index(loops_.size(), 0);
    size_t pattern = 0;
    int64_t related_words = factor;
    const auto count_related = [&] {
        related_words = factor;
        for (size_t p = 0; p < loops_.size(); ++p)
            if (loops_[p].pattern_stride == 0)
                related_words *=
                    index[p] + 1 == loops_[p].iterations ? loops_[p].last_words : loops_[p].words;
    };
    count_related();
    for (int64_t s = 0; s < steps_; ++s) {
        const auto step = static_cast<size_t>(s);
        if (ending[step] > 0) {
            waiting -= ending[step];
            kept.erase(s);
        }
        const int64_t room = memory_ - pattern_words_[pattern] * related_words;
        while (waiting > room) {
            int64_t& last = ending[static_cast<size_t>(kept.largest())];
            const int64_t dropped = std::min(last, waiting - room);
            waiting -= dropped;
            spilled += dropped;
            last -= dropped;
            if (last == 0) kept.erase(kept.largest());
        }
        for (size_t w = pattern_begin_[pattern]; w < pattern_begin_[pattern + 1]; ++w) {
            const int64_t words = waits_[w].words * related_words;
            const int64_t end = s + waits_[w].steps;
            waiting += words;
            if (ending[static_cast<size_t>(end)] == 0) kept.insert(end);
            ending[static_cast<size_t>(end)] += words;
        }
        bool is_related_changed = false;
        for (size_t p = loops_.size(); p-- > 0;) {
            const Loop& loop = loops_[p];
            is_related_changed = is_related_changed || loop.pattern_stride == 0;
            if (++index[p] < loop.iterations) {
                pattern += static_cast<size_t>(loop.pattern_stride);
                break;
            }
            index[p] = 0;
            pattern -= static_cast<size_t>(loop.pattern_stride * (loop.iterations - 1));
        }
        if (is_related_changed) count_related();
    }
    return spilled;
}

namespace {

/// Product of the extents of a tensor's related loops within one iteration of the first `until`
/// loops, of the smallest or a full one.
int64_t related_words(const ConvolutionProblem& problem, const TensorAccess& access,
                      const BlockOrder& order, size_t until, bool smallest) {
    int64_t words = 1;
    for (size_t l = 0; l < convolution_loops; ++l) {
        if (access.role[l] != LoopRole::related) continue;
        int64_t extent = problem.extent[l];
        for (size_t q = 0; q < until; ++q)
            if (static_cast<size_t>(order[q].loop) == l)
                extent = smallest ? last_block(problem, order[q]) : order[q].block;
        words = checked_multiply(words, extent);
    }
    return words;
}

/// Words of a step at the border between two iterations of a loop over output columns (or rows),
/// position p, beyond those that cross the border.
struct BesideBorder {
    /// First step of the later iteration: of its block, what the earlier iteration did not touch.
    int64_t beside = 0;
    /// First step of the last iteration of the next inner loop over rows (columns), within the
    /// earlier iteration: what that loop's iterations share and the new rows of the block, less
    /// what the step comes too early for. 0 where there is no such loop.
    int64_t inner = 0;
};

BesideBorder beside_border(const ConvolutionProblem& problem, const TensorAccess& access,
                           const BlockOrder& order, size_t p, bool is_prefix) {
    const auto last_of = [&](const BlockLoop& l) { return last_block(problem, l); };
    const auto is_tap = [&](size_t q) {
        return order[q].loop == ConvolutionLoop::m || order[q].loop == ConvolutionLoop::n;
    };
    // Where taps are cut further in, a block is narrower than its windows; its words are left out.
    bool windows_are_whole = !is_prefix;
    const auto own = static_cast<size_t>(order[p].loop);
    const size_t a = own - 3;
    const size_t b = 1 - a;
    LoopExtents taps = problem.extent;  // of m and n: their smallest blocks
    for (size_t q = 0; q < order.size(); ++q) {
        if (q > p && is_tap(q)) {
            windows_are_whole = false;
        } else {
            at(taps, order[q].loop) = last_of(order[q]);
        }
    }
    const auto width = [&](size_t axis, int64_t outputs) {
        return touched_words(outputs, taps[5 + axis], problem.stride[axis], problem.dilation[axis]);
    };
    const int64_t before = order[p].block;
    const int64_t after = last_of(order[p]);
    const auto related = [&](size_t until, bool smallest) {
        return related_words(problem, access, order, until, smallest);
    };
    BesideBorder result;
    const bool has_other_axis = access.role[3 + b] == LoopRole::partial;
    const int64_t smallest_block = windows_are_whole ? related(order.size(), true) : 0;
    result.beside = smallest_block * (width(a, before + after) - width(a, before)) *
                    (has_other_axis ? width(b, taps[3 + b]) : 1);

    size_t next = p + 1;
    while (next < order.size() && access[order[next].loop] == LoopRole::related) ++next;
    if (next == order.size() || static_cast<size_t>(order[next].loop) != 3 + b || !has_other_axis)
        return result;
    // Where taps are ragged outside of both loops, windows differ from instance to instance; not
    // looked at.
    for (size_t q = 0; q < p; ++q)
        if (is_tap(q)) return result;
    const int64_t rows = problem.extent[3 + b];
    const int64_t last = last_of(order[next]);
    const int64_t new_rows = width(b, rows) - width(b, rows - last);
    const int64_t shared_rows =
        width(b, order[next].block) + width(b, last) - width(b, order[next].block + last);
    const int64_t shared_columns = width(a, before) + width(a, before) - width(a, before + before);
    result.inner = related(next + 1, true) * shared_rows * width(a, before) -
                   related(next + 1, false) * shared_columns * (new_rows + shared_rows) +
                   smallest_block * width(a, before) * new_rows;
    result.inner = std::max<int64_t>(result.inner, 0);
    return result;
}

/// Words that a sweep of windows over columns and rows (rows and columns) holds in its midst: what
/// neighbouring tiles share and, within a tile, neighbouring rows of it. For the loops from
/// position `begin` on, inside a reuse group of so many rounds. 0 where they are no such sweep, or
/// too short for a step in every round with a whole window between their places.
int64_t sweeping_windows(const ConvolutionProblem& problem, const TensorAccess& access,
                         const BlockOrder& order, size_t begin, int64_t rounds) {
    const auto next_other = [&](size_t from) {
        while (from < order.size() && access[order[from].loop] == LoopRole::related) ++from;
        return from;
    };
    const size_t outer = next_other(begin);
    const size_t inner = next_other(outer + 1);
    const auto is_window_output = [&](size_t q) {
        return q < order.size() && access[order[q].loop] == LoopRole::partial &&
               (order[q].loop == ConvolutionLoop::x || order[q].loop == ConvolutionLoop::y);
    };
    if (!is_window_output(outer) || !is_window_output(inner)) return 0;
    for (size_t q = 0; q < inner; ++q)
        if (order[q].loop == ConvolutionLoop::m || order[q].loop == ConvolutionLoop::n) return 0;
    const auto last_of = [&](const BlockLoop& l) { return last_block(problem, l); };
    const auto related = [&](size_t until, bool smallest) {
        return related_words(problem, access, order, until, smallest);
    };
    const size_t a = order[outer].loop == ConvolutionLoop::x ? 0 : 1;
    const size_t b = 1 - a;
    const auto width = [&](size_t axis, int64_t outputs) {
        return touched_words(outputs, problem.extent[5 + axis], problem.stride[axis],
                             problem.dilation[axis]);
    };
    const int64_t tile = order[outer].block;
    // Neighbouring tiles that a word can be in: the steps of two rounds lie so far apart that none
    // is in the tiles of both. The first and the last tile share words with one neighbour only.
    const int64_t reach =
        ceil_div((problem.extent[5 + a] - 1) * problem.dilation[a], tile * problem.stride[a]) + 1;
    if (problem.extent[3 + a] / tile < 3 + (rounds - 1) * reach) return 0;
    const int64_t rows = order[inner].block;
    const int64_t last = last_of(order[inner]);
    const int64_t shared_columns = 2 * width(a, tile) - width(a, 2 * tile);
    const int64_t shared_rows = width(b, rows) + width(b, last) - width(b, rows + last);
    return std::max<int64_t>(
        0, related(outer + 1, true) * shared_columns * width(b, problem.extent[3 + b]) +
               related(inner + 1, true) * shared_rows * width(a, tile) -
               related(inner + 1, false) * shared_columns * shared_rows);
}

}  // namespace

BeladyBound::BeladyBound(const ConvolutionProblem& problem, Operand operand,
                         const BlockOrder& order, bool is_prefix) {
    const TensorAccess access = tensor_access(problem, operand);
    const auto iterations = [&](size_t p) {
        return ceil_div(at(problem.extent, order[p].loop), order[p].block);
    };
    // Of one iteration of the loops before a position: words of all instances together, and of the
    // smallest.
    LoopExtents blocks = problem.extent;    // full blocks of the loops before the position
    LoopExtents smallest = problem.extent;  // last blocks
    int64_t outside = 1;                    // iterations of all loops further out
    int64_t outside_size = 1;               // and of those that are no related loops
    int64_t repeats = 1;
    // Blocks of the related loops further out, by their extents: how many, and words with all other
    // related loops whole.
    struct Blocks {
        int64_t count = 1;
        int64_t words = 1;
    };
    std::vector<Blocks> kinds(1);
    for (size_t l = 0; l < convolution_loops; ++l)
        if (access.role[l] == LoopRole::related)
            kinds.front().words = checked_multiply(kinds.front().words, problem.extent[l]);
    const auto alike_instances = [&](int64_t factor, int64_t borders, int64_t rounds) {
        std::vector<AlikeInstances> alike;
        for (const Blocks& kind : kinds) {
            const int64_t crossing =
                checked_multiply(checked_multiply(kind.count, kind.words), factor);
            alike.push_back({kind.count * outside_size * borders, crossing,
                             checked_multiply(crossing, rounds)});
        }
        return alike;
    };
    const auto axis_sum = [&](size_t a, const auto& of_block) {
        int64_t sum = 0;
        for_each_block(problem.extent[3 + a], blocks[3 + a], [&](int64_t n, int64_t outputs) {
            for_each_block(problem.extent[5 + a], blocks[5 + a], [&](int64_t k, int64_t taps) {
                sum += n * k * of_block(outputs, taps);
            });
        });
        return sum;
    };
    const auto words = [&](size_t a, int64_t outputs, int64_t taps) {
        return touched_words(outputs, taps, problem.stride[a], problem.dilation[a]);
    };
    for (size_t p = 0; p < order.size(); ++p) {
        const ConvolutionLoop loop = order[p].loop;
        const auto number = static_cast<size_t>(loop);
        const LoopRole role = access[loop];
        const int64_t n = iterations(p);
        if (role == LoopRole::related && !groups_.empty()) groups_.back().has_subgroups = true;
        if (role != LoopRole::related) {
            Group g;
            g.instances = outside;
            int64_t factor = repeats;  // words that cross for each of the related loops
            for (size_t a = 0; a < 2; ++a) {
                if (access.role[3 + a] != LoopRole::partial || number == 3 + a || number == 5 + a)
                    continue;
                factor = checked_multiply(
                    factor, axis_sum(a, [&](int64_t i, int64_t j) { return words(a, i, j); }));
            }
            if (role == LoopRole::reuse) {
                g.is_reuse = true;
                g.smallest = touched_words(problem, operand, smallest);
                g.largest = touched_words(problem, operand, blocks);
                // Adjacent reuse loops are one group.
                int64_t rounds = n;
                size_t inner = p + 1;
                for (; inner < order.size() && access[order[inner].loop] == LoopRole::reuse;
                     ++inner)
                    rounds *= iterations(inner);
                // Steps of a round: subgroups between this group and the next one of a reuse loop,
                // else blocks.
                int64_t steps = 1;
                size_t next = inner;
                for (; next < order.size() && access[order[next].loop] != LoopRole::reuse; ++next)
                    steps *= iterations(next);
                // The innermost group of a prefix may have any number of steps, or be the blocks'
                // own.
                const bool is_open = is_prefix && next == order.size();
                if (is_open || steps > 1) {
                    g.steps = is_open ? rounds - 1 : (rounds - 1) * steps / (steps - 1);
                    g.alike = alike_instances(factor, 1, rounds - 1);
                    for (const AlikeInstances& a : g.alike) g.all = checked_add(g.all, a.all);
                    g.rounds = rounds;
                    g.sweep = sweeping_windows(problem, access, order, inner, rounds);
                    groups_.push_back(g);
                }
                for (size_t q = p; q < inner; ++q) {
                    outside *= iterations(q);
                    outside_size *= iterations(q);
                    repeats *= iterations(q);
                }
                p = inner - 1;
                continue;
            }
            // Neighbours of a partial loop, summed over the pairs.
            const size_t a = number == 3 || number == 5 ? 0 : 1;
            const bool is_output = number < 5;
            const int64_t extent = problem.extent[number];
            int64_t shared = 0;
            for_each_block(problem.extent[is_output ? 5 + a : 3 + a],
                           blocks[is_output ? 5 + a : 3 + a], [&](int64_t count, int64_t other) {
                               const auto width = [&](int64_t own) {
                                   return is_output ? words(a, own, other) : words(a, other, own);
                               };
                               for_each_border(extent, order[p].block,
                                               [&](int64_t borders, int64_t before, int64_t after) {
                                                   shared += count * borders *
                                                             (width(before) + width(after) -
                                                              width(before + after));
                                               });
                           });
            g.alike = alike_instances(checked_multiply(factor, shared), n - 1, 1);
            for (const AlikeInstances& part : g.alike) g.all = checked_add(g.all, part.all);
            g.instances = outside * (n - 1);
            g.steps = 1;
            const auto shared_words = [&](LoopExtents extents, int64_t after_border) {
                const auto touched = [&](int64_t own) {
                    extents[number] = own;
                    return touched_words(problem, operand, extents);
                };
                const int64_t before_border = order[p].block;
                return touched(before_border) + touched(after_border) -
                       touched(before_border + after_border);
            };
            g.smallest = shared_words(smallest, last_block(problem, order[p]));
            g.largest = shared_words(blocks, order[p].block);
            if (is_output) {
                const auto [beside, inner] = beside_border(problem, access, order, p, is_prefix);
                g.beside = beside;
                g.inner = inner;
            }
            groups_.push_back(g);
        }
        outside *= n;
        if (role == LoopRole::related) {
            std::vector<Blocks> split;
            for (const Blocks& kind : kinds) {
                for_each_block(
                    problem.extent[number], order[p].block, [&](int64_t count, int64_t extent) {
                        split.push_back(
                            {kind.count * count, kind.words / problem.extent[number] * extent});
                    });
            }
            kinds = std::move(split);
        } else {
            outside_size *= n;
        }
        if (role == LoopRole::reuse) repeats *= n;
        blocks[number] = order[p].block;
        smallest[number] = problem.extent[number] % order[p].block == 0
                               ? order[p].block
                               : problem.extent[number] % order[p].block;
    }
}

int64_t BeladyBound::spills(int64_t memory) const {
    return std::max(spills(memory, false), spills(memory, true));
}

int64_t BeladyBound::spills(int64_t memory, bool apart) const {
    int64_t sum = 0;
    bool is_spilled_inside = false;
    bool is_free_inside = false;  // the next inner group spills nothing
    bool is_apart = false;        // other subgroups that spill lie between two uses of a word
    int64_t counted = memory;     // words at a step that further groups do not count again
    for (auto g = groups_.rbegin(); g != groups_.rend(); ++g) {
        is_apart = is_spilled_inside && (is_apart || g->has_subgroups);
        if (is_apart) {
            sum += g->all;
            is_free_inside = false;
            continue;
        }
        // The better of two steps at every border; the inner one takes from the next inner group,
        // which then has none of its own.
        const int64_t more = is_free_inside ? std::max(g->beside, g->inner) : g->beside;
        const int64_t held = (g->is_reuse ? counted : memory) - more;
        const auto spilled_of = [&](int64_t instances, int64_t crossing, int64_t all) {
            const int64_t room = checked_multiply(instances, held);
            const int64_t words = crossing > room ? checked_multiply(crossing - room, g->steps) : 0;
            return more == g->beside ? std::min(all, words) : words;
        };
        int64_t spilled = 0;
        int64_t crossing = 0;
        for (const AlikeInstances& a : g->alike) {
            if (apart) spilled += spilled_of(a.instances, a.crossing, a.all);
            crossing += a.crossing;
        }
        if (!apart) spilled = spilled_of(g->instances, crossing, g->all);
        if (apart && spilled > 0) counted = std::max(counted, g->largest);
        sum += spilled;
        // Or, instead of all steps so far, one in the midst of every round: all words that are used
        // in the next round cross one of them, and what the windows hold.
        if (g->sweep > 0 && !is_spilled_inside)
            sum = std::max(sum, g->all - checked_multiply(checked_multiply(g->instances, g->rounds),
                                                          memory - g->sweep));
        is_free_inside = spilled == 0;
        is_spilled_inside = is_spilled_inside || g->smallest > memory;
    }
    return sum;
}

}  // namespace laminate
