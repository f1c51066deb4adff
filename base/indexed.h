// Containers whose subscript is what their elements belong to: an enumerator, or the number of a
// layer, tensor or nest. The type of the subscript says what a container is indexed by, and no
// caller converts it.
//
//   PerEnum<int64_t, Dim, 4> tile{1, 1, 1, 1};  tile[Dim::y] = 18;
//   IndexVector<bool, TensorId> is_read(network.tensors.size());  is_read[layer.output] = true;
#pragma once

#include <array>
#include <compare>
#include <concepts>
#include <cstddef>
#include <utility>
#include <vector>

namespace laminate {

/// One T for each of the enumerators 0, 1, ..., count - 1 of Enum. An aggregate, written {a, b, c}.
template <class T, class Enum, size_t count>
struct PerEnum {
    std::array<T, count> values{};

    [[nodiscard]] constexpr T& operator[](Enum at) { return values[static_cast<size_t>(at)]; }
    [[nodiscard]] constexpr const T& operator[](Enum at) const {
        return values[static_cast<size_t>(at)];
    }
    [[nodiscard]] static constexpr size_t size() { return count; }
    [[nodiscard]] constexpr auto begin() { return values.begin(); }
    [[nodiscard]] constexpr auto end() { return values.end(); }
    [[nodiscard]] constexpr auto begin() const { return values.begin(); }
    [[nodiscard]] constexpr auto end() const { return values.end(); }
    friend constexpr auto operator<=>(const PerEnum&, const PerEnum&) = default;
};

/// A vector whose subscript is an Index: an enumerator, or an integer that numbers things.
template <class T, class Index>
class IndexVector {
public:
    IndexVector() = default;
    explicit IndexVector(std::integral auto size, const T& value = T())
        : values_(static_cast<size_t>(size), value) {}
    explicit IndexVector(std::vector<T> values) : values_(std::move(values)) {}

    [[nodiscard]] decltype(auto) operator[](Index at) { return values_[static_cast<size_t>(at)]; }
    [[nodiscard]] decltype(auto) operator[](Index at) const {
        return values_[static_cast<size_t>(at)];
    }
    /// Checked access, which throws std::out_of_range.
    [[nodiscard]] decltype(auto) at(Index at) { return values_.at(static_cast<size_t>(at)); }
    [[nodiscard]] decltype(auto) at(Index at) const { return values_.at(static_cast<size_t>(at)); }

    /// Appends a value and returns its index.
    Index push_back(T value) {
        values_.push_back(std::move(value));
        return static_cast<Index>(values_.size() - 1);
    }
    T& emplace_back() { return values_.emplace_back(); }
    void pop_back() { values_.pop_back(); }
    void resize(std::integral auto size, const T& value = T()) {
        values_.resize(static_cast<size_t>(size), value);
    }
    [[nodiscard]] decltype(auto) back() { return values_.back(); }
    [[nodiscard]] decltype(auto) back() const { return values_.back(); }
    [[nodiscard]] size_t size() const { return values_.size(); }
    [[nodiscard]] bool empty() const { return values_.empty(); }
    [[nodiscard]] const std::vector<T>& values() const { return values_; }
    [[nodiscard]] auto begin() { return values_.begin(); }
    [[nodiscard]] auto end() { return values_.end(); }
    [[nodiscard]] auto begin() const { return values_.begin(); }
    [[nodiscard]] auto end() const { return values_.end(); }
    friend auto operator<=>(const IndexVector&, const IndexVector&) = default;

private:
    std::vector<T> values_;
};

}  // namespace laminate
