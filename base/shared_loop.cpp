#include "base/shared_loop.h"

#include <omp.h>
#include <pthread.h>

#include <utility>

#include "base/team.h"

namespace laminate {
namespace {

thread_local SharedLoop* led_here = nullptr;

/// Number of parts of a loop. Several per thread let one with less of a core take fewer; each part
/// moves a word between cores.
int64_t parts_of(int64_t count, int threads) {
    constexpr int64_t parts_of_thread = 4, most = 1024;
    return std::min({count, parts_of_thread * threads, most});
}

std::atomic<bool> has_team{false};
std::atomic<bool> is_forked{false};

}  // namespace

int team_size(int threads) {
    static const int registered = pthread_atfork(nullptr, nullptr, [] {
        if (has_team) is_forked = true;
    });
    if (is_forked || registered != 0) return 1;
    const int wanted = threads > 0 ? threads : omp_get_max_threads();
    if (wanted > 1) has_team = true;
    return wanted;
}

void SharedLoop::lead(int64_t count, int threads, Range range, const void* context) {
    if (count <= 0) return;
    count_ = count;
    parts_ = parts_of(count, threads);
    range_ = range;
    context_ = context;
    done_.store(0, std::memory_order_relaxed);
    const uint64_t number = (state_.load(std::memory_order_relaxed) >> (2 * part_bits)) + 1;
    state_.store(number << (2 * part_bits) | static_cast<uint64_t>(parts_) << part_bits,
                 std::memory_order_release);
    while (help()) {
    }
    wait_until([&] { return done_.load(std::memory_order_acquire) >= parts_; }, [] { return false; },
               rest_a_moment);
}

bool SharedLoop::help() {
    constexpr uint64_t mask = (uint64_t{1} << part_bits) - 1;
    uint64_t state = state_.load(std::memory_order_acquire);
    do {
        if ((state & mask) >= (state >> part_bits & mask)) return false;
    } while (!state_.compare_exchange_weak(state, state + 1, std::memory_order_acq_rel,
                                           std::memory_order_acquire));
    const auto part = static_cast<int64_t>(state & mask);
    range_(context_, count_ * part / parts_, count_ * (part + 1) / parts_);
    done_.fetch_add(1, std::memory_order_release);
    return true;
}

SharedLoop::Leader::Leader(SharedLoop* loop) : outer_(std::exchange(led_here, loop)) {}
SharedLoop::Leader::~Leader() { led_here = outer_; }

void share_out(int64_t count, int threads, SharedLoop::Range range, const void* context) {
    if (SharedLoop* loop = led_here) {
        const SharedLoop::Leader inner(nullptr);  // a loop inside this one is not shared
        loop->lead(count, std::max(threads, 1), range, context);
        return;
    }
    const int team = omp_in_parallel() || is_in_team() ? 1 : team_size(threads);
    if (team == 1 || count <= 1) {
        range(context, 0, count);
        return;
    }
    const int64_t parts = parts_of(count, team);
#pragma omp parallel for schedule(dynamic) num_threads(team)
    for (int64_t part = 0; part < parts; ++part)
        range(context, count * part / parts, count * (part + 1) / parts);
}

}  // namespace laminate
