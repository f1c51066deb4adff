// The program's own operator new, whose large arrays lie in huge pages. Weights are read, packed and
// laid out once each, so most of a warm start was page faults.
#include <cstdlib>
#include <new>

#include "base/huge_pages.h"

// A sanitizer has an operator new of its own.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define LAMINATE_IS_SANITIZED
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define LAMINATE_IS_SANITIZED
#endif
#endif

#if !defined(LAMINATE_IS_SANITIZED)

// The library's operator delete frees what malloc gave.
void* operator new(std::size_t bytes) {
    for (;;) {
        if (void* array = std::malloc(bytes == 0 ? 1 : bytes)) {
            laminate::prefer_huge_pages(array, bytes);
            return array;
        }
        const std::new_handler handler = std::get_new_handler();
        if (handler == nullptr) throw std::bad_alloc();
        handler();
    }
}

#endif
