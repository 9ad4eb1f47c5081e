// Everything from outside that the kernel uses; included before a level chooses its instructions. The kernel's headers
// include nothing else from outside: it would be compiled for that level, and might be the copy that all of them run.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "trainer.hpp"
#include "layout.hpp"
