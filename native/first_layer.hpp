// Part of the training step (kernel.hpp): the first hidden layer, H = φ(dropout(U[m] + V[n])).
#pragma once

#include "part.hpp"

namespace grokscope::LEVEL {

class FirstLayer : Part {
public:
    FirstLayer(const Config& config, Parameters& weights, Parameters& gradients, long rows)
        : Part(config, weights, gradients), hidden_(rows, width_) {
        if (config.dropout_threshold > 0) mask_ = Buffer(rows * width_);
    }

    Rows& hidden() { return hidden_; }

    // Of rows start … start + count of the pairs, for rows first … of hidden().
    void draw_masks(const std::vector<uint32_t>& places, long start, long first, long count, long step) {
        draw_mask(mask_, places, start, first, count, step, 0);
    }
    void forward(const Examples& pairs, long start, long first, long count, bool training) {
        forward(pairs, start, first, count, training, {0, width_});
    }
    void forward(const Examples& pairs, long start, long first, long count, bool training, Neurons neurons) {
        const int32_t *m = pairs.m.data() + start, *n = pairs.n.data() + start;
        specialise(training, [&](auto relu, auto masked) { forward_rows<relu, masked>(m, n, first, count, neurons); });
    }

    // dU[m] and dV[n] += `upstream` through φ and the dropout mask, for the panel of neuron k.
    void backward(const Examples& pairs, long start, long first, long count, long k, const float* upstream) {
        const int32_t *m = pairs.m.data() + start, *n = pairs.n.data() + start;
        specialise(true, [&](auto relu, auto masked) { backward_rows<relu, masked>(m, n, first, count, k, upstream); });
    }

private:
    // Stores through vector types may alias anything, so what a loop needs of the object is in local variables.
    template <bool RELU, bool MASKED>
    void forward_rows(const int32_t* m, const int32_t* n, long first, long count, Neurons neurons) {
        for (long k = neurons.first; k < neurons.end; k += PANEL) {
            const long width = width_, panel = k / PANEL * matrix_panel_;
            const float *u = weights_.u() + panel, *v = weights_.v() + panel, *mask = mask_row<MASKED>(first, k);
            float* h = hidden_.at(first, k);
            for (long row = 0; row < count; row++, h += PANEL, mask += MASKED ? width : 0) {
                const float *own = u + m[row] * PANEL, *other = v + n[row] * PANEL;
#pragma GCC unroll 8
                for (long at = 0; at < PANEL; at += VECTOR_FLOATS) {
                    Vector z = load(own + at) + load(other + at);
                    if constexpr (MASKED) z *= load(mask + at);
                    if constexpr (RELU) store(h + at, z > 0 ? z : Vector{});
                    if constexpr (!RELU) store(h + at, z * z);
                }
            }
        }
    }

    template <bool RELU, bool MASKED>
    void backward_rows(const int32_t* m, const int32_t* n, long first, long count, long k, const float* d) {
        const long width = width_, panel = k / PANEL * matrix_panel_;
        const float *u = weights_.u() + panel, *v = weights_.v() + panel, *mask = mask_row<MASKED>(first, k);
        float *du = gradients_.u() + panel, *dv = gradients_.v() + panel;
        // Rows with the same m, which a full batch has side by side, add up in registers.
        for (long row = 0; row < count;) {
            const int32_t own = m[row];
            Vector weights[TILE_VECTORS], sums[TILE_VECTORS] = {};
            for (int i = 0; i < TILE_VECTORS; i++) weights[i] = load(u + own * PANEL + i * VECTOR_FLOATS);
            for (; row < count && m[row] == own; row++, d += PANEL, mask += MASKED ? width : 0) {
                const float* other = v + n[row] * PANEL;
                float* target = dv + n[row] * PANEL;
#pragma GCC unroll 8
                for (int i = 0; i < TILE_VECTORS; i++) {
                    const long at = i * VECTOR_FLOATS;
                    Vector z = weights[i] + load(other + at), dz = load(d + at), factor{};
                    if constexpr (MASKED) factor = load(mask + at), z *= factor;
                    if constexpr (RELU) dz = z > 0 ? dz : Vector{};
                    if constexpr (!RELU) dz *= z + z;
                    if constexpr (MASKED) dz *= factor;
                    sums[i] += dz;
                    store(target + at, load(target + at) + dz);
                }
            }
            for (int i = 0; i < TILE_VECTORS; i++) add(du + own * PANEL + i * VECTOR_FLOATS, sums[i]);
        }
    }

    template <bool MASKED>
    const float* mask_row(long row, long k) const {
        return mask_.data() + (MASKED ? row * width_ + k : 0);
    }

    Rows hidden_;
    Buffer mask_;  // [R, width_], plain rows; only with dropout
};

}  // namespace grokscope::LEVEL
