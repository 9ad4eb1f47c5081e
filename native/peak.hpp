// The limit that the kernel is measured against: multiply-adds that touch no memory.
#pragma once

#include "vectors.hpp"

namespace grokscope::LEVEL {

static double fma_peak(double seconds) {
    constexpr int CHAINS = 12;  // more than a core has in flight, few enough for 16 registers
    constexpr long REPEATS = 100000;
    Vector sums[CHAINS];
    // From 1 on a chain would stay at 1, and the compiler would see it and leave the chain out.
    for (int i = 0; i < CHAINS; i++) sums[i] = Vector{} + float(2 + i);
    const Vector factor = Vector{} + 0.999f, term = Vector{} + 0.001f;
    const auto start = std::chrono::steady_clock::now();
    double operations = 0, elapsed = 0;
    while (elapsed < seconds) {
        for (long k = 0; k < REPEATS; k++) {
#pragma GCC unroll 12
            for (int i = 0; i < CHAINS; i++) sums[i] = sums[i] * factor + term;
        }
        operations += double(REPEATS) * CHAINS * VECTOR_FLOATS * 2;
        elapsed = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    }
    Vector total{};
    for (int i = 0; i < CHAINS; i++) total += sums[i];
    volatile float keep = sum(total);  // or the compiler sees that nobody needs the result
    (void)keep;
    return operations / elapsed / 1e9;
}

}  // namespace grokscope::LEVEL
