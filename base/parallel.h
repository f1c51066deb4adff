// A loop over independent pieces of work on several threads, for work that takes milliseconds or
// more.
#pragma once

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <functional>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

namespace laminate {

/// Cores that this process may use, at least one. Affinity (taskset, containers) may allow fewer
/// than the machine has.
inline int available_cores() {
    cpu_set_t set;
    if (::sched_getaffinity(0, sizeof(set), &set) != 0)
        return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
    return std::max(1, CPU_COUNT(&set));
}

/// Calls work(0, state) .. work(count - 1, state) on `threads` threads, or on fewer if there is
/// less work, each of which has a State of its own, such as a cache. Each takes the next piece when
/// it is done; the caller's thread is one of them. After an exception no further work is started,
/// and the first exception is rethrown when all threads have ended. Throws std::system_error if the
/// system starts no further thread.
template <class State, class Work>
void in_parallel_with(size_t count, int threads, const Work& work) {
    std::atomic<size_t> next{0};
    std::mutex mutex;
    std::exception_ptr failure;
    const auto worker = [&] {
        State state;
        for (size_t n = next++; n < count; n = next++) {
            try {
                work(n, state);
            } catch (...) {
                const std::lock_guard lock(mutex);
                if (!failure) failure = std::current_exception();
                next = count;
            }
        }
    };
    const size_t wanted = std::min(count, static_cast<size_t>(threads));
    std::vector<std::jthread> others;  // joined on every way out
    try {
        for (size_t t = 1; t < wanted; ++t) others.emplace_back(worker);
    } catch (const std::system_error& error) {
        next = count;
        throw std::system_error(error.code(), "thread " + std::to_string(others.size() + 2) +
                                                  " of " + std::to_string(wanted) +
                                                  " cannot be started");
    } catch (...) {
        next = count;
        throw;
    }
    worker();
    others.clear();
    if (failure) std::rethrow_exception(failure);
}

/// The same of work(0) .. work(count - 1), without a state.
inline void in_parallel(size_t count, int threads, const std::function<void(size_t)>& work) {
    struct Nothing {};
    in_parallel_with<Nothing>(count, threads, [&](size_t n, Nothing&) { work(n); });
}

}  // namespace laminate
