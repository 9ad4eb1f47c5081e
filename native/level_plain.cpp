// The kernel for any CPU: four floats at a time, which is SSE2 on x86-64 and NEON on ARM. It is what vectors.hpp chooses
// by itself.
#include "peak.hpp"
#include "prefixes.hpp"
#include "trainers.hpp"

namespace grokscope {

double fma_peak_plain(double seconds) { return plain::fma_peak(seconds); }
void evaluate_prefixes_plain(const PrefixTask& task) { plain::evaluate_prefixes(task); }

std::unique_ptr<Trainer> make_trainer_plain(const Config& config, const Examples& training) {
    return plain::make_trainer(config, training);
}

}  // namespace grokscope
