// Part of a Transformer's step (transformer.hpp): one layer on a block of R pairs.
//
//     attention  x += dropout(mixed · Oᵀ)                        [R, d]    attention.hpp
//     MLP        x += dropout(φ(norm(x) · Aᵀ) · Bᵀ)              [R, 4d]   then [R, d]
//
// for one position after the other; only the last position is read, so only that goes through the last layer. As in
// deep.hpp, the gradient of the MLP's hidden layer takes the place of the hidden layer, panel by panel.
#pragma once

#include "attention.hpp"
#include "row_norm.hpp"

namespace grokscope::LEVEL {

// Of both positions: where the gradient of what a layer reads is put, or where it is read.
struct Streams {
    Grid of[2];
};

// φ(z) in place of z. Those of relu are known from φ(z); of others the slopes are kept.
template <Activation KIND>
static void activate(float* __restrict z, float* __restrict slopes, long count) {
    for (long i = 0; i < count; i++) {
        const float x = z[i];
        if constexpr (KIND == Activation::relu) z[i] = x <= 0 ? 0 : x;  // NaN stays NaN: it shows that a run diverges
        if constexpr (KIND == Activation::quadratic) slopes[i] = 2 * x, z[i] = x * x;
        if constexpr (KIND == Activation::gelu) {
            const auto [value, slope] = gelu(x);
            slopes[i] = slope, z[i] = value;
        }
    }
}

class TransformerLayer {
public:
    // `number` counts from 0; `rows` of a block, `projected` rows of queries, keys and values.
    TransformerLayer(const Config& config, const LayerPlaces& places, Buffer& weights, Buffer& gradients, long number,
                     long rows, long projected)
        : config_(config),
          number_(number),
          first_(number + 1 < config.layers ? 0 : 1),
          positions_(config.layers > 1 ? 2 : 1),
          rows_(rows),
          projected_(projected),
          width_(whole_panels(config.width)),
          query_(places.query, weights, gradients),
          key_(places.key, weights, gradients),
          value_(places.value, weights, gradients),
          output_(places.output, weights, gradients),
          mlp_in_(places.mlp_in, weights, gradients),
          mlp_out_(places.mlp_out, weights, gradients),
          attention_(config),
          projections_(projected, config.width),
          gradients_(projected, config.width),
          mixed_(positions_ * rows, config.width),
          to_first_(positions_ * rows * config.heads),
          middle_(positions_ * rows, width_),
          hidden_(positions_ * rows, whole_panels(config.mlp_width)),
          outputs_(positions_ * rows, width_),
          branch_(rows, width_),
          dmixed_(rows, config.width),
          upstream_(rows, PANEL) {
        if (config.activation != Activation::relu)
            slopes_ = Rows(positions_ * rows, whole_panels(config.mlp_width));
        if (config.dropout_threshold > 0)
            for (Buffer& mask : masks_) mask = Buffer(positions_ * rows * width_);
        if (config.norm == Norm::none) return;
        attention_norm_.emplace(places.attention_norm, weights, gradients, 2 * projected);
        mlp_norm_.emplace(places.mlp_norm, weights, gradients, positions_ * rows);
        for (Rows& normed : normed_inputs_) normed = Rows(projected, width_);
        normed_middle_ = Rows(positions_ * rows, width_);
    }

    TransformerLayer(const TransformerLayer&) = delete;
    TransformerLayer& operator=(const TransformerLayer&) = delete;

    void transpose_weights() {
        for (Linear* linear : {&query_, &key_, &value_, &output_, &mlp_in_, &mlp_out_}) linear->transpose_weights();
    }

    // Of the rows of both positions, x.of[0] and x.of[1]: their queries, keys and values.
    void project(Streams x, long rows) {
        for (int s : {0, 1}) {
            if (attention_norm_)
                attention_norm_->forward(x.of[s], normed_inputs_[s].grid(), s * projected_, rows);
            const Grid y = projected_inputs(x, s);
            if (s >= first_) query_.forward(rows, y, projections_.query[s].grid());
            key_.forward(rows, y, projections_.key[s].grid());
            value_.forward(rows, y, projections_.value[s].grid());
        }
    }

    void clear_gradients() { gradients_.clear(); }

    // From the gradients of queries, keys and values: adds to dx.
    void project_backward(Streams x, long rows, Streams dx) {
        for (int s : {0, 1}) {
            const Grid y = projected_inputs(x, s);
            // With a norm, what goes on to it is put together in the place of its outputs, once those were used.
            const auto each = [&](auto visit) {
                if (s >= first_) visit(query_, gradients_.query[s].grid());
                visit(key_, gradients_.key[s].grid());
                visit(value_, gradients_.value[s].grid());
            };
            each([&](Linear& linear, Grid dy) { linear.add_gradient(rows, dy, y); });
            bool accumulate = !attention_norm_;
            const Grid target = attention_norm_ ? y : dx.of[s];
            each([&](Linear& linear, Grid dy) {
                linear.backward(rows, dy, target, accumulate);
                accumulate = true;
            });
            if (attention_norm_) attention_norm_->backward(x.of[s], y, dx.of[s], s * projected_, rows);
        }
    }

    // The two places where dropout acts; a row's factors are those of its first position, then of its second.
    void draw_masks(const std::vector<uint32_t>& places, long start, long count, long step) {
        if (config_.dropout_threshold == 0) return;
        const long d = config_.width, going_on = 2 - first_;
        row_mask_.resize(size_t(going_on * d));
        for (int place : {0, 1})
            for (long i = 0; i < count; i++) {
                dropout_row(row_mask_.data(), going_on * d, places[size_t(start + i)], uint32_t(step),
                            uint32_t(2 * number_ + place), config_.seed, config_.dropout_threshold,
                            float(config_.dropout_scale));
                for (int s = first_; s < 2; s++)
                    std::copy_n(row_mask_.data() + (s - first_) * d, d, mask_row(place, base(s) + i));
            }
    }

    // Pair i has row rows.of[s][i] of x.of[s] and of the projections. Returns the stream after this layer, of which the
    // first position is nothing after the last layer.
    Streams forward(Streams x, PairRows rows, long count, bool training) {
        for (int s = first_; s < 2; s++) {
            const Grid mixed = mixed_.grid().from(base(s)), middle = middle_.grid(base(s));
            attention_.forward(projections_, rows, count, s, mixed, to_first(s));
            const Grid branch = branch_.grid();
            output_.forward(count, mixed, branch);
            add_branch(0, s, count, training, [&](long i, long k) { return x.of[s].at(rows.of[s][i], k); }, middle);
            if (mlp_norm_) mlp_norm_->forward(middle, normed_middle_.grid(base(s)), base(s), count);
            const Grid hidden = hidden_.grid(base(s));
            for (long k = 0; k < config_.mlp_width; k += PANEL) {
                mlp_in_.forward_panel(count, mlp_inputs(s), k, hidden);
                activate_panel(s, count, k);
            }
            mlp_out_.forward(count, hidden, branch);
            add_branch(1, s, count, training, [&](long i, long k) { return middle.at(i, k); }, outputs().of[s]);
        }
        return outputs();
    }

    // dx is the gradient of what forward returned, and becomes that of the pairs' own rows of x, but for what goes through
    // the projections: that is added to the gradients of these.
    void backward(PairRows rows, long count, Streams dx) {
        for (int s = first_; s < 2; s++) {
            mlp_backward(s, count, dx.of[s]);
            const Grid branch = dropped(0, s, count, dx.of[s]), dmixed = dmixed_.grid();
            output_.add_gradient(count, branch, mixed_.grid().from(base(s)));
            output_.backward(count, branch, dmixed, false);
            attention_.backward(projections_, rows, count, s, dmixed, to_first(s), gradients_);
        }
    }

    int first_position() const { return first_; }

private:
    long base(int position) const { return positions_ == 2 ? position * rows_ : 0; }
    float* to_first(int s) { return to_first_.data() + base(s) * config_.heads; }
    float* mask_row(int place, long row) { return masks_[place].data() + row * width_; }
    Streams outputs() { return {{outputs_.grid(base(0)), outputs_.grid(base(1))}}; }
    Grid projected_inputs(Streams x, int s) { return attention_norm_ ? normed_inputs_[s].grid() : x.of[s]; }
    Grid mlp_inputs(int s) { return (mlp_norm_ ? normed_middle_ : middle_).grid(base(s)); }

    // to = from + dropout(branch_)
    template <typename From>
    void add_branch(int place, int s, long count, bool training, From from, Grid to) {
        const Grid branch = branch_.grid();
        const bool masked = training && config_.dropout_threshold > 0;
        for (long k = 0; k < width_; k += PANEL)
            for (long i = 0; i < count; i++) {
                const float *x = from(i, k), *y = branch.at(i, k), *mask = masked ? mask_row(place, base(s) + i) + k : y;
                float* z = to.at(i, k);
#pragma GCC unroll 8
                for (long at = 0; at < PANEL; at += VECTOR_FLOATS)
                    store(z + at, load(x + at) + (masked ? load(mask + at) * load(y + at) : load(y + at)));
            }
    }

    // What dropout lets through on the way back: in branch_, or d itself if nothing is dropped.
    Grid dropped(int place, int s, long count, Grid d) {
        if (config_.dropout_threshold == 0) return d;
        const Grid branch = branch_.grid();
        for (long i = 0; i < count; i++) {
            const float* mask = mask_row(place, base(s) + i);
            for_each_vector(width_, [&](long k, long at) {
                store(branch.at(i, k) + at, load(mask + k + at) * load(d.at(i, k) + at));
            });
        }
        return branch;
    }

    void activate_panel(int s, long count, long k) {
        float* z = hidden_.at(base(s), k);
        float* slopes = config_.activation == Activation::relu ? nullptr : slopes_.at(base(s), k);
        switch (config_.activation) {
            case Activation::relu: return activate<Activation::relu>(z, slopes, count * PANEL);
            case Activation::quadratic: return activate<Activation::quadratic>(z, slopes, count * PANEL);
            case Activation::gelu: return activate<Activation::gelu>(z, slopes, count * PANEL);
        }
    }

    // dx, the gradient of middle + MLP(middle), becomes that of middle.
    void mlp_backward(int s, long count, Grid dx) {
        const Grid branch = dropped(1, s, count, dx), hidden = hidden_.grid(base(s)), x = mlp_inputs(s);
        for (long k = 0; k < config_.mlp_width; k += PANEL) {
            mlp_out_.add_gradient_panel(count, branch, hidden, k);
            mlp_out_.backward_panel(count, branch, k, upstream_.product());
            differentiate(s, count, k);
        }
        mlp_in_.add_gradient(count, hidden, x);
        if (!mlp_norm_) return mlp_in_.backward(count, hidden, dx, true);
        mlp_in_.backward(count, hidden, x, false);  // nobody reads the normalised rows any more
        mlp_norm_->backward(middle_.grid(base(s)), x, dx, base(s), count);
    }

    // The hidden layer's panel of neuron k becomes its gradient, φ'(z) times that of φ(z) in upstream_. The slope of padding
    // is 0, or its gradient is.
    void differentiate(int s, long count, long k) {
        const bool relu = config_.activation == Activation::relu;
        const float *up = upstream_.at(0, 0), *slopes = relu ? nullptr : slopes_.at(base(s), k);
        float* out = hidden_.at(base(s), k);
        for (long at = 0; at < count * PANEL; at += VECTOR_FLOATS) {
            const Vector d = load(up + at);
            store(out + at, !relu ? load(slopes + at) * d : load(out + at) > 0 ? d : Vector{});
        }
    }

    const Config& config_;
    const long number_;
    const int first_;       // position that goes on
    const long positions_;  // that the rows of a block are kept of
    const long rows_, projected_, width_;  // of a block; of the projections; columns of the stream, padded
    Linear query_, key_, value_, output_, mlp_in_, mlp_out_;
    Attention attention_;
    Projections projections_, gradients_;
    std::optional<RowNorm> attention_norm_, mlp_norm_;
    Rows normed_inputs_[2], normed_middle_;
    PlainRows mixed_;
    Buffer to_first_;
    Rows middle_, hidden_, slopes_, outputs_;  // the stream after attention; the MLP; the stream after it
    Buffer masks_[2];                          // plain rows
    Rows branch_;                              // what is added to the stream
    PlainRows dmixed_;
    Rows upstream_;  // one panel
    std::vector<float> row_mask_;
};

}  // namespace grokscope::LEVEL
