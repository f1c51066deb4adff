// Arguments that several verbs take: a network with the sizes of its symbolic dimensions, and a
// schedule for it.
#pragma once

#include <CLI/App.hpp>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "nets/network/network.h"
#include "nets/open.h"
#include "scheduler/schedule/schedule.h"

namespace laminate::cli {

/// NET and the sizes of its symbolic dimensions.
struct NetworkArgument {
    std::string spec;
    InputSizes sizes;
    std::vector<std::string> symbols;   ///< "H=540" as typed
    std::vector<std::string> integers;  ///< "size=270,480" as typed

    /// Declares NET as the first argument, and the options for sizes. With `or_compiled` the help
    /// says that the verb takes a compiled directory too, which open() refuses.
    void declare(CLI::App* verb, bool or_compiled = false);
    /// The same with the option --net NET.
    void declare_option(CLI::App* verb);
    /// {"net", "height", "width", "batch", "dims", "integers"}, without what was not given.
    [[nodiscard]] nlohmann::ordered_json to_json() const;
    /// The inverse. Throws InputError for a value that to_json() does not write.
    [[nodiscard]] static NetworkArgument from_json(const nlohmann::ordered_json& given);
    /// Throws InputError (bad model) or UsageError (bad --dim or --integers).
    [[nodiscard]] Network open() const;
    /// The sizes with --dim and --integers applied.
    [[nodiscard]] InputSizes input_sizes() const;

private:
    void declare_sizes(CLI::App* verb);
};

/// The network that a front (front_file.h) was made for. Throws InputError when the front does not
/// say how the network was given.
[[nodiscard]] Network network_of_front(const std::string& file,
                                       const nlohmann::ordered_json& front);

/// Help of --schedule.
constexpr const char* schedule_help =
    "Schedule of a front (DIR#N), schedule file (JSON or text), or the text itself";
/// A schedule from a front (front_reference()), from a file (JSON or text) or, when the argument
/// begins with "{", from the argument itself.
[[nodiscard]] Schedule read_schedule(const Network& network, const std::string& argument);

}  // namespace laminate::cli
