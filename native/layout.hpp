// The trained arrays of networks other than kernel.hpp's, one after the other: matrices in panels of their columns, and vectors,
// padded to whole panels.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "trainer.hpp"

namespace grokscope {

// Where an array begins among the values, and its shape. A vector has no rows.
struct Place {
    long offset = 0, rows = 0, columns = 0;
};

struct NormPlaces {
    Place scale, shift;
};

class Layout {
public:
    const Place* find(const std::string& name) const {
        for (const auto& entry : named_)
            if (entry.first == name) return &entry.second;
        return nullptr;
    }
    long size() const { return size_; }  // floats

protected:
    explicit Layout(long panel) : panel_(panel) {}

    Place add(const std::string& name, long rows, long columns) {
        const Place place{size_, rows, columns};
        size_ += (rows ? panel_rows(rows) : 1) * ((columns + panel_ - 1) / panel_ * panel_);
        named_.emplace_back(name, place);
        return place;
    }
    NormPlaces add_norm(const std::string& name, long columns) {
        const Place scale = add(name + "_scale", 0, columns);
        return {scale, add(name + "_shift", 0, columns)};
    }

private:
    const long panel_;
    std::vector<std::pair<std::string, Place>> named_;
    long size_ = 0;
};

// A trainer of the arrays of a layout.
template <typename Places>
class LayoutTrainer : public Trainer {
public:
    bool uses_complement() const override { return false; }

    Array find(const std::string& kind, const std::string& name) override {
        Buffer* of = chosen(kind, weights_, gradients_, first_, second_);
        const Place* place = places_.find(name);
        if (!of || !place) return {};
        return {of->data() + place->offset, place->rows, place->columns};
    }

protected:
    LayoutTrainer(const Config& config, long panel)
        : Trainer(config, panel),
          places_(config, panel),
          weights_(places_.size()),
          gradients_(places_.size()),
          first_(places_.size()),
          second_(places_.size()) {}

    const Places places_;
    Buffer weights_, gradients_, first_, second_;
};

// A fully connected network's: U, V, W [p, N], H2, H3, … [N, N], and a norm after each hidden layer.
struct LayeredPlaces : Layout {
    Place u, v, w;
    std::vector<Place> hidden;
    long hidden_begin = 0, hidden_end = 0;  // floats
    std::vector<NormPlaces> norms;

    LayeredPlaces(const Config& config, long panel) : Layout(panel) {
        const long p = config.modulus, N = config.width;
        u = add("U", p, N), v = add("V", p, N), w = add("W", p, N);
        hidden_begin = size();
        for (long layer = 2; layer < config.depth; layer++) hidden.push_back(add("H" + std::to_string(layer), N, N));
        hidden_end = size();
        for (long layer = 1; layer < config.depth && config.norm != Norm::none; layer++)
            norms.push_back(add_norm(norm_name(layer), N));
    }

    static std::string norm_name(long layer) { return layer == 1 ? "norm" : "norm" + std::to_string(layer); }
};

struct LayerPlaces {
    Place query, key, value, output;  // [d, d]
    Place mlp_in, mlp_out;            // [4d, d], [d, 4d]
    NormPlaces attention_norm, mlp_norm;
};

// Neighbouring arrays that learn alike.
struct Span {
    long begin, end;
    Learning learning;
};

// A Transformer's. The embeddings come first, because weight decay may spare them.
struct TransformerPlaces : Layout {
    Place embedding, positions, unembedding;  // [p, d], [2, d], [p, d]
    std::vector<LayerPlaces> layers;
    NormPlaces final_norm;
    std::vector<Span> spans;  // of all floats

    TransformerPlaces(const Config& config, long panel) : Layout(panel) {
        const long p = config.modulus, d = config.width;
        embedding = add("embedding", p, d);
        positions = add("positions", 2, d);
        Learning learning = config.learning(config.other_rate);
        if (!config.decay_embeddings) learning.decay = 0;
        learns(learning);
        for (long i = 1; i <= config.layers; i++) {
            const std::string number = std::to_string(i);
            LayerPlaces layer;
            layer.query = add("query" + number, d, d);
            layer.key = add("key" + number, d, d);
            layer.value = add("value" + number, d, d);
            layer.output = add("output" + number, d, d);
            learns(config.learning(config.attention_rate));
            layer.mlp_in = add("mlp_in" + number, config.mlp_width, d);
            learns(config.learning(config.mlp_in_rate));
            layer.mlp_out = add("mlp_out" + number, d, config.mlp_width);
            learns(config.learning(config.mlp_out_rate));
            if (config.norm != Norm::none) {
                layer.attention_norm = add_norm("attention_norm" + number, d);
                layer.mlp_norm = add_norm("mlp_norm" + number, d);
                learns(config.learning(config.other_rate));
            }
            layers.push_back(layer);
        }
        unembedding = config.tied ? embedding : add("unembedding", p, d);
        if (config.norm != Norm::none) final_norm = add_norm("final_norm", d);
        learns(config.learning(config.other_rate));
    }

private:
    // Says how all that was added since the last time learns.
    void learns(Learning how) {
        const long begin = spans.empty() ? 0 : spans.back().end;
        if (!spans.empty() && spans.back().learning == how)
            spans.back().end = size();
        else if (begin < size())
            spans.push_back({begin, size(), how});
    }
};

}  // namespace grokscope
