#include "base/team.h"

#include <unistd.h>

#include <chrono>
#include <thread>
#include <utility>

namespace laminate {
namespace {

/// Lets the core pause without giving it up.
void pause_core() {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__) || defined(__arm__)
    asm volatile("yield");
#endif
}

constexpr int pauses = 4;      // of a rest: tens of nanoseconds
constexpr int patience = 500;  // rests before the core is given up

thread_local bool in_team = false;

}  // namespace

bool rest_a_moment(int rounds) {
    if (rounds >= patience) {
        std::this_thread::yield();
    } else {
        for (int k = 0; k < pauses; ++k) pause_core();
    }
    return true;
}

bool is_in_team() { return in_team; }

// Either the thread that ends the work sees that the member is inside, or the member sees that the work
// has ended: both write before they read, in one order for all threads.

bool Team::Member::rest(int rounds) {
    if (number_ == 0) return rest_a_moment(rounds);
    inside_.store(0, std::memory_order_release);
    rest_a_moment(rounds);
    inside_.store(work_, std::memory_order_seq_cst);
    if (team_->work_.load(std::memory_order_seq_cst) == work_) return true;
    inside_.store(0, std::memory_order_release);
    return false;
}

Team::Team(int threads)
    : threads_(static_cast<size_t>(threads)), members_(std::make_unique<Member[]>(threads_)) {
    others_.reserve(threads_ - 1);
    for (size_t k = 0; k < threads_; ++k) {
        members_[k].team_ = this;
        members_[k].number_ = static_cast<int>(k);
    }
}

Team::~Team() {
    is_ending_ = true;
    work_ += 2;
    work_.notify_all();
    for (const pthread_t thread : others_) {
        if (process_ == getpid()) {
            pthread_join(thread, nullptr);
        } else {
            pthread_detach(thread);
        }
    }
}

void Team::start() {
    process_ = getpid();
    for (size_t k = others_.size() + 1; k < threads_; ++k) {
        pthread_t thread{};
        const auto serve = [](void* given) -> void* {
            auto* member = static_cast<Member*>(given);
            member->team_->serve(*member);
            return nullptr;
        };
        // Where the system starts no further thread, the others have more to do.
        if (pthread_create(&thread, nullptr, serve, &members_[k]) != 0) return;
        others_.push_back(thread);
    }
}

void Team::run(Call call, const void* context) {
    if (others_.empty()) start();
    call_ = call;
    context_ = context;
    work_.fetch_add(1, std::memory_order_seq_cst);
    work_.notify_all();
    const bool outer = std::exchange(in_team, true);
    call(context, members_[0]);
    in_team = outer;
    work_.fetch_add(1, std::memory_order_seq_cst);
    for (size_t k = 1; k <= others_.size(); ++k) {
        wait_until([&] { return members_[k].inside_.load(std::memory_order_seq_cst) == 0; },
                   [] { return false; }, rest_a_moment);
    }
}

uint32_t Team::next_work(uint32_t before) {
    constexpr std::chrono::milliseconds awake{2};  // sleeping and waking take tens of microseconds
    const auto since = std::chrono::steady_clock::now();
    for (int rounds = 0;; ++rounds) {
        const uint32_t now = work_.load(std::memory_order_acquire);
        if (is_ending_) return 0;
        if (now % 2 == 1 && now != before) return now;
        if (rounds < patience || std::chrono::steady_clock::now() - since < awake) {
            rest_a_moment(rounds);
        } else {
            work_.wait(now, std::memory_order_acquire);
        }
    }
}

void Team::serve(Member& member) {
    in_team = true;
    while (const uint32_t work = next_work(member.work_)) {
        member.work_ = work;
        member.inside_.store(work, std::memory_order_seq_cst);
        if (work_.load(std::memory_order_seq_cst) == work) call_(context_, member);
        member.inside_.store(0, std::memory_order_release);
    }
}

}  // namespace laminate
