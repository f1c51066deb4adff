// laminate reference (hidden): writes the documents that are made from the command line itself.
#include "cli/reference.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <memory>
#include <sstream>
#include <utility>

#include "answers/output.h"
#include "answers/program.h"
#include "answers/version.h"

namespace laminate::cli {

// ---- from CLI11

namespace {

std::vector<std::string> split(const std::string& text, char separator) {
    std::vector<std::string> parts;
    std::istringstream in(text);
    for (std::string part; std::getline(in, part, separator);) parts.push_back(part);
    return parts;
}

/// Words for a check of CLI11.
std::string range_text(const std::string& check) {
    if (check == "POSITIVE") return "positive";
    if (check == "NONNEGATIVE") return "0 or more";
    const size_t open = check.find('['), dash = check.find(" - "), close = check.find(']');
    if (open == std::string::npos || dash == std::string::npos || close == std::string::npos)
        return check;
    return check.substr(open + 1, dash - open - 1) + " to " +
           check.substr(dash + 3, close - dash - 3);
}

OptionReference option_reference(const CLI::Option& option) {
    OptionReference reference;
    reference.about = option.get_description();
    reference.is_required = option.get_required();
    if (option.get_positional()) {
        reference.names = {option.get_name(true, false)};
    } else {
        for (const std::string& name : option.get_snames()) reference.names.push_back("-" + name);
        for (const std::string& name : option.get_lnames()) reference.names.push_back("--" + name);
    }
    if (option.get_type_size() == 0) return reference;
    // "TEXT:{a,b}", "INT:POSITIVE", "FILE|NAME"
    const std::string type = option.get_type_name();
    const size_t colon = type.find(':');
    reference.value = type.substr(0, colon);
    if (colon != std::string::npos) {
        const std::string check = type.substr(colon + 1);
        if (check.front() == '{' && check.back() == '}') {
            reference.choices = split(check.substr(1, check.size() - 2), ',');
        } else {
            reference.range = range_text(check);
        }
    }
    reference.default_value = option.get_default_str();
    reference.is_repeated = option.get_expected_max() == CLI::detail::expected_max_vector_size;
    return reference;
}

void add_options(const CLI::App& app, const std::string& title, const std::string& about,
                 VerbReference& verb) {
    OptionSection section{title, about, {}};
    for (const CLI::Option* option : app.get_options()) {
        if (option->get_group().empty()) continue;  // hidden
        if (option->get_positional())
            verb.positionals.push_back(option_reference(*option));
        else
            section.options.push_back(option_reference(*option));
    }
    if (!section.options.empty()) verb.sections.push_back(std::move(section));
}

void add_verbs(const CLI::App& parent, const std::string& before,
               std::vector<VerbReference>& verbs) {
    for (const CLI::App* app : parent.get_subcommands(
             [](const CLI::App* a) { return !a->get_name().empty() && !a->get_group().empty(); })) {
        VerbReference verb;
        verb.name = before + app->get_name();
        verb.about = app->get_description();
        verb.notes = app->get_footer();
        add_options(*app, "", "", verb);
        for (const CLI::App* group :
             app->get_subcommands([](const CLI::App* a) { return a->get_name().empty(); }))
            add_options(*group, group->get_group(), group->get_description(), verb);
        const size_t at = verbs.size();
        verbs.push_back(std::move(verb));
        add_verbs(*app, verbs[at].name + " ", verbs);
        verbs[at].has_verbs = verbs.size() > at + 1;
    }
}

}  // namespace

ProgramReference reference_of(const CLI::App& app) {
    ProgramReference program{app.get_description(), app.get_footer(), {}};
    add_verbs(app, "", program.verbs);
    return program;
}

// ---- Markdown, manual page

namespace {

std::string joined(const std::vector<std::string>& parts, const std::string& between) {
    std::string text;
    for (const std::string& part : parts) text += (text.empty() ? "" : between) + part;
    return text;
}

/// A flag has no value, and the name of a positional says enough.
bool shows_value(const OptionReference& option) {
    return !option.value.empty() && option.names.front().front() == '-';
}

/// "-o DIR, --output DIR" is long: "-o, --output DIR".
std::string names_text(const OptionReference& option) {
    return joined(option.names, ", ") + (shows_value(option) ? " " + option.value : "");
}

/// "laminate zoo export [OPTIONS] NAME"
std::string usage_text(const VerbReference& verb) {
    std::string text = "laminate " + verb.name + (verb.has_verbs ? " VERB" : "");
    for (const OptionReference& option :
         verb.sections.empty() ? std::vector<OptionReference>{} : verb.sections.front().options) {
        if (option.is_required) text += " " + option.names.front() + " " + option.value;
    }
    text += " [OPTIONS]";
    for (const OptionReference& positional : verb.positionals)
        text += positional.is_required ? " " + positional.names.front()
                                       : " [" + positional.names.front() + "]";
    return text;
}

/// Legal values and the default; empty when there is nothing to say.
std::string values_text(const OptionReference& option) {
    std::vector<std::string> facts;
    if (!option.choices.empty()) facts.push_back("one of " + joined(option.choices, ", "));
    if (!option.range.empty()) facts.push_back(option.range);
    if (!option.default_value.empty()) facts.push_back("default " + option.default_value);
    if (option.is_repeated) facts.push_back("may be repeated");
    if (option.is_required) facts.push_back("required");
    return joined(facts, "; ");
}

/// Whether every verb has the option.
bool is_common(const OptionReference& option) {
    const std::string& name = option.names.back();
    return name == "--help" || name == "--json" || name == "--threads" || name == "--seed" ||
           name == "--verbose" || name == "--quiet";
}

/// The options of a section without the common ones.
std::vector<OptionReference> own_options(const OptionSection& section) {
    std::vector<OptionReference> options;
    std::copy_if(section.options.begin(), section.options.end(), std::back_inserter(options),
                 [](const auto& o) { return !is_common(o); });
    return options;
}

/// The options that every verb has.
std::vector<OptionReference> common_options(const ProgramReference& program) {
    std::vector<OptionReference> options;
    if (program.verbs.empty() || program.verbs.front().sections.empty()) return options;
    const auto& all = program.verbs.front().sections.front().options;
    std::copy_if(all.begin(), all.end(), std::back_inserter(options), is_common);
    return options;
}

std::string markdown_escaped(const std::string& text) {
    std::string escaped;
    for (const char c : text) {
        if (c == '<' || c == '*' || c == '_' || c == '|') escaped += '\\';
        escaped += c;
    }
    return escaped;
}

/// Whether Markdown would take this word for the beginning of a list or heading at the start of a
/// line.
bool begins_block(const std::string& word) {
    return word == "-" || word == "+" || word == "*" || word.front() == '#' ||
           (std::isdigit(static_cast<unsigned char>(word.front())) != 0 && word.back() == '.');
}

/// A paragraph in lines of at most 100 columns; the second and later ones begin with `indent`.
std::string wrapped(const std::string& text, const std::string& indent = "") {
    constexpr size_t columns = 100;
    std::string lines;
    size_t width = 0;
    for (const std::string& word : split(text, ' ')) {
        if (word.empty()) continue;
        if (lines.empty()) {
            width = display_width(word);
        } else if (width + 1 + display_width(word) > columns && !begins_block(word)) {
            lines += "\n" + indent;
            width = indent.size() + display_width(word);
        } else {
            lines += " ";
            width += 1 + display_width(word);
        }
        lines += word;
    }
    return lines + "\n";
}

std::string markdown_item(const OptionReference& option) {
    const std::string values = values_text(option);
    return wrapped("- `" + names_text(option) + "`: " + markdown_escaped(option.about) +
                       (values.empty() ? "" : " (" + markdown_escaped(values) + ")"),
                   "  ");
}

/// Backslashes, hyphens and a leading dot or quote mean something to roff.
std::string roff(const std::string& text) {
    std::string escaped;
    for (size_t k = 0; k < text.size(); ++k) {
        const bool begins_line = k == 0 || text[k - 1] == '\n';
        if (begins_line && (text[k] == '.' || text[k] == '\'')) escaped += "\\&";
        if (text[k] == '\\')
            escaped += "\\e";
        else if (text[k] == '-')
            escaped += "\\-";
        else
            escaped += text[k];
    }
    return escaped;
}

std::string roff_item(const OptionReference& option) {
    const std::string values = values_text(option);
    return ".TP\n\\fB" + roff(joined(option.names, ", ")) + "\\fR" +
           (shows_value(option) ? " \\fI" + roff(option.value) + "\\fR" : "") + "\n" +
           roff(option.about + (values.empty() ? "" : " (" + values + ")")) + "\n";
}

}  // namespace

std::string markdown_text(const ProgramReference& program) {
    std::string text =
        "# The command line\n\n" +
        wrapped("The program writes this page itself (`make docs`), and a test compares. " +
                program.about + ".") +
        "\n";
    for (const std::string& line : split(program.notes, '\n'))
        text += wrapped(markdown_escaped(line)) + "\n";
    text += "Options of every verb:\n\n";
    for (const OptionReference& option : common_options(program)) text += markdown_item(option);
    std::string last_notes;
    for (const VerbReference& verb : program.verbs) {
        if (verb.has_verbs) continue;
        text += "\n## " + verb.name + "\n\n" + wrapped(markdown_escaped(verb.about) + ".") +
                "\n    " + usage_text(verb) + "\n";
        std::string before = "\n";
        for (const OptionReference& positional : verb.positionals)
            text += std::exchange(before, "") + markdown_item(positional);
        for (const OptionSection& section : verb.sections) {
            const std::vector<OptionReference> options = own_options(section);
            if (options.empty()) continue;
            if (section.title.empty())
                text += std::exchange(before, "");
            else
                text += "\n" +
                        wrapped("With `" + section.title + "` (" + markdown_escaped(section.about) +
                                "):") +
                        "\n";
            for (const OptionReference& option : options) text += markdown_item(option);
        }
        // Verbs below one verb share its notes, which stand with the first. The comment tells
        // tests/docs not to run the examples, whose files do not exist.
        if (verb.notes.empty() || std::exchange(last_notes, verb.notes) == verb.notes) continue;
        text += "\n";
        for (const std::string& line : split(verb.notes, '\n'))
            text += line.rfind("  ", 0) == 0 ? "    " + line.substr(2) + "\n"
                                             : line + "\n\n<!-- run: form -->\n";
    }
    return text;
}

std::string manual_page(const ProgramReference& program, const std::string& version) {
    std::string text = ".TH LAMINATE 1 \"\" \"" + version +
                       "\" \"User Commands\"\n.SH NAME\nlaminate \\- " + roff(program.about) +
                       "\n.SH SYNOPSIS\n.B laminate\n.I VERB\n[OPTIONS] ...\n.SH DESCRIPTION\n";
    for (const std::string& line : split(program.notes, '\n')) text += roff(line) + "\n.PP\n";
    text += ".SH OPTIONS OF EVERY VERB\n";
    for (const OptionReference& option : common_options(program)) text += roff_item(option);
    text += ".SH VERBS\n";
    for (const VerbReference& verb : program.verbs) {
        if (verb.has_verbs) continue;
        text += ".SS " + roff(usage_text(verb)) + "\n" + roff(verb.about) + ".\n";
        for (const OptionReference& positional : verb.positionals) text += roff_item(positional);
        for (const OptionSection& section : verb.sections) {
            const std::vector<OptionReference> options = own_options(section);
            if (options.empty()) continue;
            if (!section.title.empty())
                text += ".PP\nWith " + roff(section.title) + " (" + roff(section.about) + "):\n";
            for (const OptionReference& option : options) text += roff_item(option);
        }
        if (!verb.notes.empty())
            text +=
                ".PP\n.nf\n" + roff(verb.notes) + (verb.notes.back() == '\n' ? "" : "\n") + ".fi\n";
    }
    return text;
}

// ---- completion

namespace {

std::vector<OptionReference> all_options(const VerbReference& verb) {
    std::vector<OptionReference> options;
    for (const OptionSection& section : verb.sections)
        options.insert(options.end(), section.options.begin(), section.options.end());
    return options;
}

/// Verbs one word below `before` ("" or "zoo ").
std::vector<std::string> next_words(const ProgramReference& program, const std::string& before) {
    std::vector<std::string> words;
    for (const VerbReference& verb : program.verbs) {
        if (verb.name.rfind(before, 0) == 0 &&
            verb.name.find(' ', before.size()) == std::string::npos)
            words.push_back(verb.name.substr(before.size()));
    }
    return words;
}

/// Inside '...' of a shell.
std::string quoted(const std::string& text) {
    std::string safe = "'";
    for (const char c : text) safe += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return safe + "'";
}

/// Escaped for _arguments, where brackets and colons end a part.
std::string zsh_escaped(const std::string& text) {
    std::string safe;
    for (const char c : text) {
        if (c == '[' || c == ']' || c == ':' || c == '\\') safe += '\\';
        safe += c;
    }
    return safe;
}

std::string zsh_action(const OptionReference& option) {
    return option.choices.empty() ? "_files" : "(" + joined(option.choices, " ") + ")";
}

}  // namespace

std::string bash_completion(const ProgramReference& program) {
    std::string text =
        "# Completion of laminate for bash; made by the program.\n_laminate()\n{\n"
        "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} "
        "verb=${COMP_WORDS[1]}\n"
        "    COMPREPLY=()\n    if ((COMP_CWORD == 1)); then\n        COMPREPLY=($(compgen -W " +
        quoted(joined(next_words(program, ""), " ") + " --help --version") +
        " -- \"$word\"))\n        return\n    fi\n    case $verb in\n";
    std::string parents;
    for (const VerbReference& verb : program.verbs) {
        if (!verb.has_verbs) continue;
        parents += (parents.empty() ? "" : "|") + verb.name;
        text += "    " + verb.name +
                ")\n        if ((COMP_CWORD == 2)); then\n            COMPREPLY=($(compgen -W " +
                quoted(joined(next_words(program, verb.name + " "), " ")) +
                " -- \"$word\"))\n            return\n        fi\n"
                "        verb+=\" ${COMP_WORDS[2]}\"\n        ;;\n";
    }
    text += "    esac\n    case $verb:$before in\n";
    for (const VerbReference& verb : program.verbs) {
        for (const OptionReference& option : all_options(verb)) {
            if (option.choices.empty()) continue;
            for (const std::string& name : option.names) {
                text += "    " + quoted(verb.name + ":" + name) + ") COMPREPLY=($(compgen -W " +
                        quoted(joined(option.choices, " ")) + " -- \"$word\")); return ;;\n";
            }
        }
    }
    text +=
        "    esac\n    if [[ $word != -* ]]; then\n        compopt -o default\n        return\n"
        "    fi\n    case $verb in\n";
    for (const VerbReference& verb : program.verbs) {
        std::vector<std::string> names;
        for (const OptionReference& option : all_options(verb))
            names.insert(names.end(), option.names.begin(), option.names.end());
        text += "    " + quoted(verb.name) + ") COMPREPLY=($(compgen -W " +
                quoted(joined(names, " ")) + " -- \"$word\")) ;;\n";
    }
    return text + "    esac\n}\ncomplete -F _laminate laminate\n";
}

std::string zsh_completion(const ProgramReference& program) {
    std::string text =
        "#compdef laminate\n# Completion of laminate for zsh; made by the program.\n_laminate() {\n"
        "    local verb=$words[2]\n    if ((CURRENT == 2)); then\n        compadd -- " +
        joined(next_words(program, ""), " ") +
        " --help --version\n        return\n    fi\n    case $verb in\n";
    for (const VerbReference& verb : program.verbs) {
        if (!verb.has_verbs) continue;
        text += "    " + verb.name +
                ")\n        if ((CURRENT == 3)); then\n            compadd -- " +
                joined(next_words(program, verb.name + " "), " ") +
                "\n            return\n        fi\n        verb+=\" $words[3]\"\n"
                "        shift words\n        ((CURRENT--))\n        ;;\n";
    }
    text += "    esac\n    shift words\n    ((CURRENT--))\n    case $verb in\n";
    for (const VerbReference& verb : program.verbs) {
        if (verb.has_verbs) continue;
        text += "    " + quoted(verb.name) + ")\n        _arguments";
        for (const OptionReference& option : all_options(verb)) {
            for (const std::string& name : option.names) {
                const std::string value = option.value.empty() ? ""
                                                               : ":" + zsh_escaped(option.value) +
                                                                     ":" + zsh_action(option);
                text += " \\\n            " + quoted((option.is_repeated ? "*" : "") + name + "[" +
                                                     zsh_escaped(option.about) + "]" + value);
            }
        }
        for (const OptionReference& positional : verb.positionals)
            text += " \\\n            " + quoted(":" + zsh_escaped(positional.names.front()) + ":" +
                                                 zsh_action(positional));
        text += "\n        ;;\n";
    }
    return text + "    esac\n}\n_laminate \"$@\"\n";
}

// ---- verb

void add_reference(Program& program) {
    CLI::App* verb = program.add_verb("reference", "The command line as a document", "");
    verb->group("");  // for the build, not for people
    auto format = std::make_shared<std::string>();
    verb->add_option("FORMAT", *format, "Document to write to stdout")
        ->required()
        ->check(CLI::IsMember({"markdown", "man", "bash", "zsh"}));
    program.on(verb, [format, &program](const Output& output) {
        const ProgramReference reference = reference_of(program.tree());
        const std::string text = *format == "markdown" ? markdown_text(reference)
                                 : *format == "man"
                                     ? manual_page(reference, "laminate " + program_version())
                                 : *format == "bash" ? bash_completion(reference)
                                                     : zsh_completion(reference);
        output.print(text);
        return Exit::ok;
    });
}

}  // namespace laminate::cli
