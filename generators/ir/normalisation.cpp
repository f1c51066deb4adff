#include "generators/ir/normalisation.h"

#include <limits>
#include <vector>

#include "generators/ir/activations.h"
#include "generators/lowering/group_lowering.h"
#include "nets/network/picture_views.h"

namespace laminate::ir {

using namespace Halide::Internal;

namespace {

/// Sums of more channels are sums of sums: one after the other, thousands would round too often.
constexpr int64_t channels_of_sum = 64;

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
        const Stmt statistics = has_exponentials() ? sums_of_exponentials() : standardisation();
        Stmt all = sequence({statistics, body});
        if (function_ == GeneralFunction::standardise) all = shift_.around(pixels_.vectors, all);
        return middle_.around(pixels_.vectors, scale_.around(pixels_.vectors, all));
    }

    [[nodiscard]] Expr normalised(const Expr& element, int64_t v) const {
        const Expr distance = distance_of(element, v);
        if (function_ == GeneralFunction::softmax) {
            const std::string power = unique_name(pixels_.name + ".power");
            const Expr scaled = Variable::make(element.type(), power) * scale_.get(v);
            return Let::make(power, exponential(distance), Halide::strict_float(scaled));
        }
        if (function_ == GeneralFunction::log_softmax)
            return Halide::strict_float(distance - scale_.get(v));
        const Expr scaled = Halide::strict_float(distance * scale_.get(v));
        if (function_ != GeneralFunction::standardise) return scaled;
        return Halide::strict_float(scaled - shift_.get(v));
    }

private:
    using Arrays = std::vector<const Accumulators*>;

    [[nodiscard]] bool has_exponentials() const {
        return function_ == GeneralFunction::softmax || function_ == GeneralFunction::log_softmax;
    }

    [[nodiscard]] Stmt sums_of_exponentials() const {
        return sequence({
            each([&](int64_t v) {
                return middle_.set(v, number(-std::numeric_limits<float>::infinity()));
            }),
            over_channels({0, size(pixels_.channels)},
                          [&](const Expr& element, int64_t v) {
                              return middle_.set(v, largest({element, middle_.get(v)}));
                          }),
            sums({&scale_},
                 [&](const Arrays& of, const Expr& element, int64_t v) {
                     // A name outside of the strict sum: an exponential's polynomial is not strict,
                     // so that its products and sums are fused.
                     const std::string power = unique_name(pixels_.name + ".power");
                     return LetStmt::make(power, exponential(distance_of(element, v)),
                                          added(*of[0], v, Variable::make(element.type(), power)));
                 }),
            each([&](int64_t v) {
                const Expr sum = scale_.get(v);
                return scale_.set(v, function_ == GeneralFunction::log_softmax
                                         ? logarithm(sum)
                                         : Halide::strict_float(number(1) / sum));
            }),
        });
    }

    /// The mean of many channels is rounded, which would shift pixels whose channels hardly differ.
    /// So the distances from it, which are exact there, have a mean of their own that is taken off.
    [[nodiscard]] Stmt standardisation() const {
        const bool has_mean = function_ == GeneralFunction::standardise;
        std::vector<Stmt> parts;
        if (has_mean) {
            parts = {sums({&middle_}, [&](const Arrays& of, const Expr& element, int64_t v) {
                         return added(*of[0], v, element);
                     }),
                     each([&](int64_t v) { return middle_.set(v, mean_of(middle_, v)); })};
        }
        const Arrays totals = has_mean ? Arrays{&scale_, &shift_} : Arrays{&scale_};
        parts.push_back(sums(totals, [&](const Arrays& of, const Expr& element, int64_t v) {
            const std::string name = unique_name(pixels_.name + ".distance");
            const Expr distance = Variable::make(element.type(), name);
            std::vector<Stmt> both{added(*of[0], v, Halide::strict_float(distance * distance))};
            if (has_mean) both.push_back(added(*of[1], v, distance));
            return LetStmt::make(name, distance_of(element, v), sequence(both));
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

    /// Takes the sum of squared distances from scale_ and the mean of the distances from shift_.
    [[nodiscard]] Expr inverse_deviation(int64_t v) const {
        Expr variance = mean_of(scale_, v);
        if (function_ == GeneralFunction::standardise) {
            const Expr square = Halide::strict_float(shift_.get(v) * shift_.get(v));
            variance = Halide::max(Halide::strict_float(variance - square), number(0));
        }
        const Expr enlarged = Halide::strict_float(variance + number(epsilon_));
        return Halide::strict_float(number(1) / square_root(enlarged));
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
        const Interval& channels,
        const std::function<Stmt(const Expr& element, int64_t vector)>& make) const {
        return GroupLowering::for_each(pixels_.name + ".c", channels, [&](const Expr& c) {
            return each([&](int64_t v) { return make(pixels_.load(c, v), v); });
        });
    }
    /// Totals of all channels. `add` adds what a channel gives to the arrays that it is passed.
    [[nodiscard]] Stmt sums(const Arrays& totals,
                            const std::function<Stmt(const Arrays& of, const Expr& element,
                                                     int64_t vector)>& add) const {
        const auto cleared = [&](const Accumulators& sum) {
            return each([&](int64_t v) { return sum.set(v, number(0)); });
        };
        const auto of_channels = [&](const Arrays& of, const Interval& channels) {
            return over_channels(
                channels, [&](const Expr& element, int64_t v) { return add(of, element, v); });
        };
        std::vector<Stmt> all;
        for (const Accumulators* total : totals) all.push_back(cleared(*total));
        if (pixels_.channels <= channels_of_sum) {
            all.push_back(of_channels(totals, {0, size(pixels_.channels)}));
            return sequence(all);
        }
        std::vector<Accumulators> parts;
        for (size_t n = 0; n < totals.size(); ++n)
            parts.emplace_back(unique_name(pixels_.name + ".pixel.part"), pixels_.lanes);
        Arrays of;
        for (const Accumulators& part : parts) of.push_back(&part);
        const Interval runs{0, size(ceil_div(pixels_.channels, channels_of_sum))};
        all.push_back(GroupLowering::for_each(pixels_.name + ".run", runs, [&](const Expr& run) {
            const Expr first = run * size(channels_of_sum);
            std::vector<Stmt> steps;
            for (const Accumulators& part : parts) steps.push_back(cleared(part));
            steps.push_back(of_channels(
                of, {first, Halide::min(first + size(channels_of_sum), size(pixels_.channels))}));
            for (size_t n = 0; n < parts.size(); ++n) {
                steps.push_back(
                    each([&](int64_t v) { return added(*totals[n], v, parts[n].get(v)); }));
            }
            Stmt body = sequence(steps);
            for (const Accumulators& part : parts) body = part.around(pixels_.vectors, body);
            return body;
        }));
        return sequence(all);
    }

    GeneralFunction function_;
    float epsilon_;
    const PixelVectors& pixels_;
    Accumulators middle_;  ///< mean or maximum of the channels
    Accumulators scale_;   ///< first the sum of squares or powers; its logarithm for log_softmax
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
