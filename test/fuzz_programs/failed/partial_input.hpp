// SPDX-License-Identifier: Apache-2.0
// Failed once: set_input gave every rank the whole of a value that is to be summed
// check: fuzz::check<partial_input, fuzz::world<2>, (fuzz::eager | fuzz::compiled), (fuzz::compiled)>("partial_input");
// on 2
inline const double partial_input_data_0[] = {3.0, 4.0};
inline const fuzz::numbers partial_input_data[] = {{2, partial_input_data_0}};
inline const double partial_input_results_0[] = {3.0, 4.0};
inline const fuzz::numbers partial_input_results[] = {{2, partial_input_results_0}};
inline const double partial_input_after_0[] = {3.0, 4.0};
inline const fuzz::numbers partial_input_after[] = {{2, partial_input_after_0}};
inline const fuzz::numbers partial_input_gradients[] = {{0, nullptr}};
struct partial_input {
  template <class W>
  struct f {
    using A0 = typename W::A0; using A1 = typename W::A1; using A2 = typename W::A2;
    constexpr auto operator()([[maybe_unused]] const auto& x0) const {
      const auto t1 = sw::redistribute<A0, sw::replicate>(x0);
      return std::tuple{t1};
    }
  };
  template <class W>
  using inputs = fuzz::list<sw::dtensor_of<double, sw::shape<2>, typename W::mesh, sw::partial<>>>;
  using wrt = sw::wrt<>;
  using pipeline = sw::pipeline<>;
  static constexpr std::size_t results = 1, gradients = 0;
  static constexpr bool arrives = false;
  static constexpr bool writes_inputs = false;
  static constexpr const fuzz::numbers* data = partial_input_data;
  static fuzz::expectation expected() {
    return {partial_input_results, partial_input_after, partial_input_gradients, 1, 1, 0, 0.0, 0.0, 0.0, false, 0u};
  }
};

