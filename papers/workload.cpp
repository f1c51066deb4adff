#include "papers/workload.h"

namespace laminate {

bool is_in_place(const Layer& layer) {
    switch (layer.kind) {
        case LayerKind::activation:
        case LayerKind::softmax:
        case LayerKind::flatten:
            return true;
        case LayerKind::add:
            return layer.inputs.size() == 1;
        default:
            return false;
    }
}

}  // namespace laminate
