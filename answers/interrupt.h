// Ends long work in order when a person interrupts it (SIGINT) or a batch system ends it (SIGTERM).
//
//   bool is_done = false;
//   {
//       const InterruptHandler interrupt;
//       is_done = work(interrupt.stop());  // returns soon after *stop() became true
//   }
//   if (!is_done) end_interrupted();
#pragma once

#include <atomic>

namespace laminate::cli {

/// While it lives, the two signals set a flag instead of ending the program. One at a time.
class InterruptHandler {
public:
    InterruptHandler();
    ~InterruptHandler();
    InterruptHandler(const InterruptHandler&) = delete;
    InterruptHandler& operator=(const InterruptHandler&) = delete;
    [[nodiscard]] std::atomic<bool>* stop() const;

private:
    using Handler = void (*)(int);
    Handler before_interrupt_, before_termination_;
};

/// Ends the program by the signal that was received, so that its parent sees an interrupted
/// program. Call it after the InterruptHandler has ended.
[[noreturn]] void end_interrupted();

}  // namespace laminate::cli
