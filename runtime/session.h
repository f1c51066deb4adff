// Runs a compiled network, opened from its C struct (linked in, or made by the JIT) or from a
// directory that `laminate compile` wrote.
//
//   Session session = Session::open("fsrcnn/");
//   std::vector<float> out(element_count(session.outputs()[0].dims));
//   session.run({in.data()}, {out.data()});
//
// A session allocates all of its memory when it opens, in one arena: tensors between steps, placed
// by liveness, and one scratch area per thread. run() allocates nothing. Inputs and outputs are the
// caller's arrays and are never copied. Constants stay in the library; opening copies only those of
// layers that the reference operators run. A network of any size begins with the size that it was
// planned for; resize() changes it, without a compiler.
//
// Threads are the session's own (base/team.h), as many as OpenMP would take unless options say how many. The
// strips of a group, of all images of the batch, go to threads as they come free. The next step begins when all
// strips are done, whether every thread has come or not.
// Subnormal numbers are zeros meanwhile, on these threads alone, unless the network was compiled with --strict.
// The result does not depend on the number of threads. A session runs one call at a time and
// refuses a second one. Several sessions may run at once, also from inside a parallel region of the
// caller, where each run has one thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "runtime/compiled_network.h"
#include "runtime/manifest.h"
#include "runtime/trace.h"

namespace laminate {

/// A session takes no more threads than this.
inline constexpr int most_threads = 1024;

struct SessionOptions {
    /// The most threads to use, up to most_threads; 0 for OpenMP's own choice (OMP_NUM_THREADS,
    /// else one per core). Each thread has its own scratch.
    int threads = 0;
    /// A network with fewer (estimated) operations runs on one thread: waking a second one takes
    /// about as long as this many operations.
    double least_operations = 2e5;
    /// Whether runs keep how long each step took (Session::step_times()), for which every thread reads
    /// the clock a few times a step.
    bool times_steps = false;
};

/// What the threads of a run spent on one of its steps.
struct StepTime {
    size_t step = 0;  ///< of manifest().steps
    /// Milliseconds of each thread; the first is the caller's, which is in all steps. A thread waits until the parts
    /// that others took are done. One that came late, or for which the run ended meanwhile, has less of both.
    std::vector<double> work_ms, waiting_ms;
};

/// A compiled group returned a code other than 0, or the session was busy with another run. The
/// outputs are not to be used.
class RunError : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

/// The system has no memory for a session's arena.
class ArenaError : public std::bad_alloc {
public:
    explicit ArenaError(int64_t bytes)
        : message_("out of memory: the arena needs " + std::to_string(bytes) + " bytes") {}
    [[nodiscard]] const char* what() const noexcept override { return message_.c_str(); }

private:
    std::string message_;
};

/// Sizes of the arena: total = tensors + threads * scratch_per_thread.
struct ArenaUse {
    int64_t tensors_bytes = 0;             ///< tensors between steps
    int64_t scratch_per_thread_bytes = 0;  ///< the largest scratch of a group
    int threads = 1;
    int64_t total_bytes = 0;
};

class Session {
public:
    /// Throws InputError when the number of threads is out of range, the struct has another
    /// version, its manifest is wrong, or this machine lacks an instruction that the code uses.
    /// Throws ArenaError when there is not enough memory. `network` and all it points to must
    /// outlive the session.
    [[nodiscard]] static Session open(const laminate_compiled_network* network,
                                      const SessionOptions& options = {});
    /// Opens lib<library>.so of a compiled directory. Throws as above, and InputError when a file
    /// is missing, damaged or from another compilation.
    [[nodiscard]] static Session open(const std::filesystem::path& directory,
                                      const SessionOptions& options = {});

    Session(Session&&) noexcept;
    Session& operator=(Session&&) noexcept;
    ~Session();

    [[nodiscard]] const Manifest& manifest() const;
    [[nodiscard]] std::vector<Tensor> inputs() const;
    [[nodiscard]] std::vector<Tensor> outputs() const;
    [[nodiscard]] ArenaUse arena() const;
    [[nodiscard]] int64_t arena_bytes() const { return arena().total_bytes; }

    /// Whether resize() may be called: the network was compiled for any size.
    [[nodiscard]] bool is_any_size() const;
    /// The next runs are of inputs of that size; inputs(), outputs() and manifest() say what that
    /// makes of all tensors. The arena grows where it must and never shrinks. A call takes less than
    /// a millisecond of usual networks, and a run of a size costs the same whatever sizes came
    /// before. Throws InputError where the network was compiled for one size or cannot be of this
    /// one, RunError while a run goes on, ArenaError; the session then keeps its size.
    void resize(int64_t rows, int64_t columns);
    void resize(int64_t images, int64_t rows, int64_t columns);

    /// Tells `trace` what runs do (runtime/trace.h), with `user`; null: nothing any more. Traced
    /// runs take one thread, which executes the strips of each group in order: what
    /// docs/counting.md counts. Throws InputError for a network without hooks or with a replaced
    /// group, RunError while a run goes on.
    void set_trace(laminate_trace_function trace, void* user);
    /// The buffers that the schedule promises, of the groups of a network with hooks in their
    /// order; none without hooks. They live as long as the session.
    [[nodiscard]] const std::vector<const laminate_buffer*>& buffers() const;

    /// inputs[k] and outputs[k] hold all elements of inputs()[k] and outputs()[k], batch included;
    /// no two may overlap unless both are inputs. Throws InputError for a wrong number of arrays or
    /// a null one. Throws RunError when a group fails, or while another thread runs this session.
    void run(const std::vector<const float*>& inputs, const std::vector<float*>& outputs);
    /// The same on plain arrays with as many elements as there are inputs and outputs.
    void run(const float* const* inputs, float* const* outputs);

    /// Returns the times of the last run, in the order of its steps, without those that have nothing to do. They
    /// are empty without SessionOptions::times_steps.
    [[nodiscard]] std::vector<StepTime> step_times() const;

private:
    struct Implementation;
    explicit Session(std::unique_ptr<Implementation> implementation);
    std::unique_ptr<Implementation> implementation_;
};

}  // namespace laminate
