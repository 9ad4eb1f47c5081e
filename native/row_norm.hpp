// Part of a Transformer's step (transformer.hpp): LayerNorm, y = scale·(x − mean)/σ + shift over each row.
#pragma once

#include "linear.hpp"
#include "norms.hpp"

namespace grokscope::LEVEL {

class RowNorm {
public:
    RowNorm(const NormPlaces& places, Buffer& weights, Buffer& gradients, long rows)
        : columns_(places.scale.columns),
          width_(whole_panels(columns_)),
          scale_(weights.data() + places.scale.offset),
          shift_(weights.data() + places.shift.offset),
          dscale_(gradients.data() + places.scale.offset),
          dshift_(gradients.data() + places.shift.offset),
          mean_(rows),
          inverse_(rows),
          real_(width_) {
        std::fill_n(real_.data(), columns_, 1.0f);  // and 0 for padding
    }

    // Rows 0 … of x to those of y; their mean and 1/σ are kept as those of rows first ….
    void forward(Grid x, Grid y, long first, long rows) {
        const double count = double(columns_);
        for (long i = 0; i < rows; i++) {
            // Padding is zero: it adds nothing to the sum. It would add the squares of the mean, which may be far larger
            // than the variance: taken off afterwards, they would leave little but their rounding errors.
            Vector total{}, squares{};
            for_each_vector(width_, [&](long k, long at) { total += load(x.at(i, k) + at); });
            const float mean = float(sum(total) / count);
            for_each_vector(width_, [&](long k, long at) {
                const Vector centred = (load(x.at(i, k) + at) - mean) * load(real_.data() + k + at);
                squares += centred * centred;
            });
            const float inverse = float(1 / std::sqrt(sum(squares) / count + NORM_EPSILON));
            mean_.data()[first + i] = mean, inverse_.data()[first + i] = inverse;
            for_each_vector(width_, [&](long k, long at) {
                const Vector standardised = (load(x.at(i, k) + at) - mean) * inverse;
                store(y.at(i, k) + at, load(scale_ + k + at) * standardised + load(shift_ + k + at));
            });
        }
    }

    // dx += what dy gives; x as forward had it.
    void backward(Grid x, Grid dy, Grid dx, long first, long rows) {
        const double count = double(columns_);
        for (long i = 0; i < rows; i++) {
            const float mean = mean_.data()[first + i], inverse = inverse_.data()[first + i];
            Vector total{}, projected{};
            for_each_vector(width_, [&](long k, long at) {
                const Vector standardised = (load(x.at(i, k) + at) - mean) * inverse, d = load(dy.at(i, k) + at);
                const Vector g = load(scale_ + k + at) * d;
                add(dscale_ + k + at, d * standardised);
                add(dshift_ + k + at, d);
                total += g;
                projected += g * standardised;
            });
            const float average = float(sum(total) / count), slope = float(sum(projected) / count);
            for_each_vector(width_, [&](long k, long at) {
                const Vector standardised = (load(x.at(i, k) + at) - mean) * inverse;
                const Vector g = load(scale_ + k + at) * load(dy.at(i, k) + at);
                add(dx.at(i, k) + at, inverse * (g - average - standardised * slope));
            });
            // Padding lies in the last panel, and the formula is not zero there.
            const long last = width_ - PANEL;
            for (long at = columns_ - last; at < PANEL; at++) dx.at(i, last)[at] = 0;
        }
    }

private:
    const long columns_, width_;
    const float *scale_, *shift_;
    float *dscale_, *dshift_;
    Buffer mean_, inverse_, real_;
};

}  // namespace grokscope::LEVEL
