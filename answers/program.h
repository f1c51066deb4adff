// The command line as a tree of verbs. A verb declares its options on a subcommand and registers
// the action to run; cli/verbs.h lists the verbs.
#pragma once

#include <CLI/App.hpp>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "answers/output.h"

namespace laminate::cli {

/// Runs one verb. Program::run() turns any exception it throws into an exit code.
using Action = std::function<Exit(const Output&)>;

class Program {
public:
    /// A program without verbs.
    Program();
    /// Runs the command line and returns its exit code. Never throws.
    [[nodiscard]] int run(int argc, char** argv);

    /// Adds a subcommand. --help shows `examples`, one per line.
    CLI::App* add_verb(const std::string& name, const std::string& about,
                       const std::string& examples, CLI::App* parent = nullptr);
    /// Registers the action of a subcommand whose own options are declared, and adds the common ones.
    void on(CLI::App* verb, Action action);
    [[nodiscard]] const CommonOptions& common() const { return common_; }
    /// Called before a text of --help is written, when options have their values.
    void before_help(std::function<void()> prepare) { before_help_.push_back(std::move(prepare)); }
    /// The root of the tree of verbs.
    [[nodiscard]] const CLI::App& tree() const { return app_; }

private:
    CLI::App app_;
    CommonOptions common_;
    bool quiet_ = false;
    int verbose_ = 0;
    Action chosen_;
    std::vector<std::function<void()>> before_help_;
};

}  // namespace laminate::cli
