// A separate source, so that no call is inlined and each new keeps its own delete.
#include "tests/runtime/allocations.h"

#include <atomic>
#include <cstdlib>
#include <new>

#include "tests/support/sanitized.h"

namespace {
std::atomic<int64_t> allocations{0};
}  // namespace

#if !LAMINATE_SANITIZED
void* operator new(std::size_t size) {
    ++allocations;
    if (void* memory = std::malloc(size ? size : 1)) return memory;
    throw std::bad_alloc();
}
// Every form that the library does not build on another one is replaced, or memory would reach the
// wrong delete.
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
    ++allocations;
    return std::malloc(size ? size : 1);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
#endif

namespace laminate {

const bool allocations_are_counted =
    !test::is_sanitized;  // a sanitizer's own operators count nothing

int64_t allocation_count() { return allocations; }

}  // namespace laminate
