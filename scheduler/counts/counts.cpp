#include "scheduler/counts/counts.h"

#include <algorithm>
#include <cstddef>

namespace laminate {

namespace {

/// Collects "what: a_name 1, b_name 2" for fields that differ.
class Differences {
public:
    Differences(const std::string& a_name, const std::string& b_name)
        : a_name_(a_name), b_name_(b_name) {}

    template <class Value>
    void compare(const std::string& what, const Value& a, const Value& b) {
        if (a != b) add(what, std::to_string(a.value()), std::to_string(b.value()));
    }
    void add(const std::string& what, const std::string& a, const std::string& b) {
        text_ += (text_.empty() ? "" : "; ") + what + ": " + a_name_ + " " + a + ", " + b_name_ +
                 " " + b;
    }
    [[nodiscard]] const std::string& text() const { return text_; }

private:
    const std::string& a_name_;
    const std::string& b_name_;
    std::string text_;
};

}  // namespace

std::string difference(const GroupCounts& a, const std::string& a_name, const GroupCounts& b,
                       const std::string& b_name) {
    Differences differences(a_name, b_name);
    if (a.layers.size() != b.layers.size()) {
        differences.add("layers", std::to_string(a.layers.size()), std::to_string(b.layers.size()));
    }
    for (size_t k = 0; k < std::min(a.layers.size(), b.layers.size()); ++k) {
        const LayerCounts& la = a.layers[k];
        const LayerCounts& lb = b.layers[k];
        if (la.layer != lb.layer)
            differences.add("layer " + std::to_string(k + 1), la.layer, lb.layer);
        differences.compare(la.layer + " MACs", la.macs, lb.macs);
        differences.compare(la.layer + " W reads", la.weight_reads, lb.weight_reads);
        differences.compare(la.layer + " W buffer", la.weight_buffer, lb.weight_buffer);
        differences.compare(la.layer + " output buffer", la.output_buffer, lb.output_buffer);
    }
    if (a.inputs.size() != b.inputs.size()) {
        differences.add("external inputs", std::to_string(a.inputs.size()),
                        std::to_string(b.inputs.size()));
    }
    for (size_t n = 0; n < std::min(a.inputs.size(), b.inputs.size()); ++n) {
        const InputCounts& xa = a.inputs[n];
        const InputCounts& xb = b.inputs[n];
        const std::string what =
            a.inputs.size() == 1 ? "X" : "X" + std::to_string(n) + " (" + xa.tensor + ")";
        if (xa.tensor != xb.tensor)
            differences.add("external input " + std::to_string(n), xa.tensor, xb.tensor);
        differences.compare(what + " reads", xa.reads, xb.reads);
        differences.compare(what + " buffer", xa.buffer, xb.buffer);
    }
    differences.compare("Y reads", a.output_reads, b.output_reads);
    differences.compare("Y writes", a.output_writes, b.output_writes);
    differences.compare("live total", a.live_total, b.live_total);
    differences.compare("sum total", a.sum_total, b.sum_total);
    return differences.text();
}

NetworkCounts total(const std::vector<GroupCounts>& groups) {
    NetworkCounts sum;
    for (const GroupCounts& group : groups) {
        sum.accesses += group.accesses();
        sum.macs += group.macs();
        sum.live_total = std::max(sum.live_total, group.live_total);
        sum.sum_total = std::max(sum.sum_total, group.sum_total);
    }
    return sum;
}

}  // namespace laminate
