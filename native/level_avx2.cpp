// The kernel for CPUs with AVX2 and FMA.
#include "level_includes.hpp"

#if defined(__x86_64__)
// After the standard headers: their inline functions are shared by all levels and must run everywhere.
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC target("avx2,fma")
#endif
#define LEVEL avx2
#define VECTOR_FLOATS 8
#define TILE_ROWS 4
#define TILE_VECTORS 3

#include "peak.hpp"
#include "prefixes.hpp"
#include "trainers.hpp"

namespace grokscope {

double fma_peak_avx2(double seconds) { return avx2::fma_peak(seconds); }
void evaluate_prefixes_avx2(const PrefixTask& task) { avx2::evaluate_prefixes(task); }

std::unique_ptr<Trainer> make_trainer_avx2(const Config& config, const Examples& training) {
    return avx2::make_trainer(config, training);
}

}  // namespace grokscope
#if defined(__clang__)
#pragma clang attribute pop
#endif
#else
double grokscope::fma_peak_avx2(double) { return 0; }
void grokscope::evaluate_prefixes_avx2(const PrefixTask&) {}
std::unique_ptr<grokscope::Trainer> grokscope::make_trainer_avx2(const Config&, const Examples&) { return nullptr; }
#endif
