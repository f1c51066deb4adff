// Runs the onnx project's backend tests: imports and compiles each model, runs it and compares the
// outputs with the expected ones.
//
//   conformance --data DIRECTORY --exceptions FILE [--shard K/N] [--only NAME] [-v]
//
// backend_tests.py writes DIRECTORY. FILE lists the tests that do not pass: a line "reason: text"
// opens a reason, and the lines after it name its tests, one each as SET/NAME. The exit code is 1
// if an unlisted test fails, or if a listed one passes or does not exist; 77 without DIRECTORY.
//
// A backend test gives weights, axes and the like as inputs of the graph, but the importer must
// know convolution weights and everything that a shape depends on. So inputs that are not FLOAT
// become initializers. If the importer still refuses the model, all inputs but the first FLOAT one
// become initializers. The table counts the tests that ran each way.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "generators/compile/compile.h"
#include "nets/onnx/onnx.h"
#include "nets/operators/reference_operators.h"
#include "onnx.pb.h"
#include "runtime/session.h"
#include "scheduler/explore/planner/line_buffers.h"

namespace laminate {
namespace {

namespace proto = laminate::onnx_file;
namespace fs = std::filesystem;

// As onnx.backend.test.case compares.
constexpr float relative_tolerance = 1e-3f;
constexpr float absolute_tolerance = 1e-7f;
constexpr int exit_failed = 1, exit_usage = 2, exit_skipped = 77;

proto::TensorProto read_tensor(const fs::path& path) {
    proto::TensorProto tensor;
    if (!tensor.ParseFromString(read_file(path)))
        throw InputError(path.string() + ": is no tensor");
    return tensor;
}

fs::path data_file(const fs::path& test, const std::string& kind, int k) {
    return test / "test_data_set_0" / (kind + "_" + std::to_string(k) + ".pb");
}

/// A model with some inputs turned into initializers, and the values of the remaining inputs.
struct BoundModel {
    std::string bytes;
    std::vector<std::vector<float>> inputs;
};

BoundModel bind(const fs::path& test, bool only_first_is_live) {
    proto::ModelProto model;
    if (!model.ParseFromString(read_file(test / "model.onnx")))
        throw InputError((test / "model.onnx").string() + ": is no model");
    proto::GraphProto& graph = *model.mutable_graph();
    std::set<std::string> initialized;
    for (const auto& tensor : graph.initializer()) initialized.insert(tensor.name());
    BoundModel bound;
    for (int k = 0, file = 0; k < graph.input_size(); ++k) {
        if (initialized.contains(graph.input(k).name())) continue;
        const fs::path path = data_file(test, "input", file++);
        proto::TensorProto tensor = read_tensor(path);
        const bool is_live = tensor.data_type() == proto::TensorProto::FLOAT &&
                             !(only_first_is_live && !bound.inputs.empty());
        if (is_live) {
            bound.inputs.push_back(load_tensor_proto(path.string()).values);
        } else {
            tensor.set_name(graph.input(k).name());
            *graph.add_initializer() = tensor;  // inputs of the same name are then no inputs
        }
    }
    bound.bytes = model.SerializeAsString();
    return bound;
}

std::string difference(const std::vector<float>& found, const Constant& expected) {
    if (found.size() != expected.values.size())
        return std::to_string(found.size()) + " elements, expected " + dims_text(expected.dims);
    for (size_t k = 0; k < found.size(); ++k) {
        const float a = found[k], b = expected.values[k];
        const bool equal = a == b || (std::isnan(a) && std::isnan(b)) ||
                           std::abs(a - b) <= absolute_tolerance + relative_tolerance * std::abs(b);
        if (!equal)
            return "element " + std::to_string(k) + " is " + std::to_string(a) + ", expected " +
                   std::to_string(b);
    }
    return "";
}

/// Describes what is wrong with the results; empty if nothing is.
std::string run(const fs::path& test, const BoundModel& model, const Network& network) {
    std::vector<Constant> expected;
    for (int k = 0; k < static_cast<int>(network.outputs.size()); ++k)
        expected.push_back(load_tensor_proto(data_file(test, "output", k).string()));
    for (size_t k = 0; k < expected.size(); ++k) {
        std::vector<int64_t> wanted = expected[k].dims;
        if (wanted.empty()) wanted = {1};  // a scalar
        const auto& dims = network.tensor(network.outputs[k]).dims;
        if (dims != wanted)
            return "output " + std::to_string(k) + " is " + dims_text(dims) + ", expected " +
                   dims_text(wanted);
    }
    const auto schedule = line_buffer_schedule(network);
    if (!std::holds_alternative<Schedule>(schedule)) return "no schedule fits";
    CompileOptions options;
    std::string remarks;
    options.threads = 1;
    options.note = [&](const std::string& line) { remarks += line; };
    const JitNetwork compiled(network, std::get<Schedule>(schedule), options);
    if (!remarks.empty()) return remarks;
    Session session = Session::open(&compiled.descriptor(), {.threads = 1});
    std::vector<const float*> inputs;
    for (const auto& values : model.inputs) inputs.push_back(values.data());
    std::vector<std::vector<float>> outputs;
    std::vector<float*> arrays;
    for (const Tensor& tensor : session.outputs())
        outputs.emplace_back(static_cast<size_t>(element_count(tensor.dims)));
    for (auto& values : outputs) arrays.push_back(values.data());
    session.run(inputs, arrays);
    const auto reference = run_reference_network(network, model.inputs, {}, 1);
    for (size_t k = 0; k < expected.size(); ++k) {
        if (const std::string wrong = difference(outputs[k], expected[k]); !wrong.empty())
            return "output " + std::to_string(k) + ": " + wrong;
        if (const std::string wrong = difference(reference[k], expected[k]); !wrong.empty())
            return "reference operators, output " + std::to_string(k) + ": " + wrong;
    }
    return "";
}

struct Result {
    bool passed = false;
    bool bound = false;      ///< only the first input was live
    bool scheduled = false;  ///< generated code ran
    std::string message;
};

Result result_of(const fs::path& test) {
    Result result;
    for (const bool only_first_is_live : {false, true}) {
        try {
            const BoundModel model = bind(test, only_first_is_live);
            std::optional<Network> network;
            try {
                network = parse_onnx(model.bytes, test.filename().string());
            } catch (const InputError& error) {
                result.message = error.what();
                continue;
            }
            result.bound = only_first_is_live;
            for (LayerId id = 0; id < std::ssize(network->layers); ++id)
                result.scheduled = result.scheduled || must_be_scheduled(*network, id);
            result.message = run(test, model, *network);
            result.passed = result.message.empty();
            return result;
        } catch (const std::exception& error) {
            result.message = error.what();
            return result;
        }
    }
    return result;
}

/// The reason of each listed test, by the test's name.
std::map<std::string, std::string> read_exceptions(const std::string& path) {
    std::map<std::string, std::string> reasons;
    std::istringstream lines(read_file(path));
    std::string line, reason;
    constexpr const char* opening = "reason: ";
    for (int number = 1; std::getline(lines, line); ++number) {
        const std::string where = path + ":" + std::to_string(number);
        if (line.empty() || line[0] == '#') continue;
        if (line.starts_with(opening)) {
            reason = line.substr(std::strlen(opening));
            continue;
        }
        if (reason.empty())
            throw InputError(where + ": \"" + line +
                             "\", expected \"reason: \" before the first test");
        if (!reasons.emplace(line, reason).second)
            throw InputError(where + ": \"" + line + "\" is listed twice");
    }
    return reasons;
}

struct Arguments {
    std::string data, exceptions, only;
    size_t shard = 0, shards = 1;
    bool verbose = false;
};

struct Totals {
    int as_it_is = 0, bound = 0, excepted = 0, scheduled = 0;
};

int conformance(const Arguments& arguments) {
    if (!fs::exists(fs::path(arguments.data) / "version")) {
        std::cout << arguments.data << ": no backend tests; backend_tests.py writes them\n";
        return exit_skipped;
    }
    const auto reasons = read_exceptions(arguments.exceptions);
    std::set<std::string> names;
    for (const auto& set : fs::directory_iterator(arguments.data)) {
        if (!set.is_directory()) continue;
        for (const auto& test : fs::directory_iterator(set))
            names.insert(set.path().filename().string() + "/" + test.path().filename().string());
    }
    int wrong = 0;
    for (const auto& [name, reason] : reasons) {
        if (names.contains(name)) continue;
        std::cout << name << ": is listed as an exception, but there is no such test\n";
        ++wrong;
    }
    std::map<std::string, Totals> totals;
    size_t index = 0;
    for (const std::string& name : names) {
        if (index++ % arguments.shards != arguments.shard ||
            (!arguments.only.empty() && name.find(arguments.only) == std::string::npos))
            continue;
        const Result result = result_of(fs::path(arguments.data) / name);
        const bool is_excepted = reasons.contains(name);
        Totals& total = totals[name.substr(0, name.find('/'))];
        if (result.passed) ++(result.bound ? total.bound : total.as_it_is);
        if (result.passed && result.scheduled) ++total.scheduled;
        if (!result.passed && is_excepted) ++total.excepted;
        if (result.passed == is_excepted) {
            std::cout << name << ": "
                      << (result.passed ? "passes, but is listed as an exception" : result.message)
                      << '\n';
            ++wrong;
        } else if (arguments.verbose) {
            std::cout << name << ": "
                      << (is_excepted
                              ? "exception: " + reasons.at(name) + " [" + result.message + "]"
                          : result.bound ? "passes, bound"
                                         : "passes")
                      << '\n';
        }
    }
    std::cout
        << "set                  passed, of these weights bound, compiled kernels   exceptions\n";
    for (const auto& [set, total] : totals) {
        std::string line = set;
        for (const auto& [column, value] : {std::pair{21, total.as_it_is + total.bound},
                                            {37, total.bound},
                                            {52, total.scheduled},
                                            {71, total.excepted}}) {
            line.resize(std::max(line.size() + 1, static_cast<size_t>(column)), ' ');
            line += std::to_string(value);
        }
        std::cout << line << '\n';
    }
    return wrong == 0 ? 0 : exit_failed;
}

}  // namespace
}  // namespace laminate

int main(int count, char** words) {
    laminate::Arguments arguments;
    try {
        for (int k = 1; k < count; ++k) {
            const std::string word = words[k];
            const auto next = [&] {
                if (++k >= count) throw laminate::InputError(word + ": expected a value");
                return std::string(words[k]);
            };
            if (word == "--data") {
                arguments.data = next();
            } else if (word == "--exceptions") {
                arguments.exceptions = next();
            } else if (word == "--only") {
                arguments.only = next();
            } else if (word == "-v") {
                arguments.verbose = true;
            } else if (word == "--shard") {
                const std::string shard = next();
                arguments.shard = std::stoul(shard);
                arguments.shards = std::stoul(shard.substr(shard.find('/') + 1));
            } else {
                throw laminate::InputError(word + ": is no option");
            }
        }
        return laminate::conformance(arguments);
    } catch (const std::exception& error) {
        std::cerr << "conformance: " << error.what() << '\n';
        return laminate::exit_usage;
    }
}
