// Parts of a piece of work, handed out to threads: each begins with a range of its own, parts next to each other, and
// goes on with what others have left. Ranges of one thread lie alike from one piece of work to the next, so that a thread
// finds most of what it reads in the cache of its own core, where it wrote it; and a thread that another program takes
// the core from keeps nobody waiting for more than a part.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace laminate {

class PartQueue {
public:
    /// Allocates; nothing else does.
    explicit PartQueue(int threads) : shares_(static_cast<size_t>(threads)) {}

    /// Parts [0, parts) are to be done. While nobody is in work().
    void fill(int64_t parts) {
        const auto threads = static_cast<int64_t>(shares_.size());
        for (int64_t t = 0; t < threads; ++t) {
            Share& share = shares_[static_cast<size_t>(t)];
            share.next.store(parts * t / threads, std::memory_order_relaxed);
            share.end = parts * (t + 1) / threads;
        }
    }

    /// Calls what(part) for parts that no other call gets, until none is left. `thread`: 0 to threads - 1; any number
    /// of them may come, one also does all.
    template <class What>
    void work(int thread, const What& what) {
        for (size_t n = 0; n < shares_.size(); ++n) {
            Share& share = shares_[(static_cast<size_t>(thread) + n) % shares_.size()];
            for (;;) {
                const int64_t part = share.next.fetch_add(1, std::memory_order_relaxed);
                if (part >= share.end) break;
                what(part);
            }
        }
    }

private:
    /// On a cache line of its own.
    struct alignas(64) Share {
        std::atomic<int64_t> next{0};
        int64_t end = 0;
    };
    std::vector<Share> shares_;
};

}  // namespace laminate
