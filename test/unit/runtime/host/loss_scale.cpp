// SPDX-License-Identifier: Apache-2.0
// The rule of a dynamic loss scale, number by number: torch.amp.GradScaler's, at the ends of what floats hold too.
#include <shardwise/operations/update/loss_scale.hpp>
#include <shardwise/runtime/host/math.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

namespace {

namespace sw = shardwise;

template <class T>
struct scaler {
  T factor[2] = {}, scale = 1, counts[2] = {};
  void step(const sw::adjust_scale_attributes& of, T squares, T max_norm = 1) {
    sw::operations::next_loss_scale<sw::host::math<T>, T>(of, max_norm, factor, &scale, counts, squares);
  }
};
constexpr double infinity = std::numeric_limits<double>::infinity();

TEST_CASE_TEMPLATE("loss scale: a factor that divides, and one that says that nothing is updated", T, float, double) {
  scaler<T> s;
  s.scale = 1024;
  const sw::adjust_scale_attributes of{.clips = 0, .growth = 2, .backoff = 2, .interval = 2};
  s.step(of, T(7));
  CHECK(s.factor[0] == T(1) / T(1024));
  CHECK(s.factor[1] == 0);
  for (const double none : {infinity, -infinity, std::numeric_limits<double>::quiet_NaN()}) {
    const T before = s.scale, skipped = s.counts[1];
    s.step(of, static_cast<T>(none));
    CHECK(s.factor[0] < 0);
    CHECK(s.factor[1] == skipped);
    CHECK(s.scale == before / 2);
    CHECK(s.counts[0] == 0);
    CHECK(s.counts[1] == skipped + 1);
  }
  s.step(of, T(0));  // no gradient at all is a good step
  CHECK(s.factor[0] == T(1) / s.scale);
  CHECK(s.factor[1] == 3);
  CHECK(s.counts[0] == 1);
  s.step(of, T(0));
  CHECK(s.scale == 256);
  CHECK(s.counts[0] == 0);
}

TEST_CASE_TEMPLATE("loss scale: clipping sees the norm of divided gradients", T, float, double) {
  const sw::adjust_scale_attributes of{.clips = 1, .growth = 2, .backoff = 2, .interval = 9};
  for (const double norm : {0.25, 1.0, 8.0}) {
    scaler<T> plain, scaled;
    plain.step(of, static_cast<T>(norm * norm), T(0.5));
    scaled.scale = 512;
    scaled.step(of, static_cast<T>(norm * norm * 512 * 512), T(0.5));
    const double want = norm > 0.5 ? 0.5 / (norm + 1e-6) : 1;
    CHECK(std::fabs(static_cast<double>(plain.factor[0]) - want) < 1e-6);
    CHECK(scaled.factor[0] * T(512) == plain.factor[0]);
  }
}

TEST_CASE_TEMPLATE("loss scale: it does not grow to infinity, and one without an inverse skips", T, float, double) {
  const sw::adjust_scale_attributes of{.clips = 0, .growth = 2, .backoff = 2, .interval = 1};
  scaler<T> s;
  s.scale = std::ldexp(T(1), std::numeric_limits<T>::max_exponent - 1);
  const T largest = s.scale;
  s.step(of, T(1));
  CHECK(s.scale == largest);
  CHECK(s.counts[0] == 0);
  s.scale = std::numeric_limits<T>::denorm_min();
  s.step(of, T(1));
  CHECK(s.factor[0] < 0);
  CHECK(s.counts[1] == 1);
}

}  // namespace
