// The trainer of a run: which of the three steps there are for it.
#pragma once

#include "kernel.hpp"
#include "layered.hpp"
#include "transformer.hpp"

namespace grokscope::LEVEL {

static std::unique_ptr<Trainer> make_trainer(const Config& config, const Examples& training) {
    if (config.layers > 0) return std::make_unique<TransformerTrainer>(config, training);
    if (config.activation == Activation::gelu || (config.depth > 2 && config.norm != Norm::none))
        return std::make_unique<LayeredTrainer>(config, training);
    return std::make_unique<LevelTrainer>(config, training);
}

}  // namespace grokscope::LEVEL
