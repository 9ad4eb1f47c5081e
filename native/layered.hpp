// The training step of a fully connected network that kernel.hpp does not have: with more than two layers and a norm, or with
// GELU. It keeps all layers of a block of rows, and goes through them one after the other:
//
//     Z₁ = U[m] + V[n],  Zᵢ = Yᵢ₋₁ · Hᵢᵀ        [R, N]
//     Yᵢ = norm(φ(dropout(Zᵢ)))                 [R, N]
//
// BatchNorm needs the whole batch, so a block is a batch; without it, it is as large as kernel.hpp's.
#pragma once

#include "batches.hpp"
#include "floats.hpp"
#include "linear.hpp"
#include "norms.hpp"
#include "optimiser.hpp"
#include "output_layer.hpp"

namespace grokscope::LEVEL {

class LayeredTrainer final : public LayoutTrainer<LayeredPlaces> {
public:
    LayeredTrainer(const Config& config, const Examples& training)
        : LayoutTrainer(config, PANEL),
          width_(whole_panels(config.width)),
          batches_(config_, training),
          block_(config.norm == Norm::batch ? std::max(batches_.size(), BLOCK_ROWS) : BLOCK_ROWS),
          output_layer_(config_, weights_.data() + places_.w.offset, gradients_.data() + places_.w.offset, config.width),
          few_rows_(batches_.size() <= BLOCK_ROWS && 4 * batches_.size() <= config.width),
          upstream_(block_, width_),
          next_(config.depth > 2 ? block_ : 0, width_) {
        for (long i = 0; i + 1 < config.depth; i++) layers_.push_back(std::make_unique<Layer>(*this, size_t(i)));
    }

    Array find(const std::string& kind, const std::string& name) override {
        if (kind == "weights" && config_.norm == Norm::batch)
            for (size_t i = 0; i < layers_.size(); i++) {
                const std::string prefix = LayeredPlaces::norm_name(long(i) + 1);
                if (name == prefix + "_mean") return {layers_[i]->running_mean.data(), 0, config_.width};
                if (name == prefix + "_variance") return {layers_[i]->running_variance.data(), 0, config_.width};
            }
        return LayoutTrainer::find(kind, name);
    }

    void advance(long steps, double* losses) override {
        const FlushDenormals flush;
        for (long i = 0; i < steps; i++) {
            const bool at_once = batches_.size() <= block_;
            losses[i] = compute_gradient(at_once);
            for (auto& layer : layers_)
                if (layer->batch_norm) layer->batch_norm->update_running_statistics();
            if (at_once) {
                update(0, places_.hidden_begin);
                update(places_.hidden_end, places_.size());
            } else {
                update(0, places_.size());
            }
            step++;
        }
    }

    double gradient() override {
        const FlushDenormals flush;
        return compute_gradient(false);
    }

    void evaluate(const Examples& examples, int64_t* predictions, double* losses) override {
        const FlushDenormals flush;
        output_layer_.transpose_weights();
        transpose_hidden_weights();
        for (auto& layer : layers_)
            if (layer->batch_norm) layer->batch_norm->use_running_statistics();
        for (long start = 0; start < examples.count(); start += BLOCK_ROWS) {
            const long rows = std::min(BLOCK_ROWS, examples.count() - start);
            output_layer_.forward(rows, forward(examples, start, rows, false).grid());
            for (long i = 0; i < rows; i++) {
                const auto [prediction, loss] = output_layer_.evaluate(i, examples.label[size_t(start + i)]);
                predictions[start + i] = prediction;
                losses[start + i] = loss;
            }
        }
    }

private:
    struct Layer {
        std::optional<Linear> linear;  // of all but the first
        Rows activations, slopes;      // φ(dropout(Z)), and its derivative by Z, which for relu is known from it
        Buffer mask;                   // plain rows; only with dropout
        Buffer running_mean, running_variance;
        std::optional<LayerNorm> layer_norm;
        std::optional<BatchNorm> batch_norm;

        Layer(LayeredTrainer& of, size_t number)
            : activations(of.block_, of.width_),
              running_mean(of.width_),
              running_variance(of.width_) {
            if (of.config_.activation != Activation::relu) slopes = Rows(of.block_, of.width_);
            if (number > 0) linear.emplace(of.places_.hidden[number - 1], of.weights_, of.gradients_);
            if (of.config_.dropout_threshold > 0) mask = Buffer(of.block_ * of.width_);
            if (of.config_.norm == Norm::none) return;
            const NormPlaces& places = of.places_.norms[number];
            float *weights = of.weights_.data(), *gradients = of.gradients_.data();
            const NormArrays arrays{weights + places.scale.offset, weights + places.shift.offset,
                                    gradients + places.scale.offset, gradients + places.shift.offset};
            if (of.config_.norm == Norm::layer) layer_norm.emplace(of.config_.width, arrays);
            if (of.config_.norm == Norm::batch)
                batch_norm.emplace(of.config_.width, arrays, running_mean, running_variance, of.block_);
        }
    };

    void transpose_hidden_weights() {
        for (auto& layer : layers_)
            if (layer->linear) layer->linear->transpose_weights();
    }

    // These weights, of which the gradient is known.
    void update(long begin, long end) {
        optimise(config_, config_.learning(), step + 1, end - begin, gradients_.data() + begin, weights_.data() + begin,
                 first_.data() + begin, second_.data() + begin);
    }

    // With `at_once` hidden weights are updated as soon as their gradients are there, which are then still in the cache. It
    // takes a batch of one block.
    double compute_gradient(bool at_once) {
        // The gradients of hidden layers are set by the first block.
        std::fill_n(gradients_.data(), places_.hidden_begin, 0.0f);
        std::fill(gradients_.data() + places_.hidden_end, gradients_.data() + places_.size(), 0.0f);
        output_layer_.transpose_weights();
        if (!few_rows_) transpose_hidden_weights();
        const Batch& batch = batches_.at(step);
        const long count = batch.pairs.count();
        double loss = 0;
        for (long start = 0; start < count; start += block_) {
            const long rows = std::min(block_, count - start);
            draw_masks(batch.places, start, rows);
            Rows& last = forward(batch.pairs, start, rows, true);
            loss += output_backward(batch.pairs, start, rows, last, count);
            backward(batch.pairs, start, rows, at_once);
        }
        return loss / double(count);
    }

    void draw_masks(const std::vector<uint32_t>& places, long start, long rows) {
        if (config_.dropout_threshold == 0) return;
        for (size_t layer = 0; layer < layers_.size(); layer++)
            for (long i = 0; i < rows; i++)
                dropout_row(layers_[layer]->mask.data() + i * width_, config_.width, places[size_t(start + i)],
                            uint32_t(step + 1), uint32_t(layer), config_.seed, config_.dropout_threshold,
                            float(config_.dropout_scale));
    }

    // What the output layer reads of rows start … of the pairs.
    Rows& forward(const Examples& pairs, long start, long rows, bool training) {
        Rows* inputs = nullptr;
        const bool turned = training && few_rows_;
        for (auto& layer : layers_) {
            if (inputs && turned) layer->linear->turn(rows, inputs->grid());
            for (long k = 0; k < width_; k += PANEL) {
                if (inputs && turned)
                    layer->linear->turned_forward_panel(rows, k, layer->activations.grid());
                else if (inputs)
                    layer->linear->forward_panel(rows, inputs->grid(), k, layer->activations.grid());
                else
                    look_up(pairs, start, rows, k);
                activate(*layer, rows, k, training);
            }
            if (layer->batch_norm && training) layer->batch_norm->use_batch(layer->activations, rows);
            inputs = &norm(*layer, rows);
        }
        return *inputs;
    }

    Rows& norm(Layer& layer, long rows) {
        if (layer.layer_norm) return *layer.layer_norm->forward(layer.activations, rows);
        if (layer.batch_norm) return *layer.batch_norm->forward(layer.activations, rows, 0);
        return layer.activations;
    }

    void look_up(const Examples& pairs, long start, long rows, long k) {
        const long panel = k / PANEL * panel_rows(config_.modulus) * PANEL;
        const float *u = weights_.data() + places_.u.offset + panel, *v = weights_.data() + places_.v.offset + panel;
        float* z = layers_[0]->activations.at(0, k);
        for (long i = 0; i < rows; i++, z += PANEL) {
            const float *own = u + pairs.m[size_t(start + i)] * PANEL, *other = v + pairs.n[size_t(start + i)] * PANEL;
            for (long at = 0; at < PANEL; at += VECTOR_FLOATS) store(z + at, load(own + at) + load(other + at));
        }
    }

    // The panel of neuron k, which holds Z.
    void activate(Layer& layer, long rows, long k, bool training) const {
        const bool masked = training && config_.dropout_threshold > 0;
        float *z = layer.activations.at(0, k), *slopes = layer.slopes.values.size() ? layer.slopes.at(0, k) : nullptr;
        const float* mask = layer.mask.data() + (masked ? k : 0);
        const auto multiply_by_mask = [&](float* values) {
            for (long i = 0; i < rows; i++)
                for (long at = 0; at < PANEL; at++) values[i * PANEL + at] *= mask[i * width_ + at];
        };
        if (masked) multiply_by_mask(z);
        switch (config_.activation) {
            case Activation::relu: return activate_all<Activation::relu>(z, slopes, rows * PANEL);
            case Activation::quadratic: activate_all<Activation::quadratic>(z, slopes, rows * PANEL); break;
            case Activation::gelu: activate_all<Activation::gelu>(z, slopes, rows * PANEL); break;
        }
        if (masked) multiply_by_mask(slopes);
        // So that nothing goes back to padding.
        for (long at = std::max(0L, config_.width - k); at < PANEL; at++)
            for (long i = 0; i < rows; i++) slopes[i * PANEL + at] = 0;
    }

    template <Activation KIND>
    static void activate_all(float* __restrict z, float* __restrict slopes, long count) {
        for (long i = 0; i < count; i++) {
            const float x = z[i];
            // Written so that NaN stays NaN: that is how a diverging run shows.
            if constexpr (KIND == Activation::relu) z[i] = x <= 0 ? 0 : x;
            if constexpr (KIND == Activation::quadratic) slopes[i] = 2 * x, z[i] = x * x;
            if constexpr (KIND == Activation::gelu) {
                const auto [value, slope] = gelu(x);
                slopes[i] = slope, z[i] = value;
            }
        }
    }

    // dZ in the place of that of φ(dropout(Z)). Relu's padding is 0, and nothing goes back to it.
    void differentiate(Layer& layer, long rows, long k) {
        float* d = upstream_.at(0, k);
        if (config_.activation == Activation::relu) {
            const float kept = config_.dropout_threshold > 0 ? float(config_.dropout_scale) : 1.0f;
            const float* y = layer.activations.at(0, k);
            for (long at = 0; at < rows * PANEL; at += VECTOR_FLOATS)
                store(d + at, load(y + at) > 0 ? kept * load(d + at) : Vector{});
            return;
        }
        const float* slopes = layer.slopes.at(0, k);
        for (long at = 0; at < rows * PANEL; at += VECTOR_FLOATS) store(d + at, load(d + at) * load(slopes + at));
    }

    // The sum of the rows' losses; what goes back to the last hidden layer is in upstream_. The output layer has room for
    // the logits of some rows at a time.
    double output_backward(const Examples& pairs, long start, long rows, Rows& last, long count) {
        double loss = 0;
        for (long first = 0; first < rows; first += BLOCK_ROWS) {
            const long some = std::min(BLOCK_ROWS, rows - first);
            const Grid inputs = last.grid(first);
            output_layer_.forward(some, inputs);
            for (long i = 0; i < some; i++)
                loss += output_layer_.residual(i, pairs.label[size_t(start + first + i)], count);
            for (long k = 0; k < width_; k += PANEL)
                output_layer_.backward(some, inputs, k, upstream_.at(first, k), PANEL);
        }
        return loss;
    }

    void backward(const Examples& pairs, long start, long rows, bool at_once) {
        for (size_t i = layers_.size(); i-- > 0;) {
            Layer& layer = *layers_[i];
            if (layer.layer_norm) layer.layer_norm->backward(layer.activations, upstream_, rows);
            if (layer.batch_norm) {
                layer.batch_norm->add_gradients(layer.activations, upstream_, rows, 0);
                layer.batch_norm->backward(layer.activations, upstream_, rows);
            }
            for (long k = 0; k < width_; k += PANEL) differentiate(layer, rows, k);
            if (i == 0) break;
            layer.linear->backward(rows, upstream_.grid(), next_.grid(), false);
            const Place& place = places_.hidden[i - 1];
            const long panel = panel_rows(place.rows) * PANEL;
            for (long k = 0; k < width_; k += PANEL) {
                const long begin = place.offset + k / PANEL * panel;
                layer.linear->add_gradient_panel(rows, upstream_.grid(), normalised(*layers_[i - 1]).grid(), k, start > 0);
                if (at_once) update(begin, begin + panel);
            }
            std::swap(upstream_, next_);
        }
        const long p_rows = panel_rows(config_.modulus);
        for (long k = 0; k < width_; k += PANEL) {
            float *du = gradients_.data() + places_.u.offset + k * p_rows, *d = upstream_.at(0, k);
            float* dv = gradients_.data() + places_.v.offset + k * p_rows;
            for (long i = 0; i < rows; i++, d += PANEL)
                for (long at = 0; at < PANEL; at += VECTOR_FLOATS) {
                    add(du + pairs.m[size_t(start + i)] * PANEL + at, load(d + at));
                    add(dv + pairs.n[size_t(start + i)] * PANEL + at, load(d + at));
                }
        }
    }

    // What the next layer read on the way forward.
    static Rows& normalised(Layer& layer) {
        return layer.layer_norm   ? layer.layer_norm->normalised()
               : layer.batch_norm ? layer.batch_norm->normalised()
                                  : layer.activations;
    }

    const long width_;  // neurons, padded to whole panels
    Batches batches_;
    const long block_;  // rows of a block
    OutputLayer output_layer_;
    const bool few_rows_;  // of a step: it is less work to transpose them than the weights
    std::vector<std::unique_ptr<Layer>> layers_;
    Rows upstream_, next_;  // gradients on their way back
};

}  // namespace grokscope::LEVEL
