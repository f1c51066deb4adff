#include "papers/layer_optimum/convolution.h"

#include <algorithm>
#include <charconv>
#include <sstream>

#include "base/error.h"
#include "base/units.h"
#include "scheduler/schedule/problem.h"

namespace laminate {

namespace {

using enum ConvolutionLoop;

constexpr std::array<ConvolutionLoop, 2> window_outputs{x, y};
constexpr std::array<ConvolutionLoop, 2> window_taps{m, n};

/// Whether two pairs (i, j) touch the same word S i + E j.
bool windows_overlap(const ConvolutionProblem& p, size_t axis) {
    const int64_t outputs = at(p.extent, window_outputs[axis]);
    const int64_t taps = at(p.extent, window_taps[axis]);
    return touched_words(outputs, taps, p.stride[axis], p.dilation[axis]) < outputs * taps;
}

}  // namespace

ConvolutionProblem convolution_problem(const Network& network, LayerId layer) {
    if (!must_be_scheduled(network, layer)) {
        throw InputError("layer " + network.layer(layer).name + ": a " +
                         operation_text(network.layer(layer)) +
                         " has no loops over weights; expected a convolution or Gemm");
    }
    const LayerProblem p = layer_problem(network, layer);
    ConvolutionProblem c;
    c.name = p.name;
    c.groups = p.groups;
    c.transposed = p.y().transposed;
    const int64_t batch = network.tensor(p.output).dims.at(0);
    // A transposed convolution runs over the columns and rows of its input.
    const auto positions = [&](const AxisWindow& w) { return c.transposed ? w.in : w.out; };
    c.extent = {batch,        p[Dim::z] / p.groups, p[Dim::i], positions(p.x()), positions(p.y()),
                p.x().kernel, p.y().kernel};
    c.stride = {p.x().stride, p.y().stride};
    c.dilation = {p.x().dilation, p.y().dilation};
    return c;
}

std::string to_text(const ConvolutionProblem& p) {
    std::string text;
    for (size_t l = 0; l < convolution_loops; ++l) {
        text += (l == 0 ? "" : " ") + std::string(1, to_char(static_cast<ConvolutionLoop>(l))) +
                std::to_string(p.extent[l]);
    }
    const auto pair = [&](const char* word, const std::array<int64_t, 2>& v, bool always = false) {
        if (v == std::array<int64_t, 2>{1, 1} && !always) return;
        text += std::string(" ") + word + " " + std::to_string(v[0]);
        if (v[1] != v[0]) text += "x" + std::to_string(v[1]);
    };
    pair("stride", p.stride);
    pair("dilation", p.dilation);
    if (p.groups != 1) text += " groups " + std::to_string(p.groups);
    if (p.transposed) text += " transposed";
    if (p.finished) pair("finished", *p.finished, true);
    return text;
}

ConvolutionProblem parse_convolution(const std::string& text) {
    ConvolutionProblem p;
    std::istringstream in(text);
    const auto fail = [&](const std::string& word) -> InputError {
        return InputError("convolution \"" + text + "\": found \"" + word +
                          "\", expected f, k, c, x, y, m or n with a number, stride, dilation, "
                          "groups, transposed or finished");
    };
    const auto number = [&](const std::string& word, const char* begin, const char* end) {
        int64_t value = 0;
        const auto [rest, error] = std::from_chars(begin, end, value);
        if (error != std::errc() || rest != end || value < 1 || value > INT32_MAX) throw fail(word);
        return value;
    };
    for (std::string word; in >> word;) {
        if (word == "transposed") {
            p.transposed = true;
        } else if (word == "stride" || word == "dilation" || word == "groups" ||
                   word == "finished") {
            std::string value;
            in >> value;
            const size_t cross = value.find('x');
            const char* const begin = value.data();
            const char* const end = begin + value.size();
            const char* const first_end = cross == std::string::npos ? end : begin + cross;
            const int64_t first = number(value, begin, first_end);
            const int64_t second =
                cross == std::string::npos ? first : number(value, first_end + 1, end);
            if (word == "groups") {
                if (cross != std::string::npos) throw fail(value);
                p.groups = first;
            } else if (word == "finished") {
                p.finished = {first, second};
            } else {
                (word == "stride" ? p.stride : p.dilation) = {first, second};
            }
        } else {
            const size_t loop = std::string("fkcxymn").find(word[0]);
            if (loop == std::string::npos) throw fail(word);
            p.extent[loop] = number(word, word.data() + 1, word.data() + word.size());
        }
    }
    return p;
}

TensorAccess tensor_access(const ConvolutionProblem& p, Operand operand) {
    TensorAccess access;
    access.role.fill(LoopRole::reuse);
    access.traffic = spill_traffic(operand);
    const auto related = [&](std::initializer_list<ConvolutionLoop> loops) {
        for (const ConvolutionLoop loop : loops)
            access.role[static_cast<size_t>(loop)] = LoopRole::related;
    };
    if (operand == Operand::weight) {
        related({k, c, m, n});
        return access;
    }
    if (operand == Operand::input) related({f, c, x, y});
    if (operand == Operand::output) related({f, k, x, y});
    if ((operand == Operand::output) == p.transposed) {
        for (size_t axis = 0; axis < 2; ++axis) {
            const LoopRole role = windows_overlap(p, axis) ? LoopRole::partial : LoopRole::related;
            access.role[static_cast<size_t>(window_outputs[axis])] = role;
            access.role[static_cast<size_t>(window_taps[axis])] = role;
        }
    }
    return access;
}

int64_t touched_words(int64_t outputs, int64_t taps, int64_t stride, int64_t dilation) {
    const int64_t span = (outputs - 1) * stride + (taps - 1) * dilation + 1;
    // Runs without gaps, one per output (or per tap), that touch or overlap each other.
    if (dilation == 1 && taps >= stride) return span;
    if (stride == 1 && outputs >= dilation) return span;
    if (dilation == 1 || taps == 1) return outputs * taps;
    if (stride == 1 || outputs == 1) return outputs * taps;
    std::vector<bool> touched(static_cast<size_t>(span), false);
    for (int64_t i = 0; i < outputs; ++i)
        for (int64_t j = 0; j < taps; ++j)
            touched[static_cast<size_t>(i * stride + j * dilation)] = true;
    return std::count(touched.begin(), touched.end(), true);
}

int64_t touched_words(const ConvolutionProblem& p, Operand operand, const LoopExtents& e) {
    int64_t words = 1;
    const auto times = [&](int64_t factor) { words = checked_multiply(words, factor); };
    if (operand != Operand::weight) times(at(e, f));
    if (operand != Operand::input) times(at(e, k));
    if (operand != Operand::output) times(at(e, c));
    for (size_t axis = 0; axis < 2; ++axis) {
        const int64_t outputs = at(e, window_outputs[axis]);
        const int64_t taps = at(e, window_taps[axis]);
        if (operand == Operand::weight) {
            times(taps);
        } else if ((operand == Operand::output) == p.transposed) {
            times(touched_words(outputs, taps, p.stride[axis], p.dilation[axis]));
        } else {
            times(outputs);
        }
    }
    return words;
}

int64_t tensor_words(const ConvolutionProblem& p, Operand operand) {
    return checked_multiply(touched_words(p, operand, p.extent), p.groups);
}

}  // namespace laminate
