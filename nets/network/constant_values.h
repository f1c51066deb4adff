// The numbers of a constant, made on first read if need be. Most questions about a network (shapes,
// costs, schedules) never read a weight, and making the seeded weights of a large network takes
// seconds.
#pragma once

#include <cstddef>
#include <functional>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace laminate {

/// Reads like a `const std::vector<float>`. Copies share the numbers; reading from several threads
/// is safe.
class ConstantValues {
public:
    ConstantValues() : ConstantValues(std::vector<float>{}) {}
    ConstantValues(std::vector<float> values)  // NOLINT(google-explicit-constructor): so that
                                               // Constant{dims, values} works
        : count_(values.size()), made_(std::make_shared<Made>(std::move(values))) {}
    ConstantValues(std::initializer_list<float> values)
        : ConstantValues(std::vector<float>(values)) {}
    /// `make` returns `count` numbers. It is called at most once, when a number is first read.
    ConstantValues(size_t count, std::function<std::vector<float>()> make)
        : count_(count), made_(std::make_shared<Made>(std::move(make))) {}

    [[nodiscard]] size_t size() const { return count_; }
    [[nodiscard]] bool empty() const { return count_ == 0; }

    [[nodiscard]] const std::vector<float>& all() const { return made_->get(); }
    operator const std::vector<float>&() const {
        return all();
    }  // NOLINT(google-explicit-constructor)
    [[nodiscard]] const float& operator[](size_t n) const { return all()[n]; }
    [[nodiscard]] const float* data() const { return all().data(); }
    using const_iterator = std::vector<float>::const_iterator;
    [[nodiscard]] const_iterator begin() const { return all().begin(); }
    [[nodiscard]] const_iterator end() const { return all().end(); }

    friend bool operator==(const ConstantValues& a, const ConstantValues& b) {
        return a.all() == b.all();
    }
    friend bool operator==(const ConstantValues& a, const std::vector<float>& b) {
        return a.all() == b;
    }

private:
    class Made {
    public:
        explicit Made(std::vector<float> values) : values_(std::move(values)) {}
        explicit Made(std::function<std::vector<float>()> make) : make_(std::move(make)) {}
        const std::vector<float>& get() {
            std::call_once(once_, [this] {
                if (!make_) return;
                values_ = make_();
                make_ = nullptr;
            });
            return values_;
        }

    private:
        std::once_flag once_;
        std::function<std::vector<float>()> make_;
        std::vector<float> values_;
    };

    size_t count_;
    std::shared_ptr<Made> made_;
};

}  // namespace laminate
