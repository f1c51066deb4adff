#include "answers/curve_page.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "answers/output.h"
#include "answers/page.h"

namespace laminate::cli {

namespace {

constexpr double width = 460;
constexpr double height = 250;
constexpr double left = 70;
constexpr double bottom = 30;
constexpr double margin = 12;

/// A chart with two logarithmic axes.
class Chart {
public:
    explicit Chart(const LayerCurve& curve) : curve_(curve) {
        int64_t least = INT64_MAX;
        int64_t most = 1;
        for (const LayerCurve::Point& p : curve.points) {
            least = std::min(least, p.bound_bytes);
            most = std::max({most, p.bound_bytes, p.dram_bytes.value_or(1)});
        }
        low_ = std::log2(static_cast<double>(least)) - 0.1;
        high_ = std::log2(static_cast<double>(most)) + 0.1;
        first_ = std::log2(static_cast<double>(curve.points.front().buffer_bytes));
        last_ = std::log2(static_cast<double>(curve.points.back().buffer_bytes));
    }
    [[nodiscard]] std::string svg() const {
        std::string bound;
        std::string dram;
        std::string dots;
        std::string labels;
        for (const LayerCurve::Point& p : curve_.points) {
            bound += fmt::format("{:.1f},{:.1f} ", x(p.buffer_bytes), y(p.bound_bytes));
            if (p.dram_bytes) {
                dram += fmt::format("{:.1f},{:.1f} ", x(p.buffer_bytes), y(*p.dram_bytes));
                dots += fmt::format(
                    "<circle class='found-at' cx='{:.1f}' cy='{:.1f}' r='3'><title>{} buffer: "
                    "{}</title></circle>",
                    x(p.buffer_bytes), y(*p.dram_bytes), bytes_text(p.buffer_bytes),
                    bytes_text(*p.dram_bytes));
            }
            if (std::llround(std::log2(static_cast<double>(p.buffer_bytes))) % 4 == 2) {
                labels += fmt::format("<text x='{:.1f}' y='{:.1f}' text-anchor='middle'>{}</text>",
                                      x(p.buffer_bytes), height - 10, bytes_text(p.buffer_bytes));
            }
        }
        for (const double at : {low_ + 0.1, high_ - 0.1}) {
            const auto bytes = static_cast<int64_t>(std::llround(std::exp2(at)));
            labels += fmt::format("<text x='{:.1f}' y='{:.1f}' text-anchor='end'>{}</text>",
                                  left - 6, y(bytes) + 4, bytes_text(bytes));
        }
        return fmt::format(
            "<figure><figcaption><b>{}</b> {}</figcaption><svg viewBox='0 0 {} {}' width='{}' "
            "height='{}'>"
            "<rect class='axis' x='{}' y='{}' width='{}' height='{}'/><polyline "
            "class='space-bound' "
            "points='{}'/><polyline class='found' points='{}'/>{}{}</svg></figure>\n",
            escaped(curve_.layer), escaped(curve_.loops), width, height, width, height, left,
            margin, width - left - margin, height - bottom - margin, bound, dram, dots, labels);
    }

private:
    [[nodiscard]] double x(int64_t bytes) const {
        return left + (std::log2(static_cast<double>(bytes)) - first_) / (last_ - first_) *
                          (width - left - margin);
    }
    [[nodiscard]] double y(int64_t bytes) const {
        return height - bottom -
               (std::log2(static_cast<double>(bytes)) - low_) / (high_ - low_) *
                   (height - bottom - margin);
    }

    const LayerCurve& curve_;
    double low_ = 0;
    double high_ = 0;
    double first_ = 0;
    double last_ = 0;
};

}  // namespace

std::string curve_page(const std::string& title, const std::vector<LayerCurve>& curves) {
    std::string body = "<div class=\"row\">\n";
    for (const LayerCurve& curve : curves)
        if (curve.points.size() > 1) body += Chart(curve).svg();
    return plain_page(title,
                      "Fewest DRAM accesses of each layer against the size of the buffer (solid), "
                      "and what no schedule can do better (dashed). Both axes are logarithmic.",
                      body + "</div>\n");
}

}  // namespace laminate::cli
