#include <pthread.h>
#include <sys/resource.h>

#include <cstddef>

#include "base/unfinished.h"
#include "cli/verbs.h"

namespace {

/// Halide and LLVM walk expressions by recursion, on the main thread and on others. This is Linux's
/// usual stack; below it (`ulimit -s 64`) they overflow.
constexpr size_t stack_bytes = size_t{8} << 20;

struct CommandLine {
    int count;
    char** words;
    int exit_code = 0;
};

void* run(void* context) {
    auto& line = *static_cast<CommandLine*>(context);
    laminate::cli::Program program;
    laminate::cli::add_verbs(program);
    line.exit_code = program.run(line.count, line.words);
    return nullptr;
}

bool has_small_stack() {
    rlimit limit{};
    return ::getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur < stack_bytes;
}

/// Runs on a new thread with a stack of stack_bytes, which all later threads have too.
bool run_on_larger_stack(CommandLine& line) {
    pthread_attr_t attributes;
    pthread_t thread;
    ::pthread_attr_init(&attributes);
    ::pthread_attr_setstacksize(&attributes, stack_bytes);
    ::pthread_setattr_default_np(&attributes);
    const bool has_run = ::pthread_create(&thread, &attributes, run, &line) == 0 &&
                         ::pthread_join(thread, nullptr) == 0;
    ::pthread_attr_destroy(&attributes);
    return has_run;
}

}  // namespace

int main(int argc, char** argv) {
    laminate::remove_unfinished_at_signals();
    CommandLine line{argc, argv};
    if (!has_small_stack() || !run_on_larger_stack(line)) run(&line);
    return line.exit_code;
}
