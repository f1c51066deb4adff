// Loops whose iterations do not depend on each other, shared out among threads.
//
// A region of OpenMP is over when every thread of it has come, and on a busy machine that takes as
// long as the system lets a thread wait for a core: milliseconds for a loop of microseconds. So a
// network runs in one region (session.cpp), and a loop of one of its layers is led by the thread
// that runs the layer; those that wait for it meanwhile help, and one that has no core is not
// waited for.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <thread>

namespace laminate {

/// Lets the core do something else for a moment, without giving it up.
inline void pause_core() {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__) || defined(__arm__)
    asm volatile("yield");
#endif
}

/// Waits for what other threads are about to do, each in less than a part of the work; help() is
/// called meanwhile and says whether it did something.
template <class Done, class Help>
void wait_until(const Done& is_done, const Help& help) {
    // Should one of them have no core, this thread's may be what it waits for.
    constexpr int patience = 2000;  // pauses of the core
    for (int rounds = 0; !is_done(); ++rounds) {
        if (help()) {
            rounds = 0;
        } else if (rounds < patience) {
            pause_core();
        } else {
            std::this_thread::yield();
        }
    }
}

/// Threads for a region of OpenMP: those wanted, 0 for all there are. One in a child that was
/// forked from a process whose team had been started: its threads are not there, and OpenMP would
/// wait for them forever.
[[nodiscard]] int team_size(int threads);

/// A place for the loops that one thread leads, one after the other.
class SharedLoop {
public:
    /// Iterations [begin, end) of what `context` points to.
    using Range = void (*)(const void* context, int64_t begin, int64_t end);

    /// All iterations [0, count), by the caller and by whoever calls help() meanwhile, in parts for
    /// so many threads; returns when all are done. One thread at a time.
    void lead(int64_t count, int threads, Range range, const void* context);
    /// A part of the loop that is being led; false if there is none left to take. Any thread.
    bool help();

    /// While it lives, parallel_for() of this thread is led by `loop`; by none, the thread's own,
    /// where that is null.
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
    // Number of the loop, number of its parts, the next part to take: together, so that who takes a
    // part knows of which loop. What follows may be read by whoever has taken a part that is not
    // done yet.
    static constexpr int part_bits = 16;
    std::atomic<uint64_t> state_{0};
    std::atomic<int64_t> done_{0};
    int64_t count_ = 0, parts_ = 0;
    Range range_ = nullptr;
    const void* context_ = nullptr;
};

/// Of an OpenMP region of so many threads (team_size), or of the SharedLoop that this thread leads.
void share_out(int64_t count, int threads, SharedLoop::Range range, const void* context);

/// Calls body(k) for every k of [0, count), in any order, by several threads at once. Bodies throw
/// nothing.
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
