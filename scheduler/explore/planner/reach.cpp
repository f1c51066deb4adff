#include "scheduler/explore/planner/reach.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/units.h"
#include "nets/network/picture_views.h"
#include "scheduler/schedule/kernels/columns.h"
#include "scheduler/schedule/kernels/kernel.h"
#include "scheduler/schedule/problem.h"
#include "scheduler/schedule/window.h"

namespace laminate {

namespace {

/// Period, in rows, of Winograd's pairs and of the planner's row tiles.
constexpr int64_t winograd_rows = 4;

/// Coordinates of a tensor per coordinate of the network's input, in lowest terms.
struct Rate {
    int64_t numerator = 1;
    int64_t denominator = 1;
    [[nodiscard]] Rate times(int64_t up, int64_t down) const {
        const int64_t n = checked_multiply(numerator, up), d = checked_multiply(denominator, down);
        const int64_t common = std::gcd(n, d);
        return {n / common, d / common};
    }
    friend bool operator==(const Rate&, const Rate&) = default;
};

[[noreturn]] void refuse(const Network& network, const std::string& message) {
    throw InputError(network.name + ": cannot run in windows: " + message);
}

/// How a layer moves along one axis, away from the borders.
class Moves {
public:
    Moves(const Network& network, const Layer& layer, size_t axis)
        : window_(axis_window(network, layer, axis)) {
        if (layer.kind == LayerKind::general) {
            const std::vector<int64_t>& map = network.tensor(layer.inputs[0]).dims;
            if (repetitions_of(layer.general, map)) return;
            if (const auto first = first_of_part(layer.general, map))
                window_.pad_begin = -(*first)[1 + axis];
            if (samples_pixels(layer.general, map))
                periodic_ = periodic_axis(sampled_axis(layer.general, 2 + axis), map[2 + axis]);
        }
        window_.in = std::numeric_limits<int64_t>::max();
    }

    [[nodiscard]] const AxisWindow& window() const { return window_; }
    [[nodiscard]] Rate rate(const Rate& input) const {
        if (periodic_) return input.times(periodic_->period, periodic_->advance);
        return window_.transposed ? input.times(window_.stride, 1) : input.times(1, window_.stride);
    }
    [[nodiscard]] Range reads(const Range& outputs) const {
        if (!periodic_) return window_of(window_, outputs);
        // Whole periods, so that every phase counts.
        const int64_t first = floor_div(outputs.begin, periodic_->period) * periodic_->advance,
                      last = floor_div(outputs.end - 1, periodic_->period) * periodic_->advance;
        Range read;
        for (const std::vector<int64_t>& bases : periodic_->bases) {
            for (const int64_t base : bases) read.extend({first + base, last + base + 1});
        }
        return read;
    }

private:
    AxisWindow window_;
    std::optional<PeriodicAxis> periodic_;
};

/// Why a layer has no bounded reach; nullopt if it has one.
std::optional<std::string> hindrance(const Network& network, const Layer& layer) {
    const std::string kind = to_string(layer.kind);
    for (const TensorId id : layer.inputs) {
        if (network.tensor(id).dims.size() != 4) return kind + " of no feature map";
    }
    switch (layer.kind) {
        case LayerKind::gemm:
        case LayerKind::flatten:
        case LayerKind::global_average_pool:
            return kind + " reads the whole picture";
        case LayerKind::general:
            if (layer.general.kind == GeneralKind::unary) return {};  // element by element
            if (!is_schedulable(network, network.producer(layer.output)))
                return kind + " may read anything";
            if (layer.general.kind == GeneralKind::resample) {
                const std::vector<int64_t>& map = network.tensor(layer.inputs[0]).dims;
                const auto axes = open_axes(layer.general, map);
                if (!axes) return kind + " reads each row or column at a place of its own";
                // As much as the map has is the place of another map, whatever the size.
                if ((*axes)[0].more >= map[2] || (*axes)[1].more >= map[3])
                    return kind + " pads by as many rows or columns as the map has";
            }
            return {};
        case LayerKind::softmax:
            if (layer.axis != 1)
                return kind + " along axis " + std::to_string(layer.axis) + ", expected channels";
            return {};
        case LayerKind::concat:
            if (layer.axis != 1)
                return kind + " along axis " + std::to_string(layer.axis) + ", expected channels";
            return {};
        case LayerKind::add:
            if (layer.weights && layer.weights->dims.size() > 1) return kind + " of a constant map";
            return {};
        default:
            return {};
    }
}

bool by_winograd(const Network& network, LayerId id) {
    return must_be_scheduled(network, id) &&
           kernel_pays(layer_problem(network, id), KernelKind::winograd_rows);
}

bool by_column_tiles(const Network& network, LayerId id) {
    return must_be_scheduled(network, id) &&
           kernel_pays(layer_problem(network, id), KernelKind::columns);
}

bool has_layer(const Network& network, bool (*is_such)(const Network&, LayerId)) {
    for (LayerId id = 0; id < std::ssize(network.layers); ++id) {
        if (is_such(network, id)) return true;
    }
    return false;
}

/// Outputs that are filtered together with the wanted ones: those of the same tiles and of the next
/// tile, which the last patch may reach into.
Range tiles_around(const Range& wanted, const AxisWindow& w) {
    const int64_t step = tile_columns * (w.transposed ? w.stride : 1);
    return {wanted.begin / step * step, (ceil_div(wanted.end, step) + 1) * step};
}

/// On which grouping of outputs the rounding of a layer's sums depends.
enum class RoundsBy { nothing, pairs_of_rows, tiles_of_columns };

AxisReach axis_reach(const Network& network, size_t axis, RoundsBy rounds_by) {
    const bool pairs_of_rows = rounds_by == RoundsBy::pairs_of_rows;
    const bool tiles_of_columns = rounds_by == RoundsBy::tiles_of_columns;
    std::vector<Rate> rates(network.tensors.size());
    for (const Layer& layer : network.layers) {
        const Rate first = rates[static_cast<size_t>(layer.inputs[0])];
        for (const TensorId id : layer.inputs) {
            if (rates[static_cast<size_t>(id)] != first)
                refuse(network, "layer " + layer.name + " joins branches of different sizes");
        }
        rates[static_cast<size_t>(layer.output)] = Moves(network, layer, axis).rate(first);
    }

    const int64_t unit = pairs_of_rows ? winograd_rows : tiles_of_columns ? tile_columns : 1;
    AxisReach reach;
    for (const Rate& rate : rates) {
        const int64_t period = checked_multiply(rate.denominator, unit);
        reach.input_step = std::lcm(reach.input_step, period / std::gcd(period, rate.numerator));
        constexpr int64_t most = int64_t{1} << 20;
        if (reach.input_step > most)
            refuse(network,
                   "it repeats only every " + std::to_string(reach.input_step) + " elements");
    }
    const Rate out = rates[static_cast<size_t>(network.outputs[0])];
    reach.output_step = reach.input_step / out.denominator * out.numerator;

    // Trace one step of outputs, far from every border, back through the layers.
    constexpr int64_t far = int64_t{1} << 24;
    std::vector<Range> needed(network.tensors.size());
    needed[static_cast<size_t>(network.outputs[0])] = {far * reach.output_step,
                                                       (far + 1) * reach.output_step};
    for (size_t k = network.layers.size(); k-- > 0;) {
        const Layer& layer = network.layers[k];
        Range wanted = needed[static_cast<size_t>(layer.output)];
        if (wanted.empty()) continue;
        if (pairs_of_rows && by_winograd(network, static_cast<LayerId>(k)))
            wanted = {wanted.begin - 1, wanted.end + 1};
        const Moves moves(network, layer, axis);
        if (tiles_of_columns && by_column_tiles(network, static_cast<LayerId>(k)))
            wanted = tiles_around(wanted, moves.window());
        const Range read = moves.reads(wanted);
        for (const TensorId id : layer.inputs) needed[static_cast<size_t>(id)].extend(read);
    }
    const Range read = needed[static_cast<size_t>(network.inputs[0])];
    const auto whole_steps = [&](int64_t size) {
        return ceil_div(std::max<int64_t>(size, 0), reach.input_step) * reach.input_step;
    };
    reach.before = whole_steps(far * reach.input_step - read.begin);
    reach.after = whole_steps(read.end - (far + 1) * reach.input_step);
    if (pairs_of_rows) {
        // While line buffers fill, a layer's first step has more rows than later ones, and may
        // leave its last row without a partner.
        reach.before += reach.after + 2 * reach.input_step;
        reach.after += 2 * reach.input_step;
    }
    return reach;
}

}  // namespace

bool has_winograd_layers(const Network& network) { return has_layer(network, by_winograd); }

bool has_column_tiles(const Network& network) { return has_layer(network, by_column_tiles); }

Reach reach_of(const Network& network, const ReachOptions& options) {
    if (network.inputs.size() != 1 || network.outputs.size() != 1) {
        refuse(network, "found " + std::to_string(network.inputs.size()) + " inputs and " +
                            std::to_string(network.outputs.size()) +
                            " outputs, expected one of each");
    }
    for (LayerId id = 0; id < std::ssize(network.layers); ++id) {
        const Layer& layer = network.layer(id);
        if (const auto reason = hindrance(network, layer))
            refuse(network, "layer " + layer.name + ": " + *reason);
    }
    for (const TensorId id : {network.inputs[0], network.outputs[0]}) {
        const Tensor& tensor = network.tensor(id);
        if (tensor.dims.size() != 4 || tensor.dims[0] != 1)
            refuse(network, tensor.name + " is " + dims_text(tensor.dims) +
                                ", expected 1 image of channels x rows x columns");
    }
    return {axis_reach(network, 0,
                       options.winograd && has_winograd_layers(network) ? RoundsBy::pairs_of_rows
                                                                        : RoundsBy::nothing),
            axis_reach(network, 1,
                       options.winograd && has_column_tiles(network) ? RoundsBy::tiles_of_columns
                                                                     : RoundsBy::nothing)};
}

void check_moves_alike(const Network& network, const Network& larger, const Reach& reach) {
    if (network.layers.size() != larger.layers.size())
        refuse(network, "its layers depend on the size of the picture");
    for (size_t k = 0; k < network.layers.size(); ++k) {
        const Layer &a = network.layers[k], &b = larger.layers[k];
        const auto map_of = [](const Network& of, const Layer& layer) {
            return layer.inputs.empty() ? std::vector<int64_t>{}
                                        : of.tensor(layer.inputs[0]).dims;
        };
        const std::vector<int64_t> map = map_of(network, a), larger_map = map_of(larger, b);
        const bool alike = a.kind == b.kind && a.inputs == b.inputs &&
                           of_another_size(a.general, map, larger_map) == b.general &&
                           axis_window(network, a, 0) == axis_window(larger, b, 0) &&
                           axis_window(network, a, 1) == axis_window(larger, b, 1) && a.block == b.block;
        if (!alike) refuse(network, "layer " + a.name + " depends on the size of the picture");
    }
    const Tensor &in = network.tensor(network.inputs[0]), &out = network.tensor(network.outputs[0]);
    const std::vector<int64_t>&larger_in = larger.tensor(larger.inputs[0]).dims,
          &larger_out = larger.tensor(larger.outputs[0]).dims;
    for (const size_t axis : {size_t{0}, size_t{1}}) {
        const AxisReach& r = axis == 0 ? reach.y : reach.x;
        const int64_t steps = (larger_in[2 + axis] - in.dims[2 + axis]) / r.input_step;
        if (larger_out[2 + axis] != out.dims[2 + axis] + steps * r.output_step) {
            refuse(network, out.name + " is " + dims_text(out.dims) + " for " + dims_text(in.dims) +
                                " and " + dims_text(larger_out) + " for " + dims_text(larger_in) +
                                ", expected it to grow with the input");
        }
    }
}

}  // namespace laminate
