#include "papers/layer_optimum/belady.h"

#include <algorithm>
#include <bit>
#include <map>
#include <utility>

#include "base/units.h"

namespace laminate {

namespace {

WindowCells window_cells(const WindowSteps& steps, int64_t outputs, int64_t taps,
                         int64_t output_block, int64_t tap_block) {
    const int64_t output_blocks = ceil_div(outputs, output_block);
    WindowCells cells{{}, {}, ceil_div(taps, tap_block)};
    const auto span = static_cast<size_t>(steps.span(outputs, taps));
    const auto for_each_word = [&](int64_t block, const auto& visit) {
        std::vector<bool> seen(span, false);
        const int64_t i = block / cells.tap_blocks * output_block;
        const int64_t j = block % cells.tap_blocks * tap_block;
        for (int64_t output = i; output < std::min(i + output_block, outputs); ++output) {
            for (int64_t tap = j; tap < std::min(j + tap_block, taps); ++tap) {
                const auto word = static_cast<size_t>(output * steps.stride + tap * steps.dilation);
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
        extents[order[p].loop] = order[p].block;
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
        const int64_t iterations = ceil_div(problem.extent[l.loop], l.block);
        steps = checked_multiply(steps, iterations);
        if (is_related) continue;
        patterns = checked_multiply(patterns, iterations);
        ++kinds;
    }
    const LoopExtents blocks = block_extents(problem, order);
    for (const MapAxis axis : map_axes) {
        if (!access.is_partial(axis)) continue;
        // Borders of the neighbours' windows cut a block: about one per window that reaches into
        // it, at most one per word.
        const int64_t width = problem.touched(axis, blocks);
        const ConvolutionLoop taps = taps_along(axis);
        const int64_t reach =
            ceil_div(width, blocks[outputs_along(axis)] * problem.steps[axis].stride) *
            ceil_div(problem.extent[taps], blocks[taps]);
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
    const auto first_inside = std::find_if(order.begin(), order.end(), [&](const BlockLoop& l) {
        return access[l.loop] != LoopRole::related;
    });
    int64_t common = 1;  // words by which every cell is multiplied: related loops that are whole
    for (const ConvolutionLoop loop : convolution_loops)
        if (access[loop] == LoopRole::related && blocks[loop] == problem.extent[loop])
            common = checked_multiply(common, blocks[loop]);
    set_instances(problem, {order.begin(), first_inside}, common);

    PerAxis<WindowCells> cells;
    for (const MapAxis axis : map_axes) {
        if (!access.is_partial(axis)) continue;
        const ConvolutionLoop outputs = outputs_along(axis);
        const ConvolutionLoop taps = taps_along(axis);
        cells[axis] = window_cells(problem.steps[axis], problem.extent[outputs],
                                   problem.extent[taps], blocks[outputs], blocks[taps]);
    }
    const BlockOrder inside(first_inside, order.end());
    set_waits(inside, cells, set_loops(problem, access, inside));
}

void BeladyStream::set_instances(const ConvolutionProblem& problem, const BlockOrder& outside,
                                 int64_t words) {
    instances_ = {{1, words}};
    for (const BlockLoop& l : outside) {
        std::vector<Instances> split;
        for (const Instances& i : instances_)
            for_each_block(problem.extent[l.loop], l.block, [&](int64_t count, int64_t block) {
                split.push_back({i.count * count, i.factor * block});
            });
        instances_ = std::move(split);
    }
}

int64_t BeladyStream::set_loops(const ConvolutionProblem& problem, const TensorAccess& access,
                                const BlockOrder& inside) {
    int64_t patterns = 1;
    for (auto l = inside.rbegin(); l != inside.rend(); ++l) {
        Loop loop{ceil_div(problem.extent[l->loop], l->block), steps_, 0, 0, 0};
        if (access[l->loop] == LoopRole::related) {
            loop.words = l->block;
            loop.last_words = last_block(problem, *l);
        } else {
            loop.pattern_stride = patterns;
            patterns *= loop.iterations;
        }
        steps_ = checked_multiply(steps_, loop.iterations);
        loops_.insert(loops_.begin(), loop);
    }
    return patterns;
}

/// From the last pattern to the first, so that the next use of every cell is known.
void BeladyStream::set_waits(const BlockOrder& inside, const PerAxis<WindowCells>& cells,
                             int64_t patterns) {
    const WindowCells& columns = cells[MapAxis::x];
    const WindowCells& rows = cells[MapAxis::y];
    // The step at which a pattern stands where related loops are at their first iteration.
    std::vector<int64_t> step_of(static_cast<size_t>(patterns));
    pattern_words_.assign(static_cast<size_t>(patterns), 0);
    std::vector<int64_t> next_pattern(columns.words.size() * rows.words.size(), -1);  // by cell
    std::vector<std::vector<Wait>> waits(static_cast<size_t>(patterns));
    for (int64_t pattern = patterns; pattern-- > 0;) {
        const auto number = static_cast<size_t>(pattern);
        LoopExtents index{};  // of the block; related loops at their first
        for (size_t p = 0; p < loops_.size(); ++p) {
            const Loop& loop = loops_[p];
            if (loop.pattern_stride == 0) continue;
            index[inside[p].loop] = pattern / loop.pattern_stride % loop.iterations;
            step_of[number] += index[inside[p].loop] * loop.step_stride;
        }
        const auto wait_until = [&](int64_t later, int64_t words) {
            const int64_t steps = step_of[static_cast<size_t>(later)] - step_of[number];
            std::vector<Wait>& own = waits[number];
            const auto same = std::find_if(own.begin(), own.end(),
                                           [&](const Wait& wait) { return wait.steps == steps; });
            if (same == own.end()) {
                own.push_back({steps, words});
            } else {
                same->words += words;
            }
        };
        const auto cells_of = [&](MapAxis axis) -> const std::vector<int32_t>& {
            return cells[axis].of_block(index[outputs_along(axis)], index[taps_along(axis)]);
        };
        for (const int32_t column : cells_of(MapAxis::x)) {
            for (const int32_t row : cells_of(MapAxis::y)) {
                const auto x = static_cast<size_t>(column);
                const auto y = static_cast<size_t>(row);
                const int64_t words = columns.words[x] * rows.words[y];
                pattern_words_[number] += words;
                int64_t& later = next_pattern[x * rows.words.size() + y];
                if (later >= 0) wait_until(later, words);
                later = pattern;
            }
        }
    }
    pattern_begin_ = {0};
    for (const std::vector<Wait>& own : waits) {
        waits_.insert(waits_.end(), own.begin(), own.end());
        pattern_begin_.push_back(waits_.size());
    }
}

int64_t BeladyStream::spills() const {
    int64_t words = 0;
    for (const Instances& i : instances_)
        words = checked_add(words, checked_multiply(i.count, spills_of_instance(i.factor)));
    return words;
}

int64_t BeladyStream::spills_of_instance(int64_t factor) const {
    // Words that are kept, by the step of their next use, and those steps.
    std::vector<int64_t> ending(static_cast<size_t>(steps_), 0);
    LargestOf kept(steps_);
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

}  // namespace laminate
