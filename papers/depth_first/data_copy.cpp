#include "papers/depth_first/data_copy.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <stdexcept>
#include <utility>

namespace laminate::depth_first {

namespace {

/// One memory on the way of a copy: how the data enter and leave it.
struct Stop {
    size_t memory;
    std::optional<std::pair<Operand, Transfer>> in;
    std::optional<std::pair<Operand, Transfer>> out;
};

std::vector<Stop> along(const std::vector<size_t>& hierarchy, Operand operand, size_t from,
                        size_t to) {
    const bool up = from < to;
    const Transfer enter = up ? Transfer::write_from_lower : Transfer::write_from_higher;
    const Transfer leave = up ? Transfer::read_to_higher : Transfer::read_to_lower;
    std::vector<Stop> stops;
    for (size_t level = from;; level = up ? level + 1 : level - 1) {
        Stop stop{hierarchy[level], std::nullopt, std::nullopt};
        if (level != from) stop.in = {operand, enter};
        if (level != to) stop.out = {operand, leave};
        stops.push_back(stop);
        if (level == to) return stops;
    }
}

std::vector<Stop> way(const Machine& machine, const DataCopy& copy) {
    const std::vector<size_t> source = machine.hierarchy(copy.from.operand);
    const std::vector<size_t> destination = machine.hierarchy(copy.to.operand);
    if (copy.from.operand == copy.to.operand)
        return along(source, copy.from.operand, copy.from.level, copy.to.level);
    // The way turns at the lowest memory that both operands share and that is not below either
    // place.
    for (size_t level = copy.from.level; level < source.size(); ++level) {
        const auto found = std::ranges::find(destination, source[level]);
        if (found == destination.end()) continue;
        const auto other = static_cast<size_t>(found - destination.begin());
        if (other < copy.to.level) continue;
        if (level == copy.from.level)
            return along(destination, copy.to.operand, other, copy.to.level);
        if (other == copy.to.level) return along(source, copy.from.operand, copy.from.level, level);
        std::vector<Stop> stops = along(source, copy.from.operand, copy.from.level, level);
        std::vector<Stop> down = along(destination, copy.to.operand, other, copy.to.level);
        stops.back().out = down.front().out;
        stops.insert(stops.end(), down.begin() + 1, down.end());
        return stops;
    }
    throw std::logic_error("no memory serves both operands of a copy");
}

double words_of(int64_t bits, const WordAccess& access) {
    const auto smallest = static_cast<double>(access.smallest_access_bits);
    return std::ceil(static_cast<double>(bits) / smallest) *
           (smallest / static_cast<double>(access.word_bits));
}

int64_t cycles_of(int64_t bits, const WordAccess& access) {
    return (bits + access.word_bits - 1) / access.word_bits;
}

double& count_of(WordCounts& counts, Transfer transfer) {
    switch (transfer) {
        case Transfer::read_to_lower:
            return counts.read_to_lower;
        case Transfer::write_from_lower:
            return counts.write_from_lower;
        case Transfer::read_to_higher:
            return counts.read_to_higher;
        case Transfer::write_from_higher:
            return counts.write_from_higher;
    }
    throw std::logic_error("count_of");
}

/// When the copies of a bundle use a port.
struct Busy {
    int64_t first_begin = 0;
    int64_t last_end = 0;
    int64_t total = 0;
    int uses = 0;
};

}  // namespace

const char* to_string(DataCopy::Reason reason) {
    switch (reason) {
        case DataCopy::Reason::stack_input:
            return "stack input";
        case DataCopy::Reason::output_to_input:
            return "output to input";
        case DataCopy::Reason::column_cache_read:
            return "column cache read";
        case DataCopy::Reason::row_cache_read:
            return "row cache read";
        case DataCopy::Reason::row_cache_write:
            return "row cache write";
        case DataCopy::Reason::column_cache_write:
            return "column cache write";
        case DataCopy::Reason::weights_of_later_tiles:
            return "weights of later tiles";
    }
    throw std::logic_error("to_string(DataCopy::Reason)");
}

CopyCost copy_cost(const Machine& machine, const std::vector<DataCopy>& copies) {
    CopyCost cost;
    cost.words.resize(machine.memories.size());
    std::map<const MemoryPort*, Busy> ports;
    for (const DataCopy& copy : copies) {
        const std::vector<Stop> stops = way(machine, copy);
        double energy = 0;
        int64_t time = 0;
        for (size_t hop = 0; hop + 1 < stops.size(); ++hop) {
            const Memory& from = machine.memories[stops[hop].memory];
            const Memory& to = machine.memories[stops[hop + 1].memory];
            const auto [out_operand, out] = *stops[hop].out;
            const auto [in_operand, in] = *stops[hop + 1].in;
            const double read = words_of(copy.bits, from.read);
            const double written = words_of(copy.bits, to.write);
            energy += read * from.read.word_pj;
            energy += written * to.write.word_pj;
            count_of(cost.words[stops[hop].memory], out) += read;
            count_of(cost.words[stops[hop + 1].memory], in) += written;
            const int64_t cycles =
                std::max(cycles_of(copy.bits, from.read), cycles_of(copy.bits, to.write));
            for (const MemoryPort* port :
                 {&from.port_of(out_operand, out), &to.port_of(in_operand, in)}) {
                Busy& busy = ports[port];
                busy.first_begin = busy.uses == 0 ? time : std::min(busy.first_begin, time);
                busy.last_end = std::max(busy.last_end, time + cycles);
                busy.total += cycles;
                ++busy.uses;
            }
            time += cycles;
        }
        cost.energy_pj += energy;
    }
    for (const auto& [port, busy] : ports)
        cost.latency_cycles =
            std::max({cost.latency_cycles, busy.last_end, busy.first_begin + busy.total});
    return cost;
}

}  // namespace laminate::depth_first
