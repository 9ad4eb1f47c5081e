// Part of a Transformer's step (transformer.hpp): what follows the first layer's attention, by tables of tokens.
//
// In the first layer a position holds one of p tokens, and attention mixes the values of two of them with one number a for each
// head. What follows is linear up to the MLP's activation, so it can be applied before mixing. With the output matrix O, the
// value v of a token at a position, cut to the dimensions of a head h, and any matrix M that reads the stream,
//
//     M (x + O mixed) = M x + Σ_h  a_h (M O v₀ₕ)[m] + (1 − a_h) (M O v₁ₕ)[n]            [R, columns]
//
// where x is the row of the position's own token. The tables in brackets have p·heads rows for each position, and M x has p: a
// few hundred rows go through M O, instead of thousands of pairs through O and M. A pair costs 2·heads multiply-adds for each
// number instead of d. A value has d / heads numbers, so that all heads together cost M O no more than one row of d
// numbers. The gradients of the tables add up over pairs, and go to M and O at the end of the step.
//
// M is the MLP's first matrix A and, for the stream itself, the identity. With one layer, only the unembedding E reads the stream
// beside the MLP: then M is E, and no pair has a stream (joined_output.hpp has what the MLP adds to the logits).
// Dropout after O, and a norm before A, would come between; with them there are no tables.
#pragma once

#include "attention.hpp"

namespace grokscope::LEVEL {

// Of both positions: where the gradient of what a layer reads is put, or where it is read.
struct Streams {
    Grid of[2];
};

// The tables of one matrix.
class TokenTable {
public:
    // Of layer 0, whose positions `first` … go on. No matrix is the identity. What is mixed is multiplied by `factor`.
    TokenTable(const Config& config, Linear& output, Linear* matrix, int first, float factor = 1)
        : tokens_(config.modulus),
          heads_(config.heads),
          d_(config.width),
          size_(config.width / config.heads),
          columns_(matrix ? matrix->outputs() : config.width),
          first_(first),
          factor_(factor),
          output_(output),
          matrix_(matrix),
          product_(columns_, d_ + VECTOR_FLOATS),  // reading a head's columns in whole vectors goes beyond them
          transposed_(d_, whole_panels(columns_)),
          dtransposed_(d_, whole_panels(columns_)),
          dvalue_(tokens_, size_) {
        for (int s : {0, 1})
            table_[s] = Rows(tokens_ * heads_, whole_panels(columns_)),
            dtable_[s] = Rows(tokens_ * heads_, whole_panels(columns_));
        if (!matrix) return;
        dproduct_ = Rows(d_, whole_panels(d_));
        for (int s = first; s < 2; s++)
            own_[s] = Rows(tokens_, whole_panels(columns_)), down_[s] = Rows(tokens_, whole_panels(columns_));
    }
    TokenTable(const TokenTable&) = delete;
    TokenTable& operator=(const TokenTable&) = delete;

    long columns() const { return columns_; }

    // Before any pair: x are the tokens' rows.
    void prepare(Projections& projections, Streams x) {
        if (matrix_)
            matrix_->forward(d_, output_.transposed(), transposed_.grid());
        else
            std::copy_n(output_.transposed().data, transposed_.values.size(), transposed_.values.data());
        for (long j = 0; j < d_; j++)
            for (long q = 0; q < columns_; q++) product_.at(q)[j] = transposed_.at(j, q)[q % PANEL];
        for (int s : {0, 1})
            for (long head = 0; head < heads_; head++) {
                const PlainRows& value = projections.value[s];
                multiply(tokens_, columns_, size_, {value.at(0) + head * size_, value.row, 1, PANEL},
                         {transposed_.at(head * size_, 0), PANEL, transposed_.panel},
                         {table_[s].at(head, 0), heads_ * PANEL, table_[s].panel}, false);
            }
        for (int s = first_; s < 2 && matrix_; s++) matrix_->forward(tokens_, x.of[s], own_[s].grid());
        x_ = x;
    }

    void clear_gradients() {
        for (int s : {0, 1}) dtable_[s].values.clear(), down_[s].values.clear();
    }

    // The panel of column k, of `count` pairs at position s with this attention to the first.
    void mix(PairRows rows, long count, int s, const float* to_first, Grid out, long k) {
        mixed<false>(rows, count, s, to_first, out, k);
    }
    // The same, added to what is there.
    void add_mixed(PairRows rows, long count, int s, const float* to_first, Grid out, long k) {
        mixed<true>(rows, count, s, to_first, out, k);
    }

    // From the gradient d of what was mixed: to that of the tables, and adds in lanes to `dots` what the attention gets. The
    // identity's own rows are left to the caller.
    void backward(PairRows rows, long count, int s, const float* to_first, Grid d, long k, float* dots) {
        if (matrix_) add_to_own(down_[s], rows.of[s], count, d, k);
        mix_backward(rows, count, to_first, d, k, dots);
    }

    // After all pairs: adds to the gradients of M, O and the values, and to dx, that of the tokens' rows.
    void finish(Projections& projections, Projections& gradients, Streams dx) {
        for (int s = first_; s < 2 && matrix_; s++) {
            matrix_->add_gradient(tokens_, down_[s].grid(), x_.of[s]);
            matrix_->backward(tokens_, down_[s].grid(), dx.of[s], true);
        }
        for (int s : {0, 1})
            for (long head = 0; head < heads_; head++) value_backward(projections.value[s], gradients.value[s], s, head);
        if (!matrix_) return output_.add_transposed_gradient(dtransposed_);
        matrix_->add_gradient(d_, dtransposed_.grid(), output_.transposed());
        matrix_->backward(d_, dtransposed_.grid(), dproduct_.grid(), false);
        output_.add_transposed_gradient(dproduct_);
    }

private:
    void value_backward(const PlainRows& value, PlainRows& dvalue, int s, long head) {
        const long first = head * size_, row = heads_ * PANEL;
        const float* d = dtable_[s].at(head, 0);
        multiply(size_, columns_, tokens_, {value.at(0) + first, 1, value.row, PANEL * value.row},
                 {d, row, dtable_[s].panel}, {dtransposed_.at(first, 0), PANEL, dtransposed_.panel}, s > 0);
        multiply(tokens_, size_, columns_, {d, row, 1, dtable_[s].panel}, {product_.at(0) + first, product_.row, PANEL},
                 dvalue_.grid().product(), false);
        for (long token = 0; token < tokens_; token++)
            for (long j = 0; j < size_; j++) dvalue.at(token)[first + j] += dvalue_.at(token)[j];
    }

    // Adds the panel of column k of d to the rows of the pairs' own tokens.
    static void add_to_own(Rows& own, const int32_t* tokens, long count, Grid d, long k) {
        for (long i = 0; i < count; i++)
#pragma GCC unroll 8
            for (long at = 0; at < PANEL; at += VECTOR_FLOATS)
                add(own.at(tokens[i], k) + at, load(d.at(i, k) + at));
    }

    // out (+)= factor · (own + Σ_h a T₀ₕ[m] + (1 − a) T₁ₕ[n])
    template <bool ACCUMULATE>
    void mixed(PairRows rows, long count, int s, const float* to_first, Grid to, long k) {
        const long heads = heads_;
        const float *own = matrix_ ? own_[s].at(0, k) : x_.of[s].at(0, k), *first = table_[0].at(0, k),
                    *second = table_[1].at(0, k);
        float* out = to.at(0, k);
        for (long i = 0; i < count; i++, out += to.row, to_first += heads) {
            const float *from = own + rows.of[s][i] * PANEL, *t0 = first + rows.of[0][i] * heads * PANEL,
                        *t1 = second + rows.of[1][i] * heads * PANEL;
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
                if constexpr (ACCUMULATE) sums[j] = factor_ * sums[j] + load(out + j * VECTOR_FLOATS);
                store(out + j * VECTOR_FLOATS, sums[j]);
            }
        }
    }

    // `dots` get the inner products of d with T₀ₕ[m] − T₁ₕ[n]. Pairs of one n come after one another: what they read and add to
    // of the second position's tables stays in registers.
    void mix_backward(PairRows rows, long count, const float* to_first, Grid of, long k, float* dots) {
        for (long i = 0; i < count;) {
            const long n = rows.of[1][i], begin = i;
            while (++i < count && rows.of[1][i] == n) {}
            for (long head = 0; head < heads_;) {
                const Run run{rows.of[0] + begin, i - begin};
                const float *a = to_first + begin * heads_ + head, *d = of.from(begin).at(0, k);
                float* dot = dots + (begin * heads_ + head) * VECTOR_FLOATS;
                if (heads_ - head >= HEADS_AT_ONCE) {
                    mix_run_backward<HEADS_AT_ONCE>(run, a, d, of.row, k, head, n, dot);
                    head += HEADS_AT_ONCE;
                } else {
                    mix_run_backward<1>(run, a, d, of.row, k, head, n, dot);
                    head++;
                }
            }
        }
    }

    // As many as the registers hold: of each, two vectors for every vector of a panel. AVX-512 has 32 of them.
    static constexpr int HEADS_AT_ONCE = VECTOR_FLOATS == 16 ? 4 : 1;

    struct Run {
        const int32_t* m;
        long count;
    };

    // HEADS of them from `head` on, which read d once.
    template <int HEADS>
    void mix_run_backward(Run run, const float* to_first, const float* d, long d_row, long k, long head, long n,
                          float* dots) {
        const long second = (n * heads_ + head) * PANEL;
        const float *t0 = table_[0].at(head, k), *t1 = table_[1].at(0, k) + second;
        float *d0 = dtable_[0].at(head, k), *d1 = dtable_[1].at(0, k) + second;
        Vector from1[HEADS][TILE_VECTORS], to1[HEADS][TILE_VECTORS];
#pragma GCC unroll 8
        for (int h = 0; h < HEADS; h++)
#pragma GCC unroll 8
            for (int j = 0; j < TILE_VECTORS; j++) {
                from1[h][j] = load(t1 + h * PANEL + j * VECTOR_FLOATS);
                to1[h][j] = load(d1 + h * PANEL + j * VECTOR_FLOATS);
            }
        for (long i = 0; i < run.count; i++, d += d_row, to_first += heads_, dots += heads_ * VECTOR_FLOATS) {
            const long first = run.m[i] * heads_ * PANEL;
            Vector from[TILE_VECTORS];
#pragma GCC unroll 8
            for (int j = 0; j < TILE_VECTORS; j++) from[j] = load(d + j * VECTOR_FLOATS);
#pragma GCC unroll 8
            for (int h = 0; h < HEADS; h++) {
                const float a = to_first[h], b = 1 - a;
                Vector dot = load(dots + h * VECTOR_FLOATS);
#pragma GCC unroll 8
                for (int j = 0; j < TILE_VECTORS; j++) {
                    const long at = first + h * PANEL + j * VECTOR_FLOATS;
                    dot += from[j] * (load(t0 + at) - from1[h][j]);
                    add(d0 + at, a * from[j]);
                    to1[h][j] += b * from[j];
                }
                store(dots + h * VECTOR_FLOATS, dot);
            }
        }
#pragma GCC unroll 8
        for (int h = 0; h < HEADS; h++)
#pragma GCC unroll 8
            for (int j = 0; j < TILE_VECTORS; j++) store(d1 + h * PANEL + j * VECTOR_FLOATS, to1[h][j]);
    }

    const long tokens_, heads_, d_, size_, columns_;  // size_: dimensions of a head
    const int first_;                                 // position that goes on
    const float factor_;
    Linear &output_, *matrix_;
    Streams x_{};                // the tokens' rows
    PlainRows product_;          // M O [columns, d]
    Rows transposed_;            // (M O)ᵀ
    Rows dtransposed_;           // its gradient
    Rows dproduct_;              // and that of Oᵀ
    PlainRows dvalue_;           // of one head
    Rows table_[2], dtable_[2];  // M O v: `heads` rows for each token
    Rows own_[2], down_[2];      // M x, and its gradient
};

// Those of a layer: of the MLP's hidden layer, and of the stream or, with one layer, the logits.
class TokenTables {
public:
    // Whether they save work, for so many pairs a step. Multiply-adds; on the way back a pair's are loads and stores too.
    static bool worthwhile(const Config& config, long pairs) {
        if (config.norm != Norm::none || config.dropout_threshold > 0 || config.form == Form::direct) return false;
        if (config.form == Form::tokens) return true;
        const double d = double(config.width), heads = double(config.heads), hidden = double(config.mlp_width);
        const double rows = double(pairs) * (config.layers > 1 ? 2 : 1), tokens = 2 * double(config.modulus);
        const double by_tables = 3 * d * ((tokens + d) * (d + hidden) + tokens * hidden) + 14 * rows * heads * (d + hidden);
        return by_tables < 3 * rows * d * (d + hidden);
    }

    // `rows` of a block, of all positions. `unembedding` is that of a network with one layer.
    TokenTables(const Config& config, Linear& output, Linear& mlp_in, Linear* unembedding, int first, long rows)
        : heads_(config.heads),
          hidden_(config, output, &mlp_in, first),
          stream_(config, output, unembedding, first, unembedding ? float(1 / config.logit_divisor) : 1.0f),
          dots_(rows * heads_ * VECTOR_FLOATS) {}

    void prepare(Projections& projections, Streams x) { hidden_.prepare(projections, x), stream_.prepare(projections, x); }
    void clear_gradients() { hidden_.clear_gradients(), stream_.clear_gradients(); }

    // The stream after attention, of `count` pairs at position s with this attention to the first.
    void stream(PairRows rows, long count, int s, const float* to_first, Grid out) {
        for (long k = 0; k < stream_.columns(); k += PANEL) stream_.mix(rows, count, s, to_first, out, k);
    }
    // With one layer, what it adds to the logits.
    void add_logits(PairRows rows, long count, const float* to_first, Grid out) {
        for (long k = 0; k < stream_.columns(); k += PANEL) stream_.add_mixed(rows, count, 1, to_first, out, k);
    }
    // What the MLP's hidden layer takes: the panel of neuron k.
    void hidden_panel(PairRows rows, long count, int s, const float* to_first, long k, Grid out) {
        hidden_.mix(rows, count, s, to_first, out, k);
    }

    // The way back: first this, from the gradient of the stream or the logits, then all panels, then `attention_gradient`.
    // `base` is the place of the first pair's row among the rows of a block.
    void stream_backward(PairRows rows, long count, int s, const float* to_first, Grid d, long base) {
        std::fill_n(dots(base), count * heads_ * VECTOR_FLOATS, 0.0f);
        for (long k = 0; k < stream_.columns(); k += PANEL) stream_.backward(rows, count, s, to_first, d, k, dots(base));
    }
    void hidden_panel_backward(PairRows rows, long count, int s, const float* to_first, long k, Grid d, long base) {
        hidden_.backward(rows, count, s, to_first, d, k, dots(base));
    }

    // The gradient of the attention to the first position [count, heads].
    void attention_gradient(long count, long base, float* out) {
        for (long i = 0; i < count * heads_; i++) out[i] = sum(load(dots(base) + i * VECTOR_FLOATS));
    }

    // After all pairs: adds to the gradients of the matrices and the values, and to dx, that of the tokens' rows.
    void finish(Projections& projections, Projections& gradients, Streams dx) {
        hidden_.finish(projections, gradients, dx), stream_.finish(projections, gradients, dx);
    }

private:
    float* dots(long base) { return dots_.data() + base * heads_ * VECTOR_FLOATS; }

    const long heads_;
    TokenTable hidden_, stream_;
    Buffer dots_;  // [R, heads, VECTOR_FLOATS]
};

}  // namespace grokscope::LEVEL
