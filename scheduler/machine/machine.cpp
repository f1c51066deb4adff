#include "scheduler/machine/machine.h"

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <set>
#include <stdexcept>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "base/json_object.h"
#include "scheduler/machine/embedded_machines.h"

namespace laminate {

namespace {

constexpr std::array<ArrayLoop, 6> all_loops{ArrayLoop::k,  ArrayLoop::c,  ArrayLoop::ox,
                                             ArrayLoop::oy, ArrayLoop::fx, ArrayLoop::fy};
constexpr std::array<Transfer, 4> all_transfers{Transfer::write_from_lower,
                                                Transfer::write_from_higher,
                                                Transfer::read_to_lower, Transfer::read_to_higher};

/// Inputs and weights only go down. Outputs come up, and go down again as partial sums.
std::vector<Transfer> transfers_of(Operand operand) {
    if (operand == Operand::output) return {all_transfers.begin(), all_transfers.end()};
    return {Transfer::write_from_higher, Transfer::read_to_lower};
}

/// The value with the name `text`.
template <typename Values>
auto named(const Values& values, const std::string& text, const JsonObject& object,
           const std::string& key) {
    std::string names;
    for (const auto& value : values) {
        if (to_string(value) == text) return value;
        names += (names.empty() ? "" : ", ") + std::string(to_string(value));
    }
    object.fail(key, "\"" + text + "\"", "one of " + names);
}

WordAccess parse_access(JsonObject object) {
    WordAccess access;
    access.word_bits = object.positive_integer("word_bits");
    access.smallest_access_bits =
        object.positive_integer_or("smallest_access_bits", access.word_bits);
    if (access.word_bits % access.smallest_access_bits != 0)
        object.fail("smallest_access_bits", std::to_string(access.smallest_access_bits),
                    "a divisor of word_bits " + std::to_string(access.word_bits));
    access.word_pj = object.number("word_pj");
    object.refuse_other_keys();
    return access;
}

/// "I:read_to_lower"
MemoryPort::Carried parse_carried(const std::string& text, const JsonObject& port) {
    const size_t colon = text.find(':');
    if (colon == std::string::npos)
        port.fail("carries", "\"" + text + "\"", "OPERAND:TRANSFER as in \"I:read_to_lower\"");
    return {named(all_operands, text.substr(0, colon), port, "carries"),
            named(all_transfers, text.substr(colon + 1), port, "carries")};
}

/// What a port of this kind carries by default: every transfer in its direction.
std::vector<MemoryPort::Carried> all_carried(const Memory& memory, bool reads, bool writes) {
    std::vector<MemoryPort::Carried> result;
    for (const Operand operand : memory.operands) {
        for (const Transfer transfer : transfers_of(operand)) {
            if (is_read(transfer) ? reads : writes) result.push_back({operand, transfer});
        }
    }
    return result;
}

void parse_ports(Memory& memory, JsonObject& object) {
    if (!object.has("ports")) {
        memory.ports = {{"read", all_carried(memory, true, false)},
                        {"write", all_carried(memory, false, true)}};
        return;
    }
    for (JsonObject& entry : object.objects("ports")) {
        MemoryPort port;
        port.name = entry.text("name");
        const std::string direction = entry.text("direction");
        const bool reads = direction != "write";
        const bool writes = direction != "read";
        if (reads && writes && direction != "read_write")
            entry.fail("direction", "\"" + direction + "\"", "one of read, write, read_write");
        const std::vector<MemoryPort::Carried> possible = all_carried(memory, reads, writes);
        if (entry.has("carries")) {
            for (const std::string& text : entry.texts("carries")) {
                port.carries.push_back(parse_carried(text, entry));
                if (std::ranges::find(possible, port.carries.back()) == possible.end())
                    entry.fail("carries", "\"" + text + "\"",
                               "a transfer of an operand of the memory in the port's direction");
            }
        } else {
            port.carries = possible;
        }
        entry.refuse_other_keys();
        for (const MemoryPort& other : memory.ports) {
            if (other.name == port.name)
                entry.fail("name", "\"" + port.name + "\" twice", "one port of a name");
        }
        memory.ports.push_back(std::move(port));
    }
    for (const Operand operand : memory.operands) {
        for (const Transfer transfer : transfers_of(operand)) {
            const auto carriers = std::ranges::count_if(memory.ports, [&](const MemoryPort& port) {
                return std::ranges::count(port.carries, MemoryPort::Carried{operand, transfer}) > 0;
            });
            if (carriers != 1)
                object.fail("ports",
                            std::to_string(carriers) + " that carry " + to_string(operand) + ":" +
                                to_string(transfer),
                            "1");
        }
    }
}

std::vector<size_t> parse_axes_of_copies(const Machine& machine, JsonObject& object) {
    const std::string key = "replicated_along";
    std::vector<size_t> result;
    if (!object.has(key)) return result;
    if (object.at(key, "") == "all") {
        result.resize(machine.axes.size());
        std::iota(result.begin(), result.end(), size_t{0});
        return result;
    }
    for (const std::string& text : object.texts(key)) {
        const ArrayLoop loop = named(all_loops, text, object, key);
        const auto axis = std::ranges::find(machine.axes, loop, &ArrayAxis::loop);
        if (axis == machine.axes.end())
            object.fail(key, "\"" + text + "\"", "\"all\", or loops of axes of the array");
        result.push_back(static_cast<size_t>(axis - machine.axes.begin()));
    }
    std::ranges::sort(result);
    if (std::ranges::adjacent_find(result) != result.end())
        object.fail(key, "an axis twice", "each axis once");
    return result;
}

Memory parse_memory(const Machine& machine, JsonObject& object) {
    Memory memory;
    memory.name = object.text("name");
    for (const std::string& text : object.texts("operands"))
        memory.operands.push_back(named(all_operands, text, object, "operands"));
    if (memory.operands.empty()) object.fail("operands", "none", "at least one of I, W, O");
    if (std::set<Operand>(memory.operands.begin(), memory.operands.end()).size() !=
        memory.operands.size())
        object.fail("operands", "one twice", "each once");
    memory.capacity_bits = object.positive_integer("capacity_bits");
    memory.banks = object.positive_integer_or("banks", 1);
    if (memory.capacity_bits % memory.banks != 0)
        object.fail("banks", std::to_string(memory.banks),
                    "a divisor of capacity_bits " + std::to_string(memory.capacity_bits));
    memory.replicated_along = parse_axes_of_copies(machine, object);
    memory.read = parse_access(object.object("read"));
    memory.write = parse_access(object.object("write"));
    parse_ports(memory, object);
    memory.source = object.text_or("source", "");
    for (const char* optional : {"ports", "replicated_along"}) {
        if (object.has(optional)) (void)object.at(optional, "");
    }
    object.refuse_other_keys();
    return memory;
}

}  // namespace

const char* to_string(Operand operand) {
    switch (operand) {
        case Operand::input:
            return "I";
        case Operand::weight:
            return "W";
        case Operand::output:
            return "O";
    }
    throw std::logic_error("to_string(Operand)");
}

const char* to_string(ArrayLoop loop) {
    switch (loop) {
        case ArrayLoop::k:
            return "K";
        case ArrayLoop::c:
            return "C";
        case ArrayLoop::ox:
            return "OX";
        case ArrayLoop::oy:
            return "OY";
        case ArrayLoop::fx:
            return "FX";
        case ArrayLoop::fy:
            return "FY";
    }
    throw std::logic_error("to_string(ArrayLoop)");
}

const char* to_string(Transfer transfer) {
    switch (transfer) {
        case Transfer::write_from_lower:
            return "write_from_lower";
        case Transfer::write_from_higher:
            return "write_from_higher";
        case Transfer::read_to_lower:
            return "read_to_lower";
        case Transfer::read_to_higher:
            return "read_to_higher";
    }
    throw std::logic_error("to_string(Transfer)");
}

bool is_read(Transfer transfer) {
    return transfer == Transfer::read_to_lower || transfer == Transfer::read_to_higher;
}

bool Memory::serves(Operand operand) const {
    return std::ranges::find(operands, operand) != operands.end();
}

const MemoryPort& Memory::port_of(Operand operand, Transfer transfer) const {
    for (const MemoryPort& port : ports) {
        if (std::ranges::find(port.carries, MemoryPort::Carried{operand, transfer}) !=
            port.carries.end())
            return port;
    }
    throw std::out_of_range(name + ": no port carries " + to_string(operand) + ":" +
                            to_string(transfer));
}

int64_t Machine::mac_count() const {
    int64_t count = 1;
    for (const ArrayAxis& axis : axes) count *= axis.lanes;
    return count;
}

int64_t Machine::copies(const Memory& memory) const {
    int64_t count = 1;
    for (const size_t axis : memory.replicated_along) count *= axes[axis].lanes;
    return count;
}

std::vector<size_t> Machine::hierarchy(Operand operand) const {
    std::vector<size_t> result;
    for (size_t i = 0; i < memories.size(); ++i) {
        if (memories[i].serves(operand)) result.push_back(i);
    }
    return result;
}

int64_t Machine::on_chip_bits() const {
    int64_t sum = 0;
    for (size_t i = 0; i + 1 < memories.size(); ++i)
        sum += memories[i].capacity_bits * copies(memories[i]);
    return sum;
}

const MachineConstant* Machine::constant(const std::string& wanted) const {
    const auto found = std::ranges::find(constants, wanted, &MachineConstant::name);
    return found == constants.end() ? nullptr : &*found;
}

Machine parse_machine(const std::string& json, const std::string& where) {
    const nlohmann::json parsed = parse_json(json, where);
    JsonObject file(parsed, where);
    Machine machine;
    machine.name = file.header("laminate.machine");
    machine.about = file.text("about");
    machine.source = file.text("source");

    JsonObject bits = file.object("element_bits");
    machine.bits = {bits.positive_integer("input"), bits.positive_integer("weight"),
                    bits.positive_integer("partial_sum"), bits.positive_integer("output")};
    // A finished output is the last of its partial sums. The mappers' bounds assume that tiles
    // shrink when they are finished.
    if (machine.bits.partial_sum < machine.bits.output)
        bits.fail("partial_sum", std::to_string(machine.bits.partial_sum),
                  "at least the bits of an output, " + std::to_string(machine.bits.output));
    bits.refuse_other_keys();

    JsonObject array = file.object("array");
    machine.mac_pj = array.number("mac_pj");
    std::set<ArrayLoop> on_axes;
    int64_t lanes = 1;
    for (JsonObject& entry : array.objects("axes")) {
        ArrayAxis axis;
        if (entry.has("loop")) {
            axis.loop = named(all_loops, entry.text("loop"), entry, "loop");
            if (!on_axes.insert(*axis.loop).second)
                entry.fail("loop", std::string(to_string(*axis.loop)) + " twice",
                           "a loop on one axis");
        }
        axis.lanes = entry.positive_integer("lanes");
        if (axis.lanes > (int64_t{1} << 31) / lanes)
            entry.fail("lanes", std::to_string(axis.lanes), "at most 2^31 in all");
        lanes *= axis.lanes;
        entry.refuse_other_keys();
        machine.axes.push_back(axis);
    }
    array.refuse_other_keys();

    for (JsonObject& entry : file.objects("memories")) {
        Memory memory = parse_memory(machine, entry);
        for (const Memory& other : machine.memories) {
            if (other.name == memory.name)
                entry.fail("name", "\"" + memory.name + "\" twice", "one memory of a name");
        }
        machine.memories.push_back(std::move(memory));
    }
    if (file.has("constants")) {
        for (JsonObject& entry : file.objects("constants")) {
            MachineConstant constant{entry.text("name"), entry.number("value"), false,
                                     entry.text("source")};
            if (entry.has("fitted")) {
                const nlohmann::json& fitted = entry.at("fitted", "true or false");
                if (!fitted.is_boolean()) entry.fail("fitted", fitted.dump(), "true or false");
                constant.is_fitted = fitted.get<bool>();
            }
            if (machine.constant(constant.name) != nullptr)
                entry.fail("name", "\"" + constant.name + "\" twice", "one constant of a name");
            entry.refuse_other_keys();
            machine.constants.push_back(std::move(constant));
        }
    }
    const Memory& highest = machine.memories.back();
    if (highest.operands.size() != all_operands.size() || !highest.replicated_along.empty())
        file.fail("memories", "\"" + highest.name + "\" highest",
                  "a highest memory that serves I, W and O and has one copy");
    file.refuse_other_keys();
    return machine;
}

std::vector<std::string> names_of(const std::vector<EmbeddedFile>& files) {
    std::vector<std::string> names;
    for (const EmbeddedFile& file : files) names.emplace_back(file.name);
    std::ranges::sort(names);
    return names;
}

FoundFile find_file(const std::vector<EmbeddedFile>& files, const std::string& kind,
                    const std::string& name_or_file) {
    for (const EmbeddedFile& file : files) {
        if (file.name == name_or_file) return {std::string(file.text), kind + " " + name_or_file};
    }
    std::error_code error;
    if (std::filesystem::exists(name_or_file, error))
        return {read_file(name_or_file), name_or_file};
    std::string names;
    for (const std::string& name : names_of(files)) names += (names.empty() ? "" : ", ") + name;
    throw InputError(kind + " " + name_or_file + ": no such name or file; names: " + names);
}

std::vector<std::string> machine_names() { return names_of(embedded_machines()); }

Machine open_machine(const std::string& name_or_file) {
    const FoundFile found = find_file(embedded_machines(), "machine", name_or_file);
    return parse_machine(found.text, found.where);
}

}  // namespace laminate
