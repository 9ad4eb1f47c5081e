// The kernel for any CPU: four floats at a time, which is SSE2 on x86-64 and NEON on ARM.
#include "level_includes.hpp"

#define VECTOR_FLOATS 4
#define TILE_ROWS 6
#define TILE_VECTORS 2

namespace grokscope {
namespace plain {
#include "kernel.hpp"
#include "peak.hpp"
#include "prefixes.hpp"
}

double fma_peak_plain(double seconds) { return plain::fma_peak(seconds); }
void evaluate_prefixes_plain(const PrefixTask& task) { plain::evaluate_prefixes(task); }

std::unique_ptr<Trainer> make_trainer_plain(const Config& config, const Examples& training) {
    return std::make_unique<plain::LevelTrainer>(config, training);
}
}  // namespace grokscope
