#include "cli/sweep.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <thread>

#include "answers/cost_models.h"
#include "answers/front_file.h"
#include "answers/json_text.h"
#include "answers/program.h"
#include "base/error.h"
#include "base/files.h"
#include "base/json_object.h"
#include "base/hash.h"
#include "cli/interrupt.h"
#include "cli/launcher.h"

namespace laminate::cli {

namespace fs = std::filesystem;

constexpr const char* claims_file = "claims";

// ---- claims

JobClaims::JobClaims(const fs::path& file)
    : file_(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666)) {
    if (file_ < 0) throw InputError(file.string() + ": cannot be written: " + std::strerror(errno));
}

JobClaims::~JobClaims() { ::close(file_); }

namespace {

/// One byte per job, far beyond the end of the file: a lock needs no bytes.
struct flock lock_of(const SweepJob& job, short kind) {
    XxHash64 hash;
    hash.add(job.id);
    struct flock lock {};
    lock.l_type = kind;
    lock.l_whence = SEEK_SET;
    lock.l_start = static_cast<off_t>(hash.value() >> 2);
    lock.l_len = 1;
    return lock;
}

}  // namespace

bool JobClaims::claim(const SweepJob& job) {
    struct flock lock = lock_of(job, F_WRLCK);
    if (::fcntl(file_, F_OFD_SETLK, &lock) == 0) return true;
    if (errno != EAGAIN && errno != EACCES)
        throw InputError(std::string("claims: cannot be locked: ") + std::strerror(errno) +
                         "; expected a file system with locks");
    return false;
}

void JobClaims::release(const SweepJob& job) {
    struct flock lock = lock_of(job, F_UNLCK);
    (void)::fcntl(file_, F_OFD_SETLK, &lock);
}

// ---- running

namespace {

using Json = nlohmann::ordered_json;

fs::path outcome_file(const fs::path& directory, const SweepJob& job) {
    return directory / (job.id + ".json");
}

/// The outcome of a job that has ended, in this run or an earlier one.
std::optional<Json> outcome_of(const fs::path& directory, const SweepJob& job) {
    const fs::path file = outcome_file(directory, job);
    std::error_code error;
    if (!fs::exists(file, error)) return std::nullopt;
    Json outcome = Json::parse(read_file(file), nullptr, false);
    const auto is = [&](const char* key, const Json& value) {
        return outcome.value(key, Json()) == value;
    };
    if (!outcome.is_object() || !is("schema", "laminate.sweep_job") ||
        !is("arguments", job.arguments))
        return std::nullopt;
    if (!outcome.value("exit_code", Json()).is_number_integer()) return std::nullopt;
    return outcome;
}

/// Whether a job with this exit code is done for good. What failed is tried again by the next
/// sweep: a file may have been missing, a disk full.
bool is_final(int code) {
    return code == static_cast<int>(Exit::ok) || code == static_cast<int>(Exit::infeasible);
}

/// The last line that explore said, without its head.
std::string last_line(const fs::path& log) {
    std::ifstream in(log);
    std::string last;
    for (std::string line; std::getline(in, line);) {
        if (!line.empty()) last = line;
    }
    const std::string head = "laminate: error: ";
    return last.rfind(head, 0) == 0 ? last.substr(head.size()) : last;
}

class Sweep {
public:
    /// `interrupted`: set from outside; the sweep then ends its jobs.
    Sweep(std::vector<SweepJob> jobs, fs::path directory, int processes, int threads,
          const std::atomic<bool>& interrupted, const Output& output)
        : jobs_(std::move(jobs)),
          directory_(std::move(directory)),
          claims_(directory_ / claims_file),
          processes_(static_cast<size_t>(processes)),
          threads_(threads),
          interrupted_(interrupted),
          output_(output) {
        for (const SweepJob& job : jobs_) {
            std::error_code error;
            const fs::file_time_type time =
                fs::last_write_time(outcome_file(directory_, job), error);
            if (!error) written_before_.emplace(job.id, time);
        }
    }

    ~Sweep() {
        for (const auto& [pid, job] : running_) {
            ::kill(pid, SIGKILL);
            ::waitpid(pid, nullptr, 0);
        }
    }
    Sweep(const Sweep&) = delete;
    Sweep& operator=(const Sweep&) = delete;

    /// Until every job has an outcome; `waits`: also for jobs that other processes have. False when
    /// interrupted.
    bool run(bool waits) {
        while (!interrupted_) {
            size_t elsewhere = 0;
            for (const SweepJob& job : jobs_) {
                if (interrupted_ || outcomes_.count(job.id) > 0 || is_running(job)) continue;
                if (running_.size() >= processes_) break;
                if (!claims_.claim(job)) {
                    ++elsewhere;
                    continue;
                }
                // Another process may have finished it before the claim.
                if (take_outcome(job))
                    claims_.release(job);
                else
                    start(job);
            }
            if (running_.empty() && (elsewhere == 0 || !waits)) {
                if (std::all_of(jobs_.begin(), jobs_.end(),
                                [&](const SweepJob& job) { return outcomes_.count(job.id) > 0; }) ||
                    !waits)
                    return true;
            }
            if (running_.empty())
                std::this_thread::sleep_for(std::chrono::milliseconds(100));
            else
                finish_one(elsewhere > 0);
        }
        // Not the interrupt, at which a job would hand over half of its schedules as an answer.
        for (const auto& [pid, job] : running_) ::kill(pid, SIGTERM);
        while (!running_.empty()) finish_one(false);
        return false;
    }

    [[nodiscard]] const std::map<std::string, Json>& outcomes() const { return outcomes_; }

private:
    [[nodiscard]] bool is_running(const SweepJob& job) const {
        return std::any_of(running_.begin(), running_.end(),
                           [&](const auto& entry) { return entry.second->id == job.id; });
    }

    bool take_outcome(const SweepJob& job) {
        std::optional<Json> outcome = outcome_of(directory_, job);
        if (!outcome) return false;
        if (!is_final(outcome->at("exit_code").get<int>())) {
            // A failure that another process met while this sweep runs is not tried again by each.
            std::error_code error;
            const auto before = written_before_.find(job.id);
            if (before != written_before_.end() &&
                before->second == fs::last_write_time(outcome_file(directory_, job), error))
                return false;
        }
        outcomes_.emplace(job.id, std::move(*outcome));
        return true;
    }

    [[nodiscard]] fs::path log_of(const SweepJob& job) const {
        return directory_ / (job.id + ".log");
    }

    void start(const SweepJob& job) {
        std::vector<std::string> words{"laminate", "explore"};
        words.insert(words.end(), job.arguments.begin(), job.arguments.end());
        words.insert(words.end(), {"--output=" + (directory_ / job.id).string(),
                                   "--threads=" + std::to_string(threads_)});
        std::vector<char*> arguments;
        for (std::string& word : words) arguments.push_back(word.data());
        arguments.push_back(nullptr);
        const std::string log = log_of(job).string();
        const pid_t parent = ::getpid();
        const pid_t child = ::fork();
        if (child < 0)
            throw std::runtime_error(std::string("sweep: no process for a job: ") +
                                     std::strerror(errno));
        if (child == 0) {
            // A job must not outlive the sweep: its claim would be gone.
            ::prctl(PR_SET_PDEATHSIG, SIGKILL);
            // A terminal interrupts all of its processes; a job's end is the sweep's to decide.
            sigset_t interrupt;
            sigemptyset(&interrupt);
            sigaddset(&interrupt, SIGINT);
            ::sigprocmask(SIG_BLOCK, &interrupt, nullptr);
            forget_launcher();
            const int to = ::open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
            if (::getppid() != parent || to < 0 || ::dup2(to, STDOUT_FILENO) < 0 ||
                ::dup2(to, STDERR_FILENO) < 0)
                ::_exit(127);
            ::execv("/proc/self/exe", arguments.data());
            ::_exit(127);
        }
        running_.emplace(child, &job);
    }

    /// Waits for a job to end, or for an interrupt, and notes the outcome; `looks_elsewhere`: not
    /// for longer than a nap.
    void finish_one(bool looks_elsewhere) {
        const bool was_interrupted = interrupted_;
        int status = 0;
        pid_t pid = 0;
        // Short naps, and no wait that an interrupt does not end.
        while ((pid = ::waitpid(-1, &status, was_interrupted ? 0 : WNOHANG)) == 0 &&
               !interrupted_) {
            std::this_thread::sleep_for(std::chrono::milliseconds(looks_elsewhere ? 100 : 10));
            if (looks_elsewhere) return;
        }
        if (pid < 0 && errno == ECHILD) running_.clear();
        const auto found = running_.find(pid);
        if (found == running_.end()) return;
        const SweepJob& job = *found->second;
        running_.erase(found);
        note_outcome(job, status);
        claims_.release(job);
    }

    void note_outcome(const SweepJob& job, int status) {
        const int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
        // Only what the job itself decides: what an interrupt or a crash left is done again.
        if (interrupted_ && code < 0) return;
        if (code != static_cast<int>(Exit::ok) && code != static_cast<int>(Exit::usage) &&
            code != static_cast<int>(Exit::bad_input) &&
            code != static_cast<int>(Exit::infeasible)) {
            throw std::runtime_error(
                fmt::format("{}: {}: {}; the same command goes on from here", job.id,
                            code < 0 ? fmt::format("ended by signal {}", WTERMSIG(status))
                                     : fmt::format("exit code {}", code),
                            last_line(log_of(job))));
        }
        Json outcome{{"schema", "laminate.sweep_job"},
                     {"version", 1},
                     {"arguments", job.arguments},
                     {"exit_code", code}};
        if (code != static_cast<int>(Exit::ok)) outcome["message"] = last_line(log_of(job));
        write_file_atomically(outcome_file(directory_, job), json_text(outcome));
        std::error_code ignored;
        fs::remove(log_of(job), ignored);
        output_.note(fmt::format("{}: {} ({} of {})", job.id,
                                 code == 0 ? "done" : outcome["message"].get<std::string>(),
                                 outcomes_.size() + 1, jobs_.size()));
        outcomes_.emplace(job.id, std::move(outcome));
    }

    std::vector<SweepJob> jobs_;
    fs::path directory_;
    JobClaims claims_;
    size_t processes_;
    int threads_;
    const std::atomic<bool>& interrupted_;
    const Output& output_;
    std::map<std::string, fs::file_time_type>
        written_before_;  ///< outcomes by job, when this sweep began
    std::map<pid_t, const SweepJob*> running_;
    std::map<std::string, Json> outcomes_;
};

// ---- merging

std::string csv_quoted(const std::string& text) {
    std::string quoted = "\"";
    for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
    return quoted + "\"";
}

/// One entry per job in the order of the list, one line of CSV per schedule. What a clock says is
/// in neither: every run gives the same bytes.
struct Merged {
    Json answer;
    std::string csv =
        "job,network,machine,memory,schedule,accesses_elements,live_bytes,macs,groups\n";
    std::string table;
    size_t failed = 0;
};

Merged merge(const std::vector<SweepJob>& jobs, const std::map<std::string, Json>& outcomes,
             const fs::path& directory, const std::string& name) {
    Merged merged;
    Table table({{"job"},
                 {"network"},
                 {"machine"},
                 {"memory", Align::right},
                 {"schedules", Align::right},
                 {"least accesses", Align::right},
                 {"/ bound", Align::right},
                 {"holds", Align::right}});
    Json entries = Json::array();
    for (const SweepJob& job : jobs) {
        const Json& outcome = outcomes.at(job.id);
        const int code = outcome.at("exit_code").get<int>();
        Json entry{{"id", job.id},         {"network", job.network},     {"machine", job.machine},
                   {"memory", job.memory}, {"arguments", job.arguments}, {"exit_code", code}};
        std::vector<std::string> cells{job.id, job.network, job.machine, job.memory,
                                       "",     "",          "",          ""};
        if (code != 0) {
            entry["message"] = outcome.at("message");
            cells[4] = code == static_cast<int>(Exit::infeasible) ? "none fits" : "failed";
            merged.failed += code != static_cast<int>(Exit::infeasible);
        }
        const fs::path front_file = directory / job.id / "front.json";
        if (code == 0 && fs::exists(front_file)) {
            const Json front = read_front(front_file.string());
            entry["structure_hash"] = front.at("structure_hash");
            entry["complete"] = front.at("complete");
            size_t least = 0;
            for (size_t n = 0; n < front.at("points").size(); ++n) {
                const Json& point = front["points"][n];
                if (point.at("accesses_elements") < front["points"][least].at("accesses_elements"))
                    least = n;
                merged.csv +=
                    fmt::format("{},{},{},{},{},{},{},{},{}\n", job.id, csv_quoted(job.network),
                                csv_quoted(job.machine), job.memory, point_name(front, n),
                                point.at("accesses_elements").get<int64_t>(),
                                point.at("live_bytes").get<int64_t>(),
                                point.at("macs").get<int64_t>(), point.at("groups").get<int64_t>());
            }
            entry["schedules"] = front.at("points").size();
            cells[4] = std::to_string(front.at("points").size());
            if (!front["points"].empty()) {
                Json point = front["points"][least];
                point["schedule"] = point_name(front, least);
                cells[5] = grouped(point.at("accesses_elements").get<int64_t>());
                cells[6] = fmt::format("{:.2f}", point.at("achieved_over_bound").get<double>());
                cells[7] = bytes_text(point.at("live_bytes").get<int64_t>());
                entry["least_accesses"] = std::move(point);
            }
        }
        table.add(cells);
        entries.push_back(std::move(entry));
    }
    merged.table = table.text();
    merged.answer = {
        {"schema", "laminate.sweep"}, {"version", 1}, {"name", name}, {"jobs", entries}};
    return merged;
}

}  // namespace

Exit run_sweep(const SweepRequest& options, const CommonOptions& common, const Output& output) {
    const std::string text = read_file(options.jobs);
    const std::vector<SweepJob> jobs = sweep_jobs(text, options.jobs);
    std::error_code error;
    fs::create_directories(options.directory, error);
    if (error) throw InputError(options.directory + ": cannot be written: " + error.message());
    // Processes that start together find it empty, or with the claims of the first.
    const fs::path directory = options.directory;
    const auto has_outcome = [&](const SweepJob& job) {
        return fs::exists(outcome_file(directory, job), error);
    };
    if (!fs::is_empty(directory, error) && !fs::exists(directory / claims_file, error) &&
        std::none_of(jobs.begin(), jobs.end(), has_outcome)) {
        throw InputError(options.directory +
                         ": is not empty and was not made by laminate sweep; expected a new "
                         "directory, or a sweep that "
                         "goes on");
    }

    const int cores = std::max(1, common.thread_count() / launcher_local_processes());
    const int processes = std::min(options.processes > 0 ? options.processes : cores,
                                   static_cast<int>(std::max<size_t>(1, jobs.size())));
    const bool is_first = is_first_of_command();
    std::map<std::string, Json> outcomes;
    bool is_done = false;
    {
        const InterruptHandler interrupt;
        Sweep work(jobs, options.directory, processes, std::max(1, cores / processes),
                   *interrupt.stop(), output);
        is_done = work.run(is_first);
        outcomes = work.outcomes();
    }
    if (!is_done) {
        output.note(fmt::format(
            "laminate: interrupted; {} of {} jobs are done, the same command goes on from here",
            outcomes.size(), jobs.size()));
        end_interrupted();
    }
    if (!is_first) return Exit::ok;  // the first process waits for all and merges

    const Merged merged = merge(jobs, outcomes, options.directory,
                                nlohmann::json::parse(text).at("name").get<std::string>());
    write_file_atomically(fs::path(options.directory) / "sweep.json", json_text(merged.answer));
    write_file_atomically(fs::path(options.directory) / "sweep.csv", merged.csv);
    output.print(merged.table);
    output.print(fmt::format(
        "{} jobs; all in {}: sweep.json, sweep.csv, and a directory of explore for each",
        jobs.size(), options.directory));
    output.json(merged.answer);
    if (merged.failed > 0)
        throw InputError(fmt::format("{}: {} of {} jobs failed; sweep.json says why", options.jobs,
                                     merged.failed, jobs.size()));
    return Exit::ok;
}

void add_sweep(Program& program) {
    CLI::App* verb = program.add_verb("sweep",
                                      "explore over networks, machines and budgets; goes on after "
                                      "a kill, by several processes at once",
                                      "  laminate sweep jobs.json -o sweep/\n"
                                      "  laminate sweep jobs.json -o sweep/ --processes 1\n"
                                      "  mpirun -np 4 laminate sweep jobs.json -o sweep/");
    auto options = std::make_shared<SweepRequest>();
    verb->add_option("JOBS", options->jobs, "List of jobs, JSON (docs/sweep.md)")->required();
    verb->add_option("-o,--output", options->directory,
                     "Directory; what is there already is not done again")
        ->required()
        ->type_name("DIR");
    verb->add_option("--processes", options->processes, "Jobs at a time (default: one per core)")
        ->check(CLI::Range(1, 1024));
    program.on(verb, [options, &program](const Output& output) {
        return run_sweep(*options, program.common(), output);
    });
}

}  // namespace laminate::cli
