// The example network on pictures that it was not trained on, by the reference operators: the
// figures that the README quotes.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "nets/onnx/onnx.h"
#include "nets/operators/reference_operators.h"
#include "runtime/media/colour.h"

namespace laminate {
namespace {

struct Quality {
    double bicubic_db;
    double network_db;
};

Quality upscaled(const std::string& name) {
    const std::filesystem::path data = LAMINATE_EXAMPLE_DATA;
    const Plane small = to_luma_chroma(load_picture(data / (name + "_half.png"))).y;
    const int64_t height = 2 * small.height, width = 2 * small.width;
    const Plane original =
        cropped(to_luma_chroma(load_picture(data / (name + ".png"))).y, height, width);
    InputSizes sizes;
    sizes.height = small.height;
    sizes.width = small.width;
    const Network network = load_onnx((data / "fsrcnn_x2.onnx").string(), sizes);
    const Plane luma{height, width, run_reference_network(network, {small.values})[0]};
    return {psnr_db(resize_bicubic(small, height, width), original, 6), psnr_db(luma, original, 6)};
}

TEST(ExamplePicture, AstronautGainsWhatTheTrainingScriptPrinted) {
    const Quality quality = upscaled("astronaut");
    EXPECT_NEAR(quality.bicubic_db, 32.05, 0.005);
    EXPECT_NEAR(quality.network_db, 33.49, 0.005);
}

TEST(ExamplePicture, ChelseaGainsWhatTheTrainingScriptPrinted) {
    const Quality quality = upscaled("chelsea");
    EXPECT_NEAR(quality.bicubic_db, 35.42, 0.005);
    EXPECT_NEAR(quality.network_db, 35.68, 0.005);
}

}  // namespace
}  // namespace laminate
