// The text form of a schedule.
#include <algorithm>
#include <cctype>
#include <set>

#include "base/error.h"
#include "scheduler/schedule/schedule.h"

namespace laminate {

namespace {

constexpr std::array<char, 3> band_letters{'s', 'o', 'i'};

std::optional<Loop> loop_from_text(const std::string& text) {
    if (text.size() != 2) return std::nullopt;
    const auto* d = std::find(dim_letters.begin(), dim_letters.end(), text[0]);
    const auto* b = std::find(band_letters.begin(), band_letters.end(), text[1]);
    if (d == dim_letters.end() || b == band_letters.end()) return std::nullopt;
    return Loop{static_cast<Dim>(d - dim_letters.begin()),
                static_cast<Band>(b - band_letters.begin())};
}

}  // namespace

// ---- text

std::string to_text(Loop loop) {
    return {letter_of(loop.dim), band_letters[static_cast<size_t>(loop.band)]};
}

std::string level_text(const GroupSchedule& group, int nest, Level level) {
    if (level.is_root()) return "root";
    const Nest& owner = group.nests.at(static_cast<size_t>(level.nest));
    const std::string loop = to_text(owner.loops.at(static_cast<size_t>(level.loop)));
    return level.nest == nest ? loop : owner.layer + "." + loop;
}

std::string to_text(const GroupSchedule& group) {
    std::string text = "{";
    for (int k = 0; k <= group.sink(); ++k) {
        const Nest& nest = group.nests[static_cast<size_t>(k)];
        const auto placement = [&](const std::string& array, const Placement& p) {
            return "; " + array + " " + level_text(group, k, p.store) + "/" +
                   level_text(group, k, p.compute);
        };
        text += (k == 0 ? "" : " & ") + nest.layer + ":";
        Band band = nest.loops.empty() ? Band::outer : nest.loops.front().band;
        for (const Loop& loop : nest.loops) {
            if (loop.band != band) text += band == Band::strip ? " ||" : " |";
            band = loop.band;
            text += " " + to_text(loop);
        }
        text += " n m;";
        if (nest.strip[0] != 0 || nest.strip[1] != 0) {
            text += " strip";
            for (size_t axis = 0; axis < 2; ++axis) {
                if (nest.strip[axis] != 0)
                    text += std::string(" ") + letter_of(axis == 0 ? Dim::y : Dim::x) +
                            std::to_string(nest.strip[axis]);
            }
            text += ";";
        }
        text += " tile";
        for (const Dim d : all_dims)
            text += std::string(" ") + letter_of(d) + std::to_string(nest[d]);
        for (const InputPlacement& x : nest.x) {
            // Only the network tells which operands are external, so a lone operand 0 is printed
            // without its number.
            text += placement(
                x.operand == 0 && nest.x.size() == 1 ? "X" : "X" + std::to_string(x.operand),
                x.placement);
        }
        if (nest.w) text += placement("W", *nest.w);
        text += placement("Y", nest.y);
        if (nest.kernel.is_chosen()) text += "; kernel " + to_text(nest.kernel);
    }
    return text + "}";
}

std::string to_text(const Schedule& schedule) {
    std::string text;
    for (const GroupSchedule& group : schedule.groups())
        text += (text.empty() ? "" : " ") + to_text(group);
    return text;
}

namespace {

/// Reads the text form. Levels stay text until every nest of the group is known.
class Parser {
public:
    explicit Parser(const std::string& text) : text_(text) {}

    bool at_end() {
        skip_space();
        return at_ >= text_.size();
    }

    GroupSchedule group() {
        expect("{");
        std::vector<std::vector<PendingLevel>> pending;
        GroupSchedule group;
        do {
            pending.emplace_back();
            group.nests.push_back(nest(pending.back()));
        } while (accept("&"));
        expect("}");
        for (size_t k = 0; k < group.nests.size(); ++k) {
            Nest& nest = group.nests[k];
            for (const PendingLevel& level : pending[k]) {
                Placement& placement = level.array == 'X'   ? nest.x[level.index].placement
                                       : level.array == 'W' ? *nest.w
                                                            : nest.y;
                (level.is_store ? placement.store : placement.compute) =
                    resolve(group, static_cast<int>(k), level);
            }
        }
        return group;
    }

    [[noreturn]] void fail(const std::string& expected) {
        skip_space();
        std::string found = at_ < text_.size() ? "\"" + text_.substr(at_, 12) + "\"" : "the end";
        for (char& c : found) {
            if (static_cast<unsigned char>(c) < ' ') c = ' ';  // a message is one line
        }
        fail_at(at_, "found " + found + ", expected " + expected);
    }

private:
    struct PendingLevel {
        char array;
        size_t index;  ///< of Nest::x
        bool is_store;
        std::string text;
        size_t column;
    };

    [[noreturn]] static void fail_at(size_t column, const std::string& what) {
        throw InputError("schedule text, column " + std::to_string(column + 1) + ": " + what);
    }

    void skip_space() {
        while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0)
            ++at_;
    }

    bool accept(const std::string& token) {
        skip_space();
        if (text_.compare(at_, token.size(), token) != 0) return false;
        at_ += token.size();
        return true;
    }

    void expect(const std::string& token) {
        if (!accept(token)) fail("\"" + token + "\"");
    }

    std::string word(const std::string& expected) {
        skip_space();
        const size_t begin = at_;
        while (at_ < text_.size() &&
               (std::isalnum(static_cast<unsigned char>(text_[at_])) != 0 || text_[at_] == '_'))
            ++at_;
        if (begin == at_) fail(expected);
        return text_.substr(begin, at_ - begin);
    }

    /// The number of a token like "z4".
    int64_t number_after_letter(const std::string& token, size_t column) {
        int64_t value = 0;
        if (token.size() < 2 || token.size() > 16)
            fail_at(column, "found \"" + token + "\", expected a letter and a number, like y4");
        for (size_t c = 1; c < token.size(); ++c) {
            if (std::isdigit(static_cast<unsigned char>(token[c])) == 0) {
                fail_at(column, "found \"" + token + "\", expected a letter and a number, like y4");
            }
            value = value * 10 + (token[c] - '0');
        }
        return value;
    }

    Nest nest(std::vector<PendingLevel>& pending) {
        Nest nest;
        nest.layer = word("a layer name");
        expect(":");
        while (!accept(";")) {
            if (accept("|"))
                continue;  // separators are for the reader; the loop names carry their band
            skip_space();
            const size_t column = at_;
            const std::string name = word("a loop (zo yo xo io zi yi xi ii ys xs n m)");
            if (name == "n" || name == "m") continue;
            const std::optional<Loop> loop = loop_from_text(name);
            if (!loop)
                fail_at(column, "found \"" + name +
                                    "\", expected a loop (zo yo xo io zi yi xi ii ys xs n m)");
            nest.loops.push_back(*loop);
        }
        std::set<std::string> seen;
        do {
            skip_space();
            const size_t column = at_;
            const std::string key = word("strip, tile, X, W, Y or kernel");
            if (!seen.insert(key).second) fail_at(column, "\"" + key + "\" is given twice");
            if (key == "tile" || key == "strip") {
                sizes(nest, key);
            } else if (key == "kernel") {
                nest.kernel = kernel();
            } else if (key == "W" || key == "Y" || is_input_key(key)) {
                if (key == "W") nest.w = Placement{};
                if (key[0] == 'X')
                    nest.x.push_back(
                        {key.size() == 1 ? 0 : static_cast<int>(number_after_letter(key, column)),
                         {}});
                for (const bool is_store : {true, false}) {
                    if (!is_store) expect("/");
                    skip_space();
                    const size_t level_column = at_;
                    std::string level = word("a level (root, yi, conv2.yo)");
                    if (accept(".")) level += "." + word("a loop");
                    pending.push_back({key[0], nest.x.empty() ? 0 : nest.x.size() - 1, is_store,
                                       level, level_column});
                }
            } else {
                fail_at(column, "found \"" + key + "\", expected strip, tile, X, W, Y or kernel");
            }
        } while (accept(";"));
        for (const char* key : {"tile", "Y"}) {
            if (seen.count(key) == 0) fail(std::string(key) + " of layer " + nest.layer);
        }
        return nest;
    }

    /// Whether a list of sizes is over.
    bool at_end_of_item() {
        skip_space();
        return at_ >= text_.size() || text_[at_] == ';' || text_[at_] == '&' || text_[at_] == '}';
    }

    /// "z4 y18 x18 i3" of a tile, "y270 x480" of a strip.
    void sizes(Nest& nest, const std::string& key) {
        const bool is_tile = key == "tile";
        const size_t column = at_;
        std::set<char> letters;
        while (!at_end_of_item()) {
            const size_t token_column = at_;
            const std::string token = word("a size like y4");
            const auto* d = std::find(dim_letters.begin(), dim_letters.end(), token[0]);
            const auto dim = static_cast<Dim>(d - dim_letters.begin());
            if (d == dim_letters.end() || (!is_tile && dim != Dim::y && dim != Dim::x) ||
                !letters.insert(token[0]).second) {
                fail_at(token_column, "found \"" + token + "\", expected each of " +
                                          (is_tile ? "z y x i" : "y x") +
                                          " at most once with its size");
            }
            (is_tile ? nest.tile[dim] : nest.strip[static_cast<size_t>(dim) - 1]) =
                number_after_letter(token, token_column);
        }
        if (is_tile && letters.size() != all_dims.size())
            fail_at(column, "expected tile sizes of z, y, x and i");
    }

    /// "rows z4 y2 x3 v16": the name of a row of the table and its sizes.
    Kernel kernel() {
        skip_space();
        const size_t column = at_;
        const std::string name = word("a kernel (" + kernel_names() + ")");
        const auto& table = kernel_table();
        const auto found = std::find_if(table.begin(), table.end(),
                                        [&](const KernelRow* r) { return r->name == name; });
        if (found == table.end())
            fail_at(column, "found kernel \"" + name + "\", expected one of " + kernel_names());
        const KernelRow& row = **found;
        std::string legal;
        for (const KernelSize size : row.sizes)
            legal += (legal.empty() ? "" : " ") + std::string(1, letter_of(size));
        Kernel kernel{row.kind, {}};
        std::set<char> letters;
        while (!at_end_of_item()) {
            const size_t token_column = at_;
            const std::string token = word("a size like z4");
            const auto size = std::find_if(row.sizes.begin(), row.sizes.end(),
                                           [&](KernelSize s) { return letter_of(s) == token[0]; });
            if (size == row.sizes.end() || !letters.insert(token[0]).second) {
                fail_at(token_column, "found \"" + token + "\", expected " +
                                          (legal.empty() ? "no sizes"
                                                         : "each of " + legal +
                                                               " at most once "
                                                               "with its number"));
            }
            kernel.size[*size] = number_after_letter(token, token_column);
        }
        for (const KernelSize size : row.sizes) {
            if (!is_switch(size) && letters.count(letter_of(size)) == 0)
                fail_at(column, "kernel " + name + " without " + letter_of(size) + "; expected " +
                                    legal + ", each with its number");
        }
        return kernel;
    }

    /// X, X0, X1, ...
    static bool is_input_key(const std::string& key) {
        return key[0] == 'X' && key.size() <= 5 &&
               std::all_of(key.begin() + 1, key.end(), [](char c) { return c >= '0' && c <= '9'; });
    }

    static Level resolve(const GroupSchedule& group, int nest, const PendingLevel& pending) {
        const size_t dot = pending.text.find('.');
        if (dot == std::string::npos && pending.text == "root") return Level{};
        int owner = nest;
        if (dot != std::string::npos) {
            const std::string layer = pending.text.substr(0, dot);
            const auto it = std::find_if(group.nests.begin(), group.nests.end(),
                                         [&](const Nest& n) { return n.layer == layer; });
            if (it == group.nests.end())
                fail_at(pending.column,
                        "level " + pending.text + " names a layer outside the group");
            owner = static_cast<int>(it - group.nests.begin());
        }
        const std::string name =
            dot == std::string::npos ? pending.text : pending.text.substr(dot + 1);
        const std::optional<Loop> loop = loop_from_text(name);
        const int index = loop ? group.nests[static_cast<size_t>(owner)].find(*loop) : -1;
        if (index < 0) {
            fail_at(pending.column, "found level \"" + pending.text +
                                        "\", expected root or a loop of " +
                                        group.nests[static_cast<size_t>(owner)].layer);
        }
        return Level{owner, index};
    }

    const std::string& text_;
    size_t at_ = 0;
};

}  // namespace

GroupSchedule parse_group(const Network& network, const std::string& text) {
    Parser parser(text);
    GroupSchedule group = parser.group();
    if (!parser.at_end()) parser.fail("the end");
    check_group(network, group);
    return group;
}

Schedule parse_schedule(const Network& network, const std::string& text) {
    Parser parser(text);
    std::vector<GroupSchedule> groups;
    while (!parser.at_end()) groups.push_back(parser.group());
    return {network, std::move(groups)};
}

}  // namespace laminate
