// Turns a command line into a verb and an exception into an exit code. The only source that
// includes all of CLI11, with its definitions for configuration files and help texts; the others
// include CLI/App.hpp, which compiles in half the time.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <new>

#include "answers/checks.h"
#include "answers/program.h"

#include "answers/version.h"
#include "base/error.h"
#include "runtime/session.h"

namespace laminate::cli {

namespace {

/// Shortens words of thousands of bytes (a file's contents for its name, say) to their beginning
/// and end.
std::string with_short_words(const std::string& text) {
    constexpr size_t longest = 320, head = 200, tail = 80;
    const auto is_inside_of_a_letter = [&](size_t at) {
        return (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80;
    };
    std::string shortened;
    for (size_t begin = 0; begin < text.size();) {
        size_t end = text.find(' ', begin);
        end = end == std::string::npos ? text.size() : end + 1;
        if (end - begin <= longest) {
            shortened.append(text, begin, end - begin);
        } else {
            size_t stop = begin + head, go_on = end - tail;
            while (stop > begin && is_inside_of_a_letter(stop)) --stop;
            while (go_on < end && is_inside_of_a_letter(go_on)) ++go_on;
            shortened.append(text, begin, stop - begin)
                .append("...")
                .append(text, go_on, end - go_on);
        }
        begin = end;
    }
    return shortened;
}

/// Joins the lines of a message, because every message is one line.
std::string one_line(std::string text) {
    while (!text.empty() && text.back() == '\n') text.pop_back();
    for (char& c : text) {
        if (c == '\n') c = ' ';
    }
    return with_short_words(text);
}

/// The message for a command line without a verb where one has to stand; empty where none is
/// missing.
std::string missing_verb(const CLI::App& program) {
    const CLI::App* last = &program;
    std::string before;
    while (!last->get_subcommands().empty()) {
        last = last->get_subcommands().front();
        before += (before.empty() ? " after \"" : " ") + last->get_name();
    }
    std::string verbs;
    for (const CLI::App* verb : last->get_subcommands([](const CLI::App* any) {
             return !any->get_name().empty() && !any->get_group().empty();
         }))
        verbs += (verbs.empty() ? "" : ", ") + verb->get_name();
    if (verbs.empty()) return "";
    const std::vector<std::string> rest = program.remaining(true);
    return fmt::format("found {}, expected a verb{}: {}",
                       rest.empty() ? "none" : '"' + rest.front() + '"',
                       before.empty() ? "" : before + '"', verbs);
}

int fail(Exit code, const std::string& message) {
    std::fflush(stdout);
    std::fputs(("laminate: error: " + one_line(message) + "\n").c_str(),
               stderr);  // a closed stderr is ignored: the exit code still tells
    return static_cast<int>(code);
}

}  // namespace

Program::Program()
    : app_("Convolutional networks, fused under a memory budget, counted exactly", "laminate") {
    app_.require_subcommand(1);
    app_.set_version_flag("--version", version_text, "Version, Halide version, CPU features");
    app_.set_help_flag("-h,--help", "This text; `laminate VERB --help` for one verb");
    app_.get_formatter()->column_width(34);
    app_.footer(
        "NET is an .onnx or .param file, a zoo name (zoo:resnet50, \"zoo:fsrcnn?height=540&width=960\"), "
        "random:SEED or a compiled directory.\n"
        "Exit codes: 0 ok, 1 comparison failed, 2 usage, 3 bad or unsupported input, 4 infeasible, "
        "5 internal.");
}

CLI::App* Program::add_verb(const std::string& name, const std::string& about,
                            const std::string& examples, CLI::App* parent) {
    CLI::App* verb = (parent != nullptr ? parent : &app_)->add_subcommand(name, about);
    if (!examples.empty()) verb->footer("Examples:\n" + examples);
    return verb;
}

void Program::on(CLI::App* verb, Action action) {
    verb->option_defaults()->group("Options of every verb");
    verb->add_option("--json", common_.json,
                     "Write the answer as JSON to this file, or - for stdout")
        ->type_name("FILE|-")
        ->check(file_name());
    verb->add_option("--threads", common_.threads, "Threads (0: one per core)")
        ->check(CLI::Range(0, most_threads));
    verb->add_option("--seed", common_.seed, "Seed of random inputs and schedules")
        ->capture_default_str()
        ->check([](const std::string& text) {
            return text.starts_with('-') ? "found " + text + ", expected 0 or more" : std::string();
        });
    verb->add_flag("-v,--verbose", verbose_, "More remarks on stderr");
    verb->add_flag("-q,--quiet", quiet_, "No remarks on stderr");
    verb->get_option("--verbose")->excludes("--quiet");
    verb->callback([this, action = std::move(action)] { chosen_ = action; });
}

int Program::run(int argc, char** argv) {
    try {
        app_.parse(argc, argv);
    } catch (const CLI::Success& asked) {  // --help, --version
        for (const auto& prepare : before_help_) prepare();
        return app_.exit(asked);
    } catch (const CLI::RequiredError& error) {
        if (const std::string message = missing_verb(app_); !message.empty())
            return fail(Exit::usage, message);
        return fail(Exit::usage, fmt::format("{} (see laminate --help)", one_line(error.what())));
    } catch (const CLI::ParseError& error) {
        return fail(Exit::usage, fmt::format("{} (see laminate --help)", one_line(error.what())));
    }
    common_.verbosity = quiet_ ? -1 : verbose_;
    try {
        const Output output(common_);
        const Exit exit = chosen_(output);
        // A full disk may show only when the buffer is written.
        if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
            return fail(Exit::bad_input, fmt::format("standard output: cannot be written: {}",
                                                     std::strerror(errno)));
        return static_cast<int>(exit);
    } catch (const UsageError& error) {
        return fail(Exit::usage, error.what());
    } catch (const InputError& error) {
        return fail(Exit::bad_input, error.what());
    } catch (const InfeasibleError& error) {
        return fail(Exit::infeasible, error.what());
    } catch (const std::filesystem::filesystem_error& error) {
        return fail(Exit::bad_input, error.path1().string() + ": " + error.code().message());
    } catch (const std::bad_alloc&) {
        return fail(Exit::infeasible, "out of memory");
    } catch (const std::exception& error) {
        return fail(Exit::internal, fmt::format("internal: {}", error.what()));
    } catch (...) {
        return fail(Exit::internal, "internal: " + other_error_text(std::current_exception()));
    }
}

}  // namespace laminate::cli
