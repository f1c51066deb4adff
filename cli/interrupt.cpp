#include "cli/interrupt.h"

#include <csignal>
#include <cstdlib>

namespace laminate::cli {

void end_interrupted() {
    std::signal(SIGINT, SIG_DFL);
    std::raise(SIGINT);
    std::abort();  // not reached unless the signal is blocked
}

}  // namespace laminate::cli
