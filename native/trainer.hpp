// What the Python module sees of the kernel: one class, whatever instructions it was compiled for.
//
// A run trains f(m, n) = W · norm(φ(dropout(U eₘ + V eₙ))) on pairs (m, n) with labels y. Shapes: p residues, N neurons,
// R rows (examples) at a time. U and V are kept transposed, so that all three matrices are p rows of N neurons. A deeper
// network has no norm, and for each further hidden layer x ↦ φ(dropout(H x)) a matrix H of N rows of N neurons.
//
// Matrices of neurons are kept in panels: the neurons 0 … w − 1 of all rows, then w … 2w − 1 of all rows, and so on, where w
// is as wide as the registers that a product works on. What a product or a pass over neurons needs next then lies next
// in memory. Neurons are padded with zeros to whole panels, and padding stays zero by itself: padded weights,
// activations and gradients are zero in every formula.
//
// A Transformer (transformer.hpp) has other arrays, kept the same way: matrices in panels of their columns.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "limits.hpp"
#include "memory.hpp"

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace grokscope {

enum class Activation { quadratic, relu, gelu };
enum class Loss { mse, cross_entropy };
enum class Norm { none, batch, layer };
enum class Optimizer { adamw, adam, sgd };
enum class Form { automatic, direct, complement, tokens };

struct Learning {
    double rate, decay;
    bool operator==(const Learning& other) const { return rate == other.rate && decay == other.decay; }
};

struct Config {
    long modulus = 0, width = 0, batch_size = 0;  // batch_size 0: the full batch
    long depth = 2;                               // layers of weights
    Activation activation = Activation::quadratic;
    Loss loss = Loss::mse;
    Norm norm = Norm::none;
    Optimizer optimizer = Optimizer::adamw;
    Form form = Form::automatic;
    uint32_t dropout_threshold = 0;  // a neuron is dropped when its 16 random bits are below; 0: no dropout
    double dropout_scale = 1, learning_rate = 0, weight_decay = 0, beta1 = 0, beta2 = 0, epsilon = 0, momentum = 0;
    uint64_t seed = 0;
    // A Transformer has at least one layer, and `width` dimensions.
    long layers = 0, heads = 1, mlp_width = 0;  // mlp_width: hidden neurons of each MLP
    bool tied = false;                          // the unembedding is the embedding
    bool decay_embeddings = true;
    double score_divisor = 1, logit_divisor = 1;  // what scores of attention and logits are divided by
    // The learning rate of a Transformer's modules, as factors: of the attention, the two matrices of the MLP, all others.
    double attention_rate = 1, mlp_in_rate = 1, mlp_out_rate = 1, other_rate = 1;

    Learning learning(double factor = 1) const { return {factor * learning_rate, weight_decay}; }
};

// Zero-initialised floats on a cache line's boundary.
class Buffer {
public:
    Buffer() = default;
    explicit Buffer(long size) : size_(size) {
        // Large buffers ask for huge pages: neighbouring data then shares one entry of the TLB, and lies side by side in
        // the cache as well, where scattered small pages may happen to compete for the same places.
        const size_t needed = bytes_for({size}, sizeof(float)), huge = size_t(2) << 20;
#if defined(__SANITIZE_ADDRESS__)
        const size_t unit = 64, bytes = needed;  // to the byte, or a little beyond the end would be allowed
#else
        const size_t unit = needed >= huge / 16 ? huge : 64, bytes = (needed + unit - 1) / unit * unit;
#endif
        void* memory = nullptr;
        if (posix_memalign(&memory, unit, bytes ? bytes : unit) != 0) throw std::bad_alloc();
        data_.reset(static_cast<float*>(memory));
#if defined(MADV_HUGEPAGE)
        if (unit == huge) madvise(data_.get(), bytes, MADV_HUGEPAGE);
#endif
        clear();
    }
    void clear() {
        for (long i = 0; i < size_; i++) data_.get()[i] = 0;
    }
    float* data() { return data_.get(); }
    const float* data() const { return data_.get(); }
    long size() const { return size_; }

private:
    struct Free {
        void operator()(float* pointer) const { std::free(pointer); }
    };
    std::unique_ptr<float, Free> data_;
    long size_ = 0;
};

// Rows of a panel are one or two cache lines. Panels are an odd number of rows long: were the distance of two panels a
// power of two, a row that crosses all panels would fall into a few sets of the cache and evict itself.
inline long panel_rows(long rows) { return rows | 1; }
// Where a matrix with panels of so many rows keeps the number of this row and column.
inline long panel_place(long row, long column, long of, long panel) {
    return (column / panel * of + row) * panel + column % panel;
}

// The trained arrays one after the other: U, V, W in panels, then scale and shift of a norm, then H2, H3, … in panels.
struct Parameters {
    long rows, panel, width;  // rows of a panel; its neurons; all neurons, padded to whole panels
    bool has_norm;
    long hidden_rows;  // rows of a panel of H2, H3, …
    Buffer values;

    Parameters(const Config& config, long panel_)
        : rows(panel_rows(config.modulus)),
          panel(panel_),
          width((config.width + panel_ - 1) / panel_ * panel_),
          has_norm(config.norm != Norm::none),
          hidden_rows(panel_rows(config.width)),
          values((3 * rows + (has_norm ? 2 : 0) + (config.depth - 2) * hidden_rows) * width) {}
    float* u() { return values.data(); }
    float* v() { return u() + rows * width; }
    float* w() { return v() + rows * width; }
    float* scale() { return w() + rows * width; }
    float* shift() { return scale() + width; }
    float* hidden(long layer) { return scale() + ((has_norm ? 2 : 0) + (layer - 2) * hidden_rows) * width; }
    // Where U, V and W keep the weight of this row and neuron.
    long place(long row, long neuron) const { return panel_place(row, neuron, rows, panel); }
};

// An array that Python gets or sets: a matrix in panels of its columns, or a vector if it has no rows.
struct Array {
    float* data = nullptr;
    long rows = 0, columns = 0;
};

struct Examples {
    std::vector<int32_t> m, n, label;
    long count() const { return long(m.size()); }
};

class Trainer {
public:
    virtual ~Trainer() = default;

    // Take `steps` steps; the loss of each, before its update.
    virtual void advance(long steps, double* losses) = 0;
    // The loss and gradient of the next step, without taking it.
    virtual double gradient() = 0;
    // Predicted label and loss of each example, in evaluation mode.
    virtual void evaluate(const Examples& examples, int64_t* predictions, double* losses) = 0;
    // Whether the full grid minus the complement of the training set is used.
    virtual bool uses_complement() const = 0;

    // The array of this name among the weights, their gradient or the optimiser's moments; null if there is none.
    virtual Array find(const std::string& kind, const std::string& name) = 0;
    long panel() const { return panel_; }
    long step = 0;

protected:
    Trainer(const Config& config, long panel) : config_(config), panel_(panel) {}

    // The one of four sets that a kind names. Moments go by the name that the optimiser knows them by, or those of one
    // would pass for another's.
    template <typename Set>
    Set* chosen(const std::string& kind, Set& weights, Set& gradients, Set& first, Set& second) const {
        const bool sgd = config_.optimizer == Optimizer::sgd;
        return kind == "weights"                 ? &weights
               : kind == "gradient"              ? &gradients
               : kind == "first_moment" && !sgd  ? &first
               : kind == "second_moment" && !sgd ? &second
               : kind == "momentum" && sgd       ? &first
                                                 : nullptr;
    }

    const Config config_;

private:
    const long panel_;
};

// The arrays of a fully connected network.
class MlpTrainer : public Trainer {
protected:
    MlpTrainer(const Config& config, long panel)
        : Trainer(config, panel),
          weights_(config, panel),
          gradients_(config, panel),
          first_(config, panel),
          second_(config, panel),
          running_mean_(weights_.width),
          running_variance_(weights_.width) {}

    Array find(const std::string& kind, const std::string& name) override {
        const long p = config_.modulus, N = config_.width;
        if (kind == "weights" && config_.norm == Norm::batch) {
            if (name == "norm_mean") return {running_mean_.data(), 0, N};
            if (name == "norm_variance") return {running_variance_.data(), 0, N};
        }
        Parameters* of = chosen(kind, weights_, gradients_, first_, second_);
        if (!of) return {};
        if (name == "U") return {of->u(), p, N};
        if (name == "V") return {of->v(), p, N};
        if (name == "W") return {of->w(), p, N};
        if (of->has_norm && name == "norm_scale") return {of->scale(), 0, N};
        if (of->has_norm && name == "norm_shift") return {of->shift(), 0, N};
        for (long layer = 2; layer < config_.depth; layer++)
            if (name == "H" + std::to_string(layer)) return {of->hidden(layer), N, N};
        return {};
    }

    Parameters weights_, gradients_, first_, second_;
    Buffer running_mean_, running_variance_;
};

// Multiply-adds per second that one core can do in registers, in 1e9 operations of floats (two for each multiply-add).
double fma_peak_plain(double seconds);
double fma_peak_split(double seconds);
double fma_peak_avx2(double seconds);
double fma_peak_avx512(double seconds);

// A network's output layer, the hidden activations of some rows, and the order in which its neurons are pruned. Prefix j is
// the network without the first j neurons of the order: 0 … N.
struct PrefixTask {
    long rows, width, outputs;
    const float *hidden, *output;   // [rows, N], [p, N]
    const int64_t *order, *labels;  // [N], [rows]
    const float *scale, *shift;     // [N] each, of a LayerNorm; null if there is none
    Loss loss;
    uint16_t* predictions;  // [N + 1, rows]
    float* losses;          // [N + 1, rows]
};
void evaluate_prefixes_plain(const PrefixTask& task);
void evaluate_prefixes_split(const PrefixTask& task);
void evaluate_prefixes_avx2(const PrefixTask& task);
void evaluate_prefixes_avx512(const PrefixTask& task);

// One for each level of instructions; null if it was not compiled for this architecture.
std::unique_ptr<Trainer> make_trainer_plain(const Config&, const Examples& training);
std::unique_ptr<Trainer> make_trainer_split(const Config&, const Examples& training);
std::unique_ptr<Trainer> make_trainer_avx2(const Config&, const Examples& training);
std::unique_ptr<Trainer> make_trainer_avx512(const Config&, const Examples& training);

}  // namespace grokscope
