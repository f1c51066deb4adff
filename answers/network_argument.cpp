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
    constexpr const char* kinds = ".onnx file, zoo:NAME[?height=..&width=..], random:SEED";
    verb->add_option("NET", spec,
                     fmt::format("{}{}", kinds, or_compiled ? ", or compiled directory" : ""))
        ->required();
    declare_sizes(verb);
}

void NetworkArgument::declare_option(CLI::App* verb) {
    verb->add_option("--net", spec, ".onnx file, zoo:NAME[?height=..&width=..] or random:SEED")
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
}

InputSizes NetworkArgument::input_sizes() const {
    InputSizes all = sizes;
    for (const std::string& text : symbols) {
        const size_t equals = text.find('=');
        int64_t value = 0;
        if (equals == std::string::npos || equals == 0 ||
            !CLI::detail::lexical_cast(text.substr(equals + 1), value) || value < 1) {
            throw UsageError("--dim: found \"" + text +
                             "\", expected SYMBOL=VALUE with a positive value");
        }
        const std::string symbol = text.substr(0, equals);
        if (!all.symbols.emplace(symbol, value).second)
            throw UsageError("--dim: " + symbol + " is given twice");
    }
    return all;
}

nlohmann::ordered_json NetworkArgument::to_json() const {
    nlohmann::ordered_json given{{"net", spec}};
    if (sizes.height) given["height"] = *sizes.height;
    if (sizes.width) given["width"] = *sizes.width;
    if (sizes.batch) given["batch"] = *sizes.batch;
    if (!symbols.empty()) given["dims"] = symbols;
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
        throw InputError(fmt::format("{}: is a {}directory, expected {}an .onnx file or a zoo name",
                                     spec, is_compiled ? "compiled " : "",
                                     is_compiled ? "the network that it was compiled from, " : ""));
    }
    return open_network(spec, input_sizes());
}

}  // namespace laminate::cli
