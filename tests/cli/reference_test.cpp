// Documents made from the command line: cli/reference.h.
#include "cli/reference.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/files.h"
#include "tests/support/run_program.h"

namespace laminate::cli {
namespace {

TEST(Reference, TheDocumentIsThatOfThisProgram) {
    const std::string document = read_file(LAMINATE_CLI_DOCUMENT),
                      made = run_program("reference markdown").out;
    const size_t at = static_cast<size_t>(
        std::mismatch(document.begin(), document.end(), made.begin(), made.end()).first -
        document.begin());
    EXPECT_TRUE(document == made)
        << "docs/cli.md is of another program: `make docs`; they part at \""
        << document.substr(at, 80) << "\"";
}

TEST(Reference, IsHiddenFromHelpButListsEveryVerbOfIt) {
    const std::string help = run_program("--help").out,
                      document = run_program("reference markdown").out;
    EXPECT_EQ(help.find("  reference "), std::string::npos);
    for (const char* verb :
         {"info", "zoo list", "zoo export", "machine check", "explore", "run", "sweep"})
        EXPECT_NE(document.find("\n## " + std::string(verb) + "\n"), std::string::npos) << verb;
}

// One verb with one option of each kind.
class SmallProgram : public ::testing::Test {
protected:
    SmallProgram() {
        app_.set_help_flag("");
        CLI::App* verb = app_.add_subcommand("fold", "Fold a sheet");
        verb->add_option("SHEET", text_, "What is folded")->required();
        verb->add_option("-o,--output", text_, "Where it goes")->required()->type_name("DIR");
        verb->add_option("--times", number_, "How often")
            ->check(CLI::Range(1, 7))
            ->capture_default_str();
        verb->add_flag("--neat", flag_, "Corner to corner");
        verb->add_option_group("--by hand", "slowly")
            ->add_option("--hand", text_, "Which: it's [either]")
            ->check(CLI::IsMember({"left", "right"}));
        verb->footer("Examples:\n  laminate fold a.txt -o b\\c/");
        app_.add_subcommand("secret", "Not told")->group("");
    }
    CLI::App app_{"Folds", "laminate"};
    std::string text_;
    int number_ = 1;
    bool flag_ = false;
};

TEST_F(SmallProgram, IsDescribedWhole) {
    const ProgramReference program = reference_of(app_);
    ASSERT_EQ(program.verbs.size(), 1U);
    const VerbReference& fold = program.verbs[0];
    EXPECT_EQ(fold.name, "fold");
    ASSERT_EQ(fold.positionals.size(), 1U);
    EXPECT_EQ(fold.positionals[0].names, std::vector<std::string>{"SHEET"});
    ASSERT_EQ(fold.sections.size(), 2U);
    EXPECT_EQ(fold.sections[0].options[0].names, (std::vector<std::string>{"-o", "--output"}));
    EXPECT_EQ(fold.sections[0].options[1].range, "1 to 7");
    EXPECT_EQ(fold.sections[0].options[1].default_value, "1");
    EXPECT_EQ(fold.sections[0].options[2].value, "");
    EXPECT_EQ(fold.sections[1].options[0].choices, (std::vector<std::string>{"left", "right"}));
}

TEST_F(SmallProgram, InMarkdown) {
    const std::string text = markdown_text(reference_of(app_));
    EXPECT_NE(
        text.find(
            "    laminate fold -o DIR [OPTIONS] SHEET\n\n- `SHEET`: What is folded (required)\n"),
        std::string::npos)
        << text;
    EXPECT_NE(text.find("- `--times INT`: How often (1 to 7; default 1)\n"), std::string::npos)
        << text;
    EXPECT_NE(text.find("- `--hand TEXT`: Which: it's [either] (one of left, right)\n"),
              std::string::npos)
        << text;
    EXPECT_NE(text.find("    laminate fold a.txt -o b\\c/\n"), std::string::npos) << text;
}

TEST_F(SmallProgram, InRoffAndShellsWithWhatTheyQuote) {
    EXPECT_NE(
        manual_page(reference_of(app_), "laminate 1").find("laminate fold a.txt \\-o b\\ec/\n"),
        std::string::npos);
    EXPECT_NE(bash_completion(reference_of(app_))
                  .find("'fold:--hand') COMPREPLY=($(compgen -W 'left right' -- \"$word\"))"),
              std::string::npos);
    const std::string zsh = zsh_completion(reference_of(app_));
    EXPECT_NE(zsh.find("'--hand[Which\\: it'\\''s \\[either\\]]:TEXT:(left right)'"),
              std::string::npos)
        << zsh;
}

}  // namespace
}  // namespace laminate::cli
