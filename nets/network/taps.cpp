#include "nets/network/taps.h"

namespace laminate {

bool every_window_reads(const AxisTaps& taps, int64_t in, int64_t out) {
    const int64_t span = (taps.kernel - 1) * taps.dilation + 1;
    if (taps.pad_begin >= span || (out - 1) * taps.stride >= in + taps.pad_begin) return false;
    // Windows in between begin before the input's end and end after its beginning. They miss it if
    // it lies between two taps.
    if (taps.dilation <= in) return true;
    const int64_t step = taps.stride % taps.dilation, windows = step == 0 ? 1 : out;
    int64_t place = (taps.dilation - taps.pad_begin % taps.dilation) % taps.dilation;
    for (int64_t window = 0; window < windows; ++window) {
        if (place >= in) return false;
        place += step;
        if (place >= taps.dilation) place -= taps.dilation;
    }
    return true;
}

}  // namespace laminate
