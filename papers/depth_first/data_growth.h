// How an operand's data grow with the loops that run over them. Of the single-layer model alone.
#pragma once

#include <array>

#include "papers/depth_first/single_layer.h"

namespace laminate::depth_first {

/// Splits loops into what an operand's data grows by and what only uses data again. Relevant loops
/// are the first, irrelevant ones the second. A loop of a window (OX with FX, OY with FY) is both:
/// its data factor is the growth of the span, the rest is reuse.
class DataGrowth {
public:
    DataGrowth(const std::array<Relevance, dim_count>& relevance, const LayerShape& layer)
        : relevance_(relevance), stride_(layer.stride), dilation_(layer.dilation) {}

    struct Factors {
        double data;
        double reuse;
    };
    Factors add(const Loop& loop) {
        switch (relevance_[index_of(loop.dim)]) {
            case Relevance::relevant:
                return {loop.size, 1};
            case Relevance::irrelevant:
                return {1, loop.size};
            case Relevance::partial:
                break;
        }
        Window& window = loop.dim == Dim::ox || loop.dim == Dim::fx ? x_ : y_;
        (loop.dim == Dim::ox || loop.dim == Dim::oy ? window.outputs : window.kernel) *= loop.size;
        const bool along_x = &window == &x_;
        const WindowSteps steps{along_x ? stride_.x : stride_.y,
                                along_x ? dilation_.x : dilation_.y};
        const double data = steps.touched(window.outputs, window.kernel);
        const double reuse = window.outputs * window.kernel / data;
        const Factors factors{data / window.data, reuse / window.reuse};
        window.data = data;
        window.reuse = reuse;
        return factors;
    }

private:
    struct Window {
        double outputs = 1, kernel = 1, data = 1, reuse = 1;
    };
    const std::array<Relevance, dim_count>& relevance_;
    Stride stride_, dilation_;
    Window x_, y_;
};

}  // namespace laminate::depth_first
