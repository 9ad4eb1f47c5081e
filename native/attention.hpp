// Part of a Transformer's step (transformer.hpp): attention between two positions.
//
// Softmax over two keys is a sigmoid of the difference of their scores. For a pair, the query q of one position, and each
// head:
//
//     a     = sigmoid(q · (k₀ − k₁) / divisor)          attention to the first position
//     mixed = v₁ + a (v₀ − v₁)
//
// A pair is given by the rows that its positions have among the queries, keys and values: those of its tokens in the first
// layer, its own in the others. So the gradients of the first layer's rows add up over pairs, and all matrix products
// with them are over 2p rows.
#pragma once

#include "floats.hpp"
#include "linear.hpp"

namespace grokscope::LEVEL {

// Of both positions.
struct Projections {
    PlainRows query[2], key[2], value[2];

    Projections(long rows, long columns) {
        for (PlainRows* all : {query, key, value})
            for (int s : {0, 1}) all[s] = PlainRows(rows, columns);
    }
    void clear() {
        for (PlainRows* all : {query, key, value})
            for (int s : {0, 1}) all[s].values.clear();
    }
};

// The rows of each pair's positions.
struct PairRows {
    const int32_t* of[2];
};

static inline float sigmoid(float x) {
    const float power = exp_negative(-std::abs(x));
    return (x >= 0 ? 1.0f : power) / (1.0f + power);  // NaN stays NaN
}

// Σ x · (y − z)
static inline float dot_difference(const float* x, const float* y, const float* z, long count) {
    Vector sums{};
    float total = 0;
    long i = 0;
    for (; i + VECTOR_FLOATS <= count; i += VECTOR_FLOATS) sums += load(x + i) * (load(y + i) - load(z + i));
    for (; i < count; i++) total += x[i] * (y[i] - z[i]);
    return total + sum(sums);
}

class Attention {
public:
    explicit Attention(const Config& config)
        : heads_(config.heads), size_(config.width / config.heads), factor_(float(1 / config.score_divisor)) {}

    // The attention of `count` pairs to the first position, for the query of one position [count, heads].
    void attend(const Projections& x, PairRows rows, long count, int position, float* to_first) const {
        for (long i = 0; i < count; i++) {
            const long first = rows.of[0][i], second = rows.of[1][i];
            const float* q = x.query[position].at(position ? second : first);
            const float *k0 = x.key[0].at(first), *k1 = x.key[1].at(second);
            for (long head = 0; head < heads_; head++) {
                const long from = head * size_;
                *to_first++ = sigmoid(factor_ * dot_difference(q + from, k0 + from, k1 + from, size_));
            }
        }
    }

    // With this attention: the mixed values.
    void mix(const Projections& x, PairRows rows, long count, const float* to_first, Grid mixed) const {
        for (long i = 0; i < count; i++) {
            const float *v0 = x.value[0].at(rows.of[0][i]), *v1 = x.value[1].at(rows.of[1][i]);
            float* __restrict out = mixed.at(i, 0);
            for (long head = 0; head < heads_; head++) {
                const float a = *to_first++;
                for (long j = head * size_; j < (head + 1) * size_; j++) out[j] = v1[j] + a * (v0[j] - v1[j]);
            }
        }
    }

    // Adds to the gradients of the values; `dto_first` becomes that of the attention.
    void mix_backward(const Projections& x, PairRows rows, long count, const float* to_first, Grid dmixed,
                      Projections& dx, float* dto_first) const {
        for (long i = 0; i < count; i++) {
            const long first = rows.of[0][i], second = rows.of[1][i];
            const float *d = dmixed.at(i, 0), *v0 = x.value[0].at(first), *v1 = x.value[1].at(second);
            float* __restrict dv0 = dx.value[0].at(first);
            float* __restrict dv1 = dx.value[1].at(second);
            for (long head = 0; head < heads_; head++) {
                const long from = head * size_;
                const float a = *to_first++;
                *dto_first++ = dot_difference(d + from, v0 + from, v1 + from, size_);
                for (long j = from; j < from + size_; j++) dv0[j] += a * d[j], dv1[j] += (1 - a) * d[j];
            }
        }
    }

    // From the gradient of the attention: adds to those of queries and keys.
    void attend_backward(const Projections& x, PairRows rows, long count, int position, const float* to_first,
                         const float* dto_first, Projections& dx) const {
        for (long i = 0; i < count; i++) {
            const long first = rows.of[0][i], second = rows.of[1][i], own = position ? second : first;
            const float *q = x.query[position].at(own), *k0 = x.key[0].at(first), *k1 = x.key[1].at(second);
            float* __restrict dq = dx.query[position].at(own);
            float* __restrict dk0 = dx.key[0].at(first);
            float* __restrict dk1 = dx.key[1].at(second);
            for (long head = 0; head < heads_; head++) {
                const float a = *to_first++, slope = factor_ * a * (1 - a) * *dto_first++;
                for (long j = head * size_; j < (head + 1) * size_; j++) {
                    dk0[j] += slope * q[j];
                    dk1[j] -= slope * q[j];
                    dq[j] += slope * (k0[j] - k1[j]);
                }
            }
        }
    }

private:
    const long heads_, size_;  // size_: dimensions of a head
    const float factor_;
};

}  // namespace grokscope::LEVEL
