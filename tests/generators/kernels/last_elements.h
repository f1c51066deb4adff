// An array behind which, or before which, nothing can be read.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <new>
#include <vector>

namespace laminate {

/// Memory that ends where no page follows, or begins where none is before: whoever reads on gets a
/// signal.
class LastElements {
public:
    enum class Edge { end, begin };
    explicit LastElements(const std::vector<float>& values, Edge edge = Edge::end) {
        constexpr size_t page = 4096;
        const size_t bytes = values.size() * sizeof(float);
        size_ = (bytes + page - 1) / page * page + page;
        memory_ = static_cast<char*>(
            mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
        char* closed = edge == Edge::end ? memory_ + size_ - page : memory_;
        if (memory_ == MAP_FAILED || mprotect(closed, page, PROT_NONE) != 0) throw std::bad_alloc();
        first_ = reinterpret_cast<float*>(edge == Edge::end ? closed - bytes : closed + page);
        std::copy(values.begin(), values.end(), first_);
    }
    LastElements(const LastElements&) = delete;
    LastElements& operator=(const LastElements&) = delete;
    ~LastElements() { munmap(memory_, size_); }
    [[nodiscard]] const float* data() const { return first_; }

private:
    char* memory_ = nullptr;
    size_t size_ = 0;
    float* first_ = nullptr;
};

}  // namespace laminate
