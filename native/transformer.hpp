// The training step of a Transformer on pairs of tokens (m, n); src/grokscope/models/transformer.py says what it computes.
//
// In the first layer a position holds one of p tokens, so queries, keys and values are those of 2p rows, and pairs only look
// them up. Then a step goes through its pairs in blocks, as kernel.hpp does: every layer forward (transformer_layer.hpp), the
// output layer with the loss, every layer backward. At the end the gradients that have added up over pairs for each
// token go through the projections to the embeddings, again 2p rows.
#pragma once

#include "batches.hpp"
#include "joined_output.hpp"
#include "optimiser.hpp"
#include "transformer_layer.hpp"

namespace grokscope::LEVEL {

// A block of a full batch is about as many tokens m as tokens n, so that it needs few rows of the first layer's tables.
constexpr int32_t STRIP = 12;

class TransformerTrainer final : public LayoutTrainer<TransformerPlaces> {
public:
    TransformerTrainer(const Config& config, const Examples& training)
        : LayoutTrainer(config, PANEL),
          width_(whole_panels(config.width)),
          block_(BLOCK_ROWS),
          batches_(config_, training, STRIP),
          joined_(by_tables() && config.layers == 1
                      ? std::make_unique<JoinedOutput>(config_, places_, weights_, gradients_)
                      : nullptr),
          output_layer_(config_, joined_ ? joined_->weights() : weights_.data() + places_.unembedding.offset,
                        joined_ ? joined_->gradients() : gradients_.data() + places_.unembedding.offset,
                        joined_ ? config.mlp_width : config.width),
          positions_(config.layers > 1 ? 2 : 1),
          inputs_(size_t(config.layers)),
          dstream_(positions_ * block_, width_),
          own_rows_(size_t(block_)) {
        std::iota(own_rows_.begin(), own_rows_.end(), 0);
        for (long i = 0; i < config.layers; i++)
            layers_.push_back(std::make_unique<TransformerLayer>(config_, places_.layers[size_t(i)], weights_,
                                                                 gradients_, i, block_, i ? block_ : config.modulus,
                                                                 i == 0 && by_tables(),
                                                                 joined_ ? &joined_->unembedding() : nullptr));
        for (int s : {0, 1}) embedded_[s] = Rows(config.modulus, width_), dembedded_[s] = Rows(config.modulus, width_);
        if (config.norm == Norm::none) return;
        final_norm_.emplace(places_.final_norm, weights_, gradients_, block_);
        normed_ = Rows(block_, width_);
    }

    void advance(long steps, double* losses) override {
        const FlushDenormals flush;
        for (long i = 0; i < steps; i++) {
            losses[i] = compute_gradient();
            step++;
            for (const Span& span : places_.spans) update(span);
        }
    }

    double gradient() override {
        const FlushDenormals flush;
        return compute_gradient();
    }

    void evaluate(const Examples& examples, int64_t* predictions, double* losses) override {
        const FlushDenormals flush;
        prepare();
        for (long start = 0; start < examples.count(); start += block_) {
            const long rows = std::min(block_, examples.count() - start);
            compute_logits(token_rows(examples, start), rows, false);
            for (long i = 0; i < rows; i++) {
                const auto [prediction, loss] = output_layer_.evaluate(i, examples.label[size_t(start + i)]);
                predictions[start + i] = prediction;
                losses[start + i] = loss;
            }
        }
    }

private:
    bool by_tables() const { return TokenTables::worthwhile(config_, batches_.size()); }

    // What a step or an evaluation needs of the weights, before any pair.
    void prepare() {
        if (joined_) joined_->join();
        output_layer_.transpose_weights();
        for (auto& layer : layers_) layer->transpose_weights();
        const float *embedding = weights_.data() + places_.embedding.offset,
                    *positions = weights_.data() + places_.positions.offset;
        const long p = config_.modulus, panel = panel_rows(p), pair_panel = panel_rows(2);
        for (int s : {0, 1})
            for_each_vector(width_, [&](long k, long at) {
                const Vector position = load(positions + panel_place(s, k, pair_panel, PANEL) + at);
                for (long token = 0; token < p; token++)
                    store(embedded_[s].at(token, k) + at,
                          load(embedding + panel_place(token, k, panel, PANEL) + at) + position);
            });
        layers_[0]->project(embedded(), p);
    }

    double compute_gradient() {
        gradients_.clear();
        prepare();
        layers_[0]->clear_gradients();
        for (Rows& rows : dembedded_) rows.values.clear();
        if (joined_) joined_->clear_gradients();
        const Batch& batch = batches_.at(step);
        const long count = batch.pairs.count();
        double loss = 0;
        for (long start = 0; start < count; start += block_) {
            const long rows = std::min(block_, count - start);
            for (auto& layer : layers_) layer->draw_masks(batch.places, start, rows, step + 1);
            const PairRows tokens = token_rows(batch.pairs, start);
            compute_logits(tokens, rows, true);
            for (long i = 0; i < rows; i++)
                loss += output_layer_.residual(i, batch.pairs.label[size_t(start + i)], count);
            backpropagate(tokens, rows);
        }
        layers_[0]->project_backward(embedded(), config_.modulus, dembedded());
        if (joined_) joined_->part();
        add_embedding_gradients();
        return loss / double(count);
    }

    static PairRows token_rows(const Examples& pairs, long start) {
        return {{pairs.m.data() + start, pairs.n.data() + start}};
    }

    Streams embedded() { return {{embedded_[0].grid(), embedded_[1].grid()}}; }
    Streams dembedded() { return {{dembedded_[0].grid(), dembedded_[1].grid()}}; }
    Streams dstream(long rows) { return {{dstream_.grid(), dstream_.grid(rows * (positions_ - 1))}}; }
    PairRows rows_of(size_t layer, PairRows tokens) const {
        return layer == 0 ? tokens : PairRows{{own_rows_.data(), own_rows_.data()}};
    }

    void compute_logits(PairRows tokens, long rows, bool training) {
        if (joined_) {
            output_layer_.forward(rows, layers_[0]->forward_hidden(tokens, rows));
            return layers_[0]->add_logits(tokens, output_layer_.rows());
        }
        Streams x = embedded();
        for (size_t i = 0; i < layers_.size(); i++) {
            if (i > 0) layers_[i]->project(x, rows);
            inputs_[i] = x;
            x = layers_[i]->forward(x, rows_of(i, tokens), rows, training);
        }
        last_ = x.of[1];
        if (final_norm_) final_norm_->forward(last_, normed_.grid(), 0, rows);
        output_layer_.forward(rows, final_inputs());
    }

    // What the output layer reads.
    Grid final_inputs() { return final_norm_ ? normed_.grid() : last_; }

    void backpropagate(PairRows tokens, long rows) {
        if (joined_) return layers_[0]->backward(tokens, output_layer_);
        const Streams dx = dstream(rows);
        if (final_norm_ || positions_ == 2) dstream_.values.clear();
        // Once a panel of what the output layer read has been used, its gradient may take its place.
        const Grid upstream = final_norm_ ? normed_.grid() : dx.of[1];
        for (long k = 0; k < config_.width; k += PANEL)
            output_layer_.backward(rows, final_inputs(), k, upstream.at(0, k), std::min(PANEL, config_.width - k));
        if (final_norm_) final_norm_->backward(last_, upstream, dx.of[1], 0, rows);
        for (size_t i = layers_.size(); i-- > 0;) {
            if (i > 0) layers_[i]->clear_gradients();
            layers_[i]->backward(rows_of(i, tokens), dx);
            if (i > 0) layers_[i]->project_backward(inputs_[i], rows, dx);
        }
        for (int s = layers_[0]->first_position(); s < 2; s++)
            for (long k = 0; k < width_; k += PANEL)
                for (long i = 0; i < rows; i++)
                    for (long at = 0; at < PANEL; at += VECTOR_FLOATS)
                        add(dembedded_[s].at(tokens.of[s][i], k) + at, load(dx.of[s].at(i, k) + at));
    }

    void add_embedding_gradients() {
        float *embedding = gradients_.data() + places_.embedding.offset,
              *positions = gradients_.data() + places_.positions.offset;
        const long p = config_.modulus, panel = panel_rows(p), pair_panel = panel_rows(2);
        for (int s : {0, 1})
            for_each_vector(width_, [&](long k, long at) {
                Vector total{};
                for (long token = 0; token < p; token++) {
                    const Vector d = load(dembedded_[s].at(token, k) + at);
                    add(embedding + panel_place(token, k, panel, PANEL) + at, d);
                    total += d;
                }
                add(positions + panel_place(s, k, pair_panel, PANEL) + at, total);
            });
    }

    void update(const Span& span) {
        optimise(config_, span.learning, step, span.end - span.begin, gradients_.data() + span.begin,
                 weights_.data() + span.begin, first_.data() + span.begin, second_.data() + span.begin);
    }

    const long width_, block_;  // columns of the stream, padded; pairs of a block
    Batches batches_;
    std::unique_ptr<JoinedOutput> joined_;  // with one layer, by tables
    OutputLayer output_layer_;
    std::vector<std::unique_ptr<TransformerLayer>> layers_;
    std::optional<RowNorm> final_norm_;
    Rows embedded_[2], dembedded_[2];  // of each position: p tokens
    const long positions_;             // that the rows of a block are kept of
    std::vector<Streams> inputs_;      // of each layer
    Grid last_{};                      // the last position after the last layer
    Rows normed_, dstream_;            // the gradient of the stream, on its way back
    std::vector<int32_t> own_rows_;  // 0, 1, …: of layers whose rows are pairs
};

}  // namespace grokscope::LEVEL
