// Converts between pictures and what networks read and write: planes of 32-bit floats in
// [0, 1]: samples divided by 255 or, of 16 bits, by 65535.
//
// Luma is ITU-R BT.601 in studio range, as scikit-image's rgb2ycbcr, divided by 255. With R, G, B
// in [0, 1]:
//   Y  = ( 16 +  65.481 R + 128.553 G +  24.966 B) / 255
//   Cb = (128 -  37.797 R -  74.203 G + 112     B) / 255
//   Cr = (128 + 112     R -  93.786 G -  18.214 B) / 255
// A grey picture's luma is its samples in full range, like the example network's training data.
#pragma once

#include <cstdint>
#include <vector>

#include "base/picture_box.h"
#include "runtime/media/picture.h"

namespace laminate {

/// One channel, row major, height x width.
struct Plane {
    int64_t height = 0;
    int64_t width = 0;
    std::vector<float> values;
};

/// A picture as planes; cb and cr are empty for a grey one.
struct LumaChroma {
    Plane y, cb, cr;
};

[[nodiscard]] LumaChroma to_luma_chroma(const Picture& picture);
/// The inverse, rounded to the nearest sample of 8 or 16 bits and clamped. The planes have one size;
/// without chroma the picture is grey.
[[nodiscard]] Picture to_picture(const LumaChroma& planes, int bits = 8);

/// All channels, planar (C H W), and back (rounded to nearest, clamped); channels 1 or 3.
[[nodiscard]] std::vector<float> to_planar(const Picture& picture);
[[nodiscard]] Picture from_planar(const float* values, int64_t channels, int64_t height,
                                  int64_t width, int bits = 8);

/// Gives a picture, made from `source` and perhaps of another size, what `source` has beside its
/// colours: its alpha, resized, and its colour tags.
void take_alpha_and_tags(Picture& picture, const Picture& source);

/// Bicubic interpolation with a = -0.75, pixel centres at half integers (align_corners false),
/// edges repeated, no low-pass filter: torch.nn.functional.interpolate(mode="bicubic").
[[nodiscard]] Plane resize_bicubic(const Plane& plane, int64_t height, int64_t width);

/// A plane that is part of a larger one.
struct PlanePart {
    Plane plane;
    int64_t y = 0, x = 0;  ///< where it lies
    int64_t whole_height = 0, whole_width = 0;
};
/// The part of a plane of height x width from which `box` of its resize to resized_height x
/// resized_width is computed.
[[nodiscard]] PictureBox bicubic_source(const PictureBox& box, int64_t height, int64_t width,
                                        int64_t resized_height, int64_t resized_width);
/// `box` of resize_bicubic(whole, height, width), bit for bit; `part` holds bicubic_source().
[[nodiscard]] Plane resize_bicubic(const PlanePart& part, const PictureBox& box, int64_t height,
                                   int64_t width);

/// The top left part. Throws InputError when the plane is smaller.
[[nodiscard]] Plane cropped(const Plane& plane, int64_t height, int64_t width);

/// The picture with this luma and the chroma and alpha of `small`, resized to luma's size, its bits
/// and its colour tags.
[[nodiscard]] Picture with_luma(const Picture& small, const Plane& luma);
/// The colours of the same for a part: `luma` is `box` of a luma of height x width, and `small` is the part
/// bicubic_source() of a picture of whole_height x whole_width.
[[nodiscard]] Picture with_luma(const Picture& small, int64_t whole_height, int64_t whole_width,
                                const Plane& luma, const PictureBox& box, int64_t height,
                                int64_t width);

/// Peak signal-to-noise ratio in dB for values in [0, 1], without `border` pixels on each side. `a`
/// is clamped to [0, 1] first. Infinite for equal planes. Throws InputError when sizes differ or
/// nothing is left.
[[nodiscard]] double psnr_db(const Plane& a, const Plane& b, int64_t border);

}  // namespace laminate
