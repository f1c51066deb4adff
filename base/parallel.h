// A loop over independent pieces of work on a few threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace laminate {

/// Calls work(0) .. work(count - 1) on some threads; the first exception that is thrown goes on.
inline void in_parallel(size_t count, int threads, const std::function<void(size_t)>& work) {
    std::atomic<size_t> next{0};
    std::mutex mutex;
    std::exception_ptr failure;
    const auto worker = [&] {
        for (size_t n = next++; n < count; n = next++) {
            try {
                work(n);
            } catch (...) {
                const std::lock_guard lock(mutex);
                if (!failure) failure = std::current_exception();
                next = count;
            }
        }
    };
    std::vector<std::thread> others;
    for (size_t t = 1; t < std::min(count, static_cast<size_t>(threads)); ++t) others.emplace_back(worker);
    worker();
    for (std::thread& other : others) other.join();
    if (failure) std::rethrow_exception(failure);
}

}  // namespace laminate
