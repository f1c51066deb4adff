// What the HTML pages share: each is one file that needs nothing else, in one style
// (answers/page/page.css), light or dark as the reader's system is, readable on a phone and printed
// without colours.
#pragma once

#include <string>
#include <vector>

namespace laminate::cli {

/// For text and attributes of HTML.
[[nodiscard]] std::string escaped(const std::string& text);

/// A page without scripts: heading and one line about it, then `body`, HTML.
[[nodiscard]] std::string plain_page(const std::string& title, const std::string& about,
                                     const std::string& body);

/// A number with its name, for the summary that comes first.
struct Card {
    std::string name;
    std::string value;
};
[[nodiscard]] std::string cards_html(const std::vector<Card>& cards);

}  // namespace laminate::cli
