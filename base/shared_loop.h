// Loops of independent iterations, shared among threads within microseconds.
//
// A network runs in one team (team.h, session.cpp), and the thread that runs a layer leads the layer's
// loops. Threads that wait for the layer help meanwhile, and nobody waits for a thread without a
// core, unless it has taken a part.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <vector>

namespace laminate {

/// Number of threads for an OpenMP region: `threads`, or all if it is 0. It is 1 in a child forked
/// from a process that had started a team, because the child lacks the team's threads and OpenMP
/// would wait for them forever.
[[nodiscard]] int team_size(int threads);

/// Shares the loops that one thread leads, one after the other. As in PartQueue (runtime/part_queue.h),
/// each thread begins with neighbouring iterations of its own and then takes what others have left: from
/// layer to layer it finds most of what it reads where it wrote it.
class SharedLoop {
public:
    /// Runs iterations [begin, end) of the loop that `context` points to.
    using Range = void (*)(const void* context, int64_t begin, int64_t end);

    explicit SharedLoop(int threads);
    /// Runs iterations [0, count) by the caller, which is thread number `thread`, and by the threads that
    /// call help() meanwhile. Returns when all are done. Only one thread may lead at a time.
    void lead(int thread, int64_t count, Range range, const void* context);
    /// Runs parts of the loop that is being led until none is left. Returns false if none was. Any thread
    /// may call it; `thread` is 0 to threads - 1.
    bool help(int thread);

    /// While it lives, parallel_for() on this thread, which is thread number `thread`, shares its
    /// iterations through `loop`; if that is null, the thread runs all of them itself.
    class Leader {
    public:
        Leader(SharedLoop* loop, int thread);
        ~Leader();
        Leader(const Leader&) = delete;
        Leader& operator=(const Leader&) = delete;

    private:
        struct Led {
            SharedLoop* loop = nullptr;
            int thread = 0;
        };
        friend void share_out(int64_t count, int threads, SharedLoop::Range range, const void* context);
        static thread_local Led here;
        Led outer_;
    };

private:
    /// The loop's number, the end of a thread's parts and the next of them to take. One word holds them,
    /// so a thread that takes a part knows to which loop it belongs. A thread that has taken a part may
    /// read the members below until the part is done.
    struct alignas(64) Share {
        std::atomic<uint64_t> state{0};
    };
    static constexpr int part_bits = 16;
    std::vector<Share> shares_;
    alignas(64) std::atomic<int64_t> done_{0};
    uint64_t number_ = 0;
    int64_t count_ = 0, parts_ = 0;
    Range range_ = nullptr;
    const void* context_ = nullptr;
};

/// Shares iterations through the SharedLoop that this thread leads, or else in an OpenMP region of
/// team_size(threads) threads; a thread of a team or of another region runs them alone.
void share_out(int64_t count, int threads, SharedLoop::Range range, const void* context);

/// Calls body(k) for every k in [0, count), in any order, on several threads at once. Bodies must
/// not throw.
template <class Body>
void parallel_for(int64_t count, int threads, const Body& body) {
    share_out(
        count, threads,
        [](const void* context, int64_t begin, int64_t end) {
            const Body& run = *static_cast<const Body*>(context);
            for (int64_t k = begin; k < end; ++k) run(k);
        },
        &body);
}

}  // namespace laminate
