#include "tests/papers/patch_fusion/schedule_walk.h"

#include <algorithm>
#include <map>
#include <set>

namespace laminate::patch_fusion {

namespace {

class BlockWalk {
public:
    BlockWalk(const PatchGraph& graph, const PatchBlock& block)
        : graph_(graph), block_(block), strips_(block.segments.size()) {}

    Walked run() {
        const int first = block_.segments.front().first;
        const int last = block_.segments.back().last;
        for (int n = 0; n < first; ++n) {
            if (graph_.map(n).last_reader() >= first) whole_ += graph_.map(n).bytes();
        }
        whole_ += graph_.map(last).bytes();
        // Rows of a ring that nothing reads are made last.
        for (size_t q = block_.segments.size(); q-- > 0;)
            while (made_rows(q) < height(q)) run_strip(q);
        int64_t rings = 0;
        for (const auto& [map, bytes] : ring_bytes_) rings += bytes;
        return {whole_ + rings + windows_, macs_};
    }

private:
    [[nodiscard]] int last_of(size_t q) const { return block_.segments[q].last; }
    [[nodiscard]] bool sums(int layer) const { return graph_.layer(layer).intake == Intake::sums; }
    /// The map whose rows the strips of a segment are cut from.
    [[nodiscard]] const PatchMap& cut_map(int last) const {
        return graph_.map(sums(last) ? graph_.layer(last).inputs.front() : last);
    }
    [[nodiscard]] int64_t height(size_t q) const { return cut_map(last_of(q)).height; }
    [[nodiscard]] int64_t made_rows(size_t q) const {
        return std::min(strips_[q] * block_.segments[q].rows, height(q));
    }
    /// Input coordinates that one output coordinate reads.
    static std::set<int64_t> taps(const AxisWindow& w, int64_t out) {
        std::set<int64_t> read;
        for (int64_t tap = 0; tap < w.kernel; ++tap) {
            if (const auto in = w.input(out, tap)) read.insert(*in);
        }
        return read;
    }
    [[nodiscard]] std::set<int64_t> read_by(int layer, int axis, int64_t out) const {
        if (sums(layer)) return {out};
        return taps(graph_.layer(layer).window[static_cast<size_t>(axis)], out);
    }

    /// Rows of every map that a strip needs: from the first to the last that is read.
    std::map<int, std::set<int64_t>> rows_of_strip(const Segment& segment, int64_t begin,
                                                   int64_t end) const {
        std::map<int, std::set<int64_t>> rows;
        for (int64_t row = begin; row < end; ++row) rows[segment.last].insert(row);
        for (int n = segment.last; n >= segment.first; --n) {
            std::set<int64_t>& own = rows[n];
            if (own.empty()) continue;
            for (int64_t row = *own.begin(); row <= *own.rbegin(); ++row) own.insert(row);
            for (const int64_t row : own) {
                const std::set<int64_t> read = read_by(n, 0, row);
                for (const int input : graph_.layer(n).inputs)
                    rows[input].insert(read.begin(), read.end());
            }
        }
        return rows;
    }

    void run_strip(size_t q) {
        const Segment& segment = block_.segments[q];
        const int64_t begin = made_rows(q);
        const int64_t end = std::min(begin + segment.rows, height(q));
        auto rows = rows_of_strip(segment, begin, end);
        const int ring = segment.first - 1;
        if (q > 0 && !rows[ring].empty()) {
            while (made_rows(q - 1) <= *rows[ring].rbegin() && made_rows(q - 1) < height(q - 1))
                run_strip(q - 1);
            const int64_t made = sums(ring) ? 1 : made_rows(q - 1);
            int64_t& most = ring_bytes_[ring];
            most = std::max(most, (made - *rows[ring].begin()) * graph_.map(ring).row_bytes());
        }
        ++strips_[q];
        made_columns_.clear();
        held_.clear();
        for (int64_t column = 0; column < cut_map(segment.last).width; ++column)
            make_column(segment, rows, segment.last);
        if (sums(segment.last) && end == height(q)) macs_ += graph_.layer(segment.last).macs;
    }

    /// Makes the next column of a layer's map, after the columns of its inputs that it reads.
    void make_column(const Segment& segment, const std::map<int, std::set<int64_t>>& rows,
                     int layer) {
        const int64_t column = made_columns_[layer];
        const std::set<int64_t> read = read_by(layer, 1, column);
        for (const int input : graph_.layer(layer).inputs) {
            if (input < segment.first || input > segment.last || read.empty()) continue;
            while (made_columns_[input] <= *read.rbegin()) make_column(segment, rows, input);
        }
        look(segment, rows);
        ++made_columns_[layer];
        if (!sums(layer)) {
            const PatchMap& map = graph_.map(layer);
            const auto own = rows.find(layer);
            macs_ += graph_.layer(layer).macs / (map.height * map.width) *
                     static_cast<int64_t>(own->second.size());
        }
    }

    /// Adds up the windows: columns made that some reader still reads.
    void look(const Segment& segment, const std::map<int, std::set<int64_t>>& rows) {
        int64_t bytes = 0;
        for (int n = segment.first; n < segment.last; ++n) {
            int64_t needed = made_columns_[n];
            for (const int reader : graph_.map(n).readers) {
                const int64_t next = made_columns_[reader];
                const int64_t width = sums(reader) ? graph_.map(n).width : graph_.map(reader).width;
                if (next >= width) continue;
                const std::set<int64_t> read = read_by(reader, 1, next);
                if (!read.empty()) needed = std::min(needed, *read.begin());
            }
            int64_t& most = held_[n];
            most = std::max(most, made_columns_[n] - needed);
            bytes += most * static_cast<int64_t>(rows.at(n).size()) * graph_.map(n).column_bytes();
        }
        windows_ = std::max(windows_, bytes);
    }

    const PatchGraph& graph_;
    const PatchBlock& block_;
    std::vector<int64_t> strips_;  ///< done, by segment
    std::map<int, int64_t> made_columns_;
    std::map<int, int64_t> held_;  ///< of each map, the most columns in this strip
    std::map<int, int64_t> ring_bytes_;
    int64_t whole_ = 0;
    int64_t windows_ = 0;
    int64_t macs_ = 0;
};

}  // namespace

Walked walk(const PatchGraph& graph, const PatchBlock& block) {
    return BlockWalk(graph, block).run();
}

}  // namespace laminate::patch_fusion
