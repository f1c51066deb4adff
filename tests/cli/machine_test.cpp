#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "cli/kernel_speed.h"
#include "cli/machine_speed.h"
#include "tests/support/run_program.h"

namespace laminate::cli {
namespace {

TEST(MachineVerb, ListsAndShows) {
    const ProgramResult list = run_program("machine list --json -");
    ASSERT_EQ(list.exit_code, 0) << list.err;
    const auto listed = nlohmann::json::parse(list.out);
    bool found = false;
    for (const auto& entry : listed["machines"]) found = found || entry["name"] == "meta_proto_df";
    EXPECT_TRUE(found) << list.out;

    const ProgramResult shown = run_program("machine show meta_proto_df --json -");
    ASSERT_EQ(shown.exit_code, 0) << shown.err;
    const auto machine = nlohmann::json::parse(shown.out);
    EXPECT_EQ(machine["macs_per_cycle"], 1024);
    EXPECT_EQ(machine["memories"][1]["name"], "rf_2B");
    EXPECT_EQ(machine["memories"][1]["copies"], 512);
    EXPECT_EQ(machine["memories"].back()["read"]["word_pj"], 700);
}

TEST(MachineVerb, EnergyTablesHaveNames) {
    const auto listed = nlohmann::json::parse(run_program("machine list --json -").out);
    ASSERT_FALSE(listed["energy_tables"].empty());
    for (const auto& name : listed["energy_tables"]) {
        const ProgramResult shown =
            run_program("machine show " + name.get<std::string>() + " --json -");
        ASSERT_EQ(shown.exit_code, 0) << shown.err;
        const auto file = nlohmann::json::parse(
            read_file(std::string(LAMINATE_MACHINES) + "/" + name.get<std::string>() + ".json"));
        const auto answer = nlohmann::json::parse(shown.out);
        for (const auto& [key, entry] : file.items()) {
            if (!entry.is_object()) continue;
            EXPECT_EQ(answer[key], entry["value"]) << name << ": " << key;
        }
    }
    const ScratchDirectory scratch;
    const ProgramResult explored =
        run_program("explore zoo:l2net --machine convfusion-40nm -o " + (scratch / "front"));
    EXPECT_EQ(explored.exit_code, 0) << explored.err;
    EXPECT_NE(explored.out.find("convfusion-40nm"), std::string::npos) << explored.out;
    const ProgramResult other =
        run_program("explore zoo:l2net --machine tpu -o " + (scratch / "front"));
    EXPECT_EQ(other.exit_code, 3);
    EXPECT_NE(other.err.find("energy table tpu: no such name or file; names: convfusion-40nm,"),
              std::string::npos)
        << other.err;
}

TEST(MachineVerb, ChecksBothKindsOfFiles) {
    const std::string machines = LAMINATE_MACHINES;
    EXPECT_NE(run_program("machine check " + machines + "/tpu.json").out.find("machine tpu, ok"),
              std::string::npos);
    EXPECT_NE(run_program("machine check " + machines + "/convfusion-40nm.json")
                  .out.find("energy table convfusion-40nm, ok"),
              std::string::npos);

    const ScratchDirectory scratch;
    std::string text = read_file(machines + "/tpu.json");
    const std::string key = "\"mac_pj\"";
    text.replace(text.find(key), key.size(), "\"mac_energy\"");
    write_file_atomically(scratch / "wrong.json", text);
    const ProgramResult wrong = run_program("machine check " + (scratch / "wrong.json"));
    EXPECT_EQ(wrong.exit_code, 3);
    EXPECT_NE(wrong.err.find("wrong.json: array: mac_pj: missing, expected a number >= 0"),
              std::string::npos)
        << wrong.err;
    EXPECT_EQ(run_program("machine show no-such-machine").exit_code, 3);
}

TEST(MachineVerb, MeasuresThisMachine) {
    const ProgramResult measured = run_program("machine measure --threads 1 --json -");
    ASSERT_EQ(measured.exit_code, 0) << measured.err;
    const auto answer = nlohmann::json::parse(measured.out);
    EXPECT_EQ(answer["schema"], "laminate.machine_measured");
    EXPECT_EQ(answer["threads"], 1);
    EXPECT_GT(answer["peak_gflops"], 0.5);
    ASSERT_GE(answer["memories"].size(), 1U);
    EXPECT_EQ(answer["memories"].back()["name"], "DRAM");
    for (const auto& memory : answer["memories"])
        EXPECT_GT(memory["read_gigabytes_per_second"], 0.1) << memory;
    // On any machine, however busy, each cache has at least a fourth of main memory's bandwidth.
    EXPECT_GT(answer["memories"].front()["read_gigabytes_per_second"].get<double>(),
              answer["memories"].back()["read_gigabytes_per_second"].get<double>() / 4);
}

/// Otherwise `machine measure -o` would take times of other processors. Caches are small enough for maps to
/// come from main memory.
TEST(MachineVerb, ProbesHaveEveryKindOfWork) {
    constexpr VectorUnit avx2{.lanes = 8, .accumulators = 12}, avx512{.lanes = 16},
        halves{.lanes = 16, .has_halves = true}, adds{.lanes = 16, .adds_in_multipliers = true};
    for (const VectorUnit& unit : {avx2, avx512, halves, adds}) {
        const CpuSpeed usual = usual_cpu_speed(unit);
        const WorkTerms probed = probed_work(unit, {Bytes(512 << 10), Bytes(8 << 20)});
        for (const auto& [term, unused] : usual.nanoseconds) {
            ASSERT_TRUE(probed.contains(term)) << usual.name << ": " << term;
            EXPECT_GT(probed.at(term), 0) << usual.name << ": " << term;
        }
    }
}

TEST(MachineVerb, ArraysInMainMemoryShareABudgetAndExceedTheCaches) {
    constexpr int64_t mebi = 1 << 20, gibi = 1 << 30;
    // Four times a last level of 32 MiB; of 2 GiB for 40 threads each has a 40th; 1024 threads
    // would have less than four times 1 MiB of their own.
    EXPECT_EQ(main_memory_array_bytes(32 * mebi, mebi, 2, 2 * gibi), 128 * mebi);
    EXPECT_EQ(main_memory_array_bytes(32 * mebi, mebi, 40, 2 * gibi), 2 * gibi / 40);
    EXPECT_EQ(main_memory_array_bytes(32 * mebi, mebi, 1024, 2 * gibi), 4 * mebi);
    // Even a small budget gives arrays that do not fit in the caches.
    EXPECT_EQ(main_memory_array_bytes(32 * mebi, mebi, 2, mebi), 64 * mebi);
}

TEST(MachineVerb, FindsThePartOfACacheThatOthersLeave) {
    constexpr int64_t mebi = 1 << 20;
    const auto loads_within = [](int64_t cached) {
        return [cached](int64_t bytes) { return bytes <= cached ? 20.0 : 150.0; };
    };
    EXPECT_EQ(reached_bytes(mebi / 2, 32 * mebi, loads_within(32 * mebi)), 32 * mebi);
    EXPECT_EQ(reached_bytes(mebi / 2, 32 * mebi, loads_within(4 * mebi)), 4 * mebi);
    EXPECT_EQ(reached_bytes(mebi / 2, 32 * mebi, loads_within(5 * mebi)), 4 * mebi);
    // Nothing but a core's own cache.
    EXPECT_EQ(reached_bytes(mebi / 2, 32 * mebi, loads_within(mebi / 4)), mebi / 2);
    // Loads from a ring of lines visit all of them, so main memory takes longer than a first-level cache.
    EXPECT_LT(load_nanoseconds(16 << 10), load_nanoseconds(128 * mebi));
}

TEST(MachineVerb, WithoutRoomForItsThreadsIsOneLineAndNoAbort) {
    if (test::is_sanitized) GTEST_SKIP() << "a sanitizer wants the address space";
    const ScratchDirectory scratch;
    // The program itself takes some 500 MB of addresses; each thread wants 8 MiB of stack and its
    // array.
    const std::string command = "ulimit -v 1500000; exec " + std::string(LAMINATE_PROGRAM) +
                                " machine measure --threads 400 >/dev/null 2>" + (scratch / "said");
    const int status = std::system(command.c_str());
    const std::string said = read_file(scratch / "said");
    ASSERT_TRUE(WIFEXITED(status)) << said;
    EXPECT_EQ(WEXITSTATUS(status), 4) << said;
    EXPECT_EQ(said.find("laminate: error: measuring with 400 threads: "), 0U) << said;
    EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
}

}  // namespace
}  // namespace laminate::cli
