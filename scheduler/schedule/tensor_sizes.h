// The dims of every tensor of a network as formulas of its input's size, for code of any size.
//
//   const TensorSizes sizes(network);          // network at some size
//   sizes.extent(t, Dim::y)                    // SizeFormula, e.g. (h + 1)/2
//   sizes.network_at({1, 270, 480})            // the network at another size
//
// Layers give the formulas, one after the other; that they hold is checked at other sizes by
// infer_output_dims(). A network whose shapes depend on the size in another way is refused.
#pragma once

#include <cstdint>
#include <vector>

#include "base/indexed.h"
#include "base/size_formula.h"
#include "nets/network/network.h"
#include "scheduler/schedule/problem.h"

namespace laminate {

class TensorSizes {
public:
    /// Images, rows and columns of every 4-D input are variables, and are alike in all of them.
    /// Throws InputError that names the network, the layer or input and why sizes cannot be open:
    ///   fsrcnn: cannot be of any size: layer fc1: its input of 512 features is a map of h x w
    explicit TensorSizes(const Network& network);

    [[nodiscard]] const IndexVector<std::vector<SizeFormula>, TensorId>& dims() const {
        return dims_;
    }
    /// Of the rows (Dim::y) or columns (Dim::x) of a feature map; 1 of another tensor.
    [[nodiscard]] SizeFormula extent(TensorId tensor, Dim d) const;
    /// Images, rows and columns that the network has as it is.
    [[nodiscard]] const SizeValues& reference() const { return reference_; }
    /// The network with the dims of another size, and with the operators of that size
    /// (of_another_size()). Throws InputError where a dim is not positive.
    [[nodiscard]] Network network_at(const SizeValues& size) const;
    /// Fewest rows and columns from which on every layer that is schedulable at the network's own
    /// size is so.
    [[nodiscard]] SizeValues least() const { return least_; }

private:
    void find_reference();
    [[nodiscard]] std::vector<SizeFormula> output_of(const Layer& layer) const;
    void check_layer(const Layer& layer) const;
    [[nodiscard]] bool is_possible(const SizeValues& size) const;

    const Network& network_;
    IndexVector<std::vector<SizeFormula>, TensorId> dims_;
    SizeValues reference_;
    SizeValues least_;
};

/// Throws InputError naming the first layer whose attributes differ between a network at two sizes:
/// padding that is made from the size, for example.
void require_same_layers(const Network& network, const Network& at_another_size);

}  // namespace laminate
