#include "papers/depth_first/published_layers.h"

#include <algorithm>
#include <map>
#include <vector>

#include "base/json_object.h"

namespace laminate::depth_first {

namespace {

struct Entry {
    std::string network;
    std::string layer;
    bool direct_input = false;
    bool renames_input_channels = false;
    std::vector<std::string> machines;     ///< empty: all
    std::map<std::string, int64_t> lanes;  ///< by the loop on the axis
};

std::vector<Entry> read_entries() {
    const nlohmann::json json =
        parse_json(std::string(published_layers_text()), "published_layers.json");
    JsonObject file(json, "published_layers.json");
    (void)file.header("laminate.published_layers");
    (void)file.text("source");
    std::vector<Entry> entries;
    for (JsonObject& object : file.objects("layers")) {
        Entry entry{.network = object.text("network"),
                    .layer = object.text("layer"),
                    .machines = {},
                    .lanes = {}};
        if (object.has("direct_input"))
            entry.direct_input = object.at("direct_input", "true") == true;
        if (object.has("renames_input_channels"))
            entry.renames_input_channels = object.at("renames_input_channels", "true") == true;
        if (object.has("machines")) entry.machines = object.texts("machines");
        if (object.has("lanes")) {
            JsonObject lanes = object.object("lanes");
            for (const auto& [loop, value] : object.at("lanes", "an object").items())
                entry.lanes[loop] = lanes.positive_integer(loop);
        }
        object.refuse_other_keys();
        entries.push_back(std::move(entry));
    }
    file.refuse_other_keys();
    return entries;
}

}  // namespace

void apply_published_layer(const Machine& machine, const std::string& network, WorkloadLayer& layer,
                           Unrolling& lanes) {
    static const std::vector<Entry> entries = read_entries();
    for (const Entry& entry : entries) {
        if (entry.network != network || entry.layer != layer.name) continue;
        if (!entry.machines.empty() && std::ranges::count(entry.machines, machine.name) == 0)
            continue;
        layer.shape.direct_input = layer.shape.direct_input || entry.direct_input;
        layer.renames_input_channels = layer.renames_input_channels || entry.renames_input_channels;
        for (size_t axis = 0; axis < machine.axes.size(); ++axis) {
            if (!machine.axes[axis].loop) continue;
            const auto found = entry.lanes.find(laminate::to_string(*machine.axes[axis].loop));
            if (found != entry.lanes.end()) lanes[axis] = found->second;
        }
    }
}

}  // namespace laminate::depth_first
