// The training step.
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
#pragma once

#include "batches.hpp"
#include "deep.hpp"
#include "first_layer.hpp"
#include "floats.hpp"
#include "full_grid.hpp"
#include "norms.hpp"
#include "optimiser.hpp"
#include "output_layer.hpp"

namespace grokscope::LEVEL {

// Of a wider network a block's hidden layer does not stay in the second cache, so a step goes through slices of it.
constexpr long SLICE = 480 / PANEL * PANEL, SLICED_WIDTH = 4 * SLICE;  // neurons

class LevelTrainer final : public MlpTrainer {
public:
    LevelTrainer(const Config& config, const Examples& training)
        : MlpTrainer(config, PANEL),
          batches_(config_, training),
          first_layer_(config_, weights_, gradients_, kept_rows()),
          deep_layers_(config_, weights_, gradients_),
          output_layer_(config_, weights_.w(), gradients_.w(), config.width,
                        sliced() ? std::max(batches_.size(), BLOCK_ROWS) : BLOCK_ROWS),
          upstream_(kept_rows(), config.norm == Norm::none ? PANEL : weights_.width),
          complement_(find_complement(config_, training)) {
        if (complement_)
            full_grid_.emplace(config_, weights_, gradients_, batches_.training(), output_layer_);
        if (config.norm == Norm::none) return;
        const NormArrays norm{weights_.scale(), weights_.shift(), gradients_.scale(), gradients_.shift()};
        if (config.norm == Norm::layer) layer_norm_.emplace(config.width, norm);
        if (config.norm == Norm::batch)
            batch_norm_.emplace(config.width, norm, running_mean_, running_variance_, BLOCK_ROWS);
    }

    bool uses_complement() const override { return complement_.has_value(); }

    void advance(long steps, double* losses) override {
        const FlushDenormals flush;
        for (long i = 0; i < steps; i++) {
            losses[i] = compute_gradient();
            step++;
            if (batch_norm_) batch_norm_->update_running_statistics();
            optimise(config_, config_.learning(), step, weights_.values.size(), gradients_.values.data(),
                     weights_.values.data(), first_.values.data(), second_.values.data());
        }
    }

    double gradient() override {
        const FlushDenormals flush;
        return compute_gradient();
    }

    void evaluate(const Examples& examples, int64_t* predictions, double* losses) override {
        const FlushDenormals flush;
        transpose_weights();
        if (batch_norm_) batch_norm_->use_running_statistics();
        for (long start = 0; start < examples.count(); start += BLOCK_ROWS) {
            const long rows = std::min(BLOCK_ROWS, examples.count() - start);
            first_layer_.forward(examples, start, 0, rows, false);
            compute_logits(rows, 0, false);
            for (long i = 0; i < rows; i++) {
                const auto [prediction, loss] = output_layer_.evaluate(i, examples.label[size_t(start + i)]);
                predictions[start + i] = prediction;
                losses[start + i] = loss;
            }
        }
    }

private:
    // BatchNorm needs the whole batch before any row goes on, so it keeps all rows; the others keep a block.
    long kept_rows() const { return config_.norm == Norm::batch ? std::max(batches_.size(), BLOCK_ROWS) : BLOCK_ROWS; }

    void transpose_weights() {
        deep_layers_.transpose_weights();
        output_layer_.transpose_weights();
    }

    // Leaves the gradient in gradients_; the loss is of the weights as they are.
    double compute_gradient() {
        gradients_.values.clear();
        transpose_weights();
        if (full_grid_) return full_grid_gradient();
        return sliced() ? sliced_gradient(batches_.at(step)) : batch_gradient(batches_.at(step));
    }

    double batch_gradient(const Batch& batch) {
        const long count = batch.pairs.count();
        if (batch_norm_) {
            compute_hidden(batch, 0, 0, count);
            batch_norm_->use_batch(first_layer_.hidden(), count);
        }
        double loss = 0;
        for_each_block(count, [&](long start, long rows) {
            const long first = batch_norm_ ? start : 0;
            if (!batch_norm_) compute_hidden(batch, start, 0, rows);
            Rows& inputs = compute_logits(rows, first, true);
            for (long i = 0; i < rows; i++)
                loss += output_layer_.residual(i, batch.pairs.label[size_t(start + i)], count);
            backpropagate(batch.pairs, start, rows, inputs, first);
        });
        if (batch_norm_) {
            batch_norm_->backward(first_layer_.hidden(), upstream_, count);
            scatter_all(batch.pairs, 0, count);
        }
        return loss / double(count);
    }

    // Dropout would have to draw its masks twice.
    bool sliced() const {
        return config_.depth == 2 && config_.norm == Norm::none && config_.batch_size == 0 &&
               config_.dropout_threshold == 0 && config_.width > SLICED_WIDTH;
    }

    // As batch_gradient, slice by slice: first the logits of all rows, then the gradients. The hidden layer is computed
    // twice, which is cheaper than to fetch it.
    double sliced_gradient(const Batch& batch) {
        const Examples& pairs = batch.pairs;
        const long count = pairs.count();
        for_each_slice([&](Neurons slice) {
            for_each_block(count, [&](long start, long rows) {
                first_layer_.forward(pairs, start, 0, rows, true, slice);
                output_layer_.forward(rows, first_layer_.hidden().grid(), start, slice);
            });
        });
        double loss = 0;
        for (long i = 0; i < count; i++) loss += output_layer_.residual(i, pairs.label[size_t(i)], count);
        for_each_slice([&](Neurons slice) {
            for_each_block(count, [&](long start, long rows) {
                first_layer_.forward(pairs, start, 0, rows, true, slice);
                backpropagate_panels(pairs, start, rows, first_layer_.hidden(), slice, start);
            });
        });
        return loss / double(count);
    }

    template <typename Visit>
    void for_each_slice(Visit visit) const {
        for (long k = 0; k < weights_.width; k += SLICE) visit(Neurons{k, std::min(k + SLICE, weights_.width)});
    }

    // All pairs, less those that are not in the training set.
    double full_grid_gradient() {
        full_grid_->add_all_pairs();
        for_each_block(complement_->count(), [&](long start, long rows) {
            first_layer_.forward(*complement_, start, 0, rows, true);
            compute_logits(rows, 0, true);
            output_layer_.negate(rows);
            backpropagate(*complement_, start, rows, first_layer_.hidden(), 0);
        });
        return full_grid_->finish();
    }

    // `visit(start, rows)` for each block of so many rows: its first row, and how many it has.
    template <typename Visit>
    static void for_each_block(long count, Visit visit) {
        for (long start = 0; start < count; start += BLOCK_ROWS) visit(start, std::min(BLOCK_ROWS, count - start));
    }

    // The first hidden layer of a batch's rows start …, as rows first …, and the dropout of all layers.
    void compute_hidden(const Batch& batch, long start, long first, long rows) {
        first_layer_.draw_masks(batch.places, start, first, rows, step + 1);
        deep_layers_.draw_masks(batch.places, start, rows, step + 1);
        first_layer_.forward(batch.pairs, start, first, rows, true);
    }

    // From rows `first` … of the first hidden layer to the logits of a block. Returns what the output layer reads; without a
    // norm and further layers, this is the first hidden layer.
    Rows& compute_logits(long rows, long first, bool training) {
        Rows* inputs = deep_layers_.forward(first_layer_.hidden(), rows, training);
        if (layer_norm_) inputs = layer_norm_->forward(*inputs, rows);
        if (batch_norm_) inputs = batch_norm_->forward(*inputs, rows, first);
        output_layer_.forward(rows, inputs->grid());
        return *inputs;
    }

    // From the residuals of a block to its gradients; BatchNorm's way to U and V needs those of all blocks first.
    void backpropagate(const Examples& pairs, long start, long rows, Rows& inputs, long first) {
        // A norm needs all of dY, in rows `first` … of upstream_, and works on whole panels, so their padding must be
        // written too: zeros.
        const bool keep = config_.norm != Norm::none;
        if (!keep && deep_layers_.empty())
            return backpropagate_panels(pairs, start, rows, inputs, {0, weights_.width}, 0);
        for (long k = 0; k < weights_.width; k += PANEL) {
            const long columns = keep ? PANEL : std::min(PANEL, config_.width - k);
            output_layer_.backward(rows, inputs.grid(), k, upstream_.at(first, keep ? k : 0), columns);
            if (!keep) deep_layers_.take(upstream_, rows, k);
        }
        deep_layers_.backward(first_layer_.hidden(), upstream_, rows, [&](long k) { scatter(pairs, start, rows, k); });
        if (layer_norm_) {
            layer_norm_->backward(first_layer_.hidden(), upstream_, rows);
            scatter_all(pairs, start, rows);
        }
        if (batch_norm_) batch_norm_->add_gradients(first_layer_.hidden(), upstream_, rows, first);
    }

    // With nothing between the first hidden layer and the output, dY goes on panel by panel and is not kept. The residuals
    // are in rows `residuals` … of the output layer.
    void backpropagate_panels(const Examples& pairs, long start, long rows, Rows& inputs, Neurons neurons,
                              long residuals) {
        for (long k = neurons.first; k < neurons.end; k += PANEL) {
            output_layer_.backward(rows, inputs.grid(), k, upstream_.at(0, 0), std::min(PANEL, config_.width - k),
                                   residuals);
            scatter(pairs, start, rows, k);
        }
    }

    // What upstream_ has for the panel of neuron k goes through the first hidden layer to U and V.
    void scatter(const Examples& pairs, long start, long rows, long k) {
        first_layer_.backward(pairs, start, 0, rows, k, upstream_.at(0, 0));
    }

    void scatter_all(const Examples& pairs, long start, long count) {
        for (long k = 0; k < weights_.width; k += PANEL)
            first_layer_.backward(pairs, start, 0, count, k, upstream_.at(0, k));
    }

    Batches batches_;
    FirstLayer first_layer_;
    DeepLayers deep_layers_;
    OutputLayer output_layer_;
    std::optional<LayerNorm> layer_norm_;
    std::optional<BatchNorm> batch_norm_;
    Rows upstream_;  // gradients on their way back: all of a norm's rows, or one panel
    std::optional<Examples> complement_;
    std::optional<FullGrid> full_grid_;
};

}  // namespace grokscope::LEVEL
