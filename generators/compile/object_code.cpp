#include "generators/compile/object_code.h"

#include <dlfcn.h>
#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <limits>
#include <new>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

namespace laminate {

namespace {

[[noreturn]] void refuse(const std::string& reason) {
    throw std::runtime_error("object code: " + reason);
}

/// The headers of an object file, every offset checked before it is followed.
class ObjectFile {
public:
    explicit ObjectFile(std::string_view bytes) : bytes_(bytes) {
        const auto header = at<Elf64_Ehdr>(0);
        if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_type != ET_REL ||
            header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != EM_X86_64 ||
            header.e_shentsize != sizeof(Elf64_Shdr))
            refuse("is no ELF object of x86-64");
        sections_at_ = header.e_shoff;
        for (size_t n = 0; n < header.e_shnum; ++n) {
            sections.push_back(at<Elf64_Shdr>(section_at(n)));
            const Elf64_Shdr& section = sections.back();
            if (section.sh_type != SHT_NOBITS) (void)contents(section);
            if (section.sh_type == SHT_SYMTAB) symbol_table_ = n;
        }
    }

    template <class T>
    [[nodiscard]] T at(size_t offset) const {
        if (offset > bytes_.size() || bytes_.size() - offset < sizeof(T)) refuse("ends too early");
        T value;
        std::memcpy(&value, bytes_.data() + offset, sizeof(T));
        return value;
    }
    [[nodiscard]] size_t section_at(size_t n) const { return sections_at_ + n * sizeof(Elf64_Shdr); }
    [[nodiscard]] std::string_view contents(const Elf64_Shdr& section) const {
        if (section.sh_offset > bytes_.size() || bytes_.size() - section.sh_offset < section.sh_size)
            refuse("ends too early");
        return bytes_.substr(section.sh_offset, section.sh_size);
    }
    [[nodiscard]] const Elf64_Shdr& section(size_t n) const {
        if (n >= sections.size()) refuse("names a section that it lacks");
        return sections[n];
    }
    [[nodiscard]] const Elf64_Shdr& symbol_table() const { return section(symbol_table_); }
    [[nodiscard]] size_t symbol_count() const {
        return symbol_table().sh_size / sizeof(Elf64_Sym);
    }
    [[nodiscard]] size_t symbol_at(size_t n) const {
        if (n >= symbol_count()) refuse("names a symbol that it lacks");
        return symbol_table().sh_offset + n * sizeof(Elf64_Sym);
    }
    [[nodiscard]] Elf64_Sym symbol(size_t n) const { return at<Elf64_Sym>(symbol_at(n)); }
    [[nodiscard]] std::string_view name_of(const Elf64_Sym& symbol) const {
        const std::string_view names = contents(section(symbol_table().sh_link));
        const size_t end = names.find('\0', std::min<size_t>(symbol.st_name, names.size()));
        if (end == std::string_view::npos) refuse("has a name without an end");
        return names.substr(symbol.st_name, end - symbol.st_name);
    }
    std::vector<Elf64_Shdr> sections;

private:
    std::string_view bytes_;
    size_t sections_at_ = 0;
    size_t symbol_table_ = std::numeric_limits<size_t>::max();
};

size_t rounded_up(size_t value, size_t step) { return (value + step - 1) / step * step; }

/// How the sections of an object lie in memory: code and slots, constants, variables, each on pages
/// of its own.
class Image {
public:
    explicit Image(const ObjectFile& file) : file_(file), places_(file.sections.size()) {
        const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
        add([](uint64_t flags) { return (flags & SHF_EXECINSTR) != 0; });
        slots_ = size_ = rounded_up(size_, slot_bytes);
        size_ += slot_bytes * file.symbol_count();
        code_end_ = size_ = rounded_up(size_, page);
        add([](uint64_t flags) { return (flags & (SHF_EXECINSTR | SHF_WRITE)) == 0; });
        constants_end_ = size_ = rounded_up(size_, page);
        add([](uint64_t flags) { return (flags & (SHF_EXECINSTR | SHF_WRITE)) == SHF_WRITE; });
        size_ = rounded_up(size_, page);
    }

    [[nodiscard]] size_t size() const { return size_; }

    void fill(std::byte* memory, const std::map<std::string, const void*>& symbols) {
        memory_ = memory;
        for (size_t n = 0; n < places_.size(); ++n) {
            const Elf64_Shdr& section = file_.sections[n];
            if (places_[n] && section.sh_type != SHT_NOBITS && section.sh_size > 0)
                std::memcpy(memory + *places_[n], file_.contents(section).data(), section.sh_size);
        }
        find_symbols(symbols);
        for (const Elf64_Shdr& section : file_.sections) {
            if (section.sh_type != SHT_RELA || !place_of(section.sh_info)) continue;
            for (size_t at = 0; at + sizeof(Elf64_Rela) <= section.sh_size;
                 at += sizeof(Elf64_Rela))
                relocate(section.sh_info, file_.at<Elf64_Rela>(section.sh_offset + at));
        }
        protect(0, code_end_, PROT_READ | PROT_EXEC);
        protect(code_end_, constants_end_, PROT_READ);
    }

    [[nodiscard]] std::map<std::string, void*, std::less<>> functions() const {
        std::map<std::string, void*, std::less<>> found;
        for (size_t n = 0; n < addresses_.size(); ++n) {
            const Elf64_Sym symbol = file_.symbol(n);
            if (ELF64_ST_TYPE(symbol.st_info) == STT_FUNC && symbol.st_shndx != SHN_UNDEF)
                found.emplace(file_.name_of(symbol), reinterpret_cast<void*>(addresses_[n]));
        }
        return found;
    }

private:
    /// A jump to a symbol that may be far away, then its address.
    static constexpr size_t slot_bytes = 16;
    static constexpr size_t address_in_slot = 8;

    template <class Wanted>
    void add(const Wanted& wanted) {
        for (size_t n = 0; n < places_.size(); ++n) {
            const Elf64_Shdr& section = file_.sections[n];
            const bool is_unwinding = section.sh_type == SHT_X86_64_UNWIND;
            if ((section.sh_flags & SHF_ALLOC) == 0 || is_unwinding || !wanted(section.sh_flags))
                continue;
            const size_t boundary = std::max<size_t>(1, section.sh_addralign);
            if (!std::has_single_bit(boundary) || boundary > largest_boundary ||
                size_ > most_bytes || section.sh_size > most_bytes - size_)
                refuse("has a section of impossible size");
            size_ = rounded_up(size_, boundary);
            places_[n] = size_;
            size_ += section.sh_size;
        }
    }
    [[nodiscard]] std::optional<size_t> place_of(size_t section) const {
        return section < places_.size() ? places_[section] : std::nullopt;
    }

    void find_symbols(const std::map<std::string, const void*>& symbols) {
        for (size_t n = 0; n < file_.symbol_count(); ++n) {
            const Elf64_Sym symbol = file_.symbol(n);
            addresses_.push_back(0);
            if (const auto place = place_of(symbol.st_shndx)) {
                addresses_.back() = address(*place) + symbol.st_value;
            } else if (symbol.st_shndx == SHN_UNDEF && n > 0) {
                addresses_.back() = outside(std::string(file_.name_of(symbol)), symbols);
            }
            // jmp *2(%rip), two bytes never reached, the address
            std::byte* slot = memory_ + slots_ + n * slot_bytes;
            constexpr unsigned char jump[address_in_slot] = {0xFF, 0x25, 2, 0, 0, 0, 0xCC, 0xCC};
            std::memcpy(slot, jump, sizeof jump);
            std::memcpy(slot + address_in_slot, &addresses_.back(), sizeof(uint64_t));
        }
    }
    static uint64_t outside(const std::string& name,
                            const std::map<std::string, const void*>& symbols) {
        const auto given = symbols.find(name);
        const void* found = given != symbols.end() ? given->second
                                                   : ::dlsym(RTLD_DEFAULT, name.c_str());
        if (found == nullptr) refuse("calls " + name + ", which does not exist");
        return reinterpret_cast<uint64_t>(found);
    }

    void relocate(size_t section, const Elf64_Rela& entry) {
        const size_t n = ELF64_R_SYM(entry.r_info);
        if (n >= addresses_.size() || entry.r_offset > file_.sections[section].sh_size ||
            file_.sections[section].sh_size - entry.r_offset < sizeof(uint32_t))
            refuse("changes what it lacks");
        const size_t place = *places_[section] + entry.r_offset;
        const auto addend = static_cast<uint64_t>(entry.r_addend);
        const uint64_t slot = address(slots_ + n * slot_bytes);
        switch (const auto type = ELF64_R_TYPE(entry.r_info)) {
            case R_X86_64_64:
                put<uint64_t>(section, entry.r_offset, addresses_[n] + addend);
                return;
            case R_X86_64_PC64:
                put<uint64_t>(section, entry.r_offset, addresses_[n] + addend - address(place));
                return;
            case R_X86_64_PC32:
            case R_X86_64_PLT32: {
                const bool is_outside = file_.symbol(n).st_shndx == SHN_UNDEF;
                put_near(section, entry.r_offset,
                         (is_outside ? slot : addresses_[n]) + addend - address(place));
                return;
            }
            case R_X86_64_GOTPCREL:
            case R_X86_64_GOTPCRELX:
            case R_X86_64_REX_GOTPCRELX:
                put_near(section, entry.r_offset, slot + address_in_slot + addend - address(place));
                return;
            default:
                refuse("has a relocation of type " + std::to_string(type));
        }
    }
    void put_near(size_t section, size_t offset, uint64_t distance) {
        const auto near = static_cast<int64_t>(distance);
        if (near < std::numeric_limits<int32_t>::min() || near > std::numeric_limits<int32_t>::max())
            refuse("reaches too far");
        put<uint32_t>(section, offset, static_cast<uint32_t>(distance));
    }
    template <class T>
    void put(size_t section, size_t offset, T value) {
        if (file_.sections[section].sh_size - offset < sizeof(T)) refuse("changes what it lacks");
        std::memcpy(memory_ + *places_[section] + offset, &value, sizeof(T));
    }

    void protect(size_t begin, size_t end, int how) const {
        if (begin < end && ::mprotect(memory_ + begin, end - begin, how) != 0)
            refuse(std::string("cannot be made executable: ") + std::strerror(errno));
    }
    [[nodiscard]] uint64_t address(size_t place) const {
        return reinterpret_cast<uint64_t>(memory_) + place;
    }

    static constexpr size_t largest_boundary = 4096;  // of a page, at least
    static constexpr size_t most_bytes = size_t{1} << 30;
    const ObjectFile& file_;
    std::vector<std::optional<size_t>> places_;  ///< by section, of those that are loaded
    std::vector<uint64_t> addresses_;            ///< by symbol
    size_t size_ = 0, slots_ = 0, code_end_ = 0, constants_end_ = 0;
    std::byte* memory_ = nullptr;
};

}  // namespace

LoadedObject::LoadedObject(std::string_view object,
                           const std::map<std::string, const void*>& symbols) {
    const ObjectFile file(object);
    Image image(file);
    bytes_ = image.size();
    void* memory = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    memory_ = static_cast<std::byte*>(memory);
    try {
        image.fill(memory_, symbols);
        functions_ = image.functions();
    } catch (...) {
        ::munmap(memory_, bytes_);
        throw;
    }
}

LoadedObject::LoadedObject(LoadedObject&& other) noexcept
    : memory_(std::exchange(other.memory_, nullptr)),
      bytes_(other.bytes_),
      functions_(std::move(other.functions_)) {}

LoadedObject::~LoadedObject() {
    if (memory_ != nullptr) ::munmap(memory_, bytes_);
}

void* LoadedObject::function(const std::string& name) const {
    const auto found = functions_.find(name);
    if (found == functions_.end()) refuse("lacks function " + name);
    return found->second;
}

std::string with_functions_renamed(std::string object, std::string_view from,
                                   std::string_view to) {
    const ObjectFile file(object);
    // The names move to the end of the file, where there is room for more.
    const size_t names_number = file.symbol_table().sh_link;
    Elf64_Shdr names = file.section(names_number);
    std::string all(file.contents(names));
    std::vector<std::pair<size_t, Elf64_Sym>> renamed;
    for (size_t n = 0; n < file.symbol_count(); ++n) {
        Elf64_Sym symbol = file.symbol(n);
        const std::string_view name = file.name_of(symbol);
        if (ELF64_ST_BIND(symbol.st_info) == STB_LOCAL || name.substr(0, from.size()) != from)
            continue;
        symbol.st_name = static_cast<Elf64_Word>(all.size());
        all.append(to).append(name.substr(from.size())).push_back('\0');
        renamed.emplace_back(file.symbol_at(n), symbol);
    }
    if (renamed.empty()) refuse("names no function " + std::string(from));
    const size_t header_at = file.section_at(names_number);
    names.sh_offset = object.size();
    names.sh_size = all.size();
    object += all;
    for (const auto& [at, symbol] : renamed)
        std::memcpy(object.data() + at, &symbol, sizeof symbol);
    std::memcpy(object.data() + header_at, &names, sizeof names);
    return object;
}

}  // namespace laminate
