#include "scheduler/schedule/schedule.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>

#include "base/error.h"

namespace laminate {

namespace {

constexpr PerDim<char> dim_letters{'z', 'y', 'x', 'i'};
constexpr std::array<char, 3> band_letters{'s', 'o', 'i'};

std::optional<Loop> loop_from_text(const std::string& text) {
    if (text.size() != 2) return std::nullopt;
    const auto* d = std::find(dim_letters.begin(), dim_letters.end(), text[0]);
    const auto* b = std::find(band_letters.begin(), band_letters.end(), text[1]);
    if (d == dim_letters.end() || b == band_letters.end()) return std::nullopt;
    return Loop{static_cast<Dim>(d - dim_letters.begin()),
                static_cast<Band>(b - band_letters.begin())};
}

bool is_spatial(Dim d) { return d == Dim::y || d == Dim::x; }

std::string levels_text(const GroupSchedule& group, int nest, const std::vector<Level>& levels) {
    std::string text;
    for (const Level& level : levels)
        text += (text.empty() ? "" : ", ") + level_text(group, nest, level);
    return text;
}

/// Position of a level on a path, or -1 if it is not there.
int position(const std::vector<Level>& levels, Level level) {
    const auto it = std::find(levels.begin(), levels.end(), level);
    return it == levels.end() ? -1 : static_cast<int>(it - levels.begin());
}

void check_placement(const GroupSchedule& group, int nest, const std::string& array,
                     const Placement& placement, const std::vector<Level>& levels, int user) {
    const std::string where = group.nests[static_cast<size_t>(nest)].layer + ": ";
    const int store = position(levels, placement.store);
    const int compute = position(levels, placement.compute);
    if (store < 0) {
        throw InputError(
            where + "store level of " + array + " is " + level_text(group, nest, placement.store) +
            ", which is not around its user; legal: " + levels_text(group, user, levels));
    }
    if (compute < store) {
        const std::vector<Level> legal(levels.begin() + store, levels.end());
        throw InputError(where + "compute level of " + array + " is " +
                         level_text(group, nest, placement.compute) + ", outside its store level " +
                         level_text(group, nest, placement.store) +
                         "; legal: " + levels_text(group, user, legal));
    }
}

/// Inside `ii` a grouped layer reads one channel of each group of its z range. That is no interval,
/// so there is no box to bring in.
void check_grouped_input(const GroupSchedule& group, int k, const LayerProblem& problem,
                         const Placement& input) {
    if (problem.groups == 1 || problem[Dim::i] == 1) return;
    const Nest& nest = group.nests[static_cast<size_t>(k)];
    if (input.compute.nest == k && input.compute.loop >= nest.find(Loop{Dim::i, Band::inner})) {
        throw InputError(nest.layer + ": the input of a grouped convolution has compute level " +
                         level_text(group, k, input.compute) +
                         ", not outside ii; expected a loop around ii");
    }
}

/// "X", or "X1" where the layer has several inputs.
std::string input_key(const LayerProblem& problem, int operand) {
    return problem.inputs.size() == 1 ? "X" : "X" + std::to_string(operand);
}

/// Checks that the output of every nest but the last is read by later nests of the group only.
void check_wiring(const Network& network, const std::vector<LayerProblem>& problems) {
    std::map<LayerId, size_t> nest_of;
    for (size_t k = 0; k < problems.size(); ++k) {
        if (!nest_of.emplace(problems[k].layer, k).second)
            throw InputError("schedule: layer " + problems[k].name + " is in a group twice");
    }
    for (size_t k = 0; k + 1 < problems.size(); ++k) {
        const std::string& name = problems[k].name;
        const std::vector<LayerId> readers = network.consumers(problems[k].output);
        if (network.is_output(problems[k].output))
            throw InputError(
                name +
                ": its output is an output of the network, so it can only be the last of a group");
        for (const LayerId reader : readers) {
            const auto nest = nest_of.find(reader);
            const std::string& reader_name = network.layer(reader).name;
            if (nest == nest_of.end()) {
                throw InputError(
                    name + ": its output is read by " + reader_name +
                    " outside the group; expected a group with every reader of it, or " + name +
                    " as its last layer");
            }
            if (nest->second <= k)
                throw InputError(name + ": stands after " + reader_name +
                                 ", which reads its output; expected producers first");
        }
    }
}

/// A tensor that several nests read is one box with all its channels. It must be kept at least as
/// long as what they compute from it.
void check_shared(const GroupSchedule& group, const std::vector<GroupTensor>& tensors,
                  const GroupTensor& tensor) {
    const Placement& placement = placement_of(group, tensor);
    for (const int k : branch_nests(tensors, tensor)) {
        const Nest& nest = group.nests[static_cast<size_t>(k)];
        if (encloses(group, k, placement.store, nest.y.store)) continue;
        throw InputError(nest.layer + ": computes from " + tensor.name +
                         ", which several layers of the group read and which is stored at " +
                         level_text(group, k, placement.store) + ", inside the store level " +
                         level_text(group, k, nest.y.store) +
                         " of its own output; expected to be stored there or further out");
    }
}

void check_loops(const Nest& nest, const LayerProblem& problem, bool is_sink) {
    const std::string where = nest.layer + ": ";
    std::vector<Loop> strips;
    std::vector<Loop> outer;
    std::vector<Loop> inner;
    for (const Loop& loop : nest.loops) {
        (loop.band == Band::strip   ? strips
         : loop.band == Band::outer ? outer
                                    : inner)
            .push_back(loop);
    }
    std::vector<Loop> ordered = strips;
    ordered.insert(ordered.end(), outer.begin(), outer.end());
    ordered.insert(ordered.end(), inner.begin(), inner.end());
    const std::set<Loop> distinct(nest.loops.begin(), nest.loops.end());
    if (ordered != nest.loops || outer.size() != 4 || inner.size() != 4 ||
        distinct.size() != nest.loops.size()) {
        throw InputError(where + "loops are " +
                         [&] {
                             std::string text;
                             for (const Loop& loop : nest.loops)
                                 text += (text.empty() ? "" : " ") + to_text(loop);
                             return text;
                         }() +
                         "; expected strip loops (sink only), then zo yo xo io in some order, then "
                         "zi yi xi ii in some order");
    }
    for (const Loop& loop : strips) {
        if (!is_spatial(loop.dim))
            throw InputError(where + "strip loop " + to_text(loop) + "; only ys and xs exist");
    }
    if (!strips.empty() && !is_sink) {
        throw InputError(where + "strip loop " + to_text(strips.front()) +
                         " in a layer that is not the last of its group");
    }
    for (size_t axis = 0; axis < 2; ++axis) {
        const Loop loop{axis == 0 ? Dim::y : Dim::x, Band::strip};
        const bool present = distinct.count(loop) > 0;
        const int64_t extent = problem[loop.dim];
        if (!present && nest.strip[axis] != 0)
            throw InputError(where + "strip size without loop " + to_text(loop));
        if (present && (nest.strip[axis] < 1 || nest.strip[axis] > extent)) {
            throw InputError(where + "strip of " + dim_letters[axis == 0 ? Dim::y : Dim::x] +
                             " is " + std::to_string(nest.strip[axis]) + "; expected 1 to " +
                             std::to_string(extent));
        }
    }
    for (const Dim d : all_dims) {
        if (nest[d] < 1 || nest[d] > problem[d]) {
            throw InputError(where + "tile of " + dim_letters[d] + " is " +
                             std::to_string(nest[d]) + "; expected 1 to " +
                             std::to_string(problem[d]));
        }
    }
    if (nest[Dim::i] != problem[Dim::i] && (!is_sink || problem.groups != 1)) {
        throw InputError(
            where + "tile of i is " + std::to_string(nest[Dim::i]) + " of " +
            std::to_string(problem[Dim::i]) + "; " +
            (is_sink ? "a grouped convolution" : "a layer that is not the last of its group") +
            " cannot leave partial sums");
    }
}

}  // namespace

std::string to_text(Loop loop) {
    return {dim_letters[loop.dim], band_letters[static_cast<size_t>(loop.band)]};
}

int64_t Nest::step(Loop loop) const {
    switch (loop.band) {
        case Band::strip:
            return strip[static_cast<size_t>(loop.dim) - 1];
        case Band::outer:
            return tile[loop.dim];
        case Band::inner:
            break;
    }
    return 1;
}

int Nest::find(Loop loop) const {
    const auto it = std::find(loops.begin(), loops.end(), loop);
    return it == loops.end() ? -1 : static_cast<int>(it - loops.begin());
}

bool GroupSchedule::is_placed(Level level) const {
    const auto is_here = [&](const Placement& p) { return p.store == level || p.compute == level; };
    for (const Nest& nest : nests) {
        if (is_here(nest.y) || (nest.w && is_here(*nest.w))) return true;
        for (const InputPlacement& x : nest.x) {
            if (is_here(x.placement)) return true;
        }
    }
    return false;
}

std::vector<GroupTensor> group_tensors(const std::vector<LayerProblem>& problems) {
    std::vector<GroupTensor> external;
    std::vector<GroupTensor> internal;
    for (size_t k = 0; k + 1 < problems.size(); ++k) {
        const auto tensor = problems[k].output;
        internal.push_back({tensor, problems[k].name, static_cast<int>(k), {}});
    }
    for (size_t k = 0; k < problems.size(); ++k) {
        for (size_t operand = 0; operand < problems[k].inputs.size(); ++operand) {
            const LayerInput& input = problems[k].inputs[operand];
            const auto is_it = [&](const GroupTensor& t) { return t.tensor == input.tensor; };
            auto found = std::find_if(internal.begin(), internal.end(), is_it);
            if (found == internal.end()) {
                found = std::find_if(external.begin(), external.end(), is_it);
                if (found == external.end())
                    found = external.insert(external.end(), {input.tensor, input.name, -1, {}});
            } else {
                found->name = input.name;
            }
            found->readers.push_back({static_cast<int>(k), static_cast<int>(operand)});
        }
    }
    external.insert(external.end(), internal.begin(), internal.end());
    return external;
}

const Placement& placement_of(const GroupSchedule& group, const GroupTensor& tensor) {
    if (!tensor.is_external()) return group.nests[static_cast<size_t>(tensor.producer)].y;
    const TensorReader& first = tensor.readers.front();
    for (const InputPlacement& x : group.nests[static_cast<size_t>(first.nest)].x) {
        if (x.operand == first.operand) return x.placement;
    }
    throw InputError(group.nests[static_cast<size_t>(first.nest)].layer + ": no placement of " +
                     tensor.name + ", an external input of the group");
}

std::vector<int> branch_nests(const std::vector<GroupTensor>& tensors, const GroupTensor& tensor) {
    const auto reads = [](const GroupTensor& t, int nest) {
        return std::any_of(t.readers.begin(), t.readers.end(),
                           [&](const TensorReader& r) { return r.nest == nest; });
    };
    std::vector<int> nests;
    std::vector<const GroupTensor*> computed{&tensor};  // and whatever is computed from it
    int last = tensor.readers.back().nest;              // the last nest that reads any of them
    for (int k = tensor.readers.front().nest;; ++k) {
        if (std::none_of(computed.begin(), computed.end(),
                         [&](const GroupTensor* t) { return reads(*t, k); }))
            continue;
        const auto output = std::find_if(tensors.begin(), tensors.end(),
                                         [&](const GroupTensor& t) { return t.producer == k; });
        if (output == tensors.end()) break;  // the sink
        if (k < last || reads(tensor, k)) nests.push_back(k);
        if (k == last) break;  // all has come together
        computed.push_back(&*output);
        last = std::max(last, output->readers.back().nest);
    }
    return nests;
}

std::vector<Level> path(const GroupSchedule& group, int nest) {
    std::vector<Level> levels{Level{}};
    const Nest& own = group.nests[static_cast<size_t>(nest)];
    // check_group refuses a level of an earlier nest.
    if (const Level hang = own.y.compute; nest != group.sink() && hang.nest > nest) {
        levels = path(group, hang.nest);
        levels.resize(static_cast<size_t>(position(levels, hang)) + 1);
    }
    for (int loop = 0; loop < static_cast<int>(own.loops.size()); ++loop)
        levels.push_back(Level{nest, loop});
    return levels;
}

bool encloses(const GroupSchedule& group, int nest, Level outer, Level inner) {
    const std::vector<Level> levels = path(group, nest);
    const int a = position(levels, outer);
    const int b = position(levels, inner);
    return a >= 0 && b >= a;
}

std::vector<LayerProblem> group_problems(const Network& network, const GroupSchedule& group) {
    std::vector<LayerProblem> problems;
    for (const Nest& nest : group.nests)
        problems.push_back(layer_problem(network, network.find_layer(nest.layer)));
    return problems;
}

namespace {

void check_layers_of(const Network& network, const GroupSchedule& group) {
    if (group.nests.empty()) throw InputError("schedule: a group without layers");
    for (const Nest& nest : group.nests) {
        const LayerId id = network.find_layer(nest.layer);
        if (id < 0)
            throw InputError("schedule: network " + network.name + " has no layer " + nest.layer);
        if (!is_schedulable(network, id)) {
            throw InputError(nest.layer + ": a " + operation_text(network.layer(id)) +
                             " cannot be scheduled; it runs on the reference operators");
        }
    }
}

/// The sink's Y has one level. Y of another nest must lie on the paths of all its readers.
void check_output_placement(const GroupSchedule& group, const std::vector<LayerProblem>& problems,
                            const std::vector<GroupTensor>& tensors, int k) {
    const Nest& nest = group.nests[static_cast<size_t>(k)];
    if (k == group.sink()) {
        check_placement(group, k, "Y", nest.y, path(group, k), k);
        if (nest.y.store != nest.y.compute) {
            throw InputError(nest.layer + ": Y of the last layer has store level " +
                             level_text(group, k, nest.y.store) + " and compute level " +
                             level_text(group, k, nest.y.compute) + "; expected one level");
        }
        return;
    }
    for (const GroupTensor& tensor : tensors) {
        if (tensor.producer != k) continue;
        for (const TensorReader& reader : tensor.readers) {
            check_placement(group, k, "Y", nest.y, path(group, reader.nest), reader.nest);
            check_grouped_input(group, reader.nest, problems[static_cast<size_t>(reader.nest)],
                                nest.y);
        }
    }
}

void check_weights_placement(const GroupSchedule& group, const LayerProblem& problem, int k) {
    const Nest& nest = group.nests[static_cast<size_t>(k)];
    if (nest.w.has_value() != problem.has_weights()) {
        throw InputError(nest.layer + (nest.w ? ": W is placed, but the layer has no weights"
                                              : ": no placement of W, the layer's weights"));
    }
    if (nest.w) check_placement(group, k, "W", *nest.w, path(group, k), k);
}

/// A nest places exactly the external inputs that it is the first to read, each once, in the order
/// of its operands.
void check_placed_inputs(const GroupSchedule& group, const LayerProblem& problem,
                         const std::vector<GroupTensor>& tensors, int k) {
    const Nest& nest = group.nests[static_cast<size_t>(k)];
    const auto is_first_reader = [&](int operand) {
        return std::any_of(tensors.begin(), tensors.end(), [&](const GroupTensor& t) {
            return t.is_external() && t.readers.front() == TensorReader{k, operand};
        });
    };
    int last_operand = -1;
    for (const InputPlacement& x : nest.x) {
        if (x.operand <= last_operand || !is_first_reader(x.operand)) {
            throw InputError(nest.layer + ": " + input_key(problem, x.operand) +
                             " is placed; expected in order, once, the inputs that come from "
                             "outside the group and "
                             "that no earlier layer of it reads");
        }
        last_operand = x.operand;
    }
    for (int operand = 0; operand < static_cast<int>(problem.inputs.size()); ++operand) {
        const bool is_placed =
            std::any_of(nest.x.begin(), nest.x.end(),
                        [&](const InputPlacement& x) { return x.operand == operand; });
        if (!is_placed && is_first_reader(operand)) {
            throw InputError(nest.layer + ": no placement of " + input_key(problem, operand) +
                             ", an external input of the group");
        }
    }
}

/// The levels of an external tensor lie on the paths of all its readers. A shared tensor outlives
/// what its branches compute from it.
void check_tensor(const GroupSchedule& group, const std::vector<LayerProblem>& problems,
                  const std::vector<GroupTensor>& tensors, const GroupTensor& tensor) {
    const Placement& placement = placement_of(group, tensor);
    for (const TensorReader& reader : tensor.readers) {
        if (!tensor.is_external()) continue;
        const LayerProblem& problem = problems[static_cast<size_t>(reader.nest)];
        check_placement(group, reader.nest, input_key(problem, reader.operand), placement,
                        path(group, reader.nest), reader.nest);
        check_grouped_input(group, reader.nest, problem, placement);
    }
    if (tensor.is_shared()) check_shared(group, tensors, tensor);
}

}  // namespace

void check_group(const Network& network, const GroupSchedule& group) {
    check_layers_of(network, group);
    const std::vector<LayerProblem> problems = group_problems(network, group);
    check_wiring(network, problems);
    const std::vector<GroupTensor> tensors = group_tensors(problems);
    for (int k = group.sink(); k >= 0; --k) {
        const LayerProblem& problem = problems[static_cast<size_t>(k)];
        check_loops(group.nests[static_cast<size_t>(k)], problem, k == group.sink());
        check_output_placement(group, problems, tensors, k);
        check_weights_placement(group, problem, k);
        check_placed_inputs(group, problem, tensors, k);
    }
    for (const GroupTensor& tensor : tensors) check_tensor(group, problems, tensors, tensor);
}

Schedule::Schedule(const Network& network, std::vector<GroupSchedule> groups)
    : groups_(std::move(groups)) {
    std::set<std::string> seen;
    for (const GroupSchedule& group : groups_) {
        check_group(network, group);
        for (const Nest& nest : group.nests) {
            if (!seen.insert(nest.layer).second)
                throw InputError("schedule: layer " + nest.layer + " is in two groups");
        }
    }
    for (LayerId id = 0; id < static_cast<LayerId>(network.layers.size()); ++id) {
        if (must_be_scheduled(network, id) && seen.count(network.layer(id).name) == 0) {
            throw InputError("schedule: layer " + network.layer(id).name + " is in no group");
        }
    }
}

// ---- text

std::string level_text(const GroupSchedule& group, int nest, Level level) {
    if (level.is_root()) return "root";
    const Nest& owner = group.nests.at(static_cast<size_t>(level.nest));
    const std::string loop = to_text(owner.loops.at(static_cast<size_t>(level.loop)));
    return level.nest == nest ? loop : owner.layer + "." + loop;
}

std::string to_text(const GroupSchedule& group) {
    std::string text = "{";
    for (int k = 0; k <= group.sink(); ++k) {
        const Nest& nest = group.nests[static_cast<size_t>(k)];
        const auto placement = [&](const std::string& array, const Placement& p) {
            return "; " + array + " " + level_text(group, k, p.store) + "/" +
                   level_text(group, k, p.compute);
        };
        text += (k == 0 ? "" : " & ") + nest.layer + ":";
        Band band = nest.loops.empty() ? Band::outer : nest.loops.front().band;
        for (const Loop& loop : nest.loops) {
            if (loop.band != band) text += band == Band::strip ? " ||" : " |";
            band = loop.band;
            text += " " + to_text(loop);
        }
        text += " n m;";
        if (nest.strip[0] != 0 || nest.strip[1] != 0) {
            text += " strip";
            for (size_t axis = 0; axis < 2; ++axis) {
                if (nest.strip[axis] != 0)
                    text += std::string(" ") + dim_letters[axis == 0 ? Dim::y : Dim::x] +
                            std::to_string(nest.strip[axis]);
            }
            text += ";";
        }
        text += " tile";
        for (const Dim d : all_dims)
            text += std::string(" ") + dim_letters[d] + std::to_string(nest[d]);
        for (const InputPlacement& x : nest.x) {
            // Only the network tells which operands are external, so a lone operand 0 is printed
            // without its number.
            text += placement(
                x.operand == 0 && nest.x.size() == 1 ? "X" : "X" + std::to_string(x.operand),
                x.placement);
        }
        if (nest.w) text += placement("W", *nest.w);
        text += placement("Y", nest.y);
    }
    return text + "}";
}

std::string to_text(const Schedule& schedule) {
    std::string text;
    for (const GroupSchedule& group : schedule.groups())
        text += (text.empty() ? "" : " ") + to_text(group);
    return text;
}

namespace {

/// Reads the text form. Levels stay text until every nest of the group is known.
class Parser {
public:
    explicit Parser(const std::string& text) : text_(text) {}

    bool at_end() {
        skip_space();
        return at_ >= text_.size();
    }

    GroupSchedule group() {
        expect("{");
        std::vector<std::vector<PendingLevel>> pending;
        GroupSchedule group;
        do {
            pending.emplace_back();
            group.nests.push_back(nest(pending.back()));
        } while (accept("&"));
        expect("}");
        for (size_t k = 0; k < group.nests.size(); ++k) {
            Nest& nest = group.nests[k];
            for (const PendingLevel& level : pending[k]) {
                Placement& placement = level.array == 'X'   ? nest.x[level.index].placement
                                       : level.array == 'W' ? *nest.w
                                                            : nest.y;
                (level.is_store ? placement.store : placement.compute) =
                    resolve(group, static_cast<int>(k), level);
            }
        }
        return group;
    }

    [[noreturn]] void fail(const std::string& expected) {
        skip_space();
        std::string found = at_ < text_.size() ? "\"" + text_.substr(at_, 12) + "\"" : "the end";
        for (char& c : found) {
            if (static_cast<unsigned char>(c) < ' ') c = ' ';  // a message is one line
        }
        fail_at(at_, "found " + found + ", expected " + expected);
    }

private:
    struct PendingLevel {
        char array;
        size_t index;  ///< of Nest::x
        bool is_store;
        std::string text;
        size_t column;
    };

    [[noreturn]] static void fail_at(size_t column, const std::string& what) {
        throw InputError("schedule text, column " + std::to_string(column + 1) + ": " + what);
    }

    void skip_space() {
        while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0)
            ++at_;
    }

    bool accept(const std::string& token) {
        skip_space();
        if (text_.compare(at_, token.size(), token) != 0) return false;
        at_ += token.size();
        return true;
    }

    void expect(const std::string& token) {
        if (!accept(token)) fail("\"" + token + "\"");
    }

    std::string word(const std::string& expected) {
        skip_space();
        const size_t begin = at_;
        while (at_ < text_.size() &&
               (std::isalnum(static_cast<unsigned char>(text_[at_])) != 0 || text_[at_] == '_'))
            ++at_;
        if (begin == at_) fail(expected);
        return text_.substr(begin, at_ - begin);
    }

    /// The number of a token like "z4".
    int64_t number_after_letter(const std::string& token, size_t column) {
        int64_t value = 0;
        if (token.size() < 2 || token.size() > 16)
            fail_at(column, "found \"" + token + "\", expected a letter and a number, like y4");
        for (size_t c = 1; c < token.size(); ++c) {
            if (std::isdigit(static_cast<unsigned char>(token[c])) == 0) {
                fail_at(column, "found \"" + token + "\", expected a letter and a number, like y4");
            }
            value = value * 10 + (token[c] - '0');
        }
        return value;
    }

    Nest nest(std::vector<PendingLevel>& pending) {
        Nest nest;
        nest.layer = word("a layer name");
        expect(":");
        while (!accept(";")) {
            if (accept("|"))
                continue;  // separators are for the reader; the loop names carry their band
            skip_space();
            const size_t column = at_;
            const std::string name = word("a loop (zo yo xo io zi yi xi ii ys xs n m)");
            if (name == "n" || name == "m") continue;
            const std::optional<Loop> loop = loop_from_text(name);
            if (!loop)
                fail_at(column, "found \"" + name +
                                    "\", expected a loop (zo yo xo io zi yi xi ii ys xs n m)");
            nest.loops.push_back(*loop);
        }
        std::set<std::string> seen;
        do {
            skip_space();
            const size_t column = at_;
            const std::string key = word("strip, tile, X, W or Y");
            if (!seen.insert(key).second) fail_at(column, "\"" + key + "\" is given twice");
            if (key == "tile" || key == "strip") {
                std::set<char> letters;
                while (true) {
                    skip_space();
                    if (at_ >= text_.size() || text_[at_] == ';' || text_[at_] == '&' ||
                        text_[at_] == '}')
                        break;
                    const size_t token_column = at_;
                    const std::string token = word("a size like y4");
                    const auto* d = std::find(dim_letters.begin(), dim_letters.end(), token[0]);
                    const auto dim = static_cast<Dim>(d - dim_letters.begin());
                    if (d == dim_letters.end() ||
                        (key == "strip" && dim != Dim::y && dim != Dim::x) ||
                        !letters.insert(token[0]).second) {
                        fail_at(token_column, "found \"" + token + "\", expected each of " +
                                                  (key == "tile" ? "z y x i" : "y x") +
                                                  " at most once with its size");
                    }
                    (key == "tile" ? nest.tile[dim] : nest.strip[static_cast<size_t>(dim) - 1]) =
                        number_after_letter(token, token_column);
                }
                if (key == "tile" && letters.size() != 4)
                    fail_at(column, "expected tile sizes of z, y, x and i");
            } else if (key == "W" || key == "Y" || is_input_key(key)) {
                if (key == "W") nest.w = Placement{};
                if (key[0] == 'X')
                    nest.x.push_back(
                        {key.size() == 1 ? 0 : static_cast<int>(number_after_letter(key, column)),
                         {}});
                for (const bool is_store : {true, false}) {
                    if (!is_store) expect("/");
                    skip_space();
                    const size_t level_column = at_;
                    std::string level = word("a level (root, yi, conv2.yo)");
                    if (accept(".")) level += "." + word("a loop");
                    pending.push_back({key[0], nest.x.empty() ? 0 : nest.x.size() - 1, is_store,
                                       level, level_column});
                }
            } else {
                fail_at(column, "found \"" + key + "\", expected strip, tile, X, W or Y");
            }
        } while (accept(";"));
        for (const char* key : {"tile", "Y"}) {
            if (seen.count(key) == 0) fail(std::string(key) + " of layer " + nest.layer);
        }
        return nest;
    }

    /// X, X0, X1, ...
    static bool is_input_key(const std::string& key) {
        return key[0] == 'X' && key.size() <= 5 &&
               std::all_of(key.begin() + 1, key.end(), [](char c) { return c >= '0' && c <= '9'; });
    }

    static Level resolve(const GroupSchedule& group, int nest, const PendingLevel& pending) {
        const size_t dot = pending.text.find('.');
        if (dot == std::string::npos && pending.text == "root") return Level{};
        int owner = nest;
        if (dot != std::string::npos) {
            const std::string layer = pending.text.substr(0, dot);
            const auto it = std::find_if(group.nests.begin(), group.nests.end(),
                                         [&](const Nest& n) { return n.layer == layer; });
            if (it == group.nests.end())
                fail_at(pending.column,
                        "level " + pending.text + " names a layer outside the group");
            owner = static_cast<int>(it - group.nests.begin());
        }
        const std::string name =
            dot == std::string::npos ? pending.text : pending.text.substr(dot + 1);
        const std::optional<Loop> loop = loop_from_text(name);
        const int index = loop ? group.nests[static_cast<size_t>(owner)].find(*loop) : -1;
        if (index < 0) {
            fail_at(pending.column, "found level \"" + pending.text +
                                        "\", expected root or a loop of " +
                                        group.nests[static_cast<size_t>(owner)].layer);
        }
        return Level{owner, index};
    }

    const std::string& text_;
    size_t at_ = 0;
};

}  // namespace

GroupSchedule parse_group(const Network& network, const std::string& text) {
    Parser parser(text);
    GroupSchedule group = parser.group();
    if (!parser.at_end()) parser.fail("the end");
    check_group(network, group);
    return group;
}

Schedule parse_schedule(const Network& network, const std::string& text) {
    Parser parser(text);
    std::vector<GroupSchedule> groups;
    while (!parser.at_end()) groups.push_back(parser.group());
    return {network, std::move(groups)};
}

}  // namespace laminate
