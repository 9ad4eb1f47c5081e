// Part of a Transformer's step (transformer.hpp): one layer on a block of R pairs.
//
//     attention  x += dropout(mixed · Oᵀ)                        [R, d]    attention.hpp
//     MLP        x += dropout(φ(norm(x) · Aᵀ) · Bᵀ)              [R, 4d]   then [R, d]
//
// for both positions; only the last is read, so only that goes through the last layer. The rows of a block's positions lie one
// after the other, and go through the products together. As in deep.hpp, the gradient of the MLP's hidden layer takes the
// place of the hidden layer, panel by panel. The first layer may come as far as the hidden layer by tables (token_tables.hpp).
#pragma once

#include "output_layer.hpp"
#include "row_norm.hpp"
#include "token_tables.hpp"

namespace grokscope::LEVEL {

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
    // `number` counts from 0; `pairs` of a block, `projected` rows of queries, keys and values. An `unembedding` is that of
    // a network with this layer only, by tables.
    TransformerLayer(const Config& config, const LayerPlaces& places, Buffer& weights, Buffer& gradients, long number,
                     long pairs, long projected, bool by_tables, Linear* unembedding)
        : config_(config),
          number_(number),
          first_(number + 1 < config.layers ? 0 : 1),
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
          gradients_(projected, config.width) {
        const long rows = (2 - first_) * pairs;
        to_first_ = Buffer(rows * config.heads), dto_first_ = Buffer(rows * config.heads);
        for (Rows* stream : {&middle_, &outputs_, &branch_}) *stream = Rows(rows, width_);
        hidden_ = Rows(rows, whole_panels(config.mlp_width));
        upstream_ = Rows(rows, PANEL);
        if (config.activation != Activation::relu) slopes_ = Rows(rows, whole_panels(config.mlp_width));
        if (by_tables) {
            tables_.emplace(config, output_, mlp_in_, unembedding, first_, rows);
            return;
        }
        mixed_ = PlainRows(rows, config.width), dmixed_ = PlainRows(rows, config.width);
        if (config.dropout_threshold > 0)
            for (Buffer& mask : masks_) mask = Buffer(rows * width_);
        if (config.norm == Norm::none) return;
        attention_norm_.emplace(places.attention_norm, weights, gradients, 2 * projected);
        mlp_norm_.emplace(places.mlp_norm, weights, gradients, rows);
        for (Rows& normed : normed_inputs_) normed = Rows(projected, width_);
        normed_middle_ = Rows(rows, width_);
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
        if (tables_) tables_->prepare(projections_, x);
    }

    void clear_gradients() {
        gradients_.clear();
        if (tables_) tables_->clear_gradients();
    }

    // From the gradients of queries, keys and values: adds to dx.
    void project_backward(Streams x, long rows, Streams dx) {
        if (tables_) tables_->finish(projections_, gradients_, dx);
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
        count_ = count;
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
        count_ = count;
        for (int s = first_; s < 2; s++) attention_.attend(projections_, rows, count, s, to_first(s));
        if (tables_) {
            for (int s = first_; s < 2; s++) tables_->stream(rows, count, s, to_first(s), middle_.grid(base(s)));
        } else {
            for (int s = first_; s < 2; s++)
                attention_.mix(projections_, rows, count, to_first(s), mixed_.grid().from(base(s)));
            output_.forward(all_rows(), mixed_.grid(), branch_.grid());
            for (int s = first_; s < 2; s++)
                add_branch(0, base(s), count, training, [&](long i, long k) { return x.of[s].at(rows.of[s][i], k); },
                           middle_);
            if (mlp_norm_) mlp_norm_->forward(middle_.grid(), normed_middle_.grid(), 0, all_rows());
        }
        compute_hidden(rows);
        mlp_out_.forward(all_rows(), hidden_.grid(), branch_.grid());
        add_branch(1, 0, all_rows(), training, [&](long i, long k) { return middle_.at(i, k); }, outputs_);
        return {{outputs_.grid(base(0)), outputs_.grid(base(1))}};
    }

    // dx is the gradient of what forward returned, its positions one after the other, and becomes that of the pairs' own rows
    // of x, but for what goes through the projections: that is added to the gradients of these.
    void backward(PairRows rows, Streams dx) {
        const Grid d = dx.of[first_];
        mlp_backward(rows, d);
        if (!tables_) {
            const Grid branch = dropped(0, d), dmixed = dmixed_.grid();
            output_.add_gradient(all_rows(), branch, mixed_.grid());
            output_.backward(all_rows(), branch, dmixed, false);
            for (int s = first_; s < 2; s++)
                attention_.mix_backward(projections_, rows, count_, to_first(s), dmixed.from(base(s)), gradients_,
                                        dto_first(s));
        }
        attention_backward(rows);
    }

    // The same for the only layer of a network whose output is joined to it (joined_output.hpp): its MLP's hidden layer, for
    // the output layer to read, and what it adds to the logits beside that.
    Grid forward_hidden(PairRows rows, long count) {
        count_ = count;
        attention_.attend(projections_, rows, count, 1, to_first(1));
        compute_hidden(rows);
        return hidden_.grid();
    }
    void add_logits(PairRows rows, Grid logits) { tables_->add_logits(rows, count_, to_first(1), logits); }

    // From the output layer's residuals, to which it is joined, to the gradients of the projections and the tables.
    void backward(PairRows rows, OutputLayer& output) {
        tables_->stream_backward(rows, count_, 1, to_first(1), output.rows(), 0);
        for (long k = 0; k < config_.mlp_width; k += PANEL) {
            output.backward(count_, hidden_.grid(), k, upstream_.at(0, 0), std::min(PANEL, config_.mlp_width - k));
            hidden_backward(rows, k);
        }
        attention_backward(rows);
    }

    int first_position() const { return first_; }

private:
    // Of the pairs that forward was given last.
    long all_rows() const { return (2 - first_) * count_; }
    long base(int position) const { return position > first_ ? count_ : 0; }
    float* to_first(int s) { return to_first_.data() + base(s) * config_.heads; }
    float* dto_first(int s) { return dto_first_.data() + base(s) * config_.heads; }
    float* mask_row(int place, long row) { return masks_[place].data() + row * width_; }
    Grid projected_inputs(Streams x, int s) { return attention_norm_ ? normed_inputs_[s].grid() : x.of[s]; }
    Grid mlp_inputs() { return (mlp_norm_ ? normed_middle_ : middle_).grid(); }

    // φ of what the MLP's hidden layer takes.
    void compute_hidden(PairRows rows) {
        for (long k = 0; k < config_.mlp_width; k += PANEL) {
            if (tables_)
                for (int s = first_; s < 2; s++)
                    tables_->hidden_panel(rows, count_, s, to_first(s), k, hidden_.grid(base(s)));
            else
                mlp_in_.forward_panel(all_rows(), mlp_inputs(), k, hidden_.grid());
            activate_panel(k);
        }
    }

    // The panel of neuron k, once what goes back to φ is in upstream_; with tables, to their gradients.
    void hidden_backward(PairRows rows, long k) {
        differentiate(k);
        if (!tables_) return;
        for (int s = first_; s < 2; s++)
            tables_->hidden_panel_backward(rows, count_, s, to_first(s), k, hidden_.grid(base(s)), base(s));
    }

    // To the gradients of queries and keys.
    void attention_backward(PairRows rows) {
        for (int s = first_; s < 2; s++) {
            if (tables_) tables_->attention_gradient(count_, base(s), dto_first(s));
            attention_.attend_backward(projections_, rows, count_, s, to_first(s), dto_first(s), gradients_);
        }
    }

    // to = from + dropout(branch_), for rows first …
    template <typename From>
    void add_branch(int place, long first, long count, bool training, From from, Rows& to) {
        const bool masked = training && config_.dropout_threshold > 0;
        for (long k = 0; k < width_; k += PANEL)
            for (long i = 0; i < count; i++) {
                const float *x = from(i, k), *y = branch_.at(first + i, k), *mask = masked ? mask_row(place, first + i) + k : y;
                float* z = to.at(first + i, k);
#pragma GCC unroll 8
                for (long at = 0; at < PANEL; at += VECTOR_FLOATS)
                    store(z + at, load(x + at) + (masked ? load(mask + at) * load(y + at) : load(y + at)));
            }
    }

    // What dropout lets through on the way back: in branch_, or d itself if nothing is dropped.
    Grid dropped(int place, Grid d) {
        if (config_.dropout_threshold == 0) return d;
        const Grid branch = branch_.grid();
        for (long i = 0; i < all_rows(); i++) {
            const float* mask = mask_row(place, i);
            for_each_vector(width_, [&](long k, long at) {
                store(branch.at(i, k) + at, load(mask + k + at) * load(d.at(i, k) + at));
            });
        }
        return branch;
    }

    void activate_panel(long k) {
        float* z = hidden_.at(0, k);
        float* slopes = config_.activation == Activation::relu ? nullptr : slopes_.at(0, k);
        switch (config_.activation) {
            case Activation::relu: return activate<Activation::relu>(z, slopes, all_rows() * PANEL);
            case Activation::quadratic: return activate<Activation::quadratic>(z, slopes, all_rows() * PANEL);
            case Activation::gelu: return activate<Activation::gelu>(z, slopes, all_rows() * PANEL);
        }
    }

    // dx, the gradient of middle + MLP(middle), becomes that of middle; with tables, what goes through the MLP is added to
    // theirs.
    void mlp_backward(PairRows rows, Grid dx) {
        const Grid branch = dropped(1, dx), hidden = hidden_.grid(), x = mlp_inputs();
        if (tables_)
            for (int s = first_; s < 2; s++)
                tables_->stream_backward(rows, count_, s, to_first(s), dx.from(base(s)), base(s));
        for (long k = 0; k < config_.mlp_width; k += PANEL) {
            mlp_out_.add_gradient_panel(all_rows(), branch, hidden, k);
            mlp_out_.backward_panel(all_rows(), branch, k, upstream_.product());
            hidden_backward(rows, k);
        }
        if (tables_) return;
        mlp_in_.add_gradient(all_rows(), hidden, x);
        if (!mlp_norm_) return mlp_in_.backward(all_rows(), hidden, dx, true);
        mlp_in_.backward(all_rows(), hidden, x, false);  // nobody reads the normalised rows any more
        mlp_norm_->backward(middle_.grid(), x, dx, 0, all_rows());
    }

    // The hidden layer's panel of neuron k becomes its gradient, φ'(z) times that of φ(z) in upstream_. In padding it is zero, or
    // nobody reads it.
    void differentiate(long k) {
        const bool relu = config_.activation == Activation::relu;
        const float *up = upstream_.at(0, 0), *slopes = relu ? nullptr : slopes_.at(0, k);
        float* out = hidden_.at(0, k);
        for (long at = 0; at < all_rows() * PANEL; at += VECTOR_FLOATS) {
            const Vector d = load(up + at);
            store(out + at, !relu ? load(slopes + at) * d : load(out + at) > 0 ? d : Vector{});
        }
    }

    const Config& config_;
    const long number_;
    const int first_;                // position that goes on
    const long projected_, width_;   // rows of the projections; columns of the stream, padded
    long count_ = 0;                 // pairs of the block
    Linear query_, key_, value_, output_, mlp_in_, mlp_out_;
    Attention attention_;
    Projections projections_, gradients_;
    std::optional<TokenTables> tables_;
    std::optional<RowNorm> attention_norm_, mlp_norm_;
    Rows normed_inputs_[2], normed_middle_;
    Buffer to_first_, dto_first_;
    PlainRows mixed_, dmixed_;
    Rows middle_, hidden_, slopes_, outputs_;  // the stream after attention; the MLP; the stream after it
    Buffer masks_[2];                          // plain rows
    Rows branch_;                              // what is added to the stream
    Rows upstream_;                            // one panel
    std::vector<float> row_mask_;
};

}  // namespace grokscope::LEVEL
