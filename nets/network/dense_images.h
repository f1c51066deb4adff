// Dense layers of several images.
#pragma once

#include "nets/network/network.h"

namespace laminate {

/// Makes dense layers of N > 1 images, and activations and sums between them, layers of one map whose N pixels are the
/// images: 1x1 convolutions. A group runs once for each image and reads all its weights every time; of
/// a map, it reads them once for many pixels. Views before and behind such layers exchange images
/// and channels. Computes the same, up to the order of sums.
[[nodiscard]] Network with_dense_images_together(Network network);

}  // namespace laminate
