// Part of a Transformer's step (transformer.hpp): the MLP's second matrix and the unembedding as one.
//
// With one layer, and neither dropout nor a norm between, the MLP adds E B φ(z) to the logits, with its second matrix B [d, 4d]
// and the unembedding E [p, d]. E B is computed before any pair. A pair then costs 4d·p multiply-adds instead of 4d·d + d·p.
// The gradient of E B adds up over pairs, and goes to E and B at the end of the step.
#pragma once

#include "linear.hpp"

namespace grokscope::LEVEL {

class JoinedOutput {
public:
    JoinedOutput(const Config& config, const TransformerPlaces& places, Buffer& weights, Buffer& gradients)
        : p_(config.modulus),
          second_(places.layers[0].mlp_out, weights, gradients),
          unembedding_(places.unembedding, weights, gradients),
          e_(matrix(weights, places.unembedding)),
          de_(matrix(gradients, places.unembedding)),
          joined_(p_, whole_panels(config.mlp_width)),
          djoined_(p_, whole_panels(config.mlp_width)) {}

    float* weights() { return joined_.values.data(); }
    float* gradients() { return djoined_.values.data(); }
    Linear& unembedding() { return unembedding_; }

    // Before any pair.
    void join() {
        unembedding_.transpose_weights();
        second_.backward(p_, e_, joined_.grid(), false);
    }
    void clear_gradients() { djoined_.values.clear(); }

    // After all pairs: adds to the gradients of E and B.
    void part() {
        second_.transpose_weights();
        second_.forward(p_, djoined_.grid(), de_, true);
        second_.add_gradient(p_, e_, djoined_.grid());
    }

private:
    static Grid matrix(Buffer& values, const Place& place) {
        return {values.data() + place.offset, PANEL, panel_rows(place.rows) * PANEL};
    }

    const long p_;
    Linear second_, unembedding_;
    Grid e_, de_;
    Rows joined_, djoined_;  // E B [p, 4d]
};

}  // namespace grokscope::LEVEL
