#include "generators/kernels/line_buffers.h"

#include <algorithm>

#include "generators/ir/code_parts.h"
#include "generators/kernels/ir_names.h"
#include "generators/kernels/nest_code.h"
#include "generators/kernels/ring_slide.h"
#include "generators/kernels/winograd.h"
#include "generators/lowering/group_lowering.h"
#include "scheduler/schedule/kernels/layer_forms.h"
#include "scheduler/schedule/kernels/line_plan.h"

namespace laminate {

using namespace Halide::Internal;

namespace {

class LineBuffers final : public GroupLowering {
public:
    LineBuffers(const Network& network, const GroupSchedule& group, Events events,
                const TensorSizes* open)
        : GroupLowering(network, group, events, open),
          plan_(line_plan(group, problems_)),
          sizes_(open == nullptr ? line_sizes(plan_)
                                 : open_line_sizes(plan_, group, problems_, *open)),
          lanes_(plan_.lanes) {
        for (int t = 0; t < std::ssize(tensors_); ++t) {
            const std::string name =
                (tensor(t).is_external() ? input_name(t) : problem(tensor(t).producer).name) +
                ".rows";
            const RingLayout& at = plan_.rings[static_cast<size_t>(t)];
            // Bound where the buffer's lifetime begins (with_first), or where it slides
            // (around_body).
            const auto first = [&](const char* of) {
                return Variable::make(Halide::Int(32), name + of);
            };
            const bool has_all_channels = at.channels >= channels(t);
            rings_.push_back({at.parts ? rows_of_steps : name,
                              at,
                              sizes_.rings[static_cast<size_t>(t)],
                              has_all_channels ? Expr(0) : first(".first_channel"),
                              first(".first"),
                              {}});
            if (at.parts)
                rings_.back().step = {first(".step"), first(".step.last"), first(".step.block")};
        }
    }

    GroupCode code() {
        GroupCode code;
        Stmt body = lower();
        body = constants_.around(body);
        for (const RowRing& ring : rings_) {
            if (!ring.step)
                body = ir::with_array(ring.name, argument::scratch, expression(ring.size.offset), body);
        }
        if (std::ranges::any_of(rings_, [](const RowRing& ring) { return ring.step.has_value(); }))
            body = ir::with_array(rows_of_steps, argument::scratch, 0, body);
        body = ir::with_array(transforms_, argument::scratch,
                              expression(sizes_.transforms_offset), body);
        if (std::ranges::any_of(plan_.winograd, [](const std::optional<WinogradTile>& tile) {
                return tile && tile->weights > 0;
            }))
            body = ir::with_array(transformed_, argument::scratch, plan_.weights_offset, body);
        for (int t = 0; t < std::ssize(tensors_) && tensor(t).is_external(); ++t) {
            body = ir::with_pointer(input_name(t), argument::inputs, t, body);
            code.arrays.push_back({input_name(t), ArrayRole::external_input, t});
            code.inputs.push_back(tensor(t).name);
        }
        body = ir::with_pointer("Y", argument::outputs, 0, body);
        if (extents_.is_open()) body = with_sizes(static_cast<int>(code.inputs.size()), body);
        code.body = ir::without_negative_indices(simplify(body));
        std::move(constants_).move_into(code);
        const SizeFormula scratch_bytes = sizes_.scratch_elements * bytes_per_element;
        code.scratch_bytes = scratch_bytes.at(extents_.reference());
        if (extents_.is_open()) {
            code.open_scratch_bytes = scratch_bytes;
            code.size = extents_.reference();
        }
        code.strips = strip_count();
        code.arrays.push_back({"Y", ArrayRole::external_output, sink()});
        return code;
    }

protected:
    bool is_placed(Level level) const override { return is_placed_outside_kernels(level); }

    Stmt allocate_input(int t, Stmt body) override {
        return with_first(t, Dim::z, with_first(t, Dim::x, body));
    }
    Stmt allocate_output(int k, Stmt body) override {
        return k == sink() ? body : allocate_input(output_tensor(k), body);
    }
    Stmt around_body(Level level, Stmt body) override {
        for (int t = 0; t < std::ssize(tensors_); ++t) {
            for (const Dim axis : {Dim::z, Dim::x}) {
                const std::optional<Slide>& slide = slide_of(t, axis);
                if (slide && slide->at == level) body = slid(t, axis, *slide, body);
            }
            if (ring(t).step && placement_of(group_, tensor(t)).compute == level)
                body = stepped(t, level, body);
        }
        return body;
    }
    Stmt allocate_weights(int, Stmt body) override { return body; }
    Stmt copy_weights(int, const Interval&, const Interval&) override { return {}; }
    Stmt begin_output(const Box&) override { return {}; }
    Stmt end_output(const Box&) override { return {}; }
    Stmt begin_call(int, const Box&) override { return {}; }
    /// Zeros follow the call: until a kernel stores rows, their block may be another tensor's.
    Stmt end_call(int k, const Box& box) override {
        const int t = output_tensor(k);
        return ir::sequence({zero_columns(t, box), zero_columns_after(t, box)});
    }

    Interval weights_read(int k, const Interval& z) const override {
        const auto together = kernel_row(nest(k).kernel.kind).channels_together;
        return together == nullptr ? z : filled_up(z, together(nest(k).kernel));
    }
    /// Rings have room for vectors that run over the end of a row; Y has not, nor have sums that
    /// go on.
    Box stored(int k, const Box& box, const Interval& i) const override {
        const Kernel& kernel = nest(k).kernel;
        if (k == sink() || !is_whole(i, problem(k)[Dim::i])) return box;
        if (kernel.kind == KernelKind::vectors) return {box[0], box[1], filled_up(box[2], lanes_)};
        if (kernel.kind != KernelKind::rows) return box;
        const int64_t tile = kernel[KernelSize::columns] * lanes_;
        Interval columns = filled_up(box[2], tile);
        if (kernel[KernelSize::half] == 1)
            columns.end -= (columns.end - columns.begin) / size(tile) * size(lanes_ / 2);
        return {box[0], box[1], columns};
    }

    Stmt copy_input(int t, const Box& box) override {
        const std::string name = input_name(t);
        const Expr in_rows = extent_of(t, Dim::y), in_columns = extent_of(t, Dim::x);
        const Stmt rows = for_each(name + ".copy.y", box[1], [&](const Expr& y) {
            return for_each(name + ".copy.c", box[0], [&](const Expr& c) {
                const Expr from = (c * in_rows + y) * in_columns + box[2].begin;
                return copied_row(t, from, ring(t).index(c, y, box[2].begin),
                                  box[2].end - box[2].begin);
            });
        });
        return ir::sequence({zero_columns(t, box), rows, zero_columns_after(t, box)});
    }

    /// The columns that a box brings in away from the borders, if they are known.
    [[nodiscard]] std::optional<int64_t> usual_columns(int t) const {
        const Placement& placement = placement_of(group_, tensor(t));
        const TensorReader& reader = tensor(t).readers.front();
        if (tensor(t).is_shared() || placement.store != placement.compute ||
            placement.store.nest != reader.nest)
            return std::nullopt;
        const AxisWindow& w = problem(reader.nest).x();
        if (w.transposed || w.is_sampled() || problem(reader.nest).repeats(reader.operand, Dim::x) ||
            nest(reader.nest)[Dim::x] >= w.out)
            return std::nullopt;
        return (nest(reader.nest)[Dim::x] - 1) * w.stride + w.span();
    }

    /// A row of a box. Most rows have the usual length, for which the code has no loops.
    Stmt copied_row(int t, const Expr& from, const Expr& to, const Expr& count) const {
        const auto row = [&](const Expr& columns) {
            return ir::sequence(
                {asked_ahead(t, from, columns), copied_columns(t, from, to, columns)});
        };
        const auto usual = usual_columns(t);
        const Expr known = simplify(count);
        if (!usual || is_const(known)) return row(known);
        return IfThenElse::make(known == size(*usual), row(size(*usual)), row(known));
    }
    Stmt copied_columns(int t, const Expr& from, const Expr& to, const Expr& count) const {
        const std::string name = input_name(t);
        const auto copy = [&](const Expr& at, int64_t n, const Expr& predicate) {
            return ir::store(
                ring(t).name,
                ir::load(name, lanes_from(from + at, n), ir::Alignment::element, predicate),
                lanes_from(to + at, n), ir::Alignment::element, predicate);
        };
        const Stmt vectors =
            for_each(name + ".copy.v", {0, count / size(lanes_)},
                     [&](const Expr& v) { return copy(v * size(lanes_), lanes_, {}); });
        // What reads the rest of a row soon gets it sooner from stores of single elements than from
        // a masked one, if they are few.
        constexpr int64_t few = 4;
        const Expr whole = count / size(lanes_) * size(lanes_);
        const Expr behind = count - whole;
        const Stmt elements = guarded(behind <= size(few),
                                      for_each(name + ".copy.x", {whole, count},
                                               [&](const Expr& x) { return copy(x, 1, {}); }));
        const Stmt masked = guarded(
            behind > size(few),
            copy(whole, lanes_, lanes_from(whole, lanes_) < broadcast(count, lanes_)));
        return ir::sequence({vectors, elements, masked});
    }

    /// Asks for the same piece of a row two boxes ahead, so that it lies in the nearest cache when
    /// it is copied. One box ahead leaves too little time where boxes are small.
    Stmt asked_ahead(int t, const Expr& from, const Expr& count) const {
        const auto channels = channels_asked_ahead(group_, problems_, tensor(t));
        if (!channels) return {};
        const std::string name = input_name(t);
        const auto [all_channels, in_rows, in_columns] = tensor_extents(t);
        const int64_t distance = *channels * in_rows * in_columns;
        constexpr int64_t ahead = 2;
        const Expr elements = size(all_channels * in_rows * in_columns);
        const Expr next = Halide::min(from + size(ahead * distance), elements - count);
        // A piece may begin anywhere in a line: its last element lies in a line of its own, unless
        // it is close to the last one asked for.
        constexpr int64_t close = 4;
        const Expr last = count - 1;
        return ir::sequence(
            {for_each(name + ".next", {0, (count + size(lanes_ - 1)) / size(lanes_)},
                      [&](const Expr& v) { return ir::prefetch(name, next + v * size(lanes_)); }),
             guarded(last % size(lanes_) >= size(close), ir::prefetch(name, next + last))});
    }

    Stmt innermost(int k, int first_loop) override {
        Ranges range;
        for (const Dim d : all_dims) range[static_cast<size_t>(d)] = covered(k, d, first_loop - 1);
        if (first_loop == 0 && nest(k).loops.front().band == Band::strip) {
            throw std::logic_error("a strip loop inside a kernel");
        }
        NestCode code{problem(k),
                      layer(k),
                      nest(k).kernel,
                      {},
                      k == sink() ? nullptr : &ring(output_tensor(k)),
                      constants_,
                      extents_,
                      k};
        for (size_t operand = 0; operand < problem(k).inputs.size(); ++operand)
            code.inputs.push_back(&ring(tensor_of(k, static_cast<int>(operand))));
        return as_kernel(problem(k).name, kernel_code(code, range));
    }

private:
    Stmt kernel_code(const NestCode& code, const Ranges& range) {
        switch (code.kernel.kind) {
            case KernelKind::rows:
                return rows_code(code, range);
            case KernelKind::channels:
                return channels_code(code, range);
            case KernelKind::phases:
                return phases_code(code, range);
            case KernelKind::vectors:
                return vectors_code(code, range);
            case KernelKind::winograd_rows:
            case KernelKind::winograd_channels:
                return winograd_kernel(code.nest, code, range);
            default:
                break;
        }
        throw std::logic_error("a kernel of a whole group inside a nest");
    }

    static Interval filled_up(const Interval& all, int64_t step) {
        const Expr steps = (all.end - all.begin + size(step - 1)) / size(step);
        return {all.begin, all.begin + steps * size(step)};
    }

    // ---- rows and padding

    [[nodiscard]] const RowRing& ring(int t) const { return rings_[static_cast<size_t>(t)]; }
    [[nodiscard]] const Expr& first_of(int t, Dim axis) const {
        return axis == Dim::z ? ring(t).first_channel : ring(t).first_column;
    }
    [[nodiscard]] const std::optional<Slide>& slide_of(int t, Dim axis) const {
        return axis == Dim::z ? ring(t).at.channel_slide : ring(t).at.column_slide;
    }
    /// The integer in memory that holds the first coordinate of a ring that slides.
    [[nodiscard]] std::string held(int t, Dim axis) const {
        return first_of(t, axis).as<Variable>()->name + ".held";
    }

    /// A lifetime begins.
    Stmt with_first(int t, Dim axis, const Stmt& body) {
        const auto* first = first_of(t, axis).as<Variable>();
        if (first == nullptr) return body;
        if (!slide_of(t, axis)) {
            const Level store = placement_of(group_, tensor(t)).store;
            return LetStmt::make(first->name, simplify(needed(t, axis, store, false).begin), body);
        }
        // Behind everything, so that the first body to need anything begins anew.
        constexpr int32_t nothing = 1 << 30;
        return Allocate::make(held(t, axis), Halide::Int(32), Halide::MemoryType::Stack, {1},
                              const_true(), Block::make(set_held(t, axis, nothing), body));
    }
    [[nodiscard]] Stmt set_held(int t, Dim axis, const Expr& first) const {
        return Store::make(held(t, axis), first, 0, Halide::Parameter(), const_true(),
                           ModulusRemainder());
    }

    /// The body of the loop that a ring slides with.
    Stmt slid(int t, Dim axis, const Slide& slide, const Stmt& body) {
        const RowRing& r = ring(t);
        const Expr load = Load::make(Halide::Int(32), held(t, axis), 0, Halide::Buffer<>(),
                                     Halide::Parameter(), const_true(), ModulusRemainder());
        const Interval need = needed(t, axis, slide.at, false);
        // What fills a shared tensor's gap comes in, too.
        const Expr begin = tensor(t).is_shared()
                               ? Halide::min(need.begin, missing(t, axis, slide.at).begin)
                               : need.begin;
        const Expr reads = is_read(t, slide.at) && begin < need.end;
        const Stmt step = let(r.name + ".before", load, [&](const Expr& before) {
            const Expr next = SlideStep{before, begin, need.end}.next(slide);
            return let(r.name + ".next", next, [&](const Expr& first) {
                const Expr distance = first - before;
                const Stmt moved =
                    axis == Dim::z ? moved_channels(r, distance, lanes_)
                                   : moved_columns(r, distance, first, extent_of(t, Dim::x), lanes_);
                return ir::sequence({guarded(distance > 0, moved), set_held(t, axis, first)});
            });
        });
        const auto* name = first_of(t, axis).as<Variable>();
        return ir::sequence({guarded(reads, step), LetStmt::make(name->name, load, body)});
    }

    /// The body in which rows of a ring in two parts come in. When it ends, the last of them move to
    /// where a later one finds them.
    Stmt stepped(int t, Level level, const Stmt& body) {
        const RowRing& r = ring(t);
        const std::string name = problem(tensor(t).producer).name;
        const Interval rows = missing(t, Dim::y, level);
        const Expr count = simplify(rows.end - rows.begin);
        const std::vector<RingParts::Block>& blocks = r.at.parts->blocks;
        const auto of_block = [&](int64_t RingParts::Block::*member) {
            Expr value = size(blocks.front().*member);
            for (const RingParts::Block& other : blocks)
                value = Halide::select(count == size(other.rows), size(other.*member), value);
            return simplify(value);
        };
        const Expr moved = Halide::max(r.step->first, rows.end - size(r.at.parts->kept));
        const Stmt move = for_each(name + ".kept", {moved, rows.end}, [&](const Expr& row) {
            const auto at = [&](const Expr& begin, const Expr& vector) {
                return lanes_from(simplify(begin + vector * size(lanes_)), lanes_);
            };
            const Expr from = r.step->block + (row - r.step->first) * r.row_elements();
            return for_each(name + ".kept.v", {0, simplify(r.row_elements() / size(lanes_))},
                            [&](const Expr& v) {
                                return ir::store(r.name,
                                                 ir::load(r.name, at(from, v), ir::Alignment::element),
                                                 at(r.kept_row(row), v), ir::Alignment::element);
                            });
        });
        const auto named = [](const Expr& variable, const Expr& value, const Stmt& inside) {
            return LetStmt::make(variable.as<Variable>()->name, simplify(value), inside);
        };
        return named(r.step->first, rows.begin + of_block(&RingParts::Block::in_ring),
                     named(r.step->last, rows.end - 1 - r.step->first,
                           named(r.step->block, of_block(&RingParts::Block::offset),
                                 r.at.parts->kept == 0 ? body : ir::sequence({body, move}))));
    }

    /// Zero columns left of the picture, in the new rows of a tensor.
    Stmt zero_columns(int t, const Box& box) {
        const RowRing& to = ring(t);
        const auto& readers = tensor(t).readers;
        const auto reads_left = [&](const TensorReader& r) {
            return problem(r.nest).x().pad_begin > 0 || problem(r.nest).x().transposed;
        };
        if (std::none_of(readers.begin(), readers.end(), reads_left)) return {};
        const Stmt fill = for_each(to.name + ".left.y", box[1], [&](const Expr& y) {
            return for_each(to.name + ".left.c", box[0], [&](const Expr& channel) {
                return for_each(
                    to.name + ".left.x", {Halide::min(to.first_column, 0), 0}, [&](const Expr& x) {
                        return ir::store(to.name, make_zero(Halide::Float(32)),
                                         to.index(channel, y, x), ir::Alignment::element);
                    });
            });
        });
        // Rows begin with the box that has their first column.
        return guarded(box[2].begin <= 0, fill);
    }

    /// Rows or columns of a whole tensor.
    [[nodiscard]] Expr extent_of(int t, Dim d) const {
        return extents_.read_expression(tensor(t).readers.front(), d);
    }

    /// Whether a reader computes tiles of minimal filtering, and whether from strips of columns.
    [[nodiscard]] bool reads_tiles(const TensorReader& reader) const {
        return plan_.winograd[static_cast<size_t>(reader.nest)].has_value();
    }
    [[nodiscard]] bool reads_strips(const TensorReader& reader) const {
        return reads_tiles(reader) && !plan_.has_whole_rows[static_cast<size_t>(reader.nest)];
    }

    /// Columns behind the picture that any reader's windows reach.
    [[nodiscard]] SizeFormula columns_behind(int t) const {
        SizeFormula beyond;
        for (const TensorReader& reader : tensor(t).readers) {
            const AxisWindow& w = problem(reader.nest).x();
            if (w.is_sampled() || problem(reader.nest).repeats(reader.operand, Dim::x)) continue;
            const SizeFormula out = extents_.out(reader.nest, Dim::x);
            const SizeFormula outputs = !reads_tiles(reader)   ? out
                                        : reads_strips(reader) ? out + (WinogradTile::columns - 1)
                                                               : round_up(out, WinogradTile::columns);
            const SizeFormula last_read =
                w.transposed ? (out + (w.pad_begin - 1)) / w.stride
                             : (outputs - 1) * w.stride + (w.span() - 1 - w.pad_begin);
            beyond = most(beyond, last_read + 1 - extents_.in(reader.nest, Dim::x));
        }
        return beyond;
    }

    /// Zero columns right of the picture: after the kernel, whose last vectors ran over them.
    Stmt zero_columns_after(int t, const Box& box) {
        const RowRing& to = ring(t);
        const Expr columns = extent_of(t, Dim::x);
        const SizeFormula beyond = columns_behind(t);
        if (beyond.is_constant() && beyond.constant() <= 0) return {};
        const Expr zeros = make_zero(Halide::Float(32, static_cast<int>(lanes_)));
        // Only the box that reaches the picture's edge; an inner one leaves the columns to its
        // right alone.
        const Stmt fill = for_each(to.name + ".right.y", box[1], [&](const Expr& y) {
            return for_each(to.name + ".right.c", box[0], [&](const Expr& channel) {
                if (to.at.column_slide) {
                    return zero_columns_behind(to, to.index(channel, y, to.first_column),
                                               to.first_column, columns, lanes_);
                }
                // As many as any reader needs, or as there is room for: a lifetime inside a loop over
                // columns may end before the last of them.
                const Expr room = (to.pitch() - columns + to.first_column) / size(lanes_);
                const Expr vectors = expression(ceil_div(beyond, lanes_));
                return for_each(
                    to.name + ".right.v", {0, Halide::min(vectors, room)}, [&](const Expr& v) {
                        const Expr at = to.index(channel, y, columns + v * size(lanes_));
                        return ir::store(to.name, zeros, lanes_from(at, lanes_),
                                         ir::Alignment::element);
                    });
            });
        });
        const Expr at_edge = simplify(box[2].end >= columns);
        if (is_const_one(at_edge)) return fill;
        if (std::ranges::none_of(tensor(t).readers,
                                 [&](const TensorReader& reader) { return reads_strips(reader); }))
            return IfThenElse::make(at_edge, fill);
        // What the last tile of a strip reads behind it: less than a vector, for which there is room.
        const Stmt behind = for_each(to.name + ".behind.y", box[1], [&](const Expr& y) {
            return for_each(to.name + ".behind.c", box[0], [&](const Expr& channel) {
                return ir::store(to.name, zeros,
                                 lanes_from(to.index(channel, y, box[2].end), lanes_),
                                 ir::Alignment::element);
            });
        });
        return IfThenElse::make(at_edge, fill, behind);
    }

    Stmt winograd_kernel(int k, const NestCode& nest, const Ranges& range) {
        const LayerProblem& p = nest.p;
        const WinogradTile& tile = *plan_.winograd[static_cast<size_t>(k)];
        const std::string prefix = unique(p.name);
        ParameterNames names;
        const auto append = [&](const std::string& name, Packing::Source source,
                                Packing::Order order = Packing::Order::by_row) {
            return constants_.append(
                prefix + name,
                {.layer = k, .source = source, .order = order, .block = tile.channels}, nest.layer,
                p);
        };
        names.bias = append(".bias", Packing::Source::bias);
        names.slope = append(".slope", Packing::Source::slope);
        WinogradNames code;
        code.input = nest.input().name;
        code.output = nest.output_array();
        constexpr Packing::Source weights = Packing::Source::weights;
        if (tile.has_singles)
            code.weights[0] = append(".transformed1", weights, Packing::Order::winograd_1);
        if (tile.weights > 0) {
            code.plain_weights = append(".plain", weights, Packing::Order::by_tap);
            code.weights[1] = transformed_;
        } else if (tile.has_bands) {
            code.weights[1] = append(".transformed" + std::to_string(tile.rows), weights,
                                     tile.rows == 2   ? Packing::Order::winograd_2
                                     : tile.rows == 4 ? Packing::Order::winograd_4
                                                      : Packing::Order::winograd_6);
        }
        code.scratch = transforms_;
        code.input_row = [&](const Expr& row) { return simplify(nest.input().index(0, row, 0)); };
        code.input_plane = nest.input().pitch();
        code.output_row = [&](const Expr& row) { return simplify(nest.output_index(0, row, 0)); };
        code.output_plane = nest.output_plane();
        code.input_rows = nest.in(Dim::y);
        code.output_rows = nest.out(Dim::y);
        code.columns = plan_.has_whole_rows[static_cast<size_t>(k)] ? Interval{0, nest.out(Dim::x)}
                                                                    : range[2];
        code.finished = [&](const Expr& channel, const Expr& sum) {
            return nest.finished(range, names, channel,
                                 sum + per_channel(names.bias, channel, sum.type().lanes()));
        };
        return winograd_rows(p, tile, unit_of(nest.kernel), std::move(code), range[1]);
    }

    LinePlan plan_;
    LineSizes sizes_;
    int64_t lanes_;
    std::vector<RowRing> rings_;  ///< by tensor
    NamedConstants constants_;
    std::string transforms_ = unique("transforms");
    std::string transformed_ = unique("transformed");  ///< weights of a step
};

}  // namespace

GroupCode line_buffer_code(const Network& network, const GroupSchedule& group, Events events,
                           const TensorSizes* open) {
    return LineBuffers(network, group, events, open).code();
}

}  // namespace laminate
