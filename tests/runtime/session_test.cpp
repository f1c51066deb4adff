#include "runtime/session.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <numeric>
#include <random>
#include <thread>

#include "base/error.h"
#include "nets/operators/reference_operators.h"
#include "runtime/arena_plan.h"
#include "tests/runtime/allocations.h"
#include "tests/runtime/hand_network.h"
#include "tests/support/sanitized.h"

namespace laminate {
namespace {

using Values = std::vector<float>;

constexpr int rows = 6, columns = 4;

/// One row per strip: out(y) = in(y) + constants[0] * in(y + 1). The row is built in scratch with
/// pauses, so that threads sharing a scratch would spoil each other's row.
int blur(const float* const* inputs, float* const* outputs, const float* constants, void* scratch,
         int32_t begin, int32_t end) {
    auto* row = static_cast<float*>(scratch);
    for (int y = begin; y < end; ++y) {
        for (int x = 0; x < columns; ++x) row[x] = inputs[0][y * columns + x];
        std::this_thread::yield();
        for (int x = 0; x < columns; ++x)
            row[x] += y + 1 < rows ? constants[0] * inputs[0][(y + 1) * columns + x] : 0.0f;
        std::this_thread::yield();
        for (int x = 0; x < columns; ++x) outputs[0][y * columns + x] = row[x];
    }
    return 0;
}

/// Two inputs, two outputs: sum and difference of a row per strip.
int sum_and_difference(const float* const* inputs, float* const* outputs, const float*, void*,
                       int32_t begin, int32_t end) {
    for (int k = begin * columns; k < end * columns; ++k) {
        outputs[0][k] = inputs[0][k] + inputs[1][k];
        outputs[1][k] = inputs[0][k] - inputs[1][k];
    }
    return 0;
}

/// Each strip's row has the number of the call's first strip.
int first_strip(const float* const*, float* const* outputs, const float*, void*, int32_t begin,
                int32_t end) {
    std::fill(outputs[0] + begin * columns, outputs[0] + end * columns, static_cast<float>(begin));
    return 0;
}

int failing(const float* const*, float* const*, const float*, void*, int32_t begin, int32_t) {
    return begin == 2 ? 7 : 0;
}

constexpr std::chrono::milliseconds sleep_of_image{3};

int sleeping(const float* const* inputs, float* const* outputs, const float*, void*, int32_t, int32_t) {
    std::this_thread::sleep_for(sleep_of_image);
    std::copy(inputs[0], inputs[0] + rows * columns, outputs[0]);
    return 0;
}

/// Every other element times the first constant, the others times the second.
int alternately_scaled(const float* const* inputs, float* const* outputs, const float* constants, void*,
                       int32_t begin, int32_t end) {
    for (int k = begin * columns; k < end * columns; ++k)
        outputs[0][k] = inputs[0][k] * constants[k % 2];
    return 0;
}

Layer layer_of(LayerKind kind, const std::string& name, std::vector<TensorId> inputs,
               TensorId output) {
    Layer layer;
    layer.kind = kind;
    layer.name = name;
    layer.inputs = std::move(inputs);
    layer.output = output;
    return layer;
}

Values ramp(size_t count, float first = 0) {
    Values values(count);
    for (size_t k = 0; k < count; ++k) values[k] = first + static_cast<float>(k);
    return values;
}

Values blurred(const Values& in, float factor, int images) {
    Values out(in.size());
    for (int n = 0; n < images; ++n) {
        for (int k = 0; k < rows * columns; ++k) {
            const auto at = static_cast<size_t>(n * rows * columns + k);
            out[at] = in[at] + (k + columns < rows * columns ? factor * in[at + columns] : 0.0f);
        }
    }
    return out;
}

/// x -> blur(10) -> a -> blur(100) -> b; (a, b) -> sum, difference.
HandNetwork branches(int64_t images) {
    HandNetwork network;
    const std::vector<int64_t> dims{images, 1, rows, columns};
    const TensorId x = network.tensor("x", dims), a = network.tensor("a", dims),
                   b = network.tensor("b", dims);
    const TensorId sum = network.tensor("sum", dims),
                   difference = network.tensor("difference", dims);
    network.manifest.inputs = {x};
    network.manifest.outputs = {difference, sum};
    network.group(blur, {x}, {a}, rows, columns * 4, {10});
    network.group(blur, {a}, {b}, rows, columns * 4, {100});
    network.group(sum_and_difference, {a, b}, {sum, difference}, rows);
    return network;
}

TEST(Session, GroupsRunInOrderWithTheirConstantsForEveryImageAndThreadCount) {
    for (const int64_t images : {1, 3}) {
        HandNetwork network = branches(images);
        const Values x = ramp(static_cast<size_t>(images) * rows * columns, 1);
        const Values a = blurred(x, 10, static_cast<int>(images)),
                     b = blurred(a, 100, static_cast<int>(images));
        for (const int threads : {1, 2, 5, 16}) {
            Session session = Session::open(network.compiled(), {threads, 0});
            Values difference(x.size(), -1), sum(x.size(), -1);
            session.run({x.data()}, {difference.data(), sum.data()});
            for (size_t k = 0; k < x.size(); ++k) {
                ASSERT_EQ(sum[k], a[k] + b[k])
                    << images << " images, " << threads << " threads, element " << k;
                ASSERT_EQ(difference[k], a[k] - b[k])
                    << images << " images, " << threads << " threads, element " << k;
            }
        }
    }
}

TEST(Session, StripsThatBelongTogetherAreOneCall) {
    constexpr int together = 3;
    HandNetwork network;
    const TensorId x = network.tensor("x", {2, 1, rows, columns}),
                   y = network.tensor("y", {2, 1, rows, columns});
    network.manifest.inputs = {x};
    network.manifest.outputs = {y};
    network.group(first_strip, {x}, {y}, rows);
    std::get<GroupStep>(network.manifest.steps.front()).strips_together = together;
    const Values in = ramp(2 * rows * columns);
    for (const int threads : {2, 4}) {
        Session session = Session::open(network.compiled(), {threads, 0});
        Values out(in.size(), -1);
        session.run({in.data()}, {out.data()});
        for (size_t k = 0; k < out.size(); ++k) {
            const int row = static_cast<int>(k) / columns % rows;
            ASSERT_EQ(out[k], static_cast<float>(row / together * together))
                << threads << " threads, element " << k;
        }
    }
}

// The least normal number halved, and its half doubled: zeros unless the network is strict, on whatever
// thread, by groups and by layers without code of their own. The caller's arithmetic stays as it is.
TEST(Session, SubnormalNumbersAreZerosUnlessTheNetworkIsStrict) {
    constexpr float least = std::numeric_limits<float>::min();
    const std::vector<int64_t> dims{3, 1, rows, columns};
    for (const bool strict : {false, true}) {
        HandNetwork network;
        network.manifest.strict = strict;
        const TensorId x = network.tensor("x", dims), of_group = network.tensor("of_group", dims),
                       of_layer = network.tensor("of_layer", dims);
        network.manifest.inputs = {x};
        network.manifest.outputs = {of_group, of_layer};
        network.group(alternately_scaled, {x}, {of_group}, rows, 0, {0.5F, 2});
        Layer half = layer_of(LayerKind::activation, "half", {x}, of_layer);
        half.activation.kind = ActivationKind::leaky_relu;
        half.activation.alpha = 0.5F;
        network.layer(half);
        Values in(3 * rows * columns), halves(in.size());
        for (size_t k = 0; k < in.size(); ++k) {
            in[k] = k % 2 == 0 ? -least : -least / 2;
            halves[k] = k % 2 == 0 ? in[k] / 2 : in[k] * 2;
        }
        const Values zeros(in.size(), 0);
        for (const int threads : {1, 2, 5}) {
            Session session = Session::open(network.compiled(), {threads, 0});
            Values group(in.size(), -1), layer(in.size(), -1);
            for (int repeat = 0; repeat < 10; ++repeat) {
                session.run({in.data()}, {group.data(), layer.data()});
                ASSERT_EQ(group, strict ? halves : zeros) << threads << " threads, run " << repeat;
                for (size_t k = 0; k < in.size(); k += 2)
                    ASSERT_EQ(layer[k], strict ? halves[k] : 0) << threads << " threads, run " << repeat;
                volatile float mine = least;
                mine = mine / 2;
                ASSERT_EQ(mine, least / 2);
            }
        }
    }
}

TEST(Session, LayersWithoutCodeOfTheirOwnRunInTheSameTeam) {
    HandNetwork network = branches(3);
    const std::vector<int64_t> dims{3, 1, rows, columns};
    TensorId last = 3;  // sum
    for (int n = 0; n < 5; ++n) {
        const TensorId next = network.tensor("relu" + std::to_string(n), dims);
        Layer relu = layer_of(LayerKind::activation, "relu" + std::to_string(n), {last}, next);
        relu.activation.kind = ActivationKind::relu;
        network.layer(relu);
        last = network.tensor("blur" + std::to_string(n), dims);
        network.group(blur, {next}, {last}, rows, columns * 4, {1});
    }
    network.manifest.outputs = {last};
    Values x(3 * rows * columns), expected;
    for (size_t k = 0; k < x.size(); ++k) x[k] = static_cast<float>((k * 7) % 11) - 5;
    const Values a = blurred(x, 10, 3), b = blurred(a, 100, 3);
    for (size_t k = 0; k < x.size(); ++k) expected.push_back(a[k] + b[k]);
    for (int n = 0; n < 5; ++n) {
        for (float& value : expected) value = std::max(value, 0.0f);
        expected = blurred(expected, 1, 3);
    }
    for (const int threads : {1, 2, 3, 8}) {
        Session session = Session::open(network.compiled(), {threads, 0});
        for (int repeat = 0; repeat < 20; ++repeat) {
            Values found(x.size(), -1);
            session.run({x.data()}, {found.data()});
            ASSERT_EQ(found, expected) << threads << " threads, run " << repeat;
        }
    }
}

TEST(Session, StepTimesAreThoseOfTheLastRun) {
    using Milliseconds = std::chrono::duration<double, std::milli>;
    HandNetwork network = branches(2);
    const TensorId sum = 3, flat = network.tensor("flat", {2, rows * columns}),
                   slept = network.tensor("slept", {2, rows * columns}),
                   soft = network.tensor("soft", {2, rows * columns});
    network.layer(layer_of(LayerKind::flatten, "flatten", {sum}, flat));  // nothing to do
    network.group(sleeping, {flat}, {slept}, 1);
    network.layer(layer_of(LayerKind::softmax, "softmax", {slept}, soft));
    network.manifest.outputs = {soft};
    const Values x(2 * rows * columns, 1);
    Values out(x.size());
    EXPECT_TRUE(Session::open(network.compiled(), {2, 0}).step_times().empty());
    for (const int threads : {1, 3}) {
        Session session = Session::open(network.compiled(), {threads, 0, true});
        for (int run = 0; run < 2; ++run) {
            const auto start = std::chrono::steady_clock::now();
            session.run({x.data()}, {out.data()});
            const double all = Milliseconds(std::chrono::steady_clock::now() - start).count();
            double of_caller = 0;
            std::vector<size_t> steps;
            for (const StepTime& time : session.step_times()) {
                steps.push_back(time.step);
                ASSERT_EQ(std::ssize(time.work_ms), threads);
                ASSERT_EQ(std::ssize(time.waiting_ms), threads);
                of_caller += time.work_ms[0] + time.waiting_ms[0];
                const double work = std::accumulate(time.work_ms.begin(), time.work_ms.end(), 0.0);
                EXPECT_GT(work, 0);
                if (time.step == 4) {
                    EXPECT_GE(work, 2 * Milliseconds(sleep_of_image).count());
                }
            }
            EXPECT_EQ(steps, (std::vector<size_t>{0, 1, 2, 4, 5}));
            EXPECT_LE(of_caller, all);
        }
    }
}

TEST(Session, TheArenaIsTensorsPlusOneScratchPerThread) {
    // a and b live together; each is 6 * 4 floats = 96 bytes, in whole cache lines 128. Scratch: 16
    // bytes take 64.
    HandNetwork network = branches(1);
    const Session session = Session::open(network.compiled(), {3});
    EXPECT_EQ(session.arena().tensors_bytes, 2 * 128);
    EXPECT_EQ(session.arena().scratch_per_thread_bytes, 64);
    EXPECT_EQ(session.arena().threads, 3);
    EXPECT_EQ(session.arena_bytes(), 2 * 128 + 3 * 64);
}

TEST(Session, InputsAndOutputsAreListedInOrder) {
    HandNetwork network = branches(2);
    const Session session = Session::open(network.compiled());
    ASSERT_EQ(session.inputs().size(), 1u);
    EXPECT_EQ(session.inputs()[0].name, "x");
    EXPECT_EQ(session.inputs()[0].dims, (std::vector<int64_t>{2, 1, 6, 4}));
    ASSERT_EQ(session.outputs().size(), 2u);
    EXPECT_EQ(session.outputs()[0].name, "difference");
    EXPECT_EQ(session.outputs()[1].name, "sum");
}

TEST(Session, ARunAllocatesNothing) {
    if (!allocations_are_counted) GTEST_SKIP() << "the sanitizer allocates";
    HandNetwork network = branches(2);
    const TensorId flat = network.tensor("flat", {2, rows * columns}),
                   soft = network.tensor("soft", {2, rows * columns});
    network.layer(layer_of(LayerKind::flatten, "flatten", {4}, flat));
    network.layer(layer_of(LayerKind::softmax, "softmax", {flat}, soft));
    network.manifest.outputs = {soft};
    Session session = Session::open(network.compiled(), {2, 0});
    const Values x(2 * rows * columns, 1);
    Values out(x.size());
    const float* inputs[] = {x.data()};
    float* outputs[] = {out.data()};
    const int64_t before = allocation_count();
    session.run(inputs, outputs);
    EXPECT_EQ(allocation_count() - before, 0);
    EXPECT_GT(before, 0);
}

TEST(Session, SeveralSessionsRunInsideACallersParallelRegion) {
    HandNetwork network = branches(1);
    const laminate_compiled_network* compiled = network.compiled();
    std::vector<Values> results(4, Values(rows * columns));
#pragma omp parallel for num_threads(4)
    for (int k = 0; k < 4; ++k) {
        Session session = Session::open(compiled, {2, 0});
        const Values x = ramp(rows * columns, static_cast<float>(k));
        Values difference(x.size());
        for (int repeat = 0; repeat < 20; ++repeat)
            session.run({x.data()}, {difference.data(), results[static_cast<size_t>(k)].data()});
    }
    for (int k = 0; k < 4; ++k) {
        const Values a = blurred(ramp(rows * columns, static_cast<float>(k)), 10, 1),
                     b = blurred(a, 100, 1);
        for (size_t at = 0; at < a.size(); ++at)
            ASSERT_EQ(results[static_cast<size_t>(k)][at], a[at] + b[at]) << "session " << k;
    }
}

TEST(Session, AGroupThatFailsIsNamedWithItsCode) {
    HandNetwork network;
    network.manifest.inputs = {network.tensor("x", {1, 1, rows, columns})};
    network.manifest.outputs = {network.tensor("y", {1, 1, rows, columns})};
    network.group(failing, {0}, {1}, rows);
    Session session = Session::open(network.compiled(), {2, 0});
    Values x(rows * columns), y(rows * columns);
    for (int repeat = 0; repeat < 2; ++repeat) {  // a failure does not leave the session busy
        try {
            session.run({x.data()}, {y.data()});
            FAIL() << "expected RunError";
        } catch (const RunError& error) {
            EXPECT_STREQ(error.what(), "group group0: the compiled code returned 7");
        }
    }
}

TEST(Session, FlattenAliasesAndSharedStoragesReachEveryOutput) {
    // x is an output itself and, flattened, another; a is an output twice, and flattened.
    HandNetwork network;
    const TensorId x = network.tensor("x", {2, 1, 1, 2}), flat_x = network.tensor("flat_x", {2, 2});
    const TensorId a = network.tensor("a", {2, 1, 1, 2}), flat_a = network.tensor("flat_a", {2, 2});
    Layer relu = layer_of(LayerKind::activation, "relu", {x}, a);
    relu.activation.kind = ActivationKind::relu;
    network.layer(layer_of(LayerKind::flatten, "flatten_x", {x}, flat_x));
    network.layer(relu);
    network.layer(layer_of(LayerKind::flatten, "flatten_a", {a}, flat_a));
    network.manifest.inputs = {x};
    network.manifest.outputs = {x, flat_x, flat_a, a, a};
    Session session = Session::open(network.compiled());
    EXPECT_EQ(session.arena_bytes(), 0);
    const Values in{-1, 2, -3, 4};
    std::vector<Values> out(5, Values(4, -99));
    session.run({in.data()},
                {out[0].data(), out[1].data(), out[2].data(), out[3].data(), out[4].data()});
    EXPECT_EQ(out[0], in);
    EXPECT_EQ(out[1], in);
    for (size_t k = 2; k < 5; ++k) EXPECT_EQ(out[k], (Values{0, 2, 0, 4})) << "output " << k;
}

TEST(Session, FlattenTakesNoMemory) {
    // x -> relu -> a -> flatten -> flat -> softmax: a and flat are one array of 24 floats, 96 bytes
    // in whole cache lines.
    HandNetwork network;
    const TensorId x = network.tensor("x", {1, 1, rows, columns}),
                   a = network.tensor("a", {1, 1, rows, columns});
    const TensorId flat = network.tensor("flat", {1, rows * columns}),
                   y = network.tensor("y", {1, rows * columns});
    Layer relu = layer_of(LayerKind::activation, "relu", {x}, a);
    relu.activation.kind = ActivationKind::relu;
    network.layer(relu);
    network.layer(layer_of(LayerKind::flatten, "flatten", {a}, flat));
    network.layer(layer_of(LayerKind::softmax, "softmax", {flat}, y));
    network.manifest.inputs = {x};
    network.manifest.outputs = {y};
    Session session = Session::open(network.compiled());
    EXPECT_EQ(session.arena_bytes(), 128);
    const Values in(24, -1);
    Values out(24);
    session.run({in.data()}, {out.data()});
    for (const float value : out) EXPECT_NEAR(value, 1.0f / 24, 1e-7f);
}

TEST(Session, ConstantMapsAreReadWhereTheyLie) {
    // map -> relu -> y takes no memory; as an output, reshaped or not, the map is copied there.
    HandNetwork network;
    const std::vector<int64_t> dims{1, 1, rows, columns};
    const TensorId x = network.tensor("x", dims), map = network.tensor("map", dims),
                   flat = network.tensor("flat", {1, rows * columns}),
                   y = network.tensor("y", {1, rows * columns});
    Values values(24);
    for (size_t n = 0; n < values.size(); ++n) values[n] = static_cast<float>(n) - 7;
    Layer constant = layer_of(LayerKind::general, "map", {}, map);
    constant.general.kind = GeneralKind::constant;
    constant.weights = std::make_shared<const Constant>(Constant{dims, values});
    Layer relu = layer_of(LayerKind::activation, "relu", {flat}, y);
    relu.activation.kind = ActivationKind::relu;
    for (const Layer& layer : {constant, layer_of(LayerKind::flatten, "flatten", {map}, flat), relu})
        network.layer(layer);
    network.manifest.inputs = {x};
    for (const bool is_output : {false, true}) {
        network.manifest.outputs = is_output ? std::vector{y, map} : std::vector{y};
        Session session = Session::open(network.compiled());
        EXPECT_EQ(session.arena_bytes(), 0);
        const Values in(24);
        Values out(24), copied(24);
        std::vector<float*> arrays{out.data()};
        if (is_output) arrays.push_back(copied.data());
        session.run({in.data()}, arrays);
        for (size_t n = 0; n < out.size(); ++n) EXPECT_EQ(out[n], std::max(values[n], 0.0F)) << n;
        EXPECT_EQ(copied, is_output ? values : Values(24));
    }
}

TEST(Session, PartsOfAConcatLieWithinIt) {
    // x -> relu -> a, x -> leaky -> b, (a, b) -> c -> relu -> y: c alone is there, 48 floats.
    HandNetwork network;
    const std::vector<int64_t> part{1, 1, rows, columns}, whole{1, 2, rows, columns};
    const TensorId x = network.tensor("x", part), a = network.tensor("a", part),
                   b = network.tensor("b", part), c = network.tensor("c", whole),
                   y = network.tensor("y", whole);
    Layer relu = layer_of(LayerKind::activation, "relu", {x}, a),
          leaky = layer_of(LayerKind::activation, "leaky", {x}, b),
          last = layer_of(LayerKind::activation, "last", {c}, y);
    relu.activation.kind = last.activation.kind = ActivationKind::relu;
    leaky.activation.kind = ActivationKind::leaky_relu;
    leaky.activation.alpha = -2;
    for (const Layer& layer : {relu, leaky, layer_of(LayerKind::concat, "join", {a, b}, c), last})
        network.layer(layer);
    network.manifest.inputs = {x};
    network.manifest.outputs = {y};
    Session session = Session::open(network.compiled());
    EXPECT_EQ(session.arena_bytes(), 48 * 4);
    const Values in(24, -1);
    Values out(48), expected(24, 0);
    expected.insert(expected.end(), 24, 2.0f);
    session.run({in.data()}, {out.data()});
    EXPECT_EQ(out, expected);
}

TEST(Session, AConcatThatWouldEnlargeTheArenaCopies) {
    // a waits for b while t1 and t2 come and go. Copied: t1 (8192 bytes), later c (4352) at 0, b
    // (4096) behind c, t2 (2048) behind b, a (256) behind t2: 10752. Joined, c would be there from
    // a on: t1, c, t2 one behind the other, 14592.
    HandNetwork network;
    const auto map = [&](const char* name, int64_t channels) {
        return network.tensor(name, {1, channels, 8, 8});
    };
    const TensorId x = map("x", 1), a = map("a", 1), t1 = map("t1", 32), t2 = map("t2", 8),
                   b = map("b", 16), c = map("c", 17), y = map("y", 17);
    for (const auto& [in, out] : {std::pair{x, a}, {x, t1}, {t1, t2}, {t2, b}})
        network.group(failing, {in}, {out});
    network.layer(layer_of(LayerKind::concat, "join", {a, b}, c));
    network.group(failing, {c}, {y});
    network.manifest.inputs = {x};
    network.manifest.outputs = {y};
    EXPECT_EQ(Session::open(network.compiled()).arena_bytes(), 10752);
}

/// A random DAG of layers on N x C x 2 x 2 tensors, flattened ones among them; some tensors are
/// outputs, wherever they are. N is 1, where parts of a concat can lie within it, or 2.
Network random_network(uint32_t seed) {
    std::mt19937 random(seed);
    const auto pick = [&](size_t count) { return static_cast<TensorId>(random() % count); };
    Network network;
    network.name = "random" + std::to_string(seed);
    const int inputs = 1 + pick(2);
    const int64_t images = 1 + seed % 2;
    for (int k = 0; k < inputs; ++k) {
        network.tensors.push_back({"input" + std::to_string(k), {images, 1 + pick(3), 2, 2}});
        network.inputs.push_back(k);
    }
    const int layers = 3 + pick(12);
    for (int k = 0; k < layers; ++k) {
        const TensorId a = pick(network.tensors.size()), b = pick(network.tensors.size());
        const TensorId output = static_cast<TensorId>(network.tensors.size());
        const bool both_maps =
            network.tensor(a).dims.size() == 4 && network.tensor(b).dims.size() == 4;
        Layer layer = layer_of(LayerKind::activation, "layer" + std::to_string(k), {a}, output);
        const unsigned choice = random() % 4;
        if (choice == 0 && network.tensor(a).dims == network.tensor(b).dims) {
            layer.kind = LayerKind::add;
            layer.inputs = {a, b};
        } else if (choice == 1 && both_maps &&
                   network.tensor(a).dims[1] + network.tensor(b).dims[1] < 20) {
            layer.kind = LayerKind::concat;
            layer.inputs = {a, b};
        } else if (choice == 2) {
            layer.kind = LayerKind::flatten;
        } else {
            layer.activation.kind = ActivationKind::leaky_relu;
            layer.activation.alpha = -0.5f;
        }
        std::vector<std::vector<int64_t>> dims;
        for (TensorId id : layer.inputs) dims.push_back(network.tensor(id).dims);
        network.tensors.push_back({"t" + std::to_string(k), infer_output_dims(layer, dims)});
        network.layers.push_back(layer);
    }
    const int outputs = 1 + pick(3);
    for (int k = 0; k < outputs; ++k) network.outputs.push_back(pick(network.tensors.size()));
    return network;
}

TEST(Session, RandomNetworksInOneArenaEqualSeparateArrays) {
    int shared = 0;
    for (uint32_t seed = 0; seed < test::samples(400U); ++seed) {
        const Network network = random_network(seed);
        HandNetwork compiled;
        compiled.manifest.tensors = network.tensors;
        compiled.manifest.inputs = network.inputs;
        compiled.manifest.outputs = network.outputs;
        for (const Layer& layer : network.layers) compiled.layer(layer);
        Session session = Session::open(compiled.compiled(), {1});

        std::vector<Values> inputs;
        std::vector<const float*> input_arrays;
        for (const Tensor& tensor : session.inputs()) {
            inputs.push_back(ramp(static_cast<size_t>(element_count(tensor.dims)),
                                  -5.0f + static_cast<float>(seed % 7)));
        }
        for (const Values& values : inputs) input_arrays.push_back(values.data());
        std::vector<Values> outputs;
        std::vector<float*> output_arrays;
        for (const Tensor& tensor : session.outputs())
            outputs.emplace_back(static_cast<size_t>(element_count(tensor.dims)), -99.0f);
        for (Values& values : outputs) output_arrays.push_back(values.data());
        const std::vector<Values> inputs_before = inputs;

        session.run(input_arrays, output_arrays);
        ASSERT_EQ(outputs, run_reference_network(network, inputs_before, {}, 1)) << "seed " << seed;
        ASSERT_EQ(inputs, inputs_before) << "seed " << seed;
        // A second run must not see data of the first.
        session.run(input_arrays, output_arrays);
        ASSERT_EQ(outputs, run_reference_network(network, inputs_before, {}, 1)) << "seed " << seed;

        int64_t separate = 0;
        for (const Layer& layer : network.layers)
            separate += aligned(4 * element_count(network.tensor(layer.output).dims));
        shared += session.arena().tensors_bytes * 2 < separate;
    }
    EXPECT_GT(
        shared,
        test::samples(100));  // the arena really is shared, so the equality above means something
}

std::string open_error(HandNetwork& network, const laminate_compiled_network* compiled,
                       int threads = 1) {
    (void)network;
    try {
        (void)Session::open(compiled, {threads});
    } catch (const InputError& error) {
        return error.what();
    }
    return "no error";
}

TEST(Session, WhatCannotRunIsRefusedWhenOpened) {
    HandNetwork good = branches(1);
    EXPECT_EQ(open_error(good, nullptr), "compiled network: found none");
    EXPECT_EQ(open_error(good, good.compiled(), -1), "threads: found -1, expected 0 to 1024");

    laminate_compiled_network changed = *good.compiled();
    changed.abi_version = 99;
    EXPECT_EQ(open_error(good, &changed),
              "compiled network: is of version 99, this runtime is of version 1");
    changed = *good.compiled();
    changed.manifest = nullptr;
    EXPECT_EQ(open_error(good, &changed), "compiled network: has no manifest");
    changed = *good.compiled();
    changed.group_count = 2;
    EXPECT_EQ(open_error(good, &changed), "compiled network: step group2: group 2 of 2");
    changed = *good.compiled();
    changed.constant_count = 1;
    EXPECT_EQ(open_error(good, &changed),
              "compiled network: step group1: constants end at element 1 + 1 of 1");

    HandNetwork no_function = branches(1);
    no_function.groups[1] = nullptr;
    EXPECT_EQ(open_error(no_function, no_function.compiled()),
              "compiled network: step group1: group 1 has no function");

    HandNetwork other_machine = branches(1);
    other_machine.manifest.cpu_features = {"avx4096"};
    EXPECT_EQ(open_error(other_machine, other_machine.compiled()),
              "compiled network: was compiled for x86-64-linux, this machine has no avx4096");

    HandNetwork wrong_shape = branches(1);
    const TensorId flat = wrong_shape.tensor("flat", {1, 23});
    wrong_shape.layer(layer_of(LayerKind::flatten, "flatten", {4}, flat));
    EXPECT_EQ(open_error(wrong_shape, wrong_shape.compiled()),
              "compiled network: step flatten: output is 1x23, expected 1x24");

    HandNetwork no_weights = branches(1);
    const TensorId y = no_weights.tensor("y", {1, 1, 6, 4});
    no_weights.layer(layer_of(LayerKind::conv, "conv", {4}, y));
    EXPECT_EQ(open_error(no_weights, no_weights.compiled()),
              "compiled network: step conv: conv (conv): has no weights");
}

TEST(Session, WrongArraysAreRefused) {
    HandNetwork network = branches(1);
    Session session = Session::open(network.compiled());
    Values x(24), y(24);
    const auto error = [&](const std::vector<const float*>& inputs,
                           const std::vector<float*>& outputs) {
        try {
            session.run(inputs, outputs);
        } catch (const InputError& e) {
            return std::string(e.what());
        }
        return std::string("no error");
    };
    EXPECT_EQ(error({}, {y.data(), y.data()}), "run: found 0 inputs, expected 1");
    EXPECT_EQ(error({x.data()}, {y.data()}), "run: found 1 outputs, expected 2");
    EXPECT_EQ(error({nullptr}, {y.data(), y.data()}), "input x: no array");
    EXPECT_EQ(error({x.data()}, {y.data(), nullptr}), "output sum: no array");
}

TEST(Session, MovesWithItsNetwork) {
    HandNetwork network = branches(1);
    Session first = Session::open(network.compiled());
    Session second = std::move(first);
    const Values x = ramp(24);
    Values difference(24), sum(24);
    second.run({x.data()}, {difference.data(), sum.data()});
    EXPECT_EQ(sum[23], 46);  // last row: a = x = 23, b = a
}

}  // namespace
}  // namespace laminate
