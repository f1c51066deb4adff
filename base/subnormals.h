// Arithmetic that takes and makes zeros in place of subnormal numbers, as inference runtimes have it.
//
// Trained networks keep weights of channels that no longer matter, decayed to below 1.2e-38. Processors
// compute with such numbers in microcode, some at a hundredth of their pace.
#pragma once

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#include <cstdint>

namespace laminate {

/// While it lives, floating-point arithmetic of this thread has zeros for subnormal operands and results,
/// of the same sign, if `is_wanted` and the processor can; other threads are not concerned.
class SubnormalsAreZeros {
public:
    explicit SubnormalsAreZeros(bool is_wanted) : before_(state()) {
        if (is_wanted) set_state(before_ | bits);
    }
    ~SubnormalsAreZeros() { set_state(before_); }
    SubnormalsAreZeros(const SubnormalsAreZeros&) = delete;
    SubnormalsAreZeros& operator=(const SubnormalsAreZeros&) = delete;

private:
#if defined(__SSE2__)
    using State = unsigned;
    static constexpr State bits = 0x8040;  // results (FTZ), operands (DAZ)
    static State state() { return _mm_getcsr(); }
    static void set_state(State value) { _mm_setcsr(value); }
#elif defined(__aarch64__)
    using State = uint64_t;
    static constexpr State bits = State{1} << 24;  // FZ: both
    static State state() {
        State value = 0;
        asm volatile("mrs %0, fpcr" : "=r"(value));
        return value;
    }
    static void set_state(State value) { asm volatile("msr fpcr, %0" : : "r"(value)); }
#else
    using State = unsigned;
    static constexpr State bits = 0;
    static State state() { return 0; }
    static void set_state(State) {}
#endif
    State before_;
};

}  // namespace laminate
