// Parts of the training step (kernel.hpp, layered.hpp): LayerNorm and BatchNorm of a hidden layer.
#pragma once

#include "part.hpp"

namespace grokscope::LEVEL {

constexpr float NORM_EPSILON = 1e-5f, BATCH_NORM_MOMENTUM = 0.1f;

// What a norm is trained by, and its gradient: [N] each, padded to whole panels.
struct NormArrays {
    const float *scale, *shift;
    float *dscale, *dshift;
};

class LayerNorm {
public:
    LayerNorm(long neurons, NormArrays arrays)
        : neurons_(neurons), width_(whole_panels(neurons)), arrays_(arrays), normalised_(BLOCK_ROWS, width_) {}
    LayerNorm(const LayerNorm&) = delete;
    LayerNorm& operator=(const LayerNorm&) = delete;

    // Y = scale·(H − mean)/σ + shift over the neurons of each row; keeps the row's mean and 1/σ for the way back.
    Rows* forward(Rows& hidden, long rows) {
        const double width = double(neurons_);
        const float *scale = arrays_.scale, *shift = arrays_.shift;
        for (long i = 0; i < rows; i++) {
            // Padding is zero: it adds nothing to the sum, and a known amount to the squares.
            Vector total{}, squares{};
            for_each_vector([&](long k, long at) { total += load(hidden.at(i, k) + at); });
            const float mean = float(sum(total) / width);
            for_each_vector([&](long k, long at) {
                const Vector centred = load(hidden.at(i, k) + at) - mean;
                squares += centred * centred;
            });
            const double variance = (sum(squares) - double(width_ - neurons_) * mean * mean) / width;
            const float inverse = float(1 / std::sqrt(std::max(variance, 0.0) + NORM_EPSILON));
            mean_[i] = mean, inverse_[i] = inverse;
            for_each_vector([&](long k, long at) {
                const Vector x = (load(hidden.at(i, k) + at) - mean) * inverse;
                store(normalised_.at(i, k) + at, load(scale + k + at) * x + load(shift + k + at));
            });
        }
        return &normalised_;
    }

    // The rows of the last call.
    Rows& normalised() { return normalised_; }

    // dH in the place of dY, which is in `upstream`.
    void backward(Rows& hidden, Rows& upstream, long rows) {
        const double width = double(neurons_);
        const float* scale = arrays_.scale;
        float *dscale = arrays_.dscale, *dshift = arrays_.dshift;
        for (long i = 0; i < rows; i++) {
            const float mean = mean_[i], inverse = inverse_[i];
            Vector total{}, projected{};
            for_each_vector([&](long k, long at) {
                const Vector x = (load(hidden.at(i, k) + at) - mean) * inverse, dy = load(upstream.at(i, k) + at);
                const Vector g = load(scale + k + at) * dy;
                add(dscale + k + at, dy * x);
                add(dshift + k + at, dy);
                total += g;
                projected += g * x;
            });
            const float average = float(sum(total) / width), slope = float(sum(projected) / width);
            for_each_vector([&](long k, long at) {
                const Vector x = (load(hidden.at(i, k) + at) - mean) * inverse;
                float* d = upstream.at(i, k) + at;
                store(d, inverse * (load(scale + k + at) * load(d) - average - x * slope));
            });
        }
    }

private:
    // `visit(k, at)` for each vector of a row: `at` floats into the panel that begins with neuron k.
    template <typename Visit>
    void for_each_vector(Visit visit) const {
        for (long k = 0; k < width_; k += PANEL)
#pragma GCC unroll 8
            for (long at = 0; at < PANEL; at += VECTOR_FLOATS) visit(k, at);
    }

    const long neurons_, width_;
    const NormArrays arrays_;
    Rows normalised_;
    float mean_[BLOCK_ROWS] = {}, inverse_[BLOCK_ROWS] = {};  // of each row; 1/σ
};

class BatchNorm {
public:
    // `rows` are normalised at once.
    BatchNorm(long neurons, NormArrays arrays, Buffer& running_mean, Buffer& running_variance, long rows)
        : neurons_(neurons),
          width_(whole_panels(neurons)),
          arrays_(arrays),
          running_mean_(running_mean),
          running_variance_(running_variance),
          normalised_(rows, width_),
          mean_(width_),
          inverse_(width_),
          variance_(width_) {}
    BatchNorm(const BatchNorm&) = delete;
    BatchNorm& operator=(const BatchNorm&) = delete;

    // From now on, `forward` normalises with the statistics of these rows: a whole batch.
    void use_batch(Rows& hidden, long rows) {
        std::vector<double> total(PANEL), squares(PANEL);
        for (long k = 0; k < width_; k += PANEL) {
            float *mean = mean_.data() + k, *inverse = inverse_.data() + k;
            std::fill(total.begin(), total.end(), 0), std::fill(squares.begin(), squares.end(), 0);
            for (long i = 0; i < rows; i++)
                for (long at = 0; at < PANEL; at++) total[size_t(at)] += hidden.at(i, k)[at];
            for (long at = 0; at < PANEL; at++) mean[at] = float(total[size_t(at)] / double(rows));
            for (long i = 0; i < rows; i++)
                for (long at = 0; at < PANEL; at++) {
                    const double centred = hidden.at(i, k)[at] - mean[at];
                    squares[size_t(at)] += centred * centred;
                }
            for (long at = 0; at < PANEL; at++) {
                variance_.data()[k + at] = float(squares[size_t(at)] / double(rows - 1));
                inverse[at] = float(1 / std::sqrt(squares[size_t(at)] / double(rows) + NORM_EPSILON));
            }
        }
    }

    // From now on, `forward` normalises with the averages over batches.
    void use_running_statistics() {
        for (long k = 0; k < width_; k++) {
            mean_.data()[k] = running_mean_.data()[k];
            inverse_.data()[k] = 1 / std::sqrt(running_variance_.data()[k] + NORM_EPSILON);
        }
    }

    // Y = scale·(H − mean)/σ + shift for rows first … of `hidden`.
    Rows* forward(Rows& hidden, long rows, long first) {
        const float *scale = arrays_.scale, *shift = arrays_.shift;
        for (long k = 0; k < width_; k += PANEL)
            for (long i = 0; i < rows; i++)
                for (long at = 0; at < PANEL; at += VECTOR_FLOATS)
                    store(normalised_.at(i, k) + at,
                          load(scale + k + at) * standardised(hidden, first + i, k, at) + load(shift + k + at));
        return &normalised_;
    }

    // The rows of the last call.
    Rows& normalised() { return normalised_; }

    // What rows first … add to the gradients of scale and shift, given their dY in `upstream`.
    void add_gradients(Rows& hidden, Rows& upstream, long rows, long first) {
        float *dscale = arrays_.dscale, *dshift = arrays_.dshift;
        for (long k = 0; k < width_; k += PANEL)
            for (long i = first; i < first + rows; i++)
                for (long at = 0; at < PANEL; at += VECTOR_FLOATS) {
                    const Vector d = load(upstream.at(i, k) + at);
                    add(dscale + k + at, d * standardised(hidden, i, k, at));
                    add(dshift + k + at, d);
                }
    }

    // dH in the place of dY, once all rows have added their gradients.
    void backward(Rows& hidden, Rows& upstream, long rows) {
        const float share = float(1 / double(rows)), *scale = arrays_.scale;
        const float *dscale = arrays_.dscale, *dshift = arrays_.dshift;
        for (long k = 0; k < width_; k += PANEL)
            for (long i = 0; i < rows; i++)
                for (long at = 0; at < PANEL; at += VECTOR_FLOATS) {
                    const Vector shifted = load(dshift + k + at), scaled = load(dscale + k + at);
                    float* d = upstream.at(i, k) + at;
                    store(d, load(scale + k + at) * load(inverse_.data() + k + at) *
                                 (load(d) - share * (shifted + standardised(hidden, i, k, at) * scaled)));
                }
    }

    // Averages of the batch just seen, its variance without bias, as torch keeps them.
    void update_running_statistics() {
        float *mean = running_mean_.data(), *variance = running_variance_.data();
        for (long k = 0; k < neurons_; k++) {
            mean[k] += BATCH_NORM_MOMENTUM * (mean_.data()[k] - mean[k]);
            variance[k] += BATCH_NORM_MOMENTUM * (variance_.data()[k] - variance[k]);
        }
    }

private:
    Vector standardised(Rows& hidden, long row, long k, long at) {
        return (load(hidden.at(row, k) + at) - load(mean_.data() + k + at)) * load(inverse_.data() + k + at);
    }

    const long neurons_, width_;
    const NormArrays arrays_;
    Buffer &running_mean_, &running_variance_;
    Rows normalised_;
    Buffer mean_, inverse_;  // of each neuron: what is subtracted, and 1/σ
    Buffer variance_;        // of the batch, without bias
};

}  // namespace grokscope::LEVEL
