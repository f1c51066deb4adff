#include "nets/open.h"

#include <charconv>
#include <set>
#include <string_view>

#include "base/error.h"
#include "nets/ncnn/ncnn.h"
#include "nets/onnx/onnx.h"
#include "nets/random/random_network.h"
#include "nets/zoo/zoo.h"

namespace laminate {

namespace {

constexpr std::string_view zoo_prefix = "zoo:";
constexpr std::string_view random_prefix = "random:";
constexpr std::string_view picture_prefix = "picture:";  // behind "random:"

template <class Integer>
Integer parse_option(const std::string& spec, std::string_view key, std::string_view value) {
    Integer number{};
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (error != std::errc{} || end != value.data() + value.size()) {
        throw InputError(spec + ": option " + std::string(key) + " is \"" + std::string(value) +
                         "\", expected a whole number");
    }
    return number;
}

void set_option(const std::string& spec, std::string_view option, ZooOptions& options) {
    const size_t equals = option.find('=');
    const std::string_view key = option.substr(0, equals);
    const std::string_view value =
        equals == std::string_view::npos ? std::string_view{} : option.substr(equals + 1);
    if (key == "height") {
        options.height = parse_option<int64_t>(spec, key, value);
    } else if (key == "width") {
        options.width = parse_option<int64_t>(spec, key, value);
    } else if (key == "batch") {
        options.batch = parse_option<int64_t>(spec, key, value);
    } else if (key == "seed") {
        options.seed = parse_option<uint64_t>(spec, key, value);
    } else {
        throw InputError(spec + ": unknown option \"" + std::string(key) +
                         "\"; expected height, width, batch or seed");
    }
}

void refuse_integers(const std::string& spec, const InputSizes& sizes) {
    if (!sizes.integers.empty())
        throw InputError(spec + ": has no input of integers called \"" +
                         sizes.integers.begin()->first + "\"");
}

Network open_zoo(const std::string& spec, const InputSizes& sizes) {
    refuse_integers(spec, sizes);
    if (!sizes.symbols.empty()) {
        throw InputError(spec + ": has no dimension named \"" + sizes.symbols.begin()->first +
                         "\"; expected height, width or batch");
    }
    ZooOptions options{
        .height = sizes.height, .width = sizes.width, .batch = sizes.batch.value_or(1)};
    std::string_view rest = std::string_view(spec).substr(zoo_prefix.size());
    const size_t question = rest.find('?');
    const std::string name(rest.substr(0, question));
    rest = question == std::string_view::npos ? std::string_view{} : rest.substr(question + 1);
    std::set<std::string_view> given;
    while (!rest.empty()) {
        const size_t ampersand = rest.find('&');
        const std::string_view option = rest.substr(0, ampersand),
                               key = option.substr(0, option.find('='));
        if (!given.insert(key).second)
            throw InputError(spec + ": option " + std::string(key) +
                             " is given twice, expected once");
        set_option(spec, option, options);
        rest =
            ampersand == std::string_view::npos ? std::string_view{} : rest.substr(ampersand + 1);
    }
    return zoo_network(name, options);
}

Network open_random(const std::string& spec, std::string_view seed, const InputSizes& sizes) {
    refuse_integers(spec, sizes);
    if (sizes.height || sizes.width || sizes.batch || !sizes.symbols.empty()) {
        throw InputError(
            spec +
            ": the seed alone decides its sizes; expected no height, width, batch or dimension");
    }
    if (!seed.starts_with(picture_prefix))
        return random_network(parse_option<uint64_t>(spec, "random", seed));
    seed.remove_prefix(picture_prefix.size());
    return random_picture_network(parse_option<uint64_t>(spec, "random:picture", seed));
}

}  // namespace

Network open_network(const std::string& spec, const InputSizes& sizes) {
    std::string_view name = spec;
    const bool is_zoo = name.starts_with(zoo_prefix);
    if (is_zoo) name.remove_prefix(zoo_prefix.size());
    if (name.starts_with(random_prefix))
        return open_random(spec, name.substr(random_prefix.size()), sizes);
    if (is_zoo) return open_zoo(spec, sizes);
    return is_ncnn_file(spec) ? load_ncnn(spec, sizes) : load_onnx(spec, sizes);
}

}  // namespace laminate
