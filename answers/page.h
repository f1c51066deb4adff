// Parts that all HTML pages share. Each page is one self-contained file in one style
// (answers/page/page.css): light or dark like the reader's system, readable on a phone, and printed
// without colours.
#pragma once

#include <string>
#include <vector>

namespace laminate::cli {

/// Text escaped for HTML, also inside attributes.
[[nodiscard]] std::string escaped(const std::string& text);

/// A page without scripts: a heading, one line about it, and `body` as HTML.
[[nodiscard]] std::string plain_page(const std::string& title, const std::string& about,
                                     const std::string& body);

/// A number with its name, for the summary at the top.
struct Card {
    std::string name;
    std::string value;
};
[[nodiscard]] std::string cards_html(const std::vector<Card>& cards);

}  // namespace laminate::cli
