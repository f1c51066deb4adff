#include "runtime/cpu.h"

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#endif

#include <algorithm>
#include <iterator>
#include <utility>

namespace laminate {
namespace {

struct Feature {
    std::string name;
    bool present;
};

#if defined(__x86_64__) || defined(__i386__)
/// Clang 14's builtin does not know f16c. It uses the registers of AVX, which the operating system
/// has to save.
bool has_f16c() {
    unsigned a = 0, b = 0, c = 0, d = 0;
    return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0 &&
           __builtin_cpu_supports("avx") != 0;
}
#endif

/// One line per feature, because the builtin takes literals only.
const std::vector<Feature>& features() {
    static const std::vector<Feature> table = [] {
        std::vector<Feature> found;
#if defined(__x86_64__) || defined(__i386__)
#define LAMINATE_FEATURE(name) found.push_back({name, __builtin_cpu_supports(name) != 0})
        LAMINATE_FEATURE("sse4.1");
        LAMINATE_FEATURE("avx");
        LAMINATE_FEATURE("avx2");
        LAMINATE_FEATURE("fma");
        found.push_back({"f16c", has_f16c()});
        LAMINATE_FEATURE("avx512f");
        LAMINATE_FEATURE("avx512cd");
        LAMINATE_FEATURE("avx512dq");
        LAMINATE_FEATURE("avx512bw");
        LAMINATE_FEATURE("avx512vl");
        LAMINATE_FEATURE("avx512ifma");
        LAMINATE_FEATURE("avx512vbmi");
        LAMINATE_FEATURE("avx512vbmi2");
        LAMINATE_FEATURE("avx512bitalg");
        LAMINATE_FEATURE("avx512vpopcntdq");
        LAMINATE_FEATURE("avx512vnni");
        LAMINATE_FEATURE("avx512bf16");
#undef LAMINATE_FEATURE
#endif
        return found;
    }();
    return table;
}

}  // namespace

const std::vector<std::string>& known_cpu_features() {
    static const std::vector<std::string> names = [] {
        std::vector<std::string> all;
        for (const Feature& feature : features()) all.push_back(feature.name);
        return all;
    }();
    return names;
}

bool cpu_has(const std::string& feature) {
    return std::any_of(features().begin(), features().end(),
                       [&](const Feature& f) { return f.name == feature && f.present; });
}

std::vector<std::string> host_cpu_features() {
    std::vector<std::string> present;
    std::copy_if(known_cpu_features().begin(), known_cpu_features().end(),
                 std::back_inserter(present), cpu_has);
    return present;
}

}  // namespace laminate
