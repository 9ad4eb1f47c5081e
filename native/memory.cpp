// What the machine says about its memory.
#include "memory.hpp"

#include <cstdio>
#include <fstream>
#include <limits>
#include <new>
#include <string>

namespace grokscope {
namespace {

constexpr size_t ALWAYS_FITS = size_t(16) << 20;  // to look is not worth the time for less

class NotEnoughMemory : public std::bad_alloc {
public:
    explicit NotEnoughMemory(const std::string& message) : message_(message) {}
    const char* what() const noexcept override { return message_.c_str(); }

private:
    std::string message_;
};

std::string gigabytes(double bytes) {
    char text[32];
    std::snprintf(text, sizeof text, "%.3g GB", bytes / 1e9);
    return text;
}

// What is free or can be freed, and never less than that: infinitely much where the system does not say.
double free_bytes() {
    const double unknown = std::numeric_limits<double>::infinity();
    double free = 0, kilobytes = 0, limit = 0;
    bool known = false;
    std::ifstream machine("/proc/meminfo");  // lines such as "MemAvailable: 123 kB"
    for (std::string name, rest; machine >> name >> kilobytes && std::getline(machine, rest);)
        if (name == "MemAvailable:" || name == "SwapFree:") {
            free += 1024 * kilobytes;
            known |= name == "MemAvailable:";
        }
    if (!known) free = unknown;
    std::ifstream container("/sys/fs/cgroup/memory.max");  // a number, or "max"
    return container >> limit && limit < free ? limit : free;
}

}  // namespace

size_t bytes_for(std::initializer_list<long> counts, size_t value_size) {
    double wanted = double(value_size);
    size_t bytes = value_size;
    bool counted = true;
    for (const long count : counts) {
        wanted *= double(count);
        counted = counted && count >= 0 && !__builtin_mul_overflow(bytes, size_t(count), &bytes);
    }
    // Half of all numbers is left for what is rounded up and added.
    if (!counted || bytes > size_t(std::numeric_limits<long>::max()) / 2)
        throw NotEnoughMemory("this needs " + gigabytes(wanted) + " of memory, more than any machine has");
    if (bytes <= ALWAYS_FITS) return bytes;
    if (const double free = free_bytes(); wanted > free)
        throw NotEnoughMemory("this needs " + gigabytes(wanted) + " of memory, and " + gigabytes(free) + " are free");
    return bytes;
}

}  // namespace grokscope
