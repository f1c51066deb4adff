#include "answers/page.h"

#include <fmt/core.h>

#include "answers/report_page.h"

namespace laminate::cli {

std::string escaped(const std::string& text) {
    std::string html;
    for (const char c : text) {
        switch (c) {
            case '&':
                html += "&amp;";
                break;
            case '<':
                html += "&lt;";
                break;
            case '>':
                html += "&gt;";
                break;
            case '"':
                html += "&quot;";
                break;
            default:
                html += c;
        }
    }
    return html;
}

std::string plain_page(const std::string& title, const std::string& about,
                       const std::string& body) {
    return fmt::format(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta "
        "name=\"viewport\" "
        "content=\"width=device-width, initial-scale=1\">\n"
        "<title>{0}</title>\n<link rel=\"icon\" "
        "href=\"data:,\">\n<style>\n{1}\n</style>\n</head>\n<body>\n<header>\n<h1>{0}</"
        "h1>\n<p>{2}</p>\n</header>\n"
        "<main>\n{3}</main>\n</body>\n</html>\n",
        escaped(title), report_css, escaped(about), body);
}

std::string cards_html(const std::vector<Card>& cards) {
    std::string html = "<div class=\"row\">";
    for (const Card& card : cards)
        html += fmt::format("<div class=\"card\"><span class=\"unit\">{}</span><b>{}</b></div>",
                            escaped(card.name), escaped(card.value));
    return html + "</div>\n";
}

}  // namespace laminate::cli
