#include "papers/depth_first/layer_shape.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace laminate::depth_first {

const char* to_string(Dim dim) {
    static constexpr PerDim<const char*> names{"C", "FX", "FY", "G", "K", "OX", "OY"};
    return names[dim];
}

const char* to_string(Role role) {
    switch (role) {
        case Role::output:
            return "O";
        case Role::weight:
            return "W";
        case Role::input:
            return "I";
        case Role::second_input:
            return "I2";
    }
    throw std::logic_error("to_string(Role)");
}

std::string to_text(const LoopOrder& order) {
    std::string text;
    for (const Loop& loop : order)
        text += (text.empty() ? "" : " ") + std::string(to_string(loop.dim)) +
                std::to_string(static_cast<int64_t>(loop.size));
    return text;
}

double span(double outputs, int64_t stride, double kernel) {
    return std::trunc(outputs * kernel -
                      std::max(0.0, kernel - static_cast<double>(stride)) * (outputs - 1.0));
}

double span(double outputs, int64_t stride, double kernel, int64_t dilation) {
    // The input of a tap is output + dilation x tap, so outputs and taps change places.
    return dilation == 1 ? span(outputs, stride, kernel) : span(kernel, dilation, outputs);
}

int64_t LayerShape::macs() const {
    int64_t product = 1;
    for (const Dim dim : all_dims) product *= sizes[dim];
    return product;
}

int64_t LayerShape::input_width() const {
    return static_cast<int64_t>(span(static_cast<double>(sizes[Dim::ox]), stride.x,
                                     static_cast<double>(sizes[Dim::fx]), dilation.x));
}

int64_t LayerShape::input_height() const {
    return static_cast<int64_t>(span(static_cast<double>(sizes[Dim::oy]), stride.y,
                                     static_cast<double>(sizes[Dim::fy]), dilation.y));
}

int64_t LayerShape::output_elements() const {
    return output_channels() * sizes[Dim::ox] * sizes[Dim::oy];
}

int64_t LayerShape::input_elements() const {
    return input_channels() * input_width() * input_height();
}

int64_t LayerShape::weight_elements() const {
    if (type == LayerType::pooling || type == LayerType::addition) return 0;
    return sizes[Dim::g] * sizes[Dim::k] * sizes[Dim::c] * sizes[Dim::fx] * sizes[Dim::fy];
}

std::vector<Role> roles(LayerType type) {
    if (type == LayerType::addition) return {Role::output, Role::input, Role::second_input};
    return {Role::output, Role::weight, Role::input};
}

Operand operand_of(Role role) {
    switch (role) {
        case Role::output:
            return Operand::output;
        case Role::weight:
            return Operand::weight;
        case Role::input:
        case Role::second_input:
            return Operand::input;
    }
    throw std::logic_error("operand_of");
}

Relevance relevance(const LayerShape& layer, Role role, Dim dim) {
    const bool window = dim == Dim::ox || dim == Dim::oy || dim == Dim::fx || dim == Dim::fy;
    switch (role) {
        case Role::output:
            return dim == Dim::c || dim == Dim::fx || dim == Dim::fy ? Relevance::irrelevant
                                                                     : Relevance::relevant;
        case Role::weight:
            // A pooling has one window for all groups.
            if (dim == Dim::ox || dim == Dim::oy ||
                (layer.type == LayerType::pooling && dim == Dim::g))
                return Relevance::irrelevant;
            return Relevance::relevant;
        case Role::input:
        case Role::second_input:
            if (dim == Dim::k) return Relevance::irrelevant;
            return window && layer.type != LayerType::addition && !layer.direct_input
                       ? Relevance::partial
                       : Relevance::relevant;
    }
    throw std::logic_error("relevance");
}

}  // namespace laminate::depth_first
