// The training step. Included once per instruction level by level_*.cpp, inside a namespace of the level.
//
// A step goes through its rows (examples) in blocks whose hidden layer stays in the second cache. For each block:
//
//     hidden    H  = φ(dropout(U[m] + V[n]))          [R, N]   look-ups, no one-hot vectors
//     norm      Y  = norm(H)                          [R, N]
//     logits    F  = Y · Wᵀ                           [R, p]   matrix product 1
//     residual  r  = ∂loss/∂F                         [R, p]
//     dW       += rᵀ · Y                              [p, N]   matrix product 2
//     dY        = r · W                               [R, N]   matrix product 3
//     backward  dU[m], dV[n] += norm', φ', dropout of dY
//
// and ends with the optimiser. Everything between the products is a pass over rows that lie in cache.

#include "matmul.hpp"
#include "philox.hpp"

constexpr long BLOCK_ROWS = 96;
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

class LevelTrainer final : public Trainer {
public:
    LevelTrainer(const Config& config, const Examples& training)
        : Trainer(config),
          p_(config.modulus),
          outputs_(padded(config.modulus)),
          lanes_((config.width + VECTOR_FLOATS - 1) / VECTOR_FLOATS * VECTOR_FLOATS),
          training_(training),
          logits_(BLOCK_ROWS * outputs_),
          transposed_w_(stride_ * outputs_) {
        if (config.batch_size == 0) sort_rows(training_);
        const long n = training_.count();
        for (long i = 0; i < n; i++)
            examples_.push_back(uint32_t(training_.m[size_t(i)] * p_ + training_.n[size_t(i)]));
        complement_ = find_complement();
        // BatchNorm needs the whole batch before any row goes on, so it keeps all rows; the others keep a block.
        const long batch = config.batch_size ? config.batch_size : n;
        const long rows = config.norm == Norm::batch ? std::max(batch, BLOCK_ROWS) : BLOCK_ROWS;
        hidden_ = Buffer(rows * stride_);
        upstream_ = Buffer(rows * stride_);
        if (config.dropout_threshold > 0) mask_ = Buffer(rows * stride_);
        if (config.norm != Norm::none) normalised_ = Buffer(BLOCK_ROWS * stride_);
        if (config.norm == Norm::batch) batch_mean_ = Buffer(stride_), batch_inverse_ = Buffer(stride_);
        if (complement_) allocate_full_grid();
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
        transpose_w();
        for (long start = 0; start < examples.count(); start += BLOCK_ROWS) {
            const long rows = std::min(BLOCK_ROWS, examples.count() - start);
            for (long i = 0; i < rows; i++)
                hidden_row(examples.m[size_t(start + i)], examples.n[size_t(start + i)], nullptr, hidden(i));
            const float* inputs = hidden(0);
            if (config_.norm == Norm::layer) inputs = layer_norm(rows);
            if (config_.norm == Norm::batch)
                inputs = batch_norm(rows, 0, running_mean_.data(), [this](long k) {
                    return 1 / std::sqrt(running_variance_.data()[k] + NORM_EPSILON);
                });
            compute_logits(rows, inputs);
            for (long i = 0; i < rows; i++) {
                float* f = logits_.data() + i * outputs_;
                predictions[start + i] = std::max_element(f, f + p_) - f;
                float total;
                losses[start + i] = row_loss(f, examples.label[size_t(start + i)], f, total);
            }
        }
    }

private:
    // The rows of one step, and where their dropout masks come from.
    struct Rows {
        const Examples& pairs;
        const std::vector<uint32_t>& examples;
    };

    float* hidden(long row) { return hidden_.data() + row * stride_; }
    float* upstream(long row) { return upstream_.data() + row * stride_; }
    const float* mask(long row) const { return config_.dropout_threshold > 0 ? mask_.data() + row * stride_ : nullptr; }

    // ---- the gradient -------------------------------------------------------------------------------------------

    // Leaves the gradient in gradients_, which is zero before; the loss is of the weights as they are.
    double compute_gradient() {
        gradients_.values.clear();
        transpose_w();
        if (complement_) return full_grid_gradient();
        if (config_.batch_size == 0) return rows_gradient({training_, examples_});
        choose_batch();
        return rows_gradient({batch_, batch_examples_});
    }

    double rows_gradient(const Rows& rows) {
        const long count = rows.pairs.count();
        const bool whole = config_.norm == Norm::batch;
        if (whole) {
            for (long row = 0; row < count; row++) hidden_row(rows, row, row);
            batch_statistics(count);
        }
        double loss = 0;
        for (long start = 0; start < count; start += BLOCK_ROWS) {
            const long size = std::min(BLOCK_ROWS, count - start), first = whole ? start : 0;
            const float* inputs = hidden(first);
            if (!whole)
                for (long i = 0; i < size; i++) hidden_row(rows, start + i, i);
            if (config_.norm == Norm::layer) inputs = layer_norm(size);
            if (whole)
                inputs = batch_norm(size, first, batch_mean_.data(),
                                    [this](long k) { return batch_inverse_.data()[k]; });
            compute_logits(size, inputs);
            for (long i = 0; i < size; i++)
                loss += residual(logits_.data() + i * outputs_, rows.pairs.label[size_t(start + i)], count);
            backpropagate(size, inputs, first);
            if (config_.norm == Norm::layer) layer_norm_backward(size);
            if (whole) batch_norm_sums(size, first);
            if (!whole) scatter(rows.pairs, start, size, 0);
        }
        if (whole) {
            batch_norm_backward(count);
            scatter(rows.pairs, 0, count, 0);
        }
        return loss / double(count);
    }

    void hidden_row(const Rows& rows, long row, long place) {
        const float* factors = nullptr;
        if (config_.dropout_threshold > 0) {
            float* drawn = mask_.data() + place * stride_;
            dropout_row(drawn, config_.width, rows.examples[size_t(row)], uint32_t(step + 1), config_.seed,
                        config_.dropout_threshold, float(config_.dropout_scale));
            factors = drawn;
        }
        hidden_row(rows.pairs.m[size_t(row)], rows.pairs.n[size_t(row)], factors, hidden(place));
    }

    void hidden_row(long m, long n, const float* __restrict factors, float* __restrict h) {
        const float *__restrict u = weights_.u() + m * stride_, *__restrict v = weights_.v() + n * stride_;
        const bool relu = config_.activation == Activation::relu;
        if (factors)
            for (long k = 0; k < lanes_; k++) {
                const float z = (u[k] + v[k]) * factors[k];
                h[k] = relu ? std::max(z, 0.0f) : z * z;
            }
        else if (relu)
            for (long k = 0; k < lanes_; k++) h[k] = std::max(u[k] + v[k], 0.0f);
        else
            for (long k = 0; k < lanes_; k++) h[k] = (u[k] + v[k]) * (u[k] + v[k]);
    }

    void compute_logits(long rows, const float* inputs) {
        // The columns that do not fill a vector (one of 97) are cheaper as inner products with rows of W.
        const long rest = p_ % VECTOR_FLOATS, columns = rest <= VECTOR_FLOATS / 2 ? p_ - rest : p_;
        multiply(rows, columns, config_.width, {inputs, stride_, 1}, transposed_w_.data(), outputs_, logits_.data(),
                 outputs_, false);
        for (long i = 0; i < rows; i++)
            for (long q = columns; q < p_; q++)
                logits_.data()[i * outputs_ + q] = dot(inputs + i * stride_, weights_.w() + q * stride_, lanes_);
    }

    // The loss of a row of logits. With cross-entropy, `powers` is left with exp(f − max f), and `total` with their sum.
    double row_loss(const float* f, long label, float* powers, float& total) const {
        if (config_.loss == Loss::mse) {
            float squares = dot(f, f, p_ / VECTOR_FLOATS * VECTOR_FLOATS);
            for (long q = p_ / VECTOR_FLOATS * VECTOR_FLOATS; q < p_; q++) squares += f[q] * f[q];
            const double own = f[label];  // Σ(f − e_y)² = Σf² − 2f_y + 1
            return (double(squares) - 2 * own + 1) / double(p_);
        }
        const float largest = *std::max_element(f, f + p_), own = f[label];
        for (long q = 0; q < p_; q++) powers[q] = exp_negative(f[q] - largest);
        total = 0;
        for (long q = 0; q < p_; q++) total += powers[q];
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

    // dW += rᵀ·Y and dY = r·W, where logits_ now holds r.
    void backpropagate(long rows, const float* inputs, long first) {
        multiply(p_, config_.width, rows, {logits_.data(), 1, outputs_}, inputs, stride_, gradients_.w(), stride_, true);
        multiply(rows, config_.width, p_, {logits_.data(), outputs_, 1}, weights_.w(), stride_, upstream(first), stride_,
                 false);
    }

    // dU[m] and dV[n] += what upstream_ holds for rows first … first + count, through φ and the dropout mask.
    // Row `first` lies at `place` in the buffers.
    void scatter(const Examples& pairs, long first, long count, long place) {
        const bool relu = config_.activation == Activation::relu, masked = config_.dropout_threshold > 0;
        const auto run = relu ? (masked ? &LevelTrainer::scatter_rows<true, true> : &LevelTrainer::scatter_rows<true, false>)
                              : (masked ? &LevelTrainer::scatter_rows<false, true> : &LevelTrainer::scatter_rows<false, false>);
        // Rows with the same m, which a full batch has side by side, share the row of U and its gradient.
        for (long start = 0, end; start < count; start = end) {
            const int32_t m = pairs.m[size_t(first + start)];
            for (end = start + 1; end < count && pairs.m[size_t(first + end)] == m;) end++;
            (this->*run)(m, &pairs.n[size_t(first + start)], end - start, place + start);
        }
    }

    template <bool RELU, bool MASKED>
    void scatter_rows(long m, const int32_t* n, long count, long place) {
        long k = 0;
        for (; k + 4 * VECTOR_FLOATS <= lanes_; k += 4 * VECTOR_FLOATS)
            scatter_columns<RELU, MASKED, 4>(m, n, count, place, k);
        for (; k < lanes_; k += VECTOR_FLOATS) scatter_columns<RELU, MASKED, 1>(m, n, count, place, k);
    }

    template <bool RELU, bool MASKED, int VECTORS>
    void scatter_columns(long m, const int32_t* n, long count, long place, long k) {
        const float *u = weights_.u() + m * stride_ + k, *v = weights_.v() + k;
        float *du = gradients_.u() + m * stride_ + k, *dv = gradients_.v() + k;
        Vector own[VECTORS], sums[VECTORS];
        for (int i = 0; i < VECTORS; i++) own[i] = load(u + i * VECTOR_FLOATS), sums[i] = load(du + i * VECTOR_FLOATS);
        for (long row = 0; row < count; row++) {
            const float* d = upstream(place + row) + k;
            const long other = n[row] * stride_;
            for (int i = 0; i < VECTORS; i++) {
                const long at = i * VECTOR_FLOATS;
                Vector z = own[i] + load(v + other + at), factor = Vector{} + 1;
                if constexpr (MASKED) factor = load(mask(place + row) + k + at);
                if constexpr (MASKED) z *= factor;
                Vector dz = load(d + at);
                if constexpr (RELU) dz = z > 0 ? dz : Vector{};
                if constexpr (!RELU) dz *= z + z;
                if constexpr (MASKED) dz *= factor;
                sums[i] += dz;
                store(dv + other + at, load(dv + other + at) + dz);
            }
        }
        for (int i = 0; i < VECTORS; i++) store(du + i * VECTOR_FLOATS, sums[i]);
    }

    // ---- normalisation ------------------------------------------------------------------------------------------

    // Y = scale·(H − mean)/σ + shift over the neurons of each row; keeps the row's mean and 1/σ for the way back.
    const float* layer_norm(long rows) {
        const float *__restrict scale = weights_.scale(), *__restrict shift = weights_.shift();
        const double width = double(config_.width);
        for (long i = 0; i < rows; i++) {
            const float* __restrict h = hidden(i);
            float* __restrict y = normalised_.data() + i * stride_;
            // Padding is zero: it adds nothing to the sum, and a known amount to the squares.
            Vector total{}, squares{};
            for (long k = 0; k < lanes_; k += VECTOR_FLOATS) total += load(h + k);
            const float mean = float(sum(total) / width);
            for (long k = 0; k < lanes_; k += VECTOR_FLOATS) squares += (load(h + k) - mean) * (load(h + k) - mean);
            const double variance = (sum(squares) - double(lanes_ - config_.width) * mean * mean) / width;
            const float inverse = float(1 / std::sqrt(variance + NORM_EPSILON));
            row_mean_[i] = mean, row_inverse_[i] = inverse;
            for (long k = 0; k < lanes_; k++) y[k] = scale[k] * ((h[k] - mean) * inverse) + shift[k];
        }
        return normalised_.data();
    }

    void layer_norm_backward(long rows) {
        const float* __restrict scale = weights_.scale();
        float *__restrict dscale = gradients_.scale(), *__restrict dshift = gradients_.shift();
        const double width = double(config_.width);
        for (long i = 0; i < rows; i++) {
            const float* __restrict h = hidden(i);
            float* __restrict d = upstream(i);
            const float mean = row_mean_[i], inverse = row_inverse_[i];
            Vector total{}, projected{};
            for (long k = 0; k < lanes_; k += VECTOR_FLOATS) {
                const Vector x = (load(h + k) - mean) * inverse, dy = load(d + k), g = load(scale + k) * dy;
                store(dscale + k, load(dscale + k) + dy * x);
                store(dshift + k, load(dshift + k) + dy);
                total += g;
                projected += g * x;
            }
            const float average = float(sum(total) / width), slope = float(sum(projected) / width);
            for (long k = 0; k < lanes_; k++) {
                const float x = (h[k] - mean) * inverse;
                d[k] = inverse * (scale[k] * d[k] - average - x * slope);
            }
        }
    }

    void batch_statistics(long rows) {
        std::vector<double> total(static_cast<size_t>(lanes_)), squares(static_cast<size_t>(lanes_));
        for (long i = 0; i < rows; i++)
            for (long k = 0; k < lanes_; k++) total[size_t(k)] += hidden(i)[k];
        float *mean = batch_mean_.data(), *inverse = batch_inverse_.data();
        for (long k = 0; k < lanes_; k++) mean[k] = float(total[size_t(k)] / double(rows));
        for (long i = 0; i < rows; i++)
            for (long k = 0; k < lanes_; k++) {
                const double centred = hidden(i)[k] - mean[k];
                squares[size_t(k)] += centred * centred;
            }
        batch_variance_.assign(size_t(lanes_), 0);
        for (long k = 0; k < lanes_; k++) {
            batch_variance_[size_t(k)] = float(squares[size_t(k)] / double(rows - 1));
            inverse[k] = float(1 / std::sqrt(squares[size_t(k)] / double(rows) + NORM_EPSILON));
        }
    }

    template <typename Inverse>
    const float* batch_norm(long rows, long first, const float* __restrict mean, Inverse inverse) {
        const float *__restrict scale = weights_.scale(), *__restrict shift = weights_.shift();
        std::vector<float> factors(static_cast<size_t>(lanes_));
        for (long k = 0; k < lanes_; k++) factors[size_t(k)] = inverse(k);
        for (long i = 0; i < rows; i++) {
            const float* __restrict h = hidden(first + i);
            float* __restrict y = normalised_.data() + i * stride_;
            for (long k = 0; k < lanes_; k++) y[k] = scale[k] * ((h[k] - mean[k]) * factors[size_t(k)]) + shift[k];
        }
        return normalised_.data();
    }

    void batch_norm_sums(long rows, long first) {
        const float *__restrict mean = batch_mean_.data(), *__restrict inverse = batch_inverse_.data();
        float *__restrict dscale = gradients_.scale(), *__restrict dshift = gradients_.shift();
        for (long i = 0; i < rows; i++) {
            const float *__restrict h = hidden(first + i), *__restrict d = upstream(first + i);
            for (long k = 0; k < lanes_; k++) {
                dscale[k] += d[k] * ((h[k] - mean[k]) * inverse[k]);
                dshift[k] += d[k];
            }
        }
    }

    void batch_norm_backward(long rows) {
        const float *__restrict mean = batch_mean_.data(), *__restrict inverse = batch_inverse_.data();
        const float *__restrict scale = weights_.scale();
        const float *__restrict dscale = gradients_.scale(), *__restrict dshift = gradients_.shift();
        const float share = float(1 / double(rows));
        for (long i = 0; i < rows; i++) {
            const float* __restrict h = hidden(i);
            float* __restrict d = upstream(i);
            for (long k = 0; k < lanes_; k++) {
                const float x = (h[k] - mean[k]) * inverse[k];
                d[k] = scale[k] * inverse[k] * (d[k] - share * (dshift[k] + x * dscale[k]));
            }
        }
    }

    // Averages of the batch just seen, its variance without bias, as torch keeps them.
    void update_running_statistics() {
        if (config_.norm != Norm::batch) return;
        float *mean = running_mean_.data(), *variance = running_variance_.data();
        for (long k = 0; k < config_.width; k++) {
            mean[k] += BATCH_NORM_MOMENTUM * (batch_mean_.data()[k] - mean[k]);
            variance[k] += BATCH_NORM_MOMENTUM * (batch_variance_[size_t(k)] - variance[k]);
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

    void transpose_w() {
        constexpr long SIDE = 16;  // squares that fit a few cache lines each way
        const float* w = weights_.w();
        float* t = transposed_w_.data();
        for (long k0 = 0; k0 < config_.width; k0 += SIDE)
            for (long q0 = 0; q0 < p_; q0 += SIDE)
                for (long k = k0; k < std::min(k0 + SIDE, config_.width); k++)
                    for (long q = q0; q < std::min(q0 + SIDE, p_); q++) t[k * outputs_ + q] = w[q * stride_ + k];
    }

    // ---- less work for large training sets: see full_grid.hpp ---------------------------------------------------
#include "full_grid.hpp"

    const long p_, outputs_;  // labels, and the distance of two rows of logits
    const long lanes_;        // neurons rounded up to whole vectors
    Examples training_;
    std::vector<uint32_t> examples_;  // the place m·p + n of each training row in the grid: its name in random streams
    Buffer logits_, transposed_w_, hidden_, upstream_, mask_, normalised_, batch_mean_, batch_inverse_;
    std::vector<float> batch_variance_;
    float row_mean_[BLOCK_ROWS] = {}, row_inverse_[BLOCK_ROWS] = {};
    long epoch_ = -1;
    std::vector<int32_t> order_;
    Examples batch_;
    std::vector<uint32_t> batch_examples_;
};
