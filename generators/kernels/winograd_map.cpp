#include "generators/kernels/winograd_map.h"

#include <algorithm>
#include <functional>

#include "generators/ir/arrays.h"
#include "generators/ir/code_frame.h"
#include "generators/ir/constants.h"
#include "generators/ir/layer_output.h"
#include "generators/kernels/winograd_transforms.h"
#include "generators/lowering/group_lowering.h"
#include "scheduler/schedule/kernels/layout/winograd_map.h"
#include "scheduler/schedule/problem.h"

namespace laminate {

using namespace Halide::Internal;
using ir::broadcast;
using ir::lanes_from;
using ir::size;
using ir::Values;

namespace {

constexpr int64_t rows_of_tile = WinogradMapLayout::rows_of_tile;
constexpr int64_t patch_rows = winograd::patch_rows(rows_of_tile);
constexpr int64_t frequencies = winograd::frequencies(rows_of_tile);
static_assert(winograd::columns == WinogradMapLayout::columns_of_tile &&
              frequencies == WinogradMapLayout::frequencies);

class WinogradMap {
public:
    WinogradMap(LayerOutput output, const WinogradMapLayout& at)
        : output_(std::move(output)), lanes_(at.lanes), at_(at) {}

    GroupCode code() {
        pack();
        const int64_t channel_parts = at_.channel_parts;
        const auto bound = [](const char* name) { return Variable::make(Halide::Int(32), name); };
        const Expr begin = bound(argument::strip_begin);
        const Expr end = bound(argument::strip_end);
        const Stmt body = loop(
            ".chunk",
            {simplify(begin / size(channel_parts)),
             simplify((end + size(channel_parts - 1)) / size(channel_parts))},
            [&](const Expr& chunk) {
                const Expr first = simplify(Halide::max(begin - chunk * size(channel_parts), 0));
                const Expr last =
                    simplify(Halide::min(end - chunk * size(channel_parts), size(channel_parts)));
                const Interval blocks{simplify(first * size(at_.blocks) / size(channel_parts)),
                                      simplify(last * size(at_.blocks) / size(channel_parts))};
                const Expr pair = simplify(chunk * size(at_.chunk_pairs));
                return ir::sequence({patches(pair), loop(".z", blocks, [&](const Expr& z) {
                                         return output_block(z, pair);
                                     })});
            });
        return output_.code(body, std::move(constants_), scratch_,
                            at_.scratch_elements() * bytes_per_element, at_.parts());
    }

private:
    using Make = std::function<Stmt(Expr)>;

    [[nodiscard]] Stmt loop(const std::string& name, const Interval& range,
                            const Make& make) const {
        return GroupLowering::for_each(p_.name + name, range, make);
    }
    std::string constant(const std::string& name, const std::vector<float>& values) {
        return constants_.append(unique_name(p_.name + name), values);
    }
    /// Weights as [block][input channel][row and column of the kernel][output channel of the
    /// block].
    void pack() {
        constexpr int64_t taps = winograd::kernel_size * winograd::kernel_size;
        const std::vector<float> canonical = canonical_weights(layer_, p_);
        std::vector<float> packed(static_cast<size_t>(at_.blocks * at_.block * p_[Dim::i] * taps),
                                  0.0F);
        for (int64_t z = 0; z < p_[Dim::z]; ++z) {
            for (int64_t i = 0; i < p_[Dim::i]; ++i) {
                for (int64_t n = 0; n < taps; ++n) {
                    const int64_t to =
                        ((z / at_.block * p_[Dim::i] + i) * taps + n) * at_.block + z % at_.block;
                    packed[static_cast<size_t>(to)] =
                        canonical[static_cast<size_t>((z * p_[Dim::i] + i) * taps + n)];
                }
            }
        }
        weights_ = constant(".packed", packed);
        bias_ = constant(".bias", padded(canonical_bias(layer_, p_), at_.block));
        output_.pack(at_.block, constants_);
    }

    // ---- patches

    /// V of the pairs of rows from `first` on.
    [[nodiscard]] Stmt patches(const Expr& first) const {
        return loop(
            ".pair", {0, size(ceil_div(at_.chunk_pairs, at_.pairs_of_vector))},
            [&](const Expr& vector) {
                const Expr pair = simplify(vector * size(at_.pairs_of_vector));
                Values name(p_.name + ".row");
                std::vector<Expr> begins,
                    insides;  // of the rows that the pairs read, one after the other
                for (int64_t r = 0;
                     r < at_.pairs_of_vector * rows_of_tile + winograd::kernel_size - 1; ++r) {
                    const Expr row =
                        simplify((first + pair) * size(rows_of_tile) + size(r - p_.y().pad_begin));
                    insides.push_back(name(row >= 0 && row < size(p_.y().in)));
                    begins.push_back(
                        name(Halide::clamp(row, 0, size(p_.y().in - 1)) * size(p_.x().in)));
                }
                return name.around(loop(".part", {0, size(at_.input_parts)}, [&](const Expr& part) {
                    const Expr first_channel = simplify(part * size(at_.inputs));
                    return loop(".i", {0, inputs_from(first_channel)}, [&](const Expr& i) {
                        std::vector<Stmt> all;
                        for (int64_t x = 0; x < at_.row_tiles; x += at_.slots) {
                            all.push_back(patch(simplify(first_channel + i),
                                                simplify(patches_of(part) + i * size(at_.tiles)),
                                                pair, x, begins, insides));
                        }
                        return ir::sequence(all);
                    });
                }));
            });
    }

    /// Where V of a part of the input channels begins; frequencies of a part follow each other, for
    /// that is the order in which they are read.
    [[nodiscard]] Expr patches_of(const Expr& part) const {
        return part * size(frequencies * at_.patch_frequency);
    }
    /// How many of a part's input channels there are, the first given.
    [[nodiscard]] Expr inputs_from(const Expr& first) const {
        return simplify(Halide::min(size(p_[Dim::i]) - first, size(at_.inputs)));
    }

    /// A vector of patches of input channel i into V's row `to`: those from tile x of their rows
    /// on, of several pairs.
    [[nodiscard]] Stmt patch(const Expr& i, const Expr& to, const Expr& pair, int64_t x,
                             const std::vector<Expr>& begins,
                             const std::vector<Expr>& insides) const {
        Values name(p_.name + ".patch");
        winograd::Patch d;
        const int64_t width = at_.slots * winograd::columns;
        const Expr plane = name(i * size(p_.y().in * p_.x().in));
        for (int64_t r = 0; r < patch_rows; ++r) {
            for (int64_t c = 0; c < winograd::patch_columns; c += winograd::columns) {
                std::vector<Expr> parts;
                for (int64_t pair_of_vector = 0; pair_of_vector < at_.pairs_of_vector;
                     ++pair_of_vector) {
                    const auto row = static_cast<size_t>(pair_of_vector * rows_of_tile + r);
                    parts.push_back(
                        name(row_part(plane + begins[row], insides[row],
                                      x * winograd::columns + c - p_.x().pad_begin, width)));
                }
                const Expr wide = parts.size() == 1 ? parts.front() : Shuffle::make_concat(parts);
                for (int64_t m = c; m < std::min(winograd::patch_columns, c + winograd::columns);
                     ++m) {
                    d[static_cast<size_t>(r)][static_cast<size_t>(m)] = name(Shuffle::make_slice(
                        wide, static_cast<int>(m - c), static_cast<int>(winograd::columns),
                        static_cast<int>(lanes_)));
                }
            }
        }
        d = winograd::of_patch(name, d, rows_of_tile);
        std::vector<Stmt> stores;
        for (int64_t f = 0; f < frequencies; ++f) {
            const Expr& v = d[static_cast<size_t>(f / winograd::patch_columns)]
                             [static_cast<size_t>(f % winograd::patch_columns)];
            const auto put = [&](const Expr& value, const Expr& tile) {
                const Expr index = simplify(to + tile) + size(f * at_.patch_frequency);
                stores.push_back(ir::store(scratch_, value, lanes_from(index, value.type().lanes()),
                                           ir::Alignment::element));
            };
            if (at_.pairs_of_vector == 1 || at_.slots == at_.row_tiles) {
                put(v, simplify(pair * size(at_.row_tiles) + size(x)));
                continue;
            }
            // In this order: what a part has beyond the last tile of its rows belongs to the next
            // rows.
            for (int64_t n = 0; n < at_.pairs_of_vector; ++n) {
                put(Shuffle::make_slice(v, static_cast<int>(n * at_.slots), 1,
                                        static_cast<int>(at_.slots)),
                    simplify((pair + size(n)) * size(at_.row_tiles)));
            }
        }
        return name.around(ir::sequence(stores));
    }

    /// Columns from `column` on of the row that begins at element `begin`; zero where there is no
    /// picture.
    [[nodiscard]] Expr row_part(const Expr& begin, const Expr& is_inside, int64_t column,
                                int64_t width) const {
        const int64_t first = std::max<int64_t>(0, -column);
        const int64_t end = std::min(width, p_.x().in - column);
        const Expr zero = make_zero(Halide::Float(32, static_cast<int>(width)));
        if (first >= end) return zero;
        const Expr index = lanes_from(begin + size(column), width);
        Expr value;
        if (first == 0 && end == width) {
            value = ir::load("X", index, ir::Alignment::element);
        } else {
            const Expr lane = lanes_from(0, width);
            const Expr is_column =
                lane >= broadcast(size(first), width) && lane < broadcast(size(end), width);
            value = Halide::select(is_column,
                                   ir::load("X", index, ir::Alignment::element, is_column), zero);
        }
        return Halide::select(broadcast(is_inside, width), value, zero);
    }

    // ---- products

    [[nodiscard]] Stmt output_block(const Expr& z, const Expr& pair) const {
        const Expr pairs = simplify(Halide::min(size(at_.pairs) - pair, size(at_.chunk_pairs)));
        const Stmt products = loop(".part", {0, size(at_.input_parts)}, [&](const Expr& part) {
            const Expr first = simplify(part * size(at_.inputs));
            const Expr count = inputs_from(first);
            const Expr blocks_of_tiles =
                simplify((pairs * size(at_.row_tiles) + size(at_.tile - 1)) / size(at_.tile));
            const Stmt multiply = loop(".f", {0, size(frequencies)}, [&](const Expr& f) {
                return loop(".t", {0, blocks_of_tiles}, [&](const Expr& t) {
                    return sums(f, simplify(t * size(at_.tile)), count, part);
                });
            });
            return ir::sequence(
                {loop(".ui", {0, count},
                      [&](const Expr& i) { return transformed_weights(z, first, i); }),
                 multiply});
        });
        return ir::sequence({products, outputs(z, pair, pairs)});
    }

    [[nodiscard]] Stmt transformed_weights(const Expr& z, const Expr& first, const Expr& i) const {
        constexpr int64_t n = winograd::kernel_size;
        std::vector<Stmt> all;
        for (int64_t v = 0; v < at_.vectors; ++v) {
            Values name(p_.name + ".weights");
            winograd::Kernel<Expr> g;
            for (int64_t tap = 0; tap < n * n; ++tap) {
                const Expr index = (z * size(p_[Dim::i]) + first + i) * size(n * n * at_.block) +
                                   size(tap * at_.block + v * lanes_);
                g[static_cast<size_t>(tap / n)][static_cast<size_t>(tap % n)] =
                    name(ir::load(weights_, lanes_from(index, lanes_)));
            }
            const winograd::Patch u = winograd::of_kernel(g, rows_of_tile, [&](const Expr& value) {
                return name(Halide::strict_float(value));
            });
            std::vector<Stmt> stores;
            for (int64_t f = 0; f < frequencies; ++f) {
                const Expr& value = u[static_cast<size_t>(f / winograd::patch_columns)]
                                     [static_cast<size_t>(f % winograd::patch_columns)];
                stores.push_back(ir::store(
                    scratch_, value,
                    lanes_from(i * size(at_.block) +
                                   size(at_.weights + f * at_.weight_frequency + v * lanes_),
                               lanes_)));
            }
            all.push_back(name.around(ir::sequence(stores)));
        }
        return ir::sequence(all);
    }

    /// Adds to at_.tile tiles of M the products of the `count` input channels of a part.
    [[nodiscard]] Stmt sums(const Expr& f, const Expr& tile, const Expr& count,
                            const Expr& part) const {
        Values once(p_.name + ".base");
        const Expr patches = once(patches_of(part) + f * size(at_.patch_frequency) + tile);
        const Expr kernel = once(f * size(at_.weight_frequency) + size(at_.weights));
        const Expr to =
            once(f * size(at_.product_frequency) + tile * size(at_.block) + size(at_.products));
        const auto product = [&](int64_t v, int64_t t) {
            return lanes_from(to + size(t * at_.block + v * lanes_), lanes_);
        };
        const ir::SumTerm term{
            const_true(), count,
            [&](const Expr& i, int64_t v) {
                return ir::load(
                    scratch_, lanes_from(kernel + i * size(at_.block) + size(v * lanes_), lanes_));
            },
            [&](const Expr& i, int64_t t) {
                return ir::load(scratch_, patches + i * size(at_.tiles) + size(t));
            }};
        const auto start = [&](int64_t v, int64_t t) -> Expr {
            const Expr zero = make_zero(Halide::Float(32, static_cast<int>(lanes_)));
            return at_.input_parts == 1 ? zero
                                        : Halide::select(broadcast(part > 0, lanes_),
                                                         ir::load(scratch_, product(v, t)), zero);
        };
        return once.around(ir::sums_of_products(
            p_.name, {lanes_, at_.vectors, at_.tile}, {term},
            [&](int64_t v, int64_t t, const Expr& sum) {
                return ir::store(scratch_, sum, product(v, t));
            },
            start));
    }

    // ---- outputs

    [[nodiscard]] Stmt outputs(const Expr& z, const Expr& pair, const Expr& pairs) const {
        return loop(".out", {0, pairs}, [&](const Expr& n) {
            return loop(".x", {0, size(at_.row_tiles)}, [&](const Expr& x) {
                std::vector<Stmt> all;
                for (int64_t v = 0; v < at_.vectors; ++v)
                    all.push_back(output(z, v, simplify(n * size(at_.row_tiles) + x),
                                         simplify((pair + n) * size(rows_of_tile)), x));
                return ir::sequence(all);
            });
        });
    }

    /// A tile of a vector of output channels: four columns of each channel at once.
    [[nodiscard]] Stmt output(const Expr& z, int64_t v, const Expr& tile, const Expr& row,
                              const Expr& x) const {
        constexpr int64_t columns = winograd::columns;
        Values name(p_.name + ".product");
        winograd::Patch m;
        for (int64_t f = 0; f < frequencies; ++f) {
            const Expr index = simplify(tile * size(at_.block)) +
                               size(at_.products + f * at_.product_frequency + v * lanes_);
            m[static_cast<size_t>(f / winograd::patch_columns)]
             [static_cast<size_t>(f % winograd::patch_columns)] =
                 name(ir::load(scratch_, lanes_from(index, lanes_)));
        }
        const winograd::Outputs outputs = winograd::of_products(name, m, rows_of_tile);
        const Expr first = simplify(z * size(at_.block) + size(v * lanes_));
        const Expr column = simplify(x * size(columns));
        std::vector<Stmt> rows;
        for (int64_t r = 0; r < rows_of_tile; ++r) {
            std::vector<Expr> results;
            const Expr channels = lanes_from(first, lanes_);
            for (const Expr& sum : outputs[static_cast<size_t>(r)])
                results.push_back(
                    name(output_.activated(channels, sum + ir::load(bias_, channels))));
            const Expr all = name(Shuffle::make_interleave(results));
            std::vector<Stmt> stores;
            for (int64_t channel = 0; channel < lanes_; ++channel) {
                const Expr value = Shuffle::make_slice(all, static_cast<int>(channel * columns), 1,
                                                       static_cast<int>(columns));
                const Expr to = lanes_from(
                    simplify(((first + size(channel)) * size(p_[Dim::y]) + row + size(r)) *
                                 size(p_[Dim::x]) +
                             column),
                    columns);
                const Expr number = simplify(first + size(channel));
                Stmt store = output_.store_activated(number, value, to);
                if (p_[Dim::x] % columns != 0) {
                    const Stmt part = output_.store_activated(
                        number, value, to,
                        lanes_from(column, columns) < broadcast(size(p_[Dim::x]), columns));
                    store =
                        IfThenElse::make(column + size(columns) <= size(p_[Dim::x]), store, part);
                }
                if (p_[Dim::z] % at_.block != 0)
                    store = ir::guarded(first + size(channel) < size(p_[Dim::z]), store);
                stores.push_back(store);
            }
            const bool may_be_missing = r > 0 && p_[Dim::y] % rows_of_tile != 0;
            rows.push_back(may_be_missing
                               ? ir::guarded(row + size(r) < size(p_[Dim::y]), ir::sequence(stores))
                               : ir::sequence(stores));
        }
        return name.around(ir::sequence(rows));
    }

    LayerOutput output_;
    const LayerProblem& p_ = output_.problem();
    const Layer& layer_ = output_.layer();
    int64_t lanes_;
    const WinogradMapLayout& at_;
    std::string weights_, bias_;
    NamedConstants constants_;
    std::string scratch_ = unique_name("transforms");
};

}  // namespace

GroupCode winograd_map_code(LayerOutput output, const WinogradMapLayout& at) {
    return WinogradMap(std::move(output), at).code();
}

}  // namespace laminate
