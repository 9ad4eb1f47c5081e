// Part of a Transformer's step (transformer.hpp): the first layer's attention output and MLP input, by tables of tokens.
//
// In the first layer a position holds one of p tokens, and attention mixes the values of two of them with one number a for each
// head. What follows is linear up to the MLP's activation, so it can be applied before mixing. With the output matrix O, the
// MLP's first matrix A, and the value v of a token at a position, cut to the dimensions of a head h,
//
//     middle  x + Σ_h  a_h (O v₀ₕ)[m] + (1 − a_h) (O v₁ₕ)[n]                 [R, d]
//     MLP     A x + Σ_h  a_h (A O v₀ₕ)[m] + (1 − a_h) (A O v₁ₕ)[n]           [R, 4d]
//
// where x is the row of the position's own token. The tables in brackets have p·heads rows for each position, and A x has p: a
// few hundred rows go through O and A, instead of thousands of pairs. A pair costs 2·heads multiply-adds for each
// number instead of d. The gradients of the tables add up over pairs, and go through A and O at the end of the step.
// Dropout after O, and a norm before A, would come between; with them there are no tables.
//
// With one layer, only the unembedding E reads the stream after attention, beside the MLP. Then E x and E O v are tables too,
// and no pair has a stream: joined_output.hpp has what the MLP adds to the logits.
#pragma once

#include "attention.hpp"

namespace grokscope::LEVEL {

// Of both positions: where the gradient of what a layer reads is put, or where it is read.
struct Streams {
    Grid of[2];
};

// A panel of the tables of both positions, or of their gradients.
struct Panels {
    float* of[2];
};

// A table of each position with `heads` rows for each token.
struct HeadTables {
    Rows of[2];

    HeadTables() = default;
    HeadTables(long rows, long columns) {
        for (Rows& table : of) table = Rows(rows, whole_panels(columns));
    }
    void clear() {
        for (Rows& table : of) table.values.clear();
    }
    Panels panels(long k) { return {{of[0].at(0, k), of[1].at(0, k)}}; }
};

class TokenTables {
public:
    // Whether they save work, for so many pairs a step. Multiply-adds; on the way back a pair's are loads and stores too.
    static bool worthwhile(const Config& config, long pairs) {
        if (config.norm != Norm::none || config.dropout_threshold > 0 || config.form == Form::direct) return false;
        if (config.form == Form::tokens) return true;
        const double d = double(config.width), heads = double(config.heads), hidden = double(config.mlp_width);
        const double rows = double(pairs) * (config.layers > 1 ? 2 : 1), tokens = 2 * double(config.modulus);
        const double direct = 3 * rows * d * (d + hidden);
        return 3 * tokens * d * (heads * (d + hidden) + hidden) + 14 * rows * heads * (d + hidden) < direct;
    }

    // Of layer 0, whose positions `first` … go on. `rows` of a block, of all positions. `unembedding` is that of a network
    // with one layer.
    TokenTables(const Config& config, Linear& output, Linear& mlp_in, Linear* unembedding, int first, long rows)
        : tokens_(config.modulus),
          heads_(config.heads),
          first_(first),
          width_(whole_panels(config.width)),
          hidden_width_(whole_panels(config.mlp_width)),
          size_(config.width / config.heads),
          output_(output),
          mlp_in_(mlp_in),
          unembedding_(unembedding),
          logit_factor_(float(1 / config.logit_divisor)),
          values_(tokens_ * heads_, config.width),
          middle_(tokens_ * heads_, config.width),
          dmiddle_(tokens_ * heads_, config.width),
          hidden_(tokens_ * heads_, config.mlp_width),
          dhidden_(tokens_ * heads_, config.mlp_width),
          dots_(rows * heads_ * VECTOR_FLOATS) {
        for (int s = first; s < 2; s++)
            own_[s] = Rows(tokens_, hidden_width_), down_[s] = Rows(tokens_, hidden_width_);
        if (!unembedding) return;
        logits_ = HeadTables(tokens_ * heads_, tokens_), dlogits_ = HeadTables(tokens_ * heads_, tokens_);
        own_logits_ = Rows(tokens_, whole_panels(tokens_)), down_logits_ = Rows(tokens_, whole_panels(tokens_));
    }
    TokenTables(const TokenTables&) = delete;
    TokenTables& operator=(const TokenTables&) = delete;

    // Before any pair: x are the tokens' rows.
    void prepare(const Projections& projections, Streams x) {
        for (int s : {0, 1}) {
            for (long token = 0; token < tokens_; token++) copy_heads(projections.value[s].at(token), token, s);
            output_.forward(tokens_ * heads_, values_.of[s].grid(), middle_.of[s].grid());
            mlp_in_.forward(tokens_ * heads_, middle_.of[s].grid(), hidden_.of[s].grid());
            if (unembedding_) unembedding_->forward(tokens_ * heads_, middle_.of[s].grid(), logits_.of[s].grid());
        }
        for (int s = first_; s < 2; s++) mlp_in_.forward(tokens_, x.of[s], own_[s].grid());
        if (unembedding_) unembedding_->forward(tokens_, x.of[1], own_logits_.grid());
    }

    void clear_gradients() {
        dmiddle_.clear(), dhidden_.clear();
        for (int s = first_; s < 2; s++) down_[s].values.clear();
        if (unembedding_) dlogits_.clear(), down_logits_.values.clear();
    }

    // The stream after attention, of `count` pairs at position s with this attention to the first.
    void middle(Streams x, PairRows rows, long count, int s, const float* to_first, Grid out) {
        for (long k = 0; k < width_; k += PANEL)
            mix<false>(x.of[s].at(0, k), middle_.panels(k), rows, count, s, to_first, out, k);
    }
    // With one layer, what it adds to the logits.
    void add_logits(PairRows rows, long count, const float* to_first, Grid out) {
        for (long k = 0; k < tokens_; k += PANEL)
            mix<true>(own_logits_.at(0, k), logits_.panels(k), rows, count, 1, to_first, out, k);
    }

    // What the MLP's hidden layer takes: the panel of neuron k.
    void hidden_panel(PairRows rows, long count, int s, const float* to_first, long k, Grid out) {
        mix<false>(own_[s].at(0, k), hidden_.panels(k), rows, count, s, to_first, out, k);
    }

    // The way back: first one of these, then all panels, then `attention_gradient`. `base` is the place of the first pair's
    // row among the rows of a block.
    void middle_backward(PairRows rows, long count, const float* to_first, Grid d, long base) {
        clear_dots(count, base);
        for (long k = 0; k < width_; k += PANEL)
            mix_backward(middle_.panels(k), dmiddle_.panels(k), rows, count, to_first, d, k, dots(base));
    }
    void logits_backward(PairRows rows, long count, const float* to_first, Grid d) {
        clear_dots(count, 0);
        for (long k = 0; k < tokens_; k += PANEL) {
            add_to_own(down_logits_, rows.of[1], count, d, k);
            mix_backward(logits_.panels(k), dlogits_.panels(k), rows, count, to_first, d, k, dots(0));
        }
    }
    void hidden_panel_backward(PairRows rows, long count, int s, const float* to_first, long k, Grid d, long base) {
        add_to_own(down_[s], rows.of[s], count, d, k);
        mix_backward(hidden_.panels(k), dhidden_.panels(k), rows, count, to_first, d, k, dots(base));
    }

    // The gradient of the attention to the first position [count, heads].
    void attention_gradient(long count, long base, float* out) {
        for (long i = 0; i < count * heads_; i++) out[i] = sum(load(dots(base) + i * VECTOR_FLOATS));
    }

    // After all pairs: to the gradients of O, A and the values, and adds to dx, that of the tokens' rows.
    void finish(Streams x, Projections& gradients, Streams dx) {
        for (int s = first_; s < 2; s++) {
            mlp_in_.add_gradient(tokens_, down_[s].grid(), x.of[s]);
            mlp_in_.backward(tokens_, down_[s].grid(), dx.of[s], true);
        }
        if (unembedding_) {
            unembedding_->add_gradient(tokens_, down_logits_.grid(), x.of[1]);
            unembedding_->backward(tokens_, down_logits_.grid(), dx.of[1], true);
        }
        for (int s : {0, 1}) {
            const long rows = tokens_ * heads_;
            const Grid dmiddle = dmiddle_.of[s].grid(), values = values_.of[s].grid();
            if (unembedding_) {
                unembedding_->add_gradient(rows, dlogits_.of[s].grid(), middle_.of[s].grid());
                unembedding_->backward(rows, dlogits_.of[s].grid(), dmiddle, false);
            }
            mlp_in_.add_gradient(rows, dhidden_.of[s].grid(), middle_.of[s].grid());
            mlp_in_.backward(rows, dhidden_.of[s].grid(), dmiddle, true);
            output_.add_gradient(rows, dmiddle, values);
            // A row's value is cut to its head, and so is its gradient: the rest of what comes out is not looked at.
            output_.backward(rows, dmiddle, values, false);
            for (long token = 0; token < tokens_; token++) {
                float* to = gradients.value[s].at(token);
                for_each_number(token, s, [&](long j, float& value) { to[j] = value; });
            }
        }
    }

private:
    float* dots(long base) { return dots_.data() + base * heads_ * VECTOR_FLOATS; }
    void clear_dots(long count, long base) { std::fill_n(dots(base), count * heads_ * VECTOR_FLOATS, 0.0f); }

    // Adds the panel of column k of d to the rows of the pairs' own tokens.
    static void add_to_own(Rows& own, const int32_t* tokens, long count, Grid d, long k) {
        for (long i = 0; i < count; i++)
            for (long at = 0; at < PANEL; at += VECTOR_FLOATS)
                add(own.at(tokens[i], k) + at, load(d.at(i, k) + at));
    }

    // `visit(j, number)` for the dimensions j of a token's value, each in the row of its head.
    template <typename Visit>
    void for_each_number(long token, int s, Visit visit) {
        for (long head = 0; head < heads_; head++)
            for (long j = head * size_; j < (head + 1) * size_; j++)
                visit(j, values_.of[s].at(token * heads_ + head, j)[j % PANEL]);
    }

    void copy_heads(const float* value, long token, int s) {
        for (long head = 0; head < heads_; head++)
            for (long k = 0; k < width_; k += PANEL) std::fill_n(values_.of[s].at(token * heads_ + head, k), PANEL, 0.0f);
        for_each_number(token, s, [&](long j, float& to) { to = value[j]; });
    }

    // The panel of column k of out = own + Σ_h a T₀ₕ[m] + (1 − a) T₁ₕ[n]; of logits, out += that / divisor.
    template <bool LOGITS>
    void mix(const float* own, Panels tables, PairRows rows, long count, int s, const float* to_first, Grid to,
             long k) const {
        const long heads = heads_;
        float* out = to.at(0, k);
        for (long i = 0; i < count; i++, out += to.row, to_first += heads) {
            const float *from = own + rows.of[s][i] * PANEL, *t0 = tables.of[0] + rows.of[0][i] * heads * PANEL,
                        *t1 = tables.of[1] + rows.of[1][i] * heads * PANEL;
            Vector sums[TILE_VECTORS];
#pragma GCC unroll 8
            for (int j = 0; j < TILE_VECTORS; j++) sums[j] = load(from + j * VECTOR_FLOATS);
            for (long head = 0; head < heads; head++, t0 += PANEL, t1 += PANEL) {
                const float a = to_first[head], b = 1 - a;
#pragma GCC unroll 8
                for (int j = 0; j < TILE_VECTORS; j++) {
                    sums[j] += a * load(t0 + j * VECTOR_FLOATS);
                    sums[j] += b * load(t1 + j * VECTOR_FLOATS);
                }
            }
#pragma GCC unroll 8
            for (int j = 0; j < TILE_VECTORS; j++) {
                if constexpr (LOGITS) sums[j] = logit_factor_ * sums[j] + load(out + j * VECTOR_FLOATS);
                store(out + j * VECTOR_FLOATS, sums[j]);
            }
        }
    }

    // Adds to the gradients of the tables, and to the inner products of d with T₀ₕ[m] − T₁ₕ[n], in lanes: what a gets.
    void mix_backward(Panels tables, Panels gradients, PairRows rows, long count, const float* to_first, Grid of, long k,
                      float* dots) const {
        const long heads = heads_;
        const float* d = of.at(0, k);
        for (long i = 0; i < count; i++, d += of.row, to_first += heads) {
            const long first = rows.of[0][i] * heads * PANEL, second = rows.of[1][i] * heads * PANEL;
            const float *t0 = tables.of[0] + first, *t1 = tables.of[1] + second;
            float *d0 = gradients.of[0] + first, *d1 = gradients.of[1] + second;
            Vector from[TILE_VECTORS];
#pragma GCC unroll 8
            for (int j = 0; j < TILE_VECTORS; j++) from[j] = load(d + j * VECTOR_FLOATS);
            for (long head = 0; head < heads; head++, dots += VECTOR_FLOATS) {
                const float a = to_first[head], b = 1 - a;
                Vector dot = load(dots);
#pragma GCC unroll 8
                for (int j = 0; j < TILE_VECTORS; j++) {
                    const long at = head * PANEL + j * VECTOR_FLOATS;
                    dot += from[j] * (load(t0 + at) - load(t1 + at));
                    add(d0 + at, a * from[j]);
                    add(d1 + at, b * from[j]);
                }
                store(dots, dot);
            }
        }
    }

    const long tokens_, heads_;
    const int first_;  // position that goes on
    const long width_, hidden_width_, size_;
    Linear &output_, &mlp_in_, *unembedding_;
    const float logit_factor_;
    HeadTables values_;              // each cut to its head
    HeadTables middle_, dmiddle_;    // O v
    HeadTables hidden_, dhidden_;    // A O v
    Rows own_[2], down_[2];          // A x, and its gradient
    HeadTables logits_, dlogits_;    // E O v
    Rows own_logits_, down_logits_;  // E x
    Buffer dots_;                    // [R, heads, VECTOR_FLOATS]
};

}  // namespace grokscope::LEVEL
