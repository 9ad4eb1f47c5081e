// One matrix product, blocked for registers and the first cache.
#pragma once

#include "vectors.hpp"

namespace grokscope::LEVEL {

// The left factor A [rows, depth]: element (i, k) lies at data + i·row + (k / PANEL)·group + (k % PANEL)·column. A matrix in
// panels, its transpose, and a plain matrix are all of this form.
struct Left {
    const float* data;
    long row, column, group;
};

// The right factor and the product: panels of columns, each with rows at a fixed distance.
struct Right {
    const float* data;
    long row, panel;
};
struct Product {
    float* data;
    long row, panel;
};

// C[ROWS, VECTORS·VECTOR_FLOATS] (+)= A·B with every sum in a register. Per step of depth: VECTORS loads of B, ROWS
// broadcasts of A, and ROWS·VECTORS multiply-adds that hide them.
template <int ROWS, int VECTORS>
static inline __attribute__((always_inline)) void multiply_tile(Left a, const float* __restrict b, long b_row,
                                                                float* __restrict c, long c_row, long depth,
                                                                bool accumulate) {
    Vector sums[ROWS][VECTORS];
#pragma GCC unroll 32
    for (int i = 0; i < ROWS; i++)
#pragma GCC unroll 8
        for (int j = 0; j < VECTORS; j++)
            sums[i][j] = accumulate ? load(c + i * c_row + j * VECTOR_FLOATS) : Vector{};
    for (; depth > 0; depth -= PANEL, a.data += a.group) {
        // A pointer to every third row of A. The others are one and two strides away, so all addresses fit into registers.
        const float* left[(ROWS + 2) / 3];
#pragma GCC unroll 32
        for (int i = 0; i < (ROWS + 2) / 3; i++) left[i] = a.data + 3 * i * a.row;
        for (long k = std::min(depth, PANEL); k > 0; k--) {
            Vector row[VECTORS];
#pragma GCC unroll 8
            for (int j = 0; j < VECTORS; j++) row[j] = load(b + j * VECTOR_FLOATS);
#pragma GCC unroll 32
            for (int i = 0; i < ROWS; i++)
#pragma GCC unroll 8
                for (int j = 0; j < VECTORS; j++) sums[i][j] += row[j] * left[i / 3][i % 3 * a.row];
#pragma GCC unroll 32
            for (int i = 0; i < (ROWS + 2) / 3; i++) left[i] += a.column;
            b += b_row;
        }
    }
#pragma GCC unroll 32
    for (int i = 0; i < ROWS; i++)
#pragma GCC unroll 8
        for (int j = 0; j < VECTORS; j++) store(c + i * c_row + j * VECTOR_FLOATS, sums[i][j]);
}

// Fewer rows than a tile has: the one of the smaller tiles that fits.
template <int ROWS, int VECTORS>
static void multiply_rest(long rows, Left a, const float* b, long b_row, float* c, long c_row, long depth,
                          bool accumulate) {
    if constexpr (ROWS > 0) {
        if (rows == ROWS) return multiply_tile<ROWS, VECTORS>(a, b, b_row, c, c_row, depth, accumulate);
        multiply_rest<ROWS - 1, VECTORS>(rows, a, b, b_row, c, c_row, depth, accumulate);
    }
}

// All rows of A times some vectors of a panel of B, in tiles of up to ROWS rows.
template <int ROWS, int VECTORS>
static void multiply_panel(long rows, Left a, const float* b, long b_row, float* c, long c_row, long depth,
                           bool accumulate) {
    while (rows > 0) {
        long taken = ROWS;
        if (rows >= ROWS && (rows == ROWS || rows >= ROWS + ROWS / 2)) {
            multiply_tile<ROWS, VECTORS>(a, b, b_row, c, c_row, depth, accumulate);
        } else {
            // A tile of one or two rows waits for its own sums, so a little more than a tile is split in halves.
            taken = rows > ROWS ? (rows + 1) / 2 : rows;
            multiply_rest<ROWS - 1, VECTORS>(taken, a, b, b_row, c, c_row, depth, accumulate);
        }
        a.data += taken * a.row;
        c += taken * c_row;
        rows -= taken;
    }
}

// C[rows, columns] (+)= A[rows, depth] · B[depth, columns]. Columns are computed in whole vectors; what lies between them and
// the end of the last panel is left alone.
static void multiply(long rows, long columns, long depth, Left a, Right b, Product c, bool accumulate) {
    constexpr long DEPTH_BLOCK = 256 / PANEL * PANEL;  // a panel of B this deep stays in the first cache
    const long vectors = (columns + VECTOR_FLOATS - 1) / VECTOR_FLOATS;
    for (long k = 0; k < depth; k += DEPTH_BLOCK) {
        const long block = std::min(DEPTH_BLOCK, depth - k);
        const Left left{a.data + k / PANEL * a.group, a.row, a.column, a.group};
        for (long j = 0; j < vectors; j += TILE_VECTORS) {
            const float* right = b.data + j / TILE_VECTORS * b.panel + k * b.row;
            float* product = c.data + j / TILE_VECTORS * c.panel;
            if (vectors - j >= TILE_VECTORS)
                multiply_panel<TILE_ROWS, TILE_VECTORS>(rows, left, right, b.row, product, c.row, block,
                                                        accumulate || k > 0);
            else  // vectors that do not fill a panel, in tiles of as many sums but one vector wide
                for (long i = 0; i < vectors - j; i++)
                    multiply_panel<TILE_ROWS * TILE_VECTORS, 1>(rows, left, right + i * VECTOR_FLOATS, b.row,
                                                                product + i * VECTOR_FLOATS, c.row, block,
                                                                accumulate || k > 0);
        }
    }
}

}  // namespace grokscope::LEVEL
