#include "answers/network_argument.h"

#include <fmt/core.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "answers/checks.h"
#include "answers/output.h"
#include "base/error.h"
#include "runtime/manifest.h"

namespace laminate::cli {

void NetworkArgument::declare(CLI::App* verb, bool or_compiled) {
    constexpr const char* kinds = ".onnx or .param (ncnn) file, zoo:NAME[?height=..&width=..], random:SEED";
    verb->add_option("NET", spec,
                     fmt::format("{}{}", kinds, or_compiled ? ", or compiled directory" : ""))
        ->required();
    declare_sizes(verb);
}

void NetworkArgument::declare_option(CLI::App* verb) {
    verb->add_option("--net", spec, ".onnx or .param (ncnn) file, zoo:NAME[?height=..&width=..] or random:SEED")
        ->type_name("NET");
    declare_sizes(verb);
}

void NetworkArgument::declare_sizes(CLI::App* verb) {
    verb->add_option("--height", sizes.height, "Rows of every 4-D input whose height is symbolic")
        ->check(positive());
    verb->add_option("--width", sizes.width, "Columns of every 4-D input whose width is symbolic")
        ->check(positive());
    verb->add_option("--batch", sizes.batch, "Images where the batch is symbolic")
        ->check(positive());
    verb->add_option("--dim", symbols, "Value of one symbolic dimension, e.g. H=540")
        ->type_name("SYMBOL=VALUE");
    verb->add_option("--integers", integers,
                     "Values of one input of integers that shapes need, e.g. size=270,480")
        ->type_name("INPUT=N,...");
}

namespace {

/// What follows "NAME=" in one value of an option.
std::pair<std::string, std::vector<int64_t>> named_integers(const char* option,
                                                            const std::string& text,
                                                            const char* expected) {
    const size_t equals = text.find('=');
    std::vector<int64_t> values;
    bool is_legal = equals != std::string::npos && equals != 0;
    for (size_t at = equals + 1; is_legal && at <= text.size();) {
        const size_t comma = std::min(text.find(',', at), text.size());
        is_legal = CLI::detail::lexical_cast(text.substr(at, comma - at), values.emplace_back());
        at = comma + 1;
    }
    if (!is_legal)
        throw UsageError(fmt::format("{}: found \"{}\", expected {}", option, text, expected));
    return {text.substr(0, equals), values};
}

}  // namespace

InputSizes NetworkArgument::input_sizes() const {
    InputSizes all = sizes;
    constexpr const char* one = "SYMBOL=VALUE with a positive value";
    for (const std::string& text : symbols) {
        const auto [symbol, values] = named_integers("--dim", text, one);
        if (values.size() != 1 || values[0] < 1)
            throw UsageError("--dim: found \"" + text + "\", expected " + one);
        if (!all.symbols.emplace(symbol, values[0]).second)
            throw UsageError("--dim: " + symbol + " is given twice");
    }
    for (const std::string& text : integers) {
        const auto [name, values] = named_integers("--integers", text, "INPUT=N,... of integers");
        if (!all.integers.emplace(name, values).second)
            throw UsageError("--integers: " + name + " is given twice");
    }
    return all;
}

nlohmann::ordered_json NetworkArgument::to_json() const {
    nlohmann::ordered_json given{{"net", spec}};
    if (sizes.height) given["height"] = *sizes.height;
    if (sizes.width) given["width"] = *sizes.width;
    if (sizes.batch) given["batch"] = *sizes.batch;
    if (!symbols.empty()) given["dims"] = symbols;
    if (!integers.empty()) given["integers"] = integers;
    return given;
}

NetworkArgument NetworkArgument::from_json(const nlohmann::ordered_json& given) {
    NetworkArgument argument;
    try {
        argument.spec = given.at("net").get<std::string>();
        if (given.contains("height")) argument.sizes.height = given["height"].get<int64_t>();
        if (given.contains("width")) argument.sizes.width = given["width"].get<int64_t>();
        if (given.contains("batch")) argument.sizes.batch = given["batch"].get<int64_t>();
        if (given.contains("dims"))
            argument.symbols = given["dims"].get<std::vector<std::string>>();
        if (given.contains("integers"))
            argument.integers = given["integers"].get<std::vector<std::string>>();
    } catch (const nlohmann::json::exception& error) {
        throw InputError(std::string("network_given: ") + error.what());
    }
    return argument;
}

Network network_of_front(const std::string& file, const nlohmann::ordered_json& front) {
    if (!front.contains("network_given"))
        throw InputError(file + ": does not say how its network was given; expected --net NET");
    return NetworkArgument::from_json(front["network_given"]).open();
}

Network NetworkArgument::open() const {
    if (std::error_code error; std::filesystem::is_directory(spec, error)) {
        const bool is_compiled =
            std::filesystem::exists(std::filesystem::path(spec) / manifest_file, error);
        throw InputError(fmt::format("{}: is a {}directory, expected {}an .onnx or .param file or a zoo name",
                                     spec, is_compiled ? "compiled " : "",
                                     is_compiled ? "the network that it was compiled from, " : ""));
    }
    return open_network(spec, input_sizes());
}

}  // namespace laminate::cli
