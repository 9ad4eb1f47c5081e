// Part of LevelTrainer (kernel.hpp): quadratic activation, MSE, full batch.
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
// The rounding error is relative to f instead of to the residual; tests compare whole runs with the direct form.

std::optional<Examples> complement_;
Buffer gram_u_, gram_v_, gram_w_, mixed_, squares_, products_, a_, b_, ga_, gb_, column_u_, column_v_;

// The pairs that are not in the training set, if going over them is less work than going over those that are.
std::optional<Examples> find_complement() const {
    if (config_.form == Form::direct || config_.activation != Activation::quadratic || config_.loss != Loss::mse ||
        config_.norm != Norm::none || config_.dropout_threshold > 0 || config_.batch_size != 0)
        return std::nullopt;
    std::vector<bool> present(size_t(p_ * p_));
    for (uint32_t example : examples_) present[example] = true;
    Examples rest;
    for (long example = 0; example < p_ * p_; example++)
        if (!present[size_t(example)]) {
            rest.m.push_back(int32_t(example / p_));
            rest.n.push_back(int32_t(example % p_));
            rest.label.push_back(0);
        }
    if (rest.count() + training_.count() != p_ * p_) return std::nullopt;  // an example came twice
    // Multiply-adds of the matrix products; the sparse part costs as much as a few columns of them.
    const double n = double(training_.count()), N = double(config_.width), p = double(p_);
    const double direct = 3 * n * N * p, by_complement = 3 * double(rest.count()) * N * p + 6 * N * N * p + 30 * n * N;
    if (config_.form == Form::automatic && by_complement >= direct) return std::nullopt;
    return rest;
}

void allocate_full_grid() {
    for (Buffer* square : {&gram_u_, &gram_v_, &gram_w_, &mixed_}) *square = Buffer(stride_ * stride_);
    for (Buffer* matrix : {&squares_, &products_}) *matrix = Buffer(p_ * stride_);
    for (Buffer* matrix : {&a_, &b_, &ga_, &gb_}) *matrix = Buffer(p_ * outputs_);
    for (Buffer* row : {&column_u_, &column_v_}) *row = Buffer(stride_);
}

double full_grid_gradient() {
    const long N = config_.width;
    const double n = double(training_.count());
    float *dw = gradients_.w(), *w = weights_.w();
    const auto gram = [&](const float* x, Buffer& out) {
        multiply(N, N, p_, {x, 1, stride_}, x, stride_, out.data(), stride_, false);
    };
    gram(weights_.u(), gram_u_);
    gram(weights_.v(), gram_v_);
    gram(w, gram_w_);
    column_sums(weights_.u(), column_u_);
    column_sums(weights_.v(), column_v_);
    logits_of_squares(weights_.u(), a_);
    logits_of_squares(weights_.v(), b_);
    grid_sums(weights_.u(), column_v_, a_, b_, ga_);
    grid_sums(weights_.v(), column_u_, b_, a_, gb_);
    input_gradient(weights_.u(), weights_.v(), a_, b_, ga_, column_v_, gram_v_, gradients_.u());
    input_gradient(weights_.v(), weights_.u(), b_, a_, gb_, column_u_, gram_u_, gradients_.v());
    output_gradient(weights_.u(), a_, ga_, column_v_);
    output_gradient(weights_.v(), b_, gb_, column_u_);
    for (long i = 0; i < N * stride_; i++) gram_u_.data()[i] *= 4 * gram_v_.data()[i];
    multiply(p_, N, N, {w, stride_, 1}, gram_u_.data(), stride_, dw, stride_, true);

    for (long start = 0; start < complement_->count(); start += BLOCK_ROWS) {
        const long rows = std::min(BLOCK_ROWS, complement_->count() - start);
        for (long i = 0; i < rows; i++)
            hidden_row(complement_->m[size_t(start + i)], complement_->n[size_t(start + i)], nullptr, hidden(i));
        compute_logits(rows, hidden(0));
        for (long i = 0; i < rows * outputs_; i++) logits_.data()[i] = -logits_.data()[i];
        backpropagate(rows, hidden(0), 0);
        scatter(*complement_, start, rows, 0);
    }
    // ½Σ‖f‖² is of degree two in W, and Σ f_y of degree one: their values are inner products of W with their gradients.
    const double quadratic = inner_product(w, dw);
    add_linear_part();
    const double linear = inner_product(w, dw) - quadratic;

    const float factor = float(2 / (n * double(p_)));
    for (long i = 0; i < gradients_.values.size(); i++) gradients_.values.data()[i] *= factor;
    return (quadratic + 2 * linear + n) / (n * double(p_));
}

void column_sums(const float* x, Buffer& out) {
    out.clear();
    for (long i = 0; i < p_; i++)
        for (long k = 0; k < lanes_; k++) out.data()[k] += x[i * stride_ + k];
}

// (X∘X)Wᵀ
void logits_of_squares(const float* x, Buffer& out) {
    for (long i = 0; i < p_ * stride_; i++) squares_.data()[i] = x[i] * x[i];
    multiply(p_, p_, config_.width, {squares_.data(), stride_, 1}, transposed_w_.data(), outputs_, out.data(), outputs_,
             false);
}

// p·own + s(other) + 2 (X∘columns)Wᵀ
void grid_sums(const float* x, Buffer& columns, Buffer& own, Buffer& other, Buffer& out) {
    for (long i = 0; i < p_; i++)
        for (long k = 0; k < lanes_; k++) products_.data()[i * stride_ + k] = 2 * x[i * stride_ + k] * columns.data()[k];
    multiply(p_, p_, config_.width, {products_.data(), stride_, 1}, transposed_w_.data(), outputs_, out.data(), outputs_,
             false);
    for (long q = 0; q < p_; q++) {
        float total = 0;
        for (long i = 0; i < p_; i++) total += other.data()[i * outputs_ + q];
        for (long i = 0; i < p_; i++) out.data()[i * outputs_ + q] += float(p_) * own.data()[i * outputs_ + q] + total;
    }
}

// 2X∘(sums W) + 2[(own W)∘columns + s((other W)∘Y)] + 4 X[(WᵀW)∘(YᵀY)]
void input_gradient(const float* x, const float* y, Buffer& own, Buffer& other, Buffer& sums, Buffer& columns,
                    Buffer& gram_y, float* out) {
    const long N = config_.width;
    const auto times_w = [&](Buffer& left) {
        multiply(p_, N, p_, {left.data(), outputs_, 1}, weights_.w(), stride_, products_.data(), stride_, false);
    };
    const float *product = products_.data(), *column = columns.data();
    std::vector<float> shared(static_cast<size_t>(lanes_));
    times_w(other);
    for (long i = 0; i < p_; i++)
        for (long k = 0; k < lanes_; k++) shared[size_t(k)] += 2 * product[i * stride_ + k] * y[i * stride_ + k];
    times_w(sums);
    for (long i = 0; i < p_; i++)
        for (long k = 0; k < lanes_; k++)
            out[i * stride_ + k] += 2 * x[i * stride_ + k] * product[i * stride_ + k] + shared[size_t(k)];
    times_w(own);
    for (long i = 0; i < p_; i++)
        for (long k = 0; k < lanes_; k++) out[i * stride_ + k] += 2 * product[i * stride_ + k] * column[k];
    for (long i = 0; i < N * stride_; i++) mixed_.data()[i] = 4 * gram_w_.data()[i] * gram_y.data()[i];
    multiply(p_, N, N, {x, stride_, 1}, mixed_.data(), stride_, out, stride_, true);
}

// dW += sumsᵀ(X∘X) + 2(ownᵀX)∘columns
void output_gradient(const float* x, Buffer& own, Buffer& sums, Buffer& columns) {
    for (long i = 0; i < p_; i++)
        for (long k = 0; k < lanes_; k++) squares_.data()[i * stride_ + k] = x[i * stride_ + k] * x[i * stride_ + k];
    multiply(p_, config_.width, p_, {sums.data(), 1, outputs_}, squares_.data(), stride_, gradients_.w(), stride_, true);
    multiply(p_, config_.width, p_, {own.data(), 1, outputs_}, x, stride_, products_.data(), stride_, false);
    for (long q = 0; q < p_; q++)
        for (long k = 0; k < lanes_; k++)
            gradients_.w()[q * stride_ + k] += 2 * products_.data()[q * stride_ + k] * columns.data()[k];
}

// −Σ_D f_y: each training row involves only its label's row of W. Goes over a few vectors of neurons at a time, for which all
// six matrices stay in cache, and keeps the row of U and its gradient in registers, since the rows are sorted by m.
void add_linear_part() {
    long k = 0;
    for (; k + 4 * VECTOR_FLOATS <= lanes_; k += 4 * VECTOR_FLOATS) add_linear_part<4>(k);
    for (; k < lanes_; k += VECTOR_FLOATS) add_linear_part<1>(k);
}

template <int VECTORS>
void add_linear_part(long k) {
    const float *v = weights_.v() + k, *w = weights_.w() + k;
    float *dv = gradients_.v() + k, *dw = gradients_.w() + k;
    for (long row = 0; row < training_.count();) {
        const long m = training_.m[size_t(row)];
        Vector u[VECTORS], du[VECTORS];
        for (int i = 0; i < VECTORS; i++) {
            u[i] = load(weights_.u() + m * stride_ + k + i * VECTOR_FLOATS);
            du[i] = load(gradients_.u() + m * stride_ + k + i * VECTOR_FLOATS);
        }
        for (; row < training_.count() && training_.m[size_t(row)] == m; row++) {
            const long n = training_.n[size_t(row)] * stride_, label = training_.label[size_t(row)] * stride_;
            for (int i = 0; i < VECTORS; i++) {
                const long at = i * VECTOR_FLOATS;
                const Vector z = u[i] + load(v + n + at), dz = -2 * z * load(w + label + at);
                du[i] += dz;
                store(dv + n + at, load(dv + n + at) + dz);
                store(dw + label + at, load(dw + label + at) - z * z);
            }
        }
        for (int i = 0; i < VECTORS; i++) store(gradients_.u() + m * stride_ + k + i * VECTOR_FLOATS, du[i]);
    }
}

double inner_product(const float* x, const float* y) const {
    double total = 0;
    for (long q = 0; q < p_; q++) total += dot(x + q * stride_, y + q * stride_, lanes_);
    return total;
}
