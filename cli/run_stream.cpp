// laminate run NET --stream: runs a picture of any size in windows, from file to file, in constant
// memory.
#include <fmt/core.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "answers/interrupt.h"
#include "base/error.h"
#include "base/files.h"
#include "cli/resident_memory.h"
#include "cli/run.h"
#include "cli/tensor_files.h"
#include "runtime/media/colour.h"
#include "runtime/media/raster.h"
#include "runtime/windows.h"
#include "scheduler/explore/planner/line_buffers.h"
#include "scheduler/explore/planner/picture_windows.h"
#include "scheduler/explore/planner/reach.h"

namespace laminate::cli {

namespace {

constexpr int64_t default_memory = 64 << 20;
/// The most samples of a picture that is run whole.
constexpr int64_t most_samples = int64_t{1} << 27;

/// The network for a picture of this size. Throws InputError for a network of a fixed size.
Network network_of_size(const NetworkArgument& argument, int64_t height, int64_t width) {
    InputSizes sizes = argument.input_sizes();
    sizes.height = height;
    sizes.width = width;
    Network network = open_network(argument.spec, sizes);
    for (const TensorId id : network.inputs) {
        const std::vector<int64_t>& dims = network.tensor(id).dims;
        if (dims.size() == 4 && (dims[2] != height || dims[3] != width)) {
            throw InputError(
                fmt::format("{}: input {} is {}, expected rows and columns that are left open, as "
                            "windows have others than the picture",
                            argument.spec, network.tensor(id).name, dims_text(dims)));
        }
    }
    return network;
}

/// Converts elements of the file to those of the network and back.
class StreamedPicture {
public:
    StreamedPicture(const RasterReader& reader, const std::string& input_file,
                    const std::string& output_file, const Network& network)
        : reader_(reader),
          input_(network.tensor(network.inputs[0])),
          output_(network.tensor(network.outputs[0])),
          reads_array_(is_array(input_file)),
          writes_array_(is_array(output_file)) {
        const int64_t wanted = input_.dims[1], made = output_.dims[1];
        const RasterShape& shape = reader.shape();
        by_luma_ =
            shape.channels == 3 && wanted == 1 && made == 1 && shape.type != SampleType::float32;
        if (!by_luma_ && shape.channels != wanted) {
            throw InputError(
                fmt::format("--input: is a picture of {} channel{}, expected {} for input {}{}",
                            shape.channels, shape.channels == 1 ? "" : "s", wanted, input_.name,
                            wanted == 1 ? ", or colour of 8 or 16 bits" : ""));
        }
        if (input_.type == ElementType::int8)
            throw InputError("input " + input_.name +
                             " is int8, which does not hold a picture's samples, 0 to 255");
        if (input_.type == ElementType::uint8 && shape.type == SampleType::float32) {
            throw InputError(
                fmt::format("{}: holds floats, expected samples, or .npy of uint8, for input {}",
                            input_file, input_.name));
        }
        output_channels_ = by_luma_ ? 3 : made;
    }
    [[nodiscard]] int64_t output_channels() const { return output_channels_; }

    [[nodiscard]] ReadBox read() const {
        return [this](const PictureBox& box, float* values, const BoxStrides& strides) {
            if (by_luma_) {
                const Plane luma = to_luma_chroma(reader_.read_picture(box)).y;
                for (int64_t y = 0; y < box.height; ++y)
                    std::copy_n(luma.values.data() + y * box.width, box.width,
                                values + y * strides.row);
            } else {
                reader_.read(box, values, strides.plane, strides.row);
            }
            for (int64_t c = 0; c < input_.dims[1] && !reads_array_; ++c) {
                for (int64_t y = 0; y < box.height; ++y)
                    from_unit(input_, values + c * strides.plane + y * strides.row, box.width);
            }
        };
    }
    /// The output takes its chroma from the input, resized to height x width.
    [[nodiscard]] WriteBox write(RasterWriter& writer, int64_t height, int64_t width) const {
        return [this, &writer, height, width](const PictureBox& box, const float* values,
                                              const BoxStrides& strides) {
            if (!by_luma_ && (writes_array_ || output_.type == ElementType::float32))
                return writer.write(box, values, strides.plane, strides.row);
            std::vector<float> elements;
            for (int64_t c = 0; c < output_.dims[1]; ++c) {
                for (int64_t y = 0; y < box.height; ++y) {
                    const float* row = values + c * strides.plane + y * strides.row;
                    elements.insert(elements.end(), row, row + box.width);
                }
            }
            to_unit(output_, elements.data(), std::ssize(elements));
            if (!by_luma_)
                return writer.write(box, elements.data(), box.height * box.width, box.width);
            const Plane luma{box.height, box.width, std::move(elements)};
            const RasterShape& from = reader_.shape();
            const Picture small =
                reader_.read_picture(bicubic_source(box, from.height, from.width, height, width));
            writer.write_picture(
                box, with_luma(small, from.height, from.width, luma, box, height, width));
        };
    }

private:
    /// Whether the file holds elements unchanged; other files hold samples.
    static bool is_array(const std::string& file) { return lower_extension(file) == ".npy"; }

    const RasterReader& reader_;
    Tensor input_, output_;
    bool reads_array_ = false, writes_array_ = false;
    bool by_luma_ = false;
    int64_t output_channels_ = 1;
};

/// A window compiled for a picture.
struct CompiledWindow {
    std::unique_ptr<Execution> execution;
    WindowChoice choice;
    Reach reach;
};

int64_t memory_of(Session& session) {
    int64_t bytes = session.arena_bytes();
    for (const Tensor& tensor : {session.inputs()[0], session.outputs()[0]})
        bytes += element_count(tensor.dims) * bytes_per_element;
    return bytes;
}

class WindowCompiler {
public:
    WindowCompiler(const RunOptions& options, const RasterShape& shape, const Network& sample,
                   int64_t budget, const CommonOptions& common, const Output& output)
        : options_(options),
          shape_(shape),
          sample_(sample),
          budget_(budget),
          common_(common),
          output_(output) {}

    /// The fastest window within the budget, with minimal filtering if a window without seams fits.
    [[nodiscard]] CompiledWindow compile() {
        if (options_.schedule.kernels().filters() &&
            (has_winograd_layers(sample_) || has_column_tiles(sample_))) {
            if (auto window = attempt(true)) return std::move(*window);
            output_.note("laminate: no window for minimal filtering fits in " +
                         bytes_text(budget_) +
                         ", so every convolution is computed by its definition");
        }
        if (auto window = attempt(false)) return std::move(*window);
        throw InfeasibleError(fmt::format(
            "{}: no window fits in {}{}", options_.network.spec, bytes_text(budget_),
            least_ > 0 ? fmt::format("; the smallest that was found takes {}", bytes_text(least_))
                       : ""));
    }

private:
    /// The model ignores padded lines and transformed patches. A window that turns out larger than
    /// the budget is chosen again with a smaller one.
    std::optional<CompiledWindow> attempt(bool filtered) {
        const Reach reach = reach_of(sample_, {.winograd = filtered});
        const std::vector<int64_t>& dims = sample_.tensor(sample_.inputs[0]).dims;
        check_moves_alike(sample_,
                          network_of_size(options_.network, dims[2] + 3 * reach.y.input_step,
                                          dims[3] + 5 * reach.x.input_step),
                          reach);
        WindowDemand demand{
            .network_of =
                [&](int64_t height, int64_t width) {
                    return network_of_size(options_.network, height, width);
                },
            .height = shape_.height,
            .width = shape_.width,
            .reach = reach,
            .memory = Bytes(budget_),
            .threads = common_.thread_count(),
            .second_level_cache = options_.schedule.second_level_cache,
            // Narrower windows, filtered along rows and columns, would leave seams of rounding.
            .whole_rows = filtered && has_winograd_layers(sample_)};
        for (int round = 0; round < 4; ++round) {
            const std::optional<WindowChoice> choice = choose_window(demand);
            if (!choice) break;
            Network network = network_of_size(options_.network, choice->height, choice->width);
            auto found =
                line_buffer_schedule(network, {.memory = choice->thread_memory,
                                               .threads = common_.thread_count(),
                                               .second_level_cache = demand.second_level_cache});
            auto* schedule = std::get_if<Schedule>(&found);
            if (schedule == nullptr) break;
            const KernelOptions kernels{.winograd = filtered,
                                        .strict = options_.schedule.strict,
                                        .scratch = choice->thread_memory,
                                        .tile_rows = 2};
            CompiledWindow window{
                std::make_unique<Execution>(std::move(network), std::move(*schedule), kernels,
                                            options_.cache.open(output_), common_, output_),
                *choice, reach};
            const int64_t used = memory_of(window.execution->session());
            if (used <= budget_) return window;
            least_ = least_ == 0 ? used : std::min(least_, used);
            output_.detail(fmt::format("laminate: window of {} x {} takes {}", choice->width,
                                       choice->height, bytes_text(used)));
            // A little less than proportional.
            demand.memory = Bytes(
                static_cast<int64_t>(0.94 * static_cast<double>(demand.memory.value()) *
                                     static_cast<double>(budget_) / static_cast<double>(used)));
        }
        return {};
    }

    const RunOptions& options_;
    const RasterShape& shape_;
    const Network& sample_;
    int64_t budget_;
    const CommonOptions& common_;
    const Output& output_;
    int64_t least_ = 0;
};

/// The one input and the one output of a stream.
struct StreamFiles {
    std::string input, output;
};

/// Throws UsageError for what a stream cannot do. The message tells users who did not ask for a
/// stream why there is one.
StreamFiles stream_files(const RunOptions& options) {
    const std::string streaming =
        options.stream ? "--stream"
                       : fmt::format("a picture of more than {} samples, which is streamed",
                                     grouped(most_samples));
    refuse_options_of_whole_files(options, streaming);
    if (is_compiled_directory(options.network))
        throw UsageError(streaming + ": a compiled directory is of one size, expected the network");
    if (!options.schedule.schedule.empty() || options.schedule.layer_by_layer)
        throw UsageError(streaming + ": chooses its own schedule, expected at most --memory");
    if (options.inputs.size() != 1 || options.outputs.size() != 1)
        throw UsageError(
            fmt::format("--stream: found {} --input and {} --output, expected one of each",
                        options.inputs.size(), options.outputs.size()));
    StreamFiles files{parse_named_file(options.inputs[0]).file,
                      parse_named_file(options.outputs[0]).file};
    if (!is_raster_file(files.output))
        throw UsageError("--output: found \"" + files.output +
                         "\", expected .pgm, .ppm, .pnm, .pfm or .npy with " + streaming);
    return files;
}

/// Runs every window from the picture into the output file and returns the seconds this took. An
/// interrupt ends the program and leaves no output file.
double seconds_of_windows(WindowRun& windows, const StreamedPicture& picture,
                          const RasterShape& shape, const std::string& output_file,
                          const Output& output) {
    const int64_t height = windows.output_height(), width = windows.output_width();
    const auto start = std::chrono::steady_clock::now();
    const auto seconds = [&] {
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    };
    OccasionalNotes notes(output);
    bool finished = false;
    {
        InterruptHandler interrupt;
        RasterWriter writer(output_file, {picture.output_channels(), height, width,
                                          RasterWriter::type_for(output_file, shape.type)});
        finished = windows.run(
            picture.read(), picture.write(writer, height, width),
            [&](int64_t done) {
                notes.note([&] {
                    const double left = seconds() / static_cast<double>(done) *
                                        static_cast<double>(windows.count() - done);
                    return fmt::format("laminate: {} of {} windows, {:.0f} s left", done,
                                       windows.count(), left);
                });
            },
            interrupt.stop());
        if (finished) writer.publish();
    }
    if (!finished) {
        output.note("laminate: interrupted; " + output_file + " was not written");
        end_interrupted();
    }
    return seconds();
}

}  // namespace

void refuse_options_of_whole_files(const RunOptions& options, const std::string& what) {
    const char* option = !options.expected.empty()  ? "--expected"
                         : !options.compare.empty() ? "--compare"
                         : options.counts           ? "--counts"
                                                    : nullptr;
    if (option != nullptr) throw UsageError(fmt::format("{}: not with {}", option, what));
}

bool wants_stream(const RunOptions& options) {
    if (options.inputs.size() != 1 || options.outputs.size() != 1) return false;
    const std::string file = parse_named_file(options.inputs[0]).file;
    std::error_code error;
    if (!is_raster_file(file) || lower_extension(file) == ".npy" ||
        !std::filesystem::is_regular_file(file, error))
        return false;
    const RasterShape shape = RasterReader(file).shape();
    return shape.channels * shape.height > most_samples / shape.width;
}

Exit run_stream(const RunOptions& options, const CommonOptions& common, const Output& output) {
    const StreamFiles files = stream_files(options);
    const RasterReader reader(files.input);
    const RasterShape shape = reader.shape();
    const int64_t budget = options.schedule.memory.empty()
                               ? default_memory
                               : parse_bytes("--memory", options.schedule.memory);

    // The reach is the same for every size, so a small network suffices.
    constexpr int64_t sample_extent = 256;
    const Network sample = network_of_size(options.network, std::min(shape.height, sample_extent),
                                           std::min(shape.width, sample_extent));
    (void)reach_of(sample);  // refuses networks that cannot run in windows
    const StreamedPicture picture(reader, files.input, files.output, sample);

    auto [execution, choice, reach] =
        WindowCompiler(options, shape, sample, budget, common, output).compile();
    // Measure memory from before the run takes any.
    execution->close_session();
    const PeakWatch watch;
    execution->open_session(common);
    Session& session = execution->session();
    WindowRun windows(session, reach, shape.height, shape.width);
    const int64_t height = windows.output_height(), width = windows.output_width();
    const int64_t memory = session.arena_bytes() + windows.buffer_bytes();
    output.print(fmt::format("{} x {} pixels to {} x {} in {} windows of {} x {}", shape.width,
                             shape.height, width, height, windows.count(), choice.width,
                             choice.height));
    output.print(fmt::format("{}; a window of input and output {}; together {}",
                             arena_text(session.arena()), bytes_text(windows.buffer_bytes()),
                             bytes_text(memory)));

    const double seconds = seconds_of_windows(windows, picture, shape, files.output, output);
    const double pixels = static_cast<double>(shape.height) * static_cast<double>(shape.width);
    output.print(fmt::format("{}: {:.2f} s, {:.2f} million pixels per second",
                             session.manifest().network, seconds, pixels / seconds / 1e6));
    const std::optional<int64_t> growth = watch.growth_bytes();
    if (growth)
        output.print(fmt::format("resident memory grew by {} at most", bytes_text(*growth)));
    output.print(fmt::format("output {}", files.output));

    nlohmann::ordered_json answer{
        {"schema", "laminate.run"},
        {"version", 1},
        {"network", session.manifest().network},
        {"threads", session.arena().threads},
        {"windows",
         {{"count", windows.count()}, {"height", choice.height}, {"width", choice.width}}},
        {"arena_bytes", session.arena_bytes()},
        {"window_bytes", windows.buffer_bytes()},
        {"memory_bytes", memory},
        {"output_height", height},
        {"output_width", width},
        {"seconds", seconds},
        {"schedule", to_text(*execution->schedule())}};
    if (growth) answer["resident_growth_bytes"] = *growth;
    output.json(answer);
    return Exit::ok;
}

}  // namespace laminate::cli
