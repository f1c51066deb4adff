#include "instrumentation/touched.h"

#include <Halide.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <utility>

#include "generators/kernels/group_kernels.h"
#include "generators/kernels/line_buffers.h"
#include "instrumentation/first_reads.h"
#include "instrumentation/replay.h"
#include "scheduler/schedule/kernels/columns.h"
#include "scheduler/schedule/kernels/line_plan.h"

namespace laminate {

namespace {

using namespace Halide::Internal;

// ---- where weights lie

/// Weights in the layer's own order as (z, i) and tap.
template <class Make>
std::vector<float> made_weights(const Layer& layer, const LayerProblem& p, const Make& make) {
    const int64_t taps = p.y().kernel * p.x().kernel;
    const int64_t outputs = p[Dim::z] / p.groups;
    std::vector<float> values(static_cast<size_t>(p.weight_elements().value()));
    for (int64_t z = 0; z < p[Dim::z]; ++z) {
        for (int64_t i = 0; i < p[Dim::i]; ++i) {
            // ONNX: [output][input of the group], transposed [input][output of the group].
            const int64_t at = layer.kind == LayerKind::conv_transpose
                                   ? (z / outputs * p[Dim::i] + i) * outputs + z % outputs
                                   : z * p[Dim::i] + i;
            for (int64_t tap = 0; tap < taps; ++tap)
                values[static_cast<size_t>(at * taps + tap)] = make(z, i, tap);
        }
    }
    return values;
}

/// The network with other weights in the layers of a group: those of (z, i) are `scale` of the pair
/// times a number of the tap.
template <class Scale>
Network with_weights(Network network, const std::vector<LayerProblem>& problems,
                     const Scale& scale) {
    for (size_t k = 0; k < problems.size(); ++k) {
        const LayerProblem& p = problems[k];
        if (!p.has_weights()) continue;
        Layer& layer = network.layers[static_cast<size_t>(p.layer)];
        Constant constant = *layer.weights;
        constant.values = made_weights(layer, p, [&](int64_t z, int64_t i, int64_t tap) {
            // No simple relation holds between values, so that no transform of them is zero.
            const double of_tap =
                1 + std::fmod(0.618033988749895 * static_cast<double>(tap + 1), 1);
            return static_cast<float>(scale(k, z, i) * of_tap);
        });
        layer.weights = std::make_shared<const Constant>(std::move(constant));
    }
    return network;
}

// ---- what happens

int64_t volume(const std::array<int64_t, 6>& box) {
    return (box[1] - box[0]) * (box[3] - box[2]) * (box[5] - box[4]);
}

std::string to_text(const std::array<int64_t, 6>& box) {
    std::string text;
    for (size_t d = 0; d < 3; ++d) {
        text += (d == 0 ? "[" : " x [") + std::to_string(box[2 * d]) + "," +
                std::to_string(box[2 * d + 1]) + ")";
    }
    return text;
}

bool contains(const std::array<int64_t, 6>& box, int64_t z, int64_t y, int64_t x) {
    return z >= box[0] && z < box[1] && y >= box[2] && y < box[3] && x >= box[4] && x < box[5];
}

/// An array of floats that the code reaches by a name of its own.
struct NamedArray {
    enum class Kind { input, output, weights, ring } kind = Kind::input;
    int index = 0;       ///< input or nest; of rings that share an array -1
    /// Weights: among the constants. Rings that share an array: where rows lie that come in; before, they
    /// stay from step to step, and no kernel stores them there.
    int64_t offset = 0;
};

std::string ring_name(const LayerProblem& p) { return p.name + ".rows"; }

/// Names that the code binds to places in a block: by name, the block and the offset in elements.
std::map<std::string, std::pair<std::string, int64_t>> bound_arrays(const Stmt& body) {
    class Visitor : public IRVisitor {
    public:
        using IRVisitor::visit;
        void visit(const LetStmt* let) override {
            if (let->value.type().is_handle()) {
                class Parts : public IRVisitor {
                public:
                    using IRVisitor::visit;
                    void visit(const Variable* v) override { base = v->name; }
                    void visit(const UIntImm* n) override {
                        bytes = static_cast<int64_t>(n->value);
                    }
                    std::string base;
                    int64_t bytes = 0;
                } parts;
                let->value.accept(&parts);
                found[let->name] = {parts.base, parts.bytes / bytes_per_element};
            }
            let->body.accept(this);
        }
        std::map<std::string, std::pair<std::string, int64_t>> found;
    } visitor;
    body.accept(&visitor);
    return visitor.found;
}

/// A set of small numbers, not below zero.
class Numbers {
public:
    void insert(int64_t n) {
        if (n >= std::ssize(seen_)) seen_.resize(static_cast<size_t>(n) + 1);
        uint32_t& seen = seen_[static_cast<size_t>(n)];
        if (seen == round_) return;
        seen = round_;
        ++size_;
    }
    [[nodiscard]] int64_t size() const { return size_; }
    void clear() {
        ++round_;
        size_ = 0;
    }

private:
    std::vector<uint32_t> seen_;
    uint32_t round_ = 1;
    int64_t size_ = 0;
};

/// What one execution of a kernel, or one copy of an input, touched.
struct Touches {
    Numbers pairs;      ///< of weights, z * D_i + i
    Numbers weights;    ///< constants that are weights
    Numbers filled_up;  ///< constants that fill blocks of weights up
    Numbers stored;     ///< elements of a ring or of Y
    Numbers loaded;     ///< elements of an input
    void clear() {
        for (Numbers* numbers : {&pairs, &weights, &filled_up, &stored, &loaded}) numbers->clear();
    }
};

/// Rings in two parts, which lie in one array.
struct RowsOfSteps {
    int64_t blocks = 0;        ///< where the rows that come in with steps begin
    std::vector<Range> rings;  ///< of outputs, by nest

    /// Nothing of groups without line buffers.
    RowsOfSteps(const GroupSchedule& group, const std::vector<LayerProblem>& problems)
        : rings(problems.size()) {
        if (kernel_row(group.nests.front().kernel.kind).scope != KernelScope::nest) return;
        const LinePlan plan = line_plan(group, problems);
        blocks = plan.blocks_offset;
        const std::vector<GroupTensor> tensors = group_tensors(problems);
        for (size_t t = 0; t < tensors.size(); ++t) {
            const RingLayout& ring = plan.rings[t];
            if (!tensors[t].is_external())
                rings[static_cast<size_t>(tensors[t].producer)] = {ring.offset,
                                                                   ring.offset + ring.elements()};
        }
    }
    /// Rows of what a kernel has read move to another ring than that of its outputs.
    [[nodiscard]] bool has_moved(int nest, int64_t at) const {
        return at < blocks && !rings.at(static_cast<size_t>(nest)).meets({at, at + 1});
    }
};

class Checker {
public:
    Checker(const TracedGroup& traced, const GroupSchedule& group,
            const std::vector<LayerProblem>& problems)
        : code_(traced.code),
          places_(traced.places),
          problems_(problems),
          scope_(kernel_row(group.nests.front().kernel.kind).scope),
          tensors_(group_tensors(problems)),
          rows_of_steps_(group, problems),
          inputs_(code_.inputs.size()),
          of_map_(problems.size()) {
        counts_.inputs.resize(inputs_);
        counts_.weights.resize(problems.size());
        counts_.stored.resize(problems.size());
        for (size_t t = 0; t < inputs_; ++t) {
            const TensorReader& reader = tensors_[t].readers.front();
            input_shapes_.push_back(
                problems[static_cast<size_t>(reader.nest)].operand_extents(reader.operand));
            const auto [channels, rows, columns] = input_shapes_.back();
            arrays_.push_back({FirstReads(rows, columns), FirstReads(rows, columns), {}});
        }
        for (const LayerProblem& p : problems)
            weights_.push_back({FirstReads(p[Dim::i], 1), FirstReads(p[Dim::i], 1), {}});
        name_arrays();
    }

    TouchedCounts run() && {
        Watch watch{{EventKind::lifetime, EventKind::fetch, EventKind::compute, EventKind::read, EventKind::store}};
        for (const auto& [name, array] : names_) {
            watch.accesses.push_back(name);
            if (array.kind == NamedArray::Kind::ring) watch.stores_alone.insert(name);
            named_.push_back(array);
        }
        replay(code_, watch,
               {[this](const HappenedEvent& e) { happen(e); },
                [this](const Access& a) {
                    if (a.is_at_border) return;
                    for (int64_t lane = 0; lane < a.lanes; ++lane)
                        touch(named_[a.array], a.is_store, a.first + lane * a.stride);
                }});
        flush();
        for (size_t k = 0; k < problems_.size(); ++k) all_fetched_are_read(k);
        if (scope_ == KernelScope::map) check_map();
        return std::move(counts_);
    }

private:
    /// An array in the lifetime under way.
    struct Memory {
        FirstReads fetched;
        FirstReads read;
        std::vector<std::array<int64_t, 6>> boxes;  ///< fetched
    };
    enum class Doing { nothing, copying, computing };

    void name_arrays() {
        for (const CodeArray& array : code_.arrays) {
            if (array.role == ArrayRole::external_input)
                names_[array.name] = {NamedArray::Kind::input, array.index, 0};
            if (array.role == ArrayRole::external_output)
                names_[array.name] = {NamedArray::Kind::output, array.index, 0};
        }
        const auto bound = bound_arrays(code_.body);
        std::vector<int64_t> begins;
        for (const auto& [name, place] : bound) {
            if (place.first == "constants") begins.push_back(place.second);
        }
        std::sort(begins.begin(), begins.end());
        for (const auto& [name, place] : bound) {
            const auto k = std::ranges::find(problems_, name, ring_name) - problems_.begin();
            const bool has_steps = name == rows_of_steps;
            if (has_steps || (scope_ == KernelScope::nest && k < std::ssize(problems_)))
                names_[name] = {NamedArray::Kind::ring, has_steps ? -1 : static_cast<int>(k), 0};
            if (place.first != "constants") continue;
            const auto next = std::upper_bound(begins.begin(), begins.end(), place.second);
            const auto end = next == begins.end() ? places_.end() : places_.begin() + *next;
            const auto weight = std::find_if(places_.begin() + place.second, end,
                                             [](const WeightPlace& at) { return at.nest >= 0; });
            if (weight != end)
                names_[name] = {NamedArray::Kind::weights, weight->nest, place.second};
        }
    }

    void fail(const std::string& what) {
        constexpr size_t most = 5;
        if (counts_.wrong.size() < most) counts_.wrong.push_back(what);
    }
    [[nodiscard]] const LayerProblem& problem(int k) const {
        return problems_[static_cast<size_t>(k)];
    }
    /// Its weights are read while the rows of its input are finished.
    [[nodiscard]] bool is_scattered_sink(int k) const {
        return scope_ == KernelScope::chain && k + 1 == std::ssize(problems_) &&
               is_scattered(problem(k)) && !ColumnWindow(problem(k).x()).is_plain();
    }

    // ---- events

    void happen(const HappenedEvent& event) {
        const CodeArray& array = code_.arrays[event.array];
        const auto index = static_cast<size_t>(array.index);
        const bool is_input = array.role == ArrayRole::external_input;
        switch (event.kind) {
            case EventKind::lifetime:
                if (is_input || array.role == ArrayRole::external_weights)
                    begin_lifetime(is_input, index);
                return;
            case EventKind::fetch:
                return fetch(is_input, index, event.box);
            case EventKind::compute:
                flush();
                if (scope_ == KernelScope::map) return;
                doing_ = Doing::computing;
                nest_ = array.index;
                computed_ = event.box;
                return;
            case EventKind::read:
                if (scope_ == KernelScope::map) {
                    if (is_input) counts_.inputs[index] = Elements(volume(event.box));
                    return;
                }
                if (is_input) {
                    flush();
                    doing_ = Doing::copying;
                    nest_ = array.index;
                }
                read_ = event.box;
                if (!is_input && is_scattered_sink(array.index)) read_of_scattered(event.box);
                return;
            case EventKind::store:
                stored_ = event.box;
                return;
            default:
                return;
        }
    }

    void begin_lifetime(bool is_input, size_t index) {
        if (has_touched_) flush();
        Memory& memory = is_input ? arrays_[index] : weights_[index];
        if (!is_input) {
            // While the loops that a kernel executes in one go are gone through, lifetimes are one.
            const bool is_ahead =
                doing_ == Doing::computing && nest_ == static_cast<int>(index) && !has_touched_;
            if (is_ahead && begun_ahead_) return;
            begun_ahead_ = is_ahead;
            if (scope_ != KernelScope::map) all_fetched_are_read(index);
        }
        memory.fetched.begin_lifetime();
        memory.boxes.clear();
        if (scope_ != KernelScope::map) memory.read.begin_lifetime();
    }

    void fetch(bool is_input, size_t index, const std::array<int64_t, 6>& box) {
        if (has_touched_) flush();
        Memory& memory = is_input ? arrays_[index] : weights_[index];
        std::array<int64_t, 6> planes = box;
        if (!is_input) planes[4] = 0, planes[5] = 1;
        (void)memory.fetched.read(planes);
        memory.boxes.push_back(planes);
        fetched_ = box;
    }

    /// Its loads, which come before, belong to no execution of its kernel.
    void read_of_scattered(const std::array<int64_t, 6>& box) {
        const auto k = static_cast<size_t>(nest_);
        counts_.weights[k] += Elements(
            weights_[k].read.read({box[0], box[1], box[2], box[3], 0, 1}) * (box[5] - box[4]));
        const int64_t all = problems_[k][Dim::z] * problems_[k][Dim::i];
        if (of_scattered_.size() != all)
            fail(problems_[k].name + ": " + std::to_string(of_scattered_.size()) +
                 " of its weights are read before a row of it is finished");
    }

    void all_fetched_are_read(size_t k) {
        if (is_scattered_sink(static_cast<int>(k))) return;
        for (const auto& box : weights_[k].boxes) {
            for (int64_t z = box[0]; z < box[1]; ++z) {
                for (int64_t i = box[2]; i < box[3]; ++i) {
                    if (!weights_[k].read.has(z, i, 0))
                        fail(problem(static_cast<int>(k)).name + ": weights " + std::to_string(z) +
                             " " + std::to_string(i) + " are fetched and not read");
                }
            }
        }
        weights_[k].boxes.clear();
    }

    // ---- loads and stores

    void touch(const NamedArray& array, bool is_store, int64_t at) {
        has_touched_ = true;
        switch (array.kind) {
            case NamedArray::Kind::input:
                return touch_input(static_cast<size_t>(array.index), at);
            case NamedArray::Kind::weights:
                return touch_weights(array, at);
            case NamedArray::Kind::ring:
                if (array.index < 0 && rows_of_steps_.has_moved(nest_, at)) return;
                return touch_output(array.index < 0 ? nest_ : array.index, at);
            case NamedArray::Kind::output:
                return touch_y(array.index, is_store, at);
        }
    }

    void touch_input(size_t t, int64_t at) {
        const auto [channels, rows, columns] = input_shapes_[t];
        const int64_t c = at / (rows * columns), y = at / columns % rows, x = at % columns;
        if (at < 0 || c >= channels) return fail("X is read outside of it");
        if (scope_ != KernelScope::map &&
            (doing_ != Doing::copying || nest_ != static_cast<int>(t) || !contains(read_, c, y, x)))
            fail("X " + std::to_string(c) + " " + std::to_string(y) + " " + std::to_string(x) +
                 " is read, not in " + to_text(read_));
        touched_.loaded.insert(at);
        const bool is_first = arrays_[t].read.read(c, y, x);
        if (is_first && scope_ != KernelScope::map) counts_.inputs[t] += Elements(1);
    }

    void touch_weights(const NamedArray& array, int64_t at) {
        const auto constant = array.offset + at;
        const WeightPlace& place = places_.at(static_cast<size_t>(constant));
        const int k = array.index;
        const LayerProblem& p = problem(k);
        const bool is_map = scope_ == KernelScope::map;
        if (is_scattered_sink(k)) {
            if (place.nest == k) of_scattered_.insert(place.z * p[Dim::i] + place.i);
            return;
        }
        if (!is_map && (doing_ != Doing::computing || nest_ != k))
            return fail(p.name + ": weights are read where its kernel does not run");
        Touches& touched = is_map ? of_map_[static_cast<size_t>(k)] : touched_;
        if (place.nest < 0) return touched.filled_up.insert(constant);
        if (place.nest != k) return fail(p.name + ": reads weights of another layer");
        const auto which = [&] {
            return p.name + ": weights " + std::to_string(place.z) + " " + std::to_string(place.i);
        };
        Memory& memory = weights_[static_cast<size_t>(k)];
        touched.pairs.insert(place.z * p[Dim::i] + place.i);
        touched.weights.insert(constant);
        if (!is_map) {
            if (!contains(read_, place.z, place.i, read_[4]))
                fail(which() + " are read, not in " + to_text(read_));
            const bool is_asked = place.z >= computed_[0] && place.z < computed_[1];
            if (is_asked && !memory.fetched.has(place.z, place.i, 0))
                fail(which() + " are read and not fetched");
        }
        if (memory.read.read(place.z, place.i, 0))
            counts_.weights[static_cast<size_t>(k)] += Elements(p.y().kernel * p.x().kernel);
    }

    void touch_output(int k, int64_t at) {
        if (doing_ != Doing::computing || nest_ != k)
            return fail(problem(k).name + ": stored where its kernel does not run");
        touched_.stored.insert(at);
    }

    void touch_y(int k, bool is_store, int64_t at) {
        const LayerProblem& p = problem(k);
        const int64_t z = at / (p[Dim::y] * p[Dim::x]), y = at / p[Dim::x] % p[Dim::y],
                      x = at % p[Dim::x];
        if (at < 0 || z >= p[Dim::z]) return fail("Y is touched outside of it");
        if (scope_ != KernelScope::map &&
            (doing_ != Doing::computing || nest_ != k || !contains(computed_, z, y, x)))
            fail("Y " + std::to_string(z) + " " + std::to_string(y) + " " + std::to_string(x) +
                 " is touched, not in " + to_text(computed_));
        if (is_store) touched_.stored.insert(at);
    }

    // ---- an execution of a kernel, a copy of an input

    void flush() {
        if (scope_ != KernelScope::map) {
            if (doing_ == Doing::copying) flush_copy();
            if (doing_ == Doing::computing) flush_kernel();
            touched_.clear();
        }
        doing_ = Doing::nothing;
        has_touched_ = begun_ahead_ = false;
    }

    void flush_copy() {
        if (touched_.loaded.size() != volume(read_))
            fail("X: " + std::to_string(touched_.loaded.size()) + " elements are read of " +
                 to_text(read_));
        for (size_t d = 0; d < 3; ++d) {
            if (fetched_[2 * d] < read_[2 * d] || fetched_[2 * d + 1] > read_[2 * d + 1])
                fail("X: fetched " + to_text(fetched_) + ", read " + to_text(read_));
        }
    }

    void flush_kernel() {
        const LayerProblem& p = problem(nest_);
        const auto k = static_cast<size_t>(nest_);
        if (p.has_weights() && !is_scattered_sink(nest_)) check_weights_of(nest_, read_);
        const bool is_sink = k + 1 == problems_.size();
        if (scope_ == KernelScope::chain && !is_sink) return;
        // Every element that is wanted is stored; a ring has room for more.
        if (touched_.stored.size() != volume(is_sink ? computed_ : stored_))
            fail(p.name + ": " + std::to_string(touched_.stored.size()) +
                 " elements are stored of " + to_text(is_sink ? computed_ : stored_));
        counts_.stored[k] += Elements(touched_.stored.size());
    }

    /// The pairs read are those announced, and zeros fill them up as far as announced.
    void check_weights_of(int k, const std::array<int64_t, 6>& box) {
        const LayerProblem& p = problem(k);
        const int64_t real = std::min(box[1], p[Dim::z]) - box[0], inputs = box[3] - box[2];
        if (touched_.pairs.size() != real * inputs) {
            fail(p.name + ": " + std::to_string(touched_.pairs.size()) + " weights are read of " +
                 to_text(box));
            return;
        }
        // Each pair takes as many constants, whether it is real or not.
        const int64_t filled_up = (box[1] - box[0] - real) * inputs;
        if (touched_.filled_up.size() * real * inputs != touched_.weights.size() * filled_up)
            fail(p.name + ": " + std::to_string(touched_.filled_up.size()) +
                 " zeros fill up weights of " + to_text(box));
        for (int64_t z = p[Dim::z]; z < box[1]; ++z) {
            for (int64_t i = box[2]; i < box[3]; ++i) {
                if (weights_[static_cast<size_t>(k)].read.read(z, i, 0))
                    counts_.weights[static_cast<size_t>(k)] += Elements(box[5] - box[4]);
            }
        }
    }

    /// Everything that a window reads is read.
    void check_input_of_map(size_t t) {
        const TensorReader& reader = tensors_[t].readers.front();
        const LayerProblem& p = problems_[static_cast<size_t>(reader.nest)];
        const auto needed = [](const AxisWindow& w) {
            std::set<int64_t> coordinates;
            for (int64_t out = 0; out < w.out; ++out) {
                for (int64_t tap = 0; tap < w.kernel; ++tap) {
                    if (const std::optional<int64_t> in = w.input(out, tap))
                        coordinates.insert(*in);
                }
            }
            return coordinates;
        };
        const std::set<int64_t> rows = needed(p.y()), columns = needed(p.x());
        for (int64_t c = 0; c < input_shapes_[t][0]; ++c) {
            for (const int64_t y : rows) {
                for (const int64_t x : columns) {
                    if (!arrays_[t].read.has(c, y, x))
                        fail("X " + std::to_string(c) + " " + std::to_string(y) + " " +
                             std::to_string(x) + " is needed and not read");
                }
            }
        }
    }

    /// Everything that the outputs need is read, all weights and zeros, and all of Y is stored.
    void check_map() {
        for (size_t t = 0; t < inputs_; ++t) check_input_of_map(t);
        if (touched_.stored.size() != problems_.back().output_elements().value())
            fail("Y: " + std::to_string(touched_.stored.size()) + " elements are stored");
        for (size_t k = 0; k < problems_.size(); ++k) {
            const LayerProblem& p = problems_[k];
            if (p.has_weights()) {
                const Touches& touched = of_map_[k];
                const int64_t all = p[Dim::z] * p[Dim::i];
                if (touched.pairs.size() != all)
                    fail(p.name + ": " + std::to_string(touched.pairs.size()) +
                         " of its weights are read");
                // Each pair takes as many constants, whether it is real or not.
                const int64_t each = touched.weights.size() / all;
                counts_.weights[k] +=
                    Elements(touched.filled_up.size() / each * p.y().kernel * p.x().kernel);
            }
            counts_.stored[k] = Elements(touched_.stored.size());
        }
    }

    const GroupCode& code_;
    const std::vector<WeightPlace>& places_;
    const std::vector<LayerProblem>& problems_;
    KernelScope scope_;
    std::vector<GroupTensor> tensors_;
    RowsOfSteps rows_of_steps_;
    size_t inputs_;
    TouchedCounts counts_;
    std::map<std::string, NamedArray> names_;
    std::vector<NamedArray> named_;  ///< by Access::array
    std::vector<std::array<int64_t, 3>> input_shapes_;
    std::vector<Memory> arrays_, weights_;

    Doing doing_ = Doing::nothing;
    int nest_ = -1;  ///< or the input that is copied
    bool has_touched_ = false, begun_ahead_ = false;
    std::array<int64_t, 6> computed_{}, read_{}, stored_{}, fetched_{};
    Touches touched_;
    std::vector<Touches> of_map_;  ///< weights, by nest of a group with map kernels
    Numbers of_scattered_;  ///< pairs of weights
};

}  // namespace

TracedGroup traced_group(const Network& network, const GroupSchedule& group) {
    const std::vector<LayerProblem> problems = group_problems(network, group);
    // Numbers of pairs; two begins them, so that no constant is the same in both codes.
    std::vector<int64_t> first{2};
    for (const LayerProblem& p : problems)
        first.push_back(first.back() + (p.has_weights() ? p[Dim::z] * p[Dim::i] : 0));
    constexpr int64_t most = 20'000;
    if (first.back() > most) throw std::invalid_argument("too many weights to tell apart");
    const auto number = [&](size_t k, int64_t z, int64_t i) {
        return static_cast<double>(first[k] + z * problems[k][Dim::i] + i);
    };
    const auto one = [](size_t, int64_t, int64_t) { return 1.0; };
    TracedGroup traced{group_code(with_weights(network, problems, number), group, Events::all), {}};
    const std::vector<float> ones =
        group_code(with_weights(network, problems, one), group).constants;
    const std::vector<float>& numbered = traced.code.constants;
    traced.places.resize(numbered.size());
    for (size_t n = 0; n < numbered.size(); ++n) {
        if (numbered[n] == ones[n]) continue;  // no weight, or zero
        const double ratio = static_cast<double>(numbered[n]) / static_cast<double>(ones[n]);
        const auto pair = static_cast<int64_t>(std::llround(ratio));
        const auto nest = std::upper_bound(first.begin(), first.end(), pair) - first.begin() - 1;
        if (nest < 0 || nest >= std::ssize(problems) ||
            std::abs(ratio - static_cast<double>(pair)) > 0.1)
            throw std::logic_error("a constant that is not made from one pair of channels");
        const auto k = static_cast<size_t>(nest);
        const int64_t inside = pair - first[k];
        traced.places[n] = {static_cast<int>(nest), inside / problems[k][Dim::i],
                            inside % problems[k][Dim::i]};
    }
    return traced;
}

TouchedCounts touched_counts(const TracedGroup& traced, const GroupSchedule& group,
                             const std::vector<LayerProblem>& problems) {
    return Checker(traced, group, problems).run();
}

}  // namespace laminate
