// laminate run NET: files in, files out.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>

#include "answers/checks.h"
#include "answers/counts_report.h"
#include "answers/front_file.h"
#include "base/error.h"
#include "cli/execution.h"
#include "cli/run.h"
#include "cli/tensor_files.h"
#include "cli/traced_counts.h"
#include "cli/verbs.h"
#include "instrumentation/deployed.h"
#include "instrumentation/measure.h"
#include "runtime/media/colour.h"
#include "scheduler/counts/two_level/two_level.h"
#include "scheduler/explore/random_schedule.h"

namespace laminate::cli {

namespace {

std::vector<NamedFile> named_files(const std::vector<std::string>& texts) {
    std::vector<NamedFile> files;
    for (const std::string& text : texts) files.push_back(parse_named_file(text));
    return files;
}

/// One line about how the result differs from the expected one, or an empty text. A NaN differs.
std::string difference(const std::vector<float>& found, const Tensor& tensor,
                       const Constant& expected, const std::string& file,
                       const RunOptions& options) {
    if (expected.dims != tensor.dims) {
        throw InputError(file + ": is " + dims_text(expected.dims) + ", expected " +
                         dims_text(tensor.dims) + " for output " + tensor.name);
    }
    size_t wrong = 0, worst = 0;
    double worst_excess = 0;
    for (size_t n = 0; n < found.size(); ++n) {
        if (found[n] == expected.values[n])
            continue;  // also equal infinities, whose difference is a NaN
        const double error = std::abs(static_cast<double>(found[n]) - expected.values[n]);
        const double excess =
            error -
            (options.atol + options.rtol * std::abs(static_cast<double>(expected.values[n])));
        if (excess <= 0) continue;  // false for a NaN
        if (wrong == 0 || excess > worst_excess) {
            worst = n;
            worst_excess = excess;
        }
        ++wrong;
    }
    if (wrong == 0) return "";
    return fmt::format(
        "{} of {} elements differ from {}; the worst is element {}: found {}, expected {} (rtol "
        "{}, atol {})",
        wrong, found.size(), file, worst, found[worst], expected.values[worst], options.rtol,
        options.atol);
}

/// PSNR against a picture: of the first output's luma, and of a bicubic resize of the input.
struct Quality {
    double network_db = 0;
    double bicubic_db = 0;
};

Quality quality(const RunOptions& options, const TensorFile& input, const Tensor& output,
                const std::vector<float>& values) {
    if (!input.picture) throw UsageError("--compare: expected a picture as --input");
    if (output.dims.size() != 4 || output.dims[0] != 1 || output.dims[1] != 1) {
        throw InputError(options.compare + ": output " + output.name + " is " +
                         dims_text(output.dims) + ", expected one plane of luma");
    }
    const int64_t height = output.dims[2], width = output.dims[3];
    const Plane original = cropped(to_luma_chroma(load_picture(options.compare)).y, height, width);
    const Plane bicubic = resize_bicubic(to_luma_chroma(*input.picture).y, height, width);
    std::vector<float> elements = values;
    to_unit(output, elements.data(), std::ssize(elements));
    return {psnr_db({height, width, std::move(elements)}, original, options.border),
            psnr_db(bicubic, original, options.border)};
}

/// Adds counts to the answer. Returns whether they are equal. `differences`: what else is wrong, or
/// empty.
bool add_counts(const Witness& model, const Witness& measured, std::string differences,
                const Output& output, nlohmann::ordered_json& answer) {
    for (size_t g = 0; g < model.groups.size(); ++g) {
        const std::string text =
            laminate::difference(model.groups[g], "model", measured.groups[g], "measured");
        if (!text.empty()) differences += (differences.empty() ? "" : "; ") + text;
    }
    if (!differences.empty()) output.print("difference: " + differences);
    answer["counts"] = {{"model", counts_json(model.groups)},
                        {"measured", counts_json(measured.groups)},
                        {"equal", differences.empty()}};
    return differences.empty();
}

/// Counts of the schedule, as the model predicts them and as they are counted on the code that ran
/// and on instrumented code.
bool report_counts(const Network& network, const Schedule& schedule, const Output& output,
                   nlohmann::ordered_json& answer) {
    Witness model{"model", {}}, measured{"measured", {}};
    std::vector<DoneCounts> predicted, deployed;
    std::string differences;
    for (const GroupSchedule& group : schedule.groups()) {
        model.groups.push_back(two_level_counts(network, group));
        measured.groups.push_back(measure(network, group));
        predicted.push_back(done_counts(group, group_problems(network, group)));
        deployed.push_back(deployed_counts(network, group, predicted.back()));
        const std::string text =
            laminate::difference(predicted.back(), "model", deployed.back(), "code");
        if (!text.empty()) differences += (differences.empty() ? "" : "; ") + text;
    }
    output.print(done_table(predicted, deployed));
    const bool is_equal = add_counts(model, measured, differences, output, answer);
    answer["counts"]["deployed"] = done_json(deployed);
    return is_equal;
}

/// Counts of a directory with hooks, by the memory that watched the session's run.
bool report_counts(const Session& session, const TwoLevelMemory& memory, const Output& output,
                   nlohmann::ordered_json& answer) {
    const Witness model{"model", promised_counts(session.manifest())};
    const Witness measured{"measured", seen_counts(session, memory)};
    output.print(side_by_side({model, measured}));
    return add_counts(model, measured, memory.failure(), output, answer);
}

/// The network, with its open sizes set to those of the first input file.
Network open_for(const NetworkArgument& argument, const std::vector<TensorFile>& files) {
    const InputSizes given = argument.input_sizes();
    if (files.empty()) return open_network(argument.spec, given);
    InputSizes sizes = given;
    add_sizes(files.front(), sizes);
    try {
        return open_network(argument.spec, sizes);
    } catch (const InputError&) {
        std::error_code error;
        const bool is_pipe = std::filesystem::exists(argument.spec, error) &&
                             !std::filesystem::is_regular_file(argument.spec, error);
        if (is_pipe) throw;  // it can be read once
        // A network of fixed sizes refuses others. Whether the file fits shows later, when its
        // elements are read.
        std::optional<Network> fixed;
        try {
            fixed = open_network(argument.spec, given);
        } catch (const InputError&) {
            // Neither way works: report the first reason.
        }
        if (!fixed) throw;
        return std::move(*fixed);
    }
}

void check_directory_options(const RunOptions& options) {
    if (options.schedule.is_given()) {
        throw UsageError(
            "a compiled directory carries its own schedule; --schedule, --memory and "
            "--layer-by-layer want the network");
    }
}

/// Lets `memory` watch the runs of a compiled directory.
void watch(Session& session, const std::string& directory, TwoLevelMemory& memory) {
    if (!session.manifest().instrumented) {
        throw InputError(directory +
                         ": has no hooks, so --counts cannot see what it does; expected a "
                         "directory of laminate compile --instrumented, or the network itself");
    }
    session.set_trace(TwoLevelMemory::observe, &memory);
}

void check_expected_files(const RunOptions& options) {
    for (const NamedFile& file : named_files(options.expected)) {
        std::error_code error;
        if (!std::filesystem::exists(file.file, error))
            throw InputError(file.file + ": no such file");
    }
}

/// The size of the first input file, or of the options; what none says stays as it is.
void set_size(Session& session, const InputSizes& sizes) {
    const std::vector<Tensor> inputs = session.inputs();
    const auto map = std::find_if(inputs.begin(), inputs.end(),
                                  [](const Tensor& input) { return input.dims.size() == 4; });
    session.resize(sizes.batch.value_or(map->dims[0]), sizes.height.value_or(map->dims[2]),
                   sizes.width.value_or(map->dims[3]));
}

/// Opens the compiled directory, or compiles the network for the requested schedule.
std::unique_ptr<Execution> execution_for(const RunOptions& options, const CommonOptions& common,
                                         const std::vector<TensorFile>& input_files,
                                         const Output& output) {
    if (is_compiled_directory(options.network)) {
        auto compiled = std::make_unique<Execution>(options.network.spec, common);
        if (compiled->session().is_any_size()) {
            InputSizes sizes = options.network.sizes;
            if (!input_files.empty()) add_sizes(input_files.front(), sizes);
            set_size(compiled->session(), sizes);
        }
        return compiled;
    }
    PreparationTimes times;
    Network network =
        timed(times.import, [&] {
            return to_run(open_for(options.network, input_files), options.schedule.schedule);
        });
    // Refuse bad output names before compiling.
    for (const NamedFile& file : named_files(options.outputs)) {
        if (network.outputs.size() == 1)
            check_output_file(file.file, network.tensor(network.outputs[0]));
    }
    const std::shared_ptr<DiskCache> cache = options.cache.open(output);
    Schedule schedule = timed(times.planning, [&] {
        return options.schedule.choose(network, {.threads = common.thread_count(), .cache = cache});
    });
    output.detail("schedule: " + to_text(schedule));
    auto execution = std::make_unique<Execution>(std::move(network), std::move(schedule),
                                                 options.schedule.kernels(), cache, common,
                                                 output);
    execution->times().import = times.import;
    execution->times().planning = times.planning;
    output.detail(execution->times().text());
    return execution;
}

/// The elements of each input, and the first picture that one of them came from.
struct InputArrays {
    std::vector<std::vector<float>> elements;
    std::vector<const TensorFile*> files;  ///< of each input; null: random values
    const TensorFile* picture = nullptr;
};

/// Fills the inputs from files, or from random values when no file is given.
InputArrays input_arrays(const std::vector<Tensor>& inputs,
                         const std::vector<NamedFile>& input_names,
                         const std::vector<TensorFile>& input_files, uint64_t seed,
                         const Output& output) {
    InputArrays arrays;
    arrays.elements.resize(inputs.size());
    arrays.files.resize(inputs.size());
    const auto assigned_inputs = assigned("--input", input_names, inputs);
    Rng rng(seed);
    for (size_t k = 0; k < inputs.size(); ++k) {
        if (assigned_inputs[k]) {
            const auto file =
                std::find_if(input_files.begin(), input_files.end(),
                             [&](const TensorFile& f) { return f.file == *assigned_inputs[k]; });
            arrays.elements[k] = elements_for(*file, inputs[k]);
            arrays.files[k] = &*file;
            if (file->picture && arrays.picture == nullptr) arrays.picture = &*file;
        } else if (input_files.empty()) {
            arrays.elements[k] = random_elements(inputs[k], rng);
        } else {
            throw UsageError("--input: no file for " + inputs[k].name);
        }
    }
    if (input_files.empty()) {
        const bool of_floats = std::all_of(inputs.begin(), inputs.end(), [](const Tensor& tensor) {
            return tensor.type == ElementType::float32;
        });
        output.note(fmt::format("no --input: random values{} of seed {}",
                                of_floats ? " in [0, 1)" : "", seed));
    }
    return arrays;
}

struct RunResult {
    std::vector<std::vector<float>> elements;  ///< of each output
    double milliseconds = 0;
};

RunResult run_once(Session& session, const std::vector<std::vector<float>>& in) {
    const std::vector<Tensor> outputs = session.outputs();
    RunResult result;
    result.elements.resize(outputs.size());
    std::vector<const float*> in_arrays;
    std::vector<float*> out_arrays;
    for (const auto& array : in) in_arrays.push_back(array.data());
    for (size_t k = 0; k < outputs.size(); ++k) {
        result.elements[k].resize(static_cast<size_t>(element_count(outputs[k].dims)));
        out_arrays.push_back(result.elements[k].data());
    }
    const auto start = std::chrono::steady_clock::now();
    session.run(in_arrays, out_arrays);
    result.milliseconds =
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    return result;
}

using OutputFiles = std::vector<std::optional<std::string>>;

/// For each output with an expected file: how it differs, or an empty text.
std::vector<std::string> differences_from(const OutputFiles& expected_files,
                                          const std::vector<Tensor>& outputs,
                                          const std::vector<std::vector<float>>& out,
                                          const RunOptions& options) {
    std::vector<std::string> differences;
    for (size_t k = 0; k < outputs.size(); ++k) {
        if (!expected_files[k]) continue;
        const TensorFile expected = load_tensor_file(*expected_files[k]);
        if (expected.picture)
            throw InputError(expected.file + ": is a picture, expected .npy or .pb");
        differences.push_back(
            difference(out[k], outputs[k], expected.values, expected.file, options));
    }
    return differences;
}

/// Writes each output to its file; prints the range of those that have none.
void save_outputs(const OutputFiles& output_files, const std::vector<Tensor>& outputs,
                  const std::vector<std::vector<float>>& out, const TensorFile* picture,
                  DroppedParts& dropped, const Output& output) {
    for (size_t k = 0; k < outputs.size(); ++k) {
        const float* first = out[k].data();
        const auto [low, high] = std::minmax_element(first, first + out[k].size());
        const std::string name = outputs[k].name + " " + dims_text(outputs[k].dims);
        if (!output_files[k]) {
            output.print(fmt::format("output {}: {:.6g} to {:.6g}", name, *low, *high));
            continue;
        }
        dropped.add(*output_files[k],
                    save_tensor_file(*output_files[k], outputs[k], out[k],
                                     picture != nullptr ? &*picture->picture : nullptr));
        output.print(fmt::format("output {}: {}", name, *output_files[k]));
    }
}

nlohmann::ordered_json run_json(Execution& execution, const Session& session,
                                const ArenaUse& use, double milliseconds) {
    nlohmann::ordered_json answer{{"schema", "laminate.run"},
                                  {"version", 1},
                                  {"network", session.manifest().network},
                                  {"network_hash", session.manifest().network_hash},
                                  {"threads", use.threads},
                                  {"arena_bytes", use.total_bytes},
                                  {"scratch_bytes_per_thread", use.scratch_per_thread_bytes},
                                  {"first_run_ms", milliseconds}};
    if (execution.schedule() != nullptr) {
        answer["schedule"] = to_text(*execution.schedule());
        answer["cpu_seconds"] = execution.times().json();
    }
    return answer;
}

/// Prints quality and differences and puts them into `answer`. Returns whether all is as expected.
bool report_comparisons(const std::optional<Quality>& psnr,
                        const std::vector<std::string>& differences, const RunOptions& options,
                        const Output& output, nlohmann::ordered_json& answer) {
    if (psnr) {
        output.print(
            fmt::format("PSNR of luma against {}: network {:.2f} dB, bicubic {:.2f} dB ({} pixels "
                        "of border left out)",
                        options.compare, psnr->network_db, psnr->bicubic_db, options.border));
        answer["psnr_db"] = psnr->network_db;
        answer["bicubic_psnr_db"] = psnr->bicubic_db;
    }
    bool as_expected = true;
    for (const std::string& text : differences) {
        output.print(text.empty() ? "as expected" : text);
        as_expected = as_expected && text.empty();
    }
    if (!differences.empty()) answer["as_expected"] = as_expected;
    return as_expected;
}

Exit run_whole(const RunOptions& options, const CommonOptions& common, const Output& output) {
    if (is_compiled_directory(options.network)) check_directory_options(options);
    const std::vector<NamedFile> input_names = named_files(options.inputs);
    std::vector<TensorFile> input_files;
    for (const NamedFile& file : input_names) input_files.push_back(load_tensor_file(file.file));
    check_expected_files(options);
    const std::unique_ptr<Execution> execution =
        execution_for(options, common, input_files, output);
    Session& session = execution->session();
    const bool is_compiled = execution->network() == nullptr;
    TwoLevelMemory memory(std::numeric_limits<int64_t>::max());
    if (options.counts && is_compiled) watch(session, options.network.spec, memory);
    const std::vector<Tensor> inputs = session.inputs(), outputs = session.outputs();
    const auto output_files = assigned("--output", named_files(options.outputs), outputs);
    const auto expected_files = assigned("--expected", named_files(options.expected), outputs);
    for (size_t k = 0; k < outputs.size(); ++k) {
        if (output_files[k]) check_output_file(*output_files[k], outputs[k]);
    }
    const InputArrays in = input_arrays(inputs, input_names, input_files, common.seed, output);

    const ArenaUse use = session.arena();
    output.print(arena_text(use));
    const RunResult result = run_once(session, in.elements);
    output.print(
        fmt::format("{}: {:.2f} ms, first run", session.manifest().network, result.milliseconds));
    nlohmann::ordered_json answer = run_json(*execution, session, use, result.milliseconds);

    // Everything that may throw InputError comes before the first file is written.
    const std::vector<std::string> differences =
        differences_from(expected_files, outputs, result.elements, options);
    std::optional<Quality> psnr;
    if (!options.compare.empty()) {
        if (in.picture == nullptr) throw UsageError("--compare: expected a picture as --input");
        psnr = quality(options, *in.picture, outputs[0], result.elements[0]);
    }
    const bool writes_picture =
        std::any_of(output_files.begin(), output_files.end(),
                    [](const auto& file) { return file && is_picture_file(*file); });
    DroppedParts dropped;
    for (size_t k = 0; k < inputs.size(); ++k) {
        if (in.files[k] != nullptr)
            dropped.add_input(*in.files[k], inputs[k], writes_picture && in.files[k] == in.picture);
    }
    save_outputs(output_files, outputs, result.elements, in.picture, dropped, output);
    dropped.note(output);
    bool is_right = report_comparisons(psnr, differences, options, output, answer);
    if (options.counts) {
        const bool is_equal = is_compiled
                                  ? report_counts(session, memory, output, answer)
                                  : report_counts(*execution->network(),
                                                  execution->schedule_of_code(), output, answer);
        is_right = is_right && is_equal;
    }
    output.json(answer);
    return is_right ? Exit::ok : Exit::comparison_failed;
}

Exit run(const RunOptions& options, const CommonOptions& common, const Output& output) {
    if (is_video(options)) return run_video(options, common, output);
    if (is_folder(options)) return run_folder(options, common, output);
    if (options.stream || wants_stream(options)) return run_stream(options, common, output);
    return run_whole(options, common, output);
}

}  // namespace

void add_run(Program& program) {
    CLI::App* verb = program.add_verb(
        "run", "Run a network on files",
        "  laminate run examples/data/fsrcnn_x2.onnx --input small.png --output large.png\n"
        "  laminate run zoo:resnet18 --input x.npy --output y.npy --threads 2\n"
        "  laminate run fsrcnn_x2.onnx --input half.png --compare original.png --memory 256KiB "
        "--counts\n"
        "  laminate run fsrcnn_x2.onnx --stream --input huge.pgm --output larger.pgm\n"
        "  ffmpeg -i film.mp4 -f yuv4mpegpipe - | laminate run fsrcnn_x2.onnx --input - --output - "
        "| mpv -\n"
        "  laminate run compiled/ --input input=x.npy --expected output=y.npy");
    auto options = std::make_shared<RunOptions>();
    options->network.declare(verb, true);
    options->schedule.declare(verb);
    options->cache.declare(verb);
    verb->add_option(
            "--input", options->inputs,
            "Input: .npy, ONNX .pb tensor, or a PNG, JPEG or PNM picture, with --stream "
            "also .pfm; a .y4m video, or - for one from stdin; a folder of pictures. Without "
            "it, random values")
        ->type_name("[NAME=]FILE");
    verb->add_option("--output", options->outputs,
                     "Output, by extension: .npy, .pb, .png, .jpg, .pgm, .ppm, with --stream .pfm; "
                     ".y4m or - for a video; a folder for a folder")
        ->type_name("[NAME=]FILE");
    verb->add_option("--expected", options->expected,
                     "Expected output, .npy or .pb; exit 1 when the output differs")
        ->type_name("[NAME=]FILE");
    verb->add_option("--rtol", options->rtol,
                     "Allowed difference, relative to the expected element")
        ->check(not_negative())
        ->capture_default_str();
    verb->add_option("--atol", options->atol, "Allowed difference, absolute")
        ->check(not_negative())
        ->capture_default_str();
    verb->add_option("--compare", options->compare,
                     "Print the PSNR of luma against this picture, and that of a bicubic resize")
        ->type_name("PICTURE");
    verb->add_option("--border", options->border, "Pixels on each side that --compare leaves out")
        ->check(not_negative())
        ->capture_default_str();
    verb->add_flag(
        "--counts", options->counts,
        "Print what the schedule moves and computes and what the code that ran does, by the model "
        "and counted on the code; a compiled directory must have hooks (compile --instrumented)");
    verb->add_flag(
        "--stream", options->stream,
        "Run a picture in windows, from file to file (PNM, .pfm, .npy), in constant "
        "memory: --memory in all, else 64MiB. The default for PNM and .pfm files of more "
        "than 2^27 samples");
    program.on(verb, [options, &program](const Output& output) {
        return run(*options, program.common(), output);
    });
}

}  // namespace laminate::cli
