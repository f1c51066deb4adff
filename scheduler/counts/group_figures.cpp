#include "scheduler/counts/group_figures.h"

#include "scheduler/counts/done.h"

namespace laminate {

GroupFigures group_figures(const Network& network, const GroupSchedule& group) {
    const std::vector<LayerProblem> problems = group_problems(network, group);
    const int64_t images = images_of(network, group);
    Elements maps = problems.back().output_elements(), weights;
    for (const GroupTensor& tensor : group_tensors(problems)) {
        if (tensor.is_external()) maps += external_elements(tensor, problems);
    }
    GroupFigures figures;
    for (size_t k = 0; k < problems.size(); ++k) {
        const Nest& nest = group.nests[k];
        figures.macs += Macs(layer_macs(network, network.find_layer(nest.layer)));
        figures.kernels += (k == 0 ? "" : ", ") + to_text(nest.kernel);
        weights += problems[k].weight_elements();
    }
    figures.multiplications = done_counts(group, problems).done() * images;
    figures.bytes = to_bytes(maps * images + weights);
    return figures;
}

}  // namespace laminate
