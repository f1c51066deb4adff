#include "base/thread_places.h"

#include <sched.h>

namespace laminate {

ThreadPlaces::ThreadPlaces(int threads)
    : cores_(std::make_unique<std::atomic<int>[]>(static_cast<size_t>(threads))),
      threads_(threads) {
    for (int t = 0; t < threads; ++t) cores_[static_cast<size_t>(t)] = -1;
}

int ThreadPlaces::take(int thread) {
    const auto is_taken = [&](int core, int threads) {
        for (int t = 0; t < threads; ++t) {
            if (t != thread && cores_[static_cast<size_t>(t)].load(std::memory_order_relaxed) == core)
                return true;
        }
        return false;
    };
    int core = sched_getcpu();
    cpu_set_t open;
    if (core >= 0 && is_taken(core, thread) && sched_getaffinity(0, sizeof open, &open) == 0) {
        for (int other = 0; other < CPU_SETSIZE; ++other) {
            if (!CPU_ISSET(other, &open) || is_taken(other, threads_)) continue;
            cpu_set_t one;
            CPU_ZERO(&one);
            CPU_SET(other, &one);
            if (sched_setaffinity(0, sizeof one, &one) == 0) {
                core = other;
                sched_setaffinity(0, sizeof open, &open);
            }
            break;
        }
    }
    cores_[static_cast<size_t>(thread)].store(core, std::memory_order_relaxed);
    return core;
}

}  // namespace laminate
