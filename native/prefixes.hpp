// Every prefix of a pruning order at once.
//
// Neuron k adds W_k h_k to the logits of a row, so a network with one neuron more is a rank-one update away. Rows go in blocks
// whose logits stay in the first cache while all neurons are added to them, the last of the order first: that starts
// from the empty network, and nothing cancels. A row is a lane of a vector, so neither the maximum nor the
// sum of squares of a row has to be collected from lanes, and p need not be padded.
//
// LayerNorm couples neurons: its mean μ and deviation σ are over all N, where pruned ones count as 0. Then
//
//     logits = (Σ W_k γ_k h_k − μ Σ W_k γ_k) / σ + Σ W_k β_k
//
// and it is the sums that grow by one neuron at a time.
#pragma once

#include "floats.hpp"
#include "norms.hpp"

namespace grokscope::LEVEL {

constexpr int PREFIX_VECTORS = 2;  // more than one, because a row's maximum waits for itself; few enough for the registers
constexpr long PREFIX_ROWS = PREFIX_VECTORS * VECTOR_FLOATS;

typedef int32_t Integers __attribute__((vector_size(VECTOR_FLOATS * 4)));

template <bool LAYER>
class PrefixBlock {
public:
    PrefixBlock(const PrefixTask& task)
        : task_(task),
          columns_(std::max(task.width, 1L) * task.outputs),  // adding no neuron reads the first one's, also of none
          hidden_(task.width * PREFIX_ROWS),
          sums_(task.outputs * PREFIX_ROWS),
          normalised_(LAYER ? task.outputs * PREFIX_ROWS : 0),
          scales_(task.outputs),
          shifts_(task.outputs) {
        for (long q = 0; q < task.outputs; q++)
            for (long k = 0; k < task.width; k++)
                columns_.data()[k * task.outputs + q] = task.output[q * task.width + task.order[k]];
    }

    // All prefixes of rows start … start + rows − 1; what lanes beyond them hold is never read.
    void evaluate(long start, long rows) {
        const long N = task_.width;
        for (long i = 0; i < rows; i++)
            for (long k = 0; k < N; k++)
                hidden_.data()[k * PREFIX_ROWS + i] = task_.hidden[(start + i) * N + task_.order[k]];
        sums_.clear();
        scales_.clear();
        shifts_.clear();
        for (long i = 0; i < PREFIX_ROWS; i++) {
            total_[i] = total_squares_[i] = 0;
            mean_[i] = inverse_[i] = 0;  // of no neuron there is nothing to normalise
        }
        for (long pruned = N; pruned >= 0; pruned--) {
            if constexpr (LAYER)
                if (pruned < N) add_to_norm(pruned);
            add_neuron(pruned);
            if (task_.loss == Loss::cross_entropy) sum_powers();
            record(pruned * task_.rows + start, start, rows);
        }
    }

private:
    float* logits() { return LAYER ? normalised_.data() : sums_.data(); }  // [p, PREFIX_ROWS]

    // What the norm's statistics, its scales and its shifts gain by the neuron in this place of the order.
    void add_to_norm(long k) {
        const float *h = hidden_.data() + k * PREFIX_ROWS, *w = columns_.data() + k * task_.outputs;
        const float scale = task_.scale[task_.order[k]], shift = task_.shift[task_.order[k]];
        for (long i = 0; i < PREFIX_ROWS; i++) {
            total_[i] += double(h[i]);  // double, because the variance is a difference of these
            total_squares_[i] += double(h[i]) * double(h[i]);
            const double average = total_[i] / double(task_.width), square = total_squares_[i] / double(task_.width);
            // Rounding may leave less than nothing where all activations are the same.
            const double variance = std::max(square - average * average, 0.0);
            mean_[i] = float(average);
            inverse_[i] = float(1 / std::sqrt(variance + double(NORM_EPSILON)));
        }
        for (long q = 0; q < task_.outputs; q++) scales_.data()[q] += w[q] * scale;
        for (long q = 0; q < task_.outputs; q++) shifts_.data()[q] += w[q] * shift;
    }

    // Adds the neuron in this place of the order, none beyond the last, and finds each row's highest logit, its first place,
    // and the sum of squares.
    void add_neuron(long k) {
        const bool none = k == task_.width;
        Vector own[PREFIX_VECTORS], mean[PREFIX_VECTORS], inverse[PREFIX_VECTORS];
        Vector highest[PREFIX_VECTORS], squares[PREFIX_VECTORS];
        Integers place[PREFIX_VECTORS];
        for (int v = 0; v < PREFIX_VECTORS; v++) {
            own[v] = none ? Vector{} : load(hidden_.data() + k * PREFIX_ROWS + v * VECTOR_FLOATS);
            if (LAYER && !none) own[v] *= task_.scale[task_.order[k]];
            mean[v] = load(mean_ + v * VECTOR_FLOATS);
            inverse[v] = load(inverse_ + v * VECTOR_FLOATS);
            highest[v] = Vector{} - std::numeric_limits<float>::infinity();
            squares[v] = Vector{};
            place[v] = Integers{};
        }
        const float* w = columns_.data() + (none ? 0 : k * task_.outputs);
        float *sums = sums_.data(), *shown = logits();
        for (int32_t q = 0; q < task_.outputs; q++, sums += PREFIX_ROWS, shown += PREFIX_ROWS) {
            const Integers here = Integers{} + q;
#pragma GCC unroll 4
            for (int v = 0; v < PREFIX_VECTORS; v++) {
                Vector next = load(sums + v * VECTOR_FLOATS) + own[v] * w[q];
                store(sums + v * VECTOR_FLOATS, next);
                if constexpr (LAYER) {
                    next = (next - mean[v] * scales_.data()[q]) * inverse[v] + shifts_.data()[q];
                    store(shown + v * VECTOR_FLOATS, next);
                }
                place[v] = next > highest[v] ? here : place[v];  // not ≥: the first of equal maxima stays
                highest[v] = next > highest[v] ? next : highest[v];
                squares[v] += next * next;
            }
        }
        for (int v = 0; v < PREFIX_VECTORS; v++) {
            store(highest_ + v * VECTOR_FLOATS, highest[v]);
            store(squares_ + v * VECTOR_FLOATS, squares[v]);
            std::memcpy(place_ + v * VECTOR_FLOATS, &place[v], sizeof place[v]);
        }
    }

    // Σ exp(f − highest) of each row.
    void sum_powers() {
        for (long i = 0; i < PREFIX_ROWS; i++) powers_[i] = 0;
        const float* f = logits();
        for (long q = 0; q < task_.outputs; q++, f += PREFIX_ROWS)
            for (long i = 0; i < PREFIX_ROWS; i++) powers_[i] += exp_negative(f[i] - highest_[i]);
    }

    void record(long place, long start, long rows) {
        for (long i = 0; i < rows; i++) {
            const double own = logits()[task_.labels[start + i] * PREFIX_ROWS + i];
            const double mse = (double(squares_[i]) - 2 * own + 1) / double(task_.outputs);  // Σ(f − e_y)² / p
            task_.predictions[place + i] = uint16_t(place_[i]);
            task_.losses[place + i] =
                float(task_.loss == Loss::mse ? mse : std::log(double(powers_[i])) + double(highest_[i]) - own);
        }
    }

    const PrefixTask& task_;
    Buffer columns_, hidden_;     // in pruning order: columns of W [N, p], activations [N, PREFIX_ROWS]
    Buffer sums_, normalised_;    // Σ W h, or Σ W γ h and what LayerNorm makes of it [p, PREFIX_ROWS]
    Buffer scales_, shifts_;      // Σ W γ and Σ W β [p]
    double total_[PREFIX_ROWS], total_squares_[PREFIX_ROWS];  // Σ h and Σ h²
    float mean_[PREFIX_ROWS], inverse_[PREFIX_ROWS];          // μ and 1/σ
    float highest_[PREFIX_ROWS], squares_[PREFIX_ROWS], powers_[PREFIX_ROWS];
    int32_t place_[PREFIX_ROWS];
};

template <bool LAYER>
static void evaluate_blocks(const PrefixTask& task) {
    PrefixBlock<LAYER> block(task);
    for (long start = 0; start < task.rows; start += PREFIX_ROWS)
        block.evaluate(start, std::min(PREFIX_ROWS, task.rows - start));
}

static void evaluate_prefixes(const PrefixTask& task) {
    const FlushDenormals flush;
    if (task.scale)
        evaluate_blocks<true>(task);
    else
        evaluate_blocks<false>(task);
}

}  // namespace grokscope::LEVEL
