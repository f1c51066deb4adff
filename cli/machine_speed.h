// What this machine can do at best, measured: fused multiply-adds in registers, nothing loaded or stored.
#pragma once

namespace laminate::cli {

/// 32-bit GFLOP/s (a multiply-add is two) of `threads` threads together over about 10 ms, with the widest vectors that this
/// CPU has. Call it several times and take the largest: a clock that has not yet risen, or a busy machine, makes it smaller.
[[nodiscard]] double peak_gflops(int threads);

}  // namespace laminate::cli
