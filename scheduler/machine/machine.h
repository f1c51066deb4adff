// A machine as data (machines/*.json): an array of multiply-accumulators and the memories above it.
//
// Memories are listed from the array upwards. The memories that serve an operand, in this order,
// are its hierarchy; operands may share a memory or have their own. Data moves between neighbours
// of a hierarchy in words. An access of b bits to a memory with words of w bits and a smallest
// access of g bits costs ceil(b / g) * g / w times the energy of a word. The highest memory serves
// all operands and holds the network's tensors.
//
// The array has axes, each with lanes. A lane works on its own index of the loop that lies on the
// axis. A memory has one copy for each lane of the axes that it is replicated along. Along the
// other axes lanes share a copy: its word is broadcast, and for outputs an adder tree sums the
// lanes' products on their way to it.
//
//   const Machine machine = open_machine("meta_proto_df");     // or a file
//   const std::vector<int> levels = machine.hierarchy(Operand::input);
//
// Source of the form: DeFiNES (HPCA 2023) section II and Table I; ZigZag's memory hierarchies.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace laminate {

/// Input feature map (I), weights (W) and output feature map (O) of a layer.
enum class Operand { input, weight, output };
inline constexpr std::array<Operand, 3> all_operands{Operand::input, Operand::weight,
                                                     Operand::output};

/// Loops of a layer by the letters of the hardware papers; ours are z, i, x, y, m, n
/// (docs/counting.md). A depthwise layer's groups take the place of K.
enum class ArrayLoop { k, c, ox, oy, fx, fy };

/// How data of an operand crosses one side of a memory. Reads leave the memory and writes enter it;
/// lower means nearer to the array.
enum class Transfer { write_from_lower, write_from_higher, read_to_lower, read_to_higher };

[[nodiscard]] const char* to_string(Operand operand);    ///< "I", "W", "O"
[[nodiscard]] const char* to_string(ArrayLoop loop);     ///< "K", "C", "OX", "OY", "FX", "FY"
[[nodiscard]] const char* to_string(Transfer transfer);  ///< "read_to_lower", ...
[[nodiscard]] bool is_read(Transfer transfer);

struct ArrayAxis {
    std::optional<ArrayLoop> loop;  ///< nullopt: the mapping chooses
    int64_t lanes = 1;
};

/// One direction of a memory's ports.
struct WordAccess {
    int64_t word_bits = 0;             ///< width of a port, which one cycle moves
    int64_t smallest_access_bits = 0;  ///< divides word_bits
    double word_pj = 0;                ///< energy of a whole word
};

struct MemoryPort {
    struct Carried {
        Operand operand;
        Transfer transfer;
        bool operator==(const Carried&) const = default;
    };
    std::string name;              ///< unique in its memory
    std::vector<Carried> carries;  ///< transfers that share its cycles
};

struct Memory {
    std::string name;  ///< unique in the machine
    std::vector<Operand> operands;
    int64_t capacity_bits = 0;             ///< of one copy
    int64_t banks = 1;                     ///< banks of equal size that make up the capacity
    std::vector<size_t> replicated_along;  ///< axes of the array, ascending; one copy per lane
    WordAccess read;
    WordAccess write;
    /// Exactly one port carries each transfer of each operand served.
    std::vector<MemoryPort> ports;
    std::string source;  ///< of its numbers; empty if it is the machine's

    [[nodiscard]] bool serves(Operand operand) const;
    /// Throws std::out_of_range if the operand is not served.
    [[nodiscard]] const MemoryPort& port_of(Operand operand, Transfer transfer) const;
};

struct ElementBits {
    int64_t input = 0;
    int64_t weight = 0;
    int64_t partial_sum = 0;  ///< an unfinished output
    int64_t output = 0;
};

/// A number that only one model uses. If `is_fitted`, the source does not give it, and it was
/// chosen so that published results come out.
struct MachineConstant {
    std::string name;
    double value = 0;
    bool is_fitted = false;
    std::string source;
};

struct Machine {
    std::string name;
    std::string about;   ///< one line
    std::string source;  ///< of the numbers
    ElementBits bits;
    std::vector<ArrayAxis> axes;
    double mac_pj = 0;
    std::vector<Memory> memories;              ///< from the array upwards
    std::vector<MachineConstant> constants{};  ///< sorted by name, each once

    [[nodiscard]] int64_t mac_count() const;  ///< product of the lanes
    [[nodiscard]] int64_t copies(const Memory& memory) const;
    /// Indices into `memories` of those that serve the operand, lowest first.
    [[nodiscard]] std::vector<size_t> hierarchy(Operand operand) const;
    /// Capacity of all copies of all memories but the highest.
    [[nodiscard]] int64_t on_chip_bits() const;
    /// Null if there is none of this name.
    [[nodiscard]] const MachineConstant* constant(const std::string& wanted) const;
};

/// Throws InputError if the text is not JSON, if a key is missing, unknown or out of range, or if a
/// transfer has no port. Messages begin with `where`.
[[nodiscard]] Machine parse_machine(const std::string& json, const std::string& where);

/// Names of the machines that come with the program, sorted.
[[nodiscard]] std::vector<std::string> machine_names();
/// Opens one of machine_names(), or else a path. Throws InputError like parse_machine, or with a
/// list of the names.
[[nodiscard]] Machine open_machine(const std::string& name_or_file);

}  // namespace laminate
