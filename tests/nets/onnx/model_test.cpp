// Files on disk: truncated files, garbage, external data, tensors.
#include "nets/onnx/model.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <limits>
#include <random>

#include "base/files.h"
#include "tests/nets/onnx/builder.h"
#include "tests/support/sanitized.h"

namespace laminate {
namespace {

using test::expect_contains;
using test::message_of;
using test::ModelBuilder;
using test::Scratch;

TEST(ParseModel, EveryTruncationIsRefused) {
    const std::string whole = read_file(LAMINATE_EXAMPLE_DATA "/fsrcnn_x2.onnx");
    const InputSizes sizes{.height = 16, .width = 16};
    EXPECT_NO_THROW((void)parse_onnx(whole, "net.onnx", sizes));
    int refused = 0;
    for (size_t length = 0; length < whole.size(); length += length < 400 ? 1 : 997) {
        const std::string message =
            message_of([&] { (void)parse_onnx(whole.substr(0, length), "net.onnx", sizes); });
        ASSERT_EQ(message.rfind("net.onnx: ", 0), 0u) << "length " << length << ": " << message;
        ++refused;
    }
    EXPECT_GT(refused, 400);
}

TEST(ParseModel, GarbageIsRefused) {
    expect_contains(message_of([] { (void)parse_onnx("", "net.onnx"); }),
                    "net.onnx: is not an ONNX model, or is truncated (0 bytes)");
    expect_contains(message_of([] { (void)parse_onnx("hello, world", "net.onnx"); }),
                    "net.onnx: is not an ONNX model");
    // A picture is well-formed protobuf more often than text is.
    const std::string picture = read_file(LAMINATE_EXAMPLE_DATA "/astronaut_half.png");
    expect_contains(message_of([&] { (void)parse_onnx(picture, "p.png"); }),
                    "p.png: is not an ONNX model");
}

TEST(ParseModel, RandomDamageNeverDoesMoreThanThrow) {
    const std::string whole = read_file(LAMINATE_EXAMPLE_DATA "/fsrcnn_x2.onnx");
    // The first bytes hold the structure of nodes; the last ones inputs and outputs.
    std::mt19937_64 random(20240607);
    int refused = 0;
    for (int round = 0; round < 3000; ++round) {
        std::string damaged = whole;
        for (int i = 0; i < 1 + round % 4; ++i) {
            const size_t at =
                random() % 2 == 0 ? random() % 2500 : damaged.size() - 1 - random() % 400;
            damaged[at] = static_cast<char>(random());
        }
        const std::string message =
            message_of([&] { (void)parse_onnx(damaged, "net.onnx", {.height = 16, .width = 16}); });
        if (message == "no error") continue;  // a changed name or weight does no harm
        ++refused;
        ASSERT_EQ(message.rfind("net.onnx: ", 0), 0u) << "round " << round << ": " << message;
        ASSERT_EQ(message.find('\n'), std::string::npos) << "round " << round;
    }
    EXPECT_GT(refused, 1000);
}

TEST(ParseModel, NoOpsetIsTruncation) {
    ModelBuilder m({1, 1, 4, 4});
    m.node("Relu", {"x"}, "y");
    m.model.clear_opset_import();
    EXPECT_EQ(
        m.error(),
        "net.onnx: does not say which version of the ONNX operators it uses, or is truncated");
    m.model.clear_ir_version();
    EXPECT_EQ(m.error(), "net.onnx: is not an ONNX model: has no graph or no IR version");
}

TEST(InQuotes, StaysOnOneLine) {
    EXPECT_EQ(onnx::in_quotes("conv1"), "\"conv1\"");
    EXPECT_EQ(onnx::in_quotes("a\nb\tc"), "\"a?b?c\"");
    EXPECT_EQ(onnx::in_quotes(std::string(200, 'a')), "\"" + std::string(120, 'a') + "...\"");
}

TEST(Decode, ValuesRawOrTyped) {
    onnx::proto::TensorProto raw = onnx::encode({2, 1}, {1.5f, -2.0f}, "t");
    const auto decoded = std::get<ConstantPtr>(onnx::decode(raw, "t", std::nullopt));
    EXPECT_EQ(decoded->dims, (std::vector<int64_t>{2, 1}));
    EXPECT_EQ(decoded->values, (std::vector<float>{1.5f, -2.0f}));

    onnx::proto::TensorProto integers;
    integers.set_data_type(onnx::proto::TensorProto::INT64);
    integers.add_dims(2);
    integers.set_raw_data(std::string("\x05\0\0\0\0\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff", 16));
    EXPECT_EQ(std::get<onnx::IntegerConstant>(onnx::decode(integers, "t", std::nullopt)).values,
              (std::vector<int64_t>{5, -1}));
    integers.set_data_type(onnx::proto::TensorProto::INT32);
    integers.set_raw_data(std::string("\x05\0\0\0\xff\xff\xff\xff", 8));
    EXPECT_EQ(std::get<onnx::IntegerConstant>(onnx::decode(integers, "t", std::nullopt)).values,
              (std::vector<int64_t>{5, -1}));
}

TEST(Decode, RefusesWhatDoesNotFit) {
    const auto error = [](const onnx::proto::TensorProto& tensor) {
        return message_of(
            [&] { (void)onnx::decode(tensor, "net.onnx: initializer \"w\"", std::nullopt); });
    };
    onnx::proto::TensorProto tensor = onnx::encode({2}, {1, 2}, "w");
    tensor.set_dims(0, 3);
    EXPECT_EQ(error(tensor), "net.onnx: initializer \"w\": has 8 bytes, expected 12");
    tensor.set_dims(0, -3);
    EXPECT_EQ(error(tensor), "net.onnx: initializer \"w\": dimension -3, expected 0 or more");
    tensor.set_dims(0, 1 << 30);  // 4 GiB: refused without allocating it
    EXPECT_EQ(error(tensor), "net.onnx: initializer \"w\": has 8 bytes, expected 4294967296");
    tensor.clear_raw_data();
    EXPECT_EQ(error(tensor), "net.onnx: initializer \"w\": has 0 values, expected 1073741824");
    tensor.set_data_type(onnx::proto::TensorProto::FLOAT16);
    EXPECT_EQ(error(tensor), "net.onnx: initializer \"w\": has 0 values, expected 1073741824");
    tensor.set_data_type(onnx::proto::TensorProto::STRING);
    expect_contains(error(tensor), "values are STRING (type 8), expected FLOAT");
}

TEST(Decode, OtherWidthsBecomeFloat) {
    using Type = onnx::proto::TensorProto;
    onnx::proto::TensorProto tensor;
    tensor.add_dims(6);
    const auto values = [&](Type::DataType type, const std::string& raw) {
        tensor.set_data_type(type);
        tensor.set_raw_data(raw);
        return std::get<ConstantPtr>(onnx::decode(tensor, "t", std::nullopt))->values;
    };
    // Sign, five bits of exponent with bias 15, ten of mantissa: 1; -2; 1 + 1/1024; 2^-24, the
    // least; 65504, the largest; infinity.
    const float infinity = std::numeric_limits<float>::infinity();
    const std::string half("\x00\x3c\x00\xc0\x01\x3c\x01\x00\xff\x7b\x00\x7c", 12);
    EXPECT_EQ(values(Type::FLOAT16, half),
              (std::vector<float>{1, -2, 1.0f + 1.0f / 1024, 0x1p-24f, 65504, infinity}));
    tensor.clear_raw_data();
    for (const int bits : {0x3c00, 0xc000, 0x3c01, 1, 0x7bff, 0x7c00}) tensor.add_int32_data(bits);
    EXPECT_EQ(std::get<ConstantPtr>(onnx::decode(tensor, "t", std::nullopt))->values,
              (std::vector<float>{1, -2, 1.0f + 1.0f / 1024, 0x1p-24f, 65504, infinity}));
    // The upper half of a float: 1; -2; 1 + 1/128; 2^-126; 3.
    tensor.set_dims(0, 5);
    EXPECT_EQ(values(Type::BFLOAT16, std::string("\x80\x3f\x00\xc0\x81\x3f\x80\x00\x40\x40", 10)),
              (std::vector<float>{1, -2, 1.0f + 1.0f / 128, 0x1p-126f, 3}));
    tensor.set_dims(0, 1);
    EXPECT_EQ(values(Type::DOUBLE, std::string("\0\0\0\0\0\0\xf8\x3f", 8)),
              (std::vector<float>{1.5f}));
}

/// Makes the first initializer claim 2^40 values, the largest legal shape, whatever it holds.
test::proto::TensorProto* claim_tebi_values(ModelBuilder& model) {
    auto* w = model.model.mutable_graph()->mutable_initializer(0);
    for (const int axis : {0, 1}) w->set_dims(axis, int64_t{1} << 20);
    for (const int axis : {2, 3}) w->set_dims(axis, 1);
    return w;
}

/// A model whose weights 1 ... 9 are in weights.bin from byte 4 on.
class ExternalData : public ::testing::Test {
protected:
    ExternalData() : model_({1, 1, 4, 4}) {
        std::vector<float> values{0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
        write_file_atomically(directory_ / "weights.bin",
                              std::string(reinterpret_cast<const char*>(values.data()), 40));
        model_.weights("w", {1, 1, 3, 3});
        model_.node("Conv", {"x", "w"}, "y", "c");
        auto* w = model_.model.mutable_graph()->mutable_initializer(0);
        w->clear_float_data();
        w->set_data_location(test::proto::TensorProto::EXTERNAL);
        set("location", "weights.bin");
        set("offset", "4");
    }

    void set(const std::string& key, const std::string& value) {
        auto* w = model_.model.mutable_graph()->mutable_initializer(0);
        for (auto& entry : *w->mutable_external_data()) {
            if (entry.key() == key) return entry.set_value(value);
        }
        auto* entry = w->add_external_data();
        entry->set_key(key);
        entry->set_value(value);
    }

    Network load() {
        write_file_atomically(directory_ / "net.onnx", model_.bytes());
        return load_onnx(directory_ / "net.onnx");
    }
    std::string error() {
        return message_of([&] { (void)load(); });
    }

    Scratch directory_;
    ModelBuilder model_;
};

TEST_F(ExternalData, IsReadFromBesideTheModel) {
    EXPECT_EQ(load().layers[0].weights->values, (std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8, 9}));
    set("length", "36");
    EXPECT_NO_THROW((void)load());
}

TEST_F(ExternalData, IsRefusedOutsideTheModelsDirectory) {
    Scratch elsewhere;
    write_file_atomically(elsewhere / "secret.bin", std::string(64, 'a'));
    const std::string expected = "expected a file in the model's directory";
    set("location", "../" +
                        std::filesystem::path(elsewhere / "").parent_path().filename().string() +
                        "/secret.bin");
    expect_contains(error(), expected);
    set("location", elsewhere / "secret.bin");
    expect_contains(error(), expected);
    set("location", "inside/../weights.bin");
    expect_contains(error(), expected);
    std::filesystem::create_symlink(elsewhere / "secret.bin", directory_ / "link.bin");
    set("location", "link.bin");
    expect_contains(error(), expected);
    set("location", "");
    expect_contains(error(), expected);
}

TEST_F(ExternalData, MustBeThereWhole) {
    set("offset", "8");
    expect_contains(error(),
                    "initializer \"w\": external data file \"weights.bin\" has 40 bytes, expected "
                    "36 from byte 8");
    set("offset", "-4");
    expect_contains(error(), "external data: offset is \"-4\", expected a number of bytes");
    set("offset", "9223372036854775807");
    expect_contains(error(), "expected 36 from byte 9223372036854775807");
    set("offset", "4");
    set("length", "32");
    expect_contains(error(), "external data has 32 bytes, expected 36");
    set("length", "9223372036854775808");
    expect_contains(error(),
                    "external data: length is \"9223372036854775808\", expected a number of bytes");
    set("location", "missing.bin");
    set("length", "36");
    expect_contains(error(), "external data file \"missing.bin\" does not exist beside the model");
    EXPECT_EQ(
        model_.error(),
        "net.onnx: initializer \"w\": has external data, which a model in memory cannot have");
}

/// The sizes alone must lead to the refusal; allocating 4 TiB first would end in another message.
TEST_F(ExternalData, SmallFilesCannotClaimMuch) {
    auto* w = claim_tebi_values(model_);
    const std::string expected = "\"weights.bin\" has 40 bytes, expected 4398046511104 from byte ";
    expect_contains(error(), expected + "4");
    set("length", "4398046511104");
    expect_contains(error(), expected + "4");
    set("offset", "9223372036854775807");
    expect_contains(error(), expected + "9223372036854775807");
    w->set_dims(2, 2);
    expect_contains(error(),
                    "initializer \"w\": tensor of 1048576x1048576x2x1: more than 2^40 elements");
}

TEST(ParseModel, SmallFilesCannotClaimMuch) {
    ModelBuilder model({1, 1, 4, 4});
    model.weights("w", {1, 1, 3, 3});
    model.node("Conv", {"x", "w"}, "y", "c");
    auto* w = claim_tebi_values(model);
    expect_contains(model.error(), "initializer \"w\": has 9 values, expected 1099511627776");
    w->clear_float_data();
    expect_contains(model.error(), "initializer \"w\": has 0 values, expected 1099511627776");
    w->set_raw_data(std::string(36, 'a'));
    expect_contains(model.error(), "initializer \"w\": has 36 bytes, expected 4398046511104");
}

/// A sparse file takes no space on disk, yet its contents are as long as they claim.
TEST_F(ExternalData, LongerThanMemoryIsOneLine) {
    if (test::is_sanitized) GTEST_SKIP() << "a sanitizer ends the process where it cannot allocate";
    claim_tebi_values(model_);
    const int64_t bytes = int64_t{4} << 40;
    std::error_code no_such_files;
    std::filesystem::resize_file(directory_ / "weights.bin", static_cast<uintmax_t>(bytes + 4),
                                 no_such_files);
    if (no_such_files) GTEST_SKIP() << "this file system has no files of 4 TiB";
    // Systems that overcommit memory would grant this allocation, too.
    rlimit address_space{};
    ASSERT_EQ(getrlimit(RLIMIT_AS, &address_space), 0);
    const rlimit bounded{.rlim_cur = rlim_t{1} << 40, .rlim_max = address_space.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_AS, &bounded), 0);
    const std::string message = error();
    EXPECT_EQ(setrlimit(RLIMIT_AS, &address_space), 0);
    expect_contains(message, "there is not enough memory for its constants");
}

TEST(TensorProtoFiles, RoundTrip) {
    Scratch directory;
    const Constant tensor{{1, 2, 1, 3}, {1, -2, 3.5f, 4, 5, 1e-30f}};
    save_tensor_proto(tensor, "input", directory / "t.pb");
    const Constant back = load_tensor_proto(directory / "t.pb");
    EXPECT_EQ(back.dims, tensor.dims);
    EXPECT_EQ(back.values, tensor.values);
    int files = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(directory / ""))
        ++files;
    EXPECT_EQ(files, 1);  // nothing is left aside
}

TEST(TensorProtoFiles, Refusals) {
    Scratch directory;
    expect_contains(message_of([&] { (void)load_tensor_proto(directory / "none.pb"); }),
                    "none.pb: no such file");
    write_file_atomically(directory / "garbage.pb", "garbage");
    expect_contains(message_of([&] { (void)load_tensor_proto(directory / "garbage.pb"); }),
                    "garbage.pb: is not an ONNX tensor, or is truncated (7 bytes)");
    onnx::proto::TensorProto integers;
    integers.set_data_type(onnx::proto::TensorProto::INT64);
    write_file_atomically(directory / "int.pb", integers.SerializeAsString());
    expect_contains(message_of([&] { (void)load_tensor_proto(directory / "int.pb"); }),
                    "values are INT64, expected FLOAT");
    expect_contains(message_of([&] {
                        save_tensor_proto({{2}, {1}}, "t", directory / "t.pb");
                    }),
                    "tensor of shape 2 has 1 values");
}

}  // namespace
}  // namespace laminate
