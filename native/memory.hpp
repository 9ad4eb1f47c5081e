// Memory that can be had, so that a network too large for the machine is refused instead of killed half-way.
#pragma once

#include <cstddef>
#include <initializer_list>

namespace grokscope {

// The bytes of so many values of a size. Raises what Python sees as MemoryError if they cannot be counted in a long, or
// if the machine does not have them: many systems promise more memory than there is, and kill whoever uses it.
size_t bytes_for(std::initializer_list<long> counts, size_t value_size);

}  // namespace grokscope
