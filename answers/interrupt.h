// Ends long work in order when a person interrupts it (SIGINT), a batch system ends it (SIGTERM),
// or a sweep, whose jobs leave these two to it, asks a job for what it has found (SIGUSR1).
//
//   bool is_done = false;
//   {
//       const InterruptHandler interrupt;
//       is_done = work(interrupt.stop());  // returns soon after *stop() became true
//   }
//   if (!is_done) end_interrupted();
#pragma once

#include <array>
#include <atomic>

namespace laminate::cli {

/// While it lives, the three signals set a flag instead of ending the program. One at a time.
class InterruptHandler {
public:
    InterruptHandler();
    ~InterruptHandler();
    InterruptHandler(const InterruptHandler&) = delete;
    InterruptHandler& operator=(const InterruptHandler&) = delete;
    [[nodiscard]] std::atomic<bool>* stop() const;

private:
    using Handler = void (*)(int);
    std::array<Handler, 3> before_;
};

/// Ends the program by the signal that was received, so that its parent sees an interrupted
/// program. Call it after the InterruptHandler has ended.
[[noreturn]] void end_interrupted();

}  // namespace laminate::cli
