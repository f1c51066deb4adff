#include "papers/depth_first/quirks.h"

#include "base/error.h"

namespace laminate::depth_first {

const std::vector<QuirkName>& quirk_names() {
    static const std::vector<QuirkName> names{
        {"unpadded", &Quirks::unpadded},
        {"left-over-tiles-first", &Quirks::left_over_tiles_first},
        {"last-cache-level-wins", &Quirks::last_cache_level_wins},
        {"column-cache-sized-with-cached-rows", &Quirks::column_cache_sized_with_cached_rows},
        {"first-cut-is-ignored", &Quirks::first_cut_is_ignored},
        {"published-layers", &Quirks::published_layers},
        {"no-off-load", &Quirks::no_off_load},
        {"macs-of-poolings-and-additions", &Quirks::macs_of_poolings_and_additions}};
    return names;
}

void add_quirk(Quirks& quirks, const std::string& name) {
    std::string known;
    for (const QuirkName& quirk : quirk_names()) {
        if (name == quirk.name) {
            quirks.*quirk.member = true;
            return;
        }
        known += (known.empty() ? "" : ", ") + std::string(quirk.name);
    }
    throw InputError("quirk: found \"" + name + "\", expected one of " + known);
}

bool Quirks::counts_macs_of(LayerType type) const {
    return type == LayerType::convolution || type == LayerType::depthwise ||
           macs_of_poolings_and_additions;
}

Quirks Quirks::as_published() {
    Quirks quirks;
    for (const QuirkName& quirk : quirk_names()) quirks.*quirk.member = true;
    return quirks;
}

}  // namespace laminate::depth_first
