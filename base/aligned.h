// Arrays of floats with the alignment that generated code expects of constants and scratch: 64
// bytes, the size of a cache line and of an AVX-512 vector.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <memory>
#include <new>
#include <vector>

#include "base/huge_pages.h"

namespace laminate {

class AlignedFloats {
public:
    static constexpr size_t alignment_bytes = 64;

    /// Every element starts as `fill`.
    explicit AlignedFloats(size_t size, float fill = 0.0F) : memory_(allocated(size)), size_(size) {
        std::fill_n(memory_.get(), size, fill);
    }
    explicit AlignedFloats(const std::vector<float>& values)
        : memory_(allocated(values.size())), size_(values.size()) {
        std::copy(values.begin(), values.end(), memory_.get());
    }
    /// The caller writes every element.
    [[nodiscard]] static AlignedFloats uninitialized(size_t size) {
        return AlignedFloats(allocated(size), size);
    }
    [[nodiscard]] float* data() { return memory_.get(); }
    [[nodiscard]] const float* data() const { return memory_.get(); }
    [[nodiscard]] size_t size() const { return size_; }

private:
    AlignedFloats(float* memory, size_t size) : memory_(memory), size_(size) {}

    struct Free {
        void operator()(float* memory) const { std::free(memory); }
    };
    static float* allocated(size_t size) {
        const size_t bytes = (std::max<size_t>(size, 1) * sizeof(float) + alignment_bytes - 1) /
                             alignment_bytes * alignment_bytes;
        void* memory = allocate_on_huge_pages(alignment_bytes, bytes);
        if (memory == nullptr) throw std::bad_alloc();
        return static_cast<float*>(memory);
    }

    std::unique_ptr<float, Free> memory_;
    size_t size_ = 0;
};

}  // namespace laminate
