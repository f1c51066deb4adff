#include "base/size_formula.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <utility>

#include "base/error.h"
#include "base/units.h"

namespace laminate {

namespace {

using Atom = SizeFormula::Atom;
using Kind = SizeFormula::Atom::Kind;

constexpr std::array<const char*, size_variables> names{"n", "h", "w", "strip_h", "strip_w"};

bool is_single(const SizeFormula& f) {
    if (f.is_constant()) return f.constant() >= 0;
    if (f.constant() != 0 || f.terms().size() != 1 || f.terms().front().factor != 1) return false;
    const Kind kind = f.terms().front().atom->kind;
    return kind != Kind::quotient && kind != Kind::product;
}
std::string in_brackets(const SizeFormula& f) {
    return is_single(f) ? to_text(f) : "(" + to_text(f) + ")";
}

std::shared_ptr<const Atom> atom_of(Kind kind, const SizeFormula& a, const SizeFormula& b,
                                    int64_t divisor = 1) {
    auto atom = std::make_shared<Atom>(Atom{kind, {}, a, b, divisor, {}});
    switch (kind) {
        case Kind::quotient:
            atom->text = in_brackets(a) + "/" + std::to_string(divisor);
            break;
        case Kind::product:
            atom->text = in_brackets(a) + "*" + in_brackets(b);
            break;
        default:
            atom->text = std::string(kind == Kind::least ? "min" : "max") + "(" + to_text(a) + ", " +
                         to_text(b) + ")";
    }
    return atom;
}

}  // namespace

const char* to_string(SizeVariable variable) { return names[static_cast<size_t>(variable)]; }

std::array<int32_t, size_variables> size_arguments(const SizeValues& size) {
    std::array<int32_t, size_variables> values{};
    for (int n = 0; n < size_variables; ++n)
        values[static_cast<size_t>(n)] =
            static_cast<int32_t>(size[static_cast<SizeVariable>(n)]);
    return values;
}

int64_t SizeValues::operator[](SizeVariable variable) const {
    switch (variable) {
        case SizeVariable::images:
            return images;
        case SizeVariable::rows:
            return rows;
        case SizeVariable::columns:
            return columns;
        case SizeVariable::strip_rows:
            return strip_rows;
        case SizeVariable::strip_columns:
            return strip_columns;
    }
    return 0;
}

SizeFormula::SizeFormula(SizeVariable variable)
    : terms_{{std::make_shared<Atom>(
                  Atom{Kind::variable, variable, {}, {}, 1, to_string(variable)}),
              1}} {}

SizeFormula::SizeFormula(std::shared_ptr<const Atom> atom) : terms_{{std::move(atom), 1}} {}

int64_t SizeFormula::at(const SizeValues& values) const {
    int64_t sum = constant_;
    for (const Term& term : terms_) {
        const Atom& atom = *term.atom;
        int64_t value = 0;
        switch (atom.kind) {
            case Kind::variable:
                value = values[atom.variable];
                break;
            case Kind::quotient:
                value = floor_div(atom.a.at(values), atom.divisor);
                break;
            case Kind::least:
                value = std::min(atom.a.at(values), atom.b.at(values));
                break;
            case Kind::most:
                value = std::max(atom.a.at(values), atom.b.at(values));
                break;
            case Kind::product:
                value = checked_multiply(atom.a.at(values), atom.b.at(values));
                break;
        }
        sum = checked_add(sum, checked_multiply(term.factor, value));
    }
    return sum;
}

void SizeFormula::add(const Term& term) {
    const auto at = std::ranges::lower_bound(terms_, term.atom->text, {},
                                             [](const Term& t) { return t.atom->text; });
    if (at == terms_.end() || at->atom->text != term.atom->text) {
        terms_.insert(at, term);
        return;
    }
    at->factor = checked_add(at->factor, term.factor);
    if (at->factor == 0) terms_.erase(at);
}

SizeFormula operator+(const SizeFormula& a, const SizeFormula& b) {
    SizeFormula sum = a;
    sum.constant_ = checked_add(sum.constant_, b.constant_);
    for (const SizeFormula::Term& term : b.terms_) sum.add(term);
    return sum;
}

SizeFormula operator-(const SizeFormula& a, const SizeFormula& b) { return a + b * -1; }

SizeFormula operator*(const SizeFormula& a, const SizeFormula& b) {
    if (!a.is_constant() && !b.is_constant()) {
        const bool in_order = to_text(a) <= to_text(b);
        return SizeFormula(atom_of(Kind::product, in_order ? a : b, in_order ? b : a));
    }
    const int64_t factor = a.is_constant() ? a.constant_ : b.constant_;
    if (factor == 0) return 0;
    SizeFormula product = a.is_constant() ? b : a;
    product.constant_ = checked_multiply(product.constant_, factor);
    for (SizeFormula::Term& term : product.terms_)
        term.factor = checked_multiply(term.factor, factor);
    return product;
}

SizeFormula operator/(const SizeFormula& a, int64_t divisor) {
    if (divisor == 1) return a;
    // Multiples of the divisor come out of the quotient, and a quotient of a quotient is one.
    SizeFormula whole, rest;
    whole.constant_ = floor_div(a.constant_, divisor);
    rest.constant_ = a.constant_ - whole.constant_ * divisor;
    for (const SizeFormula::Term& term : a.terms_) {
        const int64_t out = floor_div(term.factor, divisor);
        if (out != 0) whole.add({term.atom, out});
        if (term.factor != out * divisor) rest.add({term.atom, term.factor - out * divisor});
    }
    if (rest.is_constant()) return whole;
    if (rest.terms_.size() == 1 && rest.terms_.front().factor == 1 &&
        rest.terms_.front().atom->kind == Kind::quotient) {
        const Atom& inner = *rest.terms_.front().atom;
        const SizeFormula dividend = inner.a + checked_multiply(rest.constant_, inner.divisor);
        return whole + dividend / checked_multiply(inner.divisor, divisor);
    }
    return whole + SizeFormula(atom_of(Kind::quotient, rest, 0, divisor));
}

namespace {

/// Where they differ by a constant: which of the two is the smaller one.
bool is_known_smaller(const SizeFormula& a, const SizeFormula& b) {
    const SizeFormula difference = b - a;
    return difference.is_constant() && difference.constant() >= 0;
}

}  // namespace

SizeFormula least(const SizeFormula& a, const SizeFormula& b) {
    if (is_known_smaller(a, b)) return a;
    return is_known_smaller(b, a) ? b : SizeFormula(atom_of(Kind::least, a, b));
}

SizeFormula most(const SizeFormula& a, const SizeFormula& b) {
    if (is_known_smaller(a, b)) return b;
    return is_known_smaller(b, a) ? a : SizeFormula(atom_of(Kind::most, a, b));
}

bool operator==(const SizeFormula& a, const SizeFormula& b) {
    return a.constant_ == b.constant_ && std::ranges::equal(a.terms_, b.terms_, [](auto& s, auto& t) {
               return s.factor == t.factor && s.atom->text == t.atom->text;
           });
}

SizeFormula ceil_div(const SizeFormula& a, int64_t divisor) { return (a + (divisor - 1)) / divisor; }
SizeFormula round_up(const SizeFormula& a, int64_t step) { return ceil_div(a, step) * step; }

std::string to_text(const SizeFormula& formula) {
    std::string text;
    for (const SizeFormula::Term& term : formula.terms()) {
        const int64_t factor = term.factor;
        if (!text.empty()) text += factor < 0 ? " - " : " + ";
        if (text.empty() && factor < 0) text += "-";
        if (factor != 1 && factor != -1) text += std::to_string(std::abs(factor)) + "*";
        const bool needs_brackets = factor != 1 && factor != -1 &&
                                    (term.atom->kind == Kind::quotient ||
                                     term.atom->kind == Kind::product);
        text += needs_brackets ? "(" + term.atom->text + ")" : term.atom->text;
    }
    const int64_t constant = formula.constant();
    if (text.empty()) return std::to_string(constant);
    if (constant != 0)
        text += (constant < 0 ? " - " : " + ") + std::to_string(std::abs(constant));
    return text;
}

namespace {

/// Recursive descent over  sum = [-] product {(+|-) product},  product = factor {* factor | / number}.
class Parser {
public:
    Parser(const std::string& text, const std::string& where) : text_(text), where_(where) {}

    SizeFormula whole() {
        SizeFormula all = sum();
        if (at_ != text_.size()) fail("the end");
        return all;
    }

private:
    [[noreturn]] void fail(const std::string& expected) const {
        throw InputError(where_ + ": formula \"" + text_ + "\", column " + std::to_string(at_ + 1) +
                         ": expected " + expected);
    }
    bool takes(char c) {
        while (at_ < text_.size() && text_[at_] == ' ') ++at_;
        if (at_ >= text_.size() || text_[at_] != c) return false;
        ++at_;
        return true;
    }
    SizeFormula sum() {
        SizeFormula all = takes('-') ? product() * -1 : product();
        for (;;) {
            if (takes('+')) {
                all = all + product();
            } else if (takes('-')) {
                all = all - product();
            } else {
                return all;
            }
        }
    }
    SizeFormula product() {
        SizeFormula all = factor();
        for (;;) {
            if (takes('*')) {
                all = all * factor();
            } else if (takes('/')) {
                const SizeFormula divisor = factor();
                if (!divisor.is_constant() || divisor.constant() < 1) fail("a number from 1 on");
                all = all / divisor.constant();
            } else {
                return all;
            }
        }
    }
    SizeFormula factor() {
        // Formulas come from files; one that nests deeper than any real one would end the program.
        constexpr int deepest = 200;
        if (++depth_ > deepest) fail("less nesting");
        SizeFormula value = unnested_factor();
        --depth_;
        return value;
    }
    SizeFormula unnested_factor() {
        if (takes('(')) {
            SizeFormula inside = sum();
            if (!takes(')')) fail(")");
            return inside;
        }
        const size_t begin = at_;
        const auto is_of_word = [&](size_t n) {
            return std::isalnum(static_cast<unsigned char>(text_[n])) != 0 || text_[n] == '_';
        };
        while (at_ < text_.size() && is_of_word(at_)) ++at_;
        const std::string word = text_.substr(begin, at_ - begin);
        int64_t number = 0;
        const char* end = word.data() + word.size();
        if (const auto [last, error] = std::from_chars(word.data(), end, number);
            !word.empty() && error == std::errc() && last == end)
            return number;
        if (word == "min" || word == "max") {
            if (!takes('(')) fail("(");
            const SizeFormula a = sum();
            if (!takes(',')) fail(",");
            const SizeFormula b = sum();
            if (!takes(')')) fail(")");
            return word == "min" ? least(a, b) : most(a, b);
        }
        for (size_t n = 0; n < names.size(); ++n) {
            if (word == names[n]) return static_cast<SizeVariable>(n);
        }
        at_ = begin;
        fail("a number, n, h, w, strip_h, strip_w, min, max or (");
    }

    const std::string& text_;
    const std::string& where_;
    size_t at_ = 0;
    int depth_ = 0;
};

}  // namespace

SizeFormula parse_size_formula(const std::string& text, const std::string& where) {
    return Parser(text, where).whole();
}

}  // namespace laminate
