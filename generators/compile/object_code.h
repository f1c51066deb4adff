// Object files of the code generator without a linker: loaded into this process, or with a function
// under another name. ELF of x86-64, as LLVM writes it.
//
//   const LoadedObject loaded(object_code({{"f", body}}, target));
//   const auto f = reinterpret_cast<laminate_group_function>(loaded.function("f"));
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace laminate {

/// Whether this process can load objects for its own processor.
#if defined(__x86_64__) && defined(__linux__)
inline constexpr bool loads_objects = true;
#else
inline constexpr bool loads_objects = false;
#endif

/// The functions of an object file at addresses of this process; they live as long as this.
class LoadedObject {
public:
    /// What the object calls is taken from `symbols`, else from the libraries of this process.
    /// Throws std::runtime_error for a file that is no such object, and for a call of what does not
    /// exist.
    explicit LoadedObject(std::string_view object,
                          const std::map<std::string, const void*>& symbols = {});
    ~LoadedObject();
    LoadedObject(LoadedObject&& other) noexcept;
    LoadedObject& operator=(LoadedObject&&) = delete;

    /// Throws std::runtime_error if the object does not define it.
    [[nodiscard]] void* function(const std::string& name) const;
    /// All functions that the object defines.
    [[nodiscard]] const std::map<std::string, void*, std::less<>>& functions() const {
        return functions_;
    }

private:
    std::byte* memory_ = nullptr;
    size_t bytes_ = 0;
    std::map<std::string, void*, std::less<>> functions_;
};

/// The object in which each name that begins with `from`, of a function that it has or calls, begins
/// with `to` instead. Throws std::runtime_error as LoadedObject.
[[nodiscard]] std::string with_functions_renamed(std::string object, std::string_view from,
                                                 std::string_view to);

}  // namespace laminate
