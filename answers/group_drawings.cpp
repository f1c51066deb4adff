#include "answers/group_drawings.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>
#include <unordered_map>

#include "answers/report_page.h"
#include "base/hash.h"
#include "base/parallel.h"
#include "scheduler/counts/memory_timeline.h"
#include "scheduler/counts/two_level/two_level.h"
#include "scheduler/schedule/loop_nest.h"

namespace laminate::cli {

namespace {

constexpr int64_t timeline_steps = 300;  // a group is a few hundred pixels wide

/// Elements of a tensor of one image.
int64_t image_elements(const Network& network, TensorId id) {
    std::vector<int64_t> dims = network.tensor(id).dims;
    dims.front() = 1;
    return element_count(dims);
}

/// Encloses the number of a name where the name goes. Only names themselves may contain it.
constexpr char name_mark = '\x7f';

std::string name_place(size_t number) { return name_mark + std::to_string(number) + name_mark; }

/// The tensors that these layers read and write, each once, in their order.
std::vector<TensorId> tensors_of(const std::vector<LayerProblem>& problems) {
    std::vector<TensorId> tensors;
    const auto add = [&](TensorId tensor) {
        if (std::ranges::find(tensors, tensor) == tensors.end()) tensors.push_back(tensor);
    };
    for (const LayerProblem& problem : problems) {
        for (const LayerInput& input : problem.inputs) add(input.tensor);
        add(problem.output);
    }
    return tensors;
}

/// The layers of a group.
struct Layers {
    /// With numbers in place of names: layers first, then their tensors_of().
    std::vector<LayerProblem> problems;
    std::vector<std::string> names;  ///< in JSON, without quotes
    int64_t shape = 0;               ///< equal for layers of equal shapes
};

/// A whole group without its names.
using Key = std::vector<int64_t>;

Key key_of(int64_t shape, const GroupSchedule& group) {
    Key key{shape};
    const auto add = [&](const Placement& placement) {
        for (const Level& level : {placement.store, placement.compute})
            key.insert(key.end(), {level.nest, level.loop});
    };
    for (const Nest& nest : group.nests) {
        key.push_back(std::ssize(nest.loops));
        for (const Loop& loop : nest.loops)
            key.push_back(16 * static_cast<int>(loop.dim) + static_cast<int>(loop.band));
        key.insert(key.end(), nest.tile.begin(), nest.tile.end());
        key.insert(key.end(), nest.strip.begin(), nest.strip.end());
        key.push_back(std::ssize(nest.x));
        for (const InputPlacement& x : nest.x) {
            key.push_back(x.operand);
            add(x.placement);
        }
        key.push_back(nest.w ? 1 : 0);
        if (nest.w) add(*nest.w);
        add(nest.y);
    }
    return key;
}

/// A drawing with places for names.
class Template {
public:
    /// `text` marks the places by name_place().
    explicit Template(std::string text) : text_(std::move(text)) {
        size_t at = 0;
        for (;;) {
            const size_t mark = text_.find(name_mark, at);
            if (mark == std::string::npos) break;
            const size_t end = text_.find(name_mark, mark + 1);
            pieces_.push_back({at, mark, std::stoul(text_.substr(mark + 1, end - mark - 1))});
            at = end + 1;
        }
        rest_ = at;
    }

    void fill(const std::vector<std::string>& names, std::string& filled) const {
        for (const Piece& piece : pieces_) {
            filled.append(text_, piece.begin, piece.end - piece.begin);
            filled += names[piece.name];
        }
        filled.append(text_, rest_);
    }

private:
    struct Piece {
        size_t begin = 0;
        size_t end = 0;
        size_t name = 0;  ///< number of the name that follows
    };
    std::string text_;
    std::vector<Piece> pieces_;
    size_t rest_ = 0;
};

/// Appends JSON to a buffer.
class JsonText {
public:
    template <class Format, class... Values>
    void put(Format format, const Values&... values) {
        fmt::format_to(std::back_inserter(text_), format, values...);
    }
    /// `item` writes one element of the list, for each of `items`.
    template <class Items, class Item>
    void list(const Items& items, const Item& item) {
        const char* before = "[";
        for (const auto& one : items) {
            text_.append(std::string_view(before));
            item(one);
            before = ",";
        }
        text_.append(std::string_view(items.empty() ? "[]" : "]"));
    }
    [[nodiscard]] std::string text() const { return fmt::to_string(text_); }

private:
    fmt::memory_buffer text_;
};

/// External accesses of one array of a group.
struct Traffic {
    const char* array;
    const std::string* name;
    Elements reads, writes;
    int64_t elements;  ///< of the array itself: the least traffic it can cause
};

std::vector<Traffic> traffic_of(const Network& network, const std::vector<LayerProblem>& problems,
                                const std::vector<GroupTensor>& tensors,
                                const GroupCounts& counts) {
    std::vector<Traffic> traffic;
    size_t input = 0;
    for (const GroupTensor& tensor : tensors) {
        if (tensor.is_external())
            traffic.push_back({"X",
                               &tensor.name,
                               counts.inputs.at(input++).reads,
                               {},
                               image_elements(network, tensor.tensor)});
    }
    for (size_t k = 0; k < problems.size(); ++k) {
        if (problems[k].has_weights())
            traffic.push_back({"W",
                               &problems[k].name,
                               counts.layers[k].weight_reads,
                               {},
                               problems[k].weight_elements().value()});
    }
    traffic.push_back({"Y", &problems.back().name, counts.output_reads, counts.output_writes,
                       problems.back().output_elements().value()});
    return traffic;
}

void put_timeline(const MemoryTimeline& timeline, JsonText& json) {
    json.put(FMT_STRING("\"phases\":"));
    json.list(timeline.phases, [&](const MemoryPhase& phase) {
        json.put(FMT_STRING("{{\"layer\":\"{}\",\"macs\":{},\"live\":{},\"buffers\":"), phase.layer,
                 phase.macs.value(), phase.live.value());
        json.list(phase.buffers, [&](const LiveBuffer& buffer) {
            json.put(FMT_STRING("[\"{}\",{}]"), buffer.name, buffer.elements.value());
        });
        json.put(FMT_STRING("}}"));
    });
    json.put(FMT_STRING(",\"steps\":"));
    json.list(timeline.runs,
              [&](const MemoryRun& run) { json.put(FMT_STRING("[{},{}]"), run.phase, run.times); });
    json.put(FMT_STRING(",\"unfolded\":{}"), timeline.unfolded_loops);
}

/// The drawing of one group, with the names in `problems` and `group`, which need no escapes.
std::string drawing(const Network& network, const std::vector<LayerProblem>& problems,
                    const GroupSchedule& group, TwoLevelCache& cache) {
    const GroupCounts counts = two_level_counts(problems, group, &cache);
    const auto tensors = group_tensors(problems);
    const std::vector<Traffic> traffic = traffic_of(network, problems, tensors, counts);
    int64_t least = 0;
    for (const Traffic& one : traffic) least += one.elements;

    JsonText json;
    json.put(FMT_STRING("{{\"layers\":"));
    json.list(problems,
              [&](const LayerProblem& problem) { json.put(FMT_STRING("\"{}\""), problem.name); });
    json.put(FMT_STRING(",\"accesses\":{},\"least\":{},\"macs\":{},\"live\":{},\"traffic\":"),
             counts.accesses().value(), least, counts.macs().value(), counts.live_total.value());
    json.list(traffic, [&](const Traffic& one) {
        json.put(FMT_STRING("{{\"name\":\"{} {}\",\"reads\":{},\"writes\":{},\"elements\":{}}}"),
                 one.array, *one.name, one.reads.value(), one.writes.value(), one.elements);
    });
    json.put(FMT_STRING(","));
    put_timeline(memory_timeline(problems, group, counts, timeline_steps), json);
    json.put(FMT_STRING(",\"nest\":{}}}"), script_json(loop_nest_text(problems, group)));
    return json.text();
}

class Drawings {
public:
    explicit Drawings(const Network& network) : network_(network) {}

    std::string of(const std::vector<const GroupSchedule*>& groups, int threads) {
        for (const GroupSchedule* group : groups) find(*group);
        make_templates(threads);
        std::string text = "[";
        for (const Drawn& drawn : drawn_) {
            if (text.size() > 1) text += ',';
            templates_[drawn.number].fill(drawn.layers->names, text);
        }
        return text + "]";
    }

private:
    /// A group whose drawing serves others too.
    struct Distinct {
        const GroupSchedule* group = nullptr;
        const Layers* layers = nullptr;
    };
    struct Drawn {
        const Layers* layers = nullptr;
        size_t number = 0;  ///< of the distinct group
    };

    void find(const GroupSchedule& group) {
        const Layers& layers = layers_of(group);
        const auto [entry, is_new] =
            number_of_.try_emplace(key_of(layers.shape, group), distinct_.size());
        if (is_new) distinct_.push_back({&group, &layers});
        drawn_.push_back({&layers, entry->second});
    }

    const Layers& layers_of(const GroupSchedule& group) {
        std::vector<std::string_view> key;
        for (const Nest& nest : group.nests) key.push_back(nest.layer);
        const auto [known, is_new] = layers_.try_emplace(std::move(key));
        Layers& layers = known->second;
        if (!is_new) return layers;
        layers.problems = group_problems(network_, group);
        const std::vector<int64_t> shape = shape_key(layers.problems);
        layers.shape =
            static_cast<int64_t>(shapes_.try_emplace(shape, shapes_.size()).first->second);
        const std::vector<TensorId> tensors = tensors_of(layers.problems);
        const auto add_name = [&](const std::string& name) {
            const std::string quoted = script_json(name);
            layers.names.push_back(quoted.substr(1, quoted.size() - 2));
        };
        for (LayerProblem& problem : layers.problems) {
            add_name(problem.name);
            problem.name = name_place(layers.names.size() - 1);
        }
        for (const TensorId tensor : tensors) add_name(network_.tensor(tensor).name);
        for (LayerProblem& problem : layers.problems) {
            for (LayerInput& read : problem.inputs) {
                const auto place = std::ranges::find(tensors, read.tensor) - tensors.begin();
                read.name = name_place(layers.problems.size() + static_cast<size_t>(place));
            }
        }
        return layers;
    }

    /// Each thread takes a range of neighbours, for which one cache of axes serves. Of several
    /// exceptions the first in the order of the groups is rethrown.
    void make_templates(int threads) {
        std::vector<std::string> texts(distinct_.size());
        const auto parts = static_cast<size_t>(std::max(threads, 1));
        std::vector<std::exception_ptr> faults(parts);
        in_parallel(parts, threads, [&](size_t part) {
            TwoLevelCache cache;
            try {
                for (size_t n = part * texts.size() / parts; n < (part + 1) * texts.size() / parts;
                     ++n) {
                    const auto& [group, layers] = distinct_[n];
                    GroupSchedule own = *group;
                    for (size_t k = 0; k < own.nests.size(); ++k)
                        own.nests[k].layer = layers->problems[k].name;
                    texts[n] = drawing(network_, layers->problems, own, cache);
                }
            } catch (...) {
                faults[part] = std::current_exception();
            }
        });
        for (const std::exception_ptr& fault : faults) {
            if (fault) std::rethrow_exception(fault);
        }
        for (std::string& text : texts) templates_.emplace_back(std::move(text));
    }

    const Network& network_;
    std::map<std::vector<std::string_view>, Layers> layers_;  ///< by names of layers
    std::map<std::vector<int64_t>, size_t> shapes_;
    std::unordered_map<Key, size_t, SequenceHash> number_of_;
    std::vector<Distinct> distinct_;
    std::vector<Template> templates_;  ///< of the distinct groups
    std::vector<Drawn> drawn_;         ///< by group
};

}  // namespace

std::string group_drawings(const Network& network, const std::vector<const GroupSchedule*>& groups,
                           int threads) {
    return Drawings(network).of(groups, threads);
}

}  // namespace laminate::cli
