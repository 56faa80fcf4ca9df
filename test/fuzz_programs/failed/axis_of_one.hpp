// SPDX-License-Identifier: Apache-2.0
// Failed once: a redistribution over an axis of one rank aliased its operand
// check: fuzz::check<axis_of_one, fuzz::world<2, 1>, (fuzz::eager | fuzz::compiled), (fuzz::eager | fuzz::compiled)>("axis_of_one");
// on 2 x 1
inline const double axis_of_one_data_0[] = {1.0, 2.0, 3.0, 4.0};
inline const fuzz::numbers axis_of_one_data[] = {{4, axis_of_one_data_0}};
inline const double axis_of_one_results_0[] = {1.0, 2.0, 3.0, 4.0};
inline const double axis_of_one_results_1[] = {7.0, 9.0, 11.0, 13.0};
inline const fuzz::numbers axis_of_one_results[] = {{4, axis_of_one_results_0}, {4, axis_of_one_results_1}};
inline const double axis_of_one_after_0[] = {6.0, 7.0, 8.0, 9.0};
inline const fuzz::numbers axis_of_one_after[] = {{4, axis_of_one_after_0}};
inline const fuzz::numbers axis_of_one_gradients[] = {{0, nullptr}};
struct axis_of_one {
  template <class W>
  struct f {
    using A0 = typename W::A0; using A1 = typename W::A1; using A2 = typename W::A2;
    constexpr auto operator()([[maybe_unused]] const auto& x0) const {
      const auto t1 = sw::redistribute<A1, sw::shard<0>>(x0);
      sw::relu_(t1);
      sw::add_(x0, 5.0);
      const auto t2 = sw::add(sw::redistribute<A1, sw::replicate>(t1), x0);
      return std::tuple{t1, t2};
    }
  };
  template <class W>
  using inputs = fuzz::list<sw::dtensor_of<double, sw::shape<4>, typename W::mesh, sw::shard<0>, sw::replicate>>;
  using wrt = sw::wrt<>;
  using pipeline = sw::pipeline<>;
  static constexpr std::size_t results = 2, gradients = 0;
  static constexpr bool arrives = false;
  static constexpr bool writes_inputs = true;
  static constexpr const fuzz::numbers* data = axis_of_one_data;
  static fuzz::expectation expected() {
    return {axis_of_one_results, axis_of_one_after, axis_of_one_gradients, 2, 1, 0, 0.0, 0.0, 0.0, false, 1u};
  }
};

