// Threads that help another thread with its work.
//
// An OpenMP region ends when all its threads have arrived. On a busy machine a thread may wait for a
// core for many milliseconds, even if it has nothing to do. Work of a team ends when it is done: a
// thread that waits for others is outside of the work, and is left behind there.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace laminate {

/// Lets the core go for a moment. `rounds` says how often the thread has rested before: a thread that
/// waits for a core may need this one. Returns true: the thread goes on waiting.
bool rest_a_moment(int rounds);

/// Waits until is_done(), which other threads will bring about shortly. Calls help() meanwhile, which
/// says whether it did something, and rest(rounds), which says whether to go on waiting. Returns
/// false if it did not go on.
template <class Done, class Help, class Rest>
bool wait_until(const Done& is_done, const Help& help, const Rest& rest) {
    for (int rounds = 0; !is_done();) {
        if (help()) {
            rounds = 0;
        } else if (!rest(rounds++)) {
            return false;
        }
    }
    return true;
}

/// Whether this thread is one of a team's, or has work that a team shares.
[[nodiscard]] bool is_in_team();

class Team {
public:
    class Member {
    public:
        /// Is 0 for the thread that has the work.
        [[nodiscard]] int number() const { return number_; }
        /// Leaves the work for a moment. Returns false if the work has ended meanwhile: then the member
        /// returns from it without touching anything of it. The thread that has the work never
        /// sees false.
        [[nodiscard]] bool rest(int rounds);

    private:
        friend class Team;
        Team* team_ = nullptr;
        int number_ = 0;
        uint32_t work_ = 0;  ///< number of the work that the member is in
        /// The same number if the member may touch the work, else 0. It has a cache line of its own.
        alignas(64) std::atomic<uint32_t> inside_{0};
    };

    /// At most `threads` threads, with the caller's. The first run() starts them.
    explicit Team(int threads);
    ~Team();
    Team(const Team&) = delete;
    Team& operator=(const Team&) = delete;

    /// Calls work(member) on this thread and on all others that get a core meanwhile. Returns when this
    /// thread has returned from it and no other thread is inside. One thread at a time may call it.
    /// `work` must not throw, and what one thread alone does of it must be all of it.
    template <class Work>
    void run(const Work& work) {
        run(
            [](const void* context, Member& member) { (*static_cast<const Work*>(context))(member); },
            &work);
    }

private:
    using Call = void (*)(const void* context, Member& member);
    void run(Call call, const void* context);
    void start();
    void serve(Member& member);
    /// The number of the next work, or 0 when the team is to end.
    [[nodiscard]] uint32_t next_work(uint32_t before);

    size_t threads_;
    std::unique_ptr<Member[]> members_;
    std::vector<pthread_t> others_;
    pid_t process_ = 0;  ///< that started the others: a forked child lacks them
    Call call_ = nullptr;
    const void* context_ = nullptr;
    std::atomic<bool> is_ending_{false};
    /// Number of the last work: odd while it goes on, even from its end on.
    alignas(64) std::atomic<uint32_t> work_{0};
};

}  // namespace laminate
