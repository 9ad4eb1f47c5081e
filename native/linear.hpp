// Parts of a Transformer's step (transformer.hpp): rows of numbers, and a matrix that they are multiplied with.
#pragma once

#include "part.hpp"
#include "layout.hpp"

namespace grokscope::LEVEL {

// Plain rows, where a row's numbers lie side by side across the borders of panels, as attention's heads do.
struct PlainRows {
    Buffer values;
    long row = 0;

    PlainRows() = default;
    PlainRows(long rows, long columns) : row(odd_lines(columns)) { values = Buffer(rows * row); }
    float* at(long i) { return values.data() + i * row; }
    const float* at(long i) const { return values.data() + i * row; }
    Grid grid() { return {values.data(), row, PANEL}; }
};

// `visit(k, at)` for each vector of a row in panels: `at` floats into the panel that begins with column k.
template <typename Visit>
static inline void for_each_vector(long columns, Visit visit) {
    for (long k = 0; k < columns; k += PANEL)
#pragma GCC unroll 8
        for (long at = 0; at < PANEL; at += VECTOR_FLOATS) visit(k, at);
}

// y = x · Wᵀ, where W [outputs, inputs] lies in panels of its inputs.
class Linear {
public:
    Linear(const Place& place, Buffer& weights, Buffer& gradients)
        : outputs_(place.rows),
          inputs_(place.columns),
          panel_(panel_rows(outputs_) * PANEL),
          weights_(weights.data() + place.offset),
          gradients_(gradients.data() + place.offset),
          transposed_(inputs_, whole_panels(outputs_)) {}

    // Before a step: Wᵀ in panels of outputs is what the way forward reads.
    void transpose_weights() { transpose_panels(weights_, outputs_, inputs_, transposed_.product()); }

    // y [R, outputs] (+)= x · Wᵀ
    void forward(long rows, Grid x, Grid y, bool accumulate = false) {
        multiply(rows, outputs_, inputs_, x.left(), transposed_.right(), y.product(), accumulate);
    }
    // The panel of output k only.
    void forward_panel(long rows, Grid x, long k, Grid y) {
        multiply(rows, std::min(PANEL, outputs_ - k), inputs_, x.left(), {transposed_.at(0, k), PANEL, 0}, y.product(k),
                 false);
    }

    // The same for few rows, from W itself: x and y are transposed instead. `turn` comes first, and sums have the same order.
    void turn(long rows, Grid x) {
        if (turned_.values.size() == 0) turned_ = Rows(inputs_, whole_panels(rows)), panel_of_y_ = Rows(PANEL, whole_panels(rows));
        for (long k = 0; k < inputs_; k += PANEL)
            for (long j = 0; j < rows; j += PANEL)
                transpose_block(x.at(j, k), std::min(PANEL, rows - j), std::min(PANEL, inputs_ - k), turned_.at(k, j));
    }
    void turned_forward_panel(long rows, long k, Grid y) {
        const long outputs = std::min(PANEL, outputs_ - k);
        multiply(outputs, rows, inputs_, {weights_ + k * PANEL, PANEL, 1, panel_}, turned_.right(),
                 panel_of_y_.product(), false);
        for (long j = 0; j < rows; j += PANEL)
            transpose_block(panel_of_y_.at(0, j), outputs, std::min(PANEL, rows - j), y.at(j, k));
    }

    // dx [R, inputs] (+)= dy · W
    void backward(long rows, Grid dy, Grid dx, bool accumulate) const {
        multiply(rows, inputs_, outputs_, dy.left(), {weights_, PANEL, panel_}, dx.product(), accumulate);
    }
    // The panel of input k only.
    void backward_panel(long rows, Grid dy, long k, Product dx) const {
        multiply(rows, std::min(PANEL, inputs_ - k), outputs_, dy.left(), {weights_ + k / PANEL * panel_, PANEL, 0}, dx,
                 false);
    }

    // dW (+)= dyᵀ · x
    void add_gradient(long rows, Grid dy, Grid x, bool accumulate = true) {
        for (long k = 0; k < inputs_; k += PANEL) add_gradient_panel(rows, dy, x, k, accumulate);
    }
    // The panel of input k only. A panel of dy and one of x fit into the first cache together.
    void add_gradient_panel(long rows, Grid dy, Grid x, long k, bool accumulate = true) {
        for (long j = 0; j < outputs_; j += PANEL)
            multiply(std::min(PANEL, outputs_ - j), std::min(PANEL, inputs_ - k), rows, dy.transposed(j), x.right(k),
                     {gradients_ + k / PANEL * panel_ + j * PANEL, PANEL, 0}, accumulate);
    }

    // dW += the transpose of what is in these rows [inputs, outputs]
    void add_transposed_gradient(Rows& d) {
        for (long i = 0; i < inputs_; i++)
            for (long j = 0; j < outputs_; j++)
                gradients_[panel_place(j, i, panel_ / PANEL, PANEL)] += d.at(i, j)[j % PANEL];
    }

    long outputs() const { return outputs_; }
    Grid transposed() { return transposed_.grid(); }  // Wᵀ [inputs, outputs]

private:
    const long outputs_, inputs_, panel_;  // panel_: distance of two panels of W
    const float* weights_;
    float* gradients_;
    Rows transposed_;
    Rows turned_, panel_of_y_;  // xᵀ, and a panel of y transposed; only of few rows
};

}  // namespace grokscope::LEVEL
