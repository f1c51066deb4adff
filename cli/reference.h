// The command line as data, read from the tree of verbs and options that parses it, and the
// documents made from it: docs/cli.md, the manual page, completion for bash and zsh. The documents
// therefore agree with what the program accepts.
#pragma once

#include <CLI/App.hpp>
#include <string>
#include <vector>

namespace laminate::cli {

struct OptionReference {
    std::vector<std::string> names;    ///< "-o", "--output"; the one name of a positional
    std::string value;                 ///< "DIR", "INT"; empty for a flag
    std::vector<std::string> choices;  ///< all legal values, if they are few
    std::string range;                 ///< "positive", "0 to 1024"; empty for no check
    std::string default_value;
    bool is_required = false;
    bool is_repeated = false;
    std::string about;
};

/// Options under a heading, which is empty for the first section.
struct OptionSection {
    std::string title;
    std::string about;
    std::vector<OptionReference> options;
};

struct VerbReference {
    std::string name;  ///< "explore", "zoo export"
    std::string about;
    std::string notes;  ///< the end of --help: examples
    std::vector<OptionReference> positionals;
    std::vector<OptionSection> sections;
    bool has_verbs = false;  ///< takes a verb of its own: "zoo"
};

struct ProgramReference {
    std::string about;
    std::string notes;
    std::vector<VerbReference> verbs;  ///< in the order of --help, without hidden ones
};

class Program;
/// Adds the verb that writes the documents of the whole program.
void add_reference(Program& program);

[[nodiscard]] ProgramReference reference_of(const CLI::App& app);

[[nodiscard]] std::string markdown_text(const ProgramReference& program);
/// `version` stands at the page's foot.
[[nodiscard]] std::string manual_page(const ProgramReference& program, const std::string& version);
[[nodiscard]] std::string bash_completion(const ProgramReference& program);
[[nodiscard]] std::string zsh_completion(const ProgramReference& program);

}  // namespace laminate::cli
