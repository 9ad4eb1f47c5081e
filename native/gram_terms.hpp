// Part of the full-grid form (full_grid.hpp): the terms of its gradient with Gram matrices,
//
//     dA += 4 A[(WᵀW)∘(BᵀB)],  dB += 4 B[(WᵀW)∘(AᵀA)],  dW += 4 W[(AᵀA)∘(BᵀB)]
//
// A Gram matrix is symmetric and [N, N], which the second cache does not hold. So they are made from one block of neurons to
// another, half of all pairs of blocks, and are used for both gradients at once.
#pragma once

#include "part.hpp"

namespace grokscope::LEVEL {

class GramTerms : Part {
public:
    GramTerms(const Config& config, Parameters& weights, Parameters& gradients)
        : Part(config, weights, gradients),
          u_(weights.u(), gradients.u(), p_),
          v_(weights.v(), gradients.v(), p_),
          w_(weights.w(), gradients.w(), p_),
          mixed_(NEURONS * PANEL),
          tile_(PANEL * PANEL) {}

    void add() {
        const long panels = width_ / PANEL, blocks = (width_ + NEURONS - 1) / NEURONS;
        const auto block = [&](long i) { return Neurons{panels * i / blocks * PANEL, panels * (i + 1) / blocks * PANEL}; };
        for (long i = 0; i < blocks; i++) {
            const Neurons rows = block(i);
            for (Factor* factor : {&u_, &v_, &w_}) copy_plain(*factor, rows);
            for (long j = i; j < blocks; j++) {
                const Neurons columns = block(j);
                for (Factor* factor : {&u_, &v_, &w_}) multiply_gram(*factor, rows, columns);
                add_product(u_, v_, w_, rows, columns);
                add_product(v_, u_, w_, rows, columns);
                add_product(w_, u_, v_, rows, columns);
            }
        }
    }

private:
    static constexpr long NEURONS = 192 / PANEL * PANEL;  // of a block, at most
    static constexpr long PLAIN_ROW = odd_lines(NEURONS);

    // A matrix X of weights, and XᵀX from one block to another.
    struct Factor {
        const float* x;
        float* gradient;
        Buffer plain;  // [p, PLAIN_ROW]: the neurons of the first block
        Rows gram;     // [NEURONS, NEURONS]

        Factor(const float* weights, float* of_weights, long p)
            : x(weights), gradient(of_weights), plain(p * PLAIN_ROW), gram(NEURONS, NEURONS) {}
    };

    void copy_plain(Factor& factor, Neurons neurons) {
        for (long k = neurons.first; k < neurons.end; k += PANEL)
            for (long i = 0; i < p_; i++)
                std::copy_n(factor.x + weights_.place(i, k), PANEL, factor.plain.data() + i * PLAIN_ROW + k - neurons.first);
    }

    // XᵀX; on the diagonal, each panel of columns down to its own rows. The left factor is read across panels, so it is the copy
    // in plain rows.
    void multiply_gram(Factor& factor, Neurons rows, Neurons columns) {
        for (long k = columns.first; k < columns.end; k += PANEL)
            multiply(std::min({k + PANEL, rows.end, config_.width}) - rows.first, PANEL, p_,
                     {factor.plain.data(), 1, PLAIN_ROW, PANEL * PLAIN_ROW}, right_matrix(factor.x + k / PANEL * matrix_panel_),
                     factor.gram.product(0, k - columns.first), false);
    }

    // dX += 4 X·(G∘H) with the Gram matrices G and H of the other two factors.
    void add_product(Factor& to, Factor& g, Factor& h, Neurons rows, Neurons columns) {
        for (long k = columns.first; k < columns.end; k += PANEL) {
            const long at = k - columns.first, computed = std::min({k + PANEL, rows.end, config_.width}) - rows.first;
            multiply_elements(g.gram.at(0, at), h.gram.at(0, at), computed * PANEL, mixed_.data());
            for (long below = k + PANEL; below < rows.end; below += PANEL)
                transpose_elements(g, h, k - rows.first, below, columns, mixed_.data() + (below - rows.first) * PANEL);
            add_mixed(to, rows, k);
        }
        if (rows.first == columns.first) return;
        for (long k = rows.first; k < rows.end; k += PANEL) {
            for (long below = columns.first; below < columns.end; below += PANEL)
                transpose_elements(g, h, k - rows.first, below, columns, mixed_.data() + (below - columns.first) * PANEL);
            add_mixed(to, columns, k);
        }
    }

    // The panel of neuron k of the gradient += the neurons of a block times mixed_.
    void add_mixed(Factor& to, Neurons block, long k) {
        multiply(p_, std::min(PANEL, config_.width - k), std::min(block.end, config_.width) - block.first,
                 left_matrix(to.x + block.first / PANEL * matrix_panel_), {mixed_.data(), PANEL, 0},
                 {to.gradient + k / PANEL * matrix_panel_, PANEL, 0}, true);
    }

    // The transpose of 4 G∘H from a panel of rows to the panel of neuron k.
    void transpose_elements(Factor& g, Factor& h, long row, long k, Neurons columns, float* out) {
        const long at = k - columns.first;
        multiply_elements(g.gram.at(row, at), h.gram.at(row, at), PANEL * PANEL, tile_.data());
        transpose_block(tile_.data(), PANEL, std::min(PANEL, config_.width - k), out);
    }

    static void multiply_elements(const float* x, const float* y, long count, float* out) {
        for (long i = 0; i < count; i += VECTOR_FLOATS) store(out + i, 4 * load(x + i) * load(y + i));
    }

    Factor u_, v_, w_;
    Buffer mixed_;  // a panel of 4 G∘H from a block of neurons
    Buffer tile_;   // from a panel of rows to a panel of columns
};

}  // namespace grokscope::LEVEL
