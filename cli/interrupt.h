// Ending long work in order when a person interrupts it: InterruptHandler (cost_models.h) sets a
// flag, and when all is cleaned up the program ends.
#pragma once

namespace laminate::cli {

/// Ends the program as the interrupt would have: whoever started it sees that it was interrupted.
/// After the InterruptHandler has ended.
[[noreturn]] void end_interrupted();

}  // namespace laminate::cli
