// laminate run NET on many pictures: the frames of a Y4M video, from file or stdin to file or
// stdout, or the pictures of a folder.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "answers/interrupt.h"
#include "base/error.h"
#include "base/files.h"
#include "base/new_directory.h"
#include "cli/run.h"
#include "cli/tensor_files.h"
#include "runtime/media/colour.h"
#include "runtime/media/y4m.h"

namespace laminate::cli {

namespace {

constexpr const char* standard_stream = "-";

/// A network of one picture in and one out, ready for pictures of one size.
class PictureNetwork {
public:
    PictureNetwork(const RunOptions& options, int64_t height, int64_t width,
                   const CommonOptions& common, const Output& output) {
        if (is_compiled_directory(options.network)) {
            if (options.schedule.is_given())
                throw UsageError(
                    "a compiled directory carries its own schedule; --schedule, --memory and "
                    "--layer-by-layer want the network");
            execution_ = std::make_unique<Execution>(options.network.spec, common);
        } else {
            InputSizes sizes = options.network.input_sizes();
            if (!sizes.height) sizes.height = height;
            if (!sizes.width) sizes.width = width;
            Network network = open_network(options.network.spec, sizes);
            const std::shared_ptr<DiskCache> cache = options.cache.open(output);
            Schedule schedule = options.schedule.choose(
                network, {.threads = common.thread_count(), .cache = cache});
            execution_ = std::make_unique<Execution>(std::move(network), std::move(schedule),
                                                     options.schedule.kernels(), cache, common,
                                                     output);
        }
        set_size(options.network.spec, height, width);
    }
    /// Whether set_size() may be called again.
    [[nodiscard]] bool is_any_size() const { return execution_->session().is_any_size(); }
    /// The next pictures are of that size.
    void set_size(const std::string& spec, int64_t height, int64_t width) {
        Session& session = execution_->session();
        if (session.is_any_size()) session.resize(height, width);
        const std::vector<Tensor> inputs = session.inputs(), outputs = session.outputs();
        if (inputs.size() != 1 || outputs.size() != 1 || !is_picture_of(inputs[0].dims) ||
            !is_picture_of(outputs[0].dims))
            throw InputError(spec +
                             ": expected one picture of one or three channels in and one out");
        input_ = inputs[0];
        output_ = outputs[0];
        if (input_.dims[2] != height || input_.dims[3] != width) {
            throw InputError(fmt::format(
                "{}: input {} is {}, found pictures of {} x {} (rows x columns)",
                spec, input_.name, dims_text(input_.dims), height, width));
        }
        values_.resize(static_cast<size_t>(element_count(output_.dims)));
    }
    [[nodiscard]] const Tensor& input() const { return input_; }
    [[nodiscard]] const Tensor& output() const { return output_; }
    [[nodiscard]] ArenaUse arena() { return execution_->session().arena(); }
    /// Valid until the next call.
    const std::vector<float>& run(const std::vector<float>& picture) {
        execution_->session().run({picture.data()}, {values_.data()});
        return values_;
    }
    /// Takes and returns elements in [0, 1]. Valid until the next call.
    const std::vector<float>& run_unit(std::vector<float> picture) {
        from_unit(input_, picture.data(), std::ssize(picture));
        run(picture);
        to_unit(output_, values_.data(), std::ssize(values_));
        return values_;
    }

private:
    std::unique_ptr<Execution> execution_;
    Tensor input_, output_;
    std::vector<float> values_;
};

/// The one file of --input or of --output.
std::string only_file(const char* option, const std::vector<std::string>& files) {
    if (files.size() != 1)
        throw UsageError(fmt::format("{}: found {} files, expected one for a video or folder",
                                     option, files.size()));
    return parse_named_file(files[0]).file;
}

bool is_y4m(const std::string& file) { return lower_extension(file) == ".y4m"; }

/// Calls `write` with stdout, or with a new file that takes its place when everything is written.
void write_stream(const std::string& file, const std::function<void(std::ostream&)>& write) {
    if (file == standard_stream) return write(std::cout);
    write_file_atomically(file, [&](const std::filesystem::path& aside) {
        std::ofstream stream(aside, std::ios::binary | std::ios::trunc);
        if (!stream) throw InputError(file + ": cannot be written");
        write(stream);
        stream.close();
        if (!stream) throw InputError(file + ": cannot be written");
    });
}

/// Thrown at an interrupt, so that files written aside are removed on the way.
struct Interrupted {};

/// Where a video comes from and goes to.
struct VideoFiles {
    std::string input, output;

    bool reads_stdin() const { return input == standard_stream; }
    bool writes_stdout() const { return output == standard_stream; }
};

VideoFiles video_files(const RunOptions& options, const CommonOptions& common) {
    refuse_options_of_whole_files(options, "a video");
    if (options.stream) throw UsageError("--stream: for one picture, not with a video");
    VideoFiles files{only_file("--input", options.inputs), only_file("--output", options.outputs)};
    if (files.writes_stdout() && common.json == standard_stream)
        throw UsageError("--json -: stdout carries the video, expected a file");
    for (const auto& [option, file] :
         {std::pair{"--input", files.input}, {"--output", files.output}}) {
        if (file != standard_stream && !is_y4m(file))
            throw UsageError(fmt::format(
                "{}: found \"{}\", expected - or a .y4m file on both sides", option, file));
    }
    return files;
}

struct FramesDone {
    int64_t frames = 0;
    double seconds = 0;
};

/// Runs each frame's luma through the network, resizes its chroma and alpha, and writes it. `done`
/// counts the frames, also when an exception ends the video.
void convert_frames(Y4mReader& reader, Y4mWriter& writer, const Y4mHeader& to,
                    PictureNetwork& network, const Output& output, FramesDone& done) {
    const Y4mHeader& from = reader.header();
    InterruptHandler interrupt;
    OccasionalNotes notes(output);
    Y4mFrame small, large;
    const auto start = std::chrono::steady_clock::now();
    const int bits = from.sampling.bits;
    const auto resized = [&](const std::vector<uint8_t>& plane, int64_t height, int64_t width,
                             int64_t to_height, int64_t to_width) {
        if (plane.empty()) return plane;
        const Plane elements{height, width, elements_of_plane(plane, bits)};
        return plane_of_elements(resize_bicubic(elements, to_height, to_width).values, bits);
    };
    const auto chroma = [&](const std::vector<uint8_t>& plane) {
        return resized(plane, from.chroma_height(), from.chroma_width(), to.chroma_height(),
                       to.chroma_width());
    };
    while (reader.read(small)) {
        if (interrupt.stop()->load()) break;
        large.parameters = small.parameters;
        large.y = plane_of_elements(network.run_unit(elements_of_plane(small.y, bits)), bits);
        large.cb = chroma(small.cb);
        large.cr = chroma(small.cr);
        large.alpha = resized(small.alpha, from.height, from.width, to.height, to.width);
        writer.write(large);
        ++done.frames;
        done.seconds =
            std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
        notes.note([&] {
            return fmt::format("laminate: {} frames, {:.2f} per second", done.frames,
                               static_cast<double>(done.frames) / done.seconds);
        });
    }
    // Checked after the last frame too: an interrupt also ends the writer of a pipe, and so the
    // video.
    if (interrupt.stop()->load()) throw Interrupted{};
}

/// The picture files of a folder, sorted by name.
std::vector<std::filesystem::path> pictures_in(const std::filesystem::path& folder) {
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
        if (entry.is_regular_file() && is_picture_file(entry.path())) files.push_back(entry.path());
    }
    if (files.empty())
        throw InputError(
            folder.string() +
            ": holds no picture, expected files that end in .png, .jpg, .jpeg, .pgm, .ppm or .pnm");
    std::sort(files.begin(), files.end());
    return files;
}

struct PicturesDone {
    size_t pictures = 0;
    double seconds = 0;  ///< in the network
};

/// Runs each picture through the network and writes it into `directory`, until `stop` is true.
PicturesDone convert_pictures(const std::vector<std::filesystem::path>& files,
                              const std::filesystem::path& directory, const RunOptions& options,
                              const CommonOptions& common, const Output& output,
                              const std::atomic<bool>& stop) {
    // Pictures of one size share their code, those of every size that of a directory of any size.
    // One size after the other, so that only one code exists at a time.
    std::map<std::pair<int64_t, int64_t>, std::vector<std::filesystem::path>> by_size;
    for (const std::filesystem::path& file : files) {
        const Picture picture = load_picture(file);
        by_size[{picture.height, picture.width}].push_back(file);
    }
    OccasionalNotes notes(output);
    DroppedParts dropped;
    PicturesDone done;
    std::optional<PictureNetwork> open;
    for (const auto& [size, of_size] : by_size) {
        if (stop) break;
        if (open && open->is_any_size()) {
            open->set_size(options.network.spec, size.first, size.second);
        } else {
            open.emplace(options, size.first, size.second, common, output);
        }
        PictureNetwork& network = *open;
        for (const std::filesystem::path& file : of_size) {
            if (stop) break;
            const TensorFile picture = load_tensor_file(file.string());
            const std::vector<float> elements = elements_for(picture, network.input());
            const auto start = std::chrono::steady_clock::now();
            const std::vector<float>& values = network.run(elements);
            done.seconds +=
                std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
            dropped.add_input(picture, network.input(), true);
            dropped.add(file.filename().string(),
                        save_tensor_file((directory / file.filename()).string(), network.output(),
                                         values, &*picture.picture));
            ++done.pictures;
            notes.note([&] {
                return fmt::format("laminate: {} of {} pictures", done.pictures, files.size());
            });
        }
    }
    dropped.note(output);
    return done;
}

}  // namespace

bool is_video(const RunOptions& options) {
    const auto names_one = [](const std::vector<std::string>& files) {
        return std::any_of(files.begin(), files.end(), [](const std::string& text) {
            const std::string file = parse_named_file(text).file;
            return file == standard_stream || is_y4m(file);
        });
    };
    return names_one(options.inputs) || names_one(options.outputs);
}

bool is_folder(const RunOptions& options) {
    std::error_code error;
    return options.inputs.size() == 1 &&
           std::filesystem::is_directory(parse_named_file(options.inputs[0]).file, error);
}

Exit run_video(const RunOptions& options, const CommonOptions& common, const Output& output) {
    const VideoFiles files = video_files(options, common);
    // Stdout may carry the video.
    const auto tell = [&](const std::string& line) {
        files.writes_stdout() ? output.note(line) : output.print(line);
    };
    std::ifstream file;
    if (!files.reads_stdin()) {
        file.open(files.input, std::ios::binary);
        if (!file) throw InputError(files.input + ": cannot be read");
    }
    Y4mReader reader(files.reads_stdin() ? std::cin : file,
                     files.reads_stdin() ? "stdin" : files.input);
    const Y4mHeader& from = reader.header();
    PictureNetwork network(options, from.height, from.width, common, output);
    if (network.input().dims[1] != 1 || network.output().dims[1] != 1)
        throw InputError(options.network.spec +
                         ": expected one channel in and out, luma, for a video");
    Y4mHeader to = from;
    to.height = network.output().dims[2];
    to.width = network.output().dims[3];
    tell(arena_text(network.arena()));

    FramesDone done;
    try {
        write_stream(files.output, [&](std::ostream& stream) {
            Y4mWriter writer(stream, to, files.writes_stdout() ? "stdout" : files.output);
            convert_frames(reader, writer, to, network, output, done);
        });
    } catch (const Interrupted&) {
        output.note(files.writes_stdout()
                        ? fmt::format("laminate: interrupted after {} frames", done.frames)
                        : "laminate: interrupted; " + files.output + " was not written");
        end_interrupted();
    }
    tell(fmt::format("{} frames of {} x {} to {} x {}: {:.2f} s, {:.2f} per second", done.frames,
                     from.width, from.height, to.width, to.height, done.seconds,
                     done.frames > 0 ? static_cast<double>(done.frames) / done.seconds : 0));
    output.json({{"schema", "laminate.run"},
                 {"version", 1},
                 {"frames", done.frames},
                 {"output_height", to.height},
                 {"output_width", to.width},
                 {"arena_bytes", network.arena().total_bytes},
                 {"seconds", done.seconds}});
    return Exit::ok;
}

Exit run_folder(const RunOptions& options, const CommonOptions& common, const Output& output) {
    refuse_options_of_whole_files(options, "a folder");
    if (options.stream) throw UsageError("--stream: for one picture, not with a folder");
    const std::filesystem::path input = only_file("--input", options.inputs),
                                result = only_file("--output", options.outputs);
    const std::vector<std::filesystem::path> files = pictures_in(input);

    PicturesDone done;
    {
        const InterruptHandler interrupt;
        NewDirectory directory(
            result, [](const std::filesystem::path&) { return std::nullopt; }, "this command");
        done =
            convert_pictures(files, directory.aside(), options, common, output, *interrupt.stop());
        if (done.pictures == files.size()) directory.publish();
    }
    if (done.pictures < files.size()) {
        output.note("laminate: interrupted; " + result.string() + " was not written");
        end_interrupted();
    }
    output.print(fmt::format("{} pictures in {}: {:.2f} s in the network", files.size(),
                             result.string(), done.seconds));
    output.json({{"schema", "laminate.run"},
                 {"version", 1},
                 {"pictures", files.size()},
                 {"network_seconds", done.seconds}});
    return Exit::ok;
}

}  // namespace laminate::cli
