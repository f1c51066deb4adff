// Large arrays in pages of 2 MiB, where the system has them (Linux's madvise): the first touch of
// 100 MB of weights then takes 50 faults instead of 25,000, and the processor finds their addresses
// sooner.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>

namespace laminate {

inline constexpr size_t huge_page_bytes = size_t{2} << 20;

/// Asks for such pages for an array just allocated. Small arrays stay as they are.
inline void prefer_huge_pages(void* array, size_t bytes) {
    constexpr uintptr_t page = huge_page_bytes;
    if (bytes < 2 * page) return;
    const auto begin = reinterpret_cast<uintptr_t>(array);
    const uintptr_t first = (begin + page - 1) / page * page;
    const uintptr_t last = (begin + bytes) / page * page;
    // The call is advice, and nothing changes where it is not taken.
    if (first < last) (void)::madvise(reinterpret_cast<void*>(first), last - first, MADV_HUGEPAGE);
}

/// An array that begins with such a page if it is as large as one, so that only what is left behind the
/// last whole page lies in small ones. None if the system has no memory for it; the caller frees it.
[[nodiscard]] inline void* allocate_on_huge_pages(size_t alignment, size_t bytes) {
    const bool is_large = bytes >= huge_page_bytes;
    void* array = nullptr;
    if (::posix_memalign(&array, is_large ? huge_page_bytes : alignment, bytes) != 0) return nullptr;
    if (is_large)
        (void)::madvise(array, bytes / huge_page_bytes * huge_page_bytes, MADV_HUGEPAGE);
    return array;
}

}  // namespace laminate
