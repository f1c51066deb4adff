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

/// Whether two pairs (i, j) touch the same word S i + E j.
bool windows_overlap(const ConvolutionProblem& p, MapAxis axis) {
    return p.touched(axis, p.extent) < p.extent[outputs_along(axis)] * p.extent[taps_along(axis)];
}

}  // namespace

std::optional<ConvolutionLoop> loop_named(char name) {
    for (const ConvolutionLoop loop : convolution_loops)
        if (to_char(loop) == name) return loop;
    return {};
}

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
    c.steps = {steps_of(p.x()), steps_of(p.y())};
    return c;
}

std::string to_text(const ConvolutionProblem& p) {
    std::string text;
    for (const ConvolutionLoop loop : convolution_loops)
        text += (text.empty() ? "" : " ") + std::string(1, to_char(loop)) +
                std::to_string(p.extent[loop]);
    const auto pair = [&](const char* word, int64_t columns, int64_t rows, bool always = false) {
        if (columns == 1 && rows == 1 && !always) return;
        text += std::string(" ") + word + " " + std::to_string(columns);
        if (rows != columns) text += "x" + std::to_string(rows);
    };
    const auto [along_x, along_y] = p.steps.values;
    pair("stride", along_x.stride, along_y.stride);
    pair("dilation", along_x.dilation, along_y.dilation);
    if (p.groups != 1) text += " groups " + std::to_string(p.groups);
    if (p.transposed) text += " transposed";
    if (p.finished) pair("finished", (*p.finished)[MapAxis::x], (*p.finished)[MapAxis::y], true);
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
                int64_t WindowSteps::*const step =
                    word == "stride" ? &WindowSteps::stride : &WindowSteps::dilation;
                p.steps[MapAxis::x].*step = first;
                p.steps[MapAxis::y].*step = second;
            }
        } else {
            const std::optional<ConvolutionLoop> loop = loop_named(word[0]);
            if (!loop) throw fail(word);
            p.extent[*loop] = number(word, word.data() + 1, word.data() + word.size());
        }
    }
    return p;
}

TensorAccess tensor_access(const ConvolutionProblem& p, Operand operand) {
    TensorAccess access;
    access.role.values.fill(LoopRole::reuse);
    access.traffic = spill_traffic(operand);
    const auto related = [&](std::initializer_list<ConvolutionLoop> loops) {
        for (const ConvolutionLoop loop : loops) access.role[loop] = LoopRole::related;
    };
    if (operand == Operand::weight) {
        related({k, c, m, n});
        return access;
    }
    if (operand == Operand::input) related({f, c, x, y});
    if (operand == Operand::output) related({f, k, x, y});
    if ((operand == Operand::output) == p.transposed) {
        for (const MapAxis axis : map_axes) {
            const LoopRole role = windows_overlap(p, axis) ? LoopRole::partial : LoopRole::related;
            access.role[outputs_along(axis)] = role;
            access.role[taps_along(axis)] = role;
        }
    }
    return access;
}

int64_t touched_words(const ConvolutionProblem& p, Operand operand, const LoopExtents& e) {
    int64_t words = 1;
    const auto times = [&](int64_t factor) { words = checked_multiply(words, factor); };
    if (operand != Operand::weight) times(e[f]);
    if (operand != Operand::input) times(e[k]);
    if (operand != Operand::output) times(e[c]);
    for (const MapAxis axis : map_axes) {
        if (operand == Operand::weight) {
            times(e[taps_along(axis)]);
        } else if ((operand == Operand::output) == p.transposed) {
            times(p.touched(axis, e));
        } else {
            times(e[outputs_along(axis)]);
        }
    }
    return words;
}

int64_t tensor_words(const ConvolutionProblem& p, Operand operand) {
    return checked_multiply(touched_words(p, operand, p.extent), p.groups);
}

}  // namespace laminate
