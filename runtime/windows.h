// Runs a picture of any size through a compiled network of a fixed size. The picture is cut into
// overlapping windows of one shape. Of each window's output, the part is kept that the window's own
// borders cannot have touched. A window at the picture's border lies against it, so that zero
// padding falls where it does in the untiled run. Windows start at whole input steps
// (nets/network/reach.h), so strides, upscaling and patches fall alike, and the parts join without
// a seam: bit for bit what the same kernels compute for the whole picture.
//
// Memory: one window of input and one of output beside the session's arena, whatever the picture's
// size.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <vector>

#include "base/picture_box.h"
#include "nets/network/reach.h"
#include "runtime/session.h"

namespace laminate {

/// Element (c, y, x) of a box lies at values[c * plane + y * row + x].
struct BoxStrides {
    int64_t plane = 0;
    int64_t row = 0;
};

/// ReadBox fills `values` with a box of the input; WriteBox takes a box of the output. Several
/// threads call them at once, for different boxes.
using ReadBox =
    std::function<void(const PictureBox& box, float* values, const BoxStrides& strides)>;
using WriteBox =
    std::function<void(const PictureBox& box, const float* values, const BoxStrides& strides)>;

class WindowRun {
public:
    /// `session` runs one window: one input and one output, both of one image; `height` and `width`
    /// are the picture's. Allocates the buffers. Throws InputError as cut() does.
    WindowRun(Session& session, const Reach& reach, int64_t height, int64_t width);

    [[nodiscard]] int64_t output_height() const { return output_height_; }
    [[nodiscard]] int64_t output_width() const { return output_width_; }
    [[nodiscard]] int64_t count() const { return std::ssize(rows_) * std::ssize(columns_); }
    /// Bytes of the window's input and output.
    [[nodiscard]] int64_t buffer_bytes() const;

    /// Runs all windows, row by row from the top. The boxes written cover the output once. Calls
    /// `done` after each window with the number done. Returns false when `stop` became true before
    /// the end. Exceptions of `read` and `write` pass through.
    bool run(const ReadBox& read, const WriteBox& write,
             const std::function<void(int64_t)>& done = {},
             const std::atomic<bool>* stop = nullptr);

private:
    Session& session_;
    std::vector<AxisPart> rows_, columns_;
    std::vector<int64_t> input_dims_, output_dims_;  ///< of one window
    int64_t output_height_ = 0, output_width_ = 0;
    std::vector<float> input_, output_;
};

}  // namespace laminate
