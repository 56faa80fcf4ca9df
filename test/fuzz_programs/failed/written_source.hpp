// SPDX-License-Identifier: Apache-2.0
// Failed once: a write to the source of a pending tensor was seen in it
// check: fuzz::check<written_source, fuzz::world<2>, (fuzz::eager | fuzz::compiled), (fuzz::eager | fuzz::compiled)>("written_source");
// on 2
inline const double written_source_data_0[] = {1.0, 2.0, 3.0, 4.0};
inline const fuzz::numbers written_source_data[] = {{4, written_source_data_0}};
inline const double written_source_results_0[] = {1.0, 2.0, 3.0, 4.0};
inline const fuzz::numbers written_source_results[] = {{4, written_source_results_0}};
inline const double written_source_after_0[] = {101.0, 102.0, 103.0, 104.0};
inline const fuzz::numbers written_source_after[] = {{4, written_source_after_0}};
inline const fuzz::numbers written_source_gradients[] = {{0, nullptr}};
struct written_source {
  template <class W>
  struct f {
    using A0 = typename W::A0; using A1 = typename W::A1; using A2 = typename W::A2;
    constexpr auto operator()([[maybe_unused]] const auto& x0) const {
      auto p1 = sw::redistribute_async<A0, sw::replicate>(x0);
      sw::add_(x0, 100.0);
      const auto t2 = std::move(p1).wait();
      return std::tuple{t2};
    }
  };
  template <class W>
  using inputs = fuzz::list<sw::dtensor_of<double, sw::shape<4>, typename W::mesh, sw::shard<0>>>;
  using wrt = sw::wrt<>;
  using pipeline = sw::pipeline<>;
  static constexpr std::size_t results = 1, gradients = 0;
  static constexpr bool arrives = false;
  static constexpr bool writes_inputs = true;
  static constexpr const fuzz::numbers* data = written_source_data;
  static fuzz::expectation expected() {
    return {written_source_results, written_source_after, written_source_gradients, 1, 1, 0, 0.0, 0.0, 0.0, false, 1u};
  }
};

