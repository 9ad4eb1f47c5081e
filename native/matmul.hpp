// One matrix product, blocked for registers and the first cache. Included once per instruction level: the includer
// defines VECTOR_FLOATS, TILE_ROWS and TILE_VECTORS, and this file uses them through GCC's and Clang's vector types.

typedef float Vector __attribute__((vector_size(VECTOR_FLOATS * 4)));
typedef float LooseVector __attribute__((vector_size(VECTOR_FLOATS * 4), aligned(4), may_alias));

static inline Vector load(const float* pointer) { return *reinterpret_cast<const LooseVector*>(pointer); }
static inline void store(float* pointer, Vector value) { *reinterpret_cast<LooseVector*>(pointer) = value; }
static inline float sum(Vector value) {
    float total = 0;
    for (int i = 0; i < VECTOR_FLOATS; i++) total += value[i];
    return total;
}

// A [rows, depth] with strides in both directions, so that it may be a transpose; B [depth, columns] with contiguous rows.
struct Left {
    const float* data;
    long row_stride, column_stride;
};

// C[ROWS, VECTORS·VECTOR_FLOATS] (+)= A·B with every sum in a register. Per step of depth: VECTORS loads of B, ROWS
// broadcasts of A, and ROWS·VECTORS multiply-adds that hide them.
template <int ROWS, int VECTORS>
static inline __attribute__((always_inline)) void multiply_tile(Left a, const float* __restrict b, long b_stride,
                                                                float* __restrict c, long c_stride, long depth,
                                                                bool accumulate) {
    Vector sums[ROWS][VECTORS];
#pragma GCC unroll 16
    for (int i = 0; i < ROWS; i++)
#pragma GCC unroll 8
        for (int j = 0; j < VECTORS; j++)
            sums[i][j] = accumulate ? load(c + i * c_stride + j * VECTOR_FLOATS) : Vector{};
    const float* __restrict a_column = a.data;
    for (long k = 0; k < depth; k++) {
        Vector row[VECTORS];
#pragma GCC unroll 8
        for (int j = 0; j < VECTORS; j++) row[j] = load(b + j * VECTOR_FLOATS);
#pragma GCC unroll 16
        for (int i = 0; i < ROWS; i++)
#pragma GCC unroll 8
            for (int j = 0; j < VECTORS; j++) sums[i][j] += row[j] * a_column[i * a.row_stride];
        a_column += a.column_stride;
        b += b_stride;
    }
#pragma GCC unroll 16
    for (int i = 0; i < ROWS; i++)
#pragma GCC unroll 8
        for (int j = 0; j < VECTORS; j++) store(c + i * c_stride + j * VECTOR_FLOATS, sums[i][j]);
}

// Fewer rows than a tile has: the one of the tiles 1 … TILE_ROWS − 1 that fits.
template <int ROWS, int VECTORS>
static void multiply_rest(long rows, Left a, const float* b, long b_stride, float* c, long c_stride, long depth,
                          bool accumulate) {
    if constexpr (ROWS > 0) {
        if (rows == ROWS) return multiply_tile<ROWS, VECTORS>(a, b, b_stride, c, c_stride, depth, accumulate);
        multiply_rest<ROWS - 1, VECTORS>(rows, a, b, b_stride, c, c_stride, depth, accumulate);
    }
}

// All rows of A times one panel of B; meanwhile the next panel, whose rows lie far apart, is fetched into the cache.
template <int VECTORS>
static void multiply_panel(long rows, Left a, const float* b, long b_stride, float* c, long c_stride, long depth,
                           bool accumulate) {
    const float* next = b + VECTORS * VECTOR_FLOATS;
    const long share = depth * TILE_ROWS / rows + 1;
    long fetched = 0;
    while (rows > 0) {
        for (long end = std::min(depth, fetched + share); fetched < end; fetched++)
            __builtin_prefetch(next + fetched * b_stride);
        long taken = TILE_ROWS;
        if (rows >= TILE_ROWS && (rows == TILE_ROWS || rows >= TILE_ROWS + TILE_ROWS / 2)) {
            multiply_tile<TILE_ROWS, VECTORS>(a, b, b_stride, c, c_stride, depth, accumulate);
        } else {
            // A tile of one or two rows waits for its own sums, so a little more than a tile is split in halves.
            taken = rows > TILE_ROWS ? (rows + 1) / 2 : rows;
            multiply_rest<TILE_ROWS - 1, VECTORS>(taken, a, b, b_stride, c, c_stride, depth, accumulate);
        }
        a.data += taken * a.row_stride;
        c += taken * c_stride;
        rows -= taken;
    }
}

// C[rows, columns] (+)= A[rows, depth] · B[depth, columns]. Columns are computed in whole vectors: rows of B must be
// readable, and rows of C writable, up to the next multiple of VECTOR_FLOATS.
static void multiply(long rows, long columns, long depth, Left a, const float* b, long b_stride, float* c,
                     long c_stride, bool accumulate) {
    constexpr long DEPTH_BLOCK = 256;  // a panel of B this deep and TILE_VECTORS wide stays in the first cache
    const long vectors = (columns + VECTOR_FLOATS - 1) / VECTOR_FLOATS;
    for (long k = 0; k < depth; k += DEPTH_BLOCK) {
        const long block = std::min(DEPTH_BLOCK, depth - k);
        const Left left{a.data + k * a.column_stride, a.row_stride, a.column_stride};
        const float* right = b + k * b_stride;
        long j = 0;
        for (; j + TILE_VECTORS <= vectors; j += TILE_VECTORS)
            multiply_panel<TILE_VECTORS>(rows, left, right + j * VECTOR_FLOATS, b_stride, c + j * VECTOR_FLOATS,
                                         c_stride, block, accumulate || k > 0);
        for (; j < vectors; j++)
            multiply_panel<1>(rows, left, right + j * VECTOR_FLOATS, b_stride, c + j * VECTOR_FLOATS, c_stride, block,
                              accumulate || k > 0);
    }
}

// Σ x·y over `size` floats, in four sums that do not wait for each other; sizes are multiples of VECTOR_FLOATS.
static inline float dot(const float* x, const float* y, long size) {
    Vector sums[4] = {};
    long k = 0;
    for (; k + 4 * VECTOR_FLOATS <= size; k += 4 * VECTOR_FLOATS)
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++) sums[i] += load(x + k + i * VECTOR_FLOATS) * load(y + k + i * VECTOR_FLOATS);
    for (; k < size; k += VECTOR_FLOATS) sums[0] += load(x + k) * load(y + k);
    return sum((sums[0] + sums[1]) + (sums[2] + sums[3]));
}
