#include "cli/traced_counts.h"

#include <algorithm>
#include <cstddef>
#include <variant>

namespace laminate::cli {

namespace {

using Traffic = TwoLevelMemory::Traffic;

/// `traffic`: of each promised buffer, in their order; macs with the output of a layer.
GroupCounts counts_of(const GroupPromise& promise, const std::vector<Traffic>& traffic,
                      int64_t live_elements) {
    GroupCounts counts;
    counts.live_total = Elements(live_elements);
    for (const PromisedNest& nest : promise.nests)
        counts.layers.push_back({nest.layer, {}, {}, {}, {}});
    for (size_t b = 0; b < promise.buffers.size(); ++b) {
        const PromisedBuffer& buffer = promise.buffers[b];
        const Traffic& seen = traffic[b];
        const Elements size(seen.size);
        LayerCounts& layer =
            *std::find_if(counts.layers.begin(), counts.layers.end(),
                          [&](const LayerCounts& l) { return l.layer == buffer.layer; });
        switch (buffer.role) {
            case LAMINATE_INPUT:
                counts.inputs.push_back({buffer.tensor, Elements(seen.reads), size});
                break;
            case LAMINATE_WEIGHTS:
                layer.weight_reads = Elements(seen.reads);
                layer.weight_buffer = size;
                break;
            case LAMINATE_OUTPUT:
                counts.output_reads = Elements(seen.reads);
                counts.output_writes = Elements(seen.writes);
                [[fallthrough]];
            case LAMINATE_INTERMEDIATE:
                layer.macs = Macs(seen.macs);
                layer.output_buffer = size;
                break;
        }
        counts.sum_total += size;
    }
    return counts;
}

std::vector<Traffic> promised_traffic(const GroupPromise& promise) {
    std::vector<Traffic> traffic;
    for (const PromisedBuffer& buffer : promise.buffers) {
        Traffic& one = traffic.emplace_back();
        one.reads = buffer.reads;
        one.writes = buffer.writes;
        one.size = buffer.elements();
        if (buffer.role != LAMINATE_OUTPUT && buffer.role != LAMINATE_INTERMEDIATE) continue;
        for (const PromisedNest& nest : promise.nests) {
            if (nest.layer == buffer.layer) one.macs = nest.macs;
        }
    }
    return traffic;
}

const GroupPromise* promise_of(const Step& step) {
    const auto* group = std::get_if<GroupStep>(&step);
    return group != nullptr && group->trace ? &*group->trace : nullptr;
}

}  // namespace

std::vector<GroupCounts> promised_counts(const Manifest& manifest) {
    std::vector<GroupCounts> groups;
    for (const Step& step : manifest.steps) {
        if (const GroupPromise* promise = promise_of(step))
            groups.push_back(
                counts_of(*promise, promised_traffic(*promise), promise->live_total_elements));
    }
    return groups;
}

std::vector<GroupCounts> seen_counts(const Session& session, const TwoLevelMemory& memory) {
    std::vector<GroupCounts> groups;
    auto buffer = session.buffers().begin();
    for (const Step& step : session.manifest().steps) {
        const GroupPromise* promise = promise_of(step);
        if (promise == nullptr) continue;
        const int32_t index = (*buffer)->step;
        std::vector<Traffic> traffic;
        for (size_t b = 0; b < promise->buffers.size(); ++b)
            traffic.push_back(memory.traffic(*buffer++));
        groups.push_back(counts_of(*promise, traffic, memory.peak(index)));
    }
    return groups;
}

}  // namespace laminate::cli
