#include "runtime/windows.h"

#include <algorithm>
#include <string>

#include "base/error.h"
#include "base/parallel.h"
#include "base/units.h"

namespace laminate {

namespace {

/// Calls `work` for the bands of whole rows that make up `box`, several at once.
template <class Work>
void in_bands(const PictureBox& box, int threads, const Work& work) {
    constexpr int64_t rows_per_band = 32;
    const int64_t bands = ceil_div(box.height, rows_per_band);
    in_parallel(static_cast<size_t>(bands), threads, [&](size_t band) {
        const int64_t first = static_cast<int64_t>(band) * rows_per_band;
        work(PictureBox{box.y + first, box.x, std::min(rows_per_band, box.height - first),
                        box.width},
             first);
    });
}

}  // namespace

WindowRun::WindowRun(Session& session, const Reach& reach, int64_t height, int64_t width)
    : session_(session) {
    const std::vector<Tensor> inputs = session.inputs(), outputs = session.outputs();
    if (inputs.size() != 1 || outputs.size() != 1)
        throw InputError("windows: expected a network with one input and one output");
    input_dims_ = inputs[0].dims;
    output_dims_ = outputs[0].dims;
    for (const auto& dims : {input_dims_, output_dims_}) {
        if (dims.size() != 4 || dims[0] != 1)
            throw InputError("windows: found " + dims_text(dims) +
                             ", expected one image of channels x rows x columns");
    }
    rows_ = cut(reach.y, {input_dims_[2], output_dims_[2]}, height);
    columns_ = cut(reach.x, {input_dims_[3], output_dims_[3]}, width);
    output_height_ = rows_.back().output_end;
    output_width_ = columns_.back().output_end;
    input_.resize(static_cast<size_t>(element_count(input_dims_)));
    output_.resize(static_cast<size_t>(element_count(output_dims_)));
}

int64_t WindowRun::buffer_bytes() const {
    return (std::ssize(input_) + std::ssize(output_)) * bytes_per_element;
}

bool WindowRun::run(const ReadBox& read, const WriteBox& write,
                    const std::function<void(int64_t)>& done, const std::atomic<bool>* stop) {
    const float* input = input_.data();
    float* output = output_.data();
    const BoxStrides in{input_dims_[2] * input_dims_[3], input_dims_[3]},
        out{output_dims_[2] * output_dims_[3], output_dims_[3]};
    const int threads = session_.arena().threads;
    int64_t finished = 0;
    for (const AxisPart& y : rows_) {
        for (const AxisPart& x : columns_) {
            if (stop && stop->load()) return false;
            in_bands({y.input_begin, x.input_begin, input_dims_[2], input_dims_[3]}, threads,
                     [&](const PictureBox& band, int64_t first) {
                         read(band, input_.data() + first * in.row, in);
                     });
            session_.run(&input, &output);
            const float* kept = output + y.output_in_window * out.row + x.output_in_window;
            in_bands({y.output_begin, x.output_begin, y.output_end - y.output_begin,
                      x.output_end - x.output_begin},
                     threads, [&](const PictureBox& band, int64_t first) {
                         write(band, kept + first * out.row, out);
                     });
            if (done) done(++finished);
        }
    }
    return true;
}

}  // namespace laminate
