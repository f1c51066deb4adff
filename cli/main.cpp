#include "cli/verbs.h"

int main(int argc, char** argv) {
    laminate::cli::Program program;
    return program.run(argc, argv);
}
