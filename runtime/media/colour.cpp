#include "runtime/media/colour.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "base/error.h"
#include "runtime/media/codecs.h"

namespace laminate {
namespace {

using Matrix = std::array<std::array<double, 3>, 3>;

constexpr Matrix ycbcr_of_rgb{
    {{65.481, 128.553, 24.966}, {-37.797, -74.203, 112.0}, {112.0, -93.786, -18.214}}};
constexpr std::array<double, 3> ycbcr_offset{16, 128, 128};

Matrix inverse(const Matrix& m) {
    const auto minor = [&](size_t r, size_t c) {
        const size_t r1 = (r + 1) % 3, r2 = (r + 2) % 3, c1 = (c + 1) % 3, c2 = (c + 2) % 3;
        return m[r1][c1] * m[r2][c2] -
               m[r1][c2] * m[r2][c1];  // with its sign: the indices are cyclic
    };
    const double determinant =
        m[0][0] * minor(0, 0) + m[0][1] * minor(0, 1) + m[0][2] * minor(0, 2);
    Matrix result{};
    for (size_t r = 0; r < 3; ++r) {
        for (size_t c = 0; c < 3; ++c) result[c][r] = minor(r, c) / determinant;
    }
    return result;
}

std::string size_text(const Plane& plane) {
    return std::to_string(plane.width) + " x " + std::to_string(plane.height);
}

/// The four neighbours of a position and their weights: Keys' cubic convolution kernel.
struct Taps {
    std::array<int64_t, 4> at{};
    std::array<float, 4> weight{};
};

Taps taps(int64_t output, int64_t in, int64_t out) {
    constexpr double a = -0.75;
    const double position =
        (static_cast<double>(output) + 0.5) * static_cast<double>(in) / static_cast<double>(out) -
        0.5;
    const double floor = std::floor(position);
    Taps result;
    for (int64_t k = 0; k < 4; ++k) {
        const double d = std::abs(position - (floor + static_cast<double>(k - 1)));
        const double near = ((a + 2) * d - (a + 3)) * d * d + 1;  // |d| <= 1
        const double far = a * (((d - 5) * d + 8) * d - 4);       // 1 < |d| <= 2
        result.at[static_cast<size_t>(k)] =
            std::clamp<int64_t>(static_cast<int64_t>(floor) + k - 1, 0, in - 1);
        result.weight[static_cast<size_t>(k)] = static_cast<float>(d <= 1 ? near : far);
    }
    return result;
}

}  // namespace

LumaChroma to_luma_chroma(const Picture& picture) {
    const int64_t pixels = picture.height * picture.width;
    const Plane empty{picture.height, picture.width,
                      std::vector<float>(static_cast<size_t>(pixels))};
    if (picture.channels == 1) {
        LumaChroma planes{empty, {}, {}};
        for (size_t k = 0; k < picture.samples.size(); ++k)
            planes.y.values[k] = static_cast<float>(picture.samples[k] / picture.largest());
        return planes;
    }
    LumaChroma planes{empty, empty, empty};
    const std::array<Plane*, 3> targets{&planes.y, &planes.cb, &planes.cr};
    for (size_t k = 0; k < static_cast<size_t>(pixels); ++k) {
        const uint16_t* rgb = picture.samples.data() + 3 * k;
        for (size_t p = 0; p < 3; ++p) {
            double value = ycbcr_offset[p];
            for (size_t c = 0; c < 3; ++c) value += ycbcr_of_rgb[p][c] * (rgb[c] / picture.largest());
            targets[p]->values[k] = static_cast<float>(value / 255.0);
        }
    }
    return planes;
}

Picture to_picture(const LumaChroma& planes, int bits) {
    const bool grey = planes.cb.values.empty();
    Picture picture = blank_picture(planes.y.height, planes.y.width, grey ? 1 : 3, bits, "picture");
    if (grey) {
        for (size_t k = 0; k < picture.samples.size(); ++k)
            picture.samples[k] =
                to_sample(static_cast<double>(planes.y.values[k]), picture.largest());
        return picture;
    }
    static const Matrix rgb_of_ycbcr = inverse(ycbcr_of_rgb);
    for (size_t k = 0; k < planes.y.values.size(); ++k) {
        const std::array<double, 3> ycbcr{planes.y.values[k] * 255.0 - ycbcr_offset[0],
                                          planes.cb.values[k] * 255.0 - ycbcr_offset[1],
                                          planes.cr.values[k] * 255.0 - ycbcr_offset[2]};
        for (size_t c = 0; c < 3; ++c) {
            double value = 0;
            for (size_t p = 0; p < 3; ++p) value += rgb_of_ycbcr[c][p] * ycbcr[p];
            picture.samples[3 * k + c] = to_sample(value, picture.largest());
        }
    }
    return picture;
}

std::vector<float> to_planar(const Picture& picture) {
    std::vector<float> values(picture.samples.size());
    const auto channels = static_cast<size_t>(picture.channels), pixels = values.size() / channels;
    const auto largest = static_cast<float>(picture.largest());
    for (size_t k = 0; k < values.size(); ++k) {
        values[k % channels * pixels + k / channels] =
            static_cast<float>(picture.samples[k]) / largest;
    }
    return values;
}

Picture from_planar(const float* values, int64_t channels, int64_t height, int64_t width,
                    int bits) {
    Picture picture = blank_picture(height, width, channels, bits, "picture");
    const auto count = static_cast<size_t>(channels), pixels = picture.samples.size() / count;
    for (size_t k = 0; k < picture.samples.size(); ++k) {
        picture.samples[k] = to_sample(static_cast<double>(values[k % count * pixels + k / count]),
                                       picture.largest());
    }
    return picture;
}

void take_alpha_and_tags(Picture& picture, const Picture& source) {
    picture.tags = source.tags;
    picture.alpha.clear();
    if (source.alpha.empty()) return;
    Plane opacity{source.height, source.width, {}};
    for (const uint16_t sample : source.alpha)
        opacity.values.push_back(static_cast<float>(sample / source.largest()));
    for (const float value : resize_bicubic(opacity, picture.height, picture.width).values)
        picture.alpha.push_back(to_sample(static_cast<double>(value), picture.largest()));
}

PictureBox bicubic_source(const PictureBox& box, int64_t height, int64_t width,
                          int64_t resized_height, int64_t resized_width) {
    const Taps top = taps(box.y, height, resized_height),
               bottom = taps(box.y + box.height - 1, height, resized_height);
    const Taps left = taps(box.x, width, resized_width),
               right = taps(box.x + box.width - 1, width, resized_width);
    return {top.at[0], left.at[0], bottom.at[3] + 1 - top.at[0], right.at[3] + 1 - left.at[0]};
}

Plane resize_bicubic(const PlanePart& part, const PictureBox& box, int64_t height, int64_t width) {
    const Plane& plane = part.plane;
    Plane wide{plane.height, box.width,
               std::vector<float>(static_cast<size_t>(plane.height * box.width))};
    std::vector<Taps> columns;
    for (int64_t x = 0; x < box.width; ++x)
        columns.push_back(taps(box.x + x, part.whole_width, width));
    for (int64_t y = 0; y < plane.height; ++y) {
        const float* row = plane.values.data() + y * plane.width - part.x;
        for (int64_t x = 0; x < box.width; ++x) {
            const Taps& t = columns[static_cast<size_t>(x)];
            float sum = 0;
            for (size_t k = 0; k < 4; ++k) sum += t.weight[k] * row[t.at[k]];
            wide.values[static_cast<size_t>(y * box.width + x)] = sum;
        }
    }
    Plane result{box.height, box.width,
                 std::vector<float>(static_cast<size_t>(box.height * box.width))};
    for (int64_t y = 0; y < box.height; ++y) {
        const Taps t = taps(box.y + y, part.whole_height, height);
        for (int64_t x = 0; x < box.width; ++x) {
            float sum = 0;
            for (size_t k = 0; k < 4; ++k)
                sum += t.weight[k] *
                       wide.values[static_cast<size_t>((t.at[k] - part.y) * box.width + x)];
            result.values[static_cast<size_t>(y * box.width + x)] = sum;
        }
    }
    return result;
}

Plane resize_bicubic(const Plane& plane, int64_t height, int64_t width) {
    return resize_bicubic(PlanePart{plane, 0, 0, plane.height, plane.width}, {0, 0, height, width},
                          height, width);
}

Plane cropped(const Plane& plane, int64_t height, int64_t width) {
    if (height < 1 || width < 1 || height > plane.height || width > plane.width) {
        throw InputError("crop: found " + size_text(plane) + " pixels, expected at least " +
                         size_text({height, width, {}}));
    }
    Plane part{height, width, {}};
    part.values.reserve(static_cast<size_t>(height * width));
    for (int64_t y = 0; y < height; ++y) {
        const auto row = plane.values.begin() + y * plane.width;
        part.values.insert(part.values.end(), row, row + width);
    }
    return part;
}

Picture with_luma(const Picture& small, int64_t whole_height, int64_t whole_width,
                  const Plane& luma, const PictureBox& box, int64_t height, int64_t width) {
    LumaChroma planes = to_luma_chroma(small);
    planes.y = luma;
    const PictureBox source = bicubic_source(box, whole_height, whole_width, height, width);
    for (Plane* chroma : {&planes.cb, &planes.cr}) {
        if (chroma->values.empty()) continue;
        *chroma = resize_bicubic(
            PlanePart{std::move(*chroma), source.y, source.x, whole_height, whole_width}, box,
            height, width);
    }
    return to_picture(planes, small.bits);
}

Picture with_luma(const Picture& small, const Plane& luma) {
    Picture large = with_luma(small, small.height, small.width, luma,
                              {0, 0, luma.height, luma.width}, luma.height, luma.width);
    take_alpha_and_tags(large, small);
    return large;
}

double psnr_db(const Plane& a, const Plane& b, int64_t border) {
    if (a.height != b.height || a.width != b.width) {
        throw InputError("psnr: found " + size_text(a) + " and " + size_text(b) +
                         " pixels, expected equal sizes");
    }
    if (border < 0 || a.height <= 2 * border || a.width <= 2 * border) {
        throw InputError("psnr: nothing is left of " + size_text(a) +
                         " pixels without a border of " + std::to_string(border));
    }
    double sum = 0;
    for (int64_t y = border; y < a.height - border; ++y) {
        for (int64_t x = border; x < a.width - border; ++x) {
            const auto k = static_cast<size_t>(y * a.width + x);
            const double difference = static_cast<double>(std::clamp(a.values[k], 0.0f, 1.0f)) -
                                      static_cast<double>(b.values[k]);
            sum += difference * difference;
        }
    }
    if (sum == 0) return std::numeric_limits<double>::infinity();
    const auto count = static_cast<double>((a.height - 2 * border) * (a.width - 2 * border));
    return 10 * std::log10(count / sum);
}

}  // namespace laminate
