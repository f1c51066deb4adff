// Private to nets: ncnn's layers as nodes of an ONNX graph.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "nets/ncnn/file.h"
#include "nets/onnx/model.h"
#include "nets/open.h"

namespace laminate::ncnn {

/// ncnn's number for "not given", and for a pad or an extent that follows from the others.
inline constexpr int64_t unset = -233;

/// A blob of ncnn. A vector of C is a tensor of N x C x 1 x 1, so that it meets maps channel by
/// channel, as in ncnn.
struct Blob {
    std::string value;    ///< in the graph; Split gives one value several blobs
    bool is_map = true;   ///< C x H x W, else a vector
    int open_input = -1;  ///< its channels are those of this input of the graph, not known yet
};

class Translator {
public:
    Translator(WeightFile weights, const InputSizes& sizes, const std::string& name);
    /// The graph of the layers. Throws InputError.
    [[nodiscard]] onnx::proto::ModelProto run(std::vector<FileLayer> layers);

    [[nodiscard]] WeightFile& weights() { return weights_; }

    // ---- what a layer reads
    [[nodiscard]] const Blob& input(const FileLayer& layer, size_t i);
    [[nodiscard]] const std::string& value(const FileLayer& layer, size_t i) {
        return input(layer, i).value;
    }
    /// Tells the channels of an input of the graph that did not say how many it has.
    void learn_channels(const Blob& blob, int64_t channels);
    /// The axis of N x C x H x W that is axis `axis` of the blob.
    [[nodiscard]] static int64_t axis_of(const FileLayer& layer, const Blob& blob, int64_t axis);

    // ---- what a layer writes
    using Inputs = std::vector<std::string>;
    /// A node named as the layer, whose attributes the caller adds.
    onnx::proto::NodeProto& add(const FileLayer& layer, const char* op, const Inputs& inputs,
                                const std::string& output);
    /// A name for a value that only this layer knows.
    [[nodiscard]] std::string inner(const FileLayer& layer);
    [[nodiscard]] std::string floats(const FileLayer& layer, std::vector<int64_t> dims,
                                     const std::vector<float>& values);
    [[nodiscard]] std::string integers(const FileLayer& layer, const std::vector<int64_t>& values);
    /// The layer's only output, as which its last node writes the returned name.
    std::string output(const FileLayer& layer, bool is_map);
    std::string output(const FileLayer& layer, size_t i, Blob blob);
    /// The output is another name of `blob`.
    void alias(const FileLayer& layer, size_t i, const Blob& blob);
    void add_input(const FileLayer& layer, const std::vector<int64_t>& width_height_channels);

private:
    void add_outputs();

    WeightFile weights_;
    const InputSizes& sizes_;
    onnx::proto::ModelProto model_;
    onnx::proto::GraphProto& graph_;
    std::unordered_map<std::string, Blob> blobs_;
    std::vector<std::string> order_;  ///< of the blobs, as they are written
    std::unordered_set<std::string> read_;
    int64_t inner_values_ = 0;
};

using Handler = void (*)(Translator&, FileLayer&);
using Handlers = std::map<std::string, Handler>;

void add_weighted(Handlers& handlers);  // weighted.cpp: convolutions, products, normalisation
void add_moving(Handlers& handlers);    // moving.cpp: Crop, Slice, Reshape, Interp and the like
void add_plain(Handlers& handlers);     // plain.cpp: activations, arithmetic, pooling
void add_normalising(Handlers& handlers);  // normalising.cpp: reductions, LayerNorm and the like

// ---- attributes
void set(onnx::proto::NodeProto& node, const char* name, int64_t value);
void set(onnx::proto::NodeProto& node, const char* name, float value);
void set(onnx::proto::NodeProto& node, const char* name, const char* value);
void set(onnx::proto::NodeProto& node, const char* name, const std::vector<int64_t>& values);

/// The activation that parameters 9 and 10 of a layer ask for.
struct FusedActivation {
    int64_t kind = 0;
    std::vector<float> parameters;
    explicit FusedActivation(FileLayer& layer);
    /// The name that the node before it writes; the activation then writes `output`.
    [[nodiscard]] std::string before(Translator& to, const FileLayer& layer,
                                     const std::string& output) const;
};

}  // namespace laminate::ncnn
