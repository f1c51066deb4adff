// The manifest of a compiled network: its tensors, and the steps that run it, in order. `laminate
// compile` writes it as manifest.json and embeds the same text in the library. The runtime needs
// nothing else to run the network.
//
//   {"schema": "laminate.manifest", "version": 1,
//    "network", "network_hash", "library", "target", "halide_version", "cpu_features": [names],
//    "tensors": [{"name", "dims", "type"}], "inputs": [ids], "outputs": [ids],
//    "steps": [
//      {"kind": "group", "group", "name", "layers": [names], "schedule",
//       "inputs": [ids], "outputs": [ids],
//       "constants_offset_elements", "constants_count_elements", "scratch_bytes", "strips",
//       "strips_together",
//       "trace": {"live_total_elements",
//                 "buffers": [{"role", "layer", "tensor", "dims", "extent", "reads", "writes"}],
//                 "nests": [{"layer", "macs", "kernel", "stride", "dilation", "pad_begin",
//                            "transposed"}]}},
//      {"kind": "layer",
//       "layer": {"name", "kind", ..., "weights": {"offset_elements", "dims"}, ...},
//       "inputs": [ids], "output": id}],
//    "replaced_groups": [names], "instrumented": true, "strict": true}
//
// A network of any size has "any_size" besides, {"images", "rows", "columns", "least_rows",
// "least_columns", "dims": [of each tensor, formulas]}, and each group whose code depends on the
// size {"scratch_bytes": formula, "rows", "columns": {"extent": formula, "unit", "repeated",
// "most"}}; the other numbers are then those of the size that "any_size" names.
//
// A tensor id is an index into "tensors"; offsets are into laminate_compiled_network.constants.
// Attributes of a layer that have their default value are left out, and so are "strips_together" of
// 1, an empty "replaced_groups", "strict" unless it is true and, in a directory without hooks, "trace" and
// "instrumented". manifest.json has one member that the embedded text lacks, "library_file":
// {"bytes", "xxh64"}, by which damage to the library is found before it is loaded.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/size_formula.h"
#include "nets/network/network.h"
#include "runtime/trace.h"

namespace laminate {

/// A range of the constants block.
struct ConstantRange {
    int64_t offset_elements = 0;
    std::vector<int64_t> dims;
    friend bool operator==(const ConstantRange&, const ConstantRange&) = default;
};

/// "X", "W", "intermediate" or "Y".
[[nodiscard]] const char* to_string(laminate_buffer_role role);

/// A buffer that a group's schedule promises (runtime/trace.h), and the accesses that the model
/// counts for it in one image. Elements.
struct PromisedBuffer {
    laminate_buffer_role role = LAMINATE_INPUT;
    std::string layer;
    std::string tensor;
    std::array<int64_t, 3> dims{};
    std::array<int64_t, 3> extent{};
    int64_t reads = 0;   ///< of X and W, and of partial sums of Y
    int64_t writes = 0;  ///< of Y
    [[nodiscard]] int64_t elements() const { return extent[0] * extent[1] * extent[2]; }
    friend bool operator==(const PromisedBuffer&, const PromisedBuffer&) = default;
};

/// The work that the model counts for one nest, and the window by which a box's is counted.
struct PromisedNest {
    std::string layer;
    int64_t macs = 0;  ///< of one image; 0 for a layer without weights
    // Each pair is one of rows and columns, as in Window.
    std::array<int64_t, 2> kernel{1, 1};
    std::array<int64_t, 2> stride{1, 1};
    std::array<int64_t, 2> dilation{1, 1};
    std::array<int64_t, 2> pad_begin{0, 0};
    bool transposed = false;
    friend bool operator==(const PromisedNest&, const PromisedNest&) = default;
};

/// What the schedule of a group promises, and the code with hooks reports.
struct GroupPromise {
    /// By the number that the code passes to its hook.
    std::vector<PromisedBuffer> buffers;
    std::vector<PromisedNest> nests;  ///< in schedule order
    int64_t live_total_elements = 0;  ///< docs/counting.md section 5
    friend bool operator==(const GroupPromise&, const GroupPromise&) = default;
};

/// How the strips of a group of any size are chosen along an axis (runtime/any_size.h).
struct StripRule {
    SizeFormula extent;    ///< of the group's output
    int64_t unit = 1;      ///< strips but the last are multiples of as many rows or columns
    int64_t repeated = 0;  ///< rows whose work each seam between two strips repeats
    int64_t most = 0;      ///< longest strip; 0: as threads need it
    friend bool operator==(const StripRule&, const StripRule&) = default;
};

/// A group whose code is of any size.
struct OpenStep {
    SizeFormula scratch_bytes;
    std::optional<StripRule> rows, columns;
    friend bool operator==(const OpenStep&, const OpenStep&) = default;
};

/// The dims of a network of any size.
struct OpenSizes {
    SizeValues reference;  ///< the size of the manifest's own numbers
    int64_t least_rows = 1, least_columns = 1;
    std::vector<std::vector<SizeFormula>> dims;  ///< by tensor
    friend bool operator==(const OpenSizes&, const OpenSizes&) = default;
};

/// One compiled group (runtime/compiled_network.h).
struct GroupStep {
    int32_t group = 0;  ///< index into laminate_compiled_network.groups
    std::string name;
    std::vector<std::string> layers;
    std::string schedule;  ///< text of the group's schedule
    std::vector<TensorId> inputs;
    std::vector<TensorId> outputs;
    int64_t constants_offset_elements = 0;
    int64_t constants_count_elements = 0;
    int64_t scratch_bytes = 0;
    int32_t strips = 1;
    int32_t strips_together = 1;  ///< which one call computes faster than several; divides the strips
    /// In a directory with hooks, of the groups of its schedule. Layers that the schedule leaves
    /// out may be groups too, and are not counted (docs/counting.md).
    std::optional<GroupPromise> trace;
    std::optional<OpenStep> open;
    SizeValues size{};  ///< of a group of any size, what its code is told (manifest_at())
    friend bool operator==(const GroupStep&, const GroupStep&) = default;
};

/// A layer that the reference operators run (nets/operators/reference_operators.h). The constants
/// of `layer` are null; the ranges say where they are.
struct LayerStep {
    Layer layer;
    std::optional<ConstantRange> weights;
    std::optional<ConstantRange> bias;
    std::optional<ConstantRange> slope;
};

using Step = std::variant<GroupStep, LayerStep>;

/// Recognises a file by its contents.
struct FileIdentity {
    int64_t bytes = 0;
    std::string xxh64;  ///< base/hash.h, 16 digits
    friend bool operator==(const FileIdentity&, const FileIdentity&) = default;
};
/// Throws InputError when the file cannot be read.
[[nodiscard]] FileIdentity identity_of(const std::filesystem::path& file);

struct Manifest {
    std::string network;
    std::string network_hash;  ///< nets/network/network.h
    /// An identifier; the files are lib<library>.so, lib<library>.a and <library>.h.
    std::string library;
    std::string target;  ///< as Halide writes it
    std::string halide_version;
    std::vector<std::string> cpu_features;  ///< that the code uses, by the names of runtime/cpu.h
    std::vector<Tensor> tensors;
    std::vector<TensorId> inputs;
    std::vector<TensorId> outputs;
    std::vector<Step> steps;
    /// Names, sorted, of groups whose code failed its check. Their layers run one by one instead,
    /// compiled or by the reference operators.
    std::vector<std::string> replaced_groups;
    /// Whether the library has hooks (laminate_compiled_network::hooked_groups).
    bool instrumented = false;
    /// Whether runs keep subnormal numbers (`laminate compile --strict`), which others take as zeros.
    bool strict = false;
    /// A network of any size has these; one of a single size has none.
    std::optional<OpenSizes> open;
    /// Of lib<library>.so; not in the text that the library itself holds.
    std::optional<FileIdentity> library_file;

    [[nodiscard]] const Tensor& tensor(TensorId id) const {
        return tensors.at(static_cast<size_t>(id));
    }
    [[nodiscard]] std::vector<Tensor> tensors_of(const std::vector<TensorId>& ids) const;
};

/// The step for a layer. Appends the layer's constants to `constants`, each array on a 64-byte
/// boundary of the block.
[[nodiscard]] LayerStep layer_step(const Layer& layer, std::vector<float>& constants);
/// The inverse: the layer with its constants copied from the block. Throws InputError when a range
/// lies outside it.
[[nodiscard]] Layer restored_layer(const LayerStep& step, const float* constants,
                                   int64_t constant_count);

[[nodiscard]] std::vector<TensorId> inputs_of(const Step& step);
[[nodiscard]] std::vector<TensorId> outputs_of(const Step& step);
/// Name of the group or layer.
[[nodiscard]] const std::string& name_of(const Step& step);

/// Throws InputError "WHERE: ..." unless every tensor is written once, before it is read; ids, dims
/// and sizes are in range; and all tensors of a group have the same batch.
void check(const Manifest& manifest, const std::string& where);

[[nodiscard]] std::string to_json(const Manifest& manifest);
/// Reads and checks. Throws InputError "WHERE: ...". The inverse of to_json().
[[nodiscard]] Manifest parse_manifest(const std::string& text, const std::string& where);

/// "libNAME.so"
[[nodiscard]] std::string shared_library_file(const Manifest& manifest);
inline constexpr const char* manifest_file = "manifest.json";

}  // namespace laminate
