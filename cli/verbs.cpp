#include "cli/verbs.h"

#include "cli/reference.h"
#include "cli/sweep.h"
#include "papers/verbs.h"

namespace laminate::cli {

void add_verbs(Program& program) {
    add_info(program);
    add_zoo(program);
    add_machine(program);
    add_cost(program);
    add_show(program);
    add_validate(program);
    add_compile(program);
    add_run(program);
    add_bench(program);
    add_cache(program);
    add_explore(program);
    add_report(program);
    add_study(program);
    add_sweep(program);
    add_reference(program);
}

}  // namespace laminate::cli
