// For tests: the vectors and tiles of AVX-512, which the compiler splits into instructions of AVX2. So everything that differs
// at that level but the instructions themselves is tested on CPUs that do not have them. It is slow.
#include "level_includes.hpp"

#if defined(__x86_64__)
// After the standard headers: their inline functions are shared by all levels and must run everywhere.
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC target("avx2,fma")
#endif
#define LEVEL split
#define VECTOR_FLOATS 16
#define TILE_ROWS 12
#define TILE_VECTORS 2

#include "peak.hpp"
#include "prefixes.hpp"
#include "trainers.hpp"

namespace grokscope {

double fma_peak_split(double seconds) { return split::fma_peak(seconds); }
void evaluate_prefixes_split(const PrefixTask& task) { split::evaluate_prefixes(task); }

std::unique_ptr<Trainer> make_trainer_split(const Config& config, const Examples& training) {
    return split::make_trainer(config, training);
}

}  // namespace grokscope
#if defined(__clang__)
#pragma clang attribute pop
#endif
#else
double grokscope::fma_peak_split(double) { return 0; }
void grokscope::evaluate_prefixes_split(const PrefixTask&) {}
std::unique_ptr<grokscope::Trainer> grokscope::make_trainer_split(const Config&, const Examples&) { return nullptr; }
#endif
