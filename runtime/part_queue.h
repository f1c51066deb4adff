// Hands out the parts of a piece of work to threads. Each thread begins with a range of
// neighbouring parts of its own and then takes what others have left. A thread's ranges lie alike
// from one piece of work to the next, so it finds most of what it reads in the cache of its own
// core, where it wrote it. A thread that loses its core to another program delays the others by one
// part at most, or by some that belong together.
//
// Threads that pass through a row of queues, finish() after finish(), need no barrier between them:
// a piece of work is over when its parts are done, not when every thread has come. A thread that
// got no core meanwhile finds the work done and catches up.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/team.h"

namespace laminate {

class PartQueue {
public:
    /// The only member that allocates.
    explicit PartQueue(int threads)
        : shares_(static_cast<size_t>(threads)), done_(std::make_unique<Done>()) {}

    /// Sets the parts to do, [0, parts). `together`: a thread takes several at a time, but none beyond
    /// the next multiple of this number. Call it while no thread is in work() or finish().
    void fill(int64_t parts, int64_t together = 1) {
        const auto threads = static_cast<int64_t>(shares_.size());
        for (int64_t t = 0; t < threads; ++t) {
            Share& share = shares_[static_cast<size_t>(t)];
            share.next.store(parts * t / threads, std::memory_order_relaxed);
            share.end = parts * (t + 1) / threads;
        }
        done_->parts.store(0, std::memory_order_relaxed);
        parts_ = parts;
        together_ = together;
    }

    /// Calls what(begin, end) for parts that no other thread has taken, until none is left. `thread` is
    /// 0 to threads - 1. Any number of threads may come; one alone does everything.
    template <class What>
    void work(int thread, const What& what) {
        for (size_t n = 0; n < shares_.size(); ++n) {
            Share& share = shares_[(static_cast<size_t>(thread) + n) % shares_.size()];
            int64_t begin = share.next.load(std::memory_order_relaxed);
            while (begin < share.end) {
                const int64_t end = std::min(share.end, (begin / together_ + 1) * together_);
                if (!share.next.compare_exchange_weak(begin, end, std::memory_order_relaxed)) continue;
                what(begin, end);
                begin = share.next.load(std::memory_order_relaxed);
            }
        }
    }

    /// The same, but returns only when all parts are done, including those of other threads, whose
    /// writes are then visible. Every thread that takes parts must take them by finish(). While
    /// waiting it calls help() and rest() as wait_until() does, whose result it returns.
    template <class What, class Help, class Rest>
    bool finish(int thread, const What& what, const Help& help, const Rest& rest) {
        int64_t mine = 0;
        work(thread, [&](int64_t begin, int64_t end) {
            what(begin, end);
            mine += end - begin;
        });
        if (mine > 0) done_->parts.fetch_add(mine, std::memory_order_release);
        return wait_until([&] { return done_->parts.load(std::memory_order_acquire) >= parts_; },
                          help, rest);
    }

private:
    /// On its own cache line.
    struct alignas(64) Share {
        std::atomic<int64_t> next{0};
        int64_t end = 0;
    };
    struct alignas(64) Done {
        std::atomic<int64_t> parts{0};
    };
    std::vector<Share> shares_;
    std::unique_ptr<Done> done_;
    int64_t parts_ = 0;
    int64_t together_ = 1;
};

}  // namespace laminate
