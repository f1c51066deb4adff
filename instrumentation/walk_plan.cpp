#include "instrumentation/walk_plan.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "instrumentation/walk_axes.h"

namespace laminate::walking {

WalkPlan::WalkPlan(const std::vector<LayerProblem>& problems, const GroupSchedule& group)
    : tensors(group_tensors(problems)), problems_(problems), group_(group) {
    for (const Nest& nest : group.nests)
        sites_.push_back(IndexVector<Site, int>(nest.loops.size()));
    place_tensors();
    place_weights();
    put_arrivals();
    find_parts();
    for (int k = 0; k <= group.sink(); ++k) {
        like_trips.push_back({});
        for (int l = 0; l < static_cast<int>(sites_[k].size()); ++l)
            like_trips[k].push_back(find_like_trips({k, l}));
        separate.push_back(find_separate_loops(k));
    }
}

void WalkPlan::place_tensors() {
    for (const GroupTensor& tensor : tensors) {
        const TensorReader first = tensor.readers.front();
        const LayerProblem& problem = this->problem(first.nest);
        Kept buffer{.kind = tensor.is_external() ? Kept::Kind::input : Kept::Kind::intermediate,
                    .nest = tensor.producer,
                    .placement = placement_of(group_, tensor),
                    .is_shared = tensor.is_shared(),
                    .present = Presence(problem.operand_extents(first.operand))};
        const auto dimension = [&](int k, Dim dim) -> std::optional<size_t> {
            if (dim == Dim::y) return 1;
            if (dim == Dim::x) return 2;
            if (tensor.is_shared() || !moves_channels(problems_, tensors, k, dim, first.nest))
                return std::nullopt;
            return 0;
        };
        buffer.watch = watch(buffer.placement, first.nest, dimension);
        if (tensor.is_shared()) place_shared(buffer, first.nest);
        kept.push_back(std::move(buffer));
    }
}

void WalkPlan::place_weights() {
    for (int k = 0; k <= group_.sink(); ++k) {
        const LayerProblem& problem = this->problem(k);
        if (!problem.has_weights()) continue;
        Kept buffer{.kind = Kept::Kind::weights,
                    .nest = k,
                    .placement = *group_.nest(k).w,
                    .words = problem.y().kernel * problem.x().kernel,
                    .present = Presence({problem[Dim::z], problem[Dim::i], 1})};
        const auto dimension = [&](int j, Dim dim) -> std::optional<size_t> {
            if (axis_of(dim) != Axis::channels) return std::nullopt;
            if (j == k && dim == Dim::i) return 1;
            if (!moves_outputs(problems_, tensors, j, dim, k)) return std::nullopt;
            return 0;
        };
        buffer.watch = watch(buffer.placement, k, dimension);
        kept.push_back(std::move(buffer));
    }
}

/// Watches the loops from store level to compute level, both on the path of nest `user`.
template <class Dimension>
FoldWatch WalkPlan::watch(const Placement& placement, int user, const Dimension& dimension) {
    std::vector<FoldWatch::Loop> loops;
    const std::vector<Level> levels = path(group_, user);
    auto level = std::find(levels.begin(), levels.end(), placement.store);
    while (*level != placement.compute) {
        ++level;
        const Dim dim = group_.loop(*level).dim;
        loops.push_back({&site(*level).bodies, dimension(level->nest, dim)});
    }
    return FoldWatch(loops);
}

/// Records the loops around the compute level, by axis.
void WalkPlan::place_shared(Kept& shared, int reader) {
    for (const Level& level : path(group_, reader)) {
        if (!level.is_root()) {
            const Dim dim = group_.loop(level).dim;
            shared.alone[axis_of(dim)].loops.push_back(&site(level));
        }
        if (level == shared.placement.compute) break;
    }
}

/// Puts arrivals in the order of execution within a level: for each nest its X, its W and its call.
void WalkPlan::put_arrivals() {
    const auto put = [&](size_t buffer, const std::vector<TensorReader>& readers) {
        const Placement& placement = kept[buffer].placement;
        site(placement.store).stored.push_back(buffer);
        Arrival arrival{buffer, {}};
        for (const TensorReader& reader : readers) {
            arrival.readers.push_back(
                {reader.nest, reader.operand, where(reader.nest, placement.compute), 0});
        }
        site(placement.compute).computed.push_back(std::move(arrival));
    };
    for (int k = 0; k <= group_.sink(); ++k) {
        for (size_t t = 0; t < tensors.size(); ++t) {
            if (tensors[t].is_external() && tensors[t].readers.front().nest == k)
                put(t, tensors[t].readers);
        }
        for (size_t w = tensors.size(); w < kept.size(); ++w) {
            if (kept[w].nest == k) put(w, {{k, 0}});
        }
        for (size_t t = 0; t < tensors.size(); ++t) {
            if (tensors[t].producer == k) put(t, tensors[t].readers);
        }
    }
    site(group_.nests.back().y.store).writes_output = true;
    find_calls(root_);
    for (IndexVector<Site, int>& nest : sites_) {
        for (Site& site : nest) find_calls(site);
    }
}

/// Finds, for each reader that the body calls, which of the arrivals its output is.
void WalkPlan::find_calls(Site& site) const {
    const auto is_output = [&](const Arrival& arrival, int nest) {
        const Kept& buffer = kept[arrival.buffer];
        return buffer.kind == Kept::Kind::intermediate && buffer.nest == nest;
    };
    for (Arrival& arrival : site.computed) {
        for (Reader& reader : arrival.readers) {
            if (reader.where != Where::called) continue;
            while (!is_output(site.computed[reader.output], reader.nest)) ++reader.output;
        }
    }
}

/// How to find the reads of nest `reader` in the body of a level around it.
Where WalkPlan::where(int reader, Level level) const {
    const bool is_sink = reader == group_.sink();
    if (level.nest == reader || (level.is_root() && is_sink)) return Where::here;
    return !is_sink && group_.nest(reader).y.compute == level ? Where::called : Where::inside;
}

void WalkPlan::find_parts() {
    takes_part.resize(problems_.size() + 1, std::vector<bool>(kept.size(), true));
    for (int k = 0; k <= group_.sink(); ++k) {
        IndexVector<bool, int> fed(problems_.size());  // by nest k, directly or not
        fed[k] = true;
        std::vector<bool>& takes = takes_part[k + 1];
        takes.assign(kept.size(), false);
        for (size_t t = 0; t < tensors.size(); ++t) {  // producers first
            if (tensors[t].is_external() || !fed[tensors[t].producer]) continue;
            takes[t] = true;
            for (const TensorReader& reader : tensors[t].readers) fed[reader.nest] = true;
        }
    }
    for (int part = 0; part < static_cast<int>(takes_part.size()); ++part) {
        last_site.push_back(IndexVector<int, int>(sites_.size(), -1));
        for (int k = 0; k <= group_.sink(); ++k) {
            for (int l = 0; l < static_cast<int>(sites_[k].size()); ++l) {
                if (is_needed(sites_[k][l], part)) last_site.back()[k] = l;
            }
        }
    }
}

/// Whether what a nest reads of an operand, or of its weights, depends on where its loops over `dim`
/// are.
bool WalkPlan::moves(int nest, const Reader& reader, bool is_weights, Dim dim) const {
    const LayerProblem& p = problem(nest);
    const bool is_along_channels = axis_of(dim) == Axis::channels;
    if (is_weights) return is_along_channels;
    const LayerInput& input = p.inputs[static_cast<size_t>(reader.operand)];
    if (!is_along_channels) return !input.is_pixel;
    const bool reads_z = p.is_grouped() || p.operation == Operation::concat;
    return !input.is_plane && (dim == Dim::i || reads_z);
}

/// Boxes of nests that the body calls follow from what the level's own nest reads. Needs of a shared
/// tensor are found by the trips of the loops around, so their loops are taken as they are.
LikeTrips WalkPlan::find_like_trips(Level level) const {
    const Dim dim = group_.loop(level).dim;
    LikeTrips trips;
    for (int k = 0; k <= group_.sink(); ++k) {
        const std::vector<Level> around = path(group_, k);
        if (std::find(around.begin(), around.end(), level) == around.end()) continue;
        trips.nests.push_back(k);
        const int first = k == level.nest ? level.loop : 0;
        for (int l = first; l < static_cast<int>(sites_[k].size()); ++l) {
            const Site& site = sites_[k][l];
            trips.writes_output |= site.writes_output;
            for (const Arrival& arrival : site.computed) {
                const Kept& buffer = kept[arrival.buffer];
                const bool is_weights = buffer.kind == Kept::Kind::weights;
                if (buffer.is_shared) return {};
                for (const Reader& reader : arrival.readers) {
                    if (reader.nest == level.nest && moves(level.nest, reader, is_weights, dim))
                        return {};
                }
                trips.arriving.push_back(arrival.buffer);
            }
        }
    }
    trips.are_alike = true;
    return trips;
}

SeparateLoops WalkPlan::find_separate_loops(int nest) const {
    const IndexVector<Site, int>& sites = sites_[nest];
    SeparateLoops loops{static_cast<int>(sites.size()), {}};
    const auto is_separate = [&](const Arrival& arrival) {
        const Kept& buffer = kept[arrival.buffer];
        return buffer.kind != Kept::Kind::intermediate && !buffer.is_shared &&
               arrival.readers.front().where == Where::here;
    };
    while (loops.first > 0 && std::ranges::all_of(sites[loops.first - 1].computed, is_separate))
        --loops.first;
    for (int l = loops.first; l < static_cast<int>(sites.size()); ++l) {
        for (const Arrival& arrival : sites[l].computed)
            loops.parts.push_back(separate_part(nest, loops.first, arrival.buffer));
    }
    loops.parts.push_back(separate_part(nest, loops.first, std::nullopt));
    return loops;
}

Separate WalkPlan::separate_part(int nest, int first, std::optional<size_t> buffer) const {
    const auto count = static_cast<int>(sites_[nest].size());
    Separate part{buffer, -1, {}};
    part.like_trips.resize(static_cast<size_t>(count));
    LikeTrips inside;
    if (!buffer) inside.nests = {nest};
    std::optional<Reader> reader;
    for (int l = count; l-- > first;) {
        const Site& site = sites_[nest][l];
        bool happens = !buffer && site.writes_output;
        inside.writes_output |= happens;
        for (const Arrival& arrival : site.computed) {
            if (arrival.buffer != buffer) continue;
            happens = true;
            inside.arriving = {arrival.buffer};
            reader = arrival.readers.front();
        }
        happens |= buffer && std::ranges::find(site.stored, *buffer) != site.stored.end();
        if (happens) part.last_site = std::max(part.last_site, l);
        inside.are_alike = !reader || !moves(nest, *reader, kept[*buffer].kind == Kept::Kind::weights,
                                             group_.loop({nest, l}).dim);
        part.like_trips[l] = inside;
    }
    return part;
}

bool WalkPlan::is_needed(const Site& site, int part) const {
    const std::vector<bool>& takes = takes_part[part];
    return (part == 0 && site.writes_output) ||
           std::any_of(site.stored.begin(), site.stored.end(),
                       [&](size_t b) { return takes[b]; }) ||
           std::any_of(site.computed.begin(), site.computed.end(),
                       [&](const Arrival& a) { return takes[a.buffer]; });
}

}  // namespace laminate::walking
