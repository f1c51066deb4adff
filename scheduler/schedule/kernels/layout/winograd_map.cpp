#include "scheduler/schedule/kernels/layout/winograd_map.h"

#include <algorithm>
#include <optional>

#include "base/units.h"
#include "scheduler/schedule/kernels/layer_forms.h"
#include "scheduler/schedule/kernels/register_tile.h"

namespace laminate {

namespace {

/// Parts of a layer for threads.
constexpr int64_t parts_wanted = 4;

/// Elements of V, lanes without a tile left out, that products do not wait for: more of every core drive
/// each other out of a third-level cache that several share.
constexpr int64_t near_patches = (int64_t{5} << 20) / bytes_per_element;

int64_t patch_elements(const WinogradMapLayout& at) {
    return at.weights / at.row_slots * at.row_tiles;
}

void choose_tiles(WinogradMapLayout& at, const LayerProblem& p) {
    at.row_tiles = ceil_div(p[Dim::x], at.columns_of_tile);
    at.slots = 1;
    while (at.slots < at.row_tiles) at.slots *= 2;
    at.slots = std::min(at.slots, at.lanes);
    at.bands_of_vector = at.lanes / at.slots;
    // Tiles of 6 x 6 are many lanes wide, and rows seldom fill them: halves of vectors leave fewer empty.
    // They lie in order (winograd_map_patches.h), so that a half of a vector is tiles side by side.
    at.run = at.columns_of_tile == 6 && at.lanes == 8 ? 4 : at.lanes;
    at.row_slots = round_up(at.row_tiles, std::min(at.slots, at.run));
    at.bands = ceil_div(p[Dim::y], at.rows_of_tile);
}

/// Whether blocks keep their products from part to part of the input channels (`parts_outermost`). Without
/// that, each block reads the patches of all parts. If these lie far away, it is quicker to read and write
/// the products of a block once for each part, because they come in order. Patches of one part stay near
/// even in chunks of more bands, which transform weights less often.
bool products_are_kept(const WinogradMapLayout& at) {
    constexpr int64_t most_near = (int64_t{4} << 20) / bytes_per_element;
    constexpr int64_t fewest_parts = 3;  // two gained nothing
    return at.input_parts >= fewest_parts &&
           at.frequencies * at.chunk_bands * at.row_tiles * at.all_inputs > most_near;
}

/// Input channels in parts of at most so many, as even as can be.
int64_t inputs_together(const LayerProblem& p, int64_t most) {
    return ceil_div(p[Dim::i], ceil_div(p[Dim::i], most));
}

void choose_blocks(WinogradMapLayout& at, const LayerProblem& p, const VectorUnit& unit) {
    const int64_t all = at.chunk_bands * at.row_tiles;
    // U and M of one vector of channels, where a small map leaves half of the first-level cache to
    // U: stores of weights then wait for no line.
    constexpr int64_t near_elements = (int64_t{24} << 10) / bytes_per_element;
    // `of_input` is what an input channel and a vector of output channels have of U and of the plain
    // weights, which every group of rows reads; `products` is a vector's M of all tiles.
    const int64_t of_input =
        (at.frequencies_together() + at.row_taps * at.column_taps) * at.lanes;
    const int64_t products = at.frequencies * all * at.lanes;
    at.stays_near = 2 * products <= near_elements && all >= unit.latency();
    // Shorter sums would load and store an M that lies further away too often; with longer ones the
    // weights of a frequency, which every tile reads, outgrow the first-level cache.
    constexpr int64_t most_inputs = 128;
    // U and M are written and read anew for every part of the input channels and every block, so that
    // those beyond the second-level cache wait.
    constexpr int64_t most_elements = (int64_t{1} << 20) / bytes_per_element;
    // A frequency of U, which every tile reads, leaves room for V in the first-level cache up to this size.
    constexpr int64_t most_of_frequency = (int64_t{16} << 10) / bytes_per_element;
    double best = 0;
    // Where a tile's patches are is in a general register, of which processors have 16.
    constexpr int64_t most_places = 12;
    // A block's weights and one element at a time leave the other registers to sums. A single vector
    // reads V twice as often as two. Every group of channels has whole blocks.
    const bool is_grouped = p.groups > 1;
    for (int64_t v = at.stays_near || is_grouped ? 1 : 2; v <= (at.stays_near ? 1 : 4); ++v) {
        if (is_grouped && p.group_outputs() % (v * at.lanes) != 0) continue;
        const int64_t most = std::min({all, (unit.registers() - v - 1) / v, most_places});
        const bool waits =
            v * (of_input * inputs_together(p, most_inputs) + products) > most_elements;
        const bool is_far = v * at.lanes * inputs_together(p, most_inputs) > most_of_frequency;
        for (int64_t t = most; t >= 1; --t) {
            // As many sums as wait for each other leave nothing to hide the other instructions in.
            const bool is_tight = v * t <= unit.latency();
            const double pace = (waits ? 0.8 : 1.0) * (is_far ? 0.95 : 1.0) *
                                (is_tight ? 0.92 : 1.0) * product_efficiency(v, t);
            const double score = pace * used_part(all, t) * used_part(p[Dim::z], v * at.lanes);
            if (score <= best + 1e-9) continue;
            best = score;
            at.pace = pace;
            at.vectors = v;
            at.tile = t;
        }
    }
    at.block = at.vectors * at.lanes;
    at.blocks = ceil_div(p[Dim::z], at.block);
    at.inputs = inputs_together(
        p, at.stays_near ? (near_elements - products) / of_input : most_inputs);
    at.input_parts = ceil_div(p[Dim::i], at.inputs);
    at.parts_outermost = products_are_kept(at);
    constexpr int64_t fewest_blocks = 2;
    at.channel_parts = std::clamp<int64_t>(at.blocks / fewest_blocks, 1,
                                           ceil_div(parts_wanted, at.chunks));
}

/// Vectors of products that would take as long as the parts [begin, end) on one thread, with transforms
/// as machines/*.json have them: patches of every chunk that the parts reach into, weights of every
/// block of each.
double share(const WinogradMapLayout& at, const LayerProblem& p, int64_t begin, int64_t end) {
    // These factors are for tiles of two rows. Transforms of wide tiles store further apart.
    const double of_inputs = at.rows_of_tile == 6 ? 70 : 10;
    constexpr double of_weights = 18, of_outputs = 45;
    // Products that blocks keep are read and written once more for each part of the inputs but one.
    constexpr double of_kept = 8;
    const auto lanes = static_cast<double>(at.lanes);
    const auto part = [](int64_t some, int64_t all) {
        return static_cast<double>(some) / static_cast<double>(all);
    };
    const double inputs = of_inputs * at.transformed_part() *
                          static_cast<double>(p.input_elements().value()) / lanes;
    const double outputs = of_outputs * at.transformed_part() *
                           static_cast<double>(p.output_elements().value()) / lanes;
    const double weights = of_weights * at.transformed_weights(p) / lanes;
    const double pace = at.pace * (patch_elements(at) > near_patches ? 0.8 : 1.0);
    double sum = 0;
    for (int64_t chunk = begin / at.channel_parts; chunk * at.channel_parts < end; ++chunk) {
        const int64_t first = std::max<int64_t>(begin - chunk * at.channel_parts, 0);
        const int64_t last = std::min(end - chunk * at.channel_parts, at.channel_parts);
        const int64_t first_block = first * at.blocks / at.channel_parts;
        const int64_t last_block = last * at.blocks / at.channel_parts;
        const int64_t blocks = last_block - first_block;
        const int64_t groups_read =
            ceil_div(last_block, at.blocks_of_group()) - first_block / at.blocks_of_group();
        const int64_t multiplied = at.multiplications(chunk, blocks);
        const double kept = at.parts_outermost ? of_kept * static_cast<double>(at.input_parts - 1) /
                                                     static_cast<double>(at.all_inputs)
                                               : 0;
        const double products = part(multiplied, at.lanes) * (1 / pace + kept);
        const double rows = part(at.first_band(chunk + 1) - at.first_band(chunk), at.bands);
        const double channels = part(blocks, at.blocks);
        sum += products + rows * part(groups_read, at.channel_groups) * inputs +
               channels * (weights / static_cast<double>(at.chunks) + rows * outputs);
    }
    return sum;
}

/// What the longer of two threads' shares takes, twice. More threads want as many parts as are wanted.
double cost(const WinogradMapLayout& at, const LayerProblem& p) {
    const int64_t parts = at.parts(), half = parts / 2;
    const double of_two = 2 * std::max(share(at, p, 0, half), share(at, p, half, parts));
    if (parts >= parts_wanted) return of_two;
    return std::max(of_two, share(at, p, 0, parts) / used_part(parts, parts_wanted));
}

void place(WinogradMapLayout& at) {
    // Tiles of one column are read by as many as are stored together.
    const int64_t all = round_up(
        at.chunk_bands * at.row_tiles + at.stored_columns() - at.columns_of_tile, at.tile);
    const int64_t written =
        round_up(at.chunk_bands, at.bands_of_vector) * at.row_slots / at.run;
    at.patch_runs = std::max(written, at.slot_of(all - 1) / at.run + 1);
    // A vector more than needed: powers of two would make all frequencies meet in one cache set.
    at.patch_frequency = at.patch_runs * at.inputs * at.run + at.lanes;
    at.weight_frequency = at.inputs * at.block + at.lanes;
    const int64_t of_tile = at.tile * at.lanes;
    at.product_frequency = at.parts_outermost ? all * at.block + 2 * at.lanes : of_tile;
    at.product_vector = at.parts_outermost ? of_tile : at.frequencies * of_tile;
    at.product_tile = at.vectors * at.product_vector;
    at.product_block = at.frequencies * (at.parts_outermost ? at.product_frequency : all * at.block);
    at.weights = at.parts_with_patches() * at.frequencies * at.patch_frequency;
    at.products = at.weights + at.frequencies_together() * at.weight_frequency;
    at.staged = at.products + (at.parts_outermost ? at.blocks_of_group() : 1) * at.product_block;
    at.elements = at.staged + at.strip_columns() * at.rows_of_tile * at.lanes;
}

}  // namespace

std::vector<std::vector<int64_t>> WinogradMapLayout::row_groups() const {
    std::vector<std::vector<int64_t>> groups;
    const int64_t last = patch_rows() - 1;
    // U of few frequencies lies near as a whole.
    if (rows_of_tile < 4 || column_taps == 1) {
        groups.emplace_back();
        for (int64_t r = 0; r <= last; ++r) groups.back().push_back(r);
        return groups;
    }
    groups.push_back({0, last});
    for (int64_t r = 1; r < last; r += 2) groups.push_back({r, r + 1});
    return groups;
}

int64_t WinogradMapLayout::multiplications(int64_t chunk, int64_t blocks_of_chunk) const {
    const int64_t bands_here = first_band(chunk + 1) - first_band(chunk);
    return round_up(bands_here * row_tiles, tile) * frequencies * all_inputs * blocks_of_chunk *
           block;
}

int64_t WinogradMapLayout::multiplications() const {
    int64_t all = 0;
    for (int64_t chunk = 0; chunk < chunks; ++chunk) all += multiplications(chunk, blocks);
    return all;
}

bool has_tiles(const LayerProblem& p, int64_t rows) { return rows == 4 || has_winograd_window(p); }

bool fills_wide_tiles(const LayerProblem& p, int64_t lanes) {
    return 2 * ceil_div(p[Dim::x], 6) > lanes;
}

WinogradMapLayout winograd_map_layout(const LayerProblem& p, const VectorUnit& unit,
                                      const WinogradMapChunks& chunks) {
    WinogradMapLayout at;
    at.lanes = unit.lanes;
    at.row_taps = p.y().kernel;
    at.column_taps = p.x().kernel;
    at.rows_of_tile = at.row_taps == 1 ? 1 : chunks.rows_of_tile;
    at.columns_of_tile = at.column_taps == 1 ? 1 : std::max<int64_t>(4, chunks.rows_of_tile);
    at.frequencies = at.patch_rows() * at.patch_columns();
    at.channel_groups = p.groups;
    at.all_inputs = p[Dim::i];
    choose_tiles(at, p);
    at.chunk_bands = std::min(chunks.bands, at.bands);
    at.chunks = ceil_div(at.bands, at.chunk_bands);
    choose_blocks(at, p, unit);
    place(at);
    return at;
}

std::optional<WinogradMapChunks> winograd_map_chunks(const LayerProblem& p, const VectorUnit& unit,
                                                     int64_t fewest_rows, int64_t most_rows,
                                                     std::optional<Bytes> scratch) {
    // Of V. It may come from the third-level cache, of which every core has its part: each element is
    // multiplied by a block of channels. Of M as well, if it has all blocks.
    constexpr int64_t most_patch_elements = (int64_t{10} << 20) / bytes_per_element;
    std::optional<WinogradMapChunks> best;
    double least = 0;
    for (const int64_t rows : {2, 4, 6}) {
        if (rows < fewest_rows || rows > most_rows || !has_tiles(p, rows)) continue;
        if (rows == 6 && !fills_wide_tiles(p, unit.lanes)) continue;
        const int64_t bands = winograd_map_layout(p, unit, {rows, 1}).bands;
        for (int64_t chunks = 1; chunks <= bands; ++chunks) {
            const WinogradMapChunks here{rows, ceil_div(bands, chunks)};
            const WinogradMapLayout at = winograd_map_layout(p, unit, here);
            const int64_t kept = at.parts_outermost ? at.staged - at.products : 0;
            const bool is_too_large =
                std::max(patch_elements(at), kept) > most_patch_elements && at.chunk_bands > 1;
            if (is_too_large || (scratch && to_bytes(Elements(at.scratch_elements())) > *scratch))
                continue;
            const double time = cost(at, p);
            if (best && time >= least) continue;
            best = here;
            least = time;
        }
    }
    return best;
}

}  // namespace laminate
