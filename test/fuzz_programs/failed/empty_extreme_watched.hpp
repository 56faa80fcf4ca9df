// SPDX-License-Identifier: Apache-2.0
// Failed once: on the mesh: shardwise: the result of amax holds 3 infinities among the 3 elements of this rank's block, the first at (0, 0) of (3, 1); what it reads holds none (in amax, module <task>, rank 2)
// check: fuzz::check<empty_extreme_watched, fuzz::world<3>, (fuzz::compiled_gradients), (0)>("empty_extreme_watched");
// empty_extreme_watched: seed 80054, 3
inline const double empty_extreme_watched_data_0[] = {2.375, 0.375, -1.0, -1.875, -0.75, 1.375, -0.625, 1.25, -1.125, 2.125, -1.0, -0.375};
inline const double empty_extreme_watched_data_1[] = {-0.125, 2.375, -0.25, -2.0, 2.5, -0.25, 2.25, -0.625, -1.625, 1.75, 0.25, 0.75};
inline const double empty_extreme_watched_data_2[] = {2.0, 0.0, 2.0};
inline const fuzz::numbers empty_extreme_watched_data[] = {{12, empty_extreme_watched_data_0}, {12, empty_extreme_watched_data_1}, {3, empty_extreme_watched_data_2}};
inline const double empty_extreme_watched_results_0[] = {-1.0, -2.0, -0.625, -0.625, -1.0, -0.375};
inline const double empty_extreme_watched_results_1[] = {2.1944038137595783};
inline const fuzz::numbers empty_extreme_watched_results[] = {{6, empty_extreme_watched_results_0}, {1, empty_extreme_watched_results_1}};
inline const double empty_extreme_watched_after_0[] = {2.375, 0.375, -1.0, -1.875, -0.75, 1.375, -0.625, 1.25, -1.125, 2.125, -1.0, -0.375};
inline const double empty_extreme_watched_after_1[] = {-0.125, 2.375, -0.25, -2.0, 2.5, -0.25, 2.25, -0.625, -1.625, 1.75, 0.25, 0.75};
inline const double empty_extreme_watched_after_2[] = {2.0, 0.0, 2.0};
inline const fuzz::numbers empty_extreme_watched_after[] = {{12, empty_extreme_watched_after_0}, {12, empty_extreme_watched_after_1}, {3, empty_extreme_watched_after_2}};
inline const double empty_extreme_watched_gradients_0[] = {0.0, 0.0, 0.0, 0.9999999999621422, 0.0, 0.0, 0.0, 0.9999999999621422, 0.0, 0.0, 0.0, 0.0};
inline const fuzz::numbers empty_extreme_watched_gradients[] = {{12, empty_extreme_watched_gradients_0}};
struct empty_extreme_watched {
  template <class W>
  struct f {
    using A0 = typename W::A0; using A1 = typename W::A1; using A2 = typename W::A2;
    constexpr auto operator()([[maybe_unused]] const auto& x0, [[maybe_unused]] const auto& x2, [[maybe_unused]] const auto& x3) const {
      const auto t1 = sw::full_tensor(x2);
      const auto t2 = sw::minimum(t1, x0);
      const auto t3 = sw::redistribute<sw::on<A0, sw::shard<1>>>(t2);
      const auto t4 = sw::loss_parallel_cross_entropy<A0>(t3, x3);
      const auto t9 = sw::redistribute<A0, sw::replicate>(t3);
      const auto t10 = sw::narrow<-1, -2, 2>(t9);
      const auto t11 = sw::reduce_gradient<A0>(t4);
      auto p13 = sw::redistribute_async<A0, sw::replicate>(t10);
      const auto t14 = std::move(p13).wait();
      return std::tuple{t14, t11};
    }
  };
  template <class W>
  using inputs = fuzz::list<sw::dtensor_of<double, sw::shape<3, 4>, typename W::mesh, sw::replicate>,
                             sw::dtensor_of<double, sw::shape<3, 4>, typename W::mesh, sw::partial<>>,
                             sw::dtensor_of<std::int32_t, sw::shape<3>, typename W::mesh, sw::replicate>>;
  using wrt = sw::wrt<1>;
  using pipeline = sw::pipeline<>;
  static constexpr std::size_t results = 2, gradients = 1;
  static constexpr auto checks = sw::executor_checks::poison | sw::executor_checks::finite;
  static constexpr bool named = false;
  static constexpr int run_times = 0, run_time[] = {0};
  static constexpr bool writes_inputs = false;
  static constexpr const fuzz::numbers* data = empty_extreme_watched_data;
  static constexpr bool arrives = false;
  template <class F, class Inputs>
  static auto differentiate(const auto& x) {
    return Inputs::template differentiate<F, 1>(x);
  }
  static fuzz::expectation expected() {
    return {empty_extreme_watched_results, empty_extreme_watched_after, empty_extreme_watched_gradients, 2, 3, 1, 1e-09, 2e-06, 1e-09, false, 0u};
  }
};

