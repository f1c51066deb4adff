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

#include "answers/front_file.h"
#include "answers/interrupt.h"
#include "answers/json_text.h"
#include "answers/program.h"
#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/new_directory.h"
#include "base/parse_json.h"
#include "cli/jobs_page.h"
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

/// A lock on one byte per job. The byte lies far beyond the end of the file, which locks may.
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
    Json outcome = parsed_json<Json>(read_file(file));
    const auto is = [&](const char* key, const Json& value) {
        return outcome.value(key, Json()) == value;
    };
    if (!outcome.is_object() || !is("schema", "laminate.sweep_job") ||
        !is("arguments", job.arguments))
        return std::nullopt;
    if (!outcome.value("exit_code", Json()).is_number_integer()) return std::nullopt;
    return outcome;
}

/// Whether a job with this exit code is done for good. The next sweep tries failed jobs again: a
/// file may have been missing, a disk full.
bool is_final(int code) {
    return code == static_cast<int>(Exit::ok) || code == static_cast<int>(Exit::infeasible);
}

/// The last line of explore's log, without "laminate: error: ".
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
    /// When `interrupted` becomes true the sweep ends its jobs.
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

    ~Sweep() { end_jobs(); }
    Sweep(const Sweep&) = delete;
    Sweep& operator=(const Sweep&) = delete;

    /// Runs until every job has an outcome, with `waits` also those that other processes have
    /// claimed. Returns false when interrupted; jobs under way then hand over what they have found.
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
        hand_over();
        end_jobs();
        return false;
    }

    [[nodiscard]] const std::map<std::string, Json>& outcomes() const { return outcomes_; }
    /// Jobs without an outcome whose directories hold what they had found at an interrupt.
    [[nodiscard]] int handed_over() const { return handed_over_; }

private:
    /// Lets each job write the front that it has found so far. It has no outcome, so the next sweep
    /// does it again. Waits 20 seconds: batch systems kill half a minute after they have asked.
    void hand_over() {
        for (const auto& [pid, job] : running_) ::kill(pid, SIGUSR1);
        const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
        while (!running_.empty() && std::chrono::steady_clock::now() < end) {
            std::erase_if(running_, [&](const auto& entry) {
                int status = 0;
                if (::waitpid(entry.first, &status, WNOHANG) == 0) return false;
                NewDirectory::remove_abandoned(fs::absolute(directory_ / entry.second->id));
                handed_over_ += WIFEXITED(status) && WEXITSTATUS(status) == 0;
                return true;
            });
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
        }
    }

    void end_jobs() {
        for (const auto& [pid, job] : running_) ::kill(pid, SIGKILL);
        for (const auto& [pid, job] : running_) {
            ::waitpid(pid, nullptr, 0);
            NewDirectory::remove_abandoned(fs::absolute(directory_ / job->id));
        }
        running_.clear();
    }

    [[nodiscard]] bool is_running(const SweepJob& job) const {
        return std::any_of(running_.begin(), running_.end(),
                           [&](const auto& entry) { return entry.second->id == job.id; });
    }

    bool take_outcome(const SweepJob& job) {
        std::optional<Json> outcome = outcome_of(directory_, job);
        if (!outcome) return false;
        if (!is_final(outcome->at("exit_code").get<int>())) {
            // A failure of another process during this sweep is not tried again.
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
            // A terminal interrupts all of its processes, and a batch system ends them all. The
            // sweep decides when its jobs end.
            sigset_t ends;
            sigemptyset(&ends);
            sigaddset(&ends, SIGINT);
            sigaddset(&ends, SIGTERM);
            ::sigprocmask(SIG_BLOCK, &ends, nullptr);
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

    /// Waits for a job to end and notes its outcome. Returns earlier at an interrupt and, with
    /// `looks_elsewhere`, after a nap.
    void finish_one(bool looks_elsewhere) {
        int status = 0;
        pid_t pid = 0;
        while ((pid = ::waitpid(-1, &status, WNOHANG)) == 0 && !interrupted_) {
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
    int handed_over_ = 0;
};

// ---- merging

std::string csv_quoted(const std::string& text) {
    std::string quoted = "\"";
    for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
    return quoted + "\"";
}

/// One entry per job in the order of the list, and one line of CSV per schedule. Neither contains
/// times, so every run gives the same bytes.
struct Merged {
    Json answer;
    std::string csv =
        "job,network,machine,memory,schedule,accesses_elements,live_bytes,macs,groups\n";
    Table table;
    std::vector<JobCurve> curves;
    std::vector<std::string> pages;  ///< jobs with a page
    size_t failed = 0;
};

/// The number of the point with the fewest accesses.
size_t fewest_accesses(const Json& points) {
    size_t least = 0;
    for (size_t n = 1; n < points.size(); ++n) {
        if (points[n].at("accesses_elements") < points[least].at("accesses_elements")) least = n;
    }
    return least;
}

/// Adds the schedules of a job's front to its entry, the CSV and the curves. Returns the last five
/// cells of its row.
std::vector<std::string> add_front(const SweepJob& job, const Json& front, Json& entry,
                                   Merged& merged) {
    entry["structure_hash"] = front.at("structure_hash");
    entry["complete"] = front.at("complete");
    if (front.contains("layer_by_layer")) entry["layer_by_layer"] = front["layer_by_layer"];
    const Json& points = front.at("points");
    JobCurve& curve = merged.curves.emplace_back(JobCurve{job, {}});
    for (size_t n = 0; n < points.size(); ++n) {
        const Json& point = points[n];
        curve.points.push_back({point.at("live_bytes").get<int64_t>(),
                                point.at("accesses_elements").get<int64_t>()});
        merged.csv += fmt::format("{},{},{},{},{},{},{},{},{}\n", job.id, csv_quoted(job.network),
                           csv_quoted(job.machine), job.memory, point_name(front, n),
                           point.at("accesses_elements").get<int64_t>(),
                           point.at("live_bytes").get<int64_t>(), point.at("macs").get<int64_t>(),
                           point.at("groups").get<int64_t>());
    }
    entry["schedules"] = points.size();
    if (points.empty()) return {"0", "", "", "", ""};
    const size_t least = fewest_accesses(points);
    Json point = points[least];
    point["schedule"] = point_name(front, least);
    const auto accesses = point.at("accesses_elements").get<int64_t>();
    const int64_t alone =
        front.contains("layer_by_layer")
            ? front["layer_by_layer"].at("accesses_elements").get<int64_t>()
            : 0;
    std::vector<std::string> cells{
        std::to_string(points.size()), grouped(accesses),
        alone > 0 ? fmt::format("{:.3f}", static_cast<double>(accesses) / static_cast<double>(alone))
                  : "",
        fmt::format("{:.2f}", point.at("achieved_over_bound").get<double>()),
        bytes_text(point.at("live_bytes").get<int64_t>())};
    entry["least_accesses"] = std::move(point);
    return cells;
}

Merged merge(const std::vector<SweepJob>& jobs, const std::map<std::string, Json>& outcomes,
             const fs::path& directory, const std::string& name) {
    Merged merged{.answer = {},
                  .table = Table({{"job"},
                                  {"network"},
                                  {"machine"},
                                  {"memory", Align::right},
                                  {"options"},
                                  {"schedules", Align::right},
                                  {"least accesses", Align::right},
                                  {"/ layer by layer", Align::right},
                                  {"/ bound", Align::right},
                                  {"holds", Align::right}}),
                  .curves = {},
                  .pages = {}};
    Json entries = Json::array();
    for (const SweepJob& job : jobs) {
        const Json& outcome = outcomes.at(job.id);
        const int code = outcome.at("exit_code").get<int>();
        Json entry{{"id", job.id},         {"network", job.network},     {"machine", job.machine},
                   {"memory", job.memory}, {"arguments", job.arguments}, {"exit_code", code}};
        std::vector<std::string> found(5);
        const fs::path front_file = directory / job.id / "front.json";
        if (code != static_cast<int>(Exit::ok)) {
            const bool fits_not = code == static_cast<int>(Exit::infeasible);
            entry["message"] = outcome.at("message");
            found[0] = fits_not ? "none fits" : "failed";
            merged.failed += fits_not ? 0 : 1;
        } else if (fs::exists(front_file)) {
            found = add_front(job, read_front(front_file.string()), entry, merged);
        }
        if (fs::exists(directory / job.id / "report.html")) merged.pages.push_back(job.id);
        std::vector<std::string> cells{job.id, job.network, job.machine, job.memory, job.options};
        cells.insert(cells.end(), found.begin(), found.end());
        merged.table.add(cells);
        entries.push_back(std::move(entry));
    }
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
    // Of processes that start together, the others find the directory empty or with the claims of
    // the first.
    const fs::path directory = options.directory;
    const auto has_outcome = [&](const SweepJob& job) {
        return fs::exists(outcome_file(directory, job), error);
    };
    if (!fs::is_empty(directory, error) && !fs::exists(directory / claims_file, error) &&
        std::none_of(jobs.begin(), jobs.end(), has_outcome)) {
        throw InputError(options.directory +
                         ": is not empty and was not made by laminate sweep; expected a new "
                         "directory, or a sweep that goes on");
    }

    const int cores = std::max(1, common.thread_count() / launcher_local_processes());
    const int processes = std::min(options.processes > 0 ? options.processes : cores,
                                   static_cast<int>(std::max<size_t>(1, jobs.size())));
    const bool is_first = is_first_of_command();
    std::map<std::string, Json> outcomes;
    bool is_done = false;
    int handed_over = 0;
    {
        const InterruptHandler interrupt;
        Sweep work(jobs, options.directory, processes, std::max(1, cores / processes),
                   *interrupt.stop(), output);
        is_done = work.run(is_first);
        outcomes = work.outcomes();
        handed_over = work.handed_over();
    }
    if (!is_done) {
        output.note(
            fmt::format("laminate: interrupted; {} of {} jobs are done, {} wrote what they "
                        "had found; the same command goes on from here",
                        outcomes.size(), jobs.size(), handed_over));
        end_interrupted();
    }
    if (!is_first) return Exit::ok;  // the first process waits for all and merges

    const auto name = nlohmann::json::parse(text).at("name").get<std::string>();
    const Merged merged = merge(jobs, outcomes, options.directory, name);
    write_file_atomically(fs::path(options.directory) / "sweep.json", json_text(merged.answer));
    write_file_atomically(fs::path(options.directory) / "sweep.csv", merged.csv);
    write_file_atomically(fs::path(options.directory) / "report.html",
                          jobs_page(name, merged.table, merged.curves, merged.pages));
    output.print(merged.table.text());
    output.print(fmt::format(
        "{} jobs; all in {}: sweep.json, sweep.csv, report.html, and a directory of explore for each",
        jobs.size(), options.directory));
    output.json(merged.answer);
    if (merged.failed > 0)
        throw InputError(fmt::format("{}: {} of {} jobs failed; sweep.json says why", options.jobs,
                                     merged.failed, jobs.size()));
    return Exit::ok;
}

void add_sweep(Program& program) {
    CLI::App* verb = program.add_verb("sweep",
                                      "Explore over networks, machines and budgets, by several "
                                      "processes at once; goes on after a kill",
                                      "  laminate sweep jobs.json -o sweep/\n"
                                      "  laminate sweep jobs.json -o sweep/ --processes 1\n"
                                      "  mpirun -np 4 laminate sweep jobs.json -o sweep/");
    auto options = std::make_shared<SweepRequest>();
    verb->add_option("JOBS", options->jobs, "List of jobs, JSON (docs/sweep.md)")->required();
    verb->add_option("-o,--output", options->directory,
                     "Directory; jobs that are done in it are not done again")
        ->required()
        ->type_name("DIR");
    verb->add_option("--processes", options->processes, "Jobs at a time (default: one per core)")
        ->check(CLI::Range(1, 1024));
    program.on(verb, [options, &program](const Output& output) {
        return run_sweep(*options, program.common(), output);
    });
}

}  // namespace laminate::cli
