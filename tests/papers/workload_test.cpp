#include "papers/workload.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "nets/open.h"

namespace laminate {
namespace {

TEST(WindowSteps, SpanAndTouchedCountTheCoordinatesOfAllPairs) {
    for (int64_t stride = 1; stride <= 5; ++stride) {
        for (int64_t dilation = 1; dilation <= 5; ++dilation) {
            const WindowSteps steps{stride, dilation};
            for (int64_t outputs = 1; outputs <= 6; ++outputs) {
                for (int64_t taps = 1; taps <= 6; ++taps) {
                    std::set<int64_t> touched;
                    for (int64_t i = 0; i < outputs; ++i)
                        for (int64_t j = 0; j < taps; ++j)
                            touched.insert(i * stride + j * dilation);
                    const auto count = static_cast<int64_t>(touched.size());
                    EXPECT_EQ(steps.span(outputs, taps), *touched.rbegin() + 1);
                    EXPECT_EQ(steps.touched(outputs, taps), count)
                        << outputs << " outputs, " << taps << " taps, stride " << stride
                        << ", dilation " << dilation;
                    if (std::min(stride, dilation) > 1) continue;
                    EXPECT_EQ(
                        steps.touched(static_cast<double>(outputs), static_cast<double>(taps)),
                        static_cast<double>(count));
                }
            }
        }
    }
}

TEST(WindowSteps, FractionsOfOutputsAreTruncated) {
    // 2.5 outputs of a 3x3 window: 2.5 * 3 - 2 * 1.5 = 4.5 columns.
    EXPECT_EQ((WindowSteps{1, 1}.touched(2.5, 3.0)), 4);
}

TEST(InPlace, ActivationsAndConstantsLeaveTheMapWhereItIs) {
    const Network network = open_network("zoo:resnet18");
    for (const Layer& layer : network.layers) {
        const bool is_add_of_maps = layer.kind == LayerKind::add && layer.inputs.size() == 2;
        EXPECT_EQ(is_in_place(layer),
                  layer.kind != LayerKind::conv && layer.kind != LayerKind::gemm &&
                      layer.kind != LayerKind::max_pool &&
                      layer.kind != LayerKind::global_average_pool && !is_add_of_maps)
            << layer.name;
    }
}

}  // namespace
}  // namespace laminate
