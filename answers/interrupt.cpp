#include "answers/interrupt.h"

#include <csignal>
#include <cstdlib>

namespace laminate::cli {

namespace {

std::atomic<bool> interrupted{false};
std::atomic<int> received{SIGINT};

extern "C" void note_interrupt(int number) {
    received.store(number);
    interrupted.store(true);
}

}  // namespace

InterruptHandler::InterruptHandler()
    : before_interrupt_(std::signal(SIGINT, note_interrupt)),
      before_termination_(std::signal(SIGTERM, note_interrupt)) {}

InterruptHandler::~InterruptHandler() {
    std::signal(SIGINT, before_interrupt_);
    std::signal(SIGTERM, before_termination_);
}

std::atomic<bool>* InterruptHandler::stop() const { return &interrupted; }

void end_interrupted() {
    std::signal(received, SIG_DFL);
    std::raise(received);
    std::abort();  // not reached unless the signal is blocked
}

}  // namespace laminate::cli
