#include "answers/curve_page.h"

#include <fmt/core.h>

#include <cmath>

#include "answers/chart.h"
#include "answers/output.h"
#include "answers/page.h"

namespace laminate::cli {

namespace {

/// A chart of one layer with two logarithmic axes.
std::string chart(const LayerCurve& curve) {
    constexpr ChartFrame frame{.width = 610, .height = 270};
    std::vector<double> buffers, accesses;
    for (const LayerCurve::Point& p : curve.points) {
        buffers.push_back(static_cast<double>(p.buffer_bytes));
        accesses.push_back(static_cast<double>(p.bound_bytes));
        if (p.dram_bytes) accesses.push_back(static_cast<double>(*p.dram_bytes));
    }
    const LogAxis x = frame.across(buffers), y = frame.up(accesses);
    const auto place = [&](int64_t buffer, int64_t bytes) {
        return fmt::format("{:.1f},{:.1f} ", x.at(static_cast<double>(buffer)),
                           y.at(static_cast<double>(bytes)));
    };
    std::string bound, dram, dots;
    for (const LayerCurve::Point& p : curve.points) {
        bound += place(p.buffer_bytes, p.bound_bytes);
        if (!p.dram_bytes) continue;
        dram += place(p.buffer_bytes, *p.dram_bytes);
        dots += fmt::format(
            "<circle class='found-at' cx='{:.1f}' cy='{:.1f}' r='3'><title>{} buffer: "
            "{}</title></circle>",
            x.at(static_cast<double>(p.buffer_bytes)), y.at(static_cast<double>(*p.dram_bytes)),
            bytes_text(p.buffer_bytes), bytes_text(*p.dram_bytes));
    }
    const auto text = [](double bytes) { return bytes_text(std::llround(bytes)); };
    return fmt::format("<figure><figcaption>{} <span class=\"unit\">{}</span></figcaption>{}"
                       "</figure>\n",
                       escaped(curve.layer), escaped(curve.loops),
                       frame.svg("DRAM accesses of " + curve.layer + " against the buffer",
                                 {x, 1024, text, "buffer"}, {y, 1024, text, "DRAM accesses"},
                                 fmt::format("<polyline class='space-bound' points='{}'/><polyline "
                                             "class='found' points='{}'/>{}",
                                             bound, dram, dots)));
}

}  // namespace

std::string curve_page(const std::string& title, const std::vector<LayerCurve>& curves) {
    std::string body = "<div class=\"row\">\n";
    for (const LayerCurve& curve : curves)
        if (curve.points.size() > 1) body += chart(curve);
    return plain_page(title,
                      "Fewest DRAM accesses of each layer against the size of the buffer (solid), "
                      "and what no schedule can do better (dotted). Both axes are logarithmic.",
                      body + "</div>\n");
}

}  // namespace laminate::cli
