// Dense layers of several images.
#pragma once

#include "nets/network/network.h"

namespace laminate {

/// Makes dense layers of N > 1 images, and activations and sums between them, layers of one map
/// whose N pixels are the images: dense layers become 1x1 convolutions. A group runs once for each
/// image and reads all its weights every time; for the pixels of a map it reads them once. Views
/// before and behind such layers exchange images and channels. The network computes the same, up to
/// the order of sums. Code of any size keeps dense layers as they are, because its number of images
/// is open.
[[nodiscard]] Network with_dense_images_together(Network network);

}  // namespace laminate
