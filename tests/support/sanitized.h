// Lets tests do less under a sanitizer, where a loop of checks costs five to fifty times as much: a
// sanitizer's findings depend on the paths taken, not on how often. GCC tells by macros whether
// there is one, clang by features.
#pragma once

#include <algorithm>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define LAMINATE_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define LAMINATE_SANITIZED 1
#endif
#endif
#ifndef LAMINATE_SANITIZED
#define LAMINATE_SANITIZED 0
#endif
#if defined(__SANITIZE_THREAD__)
#define LAMINATE_THREAD_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define LAMINATE_THREAD_SANITIZED 1
#endif
#endif
#ifndef LAMINATE_THREAD_SANITIZED
#define LAMINATE_THREAD_SANITIZED 0
#endif

namespace laminate::test {

inline constexpr bool is_sanitized = LAMINATE_SANITIZED != 0;
inline constexpr bool is_thread_sanitized = LAMINATE_THREAD_SANITIZED != 0;

/// The number of random cases to take of `all`: one in ten under a sanitizer. Not for tests that
/// count how often something occurs among the cases.
template <class Count>
[[nodiscard]] constexpr Count samples(Count all) {
    return is_sanitized ? std::max<Count>(1, all / 10) : all;
}

}  // namespace laminate::test
