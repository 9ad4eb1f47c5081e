// What the parts of a training step (kernel.hpp) have in common: how rows of neurons lie in memory, and whose they are.
#pragma once

#include "matmul.hpp"
#include "philox.hpp"

namespace grokscope::LEVEL {

constexpr long BLOCK_ROWS = 144;  // a step goes through its rows in blocks of so many

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

// A part reads the weights of a run and adds to their gradient.
class Part {
public:
    // It belongs to the trainer whose arrays it refers to.
    Part(const Part&) = delete;
    Part& operator=(const Part&) = delete;

protected:
    Part(const Config& config, Parameters& weights, Parameters& gradients)
        : config_(config),
          weights_(weights),
          gradients_(gradients),
          p_(config.modulus),
          outputs_((config.modulus + PANEL - 1) / PANEL * PANEL),
          width_(weights.width),
          matrix_panel_(weights.rows * PANEL) {}
    ~Part() = default;

    Left left_matrix(float* matrix) const { return {matrix, PANEL, 1, matrix_panel_}; }
    Right right_matrix(const float* matrix) const { return {matrix, PANEL, matrix_panel_}; }
    Product matrix_product(float* matrix) const { return {matrix, PANEL, matrix_panel_}; }
    Left left_logits(const Buffer& logits) const { return {logits.data(), outputs_, 1, PANEL}; }
    Left left_transposed(const Buffer& logits) const { return {logits.data(), 1, outputs_, PANEL * outputs_}; }

    // `call(relu, masked)` with both as constants of the compiler.
    template <typename Call>
    void specialise(bool training, Call call) const {
        const bool relu = config_.activation == Activation::relu, masked = training && config_.dropout_threshold > 0;
        if (relu)
            masked ? call(std::true_type(), std::true_type()) : call(std::true_type(), std::false_type());
        else
            masked ? call(std::false_type(), std::true_type()) : call(std::false_type(), std::false_type());
    }

    // Dropout's factors of a hidden layer, the first of which is layer 0, for rows start … of a step. A row is known by its
    // place in the grid.
    void draw_mask(Buffer& mask, const std::vector<uint32_t>& places, long start, long count, long step,
                   size_t layer) const {
        if (config_.dropout_threshold == 0) return;
        for (long i = 0; i < count; i++)
            dropout_row(mask.data() + i * width_, config_.width, places[size_t(start + i)], uint32_t(step),
                        uint32_t(layer), config_.seed, config_.dropout_threshold, float(config_.dropout_scale));
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

    const Config& config_;
    Parameters &weights_, &gradients_;
    const long p_, outputs_;   // labels, and labels padded to whole panels: the distance of two rows of logits
    const long width_;         // neurons, padded to whole panels
    const long matrix_panel_;  // distance of two panels of U, V, W and their gradients
};

}  // namespace grokscope::LEVEL
