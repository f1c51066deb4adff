#include "answers/interrupt.h"

#include <csignal>
#include <cstdlib>

namespace laminate::cli {

namespace {

constexpr std::array signals{SIGINT, SIGTERM, SIGUSR1};

std::atomic<bool> interrupted{false};
std::atomic<int> received{SIGINT};

extern "C" void note_interrupt(int number) {
    received.store(number);
    interrupted.store(true);
}

}  // namespace

InterruptHandler::InterruptHandler() {
    for (size_t n = 0; n < signals.size(); ++n)
        before_[n] = std::signal(signals[n], note_interrupt);
}

InterruptHandler::~InterruptHandler() {
    for (size_t n = 0; n < signals.size(); ++n) std::signal(signals[n], before_[n]);
}

std::atomic<bool>* InterruptHandler::stop() const { return &interrupted; }

void end_interrupted() {
    std::signal(received, SIG_DFL);
    std::raise(received);
    std::abort();  // not reached unless the signal is blocked
}

}  // namespace laminate::cli
