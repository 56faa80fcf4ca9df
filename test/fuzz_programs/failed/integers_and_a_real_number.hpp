// SPDX-License-Identifier: Apache-2.0
// Failed once: a comparison of integers with a real number rounded the number
// check: fuzz::check<integers_and_a_real_number, fuzz::world<2>, (fuzz::eager | fuzz::compiled), (fuzz::eager)>("integers_and_a_real_number");
// on 2
inline const double integers_and_a_real_number_data_0[] = {0.0, 1.0, 2.0, 3.0, 1.0, 2.0};
inline const fuzz::numbers integers_and_a_real_number_data[] = {{6, integers_and_a_real_number_data_0}};
inline const double integers_and_a_real_number_results_0[] = {1.0, 1.0, 0.0, 0.0, 1.0, 0.0};
inline const double integers_and_a_real_number_results_1[] = {0.0, 0.0, 0.0, 0.0, 0.0, 0.0};
inline const fuzz::numbers integers_and_a_real_number_results[] = {{6, integers_and_a_real_number_results_0}, {6, integers_and_a_real_number_results_1}};
inline const double integers_and_a_real_number_after_0[] = {0.0, 1.0, 2.0, 3.0, 1.0, 2.0};
inline const fuzz::numbers integers_and_a_real_number_after[] = {{6, integers_and_a_real_number_after_0}};
inline const fuzz::numbers integers_and_a_real_number_gradients[] = {{0, nullptr}};
struct integers_and_a_real_number {
  template <class W>
  struct f {
    using A0 = typename W::A0; using A1 = typename W::A1; using A2 = typename W::A2;
    constexpr auto operator()([[maybe_unused]] const auto& x0) const {
      const auto t1 = sw::lt(x0, 1.5);
      const auto t2 = sw::gt(x0, 3000000000.0);
      return std::tuple{t1, t2};
    }
  };
  template <class W>
  using inputs = fuzz::list<sw::dtensor_of<std::int32_t, sw::shape<6>, typename W::mesh, sw::shard<0>>>;
  using wrt = sw::wrt<>;
  using pipeline = sw::pipeline<>;
  static constexpr std::size_t results = 2, gradients = 0;
  static constexpr bool arrives = false;
  static constexpr bool writes_inputs = false;
  static constexpr const fuzz::numbers* data = integers_and_a_real_number_data;
  static fuzz::expectation expected() {
    return {integers_and_a_real_number_results, integers_and_a_real_number_after, integers_and_a_real_number_gradients, 2, 1, 0, 0.0, 0.0, 0.0, false, 0u};
  }
};

