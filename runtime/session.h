// Runs a compiled network: opened from its C struct (linked in, or made by the JIT) or from a
// directory of `laminate compile`.
//
//   Session session = Session::open("fsrcnn/");
//   std::vector<float> out(element_count(session.outputs()[0].dims));
//   session.run({in.data()}, {out.data()});
//
// All memory is allocated when a session opens, in one arena whose size is known: tensors between
// steps (placed by liveness) and one scratch area per thread. run() allocates nothing. The caller's
// arrays are the network's inputs and outputs; nothing is copied. Constants stay where they are;
// only those of layers that the reference operators run are copied when the session opens.
//
// Threads: OpenMP. Strips of a group, of all images of the batch, go to threads as they come free,
// and the next group begins when they are done, whether every thread has come or not; the result
// does not depend on their number. A session runs one call at a time; several sessions may run at
// once, also from inside a parallel region of the caller's, where each run then has one thread.
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

namespace laminate {

/// More are a mistake: OpenMP ends the program when the system starts no further thread.
inline constexpr int most_threads = 1024;

struct SessionOptions {
    /// At most so many, up to most_threads; 0 for OpenMP's own choice (OMP_NUM_THREADS, else every
    /// core). Each has its own scratch.
    int threads = 0;
    /// A network of fewer operations, estimated, runs on one thread: about as many as two do while
    /// one wakes the other.
    double least_operations = 2e5;
};

/// A compiled group returned a code other than 0; the outputs are not to be used.
class RunError : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

/// The system gave no room for a session's arena.
class ArenaError : public std::bad_alloc {
public:
    explicit ArenaError(int64_t bytes)
        : message_("out of memory: the arena needs " + std::to_string(bytes) + " bytes") {}
    [[nodiscard]] const char* what() const noexcept override { return message_.c_str(); }

private:
    std::string message_;
};

/// What the arena holds. total = tensors + threads * scratch_per_thread.
struct ArenaUse {
    int64_t tensors_bytes = 0;             ///< between steps
    int64_t scratch_per_thread_bytes = 0;  ///< the largest scratch of a group
    int threads = 1;
    int64_t total_bytes = 0;
};

class Session {
public:
    /// Throws InputError when the number of threads is out of range, the struct is of another
    /// version, its manifest is wrong, or this machine lacks an instruction that the code uses;
    /// ArenaError when memory does not suffice. `network` and all it points to must outlive the
    /// session.
    [[nodiscard]] static Session open(const laminate_compiled_network* network,
                                      const SessionOptions& options = {});
    /// Opens lib<library>.so of a compiled directory. Throws InputError as above, and when a file
    /// is missing or of another make.
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

    /// inputs[k] and outputs[k] hold all elements of inputs()[k] and outputs()[k], batch included;
    /// no two may overlap unless both are inputs. Throws InputError for a wrong number of arrays or
    /// a null one, RunError when a group fails.
    void run(const std::vector<const float*>& inputs, const std::vector<float*>& outputs);
    /// The same on plain arrays with as many elements as there are inputs and outputs.
    void run(const float* const* inputs, float* const* outputs);

private:
    struct Implementation;
    explicit Session(std::unique_ptr<Implementation> implementation);
    std::unique_ptr<Implementation> implementation_;
};

}  // namespace laminate
