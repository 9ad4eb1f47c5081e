// The kernel for CPUs with AVX-512.
#include "level_includes.hpp"

#if defined(__x86_64__)
// After the standard headers: their inline functions are shared by all levels and must run everywhere.
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx512dq,avx512vl,avx512bw,fma"))), apply_to = function)
#else
#pragma GCC target("avx512f,avx512dq,avx512vl,avx512bw,fma")
#endif
#define LEVEL avx512
#define VECTOR_FLOATS 16
#define TILE_ROWS 12
#define TILE_VECTORS 2

#include "peak.hpp"
#include "prefixes.hpp"
#include "trainers.hpp"

namespace grokscope {

double fma_peak_avx512(double seconds) { return avx512::fma_peak(seconds); }
void evaluate_prefixes_avx512(const PrefixTask& task) { avx512::evaluate_prefixes(task); }

std::unique_ptr<Trainer> make_trainer_avx512(const Config& config, const Examples& training) {
    return avx512::make_trainer(config, training);
}

}  // namespace grokscope
#if defined(__clang__)
#pragma clang attribute pop
#endif
#else
double grokscope::fma_peak_avx512(double) { return 0; }
void grokscope::evaluate_prefixes_avx512(const PrefixTask&) {}
std::unique_ptr<grokscope::Trainer> grokscope::make_trainer_avx512(const Config&, const Examples&) { return nullptr; }
#endif
