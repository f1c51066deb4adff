#include "scheduler/explore/planner/line_buffers.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/indexed.h"
#include "scheduler/counts/two_level/two_level.h"
#include "scheduler/explore/compute_levels.h"
#include "scheduler/explore/planner/runs.h"
#include "scheduler/schedule/buffer_shapes.h"
#include "scheduler/schedule/kernel_legality.h"
#include "scheduler/schedule/kernels/columns.h"
#include "scheduler/schedule/kernels/kernel.h"
#include "scheduler/schedule/kernels/layer_forms.h"
#include "scheduler/schedule/kernels/layout/map_channels.h"
#include "scheduler/schedule/kernels/layout/winograd_rows.h"

namespace laminate {

namespace {

bool winograd_pays(const LayerProblem& p) { return kernel_pays(p, KernelKind::winograd_rows); }

bool has_winograd_layer(const std::vector<LayerProblem>& problems) {
    return std::any_of(problems.begin(), problems.end(), winograd_pays);
}

/// New rows that so many rows of output need.
int64_t rows_read(const AxisWindow& w, int64_t rows) {
    if (w.is_sampled()) return ceil_div(rows * w.sampling.numerator, w.sampling.denominator);
    return w.transposed ? ceil_div(rows, w.stride) : rows * w.stride;
}

/// Rows of each layer per iteration of its own row loop. Where a long row with several output
/// channels keeps the vector registers busy, one row (or those of a Winograd tile) makes the
/// line buffer before the layer smallest. Elsewhere a layer computes the rows that its consumer
/// newly needs, so that in the steady state there is one tile of the layer per tile of its
/// consumer.
std::vector<int64_t> rows_per_iteration(const std::vector<LayerProblem>& problems,
                                        const LineBufferSizes& sizes) {
    constexpr int64_t long_row = 128;
    constexpr int64_t several_channels = 6;
    std::vector<int64_t> all(problems.size()), wanted(problems.size(), 0);
    wanted.back() = sizes.rows;
    for (size_t k = problems.size(); k-- > 0;) {
        const LayerProblem& p = problems[k];
        const bool one_is_enough = k + 1 < problems.size() && p[Dim::x] >= long_row &&
                                   p[Dim::z] / p.groups >= several_channels;
        const bool has_tiles = sizes.tile_rows >= 4 ? tiles_of_four_pay(p) : winograd_pays(p);
        const int64_t fewest = has_tiles ? sizes.tile_rows : 1;
        all[k] = std::clamp<int64_t>(one_is_enough ? fewest : wanted[k], 1, p[Dim::y]);
        const int64_t read = rows_read(p.y(), all[k]);
        for (size_t j = 0; j < k; ++j) {
            if (std::any_of(p.inputs.begin(), p.inputs.end(), [&](const LayerInput& input) {
                    return input.tensor == problems[j].output;
                }))
                wanted[j] = std::max(wanted[j], read);
        }
    }
    return all;
}

GroupSchedule line_buffer_group(const std::vector<LayerProblem>& problems,
                                const LineBufferSizes& sizes) {
    GroupSchedule group;
    const int sink = static_cast<int>(problems.size()) - 1;
    const std::vector<int64_t> rows = rows_per_iteration(problems, sizes);
    for (int k = 0; k <= sink; ++k) {
        const LayerProblem& p = problems[static_cast<size_t>(k)];
        Nest nest;
        nest.layer = p.name;
        nest.tile = p.extent;
        nest.tile[Dim::y] = rows[static_cast<size_t>(k)];
        if (k == sink) {
            const auto strip = [&](Dim d, int64_t size) {
                if (size <= 0 || size >= p[d]) return;
                nest.loops.push_back({d, Band::strip});
                nest.strip[static_cast<size_t>(d) - 1] = size;
            };
            strip(Dim::y, sizes.strip_rows);
            strip(Dim::x, sizes.strip_columns);
        }
        for (const Band band : {Band::outer, Band::inner}) {
            for (const Dim d : all_dims) nest.loops.push_back({d, band});
        }
        group.nests.push_back(std::move(nest));
    }
    const Nest& last = group.nests.back();
    const int strips = static_cast<int>(last.loops.size()) - 8;
    const Level store = strips == 0 ? Level{} : Level{sink, strips - 1};
    // New lines of a layer's input come in at the layer's own row loop. The first tile of a strip
    // needs the whole window of every layer; this way it fills the line buffers a few rows at a time
    // too. Lines that several layers read come in at the row loop around them all.
    const auto lines = [&](const GroupTensor& tensor) {
        std::vector<Level> levels = common_path(group, tensor);
        while (levels.back() != store && group.loop(levels.back()) != Loop{Dim::y, Band::outer})
            levels.pop_back();
        return Placement{store, levels.back()};
    };
    const std::vector<GroupTensor> tensors = group_tensors(problems);
    for (auto tensor = tensors.rbegin(); tensor != tensors.rend() && !tensor->is_external();
         ++tensor)
        group.nest(tensor->producer).y = lines(*tensor);
    for (const GroupTensor& tensor : tensors) {
        const TensorReader& first = tensor.readers.front();
        if (tensor.is_external())
            group.nest(first.nest).x.push_back({first.operand, lines(tensor)});
    }
    for (int k = 0; k <= sink; ++k) {
        if (problems[static_cast<size_t>(k)].has_weights()) group.nest(k).w = Placement{};
    }
    const Level y{sink, last.find({Dim::x, Band::inner})};
    group.nests.back().y = {y, y};
    return group;
}

/// The most rows of the last layer for each row of the layers with weights before it that no other such
/// layer comes behind; at least one.
int64_t rows_per_weighted_row(const std::vector<LayerProblem>& problems) {
    std::vector<char> is_passed_on(problems.size(), 0);  // to the last layer, by others without weights
    is_passed_on.back() = 1;
    int64_t most = 1;
    for (size_t k = problems.size(); k-- > 0;) {
        if (!is_passed_on[k]) continue;
        if (problems[k].has_weights()) {
            most = std::max(most, problems.back()[Dim::y] / problems[k][Dim::y]);
            continue;
        }
        for (size_t j = 0; j < k; ++j) {
            if (std::ranges::any_of(problems[k].inputs, [&](const LayerInput& input) {
                    return input.tensor == problems[j].output;
                }))
                is_passed_on[j] = 1;
        }
    }
    return most;
}

/// Rows of the last layer for each row of the one before it; `through_joins`: also of those before layers
/// without weights, if such are last.
int64_t rows_per_input_row(const std::vector<LayerProblem>& problems, bool through_joins = false) {
    const LayerProblem& sink = problems.back();
    const Sampling& s = sink.y().sampling;
    const int64_t rows = sink.y().is_sampled()   ? std::max<int64_t>(1, s.denominator / s.numerator)
                         : sink.y().transposed ? sink.y().stride
                                               : 1;
    return through_joins && !sink.has_weights() ? std::max(rows, rows_per_weighted_row(problems)) : rows;
}

/// Whether a single layer is so narrow that its weights outweigh its rows. Computing all rows
/// together reads the weights once.
bool takes_all_rows(const std::vector<LayerProblem>& problems) {
    constexpr int64_t narrow = 48;
    return problems.size() == 1 && winograd_pays(problems.front()) &&
           problems.front()[Dim::x] <= narrow;
}

/// Candidate rows of the sink's tile, preferred first. The first gives the layers before the sink
/// enough rows for a register tile as well.
std::vector<int64_t> row_choices(const std::vector<LayerProblem>& problems, int64_t tile_rows) {
    const LayerProblem& sink = problems.back();
    const int64_t up = rows_per_input_row(problems, tile_rows > 2);
    std::vector<int64_t> rows;
    if (takes_all_rows(problems)) rows.push_back(sink[Dim::y]);
    for (const int64_t r : {std::max<int64_t>(tile_rows, 4) * up, 4 * up, 2 * up, up, int64_t{1}}) {
        const int64_t clamped = std::min(r, sink[Dim::y]);
        if (std::find(rows.begin(), rows.end(), clamped) == rows.end()) rows.push_back(clamped);
    }
    return rows;
}

/// Full width first, then ever narrower strips in whole vectors. Every number of equal strips is
/// tried, because the widest that fits may be a tenth faster than one of two thirds its width.
std::vector<int64_t> column_choices(int64_t extent) {
    constexpr int64_t vector_width = 16;
    std::vector<int64_t> columns{0};
    for (int64_t parts = 2; parts <= extent; ++parts) {
        const int64_t width = ceil_div(ceil_div(extent, parts), vector_width) * vector_width;
        if (width < 2 * vector_width) break;
        if (width < extent && width != columns.back()) columns.push_back(width);
    }
    return columns;
}

class Planner {
public:
    Planner(const Network& network, const LineBufferOptions& options)
        : network_(network), options_(options) {}

    struct Choice {
        GroupSchedule group;
        Elements accesses;
        Elements live;
    };

    using Chosen = std::variant<Choice, Elements>;

    /// The first sizes that fit, widest lines first. If none fits, the smallest memory seen. Equal
    /// for segments of the same shape.
    [[nodiscard]] Chosen choose(const std::vector<LayerId>& segment) {
        const std::vector<LayerProblem> problems = layer_problems(network_, segment);
        const auto [known, is_new] = chosen_.try_emplace(shape_key(problems));
        if (is_new) known->second = chosen_for(problems);
        Chosen chosen = known->second;
        if (auto* choice = std::get_if<Choice>(&chosen)) {
            for (size_t k = 0; k < problems.size(); ++k)
                choice->group.nests[k].layer = problems[k].name;
        }
        return chosen;
    }

    /// Moves each Add into the group of one of its operands. Layers computed from their whole input
    /// add while they store. Within a budget, any group that still fits with the Add saves the
    /// accesses of its own output.
    void take_adds(std::vector<GroupSchedule>& groups) {
        std::map<TensorId, GroupSchedule*> by_output;
        for (GroupSchedule& group : groups) {
            const TensorId output =
                network_.layer(network_.find_layer(group.nests.back().layer)).output;
            if (!network_.is_output(output) && network_.consumers(output).size() == 1)
                by_output[output] = &group;
        }
        std::set<LayerId> grouped;
        for (const GroupSchedule& group : groups) {
            for (const Nest& nest : group.nests) grouped.insert(network_.find_layer(nest.layer));
        }
        for (LayerId id = 0; id < std::ssize(network_.layers); ++id) {
            if (network_.layer(id).kind != LayerKind::add || !is_schedulable(network_, id) ||
                grouped.contains(id))
                continue;
            const LayerProblem add = layer_problem(network_, id);
            GroupSchedule* taken = nullptr;
            std::optional<WithAdd> best;
            for (const LayerInput& operand : add.inputs) {
                const auto found = by_output.find(operand.tensor);
                if (found == by_output.end()) continue;
                std::optional<WithAdd> with = with_add(*found->second, id);
                if (!with || (best && best->price < with->price)) continue;
                best = std::move(with);
                taken = found->second;
            }
            if (best) *taken = std::move(best->group);
        }
    }

private:
    /// The most weights of a 3x3 layer once they are transformed.
    [[nodiscard]] Bytes most_transformed_weights(const std::vector<LayerProblem>& problems) const {
        Elements most;
        for (const LayerProblem& p : problems) {
            if (!winograd_pays(p)) continue;
            most = std::max(
                most, Elements(WinogradTile::frequencies(options_.tile_rows) * p[Dim::i] * p[Dim::z]));
        }
        return to_bytes(most);
    }

    [[nodiscard]] Chosen chosen_for(const std::vector<LayerProblem>& problems) {
        // Small maps are faster layer by layer than row by row: their tensors stay in a core's
        // caches, so fusion saves no accesses that cost time.
        const auto goes_alone = [&](const LayerProblem& p) {
            return a_map_kernel_pays(p, options_.winograd) || goes_to_winograd_map(p);
        };
        if (problems.size() > 1 && !options_.memory &&
            std::any_of(problems.begin(), problems.end(), goes_alone))
            return Elements{};
        const bool takes_what_it_needs = !options_.memory && problems.size() == 1;
        // A budget is met even at some cost. Without one, a group that repeats much work or goes
        // row by row gains nothing.
        const int64_t repeated_percent = options_.memory ? 25 : 5;
        const int64_t fewest_rows =
            options_.memory
                ? 1
                : std::min(problems.back()[Dim::y], 2 * rows_per_input_row(problems));
        const int64_t rows_of_tiles = std::min(problems.back()[Dim::y],
                                               options_.tile_rows * rows_per_input_row(problems, true));
        const bool has_winograd = has_winograd_layer(problems);
        const bool by_winograd = !options_.memory && options_.winograd && has_winograd;
        const bool by_column_tiles =
            !options_.memory && options_.winograd && column_chain_pays(problems);
        const auto fits = [&](const LineBufferSizes& sizes, Elements live) {
            if (takes_what_it_needs) return true;
            if (options_.memory) return to_bytes(live) <= *options_.memory;
            const Bytes cache = options_.second_level_cache;
            if (to_bytes(live) <=
                (by_winograd ? most_winograd_memory(cache) : Bytes(2 * cache.value())))
                return true;
            if (!by_column_tiles) return false;
            const int64_t all = problems.back()[Dim::x];
            return column_tiles_memory(
                       problems, rows_per_iteration(problems, sizes),
                       sizes.strip_columns > 0 ? std::min(sizes.strip_columns, all) : all) <=
                   most_column_tiles_memory(cache);
        };
        const int64_t base = macs(problems, {1, 0, 0});
        std::optional<Elements> least;
        for (const int64_t columns : column_choices(problems.back()[Dim::x])) {
            // Strips of columns leave seams and empty lanes. Narrower ones are better than fewer rows.
            const bool cuts_tiles = columns != 0 && !options_.memory && has_winograd;
            if (cuts_tiles && most_transformed_weights(problems) > options_.weights_of_strips) break;
            for (const int64_t rows : row_choices(problems, options_.tile_rows)) {
                if (rows < (cuts_tiles ? rows_of_tiles : fewest_rows)) continue;
                LineBufferSizes sizes{rows, 0, columns, options_.tile_rows};
                const LineBufferCounts::Counts& counts = counts_of(problems, sizes);
                if (counts.macs.value() > base + base / 100 * repeated_percent) continue;
                if (!fits(sizes, counts.live)) {
                    least = std::min(least.value_or(counts.live), counts.live);
                    continue;
                }
                if (cuts_tiles && !fills_tiles(problems, sizes)) continue;
                sizes.strip_rows = strip_rows(problems, sizes, counts.macs.value());
                const bool is_divided =
                    sizes.strip_rows > 0 && sizes.strip_rows < problems.back()[Dim::y];
                if (!is_divided && columns == 0)
                    sizes.strip_columns = columns_of_thread(problems, sizes, counts);
                const LineBufferCounts::Counts& stripped = counts_of(problems, sizes);
                return Choice{line_buffer_group(problems, sizes), stripped.accesses, stripped.live};
            }
        }
        if (problems.size() == 1 && options_.memory) {
            const std::vector<GroupPoint>& points = tiled(problems);
            for (const GroupPoint& point : points) {
                least = std::min(least.value_or(point.live_total), point.live_total);
                if (to_bytes(point.live_total) > *options_.memory) continue;
                GroupSchedule group = point.group;
                group.nests.front().layer = problems.front().name;
                return Choice{std::move(group), point.accesses, point.live_total};
            }
        }
        // Zero: sizes that fit repeat more than allowed, and so would those of a longer group.
        return least.value_or(Elements{});
    }

    /// Whether strips of columns add little to the columns that layers for Winograd compute, in vectors
    /// of tiles.
    [[nodiscard]] static bool fills_tiles(const std::vector<LayerProblem>& problems,
                                          const LineBufferSizes& sizes) {
        constexpr int64_t columns_of_vector = 64;
        constexpr double most = 1.07;
        int64_t in_strips = 0, whole = 0;
        const std::vector<BoxRanges> asked =
            asked_boxes(line_buffer_group(problems, sizes), problems).nests;
        for (size_t k = 0; k < problems.size(); ++k) {
            if (!winograd_pays(problems[k])) continue;
            whole += problems[k][Dim::x];
            for (const AxisRanges& axis : asked[k]) {
                if (axis.dim != Dim::x) continue;
                for (const auto& [range, times] : axis.times)
                    in_strips += times * round_up(range.size(), columns_of_vector);
            }
        }
        return static_cast<double>(in_strips) <= most * static_cast<double>(whole);
    }

    /// tiled_layer_points() of layers of the same shape.
    const std::vector<GroupPoint>& tiled(const std::vector<LayerProblem>& problems) {
        return shared().tiled_layers.points(problems, options_.threads);
    }

    /// A group extended by an Add of its output. Among several, the one with the lowest price is
    /// taken.
    struct WithAdd {
        GroupSchedule group;
        int64_t price = 0;
    };
    [[nodiscard]] std::optional<WithAdd> with_add(const GroupSchedule& group, LayerId id) {
        std::vector<LayerId> layers;
        for (const Nest& nest : group.nests) layers.push_back(network_.find_layer(nest.layer));
        const LayerProblem first = layer_problem(network_, layers.front());
        layers.push_back(id);
        const std::vector<LayerProblem> problems = layer_problems(network_, layers);
        const bool is_whole = ends_in_add(problems) &&
                              (a_map_kernel_pays(first, options_.winograd) || goes_to_winograd_map(first)) &&
                              group.nests.front().loops.front().band != Band::strip;
        if (is_whole) {
            GroupSchedule with =
                laminate::line_buffer_group(network_, layers, {group.nests.back()[Dim::y], 0, 0});
            // Pointwise layers add in registers as they store; others need one more copy.
            if (!options_.memory) return WithAdd{std::move(with), is_pointwise(first) ? 0 : 1};
            const GroupCounts counts = two_level_counts(problems, with, &cache_);
            if (to_bytes(counts.live_total) <= *options_.memory)
                return WithAdd{std::move(with), added_accesses(group, counts.accesses())};
        }
        if (!options_.memory) return {};
        const auto choice = choose(layers);
        const auto* found = std::get_if<Choice>(&choice);
        if (!found) return {};
        const int64_t more = added_accesses(group, found->accesses);
        // On its own, the Add reads its operands and writes their sum.
        const int64_t alone =
            (problems.back().input_elements() + problems.back().output_elements()).value();
        if (more >= alone) return {};
        return WithAdd{found->group, more};
    }
    [[nodiscard]] int64_t added_accesses(const GroupSchedule& group, Elements with) {
        return with.value() -
               two_level_counts(group_problems(network_, group), group, &cache_).accesses().value();
    }

    /// Threads divide the channels and rows of such a layer without strips.
    [[nodiscard]] bool goes_to_winograd_map(const LayerProblem& p) const {
        return options_.winograd && !options_.memory && kernel_pays(p, KernelKind::winograd_map) &&
               (options_.wide_maps || !is_wide_map(p));
    }

    [[nodiscard]] SharedByPlans& shared() {
        return options_.shared != nullptr ? *options_.shared : own_;
    }
    [[nodiscard]] const LineBufferCounts::Counts& counts_of(const std::vector<LayerProblem>& problems,
                                                            const LineBufferSizes& sizes) {
        return shared().counts.of(problems, sizes, cache_);
    }
    [[nodiscard]] int64_t macs(const std::vector<LayerProblem>& problems,
                               const LineBufferSizes& sizes) {
        return counts_of(problems, sizes).macs.value();
    }

    /// Whether threads divide the channels or pixels of a single layer's kernel, without strips. A budget may
    /// be too small for the copy of the input that a layer with a window works from.
    [[nodiscard]] bool kernel_is_divided(const std::vector<LayerProblem>& problems) const {
        if (problems.size() > 1) return false;
        const LayerProblem& p = problems.front();
        const bool has_room = !options_.memory || is_pointwise(p) || p.groups > 1;
        return (has_room && a_map_kernel_pays(p, options_.winograd)) || goes_to_winograd_map(p);
    }
    /// Whether a single layer's kernel without strips is map_channels by a panel of windows, which threads
    /// divide, too.
    [[nodiscard]] bool has_panel_of_windows(const std::vector<LayerProblem>& problems) const {
        const LayerProblem& p = problems.front();
        return problems.size() == 1 && !options_.memory &&
               panel_of_windows_pays(p, options_.winograd) &&
               map_channels_layout(p, options_.unit).has_panel;
    }

    /// Columns per strip of layers with too few rows for threads to share, such as a softmax of one row or
    /// convolutions of sound; 0 for no strips. Strips are not worth it if their halos add more than a quarter
    /// to the work, or if the busiest thread keeps more than three quarters of the columns.
    [[nodiscard]] int64_t columns_of_thread(const std::vector<LayerProblem>& problems,
                                            LineBufferSizes sizes,
                                            const LineBufferCounts::Counts& whole) {
        constexpr int64_t half_vector = 8, vectors = 16, fewest_columns = 32;
        constexpr int64_t most_repeated_percent = 25, most_kept_percent = 75;
        constexpr Elements enough_outputs{1 << 15};
        constexpr Macs enough_macs{1 << 18};
        const LayerProblem& sink = problems.back();
        const bool has_weights = std::ranges::any_of(problems, &LayerProblem::has_weights);
        const bool has_enough =
            has_weights ? whole.macs >= enough_macs
                        : problems.size() == 1 && sink.output_elements() >= enough_outputs;
        if (options_.threads <= 1 || kernel_is_divided(problems) || has_panel_of_windows(problems) ||
            !has_enough || sink[Dim::x] < fewest_columns || has_winograd_layer(problems))
            return 0;
        sizes.strip_rows = 0;
        sizes.strip_columns = round_up(ceil_div(sink[Dim::x], strips_of_columns(problems)),
                                       has_weights ? vectors : half_vector);
        const int64_t longest =
            longest_share(sink[Dim::x], sizes.strip_columns, options_.threads);
        const int64_t repeated = macs(problems, sizes) - whole.macs.value();
        const bool pays = 100 * longest <= most_kept_percent * sink[Dim::x] &&
                          repeated <= whole.macs.value() / 100 * most_repeated_percent;
        return pays ? sizes.strip_columns : 0;
    }

    /// One strip for each thread; of a layer whose weights do not stay in the nearer caches, so many that the
    /// input of a strip does, since each block of output channels reads it again.
    [[nodiscard]] int64_t strips_of_columns(const std::vector<LayerProblem>& problems) const {
        constexpr Bytes near_weights{256 << 10};
        const LayerProblem& p = problems.front();
        const Bytes input = to_bytes(p.input_elements());
        if (problems.size() > 1 || to_bytes(p.weight_elements()) <= near_weights) return options_.threads;
        const int64_t kept = options_.second_level_cache.value() * 3 / 4;
        return round_up(std::max<int64_t>(1, ceil_div(input.value(), kept)), options_.threads);
    }

    /// Rows per strip, so that threads can share the work; 0 for no strips. Each strip repeats the
    /// halo rows of its neighbours.
    [[nodiscard]] int64_t strip_rows(const std::vector<LayerProblem>& problems,
                                     const LineBufferSizes& sizes, int64_t without_strips) {
        if (options_.threads <= 1) return 0;
        if (kernel_is_divided(problems)) return 0;
        // Strips of columns repeat their halos anyway, and suffice where they can be shared evenly.
        if (const int64_t columns = problems.back()[Dim::x]; sizes.strip_columns > 0) {
            const int64_t longest = longest_share(columns, sizes.strip_columns, options_.threads);
            constexpr int64_t uneven_percent = 3;
            if (100 * longest * options_.threads <= (100 + uneven_percent) * columns) return 0;
        }
        const int64_t extent = problems.back()[Dim::y];
        if (sizes.rows == extent && takes_all_rows(problems)) {
            constexpr int64_t pair = 2;
            return ceil_div(ceil_div(extent, options_.threads), pair) * pair;
        }
        // Two strips per thread even out disturbances by other work; one is the choice where two
        // repeat too much. Strips are whole tiles of rows, or else pairs (winograd.h) or any number
        // of rows, where threads would otherwise wait for each other.
        struct Attempt {
            int64_t strips;
            int64_t percent;
            double price;
        };
        const bool wants_pairs = has_winograd_layer(problems);
        int64_t best = 0;
        double least = 0;
        std::set<int64_t> known;
        for (const Attempt& attempt :
             {Attempt{2 * options_.threads, 3, 1.0}, Attempt{options_.threads, 25, 1.03}}) {
            for (const int64_t unit : {sizes.rows, int64_t{2}, int64_t{1}}) {
                if (unit == 1 && wants_pairs) continue;
                LineBufferSizes with = sizes;
                with.strip_rows = ceil_div(ceil_div(extent, attempt.strips), unit) * unit;
                if (!known.insert(with.strip_rows).second) continue;
                const int64_t needed = macs(problems, with);
                if (needed - without_strips > without_strips / 100 * attempt.percent) continue;
                const double ragged = with.strip_rows % sizes.rows == 0 ? 1.0 : 1.03;
                const double cost =
                    attempt.price * ragged * static_cast<double>(std::max<int64_t>(1, needed)) *
                    static_cast<double>(longest_share(extent, with.strip_rows, options_.threads));
                if (best == 0 || cost < least) {
                    least = cost;
                    best = with.strip_rows;
                }
            }
        }
        return best;
    }

    const Network& network_;
    const LineBufferOptions& options_;
    TwoLevelCache cache_;
    SharedByPlans own_;
    std::map<std::vector<int64_t>, Chosen> chosen_;
};

Schedule in_order(const Network& network, std::vector<GroupSchedule> groups) {
    std::sort(groups.begin(), groups.end(), [&](const GroupSchedule& a, const GroupSchedule& b) {
        return network.find_layer(a.nests.back().layer) < network.find_layer(b.nests.back().layer);
    });
    return {network, std::move(groups)};
}

}  // namespace

const LineBufferCounts::Counts& LineBufferCounts::of(const std::vector<LayerProblem>& problems,
                                                     const LineBufferSizes& sizes, TwoLevelCache& cache) {
    std::unique_lock<std::mutex> lock(mutex_);
    Group& group = groups_[shape_key(problems)][{sizes.rows, sizes.strip_rows, sizes.strip_columns,
                                                 sizes.tile_rows}];
    lock.unlock();
    std::call_once(group.is_counted, [&] {
        const GroupCounts found = two_level_counts(problems, line_buffer_group(problems, sizes), &cache);
        group.counts = {found.accesses(), found.live_total, found.macs()};
    });
    return group.counts;
}

int64_t longest_share(int64_t extent, int64_t strip_rows, int threads) {
    std::vector<int64_t> rows(static_cast<size_t>(threads), 0);
    for (int64_t begin = 0; begin < extent; begin += strip_rows) {
        *std::min_element(rows.begin(), rows.end()) += std::min(strip_rows, extent - begin);
    }
    return *std::max_element(rows.begin(), rows.end());
}

GroupSchedule line_buffer_group(const Network& network, const std::vector<LayerId>& segment,
                                const LineBufferSizes& sizes) {
    return line_buffer_group(layer_problems(network, segment), sizes);
}

namespace {

/// Whether the layer by itself needs no code: the session has the parts of a Concat computed in
/// their places (runtime/tensor_placement.h).
bool is_joined_in_place(const Network& network, LayerId id) {
    return network.layer(id).kind == LayerKind::concat;
}

}  // namespace

std::variant<Schedule, Infeasible> line_buffer_schedule(const Network& network,
                                                        const LineBufferOptions& options) {
    Planner planner(network, options);
    std::vector<GroupSchedule> groups;
    Elements demand;
    // A group's cost is found anew for each of its lengths.
    constexpr size_t longest_group = 24;
    const Readers readers = all_readers(network);
    for (const std::vector<LayerId>& chain :
         options.joins ? planned_runs(network) : schedulable_chains(network)) {
        struct Best {
            Elements accesses;
            int64_t groups = 0;
            size_t begin = 0;
            GroupSchedule last;
        };
        std::vector<std::optional<Best>> best(chain.size() + 1);
        best[0] = Best{};
        const std::vector<size_t> last_reader = last_readers(network, readers, chain);
        for (size_t begin = 0; begin < chain.size(); ++begin) {
            size_t read_until = 0;
            for (size_t end = begin + 1; end <= std::min(chain.size(), begin + longest_group);
                 ++end) {
                if (end > begin + 1) read_until = std::max(read_until, last_reader[end - 2]);
                if (read_until >= end) continue;
                const std::vector<LayerId> segment(
                    chain.begin() + static_cast<std::ptrdiff_t>(begin),
                    chain.begin() + static_cast<std::ptrdiff_t>(end));
                const auto choice = planner.choose(segment);
                if (const Elements* least = std::get_if<Elements>(&choice)) {
                    if (segment.size() == 1) demand = std::max(demand, *least);
                    break;  // a longer segment needs more still
                }
                if (!best[begin]) continue;
                const auto& found = std::get<Planner::Choice>(choice);
                Best candidate{best[begin]->accesses + found.accesses, best[begin]->groups + 1,
                               begin, found.group};
                std::optional<Best>& known = best[end];
                if (!known || std::tie(candidate.accesses, candidate.groups) <
                                  std::tie(known->accesses, known->groups))
                    known = std::move(candidate);
            }
        }
        if (!best.back()) continue;
        for (size_t end = chain.size(); end > 0; end = best[end]->begin) {
            const bool is_alone = best[end]->begin + 1 == end;
            if (!is_alone || !is_joined_in_place(network, chain[end - 1]))
                groups.push_back(best[end]->last);
        }
    }
    // What does not fit may be a layer that no schedule has to cover.
    if (demand != Elements{} && options.joins) {
        LineBufferOptions chains = options;
        chains.joins = false;
        return line_buffer_schedule(network, chains);
    }
    if (demand != Elements{})
        return Infeasible{demand, Elements(options.memory->value() / bytes_per_element)};
    planner.take_adds(groups);
    return in_order(network, std::move(groups));
}

Schedule with_layers_alone(const Network& network, const Schedule& schedule, int threads) {
    constexpr int64_t fewest_columns = 4;
    LineBufferOptions options;
    options.threads = threads;
    Planner planner(network, options);
    std::vector<GroupSchedule> groups = schedule.groups();
    IndexVector<char, LayerId> is_grouped(network.layers.size(), 0);
    for (const GroupSchedule& group : groups) {
        for (const Nest& nest : group.nests) is_grouped[network.find_layer(nest.layer)] = 1;
    }
    std::set<LayerId> in_runs;
    for (const std::vector<LayerId>& run : planned_runs(network))
        in_runs.insert(run.begin(), run.end());
    for (LayerId id = 0; id < std::ssize(network.layers); ++id) {
        if (is_grouped[id] != 0 || !is_schedulable(network, id)) continue;
        const LayerProblem p = layer_problem(network, id);
        if ((in_runs.contains(id) && !is_joined_in_place(network, id)) || is_elementwise(p.operation) ||
            (is_pool(p) && p[Dim::x] >= fewest_columns)) {
            // Threads divide the elements or channels of what these kernels compute.
            const bool needs_no_strips = kernel_pays(p, KernelKind::map_elementwise) ||
                                         kernel_pays(p, KernelKind::map_pooling);
            groups.push_back(needs_no_strips
                                 ? line_buffer_group(network, {id})
                                 : std::get<Planner::Choice>(planner.choose({id})).group);
        }
    }
    return in_order(network, std::move(groups));
}

Schedule layer_by_layer_schedule(const Network& network, int threads, bool winograd) {
    LineBufferOptions options;
    options.winograd = winograd;
    options.threads = threads;
    Planner planner(network, options);
    std::vector<GroupSchedule> groups;
    for (const std::vector<LayerId>& chain : schedulable_chains(network)) {
        for (const LayerId id : chain)
            groups.push_back(std::get<Planner::Choice>(planner.choose({id})).group);
    }
    return in_order(network, std::move(groups));
}

}  // namespace laminate
