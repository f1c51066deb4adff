// A compiled network written by hand, as `laminate compile` or the JIT would pass it to a session.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "nets/network/network.h"
#include "runtime/compiled_network.h"
#include "runtime/manifest.h"

namespace laminate {

struct HandNetwork {
    Manifest manifest;
    std::vector<float> constants;
    std::vector<laminate_group_function> groups;
    std::vector<laminate_hooked_group_function> hooked_groups;

    HandNetwork() {
        manifest.network = "by hand";
        manifest.network_hash = "0123456789abcdef";
        manifest.library = "by_hand";
        manifest.target = "x86-64-linux";
        manifest.halide_version = "21.0.0";
    }

    TensorId tensor(const std::string& name, std::vector<int64_t> dims) {
        manifest.tensors.push_back({name, std::move(dims)});
        return static_cast<TensorId>(manifest.tensors.size()) - 1;
    }
    void group(laminate_group_function function, std::vector<TensorId> inputs,
               std::vector<TensorId> outputs, int32_t strips = 1, int64_t scratch_bytes = 0,
               const std::vector<float>& values = {}) {
        GroupStep step;
        step.group = static_cast<int32_t>(groups.size());
        step.name = "group" + std::to_string(groups.size());
        step.layers = {step.name};
        step.schedule = "{by hand}";
        step.inputs = std::move(inputs);
        step.outputs = std::move(outputs);
        step.strips = strips;
        step.scratch_bytes = scratch_bytes;
        step.constants_offset_elements = static_cast<int64_t>(constants.size());
        step.constants_count_elements = static_cast<int64_t>(values.size());
        constants.insert(constants.end(), values.begin(), values.end());
        groups.push_back(function);
        manifest.steps.emplace_back(std::move(step));
    }
    void layer(const Layer& layer) { manifest.steps.emplace_back(layer_step(layer, constants)); }

    /// Valid while this object lives and does not change.
    const laminate_compiled_network* compiled() {
        json_ = to_json(manifest);
        compiled_ = {LAMINATE_ABI_VERSION, json_.c_str(), constants.data(),
                     constants.size(),     groups.data(), static_cast<uint32_t>(groups.size()),
                     hooked_groups.data()};
        return &compiled_;
    }

    laminate_compiled_network compiled_{};

private:
    std::string json_;
};

}  // namespace laminate
