// Doubles a picture with a compiled network, without Halide. The C API runs the network on luma,
// runtime/media reads and writes the picture, and chroma is resized by bicubic interpolation.
//
//   upscale fsrcnn_compiled/ small.png large.png   opens a directory of `laminate compile`
//   upscale small.png large.png                    with the network linked in
//                                                  (built with -DLINKED_NETWORK=SYMBOL)
#include <cstdio>
#include <exception>
#include <memory>

#include "runtime/laminate.h"
#include "runtime/media/colour.h"

#ifdef LINKED_NETWORK
extern "C" const laminate_compiled_network LINKED_NETWORK;
#endif

namespace {

struct CloseSession {
    void operator()(laminate_session* session) const { laminate_close(session); }
};

int fail(const char* message) {
    std::fprintf(stderr, "upscale: %s\n", message);
    return 1;
}

int upscale(laminate_session* session, const char* input, const char* output) {
    if (laminate_input_count(session) != 1 || laminate_output_count(session) != 1 ||
        laminate_input_rank(session, 0) != 4 || laminate_output_rank(session, 0) != 4 ||
        laminate_input_dims(session, 0)[1] != 1 || laminate_output_dims(session, 0)[1] != 1) {
        return fail("expected a network with one channel in and one out");
    }
    const int64_t* in = laminate_input_dims(session, 0);  // N C H W
    const int64_t* out = laminate_output_dims(session, 0);
    const laminate::Picture small = laminate::load_picture(input);
    if (in[0] != 1 || small.height != in[2] || small.width != in[3]) {
        std::fprintf(
            stderr, "upscale: %s is %lld x %lld pixels, the network was compiled for %lld x %lld\n",
            input, static_cast<long long>(small.width), static_cast<long long>(small.height),
            static_cast<long long>(in[3]), static_cast<long long>(in[2]));
        return 1;
    }

    const laminate::Plane luma = laminate::to_luma_chroma(small).y;
    laminate::Plane large{out[2], out[3], std::vector<float>(static_cast<size_t>(out[2] * out[3]))};
    const float* inputs[] = {luma.values.data()};
    float* outputs[] = {large.values.data()};
    if (laminate_run(session, inputs, outputs) != 0) return fail(laminate_last_error());
    for (const std::string& part :
         laminate::save_picture(laminate::with_luma(small, large), output))
        std::fprintf(stderr, "upscale: %s: dropped: %s\n", output, part.c_str());
    std::printf("%s: %lld x %lld pixels; the network's arena took %lld bytes\n", output,
                static_cast<long long>(out[3]), static_cast<long long>(out[2]),
                static_cast<long long>(laminate_arena_bytes(session)));
    return 0;
}

}  // namespace

int main(int argc, char** argv) try {
#ifdef LINKED_NETWORK
    if (argc != 3) return fail("usage: upscale INPUT OUTPUT");
    const std::unique_ptr<laminate_session, CloseSession> session(
        laminate_open_linked(&LINKED_NETWORK, 0));
#else
    if (argc != 4) return fail("usage: upscale DIRECTORY INPUT OUTPUT");
    const std::unique_ptr<laminate_session, CloseSession> session(laminate_open(argv[1], 0));
#endif
    if (!session) return fail(laminate_last_error());
    return upscale(session.get(), argv[argc - 2], argv[argc - 1]);
} catch (const std::exception& error) {
    return fail(error.what());
}
