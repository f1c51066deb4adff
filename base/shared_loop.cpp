#include "base/shared_loop.h"

#include <omp.h>
#include <pthread.h>

#include <utility>

#include "base/team.h"

namespace laminate {
namespace {

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

SharedLoop::SharedLoop(int threads) : shares_(static_cast<size_t>(threads)) {}

void SharedLoop::lead(int thread, int64_t count, Range range, const void* context) {
    if (count <= 0) return;
    const auto threads = static_cast<int64_t>(shares_.size());
    count_ = count;
    parts_ = parts_of(count, static_cast<int>(threads));
    range_ = range;
    context_ = context;
    done_.store(0, std::memory_order_relaxed);
    ++number_;
    for (int64_t t = 0; t < threads; ++t) {
        const auto begin = static_cast<uint64_t>(parts_ * t / threads);
        const auto end = static_cast<uint64_t>(parts_ * (t + 1) / threads);
        shares_[static_cast<size_t>(t)].state.store(
            number_ << (2 * part_bits) | end << part_bits | begin, std::memory_order_release);
    }
    help(thread);
    wait_until([&] { return done_.load(std::memory_order_acquire) >= parts_; }, [] { return false; },
               rest_a_moment);
}

bool SharedLoop::help(int thread) {
    constexpr uint64_t mask = (uint64_t{1} << part_bits) - 1;
    bool has_helped = false;
    for (size_t n = 0; n < shares_.size(); ++n) {
        std::atomic<uint64_t>& share =
            shares_[(static_cast<size_t>(thread) + n) % shares_.size()].state;
        uint64_t state = share.load(std::memory_order_acquire);
        while ((state & mask) < (state >> part_bits & mask)) {
            if (!share.compare_exchange_weak(state, state + 1, std::memory_order_acq_rel,
                                             std::memory_order_acquire))
                continue;
            const auto part = static_cast<int64_t>(state & mask);
            range_(context_, count_ * part / parts_, count_ * (part + 1) / parts_);
            done_.fetch_add(1, std::memory_order_release);
            has_helped = true;
            state = share.load(std::memory_order_acquire);
        }
    }
    return has_helped;
}

thread_local SharedLoop::Leader::Led SharedLoop::Leader::here;

SharedLoop::Leader::Leader(SharedLoop* loop, int thread)
    : outer_(std::exchange(here, {loop, thread})) {}
SharedLoop::Leader::~Leader() { here = outer_; }

void share_out(int64_t count, int threads, SharedLoop::Range range, const void* context) {
    if (const SharedLoop::Leader::Led led = SharedLoop::Leader::here; led.loop) {
        const SharedLoop::Leader inner(nullptr, 0);  // a loop inside this one is not shared
        led.loop->lead(led.thread, count, range, context);
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
