// SPDX-License-Identifier: Apache-2.0
// train_text's baseline: distributions that sum to one, values worked by hand, and longer contexts that pay.
#include "../../../examples/train_text/ngram.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "../../../examples/train_text/corpus.hpp"

namespace {

using bytes = std::vector<std::uint8_t>;
using train_text::ngram;

bytes of(std::string_view text) { return {text.begin(), text.end()}; }

double sum(const ngram& model, const bytes& context) {
  double total = 0;
  for (int next = 0; next < 256; ++next) {
    const double p = model.probability(context, static_cast<std::uint8_t>(next));
    if (!(p > 0)) return -1;  // every byte must stay possible
    total += p;
  }
  return total;
}

TEST_CASE("train_text n-grams: probabilities are positive and sum to one over the 256 bytes") {
  std::mt19937 random(1);
  bytes skewed(5000);  // rare and frequent bytes, so that all discounts are in use
  for (auto& b : skewed) b = static_cast<std::uint8_t>(random() % 16 * (random() % 16));
  for (const bytes& train : {bytes{}, of("a"), of("ab"), of("aaaaaaaaaaaaaaa"), of("abracadabra abracadabra"), skewed})
    for (int order = 1; order <= 3; ++order) {
      const ngram model(train, order);
      CAPTURE(order);
      CAPTURE(train.size());
      for (std::size_t length = 0; length <= 4; ++length)
        for (int i = 0; i < 40; ++i) {
          bytes context(length);
          for (auto& b : context)
            b = static_cast<std::uint8_t>(i % 2 ? random() : train.empty() ? 0 : train[random() % train.size()]);
          CHECK(sum(model, context) == doctest::Approx(1).epsilon(1e-9));
        }
    }
}

TEST_CASE("train_text n-grams: values worked by hand") {
  CHECK(ngram({}, 3).probability({}, 7) == doctest::Approx(1.0 / 256));

  // "aab": one byte once, one twice, so Y = 1 / (1 + 2), the first discount is 1 - 2Y = 1/3 and the others a half.
  const double freed = (1.0 / 3 + 0.5) / 256;
  CHECK(ngram(of("aab"), 1).probability({}, 'a') == doctest::Approx((1.5 + freed) / 3));
  CHECK(ngram(of("aab"), 1).probability({}, 'b') == doctest::Approx((2.0 / 3 + freed) / 3));
  CHECK(ngram(of("aab"), 1).probability({}, 'c') == doctest::Approx(freed / 3));

  // "ababcb": the pairs end in b after a and c, in a after b and in c after b, so by distinct predecessors Y = 1/2 and
  // the first discount is 1/2. Of the pairs themselves three occur once and one twice: only ab's half is needed here.
  const double b_by_predecessors = (1.5 + 1.5 / 256) / 4;
  CHECK(ngram(of("ababcb"), 2).probability(of("x"), 'b') == doctest::Approx(b_by_predecessors));
  CHECK(ngram(of("ababcb"), 2).probability(of("a"), 'b') == doctest::Approx((1.5 + 0.5 * b_by_predecessors) / 2));
}

TEST_CASE("train_text n-grams: a context is its last bytes, and a short one is answered by the shorter model") {
  const bytes train = of("the cat sat on the mat, the rat sat on the cat");
  const ngram one(train, 1), two(train, 2), three(train, 3);
  for (const char next : std::string_view("abcst ,xz")) {
    const auto n = static_cast<std::uint8_t>(next);
    CHECK(three.probability(of("xxxat"), n) == three.probability(of("at"), n));
    CHECK(three.probability(of("t"), n) == two.probability(of("t"), n));
    CHECK(three.probability({}, n) == one.probability({}, n));
    CHECK(one.probability(of("at"), n) == one.probability({}, n));
  }
}

TEST_CASE("train_text n-grams: exactly the targets of the spans are scored, from inside each span") {
  const bytes text = of("zabcdefz");
  const ngram model(of("abcdefabcdefabdcef"), 3);
  const auto bits = [&](std::string_view context, char next) {
    return -std::log2(model.probability(of(context), static_cast<std::uint8_t>(next)));
  };
  const std::vector<std::size_t> one{1}, two{1, 4};
  CHECK(bits_per_byte(model, text, one, 3) == doctest::Approx((bits("a", 'b') + bits("ab", 'c') + bits("bc", 'd')) / 3));
  CHECK(bits_per_byte(model, text, two, 2) ==
        doctest::Approx((bits("a", 'b') + bits("ab", 'c') + bits("d", 'e') + bits("de", 'f')) / 4));
  bytes other = text;
  other[0] = other[7] = 'q';
  CHECK(bits_per_byte(model, other, one, 5) == bits_per_byte(model, text, one, 5));
  CHECK_NOTHROW(bits_per_byte(model, text, one, 6));
  CHECK_THROWS_AS(bits_per_byte(model, text, one, 7), std::out_of_range);
  CHECK_THROWS_AS(bits_per_byte(model, text, std::vector<std::size_t>{9}, 1), std::out_of_range);
  CHECK_THROWS_AS(bits_per_byte(model, text, {}, 3), std::invalid_argument);
  CHECK_THROWS_AS(bits_per_byte(model, text, one, 0), std::invalid_argument);
}

TEST_CASE("train_text n-grams: only orders one to three") {
  CHECK_THROWS_AS(ngram({}, 0), std::invalid_argument);
  CHECK_THROWS_AS(ngram({}, 4), std::invalid_argument);
}

TEST_CASE("train_text n-grams: independent bytes cost what they hold, a cycle next to nothing") {
  std::mt19937 random(3);
  bytes noise(300000), cycle;
  for (auto& b : noise) b = static_cast<std::uint8_t>(random() % 16);
  for (std::size_t i = 0; i < 2000; ++i) cycle.push_back(of("abac")[i % 4]);
  const std::vector<std::size_t> start{200000};
  const std::span<const std::uint8_t> seen = std::span<const std::uint8_t>(noise).first(200000);
  for (int order = 1; order <= 3; ++order)
    CHECK(bits_per_byte(ngram(seen, order), noise, start, 90000) == doctest::Approx(4).epsilon(0.02));
  const std::vector<std::size_t> begin{0};
  CHECK(bits_per_byte(ngram(cycle, 3), cycle, begin, 1999) < 0.02);
  CHECK(bits_per_byte(ngram(cycle, 2), cycle, begin, 1999) == doctest::Approx(0.5).epsilon(0.02));
}

TEST_CASE("train_text n-grams: on real text, unseen, each longer context pays") {
  const auto c = train_text::load_corpus({}, 1);
  std::vector<std::size_t> starts;
  for (std::size_t s = 0; s + 128 < c.held_out.size(); s += 128) starts.push_back(s);
  const double one = bits_per_byte(ngram(c.train, 1), c.held_out, starts, 128);
  const double two = bits_per_byte(ngram(c.train, 2), c.held_out, starts, 128);
  const ngram trigram(c.train, 3);
  const double three = bits_per_byte(trigram, c.held_out, starts, 128);
  MESSAGE("bits per byte: unigram " << one << ", bigram " << two << ", trigram " << three);
  CHECK(one < 6);
  CHECK(two < one - 1);
  CHECK(three < two - 0.5);
  CHECK(three > 1);
  for (std::size_t i = 2; i < c.held_out.size(); i += 20011)
    CHECK(sum(trigram, {c.held_out[i - 2], c.held_out[i - 1]}) == doctest::Approx(1).epsilon(1e-9));
}

}  // namespace
