#include "cli/compiled.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/files.h"
#include "base/units.h"
#include "runtime/cpu.h"

namespace laminate::cli {

namespace {

/// "whole", or the reason why it is not.
std::string library_state(const std::filesystem::path& file, const Manifest& manifest) {
    std::error_code error;
    if (!std::filesystem::is_regular_file(file, error)) return "missing";
    if (!manifest.library_file) return "not checked: the manifest does not say what it was";
    return identity_of(file) == *manifest.library_file ? "whole"
                                                       : "damaged or of another compilation";
}

nlohmann::ordered_json json_of(const std::vector<Tensor>& tensors) {
    auto list = nlohmann::ordered_json::array();
    for (const Tensor& tensor : tensors) list.push_back(tensor_json(tensor));
    return list;
}

nlohmann::ordered_json json_of(const Step& step) {
    if (const auto* group = std::get_if<GroupStep>(&step)) {
        nlohmann::ordered_json json{{"kind", "group"},
                                    {"name", group->name},
                                    {"layers", group->layers},
                                    {"schedule", group->schedule},
                                    {"strips", group->strips},
                                    {"scratch_bytes", group->scratch_bytes},
                                    {"constants_elements", group->constants_count_elements}};
        if (group->trace) json["live_total_elements"] = group->trace->live_total_elements;
        return json;
    }
    return {{"kind", "layer"},
            {"name", name_of(step)},
            {"operation", operation_text(std::get<LayerStep>(step).layer)}};
}

}  // namespace

nlohmann::ordered_json tensor_json(const Tensor& tensor) {
    nlohmann::ordered_json json{{"name", tensor.name}, {"dims", tensor.dims}};
    if (tensor.type != ElementType::float32) json["type"] = to_string(tensor.type);
    return json;
}

std::string steps_table(const Manifest& manifest) {
    Table table({{"step"},
                 {"layers", Align::right},
                 {"strips", Align::right},
                 {"scratch", Align::right},
                 {"constants", Align::right}});
    for (const Step& step : manifest.steps) {
        if (const auto* group = std::get_if<GroupStep>(&step)) {
            table.add({group->name, std::to_string(group->layers.size()),
                       std::to_string(group->strips), bytes_text(group->scratch_bytes),
                       bytes_text(group->constants_count_elements * bytes_per_element)});
        } else {
            table.add({name_of(step) + " (reference operator)", "1", "", "", ""});
        }
    }
    return table.text();
}

Exit compiled_info(const std::string& directory, const Output& output) {
    const std::filesystem::path place(directory);
    if (std::error_code error; !std::filesystem::exists(place / manifest_file, error)) {
        throw InputError(fmt::format(
            "{}: is a directory without {}, expected a network or what laminate compile wrote",
            directory, manifest_file));
    }
    const Manifest manifest =
        parse_manifest(read_file(place / manifest_file), (place / manifest_file).string());
    const std::string file = shared_library_file(manifest);
    const std::string state = library_state(place / file, manifest);
    std::vector<std::string> missing;
    for (const std::string& feature : manifest.cpu_features) {
        if (!cpu_has(feature)) missing.push_back(feature);
    }
    const std::vector<Tensor> inputs = manifest.tensors_of(manifest.inputs),
                              outputs = manifest.tensors_of(manifest.outputs);
    int64_t scratch = 0, live = 0;
    for (const Step& step : manifest.steps) {
        const auto* group = std::get_if<GroupStep>(&step);
        if (group == nullptr) continue;
        scratch = std::max(scratch, group->scratch_bytes);
        if (group->trace) live = std::max(live, group->trace->live_total_elements);
    }

    std::vector<std::string> lines{fmt::format("{} ({}), compiled for {} by Halide {}",
                                               manifest.network, manifest.network_hash,
                                               manifest.target, manifest.halide_version)};
    for (const Tensor& tensor : inputs) lines.push_back("input " + tensor_text(tensor));
    for (const Tensor& tensor : outputs) lines.push_back("output " + tensor_text(tensor));
    output.print(fmt::format("{}\n\n{}", fmt::join(lines, "\n"), steps_table(manifest)));
    if (!manifest.replaced_groups.empty()) {
        output.print(fmt::format("replaced, as their code failed its check: {}",
                                 fmt::join(manifest.replaced_groups, ", ")));
    }
    output.print(fmt::format("each thread takes {} of scratch", bytes_text(scratch)));
    if (manifest.instrumented) {
        output.print(
            fmt::format("has hooks; the buffers of its schedule take {} bytes at most at once",
                        grouped(live * bytes_per_element)));
    }
    output.print(fmt::format("{}: {}", file, state));
    output.print(missing.empty() ? std::string("this machine has the instructions that it uses")
                                 : fmt::format("this machine lacks {}: it cannot run here",
                                               fmt::join(missing, ", ")));

    auto steps = nlohmann::ordered_json::array();
    for (const Step& step : manifest.steps) steps.push_back(json_of(step));
    output.json({{"schema", "laminate.compiled_info"},
                 {"version", 1},
                 {"network", manifest.network},
                 {"network_hash", manifest.network_hash},
                 {"target", manifest.target},
                 {"halide_version", manifest.halide_version},
                 {"cpu_features", manifest.cpu_features},
                 {"cpu_features_missing", missing},
                 {"library", file},
                 {"library_state", state},
                 {"inputs", json_of(inputs)},
                 {"outputs", json_of(outputs)},
                 {"scratch_bytes_per_thread", scratch},
                 {"steps", steps},
                 {"replaced_groups", manifest.replaced_groups},
                 {"instrumented", manifest.instrumented}});
    return Exit::ok;
}

}  // namespace laminate::cli
