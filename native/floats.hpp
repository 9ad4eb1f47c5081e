// Floats as the kernel computes with them.
#pragma once

#include "vectors.hpp"

namespace grokscope::LEVEL {

// Weights of dying neurons shrink by a constant factor each step; as denormals they would make the CPU crawl.
class FlushDenormals {
public:
#if defined(__x86_64__) || defined(__i386__)
    FlushDenormals() : before_(__builtin_ia32_stmxcsr()) { __builtin_ia32_ldmxcsr(before_ | 0x8040); }
    ~FlushDenormals() { __builtin_ia32_ldmxcsr(before_); }

private:
    unsigned before_;
#elif defined(__aarch64__)
    FlushDenormals() : before_(__builtin_aarch64_get_fpcr()) { __builtin_aarch64_set_fpcr(before_ | (1u << 24)); }
    ~FlushDenormals() { __builtin_aarch64_set_fpcr(before_); }

private:
    unsigned before_;
#endif
};

// exp(x) for x ≤ 0, to about two units in the last place: 2ⁿ · polynomial(rest), as every libm does it, but in a form
// that compilers turn into vector instructions.
static inline float exp_negative(float x) {
    x = std::max(x, -87.0f);
    const float n = std::floor(x * 1.44269504f + 0.5f);
    const float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
    float series = 1.9875691500e-4f;
    series = series * r + 1.3981999507e-3f;
    series = series * r + 8.3334519073e-3f;
    series = series * r + 4.1665795894e-2f;
    series = series * r + 1.6666665459e-1f;
    series = series * r + 5.0000001201e-1f;
    series = series * r * r + r + 1.0f;
    // 2ⁿ, from the whole number in the low bits of n + 1.5·2²³: a conversion would not be defined for NaN.
    const float shifted = n + 12582912.0f;
    uint32_t bits;
    std::memcpy(&bits, &shifted, sizeof bits);
    bits = (bits - (0x4B400000u - 127u)) << 23;
    float power;
    std::memcpy(&power, &bits, sizeof power);
    return series * power;
}

// x·Φ(x) and its slope Φ(x) + x·Φ'(x), where Φ is the normal distribution: 1 − Φ(|x|) from formula 7.1.26 of Abramowitz and
// Stegun, to 1e-7.
struct ValueAndSlope {
    float value, slope;
};
static inline ValueAndSlope gelu(float x) {
    const float power = exp_negative(-0.5f * x * x);
    const float t = 1.0f / (1.0f + 0.23164189f * std::abs(x));
    float series = 0.5307027145f;
    series = series * t - 0.7265760135f;
    series = series * t + 0.7107068705f;
    series = series * t - 0.142248368f;
    series = series * t + 0.127414796f;
    const float tail = series * t * power;
    const float below = x <= 0 ? tail : 1.0f - tail;
    return {x * below, below + 0.39894228f * x * power};
}

}  // namespace grokscope::LEVEL
