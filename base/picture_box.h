// A part of a picture.
#pragma once

#include <cstdint>

namespace laminate {

/// Rows [y, y + height) and columns [x, x + width), all channels.
struct PictureBox {
    int64_t y = 0;
    int64_t x = 0;
    int64_t height = 0;
    int64_t width = 0;
    friend bool operator==(const PictureBox&, const PictureBox&) = default;
};

}  // namespace laminate
