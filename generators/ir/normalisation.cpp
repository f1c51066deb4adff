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
          scale_{unique_name(pixels.name + ".pixel.scale"), pixels.lanes},
          shift_{unique_name(pixels.name + ".pixel.shift"), pixels.lanes} {}

    Stmt around(const Stmt& body) const {
        const Stmt statistics =
            function_ == GeneralFunction::softmax ? softmax() : standardisation();
        Stmt all = sequence({statistics, body});
        if (function_ == GeneralFunction::standardise) all = shift_.around(pixels_.vectors, all);
        return middle_.around(pixels_.vectors, scale_.around(pixels_.vectors, all));
    }

    [[nodiscard]] Expr normalised(const Expr& element, int64_t v) const {
        const Expr distance = distance_of(element, v);
        const Expr value = function_ == GeneralFunction::softmax ? exponential(distance) : distance;
        const Expr scaled = Halide::strict_float(value * scale_.get(v));
        if (function_ != GeneralFunction::standardise) return scaled;
        return Halide::strict_float(scaled - shift_.get(v));
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

    /// The mean of many channels is rounded, which would shift pixels whose channels hardly differ.
    /// So the distances from it, which are exact there, have a mean of their own that is taken off.
    [[nodiscard]] Stmt standardisation() const {
        const bool has_mean = function_ == GeneralFunction::standardise;
        std::vector<Stmt> parts;
        if (has_mean) {
            parts = {each([&](int64_t v) {
                         return sequence({middle_.set(v, number(0)), shift_.set(v, number(0))});
                     }),
                     over_channels([&](const Expr& element, int64_t v) {
                         return added(middle_, v, element);
                     }),
                     each([&](int64_t v) { return middle_.set(v, mean_of(middle_, v)); })};
        }
        parts.push_back(each([&](int64_t v) { return scale_.set(v, number(0)); }));
        parts.push_back(over_channels([&](const Expr& element, int64_t v) {
            const std::string name = unique_name(pixels_.name + ".distance");
            const Expr distance = Variable::make(element.type(), name);
            std::vector<Stmt> sums{added(scale_, v, Halide::strict_float(distance * distance))};
            if (has_mean) sums.push_back(added(shift_, v, distance));
            return LetStmt::make(name, distance_of(element, v), sequence(sums));
        }));
        if (has_mean)
            parts.push_back(each([&](int64_t v) { return shift_.set(v, mean_of(shift_, v)); }));
        parts.push_back(each([&](int64_t v) { return scale_.set(v, inverse_deviation(v)); }));
        if (has_mean) {
            parts.push_back(each([&](int64_t v) {
                return shift_.set(v, Halide::strict_float(shift_.get(v) * scale_.get(v)));
            }));
        }
        return sequence(parts);
    }

    /// From the sum of squared distances, and the mean of the distances.
    [[nodiscard]] Expr inverse_deviation(int64_t v) const {
        Expr variance = mean_of(scale_, v);
        if (function_ == GeneralFunction::standardise) {
            const Expr square = Halide::strict_float(shift_.get(v) * shift_.get(v));
            variance = Halide::max(Halide::strict_float(variance - square), number(0));
        }
        const Expr enlarged = Halide::strict_float(variance + number(epsilon_));
        // Halide::sqrt() takes no vectors.
        const Expr deviation =
            Call::make(enlarged.type(), "sqrt_f32", {enlarged}, Call::PureExtern);
        return Halide::strict_float(number(1) / deviation);
    }

    [[nodiscard]] Expr mean_of(const Accumulators& sums, int64_t v) const {
        return Halide::strict_float(sums.get(v) / number(static_cast<float>(pixels_.channels)));
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
    Accumulators shift_;   ///< of a standardisation: mean of the distances from the middle, scaled
};

}  // namespace

Stmt with_statistics(const Layer& layer, const PixelVectors& pixels,
                     const std::function<Stmt(const Normalised&)>& make) {
    const Statistics statistics(layer, pixels);
    return statistics.around(make(
        [&](const Expr& element, int64_t v) { return statistics.normalised(element, v); }));
}

}  // namespace laminate::ir
