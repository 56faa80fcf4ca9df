// SPDX-License-Identifier: Apache-2.0
// Failed once: a write to a redistribution to equal placements was seen in its operand
// check: fuzz::check<equal_placements, fuzz::world<2>, (fuzz::eager | fuzz::compiled | fuzz::traced), (fuzz::eager)>("equal_placements");
// on 2
inline const double equal_placements_data_0[] = {1.0, 2.0, 3.0, 4.0};
inline const fuzz::numbers equal_placements_data[] = {{4, equal_placements_data_0}};
inline const double equal_placements_results_0[] = {11.0, 12.0, 13.0, 14.0};
inline const double equal_placements_results_1[] = {1.0, 2.0, 3.0, 4.0};
inline const fuzz::numbers equal_placements_results[] = {{4, equal_placements_results_0}, {4, equal_placements_results_1}};
inline const double equal_placements_after_0[] = {1.0, 2.0, 3.0, 4.0};
inline const fuzz::numbers equal_placements_after[] = {{4, equal_placements_after_0}};
inline const fuzz::numbers equal_placements_gradients[] = {{0, nullptr}};
struct equal_placements {
  template <class W>
  struct f {
    using A0 = typename W::A0; using A1 = typename W::A1; using A2 = typename W::A2;
    constexpr auto operator()([[maybe_unused]] const auto& x0) const {
      const auto t1 = sw::redistribute<A0, sw::replicate>(x0);
      sw::add_(t1, 10.0);
      const auto t2 = x0 * 1.0;
      return std::tuple{t1, t2};
    }
  };
  template <class W>
  using inputs = fuzz::list<sw::dtensor_of<double, sw::shape<4>, typename W::mesh, sw::replicate>>;
  using wrt = sw::wrt<>;
  using pipeline = sw::pipeline<>;
  static constexpr std::size_t results = 2, gradients = 0;
  static constexpr bool arrives = false;
  static constexpr bool writes_inputs = false;
  static constexpr const fuzz::numbers* data = equal_placements_data;
  static fuzz::expectation expected() {
    return {equal_placements_results, equal_placements_after, equal_placements_gradients, 2, 1, 0, 0.0, 0.0, 0.0, false, 0u};
  }
};

