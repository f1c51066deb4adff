// laminate report DIR: writes the page of a front anew.
#include <fmt/core.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "answers/front_file.h"
#include "answers/front_report.h"
#include "answers/network_argument.h"
#include "answers/report_page.h"
#include "base/error.h"
#include "base/files.h"
#include "cli/verbs.h"

namespace laminate::cli {

namespace {

struct ReportOptions {
    NetworkArgument network;
    std::string directory;
    std::vector<std::string> measured;
};

Network network_of(const ReportOptions& options, const std::string& file,
                   const nlohmann::ordered_json& front) {
    if (!options.network.spec.empty()) return to_run(options.network.open(), options.directory);
    return to_run(network_of_front(file, front), options.directory);
}

Exit run_report(const ReportOptions& options, const Output& output) {
    const std::string file = front_file(options.directory);
    const nlohmann::ordered_json front = read_front(file);
    const Network network = network_of(options, file, front);
    check_front(file, front, network);
    std::vector<Measurement> measurements = measurements_beside(file, network);
    for (const std::string& given : options.measured)
        measurements.push_back(read_measurement(given, network));
    for (const Measurement& measurement : measurements)
        output.note("measured: " + measurement.file);
    const std::string page =
        (std::filesystem::path(file).parent_path() / page_name(front)).string();
    write_file_atomically(page, report_page(network, front, measurements));
    const size_t points = front["points"].size();
    output.print(
        fmt::format("{}: {} schedule{} of {}", page, points, points == 1 ? "" : "s", network.name));
    output.json({{"schema", "laminate.report"},
                 {"version", 1},
                 {"network", network.name},
                 {"structure_hash", structure_hash(network)},
                 {"points", points},
                 {"measurements", measurements.size()},
                 {"file", page}});
    return Exit::ok;
}

}  // namespace

void add_report(Program& program) {
    CLI::App* verb = program.add_verb("report",
                                      "A front as one HTML page: three axes, groups on the "
                                      "network's graph, memory over time, traffic, loop nests, "
                                      "measurements",
                                      "  laminate report front/\n"
                                      "  laminate validate zoo:l3net --front front/ --json "
                                      "front/counted.json && laminate report front/\n"
                                      "  laminate report front/ --net model.onnx");
    auto options = std::make_shared<ReportOptions>();
    verb->add_option("DIR", options->directory,
                     "Directory written by `laminate explore`; its page is replaced")
        ->required();
    verb->add_option("--measured", options->measured,
                     "Answer of `validate` or `bench` (--json) to show beside the predictions; "
                     "answers in DIR are shown without this option")
        ->type_name("FILE");
    options->network.declare_option(verb);
    program.on(verb, [options](const Output& output) { return run_report(*options, output); });
}

}  // namespace laminate::cli
