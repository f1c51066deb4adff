// The C++ text of a Halide program: readable, complete, and nothing that is not used.
#include "generators/halide/text.h"

#include <gtest/gtest.h>

#include <regex>
#include <sstream>
#include <string>

#include "base/error.h"
#include "instrumentation/halide_witness.h"
#include "nets/random/random_network.h"
#include "nets/zoo/zoo.h"
#include "scheduler/explore/random_schedule.h"
#include "tests/instrumentation/join_networks.h"

namespace laminate {
namespace {

std::string text_of(const Network& network, const std::string& group) {
    return halide_generator_file(
        {{halide_program(network, parse_group(network, group)), "net", {}}}, {});
}

/// The lines of the file from the one that begins a function to the one that ends it.
std::string body(const std::string& file, const std::string& function) {
    const size_t begin = file.find("    void " + function + "() {\n");
    const size_t first = file.find('\n', begin) + 1;
    return file.substr(first, file.find("    }\n", first) - first);
}

TEST(HalideText, AlgorithmAndScheduleOfAChainWithLines) {
    const std::string file = text_of(
        zoo_network("l2net"),
        "{conv1: zo yo xo io | yi zi xi ii n m; tile z4 y18 x18 i3; X root/conv2.yo; W root/root; "
        "Y "
        "root/conv2.yo & conv2: zo yo xo io | yi zi xi ii n m; tile z4 y4 x16 i4; W root/root; Y "
        "yo/yo}");
    EXPECT_EQ(body(file, "generate"), R"(        in_input(x, y, z) = input(x, y, z);
        w_conv1(m, n, i, z) = conv1_weights(m, n, i, z);
        conv1(x, y, z) = 0.0f;
        Expr conv1_x = x + conv1_r.x;
        Expr conv1_y = y + conv1_r.y;
        conv1(x, y, z) +=
            in_input(conv1_x, conv1_y, conv1_r.z) * w_conv1(conv1_r.x, conv1_r.y, conv1_r.z, z);
        w_conv2(m, n, i, z) = conv2_weights(m, n, i, z);
        conv2(x, y, z) = 0.0f;
        Expr conv2_x = x + conv2_r.x;
        Expr conv2_y = y + conv2_r.y;
        conv2(x, y, z) +=
            conv1(conv2_x, conv2_y, conv2_r.z) * w_conv2(conv2_r.x, conv2_r.y, conv2_r.z, z);
        conv2_out(x, y, z) = conv2(x, y, z);
)");
    const std::string schedule = body(file, "schedule");
    for (const char* line :
         {"        conv2.compute_at(conv2_out, yo);\n", "        w_conv2.compute_root();\n",
          "            .split(y, yo, yr, conv2_yo, TailStrategy::GuardWithIf)\n",
          "        conv1.store_root().compute_at(conv2_out, yo).fold_storage(y, conv2_yo + "
          "2);\n"}) {
        EXPECT_NE(schedule.find(line), std::string::npos) << line << "in\n" << schedule;
    }
    EXPECT_NE(file.find("    GeneratorParam<int> conv2_yo{\"conv2_yo\", 4};\n"), std::string::npos);
    EXPECT_NE(
        file.find("    Input<Buffer<float, 4>> conv1_weights{\"conv1_weights\"};  // m, n, i, z: "
                  "3 x 3 x 3 x 4\n"),
        std::string::npos);
    EXPECT_EQ(file.find("lazily"), std::string::npos);
}

/// Without line breaks.
std::string flat(const std::string& text) {
    return std::regex_replace(text, std::regex("\n +"), " ");
}

TEST(HalideText, PaddingIsClampedAndPartialSumsAreLazy) {
    JoinBuilder b;
    const TensorId x = b.input(4, 9, 8);
    b.conv(x, 3, 3, 1, 1, ActivationKind::relu);
    const std::string file = text_of(
        b.finish("padded"),
        "{conv1: zo yo xo io | zi yi xi ii n m; tile z3 y9 x8 i3; X io/io; W io/io; Y io/io}");
    for (const char* part :
         {" conv1_r.where(visit * 3 + conv1_r.z < 4);",
          " Expr conv1_i = min(visit * 3 + conv1_r.z, 3);",
          "in_input1(clamp(likely(conv1_x), 0, 7), clamp(likely(conv1_y), 0, 8), conv1_i)",
          " conv1_out(x, y, z) = undef<float>();",
          "lazily(conv1_out_r.x == 0, 0.0f, conv1_out(x, y, z))"}) {
        EXPECT_NE(flat(file).find(part), std::string::npos) << part << "\n" << file;
    }
}

TEST(HalideText, EveryDeclaredNameIsUsedAndLinesFit) {
    for (const char* net : {"l2net", "l3net", "fsrcnn"}) {
        const Network network = zoo_network(net);
        int written = 0;
        for (uint64_t seed = 1; seed <= 25; ++seed) {
            const Schedule schedule = random_schedule(network, seed, {.max_depth = 3});
            for (const GroupSchedule& group : schedule.groups()) {
                std::string file;
                try {
                    file = halide_generator_file({{halide_program(network, group), "net", {}}}, {});
                } catch (const InputError&) {  // a transposed convolution
                    continue;
                }
                ++written;
                EXPECT_EQ(file.find('$'), std::string::npos) << file;
                std::istringstream lines(file);
                for (std::string line; std::getline(lines, line);)
                    EXPECT_LE(line.size(), 100U) << line;
                const size_t members = file.find("private:");
                const std::string used = file.substr(0, members);
                const std::regex declared(R"re((\w+)\{")re");
                for (std::sregex_iterator
                         at(file.begin() + static_cast<long>(members), file.end(), declared),
                     end;
                     at != end; ++at) {
                    const std::string name = (*at)[1];
                    EXPECT_TRUE(std::regex_search(used, std::regex("\\b" + name + "\\b"))) << name;
                }
            }
        }
        EXPECT_GE(written, 20) << net;
    }
}

TEST(HalideText, TransposedConvolutionsHaveNoForm) {
    uint64_t seed = 1;
    const auto is_transposed = [](const Layer& layer) {
        return layer.kind == LayerKind::conv_transpose;
    };
    while (!is_transposed(random_chain(seed).layers.front())) ++seed;
    const Network network = random_chain(seed);
    const std::string text =
        "{" + network.layers.front().name +
        ": zo yo xo io | zi yi xi ii n m; tile z1 y1 x1 i1; X xo/xo; W root/root; Y xo/xo}";
    EXPECT_THROW((void)halide_program(network, parse_group(network, text)), InputError);
}

/// Halide names its own variables t0, t1, ..., and refuses a program with an input of that name.
TEST(HalideText, InputsAreNotNamedAsHalidesOwnVariables) {
    JoinBuilder b;
    const TensorId x = b.input(6, 7, 1), y = b.input(6, 7, 1);
    b.add(x, y, ActivationKind::relu);
    Network network = b.finish("numbered");
    network.tensors[static_cast<size_t>(x)].name = "t4";
    network.tensors[static_cast<size_t>(y)].name = "t3";
    const GroupSchedule group = parse_group(
        network,
        "{add1: yo io zo xo | ii zi yi xi n m; tile z6 y7 x1 i1; X0 yi/yi; X1 zo/ii; Y yi/yi}");
    EXPECT_EQ(printed_difference(network, group, 1, {}), "");
    EXPECT_NE(halide_generator_file({{halide_program(network, group), "net", {}}}, {})
                  .find("Input<Buffer<float, 3>> t4_{\"t4_\"}"),
              std::string::npos);
}

TEST(HalideText, IdentifiersOfNames) {
    EXPECT_EQ(halide_identifier("l3net"), "l3net");
    EXPECT_EQ(halide_identifier("4k--net.v2_"), "n4k_net_v2");
}

}  // namespace
}  // namespace laminate
