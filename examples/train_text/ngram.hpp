// SPDX-License-Identifier: Apache-2.0
// The baseline a language model must beat: byte n-grams with interpolated, modified Kneser-Ney smoothing.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace train_text {

/// The probability of a byte given up to `order - 1` preceding ones. Chen and Goodman's modified Kneser-Ney: counts are
/// discounted by one of three amounts estimated from the counts of counts, and what that frees goes to the next shorter
/// context, whose counts are of distinct predecessors; the shortest falls back to 1/256. A context shorter than
/// `order - 1` is answered by the model of its own length, with plain counts. The trigram table takes 64 MiB.
class ngram {
 public:
  ngram(std::span<const std::uint8_t> train, int order) : order_(order) {
    if (order < 1 || order > static_cast<int>(most_order)) throw std::invalid_argument("an n-gram has order 1, 2 or 3");
    for (std::size_t k = 1; k <= static_cast<std::size_t>(order); ++k) {
      level& counted = plain_[k - 1];
      counted.count.assign(std::size_t{1} << (8 * k), 0);
      const std::size_t mask = counted.count.size() - 1;
      std::size_t gram = 0;
      for (std::size_t i = 0; i < train.size(); ++i) {
        gram = (gram << 8 | train[i]) & mask;
        if (i + 1 >= k) ++counted.count[gram];
      }
      if (k < 2) continue;
      level& shorter = distinct_[k - 2];
      shorter.count.assign(std::size_t{1} << (8 * (k - 1)), 0);
      for (std::size_t g = 0; g <= mask; ++g) shorter.count[g & (mask >> 8)] += counted.count[g] != 0;
    }
    for (level& l : plain_) l.close();
    for (level& l : distinct_) l.close();
  }

  int order() const { return order_; }

  /// `context` ends just before the byte; only its last `order - 1` bytes count.
  double probability(std::span<const std::uint8_t> context, std::uint8_t next) const {
    const std::size_t used = std::min(context.size(), static_cast<std::size_t>(order_ - 1));
    std::size_t gram = 0;
    for (const std::uint8_t byte : context.last(used)) gram = gram << 8 | byte;
    gram = gram << 8 | next;
    double p = 1.0 / 256;
    for (std::size_t k = 0; k < used; ++k) p = distinct_[k].mixed_with(p, gram);
    return plain_[used].mixed_with(p, gram);
  }

 private:
  static constexpr std::size_t most_order = 3;

  struct level {
    std::vector<std::uint32_t> count;  // by gram, the newest byte lowest
    std::vector<double> total, freed;  // by context
    std::array<double, 4> discount{};  // by count, 3 standing for 3 and more

    void close() {
      std::array<double, 5> of_count{};  // how many grams occur exactly that often
      for (const std::uint32_t c : count)
        if (c < of_count.size()) ++of_count[c];
      const double y = of_count[1] > 0 ? of_count[1] / (of_count[1] + 2 * of_count[2]) : 0.5;
      for (std::size_t c = 1; c < 4; ++c) {
        const auto many = static_cast<double>(c);
        // Too few grams to estimate from: half of one. Never zero, so that no byte is impossible.
        const double estimate =
            of_count[c] > 0 && of_count[c + 1] > 0 ? many - (many + 1) * y * of_count[c + 1] / of_count[c] : 0.5;
        discount[c] = std::clamp(estimate, 0.05, many);
      }
      total.assign(count.size() / 256, 0);
      freed.assign(count.size() / 256, 0);
      for (std::size_t g = 0; g < count.size(); ++g) {
        total[g >> 8] += count[g];
        freed[g >> 8] += discount[std::min(count[g], 3u)];
      }
    }

    double mixed_with(double shorter, std::size_t gram) const {
      gram %= count.size();
      const std::size_t context = gram >> 8;
      if (total[context] == 0) return shorter;
      const double kept = count[gram] - discount[std::min(count[gram], 3u)];
      return (kept + freed[context] * shorter) / total[context];
    }
  };

  int order_;
  std::array<level, most_order> plain_;         // [k]: counts of grams of k + 1 bytes
  std::array<level, most_order - 1> distinct_;  // [k]: the same grams by how many distinct bytes precede them
};

/// Cross-entropy over the targets of the spans that begin at `starts`: byte 0 of a span is input only, bytes 1 to
/// `length` are scored, and a context reaches back to the span's own first byte: the bytes a model of that length sees.
inline double bits_per_byte(const ngram& model, std::span<const std::uint8_t> text, std::span<const std::size_t> starts,
                            std::size_t length) {
  if (starts.empty() || length == 0) throw std::invalid_argument("no byte to score");
  double bits = 0;
  for (const std::size_t start : starts) {
    if (start > text.size() || text.size() - start <= length)
      throw std::out_of_range("the span at byte " + std::to_string(start) + " reaches beyond the text");
    const auto span = text.subspan(start, length + 1);
    for (std::size_t i = 1; i <= length; ++i) bits -= std::log2(model.probability(span.first(i), span[i]));
  }
  return bits / static_cast<double>(starts.size() * length);
}

}  // namespace train_text
