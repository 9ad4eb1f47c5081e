// Part of LevelTrainer (kernel.hpp): the hidden layers after the first.
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

struct DeepLayer {
    Rows transposed;  // Hᵀ [N, N]: what the product of the way forward reads
    Rows outputs;     // Y [R, N], and dZ on the way back
    Rows slopes;      // quadratic only: ∂Y/∂Z [R, N]; that of relu follows from Y
    Buffer mask;      // [R, width_], plain rows; only with dropout
};
std::vector<DeepLayer> deeper_;

void allocate_deeper() {
    deeper_.resize(size_t(config_.depth - 2));
    for (DeepLayer& layer : deeper_) {
        layer.transposed = Rows(config_.width, width_);
        layer.outputs = Rows(BLOCK_ROWS, width_);
        if (config_.activation == Activation::quadratic) layer.slopes = Rows(BLOCK_ROWS, width_);
        if (config_.dropout_threshold > 0) layer.mask = Buffer(BLOCK_ROWS * width_);
    }
}

// What a kept neuron's pre-activation is multiplied by. A dropped one has the slope 0 anyway: its factor is not needed.
float kept_factor() const { return config_.dropout_threshold > 0 ? float(config_.dropout_scale) : 1.0f; }

void transpose_deeper() {
    for (size_t i = 0; i < deeper_.size(); i++)
        transpose(weights_.hidden(long(i) + 2), config_.width, deeper_[i].transposed.product());
}

// From hidden_ to the outputs of the last hidden layer.
Rows* deeper_layers(long rows, bool training) {
    Rows* inputs = &hidden_;
    for (DeepLayer& layer : deeper_) {
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

// Y = φ(dropout(Z)) in place, for the panel of neuron k.
template <bool RELU, bool MASKED>
void activate(DeepLayer& layer, long rows, long k) {
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

// From dZ of the last hidden layer, which `backpropagate` left in its outputs, to dU and dV.
void backpropagate_deeper(const Examples& pairs, long start, long rows) {
    const long N = config_.width;
    for (long i = long(deeper_.size()); i > 0; i--) {
        Rows &dz = deeper_[size_t(i - 1)].outputs, &x = i > 1 ? deeper_[size_t(i - 2)].outputs : hidden_;
        for (long k = 0; k < width_; k += PANEL) {
            const long panel = k * weights_.hidden_rows;
            const float* h = weights_.hidden(i + 1) + panel;
            float* dh = gradients_.hidden(i + 1) + panel;
            for (long j = 0; j < N; j += PANEL)
                multiply(std::min(PANEL, N - j), PANEL, rows, {dz.at(0, j), 1, PANEL, PANEL * PANEL},
                         {x.at(0, k), PANEL, 0}, {dh + j * PANEL, PANEL, 0}, true);
            multiply(rows, std::min(PANEL, N - k), N, dz.left(), {h, PANEL, 0}, upstream_.product(), false);
            hand_down(i, pairs, start, rows, k);
        }
    }
}

// A panel of dY of the i-th hidden layer is in upstream_: on to dU and dV, or to dZ. The slope of padding is 0, whatever
// upstream_ holds there.
void hand_down(long i, const Examples& pairs, long start, long rows, long k) {
    if (i == 1) return scatter(pairs, start, rows, k, upstream_.at(0, 0));
    DeepLayer& layer = deeper_[size_t(i - 2)];
    const bool relu = config_.activation == Activation::relu;
    const float *dy = upstream_.at(0, 0), *slopes = relu ? nullptr : layer.slopes.at(0, k), kept = kept_factor();
    float* out = layer.outputs.at(0, k);
    for (long at = 0; at < rows * PANEL; at += VECTOR_FLOATS) {
        const Vector d = load(dy + at);
        store(out + at, !relu ? load(slopes + at) * d : load(out + at) > 0 ? kept * d : Vector{});
    }
}
