#include <cstdio>
#include <exception>
#include <new>
#include <string>
#include <vector>

#include "base/error.h"
#include "runtime/laminate.h"
#include "runtime/session.h"

struct laminate_session {
    explicit laminate_session(laminate::Session opened)
        : session(std::move(opened)), inputs(session.inputs()), outputs(session.outputs()) {}
    laminate::Session session;
    std::vector<laminate::Tensor> inputs;
    std::vector<laminate::Tensor> outputs;
};

namespace {

/// A fixed array, because recording an error must not fail.
thread_local char last_error[1024] = "";

void note(const char* message) { std::snprintf(last_error, sizeof last_error, "%s", message); }

/// The result of `action`; on an exception, records its text and returns `failed`.
template <class Result, class Action>
Result guarded(Result failed, const Action& action) noexcept {
    try {
        return action();
    } catch (const laminate::ArenaError& error) {
        note(error.what());
    } catch (const std::bad_alloc&) {
        note("out of memory");
    } catch (const std::exception& error) {
        note(error.what());
    } catch (...) {
        note("unknown failure");
    }
    return failed;
}

template <class Element>
const Element* at(const std::vector<Element>& elements, int32_t index, const char* what) {
    if (index >= 0 && index < std::ssize(elements)) return &elements[static_cast<size_t>(index)];
    std::snprintf(last_error, sizeof last_error, "%s %d: expected 0 to %d", what, index,
                  static_cast<int>(elements.size()) - 1);
    return nullptr;
}

const laminate::Tensor* input_at(const laminate_session* session, int32_t index) {
    if (session) return at(session->inputs, index, "input");
    note("session: found null");
    return nullptr;
}

const laminate::Tensor* output_at(const laminate_session* session, int32_t index) {
    if (session) return at(session->outputs, index, "output");
    note("session: found null");
    return nullptr;
}

const char* name_of(const laminate::Tensor* tensor) {
    return tensor ? tensor->name.c_str() : nullptr;
}
int32_t rank_of(const laminate::Tensor* tensor) {
    return tensor ? static_cast<int32_t>(tensor->dims.size()) : -1;
}
const int64_t* dims_of(const laminate::Tensor* tensor) {
    return tensor ? tensor->dims.data() : nullptr;
}
const char* type_of(const laminate::Tensor* tensor) {
    return tensor ? laminate::to_string(tensor->type) : nullptr;
}

}  // namespace

extern "C" {

laminate_session* laminate_open(const char* directory, int32_t threads) {
    return guarded<laminate_session*>(nullptr, [&] {
        if (!directory) throw laminate::InputError("directory: found null");
        return new laminate_session(
            laminate::Session::open(std::filesystem::path(directory), {threads}));
    });
}

laminate_session* laminate_open_linked(const laminate_compiled_network* network, int32_t threads) {
    return guarded<laminate_session*>(
        nullptr, [&] { return new laminate_session(laminate::Session::open(network, {threads})); });
}

void laminate_close(laminate_session* session) { delete session; }

int32_t laminate_input_count(const laminate_session* session) {
    return session ? static_cast<int32_t>(session->inputs.size()) : -1;
}
const char* laminate_input_name(const laminate_session* session, int32_t index) {
    return name_of(input_at(session, index));
}
int32_t laminate_input_rank(const laminate_session* session, int32_t index) {
    return rank_of(input_at(session, index));
}
const int64_t* laminate_input_dims(const laminate_session* session, int32_t index) {
    return dims_of(input_at(session, index));
}
const char* laminate_input_type(const laminate_session* session, int32_t index) {
    return type_of(input_at(session, index));
}

int32_t laminate_output_count(const laminate_session* session) {
    return session ? static_cast<int32_t>(session->outputs.size()) : -1;
}
const char* laminate_output_name(const laminate_session* session, int32_t index) {
    return name_of(output_at(session, index));
}
int32_t laminate_output_rank(const laminate_session* session, int32_t index) {
    return rank_of(output_at(session, index));
}
const int64_t* laminate_output_dims(const laminate_session* session, int32_t index) {
    return dims_of(output_at(session, index));
}
const char* laminate_output_type(const laminate_session* session, int32_t index) {
    return type_of(output_at(session, index));
}

int32_t laminate_session_resize(laminate_session* session, int64_t images, int64_t rows,
                                int64_t columns) {
    return guarded<int32_t>(-1, [&] {
        if (!session) throw laminate::InputError("session: found null");
        session->session.resize(images, rows, columns);
        session->inputs = session->session.inputs();
        session->outputs = session->session.outputs();
        return 0;
    });
}

int64_t laminate_arena_bytes(const laminate_session* session) {
    return session ? session->session.arena_bytes() : -1;
}

int32_t laminate_run(laminate_session* session, const float* const* inputs, float* const* outputs) {
    return guarded<int32_t>(-1, [&] {
        if (!session) throw laminate::InputError("session: found null");
        if (!inputs && !session->inputs.empty()) throw laminate::InputError("inputs: found null");
        if (!outputs) throw laminate::InputError("outputs: found null");
        session->session.run(inputs, outputs);
        return 0;
    });
}

int32_t laminate_set_trace(laminate_session* session, laminate_trace_function trace, void* user) {
    return guarded<int32_t>(-1, [&] {
        if (!session) throw laminate::InputError("session: found null");
        session->session.set_trace(trace, user);
        return 0;
    });
}

int32_t laminate_buffer_count(const laminate_session* session) {
    return session ? static_cast<int32_t>(session->session.buffers().size()) : -1;
}

const laminate_buffer* laminate_buffer_at(const laminate_session* session, int32_t index) {
    if (session) {
        const laminate_buffer* const* found = at(session->session.buffers(), index, "buffer");
        return found ? *found : nullptr;
    }
    note("session: found null");
    return nullptr;
}

const char* laminate_last_error(void) { return last_error; }

}  // extern "C"
