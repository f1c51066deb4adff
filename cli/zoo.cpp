// laminate zoo list, zoo export NAME -o F.onnx.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "answers/checks.h"
#include "cli/verbs.h"
#include "nets/onnx/onnx.h"
#include "nets/zoo/zoo.h"

namespace laminate::cli {

namespace {

Exit list(const Output& output) {
    Table table({{"name"}, {"also"}, {"input", Align::right}, {"about"}});
    auto entries = nlohmann::ordered_json::array();
    for (const ZooEntry& entry : zoo_entries()) {
        table.add({entry.name, fmt::format("{}", fmt::join(entry.aliases, ", ")),
                   fmt::format("{}x{}", entry.height, entry.width), entry.about});
        entries.push_back({{"name", entry.name},
                           {"aliases", entry.aliases},
                           {"about", entry.about},
                           {"height", entry.height},
                           {"width", entry.width}});
    }
    output.print(table.text());
    output.json({{"schema", "laminate.zoo"}, {"version", 1}, {"networks", entries}});
    return Exit::ok;
}

Exit export_network(const std::string& name, InputSizes sizes, const std::string& path,
                    uint64_t seed, const Output& output) {
    // "zoo:NAME?seed=7" and "random:7" carry their own seed; a bare name takes that of --seed.
    std::string spec = name.starts_with("zoo:") ? name : "zoo:" + name;
    if (spec.find("seed=") == std::string::npos && !spec.starts_with("zoo:random:")) {
        spec += fmt::format("{}seed={}", spec.find('?') == std::string::npos ? '?' : '&', seed);
    }
    const Network network = open_network(spec, sizes);
    save_onnx(network, path);
    const std::string hash = network_hash(network);
    output.print(
        fmt::format("{}: {}, {} layers, hash {}", path, network.name, network.layers.size(), hash));
    output.json({{"schema", "laminate.zoo_export"},
                 {"version", 1},
                 {"network", network.name},
                 {"network_hash", hash},
                 {"file", path}});
    return Exit::ok;
}

}  // namespace

void add_zoo(Program& program) {
    CLI::App* zoo = program.add_verb("zoo", "Published networks with seeded weights",
                                     "  laminate zoo list\n"
                                     "  laminate zoo export resnet18 -o resnet18.onnx");
    zoo->require_subcommand(1);
    CLI::App* list_verb = program.add_verb("list", "Names, default sizes and sources", "", zoo);
    program.on(list_verb, list);

    struct Options {
        std::string name;
        std::string path;
        InputSizes sizes;
    };
    auto options = std::make_shared<Options>();
    CLI::App* verb =
        program.add_verb("export", "Write a network as ONNX",
                         "  laminate zoo export fsrcnn --height 540 --width 960 -o fsrcnn.onnx\n"
                         "  laminate zoo export random:7 -o random7.onnx",
                         zoo);
    verb->add_option("NAME", options->name,
                     "Name as in `laminate zoo list`, with options if wanted "
                     "(fsrcnn?height=540&width=960), or random:SEED")
        ->required();
    verb->add_option("-o,--output", options->path, "File to write")
        ->required()
        ->type_name("F.onnx");
    verb->add_option("--height", options->sizes.height, "Rows of the input")->check(positive());
    verb->add_option("--width", options->sizes.width, "Columns of the input")->check(positive());
    verb->add_option("--batch", options->sizes.batch, "Images")->check(positive());
    program.on(verb, [options, &program](const Output& output) {
        return export_network(options->name, options->sizes, options->path, program.common().seed,
                              output);
    });
}

}  // namespace laminate::cli
