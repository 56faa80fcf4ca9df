// SPDX-License-Identifier: Apache-2.0
// Failed once: norm over a dim of run-time size, whose statistics had that size too, so that every row wrote the same ones
// check: fuzz::check<norm_over_run_time_dim, fuzz::world<2, 2, 1>, (fuzz::compiled), (fuzz::compiled)>("norm_over_run_time_dim");
// norm_over_run_time_dim: seed 5315, 2 x 2 x 1
inline const double norm_over_run_time_dim_data_0[] = {1.625, -2.0, -0.875, 0.5, 0.625, 1.5, -1.125, 2.125, 0.875, 0.875, -1.375, -1.0, -1.0, -0.25, 1.75, -0.125, -0.375, -2.375, -1.125, -0.625, -2.0, -1.875, 0.125, -0.25, -1.75, 2.0, -0.125, 1.875};
inline const double norm_over_run_time_dim_data_1[] = {1.125, -1.0, -2.125, -0.5, -1.875, 0.875, -0.125};
inline const double norm_over_run_time_dim_data_2[] = {1.625, -2.0, -0.875, 0.5, 2.125, 0.875, 0.875, -1.375, 1.75, -0.125, -0.375, -2.375, -1.875, 0.125, -0.25, -1.75};
inline const double norm_over_run_time_dim_data_3[] = {1.125, -1.0, -2.125, -0.5};
inline const double norm_over_run_time_dim_data_4[] = {1.625, 2.125, 1.75, -1.875};
inline const double norm_over_run_time_dim_data_5[] = {1.125};
inline const double norm_over_run_time_dim_data_6[] = {1.625, -2.0, -0.875, 2.125, 0.875, 0.875, 1.75, -0.125, -0.375, -1.875, 0.125, -0.25};
inline const double norm_over_run_time_dim_data_7[] = {1.125, -1.0, -2.125};
inline const fuzz::numbers norm_over_run_time_dim_data[] = {{28, norm_over_run_time_dim_data_0}, {7, norm_over_run_time_dim_data_1}, {16, norm_over_run_time_dim_data_2}, {4, norm_over_run_time_dim_data_3}, {4, norm_over_run_time_dim_data_4}, {1, norm_over_run_time_dim_data_5}, {12, norm_over_run_time_dim_data_6}, {3, norm_over_run_time_dim_data_7}};
inline const double norm_over_run_time_dim_results_0[] = {1.625, -2.0, -0.875, 0.5, 0.625, 1.5, -1.125, 2.125, 0.875, 0.875, -1.375, -1.0, -1.0, -0.25, 1.75, -0.125, -0.375, -2.375, -1.125, -0.625, -2.0, -1.875, 0.125, -0.25, -1.75, 2.0, -0.125, 1.875};
inline const double norm_over_run_time_dim_results_1[] = {2.761860779909864, 1.9779729514865014, 2.055216062628531, 1.9066822113587478, 2.292231008815076, 1.5825953641354087, 1.430290996323586};
inline const double norm_over_run_time_dim_results_2[] = {1.625, -2.0, -0.875, 0.5, 0.625, 1.5, -1.125, 2.125, 0.875, 0.875, -1.375, -1.0, -1.0, -0.25, 1.75, -0.125, -0.375, -2.375, -1.125, -0.625, -2.0, -1.875, 0.125, -0.25, -1.75, 2.0, -0.125, 1.875};
inline const double norm_over_run_time_dim_results_3[] = {1.625, -2.0, -0.875, 0.5, 2.125, 0.875, 0.875, -1.375, 1.75, -0.125, -0.375, -2.375, -1.875, 0.125, -0.25, -1.75};
inline const double norm_over_run_time_dim_results_4[] = {2.589908661948095, 1.913538914399815, 2.0041626307730027, 1.8954077860476657};
inline const double norm_over_run_time_dim_results_5[] = {1.625, -2.0, -0.875, 0.5, 2.125, 0.875, 0.875, -1.375, 1.75, -0.125, -0.375, -2.375, -1.875, 0.125, -0.25, -1.75};
inline const double norm_over_run_time_dim_results_6[] = {1.625, 2.125, 1.75, -1.875};
inline const double norm_over_run_time_dim_results_7[] = {2.2626495733638814};
inline const double norm_over_run_time_dim_results_8[] = {1.625, 2.125, 1.75, -1.875};
inline const double norm_over_run_time_dim_results_9[] = {1.625, -2.0, -0.875, 2.125, 0.875, 0.875, 1.75, -0.125, -0.375, -1.875, 0.125, -0.25};
inline const double norm_over_run_time_dim_results_10[] = {2.750192035839604, 1.8134262504751595, 2.003692222125294};
inline const double norm_over_run_time_dim_results_11[] = {1.625, -2.0, -0.875, 2.125, 0.875, 0.875, 1.75, -0.125, -0.375, -1.875, 0.125, -0.25};
inline const fuzz::numbers norm_over_run_time_dim_results[] = {{28, norm_over_run_time_dim_results_0}, {7, norm_over_run_time_dim_results_1}, {28, norm_over_run_time_dim_results_2}, {16, norm_over_run_time_dim_results_3}, {4, norm_over_run_time_dim_results_4}, {16, norm_over_run_time_dim_results_5}, {4, norm_over_run_time_dim_results_6}, {1, norm_over_run_time_dim_results_7}, {4, norm_over_run_time_dim_results_8}, {12, norm_over_run_time_dim_results_9}, {3, norm_over_run_time_dim_results_10}, {12, norm_over_run_time_dim_results_11}};
inline const fuzz::numbers norm_over_run_time_dim_after[] = {{0, nullptr}};
inline const fuzz::numbers norm_over_run_time_dim_gradients[] = {{0, nullptr}};
struct norm_over_run_time_dim {
  template <class W>
  struct f {
    using A0 = typename W::A0; using A1 = typename W::A1; using A2 = typename W::A2;
    constexpr auto operator()([[maybe_unused]] const auto& x1, [[maybe_unused]] const auto& x2) const {
      const auto t1 = sw::redistribute<A1, sw::reduced>(x1);
      const auto t2 = sw::redistribute<A0, sw::reduced>(t1);
      const auto t3 = sw::redistribute<sw::on<A0, sw::reduced>>(x2);
      const auto t4 = sw::rms_norm(t2, t3);
      const auto t5 = sw::clamp_min(t4, -1.0);
      const auto t6 = sw::redistribute<A0, sw::replicate>(t5);
      const auto t7 = sw::logsumexp<0>(t6, sw::keepdim);
      const auto t10 = sw::redistribute<A1, sw::reduced>(t2);
      return std::tuple{t10, t7, t2};
    }
  };
  template <class W>
  using inputs = fuzz::list<sw::dtensor_of<double, sw::shape<4, sw::dyn<7>>, typename W::mesh, sw::partial<>, sw::shard<1>, sw::replicate>,
                             sw::dtensor_of<double, sw::shape<sw::dyn<7>>, typename W::mesh, sw::shard<0>, sw::reduced, sw::replicate>>;
  using wrt = sw::wrt<>;
  using pipeline = sw::pipeline<>;
  static constexpr std::size_t results = 12, gradients = 0;
  static constexpr auto checks = sw::executor_checks::poison;
  static constexpr bool named = false;
  static constexpr int run_times = 4, run_time[] = {7, 4, 1, 3};
  static constexpr bool writes_inputs = false;
  static constexpr const fuzz::numbers* data = norm_over_run_time_dim_data;
  static constexpr bool arrives = false;
  static fuzz::expectation expected() {
    return {norm_over_run_time_dim_results, nullptr, norm_over_run_time_dim_gradients, 12, 2, 0, 1e-09, 0.0, 1e-10, false, 0u};
  }
};

