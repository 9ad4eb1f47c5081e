// Part of the training step (kernel.hpp): AdamW, Adam and SGD with momentum, as torch has them.
#pragma once

#include "vectors.hpp"

namespace grokscope::LEVEL {

// Updates `size` weights, which learn as they are told. `step` counts from 1. SGD keeps its momentum in `first`.
static void optimise(const Config& config, Learning learning, long step, long size, const float* __restrict gradient,
                     float* __restrict w, float* __restrict first, float* __restrict second) {
    const float rate = float(learning.rate), decay = float(learning.decay);
    if (config.optimizer == Optimizer::sgd) {
        const float momentum = float(config.momentum);
        for (long i = 0; i < size; i++) {
            first[i] = momentum * first[i] + (gradient[i] + decay * w[i]);
            w[i] -= rate * first[i];
        }
        return;
    }
    const bool decoupled = config.optimizer == Optimizer::adamw;
    const float keep = decoupled ? float(1 - learning.rate * learning.decay) : 1.0f;
    const float coupled = decoupled ? 0.0f : decay;
    const float rest1 = float(1 - config.beta1), rest2 = float(1 - config.beta2), beta2 = float(config.beta2);
    const float size1 = float(learning.rate / (1 - std::pow(config.beta1, double(step))));
    const float root2 = float(1 / std::sqrt(1 - std::pow(config.beta2, double(step))));
    const float epsilon = float(config.epsilon);
    for (long i = 0; i < size; i++) {
        const float g = gradient[i] + coupled * w[i];
        const float mean = first[i] + rest1 * (g - first[i]);
        const float square = beta2 * second[i] + rest2 * (g * g);
        first[i] = mean;
        second[i] = square;
        w[i] = keep * w[i] - size1 * mean / (std::sqrt(square) * root2 + epsilon);
    }
}

}  // namespace grokscope::LEVEL
