// Logarithmic axes of the drawings on pages without scripts.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace laminate::cli {

/// Three significant digits without an exponent: 1041 -> "1,041", 0.0001234 -> "0.000123".
[[nodiscard]] std::string short_number(double value);

/// 190096584 -> "190 M".
[[nodiscard]] std::string count_text(double value);

/// From values to places in a drawing. Its texts are those of values that it is marked at; they
/// differ and have room beside one another.
class LogAxis {
public:
    struct Mark {
        double at = 0;
        std::string text;
    };
    /// `from` and `to` are the places of the axis' ends. Of values that hardly differ, the axis
    /// shows a fifth around them.
    LogAxis(const std::vector<double>& values, double from, double to);

    [[nodiscard]] double at(double value) const;
    /// At powers of `base` and, if there is room, between them. `room`: places that a text needs,
    /// which for an axis across depends on its length.
    [[nodiscard]] std::vector<Mark> marks(double base,
                                          const std::function<std::string(double)>& text,
                                          const std::function<double(const std::string&)>& room)
        const;

private:
    double low_ = 1, high_ = 2, from_ = 0, to_ = 1;
};

/// The room of texts beside one another, and of texts below one another.
[[nodiscard]] double room_across(const std::string& text);
[[nodiscard]] double room_up(const std::string& text);

/// The frame of a drawing: its axes with marks, grid lines and titles.
struct ChartFrame {
    double width, height;
    double left = 80, right = 16, top = 26, bottom = 44;
    [[nodiscard]] LogAxis across(const std::vector<double>& values) const {
        return {values, left, width - right};
    }
    [[nodiscard]] LogAxis up(const std::vector<double>& values) const {
        return {values, height - bottom, top};
    }
    struct Scale {
        const LogAxis& axis;
        double base;
        std::function<std::string(double)> text;
        std::string title;
    };
    /// An svg element with `inside` between the frame and its end. `label` is for readers who do
    /// not see it.
    [[nodiscard]] std::string svg(const std::string& label, const Scale& x, const Scale& y,
                                  const std::string& inside) const;
};

}  // namespace laminate::cli
