// How the data of an operand grow as loops are added around a nest.
#pragma once

#include "papers/depth_first/layer_shape.h"

namespace laminate::depth_first {

/// Splits the trips of each loop into growth of the operand's data and reuse of it. A relevant loop
/// is all growth, an irrelevant one all reuse. A loop of a window (OX with FX, OY with FY) is both:
/// the data grow as the span of the window does, and the rest of the trips is reuse.
class DataGrowth {
public:
    DataGrowth(const PerDim<Relevance>& relevance, const LayerShape& layer)
        : relevance_(relevance), stride_(layer.stride), dilation_(layer.dilation) {}

    struct Factors {
        double data;
        double reuse;
    };
    Factors add(const Loop& loop) {
        switch (relevance_[loop.dim]) {
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
        const double data = span(window.outputs, along_x ? stride_.x : stride_.y, window.kernel,
                                 along_x ? dilation_.x : dilation_.y);
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
    const PerDim<Relevance>& relevance_;
    Stride stride_, dilation_;
    Window x_, y_;
};

}  // namespace laminate::depth_first
