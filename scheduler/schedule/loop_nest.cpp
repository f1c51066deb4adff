#include "scheduler/schedule/loop_nest.h"

#include <algorithm>

namespace laminate {

namespace {

class NestPrinter {
public:
    NestPrinter(const std::vector<LayerProblem>& problems, const GroupSchedule& group)
        : group_(group), problems_(problems), tensors_(group_tensors(problems)) {}

    std::string print() {
        body(Level{}, 1);
        return std::move(out_);
    }

private:
    void line(int depth, const std::string& text) {
        out_.append(2 * static_cast<size_t>(depth), ' ');
        out_ += text + "\n";
    }

    const Nest& nest(int k) const { return group_.nests[static_cast<size_t>(k)]; }

    /// Prints everything that the schedule places in the body of `level`, then the next loop
    /// inside.
    void body(Level level, int depth) {
        for (int k = 0; k <= group_.sink(); ++k) {
            for (const GroupTensor& t : tensors_) {
                if (t.is_external() && t.readers.front().nest == k &&
                    placement_of(group_, t).store == level)
                    line(depth, "buffer " + name_of(t));
            }
            if (nest(k).w && nest(k).w->store == level) line(depth, "buffer W of " + nest(k).layer);
            if (nest(k).y.store == level)
                line(depth, "buffer " + std::string(k == group_.sink() ? "Y" : "output") + " of " +
                                nest(k).layer);
        }
        for (int k = 0; k <= group_.sink(); ++k) {
            for (const GroupTensor& t : tensors_) {
                if (t.is_external() && t.readers.front().nest == k &&
                    placement_of(group_, t).compute == level)
                    line(depth, "load new part of " + name_of(t));
            }
            if (nest(k).w && nest(k).w->compute == level)
                line(depth, "load new part of W of " + nest(k).layer);
            if (k != group_.sink() && nest(k).y.compute == level) {
                line(depth, "compute new part of output of " + nest(k).layer + ":");
                loops(k, 0, depth + 1);
            }
        }
        if (level.is_root())
            loops(group_.sink(), 0, depth);
        else
            loops(level.nest, level.loop + 1, depth);
        if (nest(group_.sink()).y.store == level) line(depth, "write Y");
    }

    /// "X" if the group has one external input, else "X" with the tensor's name.
    [[nodiscard]] std::string name_of(const GroupTensor& t) const {
        const auto externals =
            std::count_if(tensors_.begin(), tensors_.end(),
                          [](const GroupTensor& other) { return other.is_external(); });
        return externals == 1 ? "X" : "X (" + t.name + ")";
    }

    int64_t trips_at_most(int k, Loop loop) const {
        const int64_t extent = problems_[static_cast<size_t>(k)][loop.dim];
        const int64_t tile = nest(k)[loop.dim];
        int64_t strip = extent;
        if (nest(k).find({loop.dim, Band::strip}) >= 0)
            strip = nest(k).step({loop.dim, Band::strip});
        if (loop.band == Band::strip) return ceil_div(extent, strip);
        return loop.band == Band::outer ? ceil_div(strip, tile) : std::min(tile, strip);
    }

    void loops(int k, int first, int depth) {
        const int count = static_cast<int>(nest(k).loops.size());
        int last_used = -1;
        for (int l = first; l < count; ++l) {
            if (group_.is_placed(Level{k, l})) last_used = l;
        }
        for (int l = first; l < count; ++l) {
            const Loop loop = nest(k).loops[static_cast<size_t>(l)];
            const int64_t trips = trips_at_most(k, loop);
            const Level level{k, l};
            if (l > last_used && loop.band == Band::inner) break;
            if (trips > 1) {
                const std::string step = std::to_string(nest(k).step(loop));
                std::string text = "for " + nest(k).layer + "." + to_text(loop);
                if (loop.band == Band::strip) text += " in strips of " + step;
                if (loop.band == Band::outer) text += " in tiles of " + step;
                line(depth++, text + " (" + (k == group_.sink() ? "" : "at most ") +
                                  std::to_string(trips) + " trips):");
            }
            if (group_.is_placed(level)) return body(level, depth);
        }
        std::string rest = "for";
        for (int l = std::max(first, last_used + 1); l < count; ++l) {
            const Loop loop = nest(k).loops[static_cast<size_t>(l)];
            if (loop.band == Band::inner && trips_at_most(k, loop) > 1)
                rest += " " + nest(k).layer + "." + to_text(loop);
        }
        const LayerProblem& p = problems_[static_cast<size_t>(k)];
        if (p.y().kernel > 1) rest += " n";
        if (p.x().kernel > 1) rest += " m";
        if (rest != "for") line(depth++, rest + ":");
        std::string innermost = "output of " + nest(k).layer + operation_text(p.operation);
        if (nest(k).kernel.is_chosen()) innermost += "  (kernel " + to_text(nest(k).kernel) + ")";
        line(depth, innermost);
    }

    static const char* operation_text(Operation operation) {
        switch (operation) {
            case Operation::multiply_accumulate:
                return " += input * W";
            case Operation::max_pool:
                return " = max(output, input)";
            case Operation::average_pool:
                return " += input / count";
            case Operation::add:
                return " = sum of inputs";
            case Operation::subtract:
                return " = difference of inputs";
            case Operation::multiply:
                return " = product of inputs";
            case Operation::divide:
                return " = quotient of inputs";
            case Operation::minimum:
                return " = smaller of inputs";
            case Operation::maximum:
                return " = larger of inputs";
            case Operation::power:
                return " = power of inputs";
            case Operation::prelu:
                return " = input, times slope below 0";
            case Operation::concat:
                return " = input of this channel";
            case Operation::rearrange:
                return " = input of this phase";
            case Operation::resample:
                return " = weighted sum of inputs";
            case Operation::pointwise:
                return " = activation(input)";
            case Operation::normalise:
                return " = normalised over channels(input)";
            case Operation::largest_channel:
                return " = largest channel of input";
            case Operation::smallest_channel:
                return " = smallest channel of input";
        }
        return "";
    }

    const GroupSchedule& group_;
    const std::vector<LayerProblem>& problems_;
    std::vector<GroupTensor> tensors_;
    std::string out_;
};

}  // namespace

std::string loop_nest_text(const Network& network, const Schedule& schedule) {
    std::string text;
    for (size_t g = 0; g < schedule.groups().size(); ++g) {
        text += "group " + std::to_string(g + 1) + " of " +
                std::to_string(schedule.groups().size()) + ":";
        for (const Nest& nest : schedule.groups()[g].nests) text += " " + nest.layer;
        text += "\n" + loop_nest_text(network, schedule.groups()[g]);
    }
    return text;
}

std::string loop_nest_text(const Network& network, const GroupSchedule& group) {
    return loop_nest_text(group_problems(network, group), group);
}

std::string loop_nest_text(const std::vector<LayerProblem>& problems, const GroupSchedule& group) {
    return NestPrinter(problems, group).print();
}

}  // namespace laminate
