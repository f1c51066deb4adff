// Loops of independent iterations, shared among threads within microseconds.
//
// A network runs in one team (team.h, session.cpp), and the thread that runs a layer leads the layer's
// loops. Threads that wait for the layer help meanwhile, and nobody waits for a thread without a
// core, unless it has taken a part.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace laminate {

/// Number of threads for an OpenMP region: `threads`, or all if it is 0. It is 1 in a child forked
/// from a process that had started a team, because the child lacks the team's threads and OpenMP
/// would wait for them forever.
[[nodiscard]] int team_size(int threads);

/// Shares the loops that one thread leads, one after the other.
class SharedLoop {
public:
    /// Runs iterations [begin, end) of the loop that `context` points to.
    using Range = void (*)(const void* context, int64_t begin, int64_t end);

    /// Runs iterations [0, count), in parts for `threads` threads, by the caller and by the threads
    /// that call help() meanwhile. Returns when all are done. Only one thread may lead at a time.
    void lead(int64_t count, int threads, Range range, const void* context);
    /// Runs a part of the loop that is being led. Returns false if no part is left. Any thread may
    /// call it.
    bool help();

    /// While it lives, parallel_for() on this thread shares its iterations through `loop`; if that
    /// is null, the thread runs all of them itself.
    class Leader {
    public:
        explicit Leader(SharedLoop* loop);
        ~Leader();
        Leader(const Leader&) = delete;
        Leader& operator=(const Leader&) = delete;

    private:
        SharedLoop* outer_;
    };

private:
    // The loop's number, its number of parts and the next part to take. One word holds them, so a
    // thread that takes a part knows to which loop it belongs. A thread that has taken a part may
    // read the members below until the part is done.
    static constexpr int part_bits = 16;
    std::atomic<uint64_t> state_{0};
    std::atomic<int64_t> done_{0};
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
