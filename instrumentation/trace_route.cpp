#include "instrumentation/trace_route.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>

#include "base/aligned.h"
#include "generators/compile/executable.h"
#include "generators/ir/arrays.h"

namespace laminate {

using namespace Halide::Internal;
using Halide::Expr;

namespace {

/// Sums of the events of one array.
struct ArrayEvents {
    int64_t loads = 0;
    int64_t stores = 0;
    int64_t largest = 0;  ///< elements of the largest realization
};

struct SeenEvents {
    std::map<std::string, ArrayEvents> arrays;
    int64_t live = 0;
    int64_t live_peak = 0;
};

/// Code without a user context passes none of our data to Halide's handler, so it is global and one
/// trace runs at a time.
SeenEvents* current_events = nullptr;
std::mutex one_trace;

int32_t on_event(Halide::JITUserContext*, const halide_trace_event_t* event) {
    ArrayEvents& array = current_events->arrays[event->func];
    const int64_t elements = event->dimensions > 0 ? event->coordinates[0] : 0;
    switch (event->event) {
        case halide_trace_load:
            array.loads += event->type.lanes;
            break;
        case halide_trace_store:
            array.stores += event->type.lanes;
            break;
        case halide_trace_begin_realization:
            array.largest = std::max(array.largest, elements);
            current_events->live += elements;
            current_events->live_peak = std::max(current_events->live_peak, current_events->live);
            break;
        case halide_trace_end_realization:
            current_events->live -= elements;
            break;
        default:
            break;
    }
    return 0;
}

/// The blocks of one array recorded so far.
struct BlockEvents {
    std::string array;
    std::string buffer;
    halide_trace_event_code_t moved = halide_trace_load;
    BlockStream blocks;
};
BlockEvents* current_blocks = nullptr;

int32_t on_block_event(Halide::JITUserContext*, const halide_trace_event_t* event) {
    if (event->event == halide_trace_begin_realization && current_blocks->buffer == event->func) {
        current_blocks->blocks.emplace_back();
    } else if (event->event == current_blocks->moved && current_blocks->array == event->func) {
        current_blocks->blocks.back().push_back(event->coordinates[0]);
    }
    return 0;
}

using TraceHandler = int32_t (*)(Halide::JITUserContext*, const halide_trace_event_t*);

/// Runs a body with events. The caller holds `one_trace` and has set what the handler writes to.
void run_traced(const Stmt& body, const GroupCode& code, TraceHandler handler,
                const std::vector<std::vector<float>>& inputs, std::vector<float>& output) {
    const TracedJitGroup jit(body);
    Halide::JITHandlers handlers;
    handlers.custom_trace = handler;
    JITSharedRuntime::set_default_handlers(handlers);
    const AlignedFloats constants(code.constants);
    std::vector<const float*> arrays;
    for (const std::vector<float>& input : inputs) arrays.push_back(input.data());
    float* outputs = output.data();
    const int status = jit.function()(arrays.data(), &outputs, constants.data(), nullptr, 0,
                                      static_cast<int32_t>(code.strips));
    JITSharedRuntime::set_default_handlers(Halide::JITHandlers());
    if (status != 0) throw std::runtime_error("traced code returned " + std::to_string(status));
}

class AddEvents : public IRMutator {
public:
    explicit AddEvents(const GroupCode& code) {
        for (const CodeArray& array : code.arrays) tracked_.insert(array.name);
        realized_ = tracked_;
    }
    /// Traces loads and stores of one array, and lifetimes of another.
    AddEvents(const std::string& array, const std::string& buffer)
        : tracked_{array}, realized_{buffer} {}
    using IRMutator::visit;

protected:
    Stmt visit(const Store* store) override {
        std::vector<Stmt> parts;
        add_loads(store->value, const_true(), parts);
        if (tracked_.count(store->name) > 0)
            parts.push_back(
                event(store->name, halide_trace_store, store->value.type(), store->index));
        parts.push_back(store);
        return ir::sequence(parts);
    }
    Stmt visit(const Allocate* allocation) override {
        Stmt body = mutate(allocation->body);
        if (realized_.count(allocation->name) > 0) {
            Expr elements = 1;
            for (const Expr& extent : allocation->extents) elements = elements * extent;
            body = ir::sequence({event(allocation->name, halide_trace_begin_realization,
                                       allocation->type, elements),
                                 body,
                                 event(allocation->name, halide_trace_end_realization,
                                       allocation->type, elements)});
        }
        return Allocate::make(allocation->name, allocation->type, allocation->memory_type,
                              allocation->extents, allocation->condition, body,
                              allocation->new_expr, allocation->free_function);
    }

private:
    static Stmt event(const std::string& name, halide_trace_event_code_t code,
                      const Halide::Type& type, const Expr& coordinate) {
        const Expr no_value =
            Call::make(Halide::type_of<void*>(), Call::make_struct, {}, Call::Intrinsic);
        const Expr first = type.lanes() == 1 ? coordinate : extract_lane(coordinate, 0);
        const Expr coordinates = Call::make(Halide::type_of<int32_t*>(), Call::make_struct,
                                            {simplify(first)}, Call::Intrinsic);
        // The arguments of the runtime's halide_trace_helper after the user context.
        return Evaluate::make(
            Call::make(Halide::Int(32), "halide_trace_helper",
                       {Expr(name), no_value, coordinates, static_cast<int>(type.code()),
                        type.bits(), type.lanes(), static_cast<int>(code), 0, 0, 1, Expr("")},
                       Call::Extern));
    }

    /// Adds an event per load of a tracked array, under the condition of the load.
    void add_loads(const Expr& e, const Expr& condition, std::vector<Stmt>& parts) {
        class Visitor : public IRVisitor {
        public:
            Visitor(AddEvents& owner, Expr condition, std::vector<Stmt>& parts)
                : owner_(owner), condition_(std::move(condition)), parts_(parts) {}
            using IRVisitor::visit;
            void visit(const Load* load) override {
                IRVisitor::visit(load);
                if (owner_.tracked_.count(load->name) == 0) return;
                const Stmt one = event(load->name, halide_trace_load, load->type, load->index);
                const Expr simple = simplify(condition_);
                parts_.push_back(is_const_one(simple) ? one : IfThenElse::make(simple, one));
            }
            void visit(const Call* call) override {
                if (!call->is_intrinsic(Call::if_then_else)) return IRVisitor::visit(call);
                call->args[0].accept(this);
                owner_.add_loads(call->args[1], condition_ && call->args[0], parts_);
                if (call->args.size() > 2)
                    owner_.add_loads(call->args[2], condition_ && !call->args[0], parts_);
            }

        private:
            AddEvents& owner_;
            Expr condition_;
            std::vector<Stmt>& parts_;
        } visitor(*this, condition, parts);
        e.accept(&visitor);
    }

    std::set<std::string> tracked_;
    std::set<std::string> realized_;
};

}  // namespace

GroupCounts traced_counts(const GroupCode& code, const GroupSchedule& group,
                          const std::vector<std::vector<float>>& inputs,
                          std::vector<float>& output) {
    SeenEvents events;
    {
        const std::scoped_lock lock(one_trace);
        current_events = &events;
        run_traced(AddEvents(code).mutate(code.body), code, on_event, inputs, output);
        current_events = nullptr;
    }

    GroupCounts counts;
    for (const Nest& nest : group.nests) counts.layers.push_back({nest.layer, {}, {}, {}, {}});
    for (const std::string& tensor : code.inputs) counts.inputs.push_back({tensor, {}, {}});
    for (const CodeArray& array : code.arrays) {
        const ArrayEvents& seen = events.arrays[array.name];
        const auto index = static_cast<size_t>(array.index);
        const bool is_input =
            array.role == ArrayRole::external_input || array.role == ArrayRole::input_buffer;
        LayerCounts& layer = counts.layers.at(is_input ? 0 : index);
        const Elements size(seen.largest);
        switch (array.role) {
            case ArrayRole::external_input:
                counts.inputs.at(index).reads = Elements(seen.loads);
                break;
            case ArrayRole::external_weights:
                layer.weight_reads = Elements(seen.loads);
                break;
            case ArrayRole::external_output:
                counts.output_reads = Elements(seen.loads);
                counts.output_writes = Elements(seen.stores);
                break;
            case ArrayRole::input_buffer:
                counts.inputs.at(index).buffer = size;
                break;
            case ArrayRole::weights_buffer:
                layer.weight_buffer = size;
                layer.macs = Macs(seen.loads);
                break;
            case ArrayRole::output_buffer:
                layer.output_buffer = size;
                break;
            case ArrayRole::sums:
                break;  // of code that runs, which this route does not trace
        }
        counts.sum_total += size;
    }
    counts.live_total = Elements(events.live_peak);
    return counts;
}

BlockStream traced_blocks(const GroupCode& code, ArrayRole array,
                          const std::vector<std::vector<float>>& inputs,
                          std::vector<float>& output) {
    const std::map<ArrayRole, ArrayRole> buffer_of{
        {ArrayRole::external_input, ArrayRole::input_buffer},
        {ArrayRole::external_weights, ArrayRole::weights_buffer},
        {ArrayRole::external_output, ArrayRole::output_buffer}};
    const auto name_of = [&](ArrayRole role) {
        const auto found = std::find_if(code.arrays.begin(), code.arrays.end(),
                                        [&](const CodeArray& a) { return a.role == role; });
        return found->name;
    };
    BlockEvents events;
    events.array = name_of(array);
    events.buffer = name_of(buffer_of.at(array));
    if (array == ArrayRole::external_output) events.moved = halide_trace_store;
    {
        const std::scoped_lock lock(one_trace);
        current_blocks = &events;
        run_traced(AddEvents(events.array, events.buffer).mutate(code.body), code, on_block_event,
                   inputs, output);
        current_blocks = nullptr;
    }
    return std::move(events.blocks);
}

}  // namespace laminate
