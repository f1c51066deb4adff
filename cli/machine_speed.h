// What this machine can do at best, measured: fused multiply-adds in registers, nothing loaded or stored.
#pragma once

namespace laminate::cli {

/// 32-bit GFLOP/s (a multiply-add is two) of `threads` threads together, with the widest vectors that this CPU has. Each
/// thread takes the best of many pieces of half a millisecond, shorter than a busy machine's time slices; about 20 ms in all.
/// Call it several times and take the largest: a clock that has not yet risen makes it smaller.
[[nodiscard]] double peak_gflops(int threads);

}  // namespace laminate::cli
