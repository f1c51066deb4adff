// The verbs of `laminate`, one file each. A verb declares its options on a subcommand and hands back what to do.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <stdexcept>
#include <string>

#include "cli/output.h"
#include "nets/network.h"
#include "nets/open.h"
#include "scheduler/schedule.h"

namespace laminate::cli {

/// Runs one verb. Throws UsageError, InputError or any other exception: main() gives each its exit code.
using Action = std::function<Exit(const Output&)>;

class Program {
public:
    Program();
    /// The exit code of the command line. Never throws.
    [[nodiscard]] int run(int argc, char** argv);

    /// A subcommand with the common options; `examples` are shown by --help, one per line.
    CLI::App* add_verb(const std::string& name, const std::string& about, const std::string& examples,
                       CLI::App* parent = nullptr);
    /// What to do when this subcommand is the one on the command line.
    void on(CLI::App* verb, Action action);
    [[nodiscard]] const CommonOptions& common() const { return common_; }

private:
    CLI::App app_;
    CommonOptions common_;
    bool quiet_ = false;
    int verbose_ = 0;
    Action chosen_;
};

/// NET and the sizes of its symbolic dimensions, shared by every verb that takes a network.
struct NetworkArgument {
    std::string spec;
    InputSizes sizes;
    std::vector<std::string> symbols;  ///< "H=540" as typed

    /// NET as the first argument, and the options for sizes. `or_compiled`: the verb takes a compiled directory too,
    /// which open() refuses.
    void declare(CLI::App* verb, bool or_compiled = false);
    /// The same with --net NET, not required.
    void declare_option(CLI::App* verb);
    /// {"net", "height", "width", "batch", "dims"}: only what was given; from_json() opens the same network again.
    [[nodiscard]] nlohmann::ordered_json to_json() const;
    /// Throws InputError when a value is not what to_json() writes.
    [[nodiscard]] static NetworkArgument from_json(const nlohmann::ordered_json& given);
    /// Throws InputError (bad model) or UsageError (bad --dim).
    [[nodiscard]] Network open() const;
    /// The sizes with --dim applied.
    [[nodiscard]] InputSizes input_sizes() const;

private:
    void declare_sizes(CLI::App* verb);
};

/// The network that a front (front_file.h) was made for; throws InputError when the front does not say how it was given.
[[nodiscard]] Network network_of_front(const std::string& file, const nlohmann::ordered_json& front);

/// What --schedule takes, for --help.
constexpr const char* schedule_help = "Schedule of a front (DIR#N), schedule file (JSON or text), or the text itself";
/// A schedule from a front (front_reference()), from a file (JSON or text) or, when the argument begins with "{", from the argument itself.
[[nodiscard]] Schedule read_schedule(const Network& network, const std::string& argument);

void add_info(Program& program);
void add_zoo(Program& program);
void add_machine(Program& program);
void add_cost(Program& program);
void add_show(Program& program);
void add_validate(Program& program);
void add_compile(Program& program);
void add_run(Program& program);
void add_bench(Program& program);
void add_explore(Program& program);
void add_report(Program& program);
void add_study(Program& program);

/// "laminate 0.1.0", the Halide version, the host target and the features of this CPU; one fact per line.
[[nodiscard]] std::string version_text();

}  // namespace laminate::cli
