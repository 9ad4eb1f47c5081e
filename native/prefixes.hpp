// Every prefix of a pruning order at once. Included once per level, after kernel.hpp.
//
// Neuron k adds W_k h_k to the logits of a row, so a network with one neuron more is a rank-one update away. Rows go in blocks
// whose logits stay in the first cache while all neurons are added to them, the last of the order first: that starts
// from the empty network, and nothing cancels. A row is a lane of a vector, so neither the maximum nor the
// sum of squares of a row has to be collected from lanes, and p need not be padded.

constexpr int PREFIX_VECTORS = 2;  // more than one, because a row's maximum waits for itself; few enough for the registers
constexpr long PREFIX_ROWS = PREFIX_VECTORS * VECTOR_FLOATS;

typedef int32_t Integers __attribute__((vector_size(VECTOR_FLOATS * 4)));

struct PrefixBlock {
    Buffer logits, hidden;  // [p, PREFIX_ROWS] and, in pruning order, [N, PREFIX_ROWS]
    float highest[PREFIX_ROWS], squares[PREFIX_ROWS];
    int32_t place[PREFIX_ROWS];

    PrefixBlock(long outputs, long width) : logits(outputs * PREFIX_ROWS), hidden(width * PREFIX_ROWS) {}
};

// Adds one neuron, of outputs w [p], and leaves each row's highest logit, its first place, and the sum of squares.
// Without a neuron (null) only the latter.
static void add_neuron(PrefixBlock& block, const float* h, const float* w, long outputs) {
    Vector own[PREFIX_VECTORS], highest[PREFIX_VECTORS], squares[PREFIX_VECTORS];
    Integers place[PREFIX_VECTORS];
    float* f = block.logits.data();
    for (int v = 0; v < PREFIX_VECTORS; v++) {
        own[v] = h ? load(h + v * VECTOR_FLOATS) : Vector{};
        highest[v] = Vector{} - std::numeric_limits<float>::infinity();
        squares[v] = Vector{};
        place[v] = Integers{};
    }
    for (int32_t q = 0; q < outputs; q++, f += PREFIX_ROWS) {
        const float weight = h ? w[q] : 0.0f;
        const Integers here = Integers{} + q;
#pragma GCC unroll 4
        for (int v = 0; v < PREFIX_VECTORS; v++) {
            const Vector next = load(f + v * VECTOR_FLOATS) + own[v] * weight;
            store(f + v * VECTOR_FLOATS, next);
            place[v] = next > highest[v] ? here : place[v];  // not ≥: the first of equal maxima stays
            highest[v] = next > highest[v] ? next : highest[v];
            squares[v] += next * next;
        }
    }
    for (int v = 0; v < PREFIX_VECTORS; v++) {
        store(block.highest + v * VECTOR_FLOATS, highest[v]);
        store(block.squares + v * VECTOR_FLOATS, squares[v]);
        std::memcpy(block.place + v * VECTOR_FLOATS, &place[v], sizeof place[v]);
    }
}

// Σ exp(f − highest) of each row.
static void sum_powers(const PrefixBlock& block, long outputs, float* totals) {
    for (long i = 0; i < PREFIX_ROWS; i++) totals[i] = 0;
    const float* f = block.logits.data();
    for (long q = 0; q < outputs; q++, f += PREFIX_ROWS)
        for (long i = 0; i < PREFIX_ROWS; i++) totals[i] += exp_negative(f[i] - block.highest[i]);
}

static void evaluate_prefixes(const PrefixTask& task) {
    const FlushDenormals flush;
    const long N = task.width, p = task.outputs;
    Buffer columns(N * p);  // of W, in pruning order
    for (long q = 0; q < p; q++)
        for (long k = 0; k < N; k++) columns.data()[k * p + q] = task.output[q * N + task.order[k]];
    PrefixBlock block(p, N);
    float totals[PREFIX_ROWS];
    for (long start = 0; start < task.rows; start += PREFIX_ROWS) {
        const long rows = std::min(PREFIX_ROWS, task.rows - start);  // in lanes beyond them stays what was there before
        for (long i = 0; i < rows; i++)
            for (long k = 0; k < N; k++)
                block.hidden.data()[k * PREFIX_ROWS + i] = task.hidden[(start + i) * N + task.order[k]];
        block.logits.clear();
        for (long pruned = N; pruned >= 0; pruned--) {
            const bool empty = pruned == N;
            add_neuron(block, empty ? nullptr : block.hidden.data() + pruned * PREFIX_ROWS,
                       empty ? nullptr : columns.data() + pruned * p, p);
            if (task.loss == Loss::cross_entropy) sum_powers(block, p, totals);
            uint16_t* predictions = task.predictions + pruned * task.rows + start;
            float* losses = task.losses + pruned * task.rows + start;
            for (long i = 0; i < rows; i++) {
                const double own = block.logits.data()[task.labels[start + i] * PREFIX_ROWS + i];
                predictions[i] = uint16_t(block.place[i]);
                losses[i] = float(task.loss == Loss::mse
                                      ? (double(block.squares[i]) - 2 * own + 1) / double(p)  // Σ(f − e_y)² / p
                                      : std::log(double(totals[i])) + double(block.highest[i]) - own);
            }
        }
    }
}
