#include "generators/ir/normalisation.h"

#include <limits>
#include <vector>

#include "generators/ir/activations.h"
#include "generators/lowering/group_lowering.h"
#include "nets/network/picture_views.h"

namespace laminate::ir {

using namespace Halide::Internal;

namespace {

class Statistics {
public:
    Statistics(const Layer& layer, const PixelVectors& pixels)
        : function_(*normalisation_of(layer)),
          epsilon_(layer.general.alpha),
          pixels_(pixels),
          middle_{unique_name(pixels.name + ".pixel.middle"), pixels.lanes},
          scale_{unique_name(pixels.name + ".pixel.scale"), pixels.lanes} {}

    Stmt around(const Stmt& body) const {
        const Stmt statistics =
            function_ == GeneralFunction::softmax ? softmax() : standardisation();
        return middle_.around(pixels_.vectors,
                              scale_.around(pixels_.vectors, sequence({statistics, body})));
    }

    [[nodiscard]] Expr normalised(const Expr& element, int64_t v) const {
        const Expr distance = distance_of(element, v);
        const Expr value = function_ == GeneralFunction::softmax ? exponential(distance) : distance;
        return Halide::strict_float(value * scale_.get(v));
    }

private:
    [[nodiscard]] Stmt softmax() const {
        return sequence({
            each([&](int64_t v) {
                return middle_.set(v, number(-std::numeric_limits<float>::infinity()));
            }),
            over_channels([&](const Expr& element, int64_t v) {
                return middle_.set(v, largest({element, middle_.get(v)}));
            }),
            each([&](int64_t v) { return scale_.set(v, number(0)); }),
            over_channels([&](const Expr& element, int64_t v) {
                return added(scale_, v, exponential(distance_of(element, v)));
            }),
            each([&](int64_t v) {
                return scale_.set(v, Halide::strict_float(number(1) / scale_.get(v)));
            }),
        });
    }

    [[nodiscard]] Stmt standardisation() const {
        const Expr count = number(static_cast<float>(pixels_.channels));
        std::vector<Stmt> parts{each([&](int64_t v) { return middle_.set(v, number(0)); })};
        if (function_ == GeneralFunction::standardise) {
            parts.push_back(over_channels(
                [&](const Expr& element, int64_t v) { return added(middle_, v, element); }));
            parts.push_back(each([&](int64_t v) {
                return middle_.set(v, Halide::strict_float(middle_.get(v) / count));
            }));
        }
        parts.push_back(each([&](int64_t v) { return scale_.set(v, number(0)); }));
        parts.push_back(over_channels([&](const Expr& element, int64_t v) {
            const std::string name = unique_name(pixels_.name + ".distance");
            const Expr distance = Variable::make(element.type(), name);
            return LetStmt::make(name, distance_of(element, v),
                                 added(scale_, v, Halide::strict_float(distance * distance)));
        }));
        parts.push_back(each([&](int64_t v) {
            const Expr squared = scale_.get(v) / count + number(epsilon_);
            // Halide::sqrt() takes no vectors.
            const Expr deviation =
                Call::make(squared.type(), "sqrt_f32", {squared}, Call::PureExtern);
            return scale_.set(v, Halide::strict_float(number(1) / deviation));
        }));
        return sequence(parts);
    }

    [[nodiscard]] Expr distance_of(const Expr& element, int64_t v) const {
        if (function_ == GeneralFunction::root_mean_square) return element;
        return Halide::strict_float(element - middle_.get(v));
    }
    [[nodiscard]] static Stmt added(const Accumulators& sums, int64_t v, const Expr& value) {
        return sums.set(v, Halide::strict_float(sums.get(v) + value));
    }
    [[nodiscard]] Expr number(float value) const { return broadcast(Expr(value), pixels_.lanes); }

    [[nodiscard]] Stmt each(const std::function<Stmt(int64_t vector)>& make) const {
        std::vector<Stmt> parts;
        for (int64_t v = 0; v < pixels_.vectors; ++v) parts.push_back(make(v));
        return sequence(parts);
    }
    [[nodiscard]] Stmt over_channels(
        const std::function<Stmt(const Expr& element, int64_t vector)>& make) const {
        return GroupLowering::for_each(
            pixels_.name + ".c", {0, size(pixels_.channels)}, [&](const Expr& c) {
                return each([&](int64_t v) { return make(pixels_.load(c, v), v); });
            });
    }

    GeneralFunction function_;
    float epsilon_;
    const PixelVectors& pixels_;
    Accumulators middle_;  ///< mean or maximum of the channels
    Accumulators scale_;   ///< first the sum of squares or powers
};

}  // namespace

Stmt with_statistics(const Layer& layer, const PixelVectors& pixels,
                     const std::function<Stmt(const Normalised&)>& make) {
    const Statistics statistics(layer, pixels);
    return statistics.around(make(
        [&](const Expr& element, int64_t v) { return statistics.normalised(element, v); }));
}

}  // namespace laminate::ir
