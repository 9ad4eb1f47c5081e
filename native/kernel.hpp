// The training step. Included once per instruction level by level_*.cpp, inside a namespace of the level.
//
// A step goes through its rows (examples) in blocks whose hidden layer stays in the second cache. For each block:
//
//     hidden    H  = φ(dropout(U[m] + V[n]))          [R, N]   look-ups, no one-hot vectors
//     norm      Y  = norm(H)                          [R, N]   or further hidden layers: deep.hpp
//     logits    F  = Y · Wᵀ                           [R, p]   matrix product 1
//     residual  r  = ∂loss/∂F                         [R, p]
//     dW       += rᵀ · Y                              [p, N]   matrix product 2
//     dY        = r · W                               [R, N]   matrix product 3
//     scatter   dU[m], dV[n] += norm', φ', dropout of dY       after each panel of product 3
//
// and ends with the optimiser. Matrices with N columns are in panels (trainer.hpp); a pass over neurons goes panel by panel,
// and the few kilobytes of U, V, H and their gradients that belong to a panel stay in the first cache.

#include "matmul.hpp"
#include "philox.hpp"

constexpr long BLOCK_ROWS = 144;
constexpr float NORM_EPSILON = 1e-5f, BATCH_NORM_MOMENTUM = 0.1f;

// Weights of dying neurons shrink by a constant factor each step; as denormals they would make the CPU crawl.
class FlushDenormals {
public:
#if defined(__x86_64__) || defined(__i386__)
    FlushDenormals() : before_(__builtin_ia32_stmxcsr()) { __builtin_ia32_ldmxcsr(before_ | 0x8040); }
    ~FlushDenormals() { __builtin_ia32_ldmxcsr(before_); }

private:
    unsigned before_;
#elif defined(__aarch64__)
    FlushDenormals() : before_(__builtin_aarch64_get_fpcr()) { __builtin_aarch64_set_fpcr(before_ | (1u << 24)); }
    ~FlushDenormals() { __builtin_aarch64_set_fpcr(before_); }

private:
    unsigned before_;
#endif
};

// exp(x) for x ≤ 0, to about two units in the last place: 2ⁿ · polynomial(rest), as every libm does it, but in a form
// that compilers turn into vector instructions.
static inline float exp_negative(float x) {
    x = std::max(x, -87.0f);
    const float n = std::floor(x * 1.44269504f + 0.5f);
    const float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
    float series = 1.9875691500e-4f;
    series = series * r + 1.3981999507e-3f;
    series = series * r + 8.3334519073e-3f;
    series = series * r + 4.1665795894e-2f;
    series = series * r + 1.6666665459e-1f;
    series = series * r + 5.0000001201e-1f;
    series = series * r * r + r + 1.0f;
    const int32_t bits = (int32_t(n) + 127) << 23;
    float power;
    std::memcpy(&power, &bits, sizeof power);
    return series * power;
}

// Rows of neurons in panels, with room for `rows` of them.
struct Rows {
    Buffer values;
    long panel = 0;  // distance of two panels

    Rows() = default;
    Rows(long rows, long width) : values(panel_rows(rows) * width), panel(panel_rows(rows) * PANEL) {}
    float* at(long row, long k) { return values.data() + k / PANEL * panel + row * PANEL; }
    Left left() { return {values.data(), PANEL, 1, panel}; }
    Right right() { return {values.data(), PANEL, panel}; }
    Product product(long first = 0, long k = 0) { return {at(first, k), PANEL, panel}; }
};

class LevelTrainer final : public Trainer {
public:
    LevelTrainer(const Config& config, const Examples& training)
        : Trainer(config, PANEL),
          p_(config.modulus),
          outputs_((config.modulus + PANEL - 1) / PANEL * PANEL),
          width_(weights_.width),
          matrix_panel_(weights_.rows * PANEL),
          training_(training),
          logits_(BLOCK_ROWS * outputs_),
          transposed_w_(width_ * outputs_) {
        if (config.batch_size == 0) sort_rows(training_);
        const long n = training_.count();
        for (long i = 0; i < n; i++)
            examples_.push_back(uint32_t(training_.m[size_t(i)] * p_ + training_.n[size_t(i)]));
        complement_ = find_complement();
        // BatchNorm needs the whole batch before any row goes on, so it keeps all rows; the others keep a block.
        const long batch = config.batch_size ? config.batch_size : n;
        const long rows = config.norm == Norm::batch ? std::max(batch, BLOCK_ROWS) : BLOCK_ROWS;
        hidden_ = Rows(rows, width_);
        upstream_ = Rows(rows, config.norm == Norm::none ? PANEL : width_);
        if (config.dropout_threshold > 0) mask_ = Buffer(rows * width_);
        if (config.norm != Norm::none) normalised_ = Rows(BLOCK_ROWS, width_);
        if (config.norm == Norm::batch)
            batch_mean_ = Buffer(width_), batch_inverse_ = Buffer(width_), batch_variance_ = Buffer(width_);
        if (complement_) allocate_full_grid();
        allocate_deeper();
    }

    bool uses_complement() const override { return complement_.has_value(); }

    void advance(long steps, double* losses) override {
        const FlushDenormals flush;
        for (long i = 0; i < steps; i++) {
            losses[i] = compute_gradient();
            step++;
            update_running_statistics();
            optimise();
        }
    }

    double gradient() override {
        const FlushDenormals flush;
        return compute_gradient();
    }

    void evaluate(const Examples& examples, int64_t* predictions, double* losses) override {
        const FlushDenormals flush;
        transpose_weights();
        if (config_.norm == Norm::batch)
            for (long k = 0; k < width_; k++)
                batch_inverse_.data()[k] = 1 / std::sqrt(running_variance_.data()[k] + NORM_EPSILON);
        for (long start = 0; start < examples.count(); start += BLOCK_ROWS) {
            const long rows = std::min(BLOCK_ROWS, examples.count() - start);
            compute_hidden(examples, start, rows, 0, false);
            Rows* inputs = deeper_layers(rows, false);
            if (config_.norm == Norm::layer) inputs = layer_norm(rows);
            if (config_.norm == Norm::batch) inputs = batch_norm(rows, 0, running_mean_.data());
            compute_logits(rows, *inputs);
            for (long i = 0; i < rows; i++) {
                float *f = logits_.data() + i * outputs_, total;
                predictions[start + i] = std::max_element(f, f + p_) - f;
                losses[start + i] = row_loss(f, examples.label[size_t(start + i)], f, total);
            }
        }
    }

private:
    Left left_matrix(float* matrix) const { return {matrix, PANEL, 1, matrix_panel_}; }
    Right right_matrix(const float* matrix) const { return {matrix, PANEL, matrix_panel_}; }
    Product matrix_product(float* matrix) const { return {matrix, PANEL, matrix_panel_}; }
    Left left_logits(const Buffer& logits) const { return {logits.data(), outputs_, 1, PANEL}; }
    Left left_transposed(const Buffer& logits) const { return {logits.data(), 1, outputs_, PANEL * outputs_}; }

    // ---- the gradient -------------------------------------------------------------------------------------------

    // Leaves the gradient in gradients_; the loss is of the weights as they are.
    double compute_gradient() {
        gradients_.values.clear();
        transpose_weights();
        if (complement_) return full_grid_gradient();
        if (config_.batch_size == 0) return rows_gradient(training_, examples_);
        choose_batch();
        return rows_gradient(batch_, batch_examples_);
    }

    double rows_gradient(const Examples& rows, const std::vector<uint32_t>& examples) {
        const long count = rows.count();
        const bool whole = config_.norm == Norm::batch;
        if (whole) {
            draw_masks(examples, 0, count);
            compute_hidden(rows, 0, count, 0, true);
            batch_statistics(count);
        }
        double loss = 0;
        for (long start = 0; start < count; start += BLOCK_ROWS) {
            const long size = std::min(BLOCK_ROWS, count - start), first = whole ? start : 0;
            if (!whole) {
                draw_masks(examples, start, size);
                compute_hidden(rows, start, size, 0, true);
            }
            Rows* inputs = deeper_layers(size, true);
            if (config_.norm == Norm::layer) inputs = layer_norm(size);
            if (whole) inputs = batch_norm(size, first, batch_mean_.data());
            compute_logits(size, *inputs);
            for (long i = 0; i < size; i++)
                loss += residual(logits_.data() + i * outputs_, rows.label[size_t(start + i)], count);
            backpropagate(rows, start, size, *inputs, first);
            backpropagate_deeper(rows, start, size);
            if (config_.norm == Norm::layer) {
                layer_norm_backward(size);
                scatter_all(rows, start, size);
            }
            if (whole) batch_norm_sums(size, first);
        }
        if (whole) {
            batch_norm_backward(count);
            scatter_all(rows, 0, count);
        }
        return loss / double(count);
    }

    void draw_masks(const std::vector<uint32_t>& examples, long start, long count) {
        if (config_.dropout_threshold == 0) return;
        for (size_t layer = 0; layer <= deeper_.size(); layer++) {
            float* mask = layer ? deeper_[layer - 1].mask.data() : mask_.data();
            for (long i = 0; i < count; i++)
                dropout_row(mask + i * width_, config_.width, examples[size_t(start + i)], uint32_t(step + 1),
                            uint32_t(layer), config_.seed, config_.dropout_threshold, float(config_.dropout_scale));
        }
    }

    // `call(relu, masked)` with both as constants of the compiler.
    template <typename Call>
    void specialise(bool training, Call call) const {
        const bool relu = config_.activation == Activation::relu, masked = training && config_.dropout_threshold > 0;
        if (relu) masked ? call(std::true_type(), std::true_type()) : call(std::true_type(), std::false_type());
        else masked ? call(std::false_type(), std::true_type()) : call(std::false_type(), std::false_type());
    }

    // Rows start … start + count of the pairs, to rows `place` … of hidden_.
    void compute_hidden(const Examples& pairs, long start, long count, long place, bool training) {
        const int32_t *m = pairs.m.data() + start, *n = pairs.n.data() + start;
        specialise(training, [&](auto relu, auto masked) { hidden_rows<relu, masked>(m, n, count, place); });
    }

    // Stores through vector types may alias anything, so what a loop needs of the object is in local variables.
    template <bool RELU, bool MASKED>
    void hidden_rows(const int32_t* m, const int32_t* n, long count, long place) {
        for (long k = 0; k < width_; k += PANEL) {
            const long width = width_, panel = k / PANEL * matrix_panel_;
            const float *u = weights_.u() + panel, *v = weights_.v() + panel, *mask = mask_.data() + k;
            float* h = hidden_.at(place, k);
            for (long row = 0; row < count; row++, h += PANEL, mask += MASKED ? width : 0) {
                const float *own = u + m[row] * PANEL, *other = v + n[row] * PANEL;
#pragma GCC unroll 8
                for (long at = 0; at < PANEL; at += VECTOR_FLOATS) {
                    Vector z = load(own + at) + load(other + at);
                    if constexpr (MASKED) z *= load(mask + at);
                    if constexpr (RELU) store(h + at, z > 0 ? z : Vector{});
                    if constexpr (!RELU) store(h + at, z * z);
                }
            }
        }
    }

    void compute_logits(long rows, Rows& inputs) {
        // The columns that do not fill a vector (one of 97) are cheaper as inner products with rows of W.
        const long rest = p_ % VECTOR_FLOATS, columns = rest <= VECTOR_FLOATS / 2 ? p_ - rest : p_;
        multiply(rows, columns, config_.width, inputs.left(), {transposed_w_.data(), PANEL, width_ * PANEL},
                 {logits_.data(), outputs_, PANEL}, false);
        for (long q = columns; q < p_; q++) {
            long row = 0;
            for (; row + 4 <= rows; row += 4) logit_column<4>(inputs, row, q);
            for (; row < rows; row++) logit_column<1>(inputs, row, q);
        }
    }

    template <int COUNT>
    void logit_column(Rows& inputs, long row, long q) {
        Vector sums[COUNT] = {};
        for (long k = 0; k < width_; k += PANEL) {
            const float *w = weights_.w() + k / PANEL * matrix_panel_ + q * PANEL, *y = inputs.at(row, k);
#pragma GCC unroll 8
            for (long at = 0; at < PANEL; at += VECTOR_FLOATS)
#pragma GCC unroll 4
                for (int i = 0; i < COUNT; i++) sums[i] += load(w + at) * load(y + i * PANEL + at);
        }
        for (int i = 0; i < COUNT; i++) logits_.data()[(row + i) * outputs_ + q] = sum(sums[i]);
    }

    // The loss of a row of logits. With cross-entropy, `powers` is left with exp(f − max f), and `total` with their sum.
    double row_loss(const float* f, long label, float* powers, float& total) const {
        if (config_.loss == Loss::mse) {
            Vector squares{};
            long q = 0;
            for (; q + VECTOR_FLOATS <= p_; q += VECTOR_FLOATS) squares += load(f + q) * load(f + q);
            double norm = sum(squares);
            for (; q < p_; q++) norm += f[q] * f[q];
            return (norm - 2 * double(f[label]) + 1) / double(p_);  // Σ(f − e_y)² = Σf² − 2f_y + 1
        }
        // Lanes apart: one chain of 97 additions would wait for each of them.
        const float own = f[label];
        Vector highest = Vector{} + f[0], sums{};
        long q = 0;
        for (; q + VECTOR_FLOATS <= p_; q += VECTOR_FLOATS) {
            const Vector next = load(f + q);
            highest = next > highest ? next : highest;
        }
        float largest = highest[0];
        for (int i = 1; i < VECTOR_FLOATS; i++) largest = std::max(largest, highest[i]);
        for (; q < p_; q++) largest = std::max(largest, f[q]);
        for (q = 0; q < p_; q++) powers[q] = exp_negative(f[q] - largest);
        for (q = 0; q + VECTOR_FLOATS <= p_; q += VECTOR_FLOATS) sums += load(powers + q);
        total = sum(sums);
        for (; q < p_; q++) total += powers[q];
        return std::log(double(total)) + largest - own;
    }

    // Turns a row of logits into ∂loss/∂logits, and gives its loss. `count` is the number of rows of the whole step.
    double residual(float* f, long label, long count) const {
        float total = 1;
        const double loss = row_loss(f, label, f, total);
        const float factor = config_.loss == Loss::mse ? float(2 / (double(count) * double(p_)))
                                                       : float(1 / (double(total) * double(count)));
        for (long q = 0; q < p_; q++) f[q] *= factor;
        f[label] -= config_.loss == Loss::mse ? factor : float(1 / double(count));
        return loss;
    }

    // dW += rᵀ·Y and dY = r·W, where logits_ now holds r. Without a norm, dY goes on to what lies before panel by panel and
    // is not kept; a norm needs all of it, in rows `first` … of upstream_.
    void backpropagate(const Examples& pairs, long start, long rows, Rows& inputs, long first) {
        const bool keep = config_.norm != Norm::none;
        for (long k = 0; k < width_; k += PANEL) {
            const long columns = std::min(PANEL, config_.width - k), panel = k / PANEL * matrix_panel_;
            float* upstream = upstream_.at(first, keep ? k : 0);
            multiply(p_, columns, rows, left_transposed(logits_), {inputs.at(0, k), PANEL, 0},
                     {gradients_.w() + panel, PANEL, 0}, true);
            // A norm works on whole panels, so the padding of what is kept for it must be written too: zeros.
            multiply(rows, keep ? PANEL : columns, p_, left_logits(logits_), {weights_.w() + panel, PANEL, 0},
                     {upstream, PANEL, 0}, false);
            if (!keep) hand_down(config_.depth - 1, pairs, start, rows, k);
        }
    }

    void scatter_all(const Examples& pairs, long start, long count) {
        for (long k = 0; k < width_; k += PANEL) scatter(pairs, start, count, k, upstream_.at(0, k));
    }

    // dU[m] and dV[n] += `upstream` through φ and the dropout mask, for rows start … of the pairs and the panel of neuron k.
    void scatter(const Examples& pairs, long start, long count, long k, const float* upstream) {
        const int32_t *m = pairs.m.data() + start, *n = pairs.n.data() + start;
        specialise(true, [&](auto relu, auto masked) { scatter_rows<relu, masked>(m, n, count, k, upstream); });
    }

    template <bool RELU, bool MASKED>
    void scatter_rows(const int32_t* m, const int32_t* n, long count, long k, const float* d) {
        const long width = width_, panel = k / PANEL * matrix_panel_;
        const float *u = weights_.u() + panel, *v = weights_.v() + panel, *mask = mask_.data() + k;
        float *du = gradients_.u() + panel, *dv = gradients_.v() + panel;
        // Rows with the same m, which a full batch has side by side, add up in registers.
        for (long row = 0; row < count;) {
            const int32_t own = m[row];
            Vector weights[TILE_VECTORS], sums[TILE_VECTORS] = {};
            for (int i = 0; i < TILE_VECTORS; i++) weights[i] = load(u + own * PANEL + i * VECTOR_FLOATS);
            for (; row < count && m[row] == own; row++, d += PANEL, mask += MASKED ? width : 0) {
                const float* other = v + n[row] * PANEL;
                float* target = dv + n[row] * PANEL;
#pragma GCC unroll 8
                for (int i = 0; i < TILE_VECTORS; i++) {
                    const long at = i * VECTOR_FLOATS;
                    Vector z = weights[i] + load(other + at), dz = load(d + at), factor{};
                    if constexpr (MASKED) factor = load(mask + at), z *= factor;
                    if constexpr (RELU) dz = z > 0 ? dz : Vector{};
                    if constexpr (!RELU) dz *= z + z;
                    if constexpr (MASKED) dz *= factor;
                    sums[i] += dz;
                    store(target + at, load(target + at) + dz);
                }
            }
            for (int i = 0; i < TILE_VECTORS; i++) add(du + own * PANEL + i * VECTOR_FLOATS, sums[i]);
        }
    }

    // ---- normalisation ------------------------------------------------------------------------------------------

    // Y = scale·(H − mean)/σ + shift over the neurons of each row; keeps the row's mean and 1/σ for the way back.
    Rows* layer_norm(long rows) {
        const double width = double(config_.width);
        for (long i = 0; i < rows; i++) {
            // Padding is zero: it adds nothing to the sum, and a known amount to the squares.
            Vector total{}, squares{};
            for_each_vector([&](long k, long at) { total += load(hidden_.at(i, k) + at); });
            const float mean = float(sum(total) / width);
            for_each_vector([&](long k, long at) {
                const Vector centred = load(hidden_.at(i, k) + at) - mean;
                squares += centred * centred;
            });
            const double variance = (sum(squares) - double(width_ - config_.width) * mean * mean) / width;
            const float inverse = float(1 / std::sqrt(std::max(variance, 0.0) + NORM_EPSILON));
            row_mean_[i] = mean, row_inverse_[i] = inverse;
            for_each_vector([&](long k, long at) {
                const Vector x = (load(hidden_.at(i, k) + at) - mean) * inverse;
                store(normalised_.at(i, k) + at,
                      load(weights_.scale() + k + at) * x + load(weights_.shift() + k + at));
            });
        }
        return &normalised_;
    }

    void layer_norm_backward(long rows) {
        const double width = double(config_.width);
        for (long i = 0; i < rows; i++) {
            const float mean = row_mean_[i], inverse = row_inverse_[i];
            Vector total{}, projected{};
            for_each_vector([&](long k, long at) {
                const Vector x = (load(hidden_.at(i, k) + at) - mean) * inverse, dy = load(upstream_.at(i, k) + at);
                const Vector g = load(weights_.scale() + k + at) * dy;
                add(gradients_.scale() + k + at, dy * x);
                add(gradients_.shift() + k + at, dy);
                total += g;
                projected += g * x;
            });
            const float average = float(sum(total) / width), slope = float(sum(projected) / width);
            for_each_vector([&](long k, long at) {
                const Vector x = (load(hidden_.at(i, k) + at) - mean) * inverse;
                float* d = upstream_.at(i, k) + at;
                store(d, inverse * (load(weights_.scale() + k + at) * load(d) - average - x * slope));
            });
        }
    }

    // `visit(k, at)` for each vector of a row: `at` floats into the panel that begins with neuron k.
    template <typename Visit>
    void for_each_vector(Visit visit) const {
        for (long k = 0; k < width_; k += PANEL)
#pragma GCC unroll 8
            for (long at = 0; at < PANEL; at += VECTOR_FLOATS) visit(k, at);
    }

    static void add(float* target, Vector value) { store(target, load(target) + value); }

    void batch_statistics(long rows) {
        std::vector<double> total(PANEL), squares(PANEL);
        for (long k = 0; k < width_; k += PANEL) {
            float *mean = batch_mean_.data() + k, *inverse = batch_inverse_.data() + k;
            std::fill(total.begin(), total.end(), 0), std::fill(squares.begin(), squares.end(), 0);
            for (long i = 0; i < rows; i++)
                for (long at = 0; at < PANEL; at++) total[size_t(at)] += hidden_.at(i, k)[at];
            for (long at = 0; at < PANEL; at++) mean[at] = float(total[size_t(at)] / double(rows));
            for (long i = 0; i < rows; i++)
                for (long at = 0; at < PANEL; at++) {
                    const double centred = hidden_.at(i, k)[at] - mean[at];
                    squares[size_t(at)] += centred * centred;
                }
            for (long at = 0; at < PANEL; at++) {
                batch_variance_.data()[k + at] = float(squares[size_t(at)] / double(rows - 1));
                inverse[at] = float(1 / std::sqrt(squares[size_t(at)] / double(rows) + NORM_EPSILON));
            }
        }
    }

    // Y = scale·(H − mean)·batch_inverse + shift for rows first … of hidden_.
    Rows* batch_norm(long rows, long first, const float* mean) {
        for (long k = 0; k < width_; k += PANEL)
            for (long i = 0; i < rows; i++)
                for (long at = 0; at < PANEL; at += VECTOR_FLOATS) {
                    const Vector centred = load(hidden_.at(first + i, k) + at) - load(mean + k + at);
                    store(normalised_.at(i, k) + at,
                          load(weights_.scale() + k + at) * (centred * load(batch_inverse_.data() + k + at)) +
                              load(weights_.shift() + k + at));
                }
        return &normalised_;
    }

    Vector standardised(long row, long k, long at) {
        return (load(hidden_.at(row, k) + at) - load(batch_mean_.data() + k + at)) * load(batch_inverse_.data() + k + at);
    }

    void batch_norm_sums(long rows, long first) {
        for (long k = 0; k < width_; k += PANEL)
            for (long i = first; i < first + rows; i++)
                for (long at = 0; at < PANEL; at += VECTOR_FLOATS) {
                    const Vector d = load(upstream_.at(i, k) + at);
                    add(gradients_.scale() + k + at, d * standardised(i, k, at));
                    add(gradients_.shift() + k + at, d);
                }
    }

    void batch_norm_backward(long rows) {
        const float share = float(1 / double(rows));
        for (long k = 0; k < width_; k += PANEL)
            for (long i = 0; i < rows; i++)
                for (long at = 0; at < PANEL; at += VECTOR_FLOATS) {
                    const Vector dshift = load(gradients_.shift() + k + at), dscale = load(gradients_.scale() + k + at);
                    float* d = upstream_.at(i, k) + at;
                    store(d, load(weights_.scale() + k + at) * load(batch_inverse_.data() + k + at) *
                                 (load(d) - share * (dshift + standardised(i, k, at) * dscale)));
                }
    }

    // Averages of the batch just seen, its variance without bias, as torch keeps them.
    void update_running_statistics() {
        if (config_.norm != Norm::batch) return;
        float *mean = running_mean_.data(), *variance = running_variance_.data();
        for (long k = 0; k < config_.width; k++) {
            mean[k] += BATCH_NORM_MOMENTUM * (batch_mean_.data()[k] - mean[k]);
            variance[k] += BATCH_NORM_MOMENTUM * (batch_variance_.data()[k] - variance[k]);
        }
    }

    // ---- the optimiser ------------------------------------------------------------------------------------------

    void optimise() {
        const long size = weights_.values.size();
        float *__restrict w = weights_.values.data(), *__restrict first = first_.values.data();
        float* __restrict second = second_.values.data();
        const float* __restrict gradient = gradients_.values.data();
        const float rate = float(config_.learning_rate), decay = float(config_.weight_decay);
        if (config_.optimizer == Optimizer::sgd) {
            const float momentum = float(config_.momentum);
            for (long i = 0; i < size; i++) {
                first[i] = momentum * first[i] + (gradient[i] + decay * w[i]);
                w[i] -= rate * first[i];
            }
            return;
        }
        const bool decoupled = config_.optimizer == Optimizer::adamw;
        const float keep = decoupled ? float(1 - config_.learning_rate * config_.weight_decay) : 1.0f;
        const float coupled = decoupled ? 0.0f : decay;
        const float rest1 = float(1 - config_.beta1), rest2 = float(1 - config_.beta2), beta2 = float(config_.beta2);
        const float size1 = float(config_.learning_rate / (1 - std::pow(config_.beta1, double(step))));
        const float root2 = float(1 / std::sqrt(1 - std::pow(config_.beta2, double(step))));
        const float epsilon = float(config_.epsilon);
        for (long i = 0; i < size; i++) {
            const float g = gradient[i] + coupled * w[i];
            const float mean = first[i] + rest1 * (g - first[i]);
            const float square = beta2 * second[i] + rest2 * (g * g);
            first[i] = mean;
            second[i] = square;
            w[i] = keep * w[i] - size1 * mean / (std::sqrt(square) * root2 + epsilon);
        }
    }

    // ---- rows and batches ---------------------------------------------------------------------------------------

    // Rows with the same m side by side: they share a row of U and of its gradient.
    static void sort_rows(Examples& rows) {
        std::vector<long> order(static_cast<size_t>(rows.count()));
        std::iota(order.begin(), order.end(), 0);
        std::stable_sort(order.begin(), order.end(), [&](long a, long b) {
            return std::pair(rows.m[size_t(a)], rows.n[size_t(a)]) < std::pair(rows.m[size_t(b)], rows.n[size_t(b)]);
        });
        Examples sorted;
        for (long i : order) {
            sorted.m.push_back(rows.m[size_t(i)]);
            sorted.n.push_back(rows.n[size_t(i)]);
            sorted.label.push_back(rows.label[size_t(i)]);
        }
        rows = sorted;
    }

    void choose_batch() {
        const long batches = training_.count() / config_.batch_size, epoch = step / batches, place = step % batches;
        if (epoch != epoch_) order_ = epoch_order(examples_, uint32_t(epoch), config_.seed), epoch_ = epoch;
        batch_ = {};
        batch_examples_.clear();
        for (long i = place * config_.batch_size; i < (place + 1) * config_.batch_size; i++) {
            const size_t row = size_t(order_[size_t(i)]);
            batch_.m.push_back(training_.m[row]);
            batch_.n.push_back(training_.n[row]);
            batch_.label.push_back(training_.label[row]);
            batch_examples_.push_back(examples_[row]);
        }
    }

    // What the products of the way forward read: Wᵀ in panels of labels, and Hᵀ of each deeper layer.
    void transpose_weights() {
        transpose(weights_.w(), p_, {transposed_w_.data(), PANEL, width_ * PANEL});
        transpose_deeper();
    }

    // The transpose of a matrix [rows, N], in panels of its rows.
    void transpose(const float* matrix, long rows, Product out) const {
        for (long k = 0; k < config_.width; k += PANEL)
            for (long j = 0; j < rows; j += PANEL)
                transpose_block(matrix + weights_.place(j, k, panel_rows(rows)), std::min(PANEL, rows - j),
                                std::min(PANEL, config_.width - k), out.data + j / PANEL * out.panel + k * PANEL);
    }

    static void transpose_block(const float* from, long rows, long columns, float* to) {
        for (long column = 0; column < columns; column++)
            for (long row = 0; row < rows; row++) to[column * PANEL + row] = from[row * PANEL + column];
    }

    // ---- further hidden layers ----------------------------------------------------------------------------------
#include "deep.hpp"

    // ---- less work for large training sets ----------------------------------------------------------------------
#include "full_grid.hpp"

    const long p_, outputs_;  // labels, and labels padded to whole panels: the distance of two rows of logits
    const long width_;        // neurons, padded to whole panels
    const long matrix_panel_;  // distance of two panels of U, V, W and their gradients
    Examples training_;
    std::vector<uint32_t> examples_;  // the place m·p + n of each training row in the grid: its name in random streams
    Buffer logits_, transposed_w_, mask_, batch_mean_, batch_inverse_, batch_variance_;
    Rows hidden_, upstream_, normalised_;
    float row_mean_[BLOCK_ROWS] = {}, row_inverse_[BLOCK_ROWS] = {};
    long epoch_ = -1;
    std::vector<int32_t> order_;
    Examples batch_;
    std::vector<uint32_t> batch_examples_;
};
