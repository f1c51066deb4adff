#include "papers/window_steps.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace laminate {

int64_t WindowSteps::touched_with_dilation(int64_t outputs, int64_t taps) const {
    // One run without gaps per tap; neighbouring runs touch or overlap.
    if (stride == 1 && outputs >= dilation) return span(outputs, taps);
    if (stride == 1 || outputs == 1 || taps == 1) return outputs * taps;
    std::vector<bool> touched(static_cast<size_t>(span(outputs, taps)), false);
    for (int64_t i = 0; i < outputs; ++i)
        for (int64_t j = 0; j < taps; ++j)
            touched[static_cast<size_t>(i * stride + j * dilation)] = true;
    return std::count(touched.begin(), touched.end(), true);
}

double WindowSteps::touched(double outputs, double taps) const {
    // Coordinates are output + dilation x tap where the stride is 1: outputs and taps change
    // places.
    const auto of = [](double windows, int64_t step, double width) {
        return std::trunc(windows * width -
                          std::max(0.0, width - static_cast<double>(step)) * (windows - 1.0));
    };
    return dilation == 1 ? of(outputs, stride, taps) : of(taps, dilation, outputs);
}

}  // namespace laminate
