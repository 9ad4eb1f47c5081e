// Part of the training step (kernel.hpp): the hidden layers after the first.
//
// Layer i = 2 … depth − 1 has a matrix H = Hᵢ. For each block of rows:
//
//     forward    Z   = X · Hᵀ,  Y = φ(dropout(Z))    [R, N]   X: the layer before
//     backward   dZ  = dropout, φ' of dY             [R, N]
//                dH += dZᵀ · X                       [N, N]
//                dX  = dZ · H                        [R, N]   dY of the layer before
//
// H is kept as W is: a row for each neuron that it leads to, in panels of the neurons that it comes from. Then a panel of X
// is all that its panels of dH and dX need, and dH is written in the order in which it lies in memory. Once dH has its
// share of a panel of X, nobody reads that panel any more but φ', so dZ of the layer before takes its place: the way back
// needs no memory of its own, and more of a block stays in the second cache.
#pragma once

#include "part.hpp"

namespace grokscope::LEVEL {

class DeepLayers : Part {
public:
    DeepLayers(const Config& config, Parameters& weights, Parameters& gradients)
        : Part(config, weights, gradients), layers_(size_t(config.depth - 2)) {
        for (Layer& layer : layers_) {
            layer.transposed = Rows(config.width, width_);
            layer.outputs = Rows(BLOCK_ROWS, width_);
            if (config.activation == Activation::quadratic) layer.slopes = Rows(BLOCK_ROWS, width_);
            if (config.dropout_threshold > 0) layer.mask = Buffer(BLOCK_ROWS * width_);
        }
    }

    bool empty() const { return layers_.empty(); }

    void transpose_weights() {
        for (size_t i = 0; i < layers_.size(); i++)
            transpose_panels(weights_.hidden(long(i) + 2), config_.width, config_.width,
                             layers_[i].transposed.product());
    }

    void draw_masks(const std::vector<uint32_t>& places, long start, long count, long step) {
        for (size_t i = 0; i < layers_.size(); i++) draw_mask(layers_[i].mask, places, start, 0, count, step, i + 1);
    }

    // From the first hidden layer's outputs to those of the last.
    Rows* forward(Rows& first, long rows, bool training) {
        Rows* inputs = &first;
        for (Layer& layer : layers_) {
            for (long k = 0; k < width_; k += PANEL) {
                // Whole panels, so that padding is written too: zeros.
                multiply(rows, PANEL, config_.width, inputs->left(), {layer.transposed.at(0, k), PANEL, 0},
                         layer.outputs.product(0, k), false);
                specialise(training, [&](auto relu, auto masked) { activate<relu, masked>(layer, rows, k); });
            }
            inputs = &layer.outputs;
        }
        return inputs;
    }

    // The panel of neuron k of the last layer's dY is in `upstream`: makes it dZ.
    void take(Rows& upstream, long rows, long k) { differentiate(layers_.back(), upstream, rows, k); }

    // Once the last layer has taken all of its panels: back to the first hidden layer, whose dY is handed on panel by
    // panel, by `hand_down(k)` while the panel of neuron k is in `upstream`.
    template <typename HandDown>
    void backward(Rows& first, Rows& upstream, long rows, HandDown hand_down) {
        const long N = config_.width;
        for (size_t i = layers_.size(); i-- > 0;) {
            Rows &dz = layers_[i].outputs, &x = i > 0 ? layers_[i - 1].outputs : first;
            for (long k = 0; k < width_; k += PANEL) {
                const long panel = k * weights_.hidden_rows;
                const float* h = weights_.hidden(long(i) + 2) + panel;
                float* dh = gradients_.hidden(long(i) + 2) + panel;
                for (long j = 0; j < N; j += PANEL)
                    multiply(std::min(PANEL, N - j), PANEL, rows, {dz.at(0, j), 1, PANEL, PANEL * PANEL},
                             {x.at(0, k), PANEL, 0}, {dh + j * PANEL, PANEL, 0}, true);
                multiply(rows, std::min(PANEL, N - k), N, dz.left(), {h, PANEL, 0}, upstream.product(), false);
                if (i > 0)
                    differentiate(layers_[i - 1], upstream, rows, k);
                else
                    hand_down(k);
            }
        }
    }

private:
    struct Layer {
        Rows transposed;  // Hᵀ [N, N]: what the product of the way forward reads
        Rows outputs;     // Y [R, N], and dZ on the way back
        Rows slopes;      // quadratic only: ∂Y/∂Z [R, N]; that of relu follows from Y
        Buffer mask;      // [R, width_], plain rows; only with dropout
    };

    // What a kept neuron's pre-activation is multiplied by. A dropped one has the slope 0 anyway: its factor is not
    // needed.
    float kept_factor() const { return config_.dropout_threshold > 0 ? float(config_.dropout_scale) : 1.0f; }

    // Y = φ(dropout(Z)) in place, for the panel of neuron k.
    template <bool RELU, bool MASKED>
    void activate(Layer& layer, long rows, long k) {
        const long width = width_;
        const float *mask = layer.mask.data() + k, slope = 2 * kept_factor();
        float *y = layer.outputs.at(0, k), *slopes = RELU ? nullptr : layer.slopes.at(0, k);
        for (long row = 0; row < rows; row++, y += PANEL, mask += MASKED ? width : 0, slopes += RELU ? 0 : PANEL)
#pragma GCC unroll 8
            for (long at = 0; at < PANEL; at += VECTOR_FLOATS) {
                Vector z = load(y + at);
                if constexpr (MASKED) z *= load(mask + at);
                // Written so that NaN stays NaN: a product of weights that overflow is how a diverging run shows.
                if constexpr (RELU) store(y + at, z <= 0 ? Vector{} : z);
                if constexpr (!RELU) store(slopes + at, slope * z), store(y + at, z * z);
            }
    }

    // dZ = φ'∘dropout of the panel of dY in `upstream`. The slope of padding is 0, whatever `upstream` holds there.
    void differentiate(Layer& layer, Rows& upstream, long rows, long k) {
        const bool relu = config_.activation == Activation::relu;
        const float *dy = upstream.at(0, 0), *slopes = relu ? nullptr : layer.slopes.at(0, k), kept = kept_factor();
        float* out = layer.outputs.at(0, k);
        for (long at = 0; at < rows * PANEL; at += VECTOR_FLOATS) {
            const Vector d = load(dy + at);
            store(out + at, !relu ? load(slopes + at) * d : load(out + at) > 0 ? kept * d : Vector{});
        }
    }

    std::vector<Layer> layers_;
};

}  // namespace grokscope::LEVEL
