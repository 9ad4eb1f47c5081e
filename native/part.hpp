// What the parts of a training step (kernel.hpp) have in common: how rows of neurons lie in memory, and whose they are.
#pragma once

#include "matmul.hpp"
#include "philox.hpp"

namespace grokscope::LEVEL {

constexpr long BLOCK_ROWS = 144;  // a step goes through its rows in blocks of so many

// Neurons first … end, in whole panels.
struct Neurons {
    long first, end;
};

// Some rows of a matrix, in panels or plain: the number at (i, k) lies at data + i·row + (k / PANEL)·panel + k % PANEL.
struct Grid {
    float* data;
    long row, panel;

    float* at(long i, long k) const { return data + i * row + k / PANEL * panel; }  // k: a panel's first column
    Grid from(long first) const { return {data + first * row, row, panel}; }
    Left left(long k = 0) const { return {at(0, k), row, 1, panel}; }
    Right right(long k = 0) const { return {at(0, k), row, panel}; }
    Product product(long k = 0) const { return {at(0, k), row, panel}; }
    // A panel's columns as rows.
    Left transposed(long k) const { return {at(0, k), 1, row, PANEL * row}; }
};

// Rows of neurons in panels, with room for `rows` of them.
struct Rows {
    Buffer values;
    long panel = 0;  // distance of two panels

    Rows() = default;
    Rows(long rows, long width) : values(panel_rows(rows) * width), panel(panel_rows(rows) * PANEL) {}
    float* at(long row, long k) { return values.data() + k / PANEL * panel + row * PANEL; }
    Grid grid(long first = 0) { return {at(first, 0), PANEL, panel}; }
    Left left() { return {values.data(), PANEL, 1, panel}; }
    Right right() { return {values.data(), PANEL, panel}; }
    Product product(long first = 0, long k = 0) { return {at(first, k), PANEL, panel}; }
};

typedef float Four __attribute__((vector_size(16)));
typedef float LooseFour __attribute__((vector_size(16), aligned(4), may_alias));

// Four rows of four numbers. Compilers make two-operand permutations of these constructors.
static inline void transpose_four(const float* from, float* to, float factor) {
    const auto row = [&](long i) { return factor * Four(*reinterpret_cast<const LooseFour*>(from + i * PANEL)); };
    const auto put = [&](long i, Four column) { *reinterpret_cast<LooseFour*>(to + i * PANEL) = column; };
    const Four a = row(0), b = row(1), c = row(2), d = row(3);
    const Four ab{a[0], b[0], a[1], b[1]}, cd{c[0], d[0], c[1], d[1]};
    const Four ab_high{a[2], b[2], a[3], b[3]}, cd_high{c[2], d[2], c[3], d[3]};
    put(0, Four{ab[0], ab[1], cd[0], cd[1]});
    put(1, Four{ab[2], ab[3], cd[2], cd[3]});
    put(2, Four{ab_high[0], ab_high[1], cd_high[0], cd_high[1]});
    put(3, Four{ab_high[2], ab_high[3], cd_high[2], cd_high[3]});
}

static void transpose_block(const float* from, long rows, long columns, float* to, float factor = 1) {
    const long whole_rows = rows / 4 * 4, whole_columns = columns / 4 * 4;
    for (long row = 0; row < whole_rows; row += 4)
        for (long column = 0; column < whole_columns; column += 4)
            transpose_four(from + row * PANEL + column, to + column * PANEL + row, factor);
    for (long column = 0; column < columns; column++)
        for (long row = column < whole_columns ? whole_rows : 0; row < rows; row++)
            to[column * PANEL + row] = factor * from[row * PANEL + column];
}

// The transpose of a matrix [rows, columns] in panels of its columns, in panels of its rows, times a factor.
static void transpose_panels(const float* matrix, long rows, long columns, Product out, float factor = 1) {
    for (long k = 0; k < columns; k += PANEL)
        for (long j = 0; j < rows; j += PANEL)
            transpose_block(matrix + panel_place(j, k, panel_rows(rows), PANEL), std::min(PANEL, rows - j),
                            std::min(PANEL, columns - k), out.data + j / PANEL * out.panel + k * PANEL, factor);
}

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
          outputs_(odd_lines(config.modulus)),
          width_(weights.width),
          matrix_panel_(weights.rows * PANEL) {}
    ~Part() = default;

    Left left_matrix(const float* matrix) const { return {matrix, PANEL, 1, matrix_panel_}; }
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

    // Dropout's factors of a hidden layer, the first of which is layer 0, for rows start … of a step, to rows first … of
    // the mask. A row is known by its place in the grid.
    void draw_mask(Buffer& mask, const std::vector<uint32_t>& places, long start, long first, long count, long step,
                   size_t layer) const {
        if (config_.dropout_threshold == 0) return;
        for (long i = 0; i < count; i++)
            dropout_row(mask.data() + (first + i) * width_, config_.width, places[size_t(start + i)], uint32_t(step),
                        uint32_t(layer), config_.seed, config_.dropout_threshold, float(config_.dropout_scale));
    }

    const Config& config_;
    Parameters &weights_, &gradients_;
    const long p_, outputs_;   // labels, and labels padded to whole panels: the distance of two rows of logits
    const long width_;         // neurons, padded to whole panels
    const long matrix_panel_;  // distance of two panels of U, V, W and their gradients
};

}  // namespace grokscope::LEVEL
