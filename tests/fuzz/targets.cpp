#include "tests/fuzz/targets.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>

#include "answers/front_file.h"
#include "base/error.h"
#include "base/files.h"
#include "base/memory_file.h"
#include "cli/sweep_jobs.h"
#include "nets/ncnn/ncnn.h"
#include "nets/onnx/onnx.h"
#include "nets/operators/reference_operators.h"
#include "nets/zoo/zoo.h"
#include "runtime/manifest.h"
#include "runtime/media/codecs.h"
#include "runtime/media/npy.h"
#include "runtime/media/raster.h"
#include "runtime/media/y4m.h"
#include "scheduler/explore/planner/line_buffers.h"
#include "scheduler/machine/machine.h"
#include "scheduler/schedule/schedule_file.h"
#include "tests/nets/onnx/builder.h"

namespace laminate::fuzz {

namespace {

using test::ModelBuilder;

/// A file with these bytes, for readers that take nothing but a path.
struct FileOf : MemoryFile {
    explicit FileOf(std::string_view bytes) {
        if (::write(descriptor(), bytes.data(), bytes.size()) != std::ssize(bytes))
            throw std::runtime_error("no memory for a file");
    }
};

// ---- ONNX

std::string convolutional_model() {
    ModelBuilder picture({1, 2, 6, 6});
    picture.weights("w", {4, 1, 3, 3})
        .weights("b", {4})
        .weights("d", {4, 2, 2, 2})
        .weights("slope", {4, 1, 1});
    picture.node("Conv", {"x", "w", "b"}, "a")
        .integer("group", 2)
        .integers("pads", {1, 1, 1, 1})
        .integers("strides", {2, 1});
    picture.node("PRelu", {"a", "slope"}, "c");
    picture.node("MaxPool", {"c"}, "e").integers("kernel_shape", {2, 2}).integer("ceil_mode", 1);
    picture.node("ConvTranspose", {"e", "d"}, "f").integers("strides", {2, 2});
    picture.node("LRN", {"f"}, "g").integer("size", 3);
    picture.node("GlobalAveragePool", {"g"}, "h");
    picture.node("Flatten", {"h"}, "i");
    picture.node("Softmax", {"i"}, "y");
    return picture.bytes();
}

std::string shape_model() {
    ModelBuilder shapes({1, 4, 3, 2});
    shapes.integers("two", {2})
        .integers("minus", {-1})
        .integers("zero", {0})
        .integers("pads", {0, 0, 1, 1, 0, 0, 1, 0});
    shapes.weights("scales", {4}, {1, 1, 2, 2});
    shapes.node("Shape", {"x"}, "s");
    shapes.node("Gather", {"s", "zero"}, "n");
    shapes.node("Concat", {"n", "two", "two", "minus"}, "to").integer("axis", 0);
    shapes.node("Reshape", {"x", "to"}, "a");
    shapes.node("Transpose", {"a"}, "b").integers("perm", {0, 2, 3, 1});
    shapes.node("Pad", {"b", "pads"}, "c").text("mode", "reflect");
    shapes.node("Resize", {"c", "", "scales"}, "d").text("mode", "linear");
    shapes.node("Slice", {"d", "zero", "two", "two"}, "e");
    shapes.node("ReduceMean", {"e"}, "f").integers("axes", {1, 3});
    shapes.node("Mul", {"e", "f"}, "g");
    shapes.node("Exp", {"g"}, "h");
    shapes.node("InstanceNormalization", {"h", "i_scale", "i_shift"}, "y");
    shapes.weights("i_scale", {2}).weights("i_shift", {2});
    return shapes.bytes();
}

std::string matrix_model() {
    ModelBuilder matrices({3, 4});
    matrices.weights("w", {4, 5}).weights("c", {5}).input("z", {2, 5, 3});
    matrices.node("Gemm", {"x", "w", "c"}, "a").real("alpha", 0.5f);
    matrices.node("MatMul", {"a", "z"}, "b");
    matrices.node("Sum", {"b", "b", "b"}, "d");
    matrices.node("Greater", {"d", "b"}, "e");
    matrices.node("Where", {"e", "d", "b"}, "f");
    matrices.node("LogSoftmax", {"f"}, "y").integer("axis", 0);
    return matrices.bytes();
}

/// Weights as INT8, and an If whose branches hide a name outside.
std::string branching_model() {
    ModelBuilder branches({1, 2, 4, 4});
    auto* stored = branches.model.mutable_graph()->add_initializer();
    stored->set_name("q");
    stored->set_data_type(test::proto::TensorProto::INT8);
    for (const int64_t extent : {2, 2, 1, 1}) stored->add_dims(extent);
    stored->set_raw_data("\x01\x02\xff\x80");
    branches.weights("scale", {2}).integers("one", {1}).integers("two", {2});
    branches.node("DequantizeLinear", {"q", "scale"}, "w").integer("axis", 0);
    branches.node("Conv", {"x", "w"}, "a");
    branches.node("Shape", {"a"}, "shape");
    branches.node("Gather", {"shape", "one"}, "extent");
    branches.node("Equal", {"extent", "two"}, "is_two");
    auto* choice = branches.model.mutable_graph()->add_node();
    choice->set_op_type("If");
    choice->add_input("is_two");
    choice->add_output("y");
    for (const char* name : {"then_branch", "else_branch"}) {
        auto* attribute = choice->add_attribute();
        attribute->set_name(name);
        attribute->set_type(test::proto::AttributeProto::GRAPH);
        auto* graph = attribute->mutable_g();
        auto* value = graph->add_initializer();
        value->set_name("w");  // hides the one outside
        value->set_data_type(test::proto::TensorProto::FLOAT);
        value->add_float_data(3);
        auto* sum = graph->add_node();
        sum->set_op_type("Add");
        sum->add_input("a");
        sum->add_input("w");
        sum->add_output("result");
        graph->add_output()->set_name("result");
    }
    return branches.bytes();
}

/// Small models that together contain every family of operators.
std::vector<std::string> onnx_seeds() {
    return {convolutional_model(), shape_model(), matrix_model(), branching_model()};
}

/// Runs the network if that is cheap.
void run_small(const Network& network) {
    constexpr int64_t affordable = 1 << 18;
    int64_t elements = 0, work = 0;
    for (const Tensor& tensor : network.tensors) {
        const int64_t count = element_count(tensor.dims);
        if (count > affordable || (elements += count) > affordable) return;
    }
    for (LayerId id = 0; id < std::ssize(network.layers); ++id) {
        const Layer& layer = network.layer(id);
        const int64_t out = element_count(network.tensor(layer.output).dims);
        int64_t taps = 1;
        for (const int64_t k : layer.window.kernel)
            taps = std::min(taps * std::min(k, affordable), affordable);
        for (const int64_t k : layer.general.kernel)
            taps = std::min(taps * std::min(k, affordable), affordable);
        for (const int64_t k : layer.general.tap_counts)
            taps = std::min(taps * std::min(k, affordable), affordable);
        work += std::min(layer_macs(network, id), affordable * affordable) + out * taps;
        if (work > 16 * affordable) return;
    }
    std::vector<std::vector<float>> inputs;
    for (const TensorId id : network.inputs)
        inputs.emplace_back(static_cast<size_t>(element_count(network.tensor(id).dims)), 0.5f);
    (void)run_reference_network(network, inputs, {}, 1);
}

void read_onnx(std::string_view bytes) { run_small(parse_onnx(std::string(bytes), "model")); }

// ---- ncnn

/// The text of the layers, a zero, and the weights.
std::vector<std::string> ncnn_seeds() {
    const std::string floats(4, '\0'), halves("\x47\x6b\x30\x01", 4);
    const auto ones = [](size_t count) {
        std::string bytes;
        for (size_t k = 0; k < count; ++k) bytes.append("\0\0\x80\x3f", 4);
        return bytes;
    };
    const std::string maps =
        "7767517\n12 15\n"
        "Input in 0 1 x 0=6 1=6 2=2\n"
        "Convolution c 1 1 x a 0=4 1=3 4=1 5=1 6=72 9=2 -23310=1,0.1\n"
        "Split s 1 3 a b d e\n"
        "Pooling p 1 1 b mean 0=1 4=1\n"
        "InnerProduct f 1 1 mean factor 0=4 1=1 2=16 9=4\n"
        "BinaryOp m 2 1 d factor g 0=2\n"
        "Crop k 1 1 e h -23309=2,1,1 -23310=2,-1,-1 -23311=2,-2,-1\n"
        "Crop l 2 1 g h i 0=1 1=1\n"
        "Deconvolution t 1 1 i j 0=4 1=2 3=2 6=64\n"
        "PReLU r 1 1 j n 0=4\n"
        "PixelShuffle q 1 1 n o 0=2\n"
        "Interp z 1 1 o y 0=2 1=0.5 2=0.5\n";
    const std::string moves =
        "7767517\n11 14\n"
        "Input in 0 1 x 0=4 1=4 2=4\n"
        "ConvolutionDepthWise c 1 1 x a 0=4 1=1 6=4 7=4\n"
        "BatchNorm n 1 1 a b 0=4 1=0.001\n"
        "Slice s 1 2 b d e -23300=2,2,-233\n"
        "Concat j 2 1 d e f\n"
        "ShuffleChannel h 1 1 f g 0=2\n"
        "Padding p 1 1 g i 0=1 1=1 2=1 3=1 4=2\n"
        "Pooling m 1 1 i k 0=0 1=3 2=2\n"
        "Eltwise w 2 1 k k l 0=1 -23301=2,1.0,0.5\n"
        "Reshape r 1 1 l o 0=-1\n"
        "Softmax q 1 1 o y\n";
    return {maps + '\0' + floats + ones(72) + ones(4) + floats + ones(16) + ones(4) + floats +
                ones(64) + ones(4),
            moves + '\0' + halves + std::string("\0\x3c\0\x3c\0\x3c\0\x3c", 8) + ones(16)};
}

void read_ncnn(std::string_view bytes) {
    const size_t end = std::min(bytes.find('\0'), bytes.size());
    const std::string_view weights = bytes.substr(std::min(end + 1, bytes.size()));
    run_small(parse_ncnn(bytes.substr(0, end), weights, "net.param"));
}

// ---- schedules

const Network& schedule_network() {
    static const Network network = zoo_network("l2net");
    return network;
}

Schedule example_schedule() { return std::get<Schedule>(line_buffer_schedule(schedule_network())); }

std::vector<std::string> schedule_text_seeds() {
    return {to_text(example_schedule()), to_text(layer_by_layer_schedule(schedule_network(), 4))};
}

void read_schedule_text(std::string_view bytes) {
    (void)parse_schedule(schedule_network(), std::string(bytes));
}

std::vector<std::string> schedule_json_seeds() {
    return {to_json(schedule_network(), example_schedule())};
}

void read_schedule_json(std::string_view bytes) {
    (void)parse_schedule_file(schedule_network(), std::string(bytes));
}

std::vector<std::string> front_seeds() {
    using Json = nlohmann::ordered_json;
    const Json point{
        {"accesses_elements", 5}, {"live_total_elements", 6}, {"macs", 7}, {"groups", 1},
        {"names", {"best"}},      {"schedule", {0}}};
    const Json front{{"schema", "laminate.front"},
                     {"version", cli::front_version},
                     {"network", schedule_network().name},
                     {"structure_hash", structure_hash(schedule_network())},
                     {"group_schedules", {to_text(example_schedule())}},
                     {"points", {point, point}}};
    return {front.dump(2)};
}

/// As `validate --front` and `--schedule FRONT#best` read it.
void read_front(std::string_view bytes) {
    const auto front = cli::parse_front(std::string(bytes), "front");
    cli::check_front("front", front, schedule_network());
    for (size_t n = 0; n < front["points"].size(); ++n)
        (void)parse_schedule(schedule_network(), cli::schedule_text(front, n));
    (void)cli::point_of({"front", "best"}, front);
}

// ---- other files

std::vector<std::string> machine_seeds() {
    return {read_file(LAMINATE_MACHINES "/eyeriss.json"),
            read_file(LAMINATE_MACHINES "/ascend.json")};
}

void read_machine(std::string_view bytes) { (void)parse_machine(std::string(bytes), "machine"); }

std::vector<std::string> jobs_seeds() {
    return {R"({"schema": "laminate.jobs", "version": 1, "name": "two", "sweeps": [
  {"networks": ["zoo:l2net", "zoo:l3net?height=8"], "machines": ["eyeriss"],
   "memory": ["64KiB", "1MiB"], "arguments": ["--max-depth=4"]},
  {"networks": ["zoo:l2net"]}]})"};
}

void read_jobs(std::string_view bytes) { (void)cli::sweep_jobs(std::string(bytes), "jobs"); }

/// One layer of each way to store one: a convolution with constants, and a general layer with
/// lists.
std::vector<std::string> manifest_seeds() {
    Manifest manifest;
    manifest.network = manifest.library = "net";
    manifest.network_hash = "0123456789abcdef";
    manifest.target = "x86-64-linux";
    manifest.halide_version = "21.0.0";
    manifest.tensors = {{"x", {1, 1, 2, 2}}, {"a", {1, 1, 2, 2}}, {"y", {1, 1, 2, 3}}};
    manifest.inputs = {0};
    manifest.outputs = {2};
    std::vector<float> constants;
    Layer conv{.name = "conv",
               .inputs = {0},
               .output = 1,
               .weights = std::make_shared<const Constant>(Constant{{1, 1, 1, 1}, {2}})};
    conv.activation = {.kind = ActivationKind::clip, .low = 0, .high = 6};
    Layer padded{.name = "pad", .kind = LayerKind::general, .inputs = {1}, .output = 2};
    padded.general = {.kind = GeneralKind::resample,
                      .dims = {1, 1, 2, 3},
                      .tap_counts = {1, 1, 1, 1},
                      .sources = {0, 0, 0, 1, -1, 0, 1},
                      .alpha = 1};
    for (const Layer& layer : {conv, padded})
        manifest.steps.emplace_back(layer_step(layer, constants));
    return {to_json(manifest)};
}

/// As a session reads it: every layer restored, its shape inferred.
void read_manifest(std::string_view bytes) {
    const Manifest manifest = parse_manifest(std::string(bytes), "manifest");
    const std::vector<float> constants(64, 1.0f);
    for (const Step& step : manifest.steps) {
        const auto* layer_of_step = std::get_if<LayerStep>(&step);
        if (layer_of_step == nullptr) continue;
        const Layer layer = restored_layer(*layer_of_step, constants.data(), std::ssize(constants));
        std::vector<std::vector<int64_t>> dims;
        for (const TensorId id : layer.inputs) dims.push_back(manifest.tensor(id).dims);
        try {
            (void)infer_output_dims(layer, dims);
        } catch (const std::overflow_error&) {  // Session::open() makes a message of it
        }
    }
}

/// What `write` leaves in a file whose name ends in `extension`.
std::string written(const std::string& extension,
                    void (*write)(const std::filesystem::path& path)) {
    const auto path = std::filesystem::temp_directory_path() /
                      ("laminate_fuzz_" + std::to_string(::getpid()) + extension);
    write(path);
    std::string bytes = read_file(path);
    std::filesystem::remove(path);
    return bytes;
}

std::vector<std::string> npy_seeds() {
    return {written(".npy", [](const auto& path) {
        save_npy({{2, 3}, {1, 2, 3, 4, 5, 6}}, path);
    })};
}

void read_npy(std::string_view bytes) { (void)parse_npy(bytes, "array"); }

std::vector<std::string> tensor_seeds() {
    return {written(".pb", [](const auto& path) {
        save_tensor_proto({{2, 3}, {1, 2, 3, 4, 5, 6}}, "tensor", path);
    })};
}

void read_tensor(std::string_view bytes) { (void)load_tensor_proto(FileOf(bytes).path()); }

Picture example_picture() {
    Picture picture = blank_picture(5, 7, 3, 8, "picture");
    for (size_t k = 0; k < picture.samples.size(); ++k)
        picture.samples[k] = static_cast<uint8_t>(k * 37);
    return picture;
}

std::vector<std::string> png_seeds() {
    return {
        written(".png", [](const auto& path) { save_picture(example_picture(), path); })};
}

std::vector<std::string> jpeg_seeds() {
    return {written(".jpg",
                    [](const auto& path) { save_picture(example_picture(), path, 80); })};
}

std::vector<std::string> raster_seeds() {
    return {written(".ppm", [](const auto& path) { save_picture(example_picture(), path); }),
            "P5\n# grey\n3 2\n1023\nabcdefghijkl", "Pf 2 1 -1.0\n\x01\x02\x03\x04\x05\x06\x07\x08"};
}

/// Reads a corner of the file, and all of a P5 or P6.
void read_raster(std::string_view bytes) {
    const FileOf file(bytes);
    const RasterReader reader(file.path());
    const RasterShape& shape = reader.shape();
    constexpr int64_t affordable = 1 << 10;
    const int64_t height = std::min(shape.height, affordable),
                  width = std::min(shape.width, affordable);
    std::vector<float> values(static_cast<size_t>(shape.channels * height * width));
    reader.read({shape.height - height, shape.width - width, height, width}, values.data(),
                height * width, width);
    if (bytes.starts_with("P5") || bytes.starts_with("P6")) (void)decode_pnm(bytes, "picture");
}

std::vector<std::string> y4m_seeds() {
    std::vector<std::string> seeds;
    for (const char* chroma : {"mono", "420jpeg", "422", "444"}) {
        const Y4mHeader header{.width = 5,
                               .height = 3,
                               .chroma = chroma,
                               .sampling = y4m_sampling(chroma, "video"),
                               .parameters = "F25:1 Ip"};
        const auto samples = static_cast<size_t>(header.chroma_width() * header.chroma_height());
        std::ostringstream stream;
        Y4mWriter writer(stream, header, "video");
        for (int frame = 0; frame < 2; ++frame)
            writer.write({"",
                          std::vector<uint8_t>(15, 128),
                          std::vector<uint8_t>(samples, 1),
                          std::vector<uint8_t>(samples, 2),
                          {}});
        seeds.push_back(stream.str());
    }
    seeds.push_back("YUV4MPEG2 W2 H1 C422p10\nFRAME\nYyYyBbRr");
    seeds.push_back("YUV4MPEG2 W2 H1 C444alpha\nFRAME\nYYbbrraa");
    return seeds;
}

void read_y4m(std::string_view bytes) {
    std::istringstream stream{std::string(bytes)};
    Y4mReader reader(stream, "video");
    // A frame of 2^28 pixels is legal, and its memory is taken before it turns out to be cut off.
    if (reader.header().width * reader.header().height > 1 << 20) return;
    Y4mFrame frame;
    while (reader.read(frame)) {
    }
}

}  // namespace

const std::vector<Target>& targets() {
    static const std::vector<Target> all{
        {"onnx", onnx_seeds, read_onnx},
        {"ncnn", ncnn_seeds, read_ncnn},
        {"tensor", tensor_seeds, read_tensor},
        {"schedule_text", schedule_text_seeds, read_schedule_text},
        {"schedule_json", schedule_json_seeds, read_schedule_json},
        {"front", front_seeds, read_front},
        {"jobs", jobs_seeds, read_jobs},
        {"machine", machine_seeds, read_machine},
        {"manifest", manifest_seeds, read_manifest},
        {"npy", npy_seeds, read_npy},
        {"png", png_seeds, [](std::string_view bytes) { (void)decode_png(bytes, "picture"); }},
        {"jpeg", jpeg_seeds, [](std::string_view bytes) { (void)decode_jpeg(bytes, "picture"); }},
        {"raster", raster_seeds, read_raster},
        {"y4m", y4m_seeds, read_y4m},
    };
    return all;
}

const Target& target(std::string_view name) {
    for (const Target& one : targets()) {
        if (name == one.name) return one;
    }
    throw std::runtime_error("no target \"" + std::string(name) + "\"");
}

bool accepts(const Target& target, std::string_view bytes) {
    try {
        target.read(bytes);
        return true;
    } catch (const InputError& error) {
        if (std::string_view(error.what()).find('\n') != std::string_view::npos)
            throw std::runtime_error(std::string("a message of several lines: ") + error.what());
        return false;
    }
}

std::vector<std::string> corpus(const Target& target) {
    std::vector<std::filesystem::path> files;
    std::error_code none;
    for (const auto& entry : std::filesystem::directory_iterator(
             std::filesystem::path(LAMINATE_FUZZ_CORPUS) / target.name, none))
        files.push_back(entry.path());
    std::ranges::sort(files);
    std::vector<std::string> all;
    for (const auto& file : files) all.push_back(read_file(file));
    return all;
}

}  // namespace laminate::fuzz
