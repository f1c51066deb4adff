#include "base/unfinished.h"
#include "cli/verbs.h"

int main(int argc, char** argv) {
    laminate::remove_unfinished_at_signals();
    laminate::cli::Program program;
    laminate::cli::add_verbs(program);
    return program.run(argc, argv);
}
