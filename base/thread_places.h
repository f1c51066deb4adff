// Keeps the threads of a team on cores of their own.
//
// A thread that wakes up may be placed on the core of the one that woke it, and stays there while
// both run: for threads that work and wait in turns of microseconds, Linux takes hundreds of
// milliseconds to notice that another core is idle. Until then two threads are as slow as one.
#pragma once

#include <atomic>
#include <memory>

namespace laminate {

class ThreadPlaces {
public:
    /// The only member that allocates.
    explicit ThreadPlaces(int threads);

    /// Called by each thread of the team when it begins, `thread` from 0 on. Where a thread of a
    /// lower number is on the same core and some other core is open to this one and used by none of
    /// them, it moves there. Which cores are open to it, now or later, does not change. Returns the
    /// core that it is on, -1 if the system does not say.
    int take(int thread);

private:
    std::unique_ptr<std::atomic<int>[]> cores_;  ///< by thread, -1 before it has begun
    int threads_;
};

}  // namespace laminate
