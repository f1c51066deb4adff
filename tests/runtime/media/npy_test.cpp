#include "runtime/media/npy.h"

#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "tests/support/temporary_directory.h"

namespace laminate {
namespace {

/// A file of format `version` with `dictionary` as its header and `data` behind it.
std::string npy(const std::string& dictionary, const std::string& data, char version = 1) {
    std::string header = dictionary + "\n";
    std::string bytes = std::string("\x93NUMPY", 6) + version + '\0';
    const auto length = static_cast<uint32_t>(header.size());
    for (int k = 0; k < (version == 1 ? 2 : 4); ++k)
        bytes += static_cast<char>(length >> (8 * k) & 0xff);
    return bytes + header + data;
}

template <class Element>
std::string raw(const std::vector<Element>& values) {
    return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(Element)};
}

std::string error_of(const std::string& bytes) {
    try {
        (void)parse_npy(bytes, "f.npy");
    } catch (const InputError& error) {
        return error.what();
    }
    return "no error";
}

using Npy = TemporaryDirectory;

TEST_F(Npy, WhatIsWrittenIsReadBack) {
    for (const std::vector<int64_t>& dims : std::vector<std::vector<int64_t>>{{2, 1, 3}, {6}, {}}) {
        std::vector<float> values(dims.empty() ? 1 : 6, 1.5f);
        values.back() = -0.1f;
        const Constant array{dims, values};
        save_npy(array, directory_ / "a.npy");
        const Constant read = load_npy(directory_ / "a.npy");
        EXPECT_EQ(read.dims, dims);
        EXPECT_EQ(read.values, array.values);
    }
    EXPECT_EQ(files(), 1);
}

TEST_F(Npy, TheElementsStartOnA64ByteBoundaryAsNumpyWritesThem) {
    save_npy({{2}, {1, 2}}, directory_ / "a.npy");
    const std::string bytes = read_file(directory_ / "a.npy");
    EXPECT_EQ(bytes.size() % 64, 8u);
    EXPECT_EQ(bytes.substr(bytes.size() - 8), raw<float>({1, 2}));
    EXPECT_EQ(bytes[bytes.size() - 9], '\n');
}

TEST(Npys, HalvesAndIntegersBecomeFloats) {
    const auto read = [](const std::string& descr, const std::string& data) {
        const std::string header =
            "{'descr': '" + descr + "', 'fortran_order': False, 'shape': (2,), }";
        return parse_npy(npy(header, data), "f.npy").values;
    };
    EXPECT_EQ(read("<f2", raw<uint16_t>({0x3c00, 0xc100})), (std::vector<float>{1, -2.5f}));
    EXPECT_EQ(read("<i8", raw<int64_t>({-3, (1 << 24) - 1})), (std::vector<float>{-3, 16777215}));
    EXPECT_EQ(read("<i4", raw<int32_t>({7, -8})), (std::vector<float>{7, -8}));
    EXPECT_EQ(error_of(npy("{'descr': '<i8', 'fortran_order': False, 'shape': (1,), }",
                           raw<int64_t>({-(1 << 24) - 1}))),
              "f.npy: has integers of 2^24 or more, which floats do not hold");
}

TEST_F(Npy, ADirectoryThatIsNotThereIsAnError) {
    EXPECT_THROW(save_npy({{1}, {1}}, directory_ / "none" / "a.npy"), InputError);
    EXPECT_THROW((void)load_npy(directory_ / "none.npy"), InputError);
}

TEST(NpyHeader, NumpysOwnSpellingsOfShape) {
    EXPECT_EQ(parse_npy(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }",
                            raw<float>({1, 2})),
                        "f")
                  .dims,
              (std::vector<int64_t>{2}));
    EXPECT_EQ(parse_npy(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2), }",
                            raw<float>({1, 2})),
                        "f")
                  .dims,
              (std::vector<int64_t>{1, 2}));
    EXPECT_EQ(
        parse_npy(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (), }", raw<float>({7})),
                  "f")
            .values,
        (std::vector<float>{7}));
    EXPECT_EQ(parse_npy(npy("{\"shape\": (1,2), \"fortran_order\":False,\"descr\":\"<f4\"}",
                            raw<float>({1, 2})),
                        "f")
                  .values,
              (std::vector<float>{1, 2}));
}

TEST(NpyHeader, VersionsTwoAndThreeHaveALongerLength) {
    const std::string dictionary = "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }";
    EXPECT_EQ(parse_npy(npy(dictionary, raw<float>({3}), 2), "f").values, (std::vector<float>{3}));
    EXPECT_EQ(parse_npy(npy(dictionary, raw<float>({4}), 3), "f").values, (std::vector<float>{4}));
    EXPECT_EQ(error_of(npy(dictionary, raw<float>({4}), 4)),
              "f.npy: is of format version 4, expected 1 to 3");
}

TEST(NpyElements, DoublesAndBytesKeepTheirValue) {
    EXPECT_EQ(parse_npy(npy("{'descr': '<f8', 'fortran_order': False, 'shape': (2,), }",
                            raw<double>({0.5, -3})),
                        "f")
                  .values,
              (std::vector<float>{0.5f, -3}));
    EXPECT_EQ(parse_npy(npy("{'descr': '|u1', 'fortran_order': False, 'shape': (3,), }",
                            raw<uint8_t>({0, 128, 255})),
                        "f")
                  .values,
              (std::vector<float>{0, 128, 255}));
    EXPECT_EQ(parse_npy(npy("{'descr': '|i1', 'fortran_order': False, 'shape': (2,), }",
                            raw<int8_t>({-128, 127})),
                        "f")
                  .values,
              (std::vector<float>{-128, 127}));
}

TEST(NpyElements, WhatWouldNeedAnotherReadingIsRefused) {
    EXPECT_EQ(error_of(npy("{'descr': '>f4', 'fortran_order': False, 'shape': (1,), }", "1234")),
              "f.npy: has elements of type >f4, expected <f4, <f8, <f2, <i8, <i4, |u1 or |i1");
    EXPECT_EQ(
        error_of(npy("{'descr': '<i2', 'fortran_order': False, 'shape': (1,), }", "12345678")),
        "f.npy: has elements of type <i2, expected <f4, <f8, <f2, <i8, <i4, |u1 or |i1");
    EXPECT_EQ(
        error_of(npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }", "1234")),
        "f.npy: element type is a record, expected <f4, <f8, <f2, <i8, <i4, |u1 or |i1");
    EXPECT_EQ(error_of(npy("{'descr': '<f4', 'fortran_order': True, 'shape': (1,), }", "1234")),
              "f.npy: is in Fortran order, expected C order");
}

TEST(NpyErrors, SizesThatDoNotMatch) {
    EXPECT_EQ(error_of(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }",
                           raw<float>({1, 2}))),
              "f.npy: holds 8 bytes of elements, expected 3 elements of 4 bytes");
    EXPECT_EQ(error_of(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }",
                           raw<float>({1, 2}))),
              "f.npy: holds 8 bytes of elements, expected 1 elements of 4 bytes");
    EXPECT_EQ(error_of(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (0,), }", "")),
              "f.npy: has a dimension of 0 elements, expected 1 or more");
    // 4 * 4611686018427387905 elements are 4 modulo 2^64.
    EXPECT_EQ(error_of(npy(
                  "{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387905, 4), }",
                  raw<float>({1, 2, 3, 4}))),
              "f.npy: has more elements than 64 bits count");
    EXPECT_EQ(
        error_of(npy(
            "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999, 1), }", "")),
        "f.npy: shape has a number beyond 64 bits");
    EXPECT_EQ(error_of(npy(
                  "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999, 99999999999), }",
                  "1234")),
              "f.npy: has more elements than 64 bits count");
    EXPECT_EQ(error_of(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (9999999999, 9), }",
                           "1234")),
              "f.npy: holds 4 bytes of elements, expected 89999999991 elements of 4 bytes");
}

TEST(NpyErrors, EveryTruncationAndAnyChangedByteIsReadOrRefused) {
    const std::string good = npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }",
                                 raw<float>({1, 2, 3, 4}));
    EXPECT_EQ(error_of(good), "no error");
    for (size_t length = 0; length < good.size(); ++length)
        EXPECT_NE(error_of(good.substr(0, length)), "no error") << length;
    std::mt19937 random(5);
    int refused = 0;
    for (int trial = 0; trial < 3000; ++trial) {
        std::string bad = good;
        bad[random() % (good.size() - 16)] = static_cast<char>(random() % 256);
        refused += error_of(bad) != "no error";
    }
    EXPECT_GT(refused, 1500);
}

}  // namespace
}  // namespace laminate
