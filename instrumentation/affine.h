// What the names of a counting statement stand for: affine functions of the loop variables around
// it, or plain numbers where every iteration is executed.
#pragma once

#include <algorithm>
#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>

namespace laminate::counting {

/// constant + sum of coefficient * variable. A variable counts the iterations of a loop in progress
/// from the current one, so it is 0 now and `constant` is the present value.
struct Affine {
    struct Term {
        int32_t variable = 0;  ///< depth of its loop; inner loops have larger ones
        int64_t coefficient = 0;
        friend bool operator==(const Term&, const Term&) = default;
        friend auto operator<=>(const Term&, const Term&) = default;
    };
    static constexpr size_t most_terms = 10;

    int64_t constant = 0;
    size_t size = 0;
    std::array<Term, most_terms> terms;  ///< by variable, ascending

    Affine(int64_t value = 0) : constant(value) {}  // NOLINT: implicit, because a number is a value
    Affine(const Affine& other) : constant(other.constant), size(other.size) {
        std::copy_n(other.terms.begin(), size, terms.begin());
    }
    Affine& operator=(const Affine& other) {
        constant = other.constant;
        size = other.size;
        std::copy_n(other.terms.begin(), size, terms.begin());
        return *this;
    }
    [[nodiscard]] bool is_constant() const { return size == 0; }
    [[nodiscard]] const Term& innermost() const { return terms[size - 1]; }
    [[nodiscard]] bool same_terms(const Affine& other) const {
        return size == other.size &&
               std::equal(terms.begin(), terms.begin() + size, other.terms.begin());
    }
    friend bool operator==(const Affine& a, const Affine& b) {
        return a.constant == b.constant && a.same_terms(b);
    }

    /// this += factor * other. Returns false if there is no room for the terms.
    [[nodiscard]] bool add(const Affine& other, int64_t factor) {
        if (other.size == 0) {
            constant += factor * other.constant;
            return true;
        }
        Affine sum(constant + factor * other.constant);
        size_t i = 0, j = 0;
        while (i < size || j < other.size) {
            Term term;
            const bool left =
                i < size && (j == other.size || terms[i].variable <= other.terms[j].variable);
            const bool right =
                j < other.size && (i == size || other.terms[j].variable <= terms[i].variable);
            if (left) term = terms[i++];
            if (right) {
                const Term& t = other.terms[j++];
                term = {t.variable, term.coefficient + factor * t.coefficient};
            }
            if (term.coefficient == 0) continue;
            if (sum.size == most_terms) return false;
            sum.terms[sum.size++] = term;
        }
        *this = sum;
        return true;
    }
    void scale(int64_t factor) {
        constant *= factor;
        if (factor == 0) size = 0;
        for (size_t n = 0; n < size; ++n) terms[n].coefficient *= factor;
    }
};

/// A value while every iteration is executed: an Affine without terms.
struct Number {
    int64_t constant = 0;

    Number(int64_t value = 0) : constant(value) {}  // NOLINT: implicit, because a number is a value
    [[nodiscard]] static constexpr bool is_constant() { return true; }
    friend bool operator==(const Number&, const Number&) = default;
    void scale(int64_t factor) { constant *= factor; }
};

}  // namespace laminate::counting
