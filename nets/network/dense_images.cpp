#include "nets/network/dense_images.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

namespace laminate {

namespace {

using Dims = std::vector<int64_t>;

bool is_of_images(const Network& network, const Layer& layer) {
    return layer.kind == LayerKind::gemm && network.tensor(layer.output).dims[0] > 1;
}

class DenseImages {
public:
    explicit DenseImages(Network network) : network_(std::move(network)) {
        for (const Layer& layer : network_.layers) layer_names_.insert(layer.name);
        for (const Tensor& tensor : network_.tensors) tensor_names_.insert(tensor.name);
    }

    Network run() && {
        for (Layer& layer : std::exchange(network_.layers, {})) {
            if (is_of_images(network_, layer) || is_between(layer)) {
                put_together(std::move(layer));
            } else {
                for (TensorId& id : layer.inputs) id = rows_of(id);
                network_.layers.push_back(std::move(layer));
            }
        }
        for (TensorId& id : network_.outputs) id = rows_of(id);
        return std::move(network_);
    }

private:
    Tensor& tensor(TensorId id) { return network_.tensors[static_cast<size_t>(id)]; }
    /// Whether a layer works element by element on what dense layers made.
    [[nodiscard]] bool is_between(const Layer& layer) const {
        const bool is_elementwise =
            (layer.kind == LayerKind::activation && !layer.activation.slope) ||
            (layer.kind == LayerKind::add && !layer.weights);
        return is_elementwise && std::ranges::all_of(layer.inputs, [&](TensorId id) {
            return maps_.contains(id);
        });
    }

    /// The tensor that the layer writes becomes the map.
    void put_together(Layer layer) {
        for (TensorId& id : layer.inputs) id = map_of(id);
        if (layer.kind == LayerKind::gemm) {
            layer.kind = LayerKind::conv;
            const Constant& weights = *layer.weights;
            layer.weights = std::make_shared<const Constant>(
                Constant{{weights.dims[0], weights.dims[1], 1, 1}, weights.values});
        }
        Dims& dims = tensor(layer.output).dims;
        dims = {1, dims[1], 1, dims[0]};
        maps_[layer.output] = layer.output;
        network_.layers.push_back(std::move(layer));
    }

    /// The map whose pixels are the rows of a tensor.
    TensorId map_of(TensorId rows) {
        if (const auto map = maps_.find(rows); map != maps_.end()) return map->second;
        const int64_t images = tensor(rows).dims[0], channels = tensor(rows).dims[1];
        const TensorId map = new_tensor(unused(tensor(rows).name + "_images", tensor_names_),
                                        {1, channels, 1, images});
        add_view(rows, map, {images * channels, 1, images * channels, channels});
        return maps_[rows] = map;
    }
    /// Returns the tensor that readers of rows read: for one that has become a map, a new one, which
    /// takes over its name and type.
    TensorId rows_of(TensorId id) {
        if (const auto map = maps_.find(id); map == maps_.end() || map->second != id) return id;
        if (const auto known = rows_.find(id); known != rows_.end()) return known->second;
        const int64_t images = tensor(id).dims[3], channels = tensor(id).dims[1];
        const TensorId rows = new_tensor(tensor(id).name, {images, channels});
        tensor(rows).type = std::exchange(tensor(id).type, ElementType::float32);
        tensor(id).name = unused(tensor(rows).name + "_images", tensor_names_);
        add_view(id, rows, {1, images});
        return rows_[id] = rows;
    }

    void add_view(TensorId from, TensorId to, Dims steps) {
        Layer view{.name = unused("images", layer_names_),
                   .kind = LayerKind::general,
                   .inputs = {from},
                   .output = to};
        view.general = {
            .kind = GeneralKind::view, .dims = tensor(to).dims, .steps = std::move(steps)};
        network_.layers.push_back(std::move(view));
    }
    TensorId new_tensor(std::string name, Dims dims) {
        network_.tensors.push_back({std::move(name), std::move(dims)});
        return static_cast<TensorId>(network_.tensors.size()) - 1;
    }
    static std::string unused(const std::string& stem, std::unordered_set<std::string>& names) {
        std::string name = stem;
        for (int number = 2; !names.insert(name).second; ++number)
            name = stem + std::to_string(number);
        return name;
    }

    Network network_;
    std::unordered_set<std::string> layer_names_, tensor_names_;
    std::map<TensorId, TensorId> maps_;  ///< by the tensor of a row for each image
    std::map<TensorId, TensorId> rows_;  ///< by the tensor that became a map
};

}  // namespace

Network with_dense_images_together(Network network) {
    const bool has_any = std::ranges::any_of(
        network.layers, [&](const Layer& layer) { return is_of_images(network, layer); });
    return has_any ? DenseImages(std::move(network)).run() : network;
}

}  // namespace laminate
