// The largest numbers that the kernel takes. It counts in long, and within these limits nothing that it counts overflows.
#pragma once

#include <cstdint>
#include <limits>

namespace grokscope {

constexpr long MAX_MODULUS = 65535;            // a place m·p + n in the grid has 32 bits, a predicted label 16
constexpr long MAX_WIDTH = (1L << 24) - 1;     // neurons of a layer
constexpr long MAX_DEPTH = 64;                 // layers of weights
constexpr long MAX_EMBED = 65535;              // dimensions of a Transformer
constexpr long MAX_MLP_WIDTH = 4 * MAX_EMBED;  // hidden neurons of its MLPs
constexpr long MAX_LAYERS = 64;                // of attention and an MLP
constexpr long MAX_EXAMPLES = (1L << 31) - 1;  // at once: their order is kept in 32 bits with a sign
constexpr long MAX_STEPS = (1L << 32) - 1;     // of a run: random streams count them, and epochs, with 32 bits
constexpr long MAX_DROPOUT_THRESHOLD = 65535;
constexpr long MAX_PEAK_SECONDS = 60;

static_assert(sizeof(long) >= 8, "the kernel counts in long");
// The trained arrays, and what BatchNorm keeps of all examples, with room for panels: none has more bytes than a long can
// count, nor comes close to it.
static_assert((3 * (MAX_MODULUS + 1) + 2 + (MAX_DEPTH - 2) * (MAX_WIDTH + 1)) * (MAX_WIDTH + 64) <
              std::numeric_limits<long>::max() / 64);
static_assert((2 * (MAX_MODULUS + 4) + MAX_LAYERS * (4 * (MAX_EMBED + 3) + 2 * (MAX_MLP_WIDTH + 64))) * (MAX_MLP_WIDTH + 64) <
              std::numeric_limits<long>::max() / 64);
static_assert((MAX_EXAMPLES + 1) * (MAX_WIDTH + 64) < std::numeric_limits<long>::max() / 64);

}  // namespace grokscope
