#include "answers/chart.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "answers/output.h"
#include "answers/page.h"

namespace laminate::cli {

std::string short_number(double value) {
    if (value == 0) return "0";
    const int power = static_cast<int>(std::floor(std::log10(std::abs(value)) + 1e-9));
    if (power >= 3) return grouped(std::llround(value));
    std::string text = fmt::format("{:.{}f}", value, std::min(12, 2 - std::min(power, 2)));
    if (text.find('.') != std::string::npos) {
        while (text.back() == '0') text.pop_back();
        if (text.back() == '.') text.pop_back();
    }
    return text;
}

std::string count_text(double value) {
    constexpr std::array<const char*, 5> suffixes{"", " k", " M", " G", " T"};
    size_t step = 0;
    while (value >= 999.5 && step + 1 < suffixes.size()) {
        value /= 1000;
        ++step;
    }
    return short_number(value) + suffixes[step];
}

LogAxis::LogAxis(const std::vector<double>& values, double from, double to)
    : from_(from), to_(to) {
    if (values.empty()) return;
    const auto [least, most] = std::ranges::minmax(values);
    const double margin = std::max(std::pow(most / least, 0.06), most / least < 1.2 ? 1.1 : 1.02);
    low_ = least / margin;
    high_ = most * margin;
}

double LogAxis::at(double value) const {
    return from_ + std::log(value / low_) / std::log(high_ / low_) * (to_ - from_);
}

std::vector<LogAxis::Mark> LogAxis::marks(
    double base, const std::function<std::string(double)>& text,
    const std::function<double(const std::string&)>& room) const {
    std::vector<double> candidates;
    std::vector<Mark> best;
    const auto take_if_there_is_room = [&] {
        std::vector<Mark> marks;
        for (const double value : candidates) marks.push_back({at(value), text(value)});
        for (size_t n = 1; n < marks.size(); ++n) {
            const double needed = (room(marks[n].text) + room(marks[n - 1].text)) / 2;
            if (std::abs(marks[n].at - marks[n - 1].at) < needed ||
                marks[n].text == marks[n - 1].text)
                return;
        }
        if (marks.size() > best.size()) best = std::move(marks);
    };
    const std::vector<std::vector<double>> decades{{1}, {1, 3}, {1, 2, 5}, {1, 1.5, 2, 3, 4, 5, 7}};
    const std::vector<std::vector<double>> halvings{
        {1}, {1, 32}, {1, 4, 16, 64, 256}, {1, 2, 4, 8, 16, 32, 64, 128, 256, 512}};
    for (const std::vector<double>& parts : base == 10 ? decades : halvings) {
        candidates.clear();
        for (double unit = std::pow(base, std::floor(std::log(low_) / std::log(base)));
             unit <= high_; unit *= base) {
            for (const double part : parts)
                if (unit * part >= low_ && unit * part <= high_) candidates.push_back(unit * part);
        }
        take_if_there_is_room();
    }
    // An axis of very many decades marks every second one or fewer.
    for (int apart = 2; best.size() < 2 && apart < 8; ++apart) {
        candidates.clear();
        for (double unit = 1; unit <= high_; unit *= std::pow(base, apart))
            if (unit >= low_) candidates.push_back(unit);
        take_if_there_is_room();
    }
    for (int wanted = 6; best.size() < 3 && wanted > 1; --wanted) {
        const double rough = (high_ - low_) / wanted;
        const double unit = std::pow(10, std::floor(std::log10(rough)));
        const double step = rough <= 2 * unit ? 2 * unit : rough <= 5 * unit ? 5 * unit : 10 * unit;
        candidates.clear();
        for (double n = std::ceil(low_ / step); n * step <= high_; ++n)
            candidates.push_back(n * step);
        take_if_there_is_room();
    }
    return best;
}

// The widest digit and letter of the pages' fonts are 7.5 units wide at their size of 11.5.
double room_across(const std::string& text) {
    return 7.5 * static_cast<double>(display_width(text)) + 10;
}
double room_up(const std::string&) { return 24; }

std::string ChartFrame::svg(const std::string& label, const Scale& x, const Scale& y,
                            const std::string& inside) const {
    std::string svg = fmt::format(
        "<svg class=\"chart\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" role=\"img\" aria-label=\"{2}\">",
        width, height, escaped(label));
    const double floor = height - bottom;
    for (const LogAxis::Mark& mark : x.axis.marks(x.base, x.text, room_across)) {
        const double half = room_across(mark.text) / 2 - 4;
        svg += fmt::format(
            "<path class=\"grid\" d=\"M{0:.1f} {1}V{2}\"/><text x=\"{3:.1f}\" y=\"{4}\" "
            "text-anchor=\"middle\">{5}</text>",
            mark.at, top, floor, std::clamp(mark.at, half, width - half), floor + 17,
            escaped(mark.text));
    }
    for (const LogAxis::Mark& mark : y.axis.marks(y.base, y.text, room_up)) {
        svg += fmt::format(
            "<path class=\"grid\" d=\"M{0} {1:.1f}H{2}\"/><text x=\"{3}\" y=\"{4:.1f}\" "
            "text-anchor=\"end\">{5}</text>",
            left, mark.at, width - right, left - 6, mark.at + 4, escaped(mark.text));
    }
    return svg +
           fmt::format(
               "<path class=\"axis\" d=\"M{0} {1}V{2}H{3}\"/><text class=\"label\" x=\"4\" "
               "y=\"14\">{4}</text><text class=\"label\" x=\"{5:.1f}\" y=\"{6}\" "
               "text-anchor=\"middle\">{7}</text>",
               left, top, floor, width - right, escaped(y.title), (left + width - right) / 2,
               height - 6, escaped(x.title)) +
           inside + "</svg>\n";
}

}  // namespace laminate::cli
