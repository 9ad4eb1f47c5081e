// Part of the training step (kernel.hpp): the rows that it goes through.
#pragma once

#include "philox.hpp"

namespace grokscope::LEVEL {

struct Batch {
    Examples pairs;
    std::vector<uint32_t> places;  // m·p + n, a row's place in the grid: its name in random streams

    // Keeps the memory, for the next step needs as much.
    void clear() { pairs.m.clear(), pairs.n.clear(), pairs.label.clear(), places.clear(); }
    void add(const Examples& from, size_t row, long modulus) {
        pairs.m.push_back(from.m[row]);
        pairs.n.push_back(from.n[row]);
        pairs.label.push_back(from.label[row]);
        places.push_back(uint32_t(from.m[row] * modulus + from.n[row]));
    }
};

class Batches {
public:
    // A full batch goes from n to n within strips of so many neighbouring m. Strips of one are sorted by m.
    Batches(const Config& config, const Examples& training, int32_t strip = 1) : config_(config) {
        std::vector<size_t> order(size_t(training.count()));
        std::iota(order.begin(), order.end(), 0);
        // In a full batch, rows with the same m lie side by side: they share a row of U and of its gradient.
        if (config.batch_size == 0)
            std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
                const auto place = [&](size_t row) {
                    return std::tuple(training.m[row] / strip, training.n[row], training.m[row]);
                };
                return place(a) < place(b);
            });
        for (size_t row : order) all_.add(training, row, config.modulus);
    }

    const Examples& training() const { return all_.pairs; }
    long size() const { return config_.batch_size ? config_.batch_size : training().count(); }

    // The rows of a step; the first is step 0.
    const Batch& at(long step) {
        if (config_.batch_size == 0) return all_;
        const long batches = training().count() / size(), epoch = step / batches, place = step % batches;
        if (epoch != epoch_) order_ = epoch_order(all_.places, uint32_t(epoch), config_.seed), epoch_ = epoch;
        batch_.clear();
        for (long i = place * size(); i < (place + 1) * size(); i++)
            batch_.add(all_.pairs, size_t(order_[size_t(i)]), config_.modulus);
        return batch_;
    }

private:
    const Config& config_;
    Batch all_, batch_;
    long epoch_ = -1;
    std::vector<int32_t> order_;  // of the epoch
};

}  // namespace grokscope::LEVEL
