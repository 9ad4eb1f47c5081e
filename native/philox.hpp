// The random numbers of a run: the same Philox4x32-10, keyed the same way, as src/grokscope/randomness.py, where
// the meaning of the counters is written down. Compiled once per instruction level, so that its loops use the level's
// vectors.
#pragma once

#include "vectors.hpp"

namespace grokscope::LEVEL {

constexpr uint32_t STREAM_BATCHES = 3, STREAM_DROPOUT = 4;

// Many blocks side by side, in loops that the compiler turns into vector instructions: word j of block i is words[4·i + j].
constexpr int LANES = 64;
static void philox_lanes(const uint32_t (&first)[LANES], uint32_t second, uint32_t third, uint32_t fourth, uint64_t seed,
                         uint32_t (&words)[4 * LANES]) {
    uint32_t c0[LANES], c1[LANES], c2[LANES], c3[LANES];
    for (int i = 0; i < LANES; i++) c0[i] = first[i], c1[i] = second, c2[i] = third, c3[i] = fourth;
    uint32_t key0 = uint32_t(seed), key1 = uint32_t(seed >> 32);
    for (int round = 0; round < 10; round++) {
        for (int i = 0; i < LANES; i++) {
            const uint64_t product0 = uint64_t(c0[i]) * 0xD2511F53u, product1 = uint64_t(c2[i]) * 0xCD9E8D57u;
            c0[i] = uint32_t(product1 >> 32) ^ c1[i] ^ key0;
            c1[i] = uint32_t(product1);
            c2[i] = uint32_t(product0 >> 32) ^ c3[i] ^ key1;
            c3[i] = uint32_t(product0);
        }
        key0 += 0x9E3779B9u;
        key1 += 0xBB67AE85u;
    }
    for (int i = 0; i < LANES; i++)
        words[4 * i] = c0[i], words[4 * i + 1] = c1[i], words[4 * i + 2] = c2[i], words[4 * i + 3] = c3[i];
}

// The factor of each neuron's pre-activation: 0, or `kept`. A block of Philox serves eight neurons with 16 bits each. The
// first hidden layer is layer 0.
static void dropout_row(float* __restrict mask, long width, uint32_t example, uint32_t step, uint32_t layer,
                        uint64_t seed, uint32_t threshold, float kept) {
    for (long neuron = 0; neuron < width; neuron += 8 * LANES) {
        uint32_t blocks[LANES], words[4 * LANES];
        for (int i = 0; i < LANES; i++) blocks[i] = uint32_t(neuron / 8 + i);
        philox_lanes(blocks, example, step, STREAM_DROPOUT + 16 * layer, seed, words);
        float factors[8 * LANES];
        for (int i = 0; i < 4 * LANES; i++) {
            factors[2 * i] = (words[i] & 0xFFFF) >= threshold ? kept : 0.0f;
            factors[2 * i + 1] = words[i] >> 16 >= threshold ? kept : 0.0f;
        }
        std::copy_n(factors, std::min(long(8 * LANES), width - neuron), mask + neuron);
    }
}

// The order of an epoch: examples sorted by 64 random bits each.
static std::vector<int32_t> epoch_order(const std::vector<uint32_t>& examples, uint32_t epoch, uint64_t seed) {
    const long count = long(examples.size());
    std::vector<std::pair<uint64_t, int32_t>> keys(static_cast<size_t>(count));
    for (long start = 0; start < count; start += LANES) {
        uint32_t counters[LANES] = {}, words[4 * LANES];
        const long lanes = std::min(long(LANES), count - start);
        for (long i = 0; i < lanes; i++) counters[i] = examples[size_t(start + i)];
        philox_lanes(counters, 0, epoch, STREAM_BATCHES, seed, words);
        for (long i = 0; i < lanes; i++)
            keys[size_t(start + i)] = {uint64_t(words[4 * i]) << 32 | words[4 * i + 1], int32_t(start + i)};
    }
    std::sort(keys.begin(), keys.end());  // equal bits: the earlier example first, as a stable sort does
    std::vector<int32_t> order(keys.size());
    for (size_t i = 0; i < keys.size(); i++) order[i] = keys[i].second;
    return order;
}

}  // namespace grokscope::LEVEL
