// The verb `run`: its results, its refusals, and that a refusal leaves no file.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "base/files.h"
#include "nets/onnx/onnx.h"
#include "nets/operators/reference_operators.h"
#include "nets/zoo/zoo.h"
#include "runtime/media/npy.h"
#include "runtime/media/picture.h"
#include "tests/support/run_program.h"

namespace laminate::cli {
namespace {

const std::string data = LAMINATE_EXAMPLE_DATA;
const std::string example = data + "/fsrcnn_x2.onnx";

size_t lines(const std::string& text) {
    return static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
}

/// Expects one line that names the fault, the exit code, and no file.
void expect_refused(const ProgramResult& result, int exit_code, const std::string& message,
                    const ScratchDirectory& scratch) {
    EXPECT_EQ(result.exit_code, exit_code) << result.err;
    EXPECT_EQ(lines(result.err), 1U) << result.err;
    EXPECT_NE(result.err.find(message), std::string::npos) << result.err;
    EXPECT_TRUE(scratch.is_empty());
}

/// A small input with both signs.
Constant ramp(const std::vector<int64_t>& dims) {
    std::vector<float> values(static_cast<size_t>(element_count(dims)));
    for (size_t n = 0; n < values.size(); ++n)
        values[n] = static_cast<float>(static_cast<int>(n * 7 % 23) - 11) / 8;
    return {dims, std::move(values)};
}

TEST(Run, L3NetEqualsTheReferenceOperators) {
    const ScratchDirectory scratch;
    const Network network = zoo_network("l3net");
    const Constant x = ramp(network.tensor(network.inputs[0]).dims);
    save_npy(x, scratch / "x.npy");
    const ProgramResult result = run_program("run zoo:l3net --input " + (scratch / "x.npy") +
                                             " --output " + (scratch / "y.npy"));
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const Constant found = load_npy(scratch / "y.npy");
    const std::vector<float> expected = run_reference_network(network, {x.values})[0];
    ASSERT_EQ(found.dims, network.tensor(network.outputs[0]).dims);
    const float range = *std::max_element(expected.begin(), expected.end()) -
                        *std::min_element(expected.begin(), expected.end());
    for (size_t n = 0; n < expected.size(); ++n)
        ASSERT_NEAR(found.values[n], expected[n], 1e-5F * range) << "element " << n;
}

TEST(Run, FusedAndLayerByLayerAgreeAndExpectedSaysSo) {
    const ScratchDirectory scratch;
    save_npy(ramp({1, 1, 21, 30}), scratch / "x.npy");
    const std::string input = " --input luma=" + (scratch / "x.npy");
    ASSERT_EQ(
        run_program("run " + example + input + " --layer-by-layer --output " + (scratch / "y.npy"))
            .exit_code,
        0);
    // The picture gives height and width; a budget that cuts the network into several groups.
    const ProgramResult same =
        run_program("run " + example + input +
                    " --memory 80KiB --threads 3 --expected luma_x2=" + (scratch / "y.npy"));
    EXPECT_EQ(same.exit_code, 0) << same.out << same.err;
    EXPECT_NE(same.out.find("as expected\n"), std::string::npos) << same.out;

    const Constant right = load_npy(scratch / "y.npy");
    std::vector<float> wrong = right.values;
    wrong[77] += 0.25F;
    save_npy({right.dims, std::move(wrong)}, scratch / "wrong.npy");
    const ProgramResult different =
        run_program("run " + example + input + " --expected " + (scratch / "wrong.npy"));
    EXPECT_EQ(different.exit_code, 1);
    EXPECT_NE(different.out.find("1 of 2520 elements differ"), std::string::npos)
        << different.out;  // 42 * 60
    EXPECT_NE(different.out.find("the worst is element 77"), std::string::npos) << different.out;
}

TEST(Run, AColourPictureKeepsItsColourAndDoublesInSize) {
    const ScratchDirectory scratch;
    const ProgramResult result =
        run_program("run " + example + " --input " + data + "/astronaut_half.png --output " +
                    (scratch / "large.png") + " --compare " + data + "/astronaut.png --json -");
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const auto answer = nlohmann::json::parse(result.out);
    EXPECT_NEAR(answer.at("psnr_db").get<double>(), 33.49, 0.01);  // examples/data/README.md
    EXPECT_NEAR(answer.at("bicubic_psnr_db").get<double>(), 32.05, 0.01);
    const Picture large = load_picture(scratch / "large.png");
    EXPECT_EQ(large.height, 512);
    EXPECT_EQ(large.width, 512);
    ASSERT_EQ(large.channels, 3);
    // Red, green and blue each close to the original's; without colour they would be more than 20
    // levels away.
    const Picture original = load_picture(data + "/astronaut.png");
    for (size_t c = 0; c < 3; ++c) {
        int64_t sum = 0;
        for (size_t n = c; n < large.samples.size(); n += 3)
            sum += std::abs(large.samples[n] - original.samples[n]);
        EXPECT_LT(static_cast<double>(sum) / (512 * 512), 5) << "channel " << c;
    }
}

// Issue 31, 9.
TEST(Run, SixteenBitsAndAlphaReachTheOutputAndWhatDoesNotIsNamed) {
    const ScratchDirectory scratch;
    Picture picture{.height = 20, .width = 24, .channels = 3, .bits = 16};
    for (int k = 0; k < 20 * 24; ++k) {
        for (int c = 0; c < 3; ++c)
            picture.samples.push_back(static_cast<uint16_t>(20000 + 61 * k + 3001 * c));
        picture.alpha.push_back(static_cast<uint16_t>(k % 24 < 12 ? 0 : 65535));
    }
    picture.tags.gamma = 100'000;
    save_picture(picture, scratch / "p.png");
    const std::string run = "run " + example + " --input " + (scratch / "p.png") + " --output ";
    const ProgramResult png = run_program(run + (scratch / "large.png"));
    ASSERT_EQ(png.exit_code, 0) << png.err;
    EXPECT_EQ(png.err.find("dropped"), std::string::npos) << png.err;
    const Picture large = load_picture(scratch / "large.png");
    EXPECT_EQ(large.bits, 16);
    EXPECT_EQ(large.tags, picture.tags);
    EXPECT_EQ(large.width, 48);
    // More levels than 8 bits have.
    EXPECT_GT(std::set<uint16_t>(large.samples.begin(), large.samples.end()).size(), 1000U);
    ASSERT_EQ(large.alpha.size(), 40U * 48);
    EXPECT_EQ(large.alpha[10 * 48 + 4], 0);
    EXPECT_EQ(large.alpha[10 * 48 + 44], 65535);

    const ProgramResult jpeg = run_program(run + (scratch / "large.jpg"));
    ASSERT_EQ(jpeg.exit_code, 0) << jpeg.err;
    EXPECT_NE(jpeg.err.find("large.jpg: dropped: bits below the upper 8, alpha, gamma and "
                            "chromaticities\n"),
              std::string::npos)
        << jpeg.err;
    const ProgramResult array = run_program(run + (scratch / "large.npy"));
    ASSERT_EQ(array.exit_code, 0) << array.err;
    EXPECT_NE(array.err.find("p.png: dropped: alpha\n"), std::string::npos) << array.err;
}

TEST(Run, ANetworkOfBytesTakesAPicturesSamplesAsTheyAre) {
    const ScratchDirectory scratch;
    Network network;  // channels swapped, bytes in and out
    network.name = "bytes";
    network.tensors = {{"p", {1, 3, 4, 5}, ElementType::uint8},
                       {"y", {1, 3, 4, 5}, ElementType::uint8}};
    network.inputs = {0};
    network.outputs = {1};
    Layer swap;
    swap.name = "swap", swap.inputs = {0}, swap.output = 1;
    swap.weights = std::make_shared<const Constant>(
        Constant{{3, 3, 1, 1}, std::vector<float>{0, 0, 1, 0, 1, 0, 1, 0, 0}});
    network.layers = {swap};
    save_onnx(network, scratch / "n.onnx");

    Picture picture{4, 5, 3, {}}, swapped{4, 5, 3, {}};
    for (int k = 0; k < 60; ++k) {
        picture.samples.push_back(static_cast<uint8_t>(k * 37 % 256));
        swapped.samples.push_back(static_cast<uint8_t>((k / 3 * 3 + 2 - k % 3) * 37 % 256));
    }
    save_picture(picture, scratch / "p.png");
    const std::string run = "run " + (scratch / "n.onnx") + " --input ";
    const ProgramResult to_picture =
        run_program(run + (scratch / "p.png") + " --output " + (scratch / "y.png"));
    ASSERT_EQ(to_picture.exit_code, 0) << to_picture.err;
    EXPECT_EQ(load_picture(scratch / "y.png"), swapped);

    std::vector<float> samples(60);
    for (size_t k = 0; k < 60; ++k) samples[k % 3 * 20 + k / 3] = picture.samples[k];
    save_npy({{1, 3, 4, 5}, samples}, scratch / "p.npy");
    const ProgramResult to_array =
        run_program(run + (scratch / "p.npy") + " --output " + (scratch / "y.npy"));
    ASSERT_EQ(to_array.exit_code, 0) << to_array.err;
    const Constant found = load_npy(scratch / "y.npy");
    for (size_t k = 0; k < 60; ++k)
        EXPECT_EQ(found.values[k % 3 * 20 + k / 3], swapped.samples[k]) << k;

    samples[7] = 0.5F;
    save_npy({{1, 3, 4, 5}, samples}, scratch / "p.npy");
    const ProgramResult unit = run_program(run + (scratch / "p.npy"));
    EXPECT_EQ(unit.exit_code, 3);
    EXPECT_NE(unit.err.find("p.npy: element 7 is 0.5, expected integers from 0 to 255 for input p, "
                            "which is uint8\n"),
              std::string::npos)
        << unit.err;
    EXPECT_NE(run_program("info " + (scratch / "n.onnx")).out.find("\ninput p 1x3x4x5 uint8\n"),
              std::string::npos);
}

TEST(Run, InfinityIsAsExpectedWhereItIsExpectedAndNowhereElse) {
    const ScratchDirectory scratch;
    Network network;  // doubles every element
    network.name = "double";
    network.tensors = {{"x", {1, 1, 2, 8}}, {"y", {1, 1, 2, 8}}};
    network.inputs = {0};
    network.outputs = {1};
    Layer twice;
    twice.name = "twice", twice.inputs = {0}, twice.output = 1;
    twice.weights = std::make_shared<const Constant>(Constant{{1, 1, 1, 1}, std::vector<float>{2}});
    network.layers = {twice};
    save_onnx(network, scratch / "n.onnx");
    constexpr float infinity = std::numeric_limits<float>::infinity();
    std::vector<float> x(16, 1), y(16, 2);
    x[3] = infinity, y[3] = infinity;
    x[5] = -infinity, y[5] = -infinity;
    save_npy({{1, 1, 2, 8}, x}, scratch / "X.NPY");  // in either case
    save_npy({{1, 1, 2, 8}, y}, scratch / "y.npy");
    const std::string run = "run " + (scratch / "n.onnx") + " --input " + (scratch / "X.NPY") +
                            " --expected " + (scratch / "y.npy");
    const ProgramResult same = run_program(run + " --output " + (scratch / "found.NPY"));
    EXPECT_EQ(same.exit_code, 0) << same.out << same.err;
    EXPECT_EQ(load_npy(scratch / "found.NPY").values, y);

    for (const size_t wrong :
         {size_t{3}, size_t{4}}) {  // the other infinity; infinity for a number
        std::vector<float> other = y;
        other[wrong] = std::isinf(y[wrong]) ? -y[wrong] : infinity;
        save_npy({{1, 1, 2, 8}, other}, scratch / "y.npy");
        const ProgramResult different = run_program(run);
        EXPECT_EQ(different.exit_code, 1) << wrong;
        EXPECT_NE(different.out.find("1 of 16 elements differ"), std::string::npos)
            << different.out;
    }
}

TEST(Run, CountsOfModelAndGeneratedCodeStandSideBySide) {
    const ProgramResult result = run_program("run zoo:l2net --counts --threads 1 --json -");
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const auto counts = nlohmann::json::parse(result.out).at("counts");
    EXPECT_TRUE(counts.at("equal").get<bool>());
    EXPECT_EQ(counts.at("model"), counts.at("measured"));
    // Fused, no strip: every input once, every weight once, every output once; conv1 18x18x4x27,
    // conv2 16x16x4x36 MACs at least.
    EXPECT_EQ(counts.at("measured").at("reads").at("X"), 20 * 20 * 3);
    EXPECT_EQ(counts.at("measured").at("reads").at("W"), 108 + 144);
    EXPECT_EQ(counts.at("measured").at("writes").at("Y"), 16 * 16 * 4);
    EXPECT_GE(counts.at("measured").at("macs").get<int64_t>(), 18 * 18 * 4 * 27 + 16 * 16 * 4 * 36);
}

TEST(Run, ADirectoryWithHooksIsCountedLikeItsNetwork) {
    const ScratchDirectory scratch;
    const std::string hooked = scratch / "hooked", plain = scratch / "plain";
    const std::string network = "'zoo:l3net' ";
    ASSERT_EQ(run_program("compile " + network + "-q --instrumented -o " + hooked).exit_code, 0);
    const auto counts_of = [](const std::string& what) {
        const ProgramResult result = run_program("run " + what + " --counts --json -");
        EXPECT_EQ(result.exit_code, 0) << result.err;
        nlohmann::json counts = nlohmann::json::parse(result.out).at("counts");
        counts.erase("deployed");  // code without hooks, of which a directory has none
        return counts;
    };
    EXPECT_EQ(counts_of(hooked), counts_of(network));
    const auto info = nlohmann::json::parse(run_program("info " + hooked + " --json -").out);
    EXPECT_TRUE(info.at("instrumented").get<bool>());
    EXPECT_EQ(info.at("steps")[0].at("live_total_elements"),
              counts_of(hooked).at("model").at("buffer_elements").at("total"));

    ASSERT_EQ(run_program("compile " + network + "-q -o " + plain).exit_code, 0);
    const ProgramResult refused = run_program("run " + plain + " --counts");
    EXPECT_EQ(refused.exit_code, 3) << refused.err;
    EXPECT_EQ(refused.err, "laminate: error: " + plain +
                               ": has no hooks, so --counts cannot see what it does; expected a "
                               "directory of laminate compile --instrumented, or the network "
                               "itself\n");
    EXPECT_FALSE(nlohmann::json::parse(run_program("info " + plain + " --json -").out)
                     .at("instrumented")
                     .get<bool>());
}

/// A manifest that promises less than the code does: the run says so, and exits with 1.
TEST(Run, CodeThatDoesNotKeepItsPromiseIsFound) {
    const ScratchDirectory scratch;
    const std::string place = scratch / "net";
    ASSERT_EQ(run_program("compile zoo:l2net -q --instrumented --name net -o " + place).exit_code,
              0);
    const auto with = [&](const std::string& found, const std::string& other) {
        const std::string library = read_file(place + "/libnet.so");
        std::string changed = library;
        size_t at = changed.find(found);
        EXPECT_NE(at, std::string::npos);
        changed.replace(at, found.size(), other);
        EXPECT_EQ(changed.size(), library.size());
        write_file_atomically(place + "/libnet.so", changed);
        std::string manifest = read_file(place + "/manifest.json");
        at = manifest.find(found);
        EXPECT_NE(at, std::string::npos);
        manifest.replace(at, found.size(), other);
        manifest.erase(manifest.rfind(",\n \"library_file\""));  // the last member
        write_file_atomically(place + "/manifest.json", manifest + "\n}\n");
        const ProgramResult result = run_program("run " + place + " --counts -q");
        EXPECT_EQ(result.exit_code, 1) << result.err;
        return result.out;
    };
    const std::string out = with("\"writes\": 1024", "\"writes\": 1025");
    EXPECT_NE(out.find("difference: Y writes: model 1025, measured 1024"), std::string::npos)
        << out;
}

TEST(Run, TheArenaIsPrintedAndWithinTheBudget) {
    // The padded lines of the first two take more than their elements: chosen again with less. The
    // third one's smallest too.
    for (const int64_t kib : {256, 200, 150}) {
        const ProgramResult result =
            run_program("run " + example + " --height 64 --width 64 --memory " +
                        std::to_string(kib) + "KiB --threads 1 --json -");
        ASSERT_EQ(result.exit_code, 0) << result.err;
        const auto arena = nlohmann::json::parse(result.out);
        EXPECT_GT(arena.at("arena_bytes").get<int64_t>(), 0);
        EXPECT_LE(arena.at("scratch_bytes_per_thread").get<int64_t>(), kib << 10) << kib;
    }
    EXPECT_NE(run_program("run zoo:l2net").out.find("arena "), std::string::npos);
}

TEST(Run, ABudgetOfSomeBytesIsInfeasibleAndNamesTheSmallestThatWorks) {
    const ScratchDirectory scratch;
    const std::string command = "run " + example + " --input " + data +
                                "/chelsea_half.png --output " + (scratch / "y.png") + " --memory ";
    const ProgramResult result = run_program(command + "200B");
    expect_refused(result, 4, "no schedule fits in 200 B; the smallest budget that works is ",
                   scratch);
    const std::string smallest = result.err.substr(result.err.find("works is ") + 9);
    const int64_t bytes = std::stoll(smallest);
    EXPECT_EQ(run_program(command + std::to_string(bytes)).exit_code, 0);
    std::filesystem::remove(scratch / "y.png");
    expect_refused(run_program(command + std::to_string(bytes - 1)), 4, std::to_string(bytes),
                   scratch);
}

TEST(Run, APictureThatIsNoPictureIsRefused) {
    const ScratchDirectory scratch;
    expect_refused(run_program("run " + example + " --input " + data + "/README.md --output " +
                               (scratch / "y.png")),
                   3, "README.md: is no picture; expected PNG, JPEG or PNM (P5, P6)", scratch);
}

TEST(Run, ATruncatedModelIsRefused) {
    const ScratchDirectory models;
    const std::string file = models / "cut.onnx";
    std::ifstream whole(example, std::ios::binary);
    std::string bytes{std::istreambuf_iterator<char>(whole), std::istreambuf_iterator<char>()};
    std::ofstream(file, std::ios::binary)
        .write(bytes.data(), static_cast<std::streamsize>(bytes.size() / 2));
    const ProgramResult result = run_program("run " + file + " --input " + data +
                                             "/astronaut_half.png --output " + (models / "y.png"));
    EXPECT_EQ(result.exit_code, 3);
    EXPECT_EQ(lines(result.err), 1U) << result.err;
    EXPECT_NE(result.err.find("cut.onnx: "), std::string::npos) << result.err;
    EXPECT_FALSE(std::filesystem::exists(models / "y.png"));
}

TEST(Run, AnUnknownOperatorIsRefusedByName) {
    const ScratchDirectory models;
    std::ifstream whole(example, std::ios::binary);
    std::string bytes{std::istreambuf_iterator<char>(whole), std::istreambuf_iterator<char>()};
    for (size_t at = bytes.find("PRelu"); at != std::string::npos; at = bytes.find("PRelu", at))
        bytes.replace(at, 5, "QRelu");
    std::ofstream(models / "q.onnx", std::ios::binary)
        .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    const ProgramResult result = run_program(
        "run " + (models / "q.onnx") + " --height 8 --width 8 --output " + (models / "y.npy"));
    EXPECT_EQ(result.exit_code, 3);
    EXPECT_EQ(lines(result.err), 1U) << result.err;
    EXPECT_NE(result.err.find("q.onnx: "), std::string::npos) << result.err;
    EXPECT_NE(result.err.find("QRelu"), std::string::npos) << result.err;
    EXPECT_FALSE(std::filesystem::exists(models / "y.npy"));
}

TEST(Run, AScheduleWithAComputeLevelOutsideItsStoreLevelIsRefused) {
    const ScratchDirectory scratch;
    const ProgramResult result = run_program("run zoo:l2net --output " + (scratch / "y.npy") +
                                             " --schedule '{conv1: zo yo xo io | zi yi xi ii n m; "
                                             "tile z4 y18 x18 i3; X yi/xo; W root/root; Y xi/xi} "
                                             "{conv2: zo yo xo io | zi yi xi ii n m; tile z4 y4 "
                                             "x16 i4; X root/root; W root/root; Y xi/xi}'");
    expect_refused(result, 3, "conv1: compute level of X is xo, outside its store level yi",
                   scratch);
}

TEST(Run, ATensorOfAnotherShapeIsRefused) {
    const ScratchDirectory inputs, outputs_unused;
    save_npy(ramp({1, 3, 20, 19}), inputs / "x.npy");
    const ProgramResult result =
        run_program("run zoo:l2net?height=20 --input " + (inputs / "x.npy") + " --width 20");
    EXPECT_EQ(result.exit_code, 3);
    EXPECT_NE(result.err.find("x.npy: is 1x3x20x19, expected 1x3x20x20 for input "),
              std::string::npos)
        << result.err;
}

TEST(Run, AnUnknownOutputNameAndExtensionAreUsageErrors) {
    const ProgramResult name = run_program("run zoo:l2net --output nothing=y.npy");
    EXPECT_EQ(name.exit_code, 2);
    EXPECT_NE(name.err.find("--output: no tensor is called \"nothing\"; expected "),
              std::string::npos)
        << name.err;
    const ProgramResult extension = run_program("run zoo:l2net --output y.tiff");
    EXPECT_EQ(extension.exit_code, 2);
    EXPECT_NE(extension.err.find(
                  "--output: found \"y.tiff\", expected .npy, .pb, .png, .jpg, .pgm or .ppm"),
              std::string::npos)
        << extension.err;
}

TEST(Run, AnOutputDirectoryThatDoesNotExistIsBadInput) {
    const ScratchDirectory scratch;
    expect_refused(run_program("run zoo:l2net --quiet --output " + (scratch / "no/such/y.npy")), 3,
                   "y.npy: cannot be written", scratch);
}

}  // namespace
}  // namespace laminate::cli
