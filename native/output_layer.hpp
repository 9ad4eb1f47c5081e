// Part of the training step (kernel.hpp, transformer.hpp): the output layer F = Y · Wᵀ / divisor, and the loss. W and its
// gradient have a row for each label, in panels.
#pragma once

#include "floats.hpp"
#include "part.hpp"

namespace grokscope::LEVEL {

class OutputLayer {
public:
    // It has room for the logits of so many rows.
    OutputLayer(const Config& config, const float* weights, float* gradients, long neurons, long rows = BLOCK_ROWS)
        : config_(config),
          neurons_(neurons),
          weights_(weights),
          gradients_(gradients),
          p_(config.modulus),
          outputs_(odd_lines(p_)),
          width_(whole_panels(neurons)),
          matrix_panel_(panel_rows(p_) * PANEL),
          logits_(rows * outputs_),
          transposed_w_(width_ * outputs_) {}
    OutputLayer(const OutputLayer&) = delete;
    OutputLayer& operator=(const OutputLayer&) = delete;

    // Wᵀ / divisor in panels of labels, which is what the product of the way forward reads.
    void transpose_weights() {
        transpose_panels(weights_, p_, neurons_, {transposed_w_.data(), PANEL, width_ * PANEL},
                         float(1 / config_.logit_divisor));
    }

    // The logits of rows first … from the rows of `inputs`.
    void forward(long rows, Grid inputs, long first = 0) { forward(rows, inputs, first, {0, width_}); }
    // What some neurons contribute; those before them have contributed.
    void forward(long rows, Grid inputs, long first, Neurons neurons) {
        multiply_weights(rows, inputs, neurons, logits(first));
    }
    // The product itself, in plain rows as far apart as those of the logits.
    void multiply_weights(long rows, Grid inputs, Neurons neurons, float* out) {
        // The columns that do not fill a vector (one of 97) are cheaper as inner products with rows of W.
        const long rest = p_ % VECTOR_FLOATS, columns = rest <= VECTOR_FLOATS / 2 ? p_ - rest : p_;
        const long depth = std::min(neurons.end, neurons_) - neurons.first;
        multiply(rows, columns, depth, inputs.left(neurons.first),
                 {transposed_w_.data() + neurons.first * PANEL, PANEL, width_ * PANEL},
                 {out, outputs_, PANEL}, neurons.first > 0);
        for (long q = columns; q < p_; q++) {
            long row = 0;
            for (; row + 4 <= rows; row += 4) logit_column<4>(inputs, row, q, neurons, out + row * outputs_ + q);
            for (; row < rows; row++) logit_column<1>(inputs, row, q, neurons, out + row * outputs_ + q);
        }
    }

    // The logits of all rows, and later what they have become.
    Grid rows() { return {logits_.data(), outputs_, PANEL}; }

    // The predicted label of a row, and its loss. Its logits are used up.
    std::pair<long, double> evaluate(long row, long label) {
        float *f = logits(row), total;
        const long predicted = std::max_element(f, f + p_) - f;
        return {predicted, row_loss(f, label, f, total)};
    }

    // Turns a row of logits into r = ∂loss/∂(Y · Wᵀ), and gives its loss. `count` is the number of rows of the whole step.
    double residual(long row, long label, long count) {
        float *f = logits(row), total = 1;
        const double loss = row_loss(f, label, f, total), divided = double(count) * config_.logit_divisor;
        const float factor =
            config_.loss == Loss::mse ? float(2 / (divided * double(p_))) : float(1 / (double(total) * divided));
        for (long q = 0; q < p_; q++) f[q] *= factor;
        f[label] -= config_.loss == Loss::mse ? factor : float(1 / divided);
        return loss;
    }

    // Turns logits into the residual of −½‖f‖² instead, which takes pairs out of the full grid.
    void negate(long rows) {
        for (long i = 0; i < rows * outputs_; i++) logits_.data()[i] = -logits_.data()[i];
    }

    // dW += rᵀ·Y and dY = r·W for the panel of neuron k, now that the logits of rows first … have become r. dY goes to the
    // first `columns` of `upstream`.
    void backward(long rows, Grid inputs, long k, float* upstream, long columns, long first = 0) {
        const long panel = k / PANEL * matrix_panel_;
        multiply(p_, std::min(PANEL, neurons_ - k), rows, {logits(first), 1, outputs_, PANEL * outputs_},
                 inputs.right(k), {gradients_ + panel, PANEL, 0}, true);
        multiply(rows, columns, p_, {logits(first), outputs_, 1, PANEL}, {weights_ + panel, PANEL, 0},
                 {upstream, PANEL, 0}, false);
    }

private:
    float* logits(long row) { return logits_.data() + row * outputs_; }

    template <int COUNT>
    void logit_column(Grid inputs, long row, long q, Neurons neurons, float* out) {
        Vector sums[COUNT] = {};
        for (long k = neurons.first; k < neurons.end; k += PANEL) {
            const float *w = weights_ + k / PANEL * matrix_panel_ + q * PANEL, *y = inputs.at(row, k);
#pragma GCC unroll 8
            for (long at = 0; at < PANEL; at += VECTOR_FLOATS)
#pragma GCC unroll 4
                for (int i = 0; i < COUNT; i++) sums[i] += load(w + at) * load(y + i * inputs.row + at);
        }
        const float factor = float(1 / config_.logit_divisor);
        for (int i = 0; i < COUNT; i++)
            out[i * outputs_] = (neurons.first > 0 ? out[i * outputs_] : 0) + factor * sum(sums[i]);
    }

    // The loss of a row of logits. With cross-entropy, `powers` is left with exp(f − max f), and `total` with their sum.
    double row_loss(const float* f, long label, float* powers, float& total) const {
        if (config_.loss == Loss::mse) {
            Vector squares{};
            long q = 0;
            for (; q + VECTOR_FLOATS <= p_; q += VECTOR_FLOATS) squares += load(f + q) * load(f + q);
            double norm = sum(squares);
            for (; q < p_; q++) norm += f[q] * f[q];
            return (norm - 2 * double(f[label]) + 1) / double(p_);  // Σ(f − e_y)² = Σf² − 2f_y + 1
        }
        // Lanes apart: one chain of 97 additions would wait for each of them.
        const float own = f[label];
        Vector highest = Vector{} + f[0], sums{};
        long q = 0;
        for (; q + VECTOR_FLOATS <= p_; q += VECTOR_FLOATS) {
            const Vector next = load(f + q);
            highest = next > highest ? next : highest;
        }
        float largest = highest[0];
        for (int i = 1; i < VECTOR_FLOATS; i++) largest = std::max(largest, highest[i]);
        for (; q < p_; q++) largest = std::max(largest, f[q]);
        for (q = 0; q < p_; q++) powers[q] = exp_negative(f[q] - largest);
        for (q = 0; q + VECTOR_FLOATS <= p_; q += VECTOR_FLOATS) sums += load(powers + q);
        total = sum(sums);
        for (; q < p_; q++) total += powers[q];
        return std::log(double(total)) + largest - own;
    }

    const Config& config_;
    const long neurons_;  // that it reads
    const float* weights_;
    float* gradients_;
    const long p_, outputs_, width_, matrix_panel_;  // as parts have them
    Buffer logits_;                                  // [R, outputs_], plain rows; then r
    Buffer transposed_w_;                            // [width_, p] in panels of labels
};

}  // namespace grokscope::LEVEL
