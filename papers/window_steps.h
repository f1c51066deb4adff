// The arithmetic of windows along one axis of a map.
#pragma once

#include <cstdint>

namespace laminate {

/// The windows along one axis: output i with kernel tap j lies on input coordinate S i + E j, where
/// S is the stride and E the dilation. For a transposed convolution, exchange output and input.
struct WindowSteps {
    int64_t stride = 1;
    int64_t dilation = 1;

    /// Coordinates from the first to the last that `outputs` neighbours touch with `taps`
    /// neighbours, both included: (outputs - 1) S + (taps - 1) E + 1. With K taps that is t S + K -
    /// S of Optimus 4.2 and Eq. 4 of HW-Flow-Fusion.
    [[nodiscard]] constexpr int64_t span(int64_t outputs, int64_t taps) const {
        return (outputs - 1) * stride + (taps - 1) * dilation + 1;
    }
    /// Those of them that are touched: the size of {S i + E j : i < outputs, j < taps}. 2 outputs
    /// of stride 3 with 2 taps touch 4 of the 5 coordinates of their span.
    [[nodiscard]] constexpr int64_t touched(int64_t outputs, int64_t taps) const {
        if (dilation == 1) return taps >= stride ? span(outputs, taps) : outputs * taps;
        return touched_with_dilation(outputs, taps);
    }
    /// touched() for the fractions of outputs and taps that DeFiNES' model shares out over lanes,
    /// truncated. At most one of stride and dilation is above 1.
    [[nodiscard]] double touched(double outputs, double taps) const;
    friend bool operator==(const WindowSteps&, const WindowSteps&) = default;

private:
    [[nodiscard]] int64_t touched_with_dilation(int64_t outputs, int64_t taps) const;
};

}  // namespace laminate
