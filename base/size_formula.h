// Numbers that depend on the size of a picture: extents of tensors, distances between rows, bytes of
// scratch. A compiled network of any size has its code and its manifest written in them.
//
//   const SizeFormula h = SizeVariable::rows;
//   const SizeFormula half = (h + 1) / 2;                 // rounded down
//   half.at({.rows = 9})                                  // 5
//   to_text(half * 2 + 3)                                 // "2*((h + 1)/2) + 3"
//   parse_size_formula("2*((h + 1)/2) + 3", "manifest")   // the same formula
//
// A formula is a sum of multiples of atoms and of a constant; an atom is a variable, a quotient, a
// minimum, a maximum or a product. Sums are kept in one form, so h + 2 - 2 is h, and formulas that
// print alike are equal.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace laminate {

enum class SizeVariable {
    images,         ///< n: of a batch
    rows,           ///< h: of the network's inputs
    columns,        ///< w: of the network's inputs
    strip_rows,     ///< strip_h: rows of a group's output that a strip has, but the last
    strip_columns,  ///< strip_w: likewise columns
};
inline constexpr int size_variables = 5;
/// "n", "h", "w", "strip_h", "strip_w".
[[nodiscard]] const char* to_string(SizeVariable variable);

struct SizeValues {
    int64_t images = 1;
    int64_t rows = 1;
    int64_t columns = 1;
    int64_t strip_rows = 1;
    int64_t strip_columns = 1;
    [[nodiscard]] int64_t operator[](SizeVariable variable) const;
    friend bool operator==(const SizeValues&, const SizeValues&) = default;
};

/// The variables in their order, as code of any size reads them behind its inputs.
[[nodiscard]] std::array<int32_t, size_variables> size_arguments(const SizeValues& size);

class SizeFormula {
public:
    struct Atom;
    struct Term {
        std::shared_ptr<const Atom> atom;
        int64_t factor = 0;
    };

    // Numbers and variables are formulas.
    SizeFormula(int64_t value = 0) : constant_(value) {}  // NOLINT(google-explicit-constructor)
    SizeFormula(SizeVariable variable);                   // NOLINT(google-explicit-constructor)

    [[nodiscard]] bool is_constant() const { return terms_.empty(); }
    [[nodiscard]] int64_t constant() const { return constant_; }
    /// Sorted by the text of their atoms.
    [[nodiscard]] const std::vector<Term>& terms() const { return terms_; }
    /// Throws std::overflow_error where the value does not fit 64 bits.
    [[nodiscard]] int64_t at(const SizeValues& values) const;

    friend SizeFormula operator+(const SizeFormula& a, const SizeFormula& b);
    friend SizeFormula operator-(const SizeFormula& a, const SizeFormula& b);
    friend SizeFormula operator*(const SizeFormula& a, const SizeFormula& b);
    /// Rounded down; the divisor is 1 or more.
    friend SizeFormula operator/(const SizeFormula& a, int64_t divisor);
    friend SizeFormula least(const SizeFormula& a, const SizeFormula& b);
    friend SizeFormula most(const SizeFormula& a, const SizeFormula& b);
    friend bool operator==(const SizeFormula& a, const SizeFormula& b);

private:
    explicit SizeFormula(std::shared_ptr<const Atom> atom);
    void add(const Term& term);

    int64_t constant_ = 0;
    std::vector<Term> terms_;
};

struct SizeFormula::Atom {
    enum class Kind { variable, quotient, least, most, product };
    Kind kind = Kind::variable;
    SizeVariable variable = SizeVariable::images;
    SizeFormula a, b;  ///< the dividend, or the operands
    int64_t divisor = 1;
    std::string text;
};

/// a / divisor rounded up, and the least multiple of `step` that is not below a.
[[nodiscard]] SizeFormula ceil_div(const SizeFormula& a, int64_t divisor);
[[nodiscard]] SizeFormula round_up(const SizeFormula& a, int64_t step);

[[nodiscard]] std::string to_text(const SizeFormula& formula);
/// Throws InputError "WHERE: ...".
[[nodiscard]] SizeFormula parse_size_formula(const std::string& text, const std::string& where);

}  // namespace laminate
