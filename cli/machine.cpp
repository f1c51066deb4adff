// laminate machine list, machine show NAME, machine check FILE, machine measure.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "answers/version.h"
#include "base/files.h"
#include "base/parse_json.h"
#include "cli/kernel_speed.h"
#include "cli/machine_speed.h"
#include "cli/verbs.h"
#include "scheduler/counts/energy.h"
#include "scheduler/machine/cpu_speed.h"
#include "scheduler/machine/machine.h"

namespace laminate::cli {

namespace {

std::string array_text(const Machine& machine) {
    std::vector<std::string> axes;
    for (const ArrayAxis& axis : machine.axes)
        axes.push_back(fmt::format(
            "{}{}", axis.loop ? std::string(to_string(*axis.loop)) + " " : "", axis.lanes));
    return fmt::format("{}", fmt::join(axes, " x "));
}

std::string operands_text(const Memory& memory) {
    std::vector<std::string> operands;
    for (const Operand operand : memory.operands) operands.emplace_back(to_string(operand));
    return fmt::format("{}", fmt::join(operands, " "));
}

/// The size is printed in bits unless it is whole bytes.
std::string capacity_text(int64_t bits) {
    return bits % 8 == 0 ? bytes_text(bits / 8) : fmt::format("{} bit", bits);
}

Exit list(const Output& output) {
    Table table(
        {{"name"}, {"array"}, {"memories", Align::right}, {"on chip", Align::right}, {"about"}});
    auto entries = nlohmann::ordered_json::array();
    for (const std::string& name : machine_names()) {
        const Machine machine = open_machine(name);
        table.add({name, array_text(machine), std::to_string(machine.memories.size()),
                   capacity_text(machine.on_chip_bits()), machine.about});
        entries.push_back({{"name", name},
                           {"about", machine.about},
                           {"macs_per_cycle", machine.mac_count()},
                           {"memories", machine.memories.size()},
                           {"on_chip_bits", machine.on_chip_bits()}});
    }
    output.print(table.text());
    output.print(fmt::format("energy tables, for counts of two levels: {}",
                             fmt::join(energy_table_names(), ", ")));
    output.print(fmt::format("speeds of processors, for times of schedules: {}",
                             fmt::join(cpu_speed_names(), ", ")));
    output.json({{"schema", "laminate.machines"},
                 {"version", 1},
                 {"machines", entries},
                 {"energy_tables", energy_table_names()},
                 {"cpu_speeds", cpu_speed_names()}});
    return Exit::ok;
}

std::vector<std::string> port_names(const Memory& memory) {
    std::vector<std::string> names;
    for (const MemoryPort& port : memory.ports) names.push_back(port.name);
    return names;
}

nlohmann::ordered_json access_json(const WordAccess& access) {
    return {{"word_bits", access.word_bits},
            {"smallest_access_bits", access.smallest_access_bits},
            {"word_pj", access.word_pj}};
}

Exit show_energy_table(const EnergyTable& table, const Output& output) {
    output.print(fmt::format(
        "{}: {} pJ per multiply-accumulate, {} internal accesses each; {} pJ per external access\n"
        "internal memory of s bits: {} + {} * sqrt(s) pJ per access",
        table.name, table.mac_pj, table.internal_accesses_per_mac, table.external_access_pj,
        table.internal_access_base_pj, table.internal_access_pj_per_root_bit));
    nlohmann::ordered_json answer{
        {"schema", "laminate.energy_table_shown"},
        {"version", 1},
        {"name", table.name},
        {"element_bits", table.element_bits},
        {"mac_pj", table.mac_pj},
        {"external_access_pj", table.external_access_pj},
        {"internal_accesses_per_mac", table.internal_accesses_per_mac},
        {"internal_access_base_pj", table.internal_access_base_pj},
        {"internal_access_pj_per_root_bit", table.internal_access_pj_per_root_bit}};
    if (table.banks) {
        output.print(
            fmt::format("banks of {} bits; of b banks an access takes 1 + {} * ln(b) times as much",
                        table.banks->bits, table.banks->select_fraction_per_log));
        answer["bank_bits"] = table.banks->bits;
        answer["bank_select_fraction_per_log"] = table.banks->select_fraction_per_log;
    }
    if (table.register_file) {
        output.print(fmt::format("register file of {} elements, {} pJ per access",
                                 table.register_file->elements.value(),
                                 table.register_file->access_pj));
        answer["register_file_elements"] = table.register_file->elements.value();
        answer["register_file_access_pj"] = table.register_file->access_pj;
    }
    output.json(answer);
    return Exit::ok;
}

Exit show_cpu_speed(const CpuSpeed& speed, const Output& output) {
    output.print(fmt::format("{}: {}\ncaches: {} of a core, {} of all\nsource: {}\n", speed.name,
                             speed.about, bytes_text(speed.second_level_cache.value()),
                             bytes_text(speed.third_level_cache.value()), speed.source));
    Table table({{"work"}, {"ns", Align::right}});
    for (const auto& [term, nanoseconds] : speed.nanoseconds)
        table.add({term, fmt::format("{:.4g}", nanoseconds)});
    output.print(table.text());
    output.json({{"schema", "laminate.cpu_speed_shown"},
                 {"version", 1},
                 {"name", speed.name},
                 {"about", speed.about},
                 {"source", speed.source},
                 {"nanoseconds", speed.nanoseconds}});
    return Exit::ok;
}

std::string memories_table(const Machine& machine) {
    Table table({{"memory"},
                 {"serves"},
                 {"capacity", Align::right},
                 {"copies", Align::right},
                 {"word bits r/w", Align::right},
                 {"smallest access", Align::right},
                 {"pJ per word r/w", Align::right},
                 {"ports"}});
    for (const Memory& memory : machine.memories) {
        table.add({memory.name, operands_text(memory), capacity_text(memory.capacity_bits),
                   grouped(machine.copies(memory)),
                   fmt::format("{} / {}", memory.read.word_bits, memory.write.word_bits),
                   fmt::format("{} / {}", memory.read.smallest_access_bits,
                               memory.write.smallest_access_bits),
                   fmt::format("{} / {}", memory.read.word_pj, memory.write.word_pj),
                   fmt::format("{}", fmt::join(port_names(memory), " "))});
    }
    return table.text();
}

nlohmann::ordered_json memory_json(const Machine& machine, const Memory& memory) {
    auto operands = nlohmann::ordered_json::array();
    for (const Operand operand : memory.operands) operands.push_back(to_string(operand));
    return {{"name", memory.name},
            {"operands", operands},
            {"capacity_bits", memory.capacity_bits},
            {"banks", memory.banks},
            {"copies", machine.copies(memory)},
            {"read", access_json(memory.read)},
            {"write", access_json(memory.write)},
            {"ports", port_names(memory)},
            {"source", memory.source.empty() ? machine.source : memory.source}};
}

nlohmann::ordered_json machine_json(const Machine& machine) {
    auto memories = nlohmann::ordered_json::array();
    for (const Memory& memory : machine.memories) memories.push_back(memory_json(machine, memory));
    auto constants = nlohmann::ordered_json::array();
    for (const MachineConstant& constant : machine.constants) {
        constants.push_back({{"name", constant.name},
                             {"value", constant.value},
                             {"fitted", constant.is_fitted},
                             {"source", constant.source}});
    }
    return {{"schema", "laminate.machine_shown"},
            {"version", 1},
            {"name", machine.name},
            {"about", machine.about},
            {"source", machine.source},
            {"macs_per_cycle", machine.mac_count()},
            {"mac_pj", machine.mac_pj},
            {"on_chip_bits", machine.on_chip_bits()},
            {"memories", memories},
            {"constants", constants}};
}

Exit show_machine(const Machine& machine, const Output& output) {
    output.print(fmt::format(
        "{}: {}\narray {}, {} pJ per multiply-accumulate; bits: input {}, weight {}, partial sum "
        "{}, output {}\nsource: {}\n",
        machine.name, machine.about, array_text(machine), machine.mac_pj, machine.bits.input,
        machine.bits.weight, machine.bits.partial_sum, machine.bits.output, machine.source));
    output.print(memories_table(machine));
    for (const Memory& memory : machine.memories) {
        if (!memory.source.empty()) output.print(fmt::format("{}: {}", memory.name, memory.source));
    }
    for (const MachineConstant& constant : machine.constants) {
        output.print(fmt::format("{} = {}{}: {}", constant.name, constant.value,
                                 constant.is_fitted ? " (fitted)" : "", constant.source));
    }
    output.json(machine_json(machine));
    return Exit::ok;
}

Exit show(const std::string& name_or_file, const Output& output) {
    const std::vector<std::string> tables = energy_table_names();
    if (std::ranges::find(tables, name_or_file) != tables.end())
        return show_energy_table(open_energy_table(name_or_file), output);
    const std::vector<std::string> speeds = cpu_speed_names();
    if (std::ranges::find(speeds, name_or_file) != speeds.end())
        return show_cpu_speed(open_cpu_speed(name_or_file), output);
    return show_machine(open_machine(name_or_file), output);
}

/// Checks a file of any kind in machines/. Throws InputError for a wrong one.
Exit check(const std::string& file, const Output& output) {
    const std::string text = read_file(file);
    const auto json = parsed_json<nlohmann::json>(text);
    const nlohmann::json schema =
        json.is_object() ? json.value("schema", nlohmann::json()) : nlohmann::json();
    std::string kind = "machine", name;
    if (schema == "laminate.energy_table") {
        kind = "energy table";
        name = parse_energy_table(text, file).name;
    } else if (schema == "laminate.cpu_speed") {
        kind = "speed of a processor";
        name = parse_cpu_speed(text, file).name;
    } else {
        name = parse_machine(text, file).name;
    }
    output.print(fmt::format("{}: {} {}, ok", file, kind, name));
    output.json({{"schema", "laminate.machine_check"},
                 {"version", 1},
                 {"file", file},
                 {"kind", kind},
                 {"name", name}});
    return Exit::ok;
}

struct MeasureOptions {
    std::string file;
    std::string target = "host";
};

/// Times the kernels on one thread and writes what the model of time takes. Returns what was timed
/// and what the model makes of it. `gigabytes_per_second`: of a core from main memory.
nlohmann::ordered_json write_speed(const MeasureOptions& options, double gigabytes_per_second,
                                   const Output& output) {
    OccasionalNotes notes(output);
    MeasuredSpeed measured = measured_cpu_speed(
        options.target, gigabytes_per_second, [&](size_t done, size_t all) {
            notes.note([&] { return fmt::format("kernels: {} of {} layers", done, all); });
        });
    CpuSpeed& speed = measured.speed;
    const nlohmann::ordered_json machine = made_by();
    speed.name = std::filesystem::path(options.file).stem().string();
    speed.about =
        fmt::format("code for {} on {}", options.target, machine["cpu"].get<std::string>());
    speed.source = fmt::format("laminate {} machine measure", program_version());
    write_file_atomically(options.file, to_json(speed));
    auto probes = nlohmann::ordered_json::array();
    size_t near = 0;
    for (const TimedProbe& probe : measured.probes) {
        const double predicted = nanoseconds_of(probe.timed.amounts, speed);
        constexpr double within = 0.2;
        near += std::abs(predicted / probe.timed.nanoseconds - 1) <= within ? 1 : 0;
        probes.push_back({{"group", probe.group},
                          {"nanoseconds", probe.timed.nanoseconds},
                          {"predicted", predicted},
                          {"amounts", probe.timed.amounts}});
    }
    output.print(
        fmt::format("{}: nanoseconds of {} kinds of work, which give {} of {} timed groups "
                    "within 20 %; compile, run, bench and explore take it with --speed",
                    options.file, speed.nanoseconds.size(), near, measured.probes.size()));
    return probes;
}

/// Measures this machine: its peak, and the sizes and bandwidths of its memories. If a file is
/// given, the speed of its kernels is measured too.
Exit measure(const CommonOptions& common, const MeasureOptions& options, const Output& output) {
    const int threads = common.thread_count();
    const double first = peak_gflops(threads);
    const std::vector<MemoryLevel> levels = measured_memory_levels(threads);
    const double peak = std::max(first, peak_gflops(threads));  // the clock may have risen
    output.print(fmt::format("{} thread{}: {:.1f} GFLOP/s (32-bit multiply-adds in registers)",
                             threads, threads == 1 ? "" : "s", peak));
    Table table({{"level"},
                 {"size", Align::right},
                 {"array of a thread", Align::right},
                 {"read GB/s", Align::right}});
    auto entries = nlohmann::ordered_json::array();
    for (const MemoryLevel& level : levels) {
        table.add({level.name, level.size_bytes > 0 ? bytes_text(level.size_bytes) : "",
                   bytes_text(level.array_bytes),
                   fmt::format("{:.1f}", level.gigabytes_per_second)});
        entries.push_back(
            {{"name", level.name},
             {"size_bytes", level.size_bytes > 0 ? nlohmann::ordered_json(level.size_bytes)
                                                 : nlohmann::ordered_json(nullptr)},
             {"array_bytes", level.array_bytes},
             {"read_gigabytes_per_second", level.gigabytes_per_second}});
    }
    output.print(table.text());
    nlohmann::ordered_json answer{{"schema", "laminate.machine_measured"},
                                  {"version", 1},
                                  {"threads", threads},
                                  {"peak_gflops", peak},
                                  {"memories", entries}};
    if (!options.file.empty()) answer["kernels"] = write_speed(
            options, levels.back().gigabytes_per_second / threads, output);
    output.json(answer);
    return Exit::ok;
}

}  // namespace

void add_machine(Program& program) {
    CLI::App* machine = program.add_verb("machine", "Memories and arrays of multipliers",
                                         "  laminate machine list\n"
                                         "  laminate machine show meta_proto_df\n"
                                         "  laminate machine check mine.json\n"
                                         "  laminate machine measure --threads 2");
    machine->require_subcommand(1);
    program.on(program.add_verb("list", "The machines and energy tables that come with the program",
                                "", machine),
               list);

    auto name = std::make_shared<std::string>();
    CLI::App* show_verb =
        program.add_verb("show", "One machine's memories, widths and energies", "", machine);
    show_verb->add_option("NAME", *name, "As in `laminate machine list`, or a file")->required();
    program.on(show_verb, [name](const Output& output) { return show(*name, output); });

    auto file = std::make_shared<std::string>();
    CLI::App* check_verb = program.add_verb(
        "check", "Check a machine or energy table file; name the key that is wrong", "", machine);
    check_verb->add_option("FILE", *file, "machines/README.md")->required();
    program.on(check_verb, [file](const Output& output) { return check(*file, output); });

    CLI::App* measure_verb = program.add_verb(
        "measure",
        "Measure this machine: peak of its multipliers, sizes and read bandwidths of its memories",
        "", machine);
    auto options = std::make_shared<MeasureOptions>();
    measure_verb
        ->add_option("-o,--output", options->file,
                     "Also time the kernels, which takes minutes, and write this file for --speed")
        ->type_name("FILE");
    measure_verb
        ->add_option("--target", options->target,
                     "Of the kernels' code: host, or a Halide target that this processor runs")
        ->capture_default_str();
    program.on(measure_verb, [options, &program](const Output& output) {
        return measure(program.common(), *options, output);
    });
}

}  // namespace laminate::cli
