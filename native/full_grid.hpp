// Part of the training step (kernel.hpp): two layers, quadratic activation, MSE, full batch.
//
// The loss on the training set D is ½Σ_D‖f‖² − Σ_D f_y up to constants and a factor. Over the full grid of all p² pairs the
// first part separates: its gradient needs products of N×N and p×N matrices but no loop over pairs. So for a training
// set of more than half the grid it is less work to take the full grid, subtract the pairs that are not in D, and add
// the second part, which is sparse. With A = Uᵀ, B = Vᵀ as stored (p rows of N), ∘ elementwise, s(X) column sums over the p rows,
//
//     f(q; m, n) = a(m, q) + b(n, q) + 2 Σ_k W_qk A_mk B_nk          a = (A∘A)Wᵀ,  b = (B∘B)Wᵀ        [p, p]
//     ga(m, q)   = Σ_n f = p·a + s(b) + 2 (A∘s(B)) Wᵀ,               gb likewise with A ↔ B
//     dW = gaᵀ(A∘A) + gbᵀ(B∘B) + 2[(aᵀA)∘s(B) + (bᵀB)∘s(A)] + 4 W[(AᵀA)∘(BᵀB)]
//     dA = 2A∘(ga W) + 2[(a W)∘s(B) + s((b W)∘B)] + 4 A[(WᵀW)∘(BᵀB)],  dB likewise
//
// The second part has the same shape. With c(m, q), how often the label q occurs with the input m in D, and d(n, q) likewise,
//
//     Σ_D f_y = Σ c∘a + Σ d∘b + 2 Σ_D Σ_k W_yk A_mk B_nk
//
// so ga − c and gb − d in the place of ga and gb take off the first two, and only the last is a loop over D.
//
// The rounding error is relative to f instead of to the residual; tests compare whole runs with the direct form.
#pragma once

#include "gram_terms.hpp"
#include "output_layer.hpp"

namespace grokscope::LEVEL {

// The pairs that are not in the training set, if going over them is less work than going over those that are.
static std::optional<Examples> find_complement(const Config& config, const Examples& training) {
    if (config.form == Form::direct || config.depth > 2 || config.activation != Activation::quadratic ||
        config.loss != Loss::mse || config.norm != Norm::none || config.dropout_threshold > 0 || config.batch_size != 0)
        return std::nullopt;
    const long p = config.modulus, others = p * p - training.count();
    if (others < 0) return std::nullopt;  // an example came twice
    // Multiply-adds of the matrix products; the sparse part costs as much as a few columns of them.
    const double n = double(training.count()), N = double(config.width);
    const double direct = 3 * n * N * double(p);
    const double by_complement = (3 * double(others) * N + 6 * N * N) * double(p) + 30 * n * N;
    if (config.form == Form::automatic && by_complement >= direct) return std::nullopt;
    bytes_for({others}, 3 * sizeof(int32_t));  // a few examples of a large grid leave nearly all of it
    std::vector<bool> present(size_t(p * p));
    for (size_t i = 0; i < training.m.size(); i++) {
        const size_t place = size_t(training.m[i] * p + training.n[i]);
        if (present[place]) return std::nullopt;  // an example came twice
        present[place] = true;
    }
    Examples rest;
    for (std::vector<int32_t>* values : {&rest.m, &rest.n, &rest.label}) values->reserve(size_t(others));
    for (long place = 0; place < p * p; place++)
        if (!present[size_t(place)]) {
            rest.m.push_back(int32_t(place / p));
            rest.n.push_back(int32_t(place % p));
            rest.label.push_back(0);
        }
    return rest;
}

class FullGrid : Part {
public:
    FullGrid(const Config& config, Parameters& weights, Parameters& gradients, const Examples& training,
             OutputLayer& output_layer)
        : Part(config, weights, gradients),
          output_layer_(output_layer),
          count_(training.count()),
          together_((p_ + INPUTS - 1) / INPUTS),
          labels_(size_t(together_ * p_ * INPUTS), int32_t(p_ * VECTOR_FLOATS)),
          pairs_(training.m.size()),
          ends_(size_t(p_)),
          vector_of_w_((p_ + 1) * VECTOR_FLOATS),
          gram_terms_(config, weights, gradients) {
        for (Buffer* matrix : {&squares_, &products_, &aw_, &bw_}) *matrix = Buffer(weights.rows * width_);
        for (Buffer* matrix : {&a_, &b_, &ga_, &gb_, &c_, &d_}) *matrix = Buffer(p_ * outputs_);
        for (Buffer* row : {&column_u_, &column_v_}) *row = Buffer(width_);
        for (size_t i = 0; i < training.m.size(); i++) {
            const long m = training.m[i], n = training.n[i], label = training.label[i];
            c_.data()[m * outputs_ + label] += 1;
            d_.data()[n * outputs_ + label] += 1;
            labels_[size_t((m % together_ * p_ + n) * INPUTS + m / together_)] = int32_t(label * VECTOR_FLOATS);
            ends_[size_t(label)]++;
        }
        std::partial_sum(ends_.begin(), ends_.end(), ends_.begin());
        std::vector<long> next(ends_.size());
        std::copy(ends_.begin(), ends_.end() - 1, next.begin() + 1);
        for (size_t i = 0; i < training.m.size(); i++)
            pairs_[size_t(next[size_t(training.label[i])]++)] = {int32_t(training.m[i] * PANEL),
                                                                 int32_t(training.n[i] * PANEL)};
    }

    // The gradient of ½Σ‖f‖² over all pairs, less that of Σ_D f_y but for its last term.
    void add_all_pairs() {
        float *u = weights_.u(), *v = weights_.v();
        column_sums(u, column_u_);
        column_sums(v, column_v_);
        logits_of_squares(u, a_);
        logits_of_squares(v, b_);
        grid_sums(u, column_v_, a_, b_, c_, ga_);
        grid_sums(v, column_u_, b_, a_, d_, gb_);
        times_w(a_, aw_);
        times_w(b_, bw_);
        input_gradient(u, v, aw_, bw_, ga_, column_v_, gradients_.u());
        input_gradient(v, u, bw_, aw_, gb_, column_u_, gradients_.v());
        gram_terms_.add();
        output_gradient(u, a_, ga_, column_v_);
        output_gradient(v, b_, gb_, column_u_);
    }

    // The pairs that are not in D have been taken off: adds the last term, and makes it the gradient of the loss. Returns
    // the loss.
    double finish() {
        const double n = double(count_);
        // Σ_D‖f‖² and Σ_D f_y are the inner products of W with the gradients of ½Σ_D‖f‖² and of Σ_D f_y, which is of
        // degree one in W.
        const double before = inner_product(weights_.w(), gradients_.w());
        add_cross_terms();
        const double both = inner_product(weights_.w(), gradients_.w());  // Σ_D‖f‖² − Σ_D f_y
        const double linear = counted(c_, a_) + counted(d_, b_) + before - both;

        const float factor = float(2 / (n * double(p_)));
        for (long i = 0; i < gradients_.values.size(); i++) gradients_.values.data()[i] *= factor;
        return (both - linear + n) / (n * double(p_));
    }

private:
    // `visit(place, column)` for all weights of a matrix, panel by panel, row by row.
    template <typename Visit>
    void for_each_weight(Visit visit) const {
        for (long k = 0; k < width_; k += PANEL)
            for (long row = 0; row < p_; row++)
                for (long at = 0; at < PANEL; at++) visit(k / PANEL * matrix_panel_ + row * PANEL + at, k + at);
    }

    void column_sums(const float* x, Buffer& out) {
        out.clear();
        float* sums = out.data();
        for_each_weight([&](long i, long column) { sums[column] += x[i]; });
    }

    // (X∘X)Wᵀ
    void logits_of_squares(const float* x, Buffer& out) {
        square(x);
        times_transposed_w(squares_, out);
    }

    void square(const float* x) {
        for (long i = 0; i < squares_.size(); i++) squares_.data()[i] = x[i] * x[i];
    }

    void times_transposed_w(Buffer& x, Buffer& out) {
        output_layer_.multiply_weights(p_, {x.data(), PANEL, matrix_panel_}, {0, width_}, out.data());
    }

    // p·own + s(other) + 2 (X∘columns)Wᵀ − counts
    void grid_sums(const float* x, Buffer& columns, Buffer& own, Buffer& other, Buffer& counts, Buffer& out) {
        float *product = products_.data(), *column = columns.data();
        for_each_weight([&](long i, long k) { product[i] = 2 * x[i] * column[k]; });
        times_transposed_w(products_, out);
        std::vector<float> totals(static_cast<size_t>(outputs_));
        float* total = totals.data();
        for (long i = 0; i < p_; i++)
            for (long q = 0; q < p_; q++) total[q] += other.data()[i * outputs_ + q];
        for (long i = 0; i < p_; i++) {
            const float *mine = own.data() + i * outputs_, *count = counts.data() + i * outputs_;
            float* sums = out.data() + i * outputs_;
            for (long q = 0; q < p_; q++) sums[q] += float(p_) * mine[q] + total[q] - count[q];
        }
    }

    void times_w(Buffer& left, Buffer& out) {
        multiply(p_, config_.width, p_, left_logits(left), right_matrix(weights_.w()), matrix_product(out.data()),
                 false);
    }

    // 2X∘(sums W) + 2[(own W)∘columns + s((other W)∘Y)]
    void input_gradient(float* x, const float* y, Buffer& own_w, Buffer& other_w, Buffer& sums, Buffer& columns, float* out) {
        const float *own = own_w.data(), *other = other_w.data(), *column = columns.data(), *product = products_.data();
        std::vector<float> shared_sums(static_cast<size_t>(width_));
        float* shared = shared_sums.data();
        for_each_weight([&](long i, long k) { shared[k] += other[i] * y[i]; });
        times_w(sums, products_);
        for_each_weight([&](long i, long k) { out[i] += 2 * (x[i] * product[i] + own[i] * column[k] + shared[k]); });
    }

    // dW += sumsᵀ(X∘X) + 2(ownᵀX)∘columns
    void output_gradient(const float* x, Buffer& own, Buffer& sums, Buffer& columns) {
        const long N = config_.width;
        float *dw = gradients_.w(), *product = products_.data(), *column = columns.data();
        square(x);
        multiply(p_, N, p_, left_transposed(sums), right_matrix(squares_.data()), matrix_product(dw), true);
        multiply(p_, N, p_, left_transposed(own), right_matrix(x), matrix_product(product), false);
        for_each_weight([&](long i, long k) { dw[i] += 2 * product[i] * column[k]; });
    }

    // −2 Σ_D Σ_k W_yk A_mk B_nk, for one panel of neurons after the other, whose U, V and W stay in the first cache. Sums stay in
    // registers: those of U and V go over the grid, one vector of neurons at a time, those of W over the pairs of each label.
    void add_cross_terms() {
        for (long panel = 0; panel < width_ / PANEL * matrix_panel_; panel += matrix_panel_) {
            for (long at = panel; at < panel + PANEL; at += VECTOR_FLOATS) {
                const float* w = weights_.w() + at;
                for (long row = 0; row < p_; row++) store(vector_of_w_.data() + row * VECTOR_FLOATS, load(w + row * PANEL));
                for (long m = 0; m < together_; m++)
                    add_input_terms(m, weights_.u() + at, weights_.v() + at, gradients_.u() + at, gradients_.v() + at);
            }
            add_output_terms(weights_.u() + panel, weights_.v() + panel, gradients_.w() + panel);
        }
    }

    // Several inputs m go through all n together, so that what belongs to n is read once for all of them. Pairs that are not
    // in D have a row of zeros for their label's.
    void add_input_terms(long m, const float* u, const float* v, float* du, float* dv) {
        Vector own[INPUTS], sums[INPUTS] = {};
        for (long i = 0; i < INPUTS; i++) own[i] = is_input(m, i) ? -2 * load(u + input(m, i) * PANEL) : Vector{};
        const float* w = vector_of_w_.data();
        const int32_t* label = labels_.data() + m * p_ * INPUTS;
        for (long n = 0; n < p_; n++, v += PANEL, dv += PANEL, label += INPUTS) {
            const Vector b = load(v);
            Vector db{};
#pragma GCC unroll 8
            for (long i = 0; i < INPUTS; i++) {
                const Vector out = load(w + label[i]);
                sums[i] += b * out;
                db += own[i] * out;
            }
            add(dv, db);
        }
        for (long i = 0; i < INPUTS; i++)
            if (is_input(m, i)) add(du + input(m, i) * PANEL, -2 * sums[i]);
    }

    // Pairs of a label in D, four at a time: each sum waits for itself only every fourth pair.
    void add_output_terms(const float* u, const float* v, float* dw) {
        const Pair* pair = pairs_.data();
        for (long label = 0; label < p_; label++, dw += PANEL) {
            const Pair* end = pairs_.data() + ends_[size_t(label)];
            Vector sums[4][TILE_VECTORS] = {};
            for (; end - pair >= 4; pair += 4)
#pragma GCC unroll 4
                for (int i = 0; i < 4; i++) add_products(u + pair[i].m, v + pair[i].n, sums[i]);
            for (; pair < end; pair++) add_products(u + pair->m, v + pair->n, sums[0]);
            for (int j = 0; j < TILE_VECTORS; j++)
                add(dw + j * VECTOR_FLOATS, -2 * ((sums[0][j] + sums[1][j]) + (sums[2][j] + sums[3][j])));
        }
    }

    // A panel of the elements of a row of U times those of a row of V.
    static void add_products(const float* u, const float* v, Vector (&sums)[TILE_VECTORS]) {
#pragma GCC unroll 8
        for (int j = 0; j < TILE_VECTORS; j++) sums[j] += load(u + j * VECTOR_FLOATS) * load(v + j * VECTOR_FLOATS);
    }

    // Of the inputs that go together, the i-th.
    long input(long m, long i) const { return m + i * together_; }
    bool is_input(long m, long i) const { return input(m, i) < p_; }

    double counted(Buffer& counts, Buffer& logits) const {
        double total = 0;
        for (long i = 0; i < p_; i++)
            for (long q = 0; q < p_; q++) total += counts.data()[i * outputs_ + q] * logits.data()[i * outputs_ + q];
        return total;
    }

    double inner_product(const float* x, const float* y) const {
        double total = 0;
        for (long k = 0; k < width_; k += PANEL) {
            Vector sums{};
            for (long i = k / PANEL * matrix_panel_; i < k / PANEL * matrix_panel_ + p_ * PANEL; i += VECTOR_FLOATS)
                sums += load(x + i) * load(y + i);
            total += sum(sums);
        }
        return total;
    }

    static constexpr long INPUTS = TILE_ROWS * TILE_VECTORS / 3;  // that go through the cross terms together: a register for each

    // Of a pair, as distances in a panel.
    struct Pair {
        int32_t m, n;
    };

    OutputLayer& output_layer_;
    const long count_;                                         // of D
    const long together_;                                      // groups of inputs
    std::vector<int32_t> labels_;                              // [together_, p, INPUTS]: of pairs in D, as distances in vector_of_w_
    std::vector<Pair> pairs_;                                  // D, ordered by label
    std::vector<long> ends_;                                   // of each label's pairs among pairs_
    Buffer vector_of_w_;                                       // [p + 1] vectors; the last is of pairs that are not in D
    Buffer c_, d_;                                             // [p, outputs_]: how often a label occurs with an input
    Buffer a_, b_, ga_, gb_;                                   // [p, outputs_], plain rows
    Buffer aw_, bw_;                                           // a W and b W: as large as U
    Buffer squares_, products_;                                // as large as U
    Buffer column_u_, column_v_;                               // [width_]
    GramTerms gram_terms_;
};

}  // namespace grokscope::LEVEL
