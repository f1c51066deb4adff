#include "cli/jobs_page.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "answers/chart.h"
#include "answers/page.h"
#include "answers/version.h"

namespace laminate::cli {

namespace {

/// Colours of page.css; lines beyond them are dashed.
constexpr size_t colours = 6;

std::string table_html(const Table& table, const std::vector<std::string>& pages) {
    const nlohmann::ordered_json json = table.json();
    const auto side = [&](size_t column) {
        return json["columns"][column]["is_number"].get<bool>() ? " class=\"number\"" : "";
    };
    std::string html = "<figure tabindex=\"0\"><table class=\"jobs\"><thead><tr>";
    for (size_t c = 0; c < json["columns"].size(); ++c)
        html += fmt::format("<th{}>{}</th>", side(c),
                            escaped(json["columns"][c]["title"].get<std::string>()));
    html += "</tr></thead>\n";
    for (const auto& row : json["rows"]) {
        html += "<tr>";
        for (size_t c = 0; c < row.size(); ++c) {
            const auto text = row[c].get<std::string>();
            const bool is_link = c == 0 && std::ranges::find(pages, text) != pages.end();
            html += is_link ? fmt::format("<td><a href=\"{0}/report.html\">{0}</a></td>",
                                          escaped(text))
                            : fmt::format("<td{}>{}</td>", side(c), escaped(text));
        }
        html += "</tr>\n";
    }
    return html + "</table></figure>\n";
}

/// What tells a job from the others of its network.
std::string job_text(const SweepJob& job) {
    std::string text;
    for (const std::string& part :
         {job.memory.empty() ? "" : "within " + job.memory,
          job.machine.empty() ? "" : "on " + job.machine, job.options})
        if (!part.empty()) text += (text.empty() ? "" : ", ") + part;
    return text.empty() ? "without options" : text;
}

/// Accesses against memory, a line of steps for each job: what the job's best schedule within a
/// memory moves. Lines that coincide get thinner, so that each is seen.
std::string chart(const std::vector<const JobCurve*>& curves) {
    constexpr ChartFrame frame{.width = 1240, .height = 380};
    std::vector<double> bytes, accesses;
    for (const JobCurve* curve : curves) {
        for (const JobCurve::Point& point : curve->points) {
            bytes.push_back(static_cast<double>(point.bytes));
            accesses.push_back(static_cast<double>(std::max<int64_t>(point.accesses, 1)));
        }
    }
    const LogAxis x = frame.across(bytes), y = frame.up(accesses);
    std::string lines, keys;
    for (size_t n = 0; n < curves.size(); ++n) {
        std::vector<JobCurve::Point> points = curves[n]->points;
        std::ranges::sort(points, [](const auto& a, const auto& b) {
            return std::pair(a.bytes, a.accesses) < std::pair(b.bytes, b.accesses);
        });
        std::string path;
        int64_t least = INT64_MAX;
        for (const JobCurve::Point& point : points) {
            if (point.accesses >= least) continue;
            least = point.accesses;
            path += fmt::format("{}{:.1f}{}{:.1f}", path.empty() ? "M" : "H",
                                x.at(static_cast<double>(point.bytes)), path.empty() ? " " : "V",
                                y.at(static_cast<double>(std::max<int64_t>(point.accesses, 1))));
        }
        const std::string style =
            fmt::format("series-{}{}", n % colours, n < colours ? "" : " dashed");
        lines += fmt::format(
            "<path class=\"series {}\" style=\"stroke-width:{:.1f}\" d=\"{}H{:.1f}\"><title>{}"
            "</title></path>",
            style, 2 + 2.0 * static_cast<double>(std::min<size_t>(curves.size() - 1 - n, 4)), path,
            frame.width - frame.right, escaped(job_text(curves[n]->job)));
        keys += fmt::format(
            "<span class=\"key\"><svg viewBox=\"0 0 24 8\"><path class=\"series {}\" d=\"M0 "
            "4H24\"/></svg>{}</span>",
            style, escaped(job_text(curves[n]->job)));
    }
    const auto memory = [](double value) { return bytes_text(std::llround(value)); };
    return "<p>" + keys + "</p>\n<figure>" +
           frame.svg("accesses against memory", {x, 1024, memory, "memory held at once"},
                     {y, 10, count_text, "external accesses (elements)"}, lines) +
           "</figure>\n";
}

}  // namespace

std::string jobs_page(const std::string& name, const Table& table,
                      const std::vector<JobCurve>& curves, const std::vector<std::string>& pages) {
    std::string body =
        "<section>\n<h2>Jobs</h2>\n<p class=\"hint\">The schedule of fewest accesses of each job. "
        "A job leads to its own page.</p>\n" +
        table_html(table, pages) + "</section>\n";
    std::vector<std::string> networks;
    for (const JobCurve& curve : curves)
        if (std::ranges::find(networks, curve.job.network) == networks.end())
            networks.push_back(curve.job.network);
    for (const std::string& network : networks) {
        std::vector<const JobCurve*> of;
        for (const JobCurve& curve : curves)
            if (curve.job.network == network && !curve.points.empty()) of.push_back(&curve);
        if (of.empty()) continue;
        body += fmt::format("<section>\n<h2>{}: accesses against memory</h2>\n{}</section>\n",
                            escaped(network), chart(of));
    }
    return plain_page(name + ": jobs of a sweep",
                      fmt::format("{} jobs over {} network{}, compared. Logarithmic axes; counts of "
                                  "one image. laminate {}.",
                                  table.json()["rows"].size(), networks.size(),
                                  networks.size() == 1 ? "" : "s", program_version()),
                      body);
}

}  // namespace laminate::cli
