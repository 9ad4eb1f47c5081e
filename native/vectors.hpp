// The vectors of an instruction level, through GCC's and Clang's vector types.
//
// What computes is compiled once per level: level_*.cpp chooses the instructions, defines the macros below and includes
// the headers, whose contents lie in a namespace of the level. Where nobody defines them they are those of the plain
// level, so a tool can read any header by itself, as C++17 and without further flags.
#pragma once

#include "level_includes.hpp"

#ifndef LEVEL
#define LEVEL plain
#define VECTOR_FLOATS 4  // floats in a register
#define TILE_ROWS 6      // registers of sums in a matrix product: rows …
#define TILE_VECTORS 2   // … and columns of them
#endif

namespace grokscope::LEVEL {

typedef float Vector __attribute__((vector_size(VECTOR_FLOATS * 4)));
typedef float LooseVector __attribute__((vector_size(VECTOR_FLOATS * 4), aligned(4), may_alias));

static inline Vector load(const float* pointer) { return *reinterpret_cast<const LooseVector*>(pointer); }
static inline void store(float* pointer, Vector value) { *reinterpret_cast<LooseVector*>(pointer) = value; }
static inline float sum(Vector value) {
    float total = 0;
    for (int i = 0; i < VECTOR_FLOATS; i++) total += value[i];
    return total;
}
static inline void add(float* target, Vector value) { store(target, load(target) + value); }

constexpr long LINE = 16;  // floats of a cache line
constexpr long PANEL = TILE_VECTORS * VECTOR_FLOATS;  // columns that a tile works on at once
constexpr long whole_panels(long columns) { return (columns + PANEL - 1) / PANEL * PANEL; }
// The distance of two plain rows of so many columns: whole panels, and an odd number of cache lines, so that a column of them
// does not fall into a few sets of the cache and evict itself.
constexpr long odd_lines(long columns) { return ((whole_panels(columns) + LINE - 1) / LINE | 1) * LINE; }

}  // namespace grokscope::LEVEL
