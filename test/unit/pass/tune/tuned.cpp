// SPDX-License-Identifier: Apache-2.0
// sw::tuned: of the fusions that are possible those are made that the device's table says are faster, group by group and norm by norm;
// values stay what they are.
#include <shardwise/pass/tune/tuned.hpp>
#include <shardwise/shardwise.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <models.hpp>
#include <vector>

namespace {

namespace sw = shardwise;
using sw::op_code;
namespace passes = shardwise::passes;

template <int Ranks>
struct dp : sw::axis<Ranks> {};
template <int Ranks>
using mesh = sw::mesh<dp<Ranks>>;

// Devices that gain or lose by one kind of fusion, whatever the sizes.
template <int Forward, int Weights, int Added, int Norms>
struct device {
  static constexpr bool tf32 = false;
  static constexpr passes::merged_products products[] = {
      {{64, 64, 64, 2}, {{Forward, Weights, Added}, {0, 0, 0}, {Forward, Weights, Added}, {0, 0, 0}}}};
  static constexpr passes::joined_norms norms[] = {{{64, 64}, {Norms, Norms, 0}}};
  static constexpr passes::joined_losses losses[] = {{{64, 64}, {Norms, Norms, 0}}};
};
constexpr int gains = 500, loses = 1500, unknown = 0;

// A layer and three projections of its norm, of equal extents; what is normed is no input, which an update might change.
template <int Width>
struct projections {
  template <class Bound = sw::unbound>
  struct model : sw::module<model<Bound>, Bound> {
    SHARDWISE_MEMBERS(Bound, (sw::linear<Width, Width>, first), (sw::layer_norm_module<Width>, norm),
                      (sw::linear<Width, Width>, q), (sw::linear<Width, Width>, k), (sw::linear<Width, Width>, v));
    constexpr auto forward(const auto& x) const {
      const auto h = norm(first(x));
      return sw::mul(sw::mul(q(h), k(h)), v(h));
    }
  };
};
template <class Pipeline, class T = double, int Ranks = 1, int Rows = 12, int Width = 16>
using step =
    sw::train_step<projections<Width>::template model, test::sum_task<T, Rows, Width, sw::on<dp<Ranks>, sw::shard<0>>>,
                   sw::plan<sw::data_parallel<dp<Ranks>>>, mesh<Ranks>, sw::sgd<>, Pipeline, T>;

template <class Step>
constexpr int count(op_code op) {
  const auto& g = sw::runtime::program_source<Step>::program;
  int n = 0;
  for (int i = 0; i < g.node_count; ++i) n += g.nodes[i].op == op ? 1 : 0;
  return n;
}
template <class Step>
constexpr int products = count<Step>(op_code::einsum);
template <class Step>
constexpr int joined = count<Step>(op_code::norm_dx_dw);

template <class D>
using tuned_step = step<sw::tuned<D>>;
using all_fused = step<sw::pipeline<sw::merge_products, sw::fuse_kernels, sw::join_norm_adjoints, sw::join_casts>>;
using none_merged = step<sw::pipeline<sw::fuse_kernels, sw::join_casts>>;

struct doubles_alone {
  static constexpr bool tf32 = false;
  static constexpr passes::merged_products products[] = {
      {{64, 64, 64, 3}, {{0, 0, 0}, {0, 0, 0}, {gains, gains, gains}, {0, 0, 0}}}};
  static constexpr passes::joined_norms norms[] = {{{64, 64}, {0, gains, 0}}};
  static constexpr passes::joined_losses losses[] = {{{64, 64}, {0, gains, 0}}};
};

TEST_CASE("tuned: a device that gains by everything is given all fusions, one that loses or is not measured none") {
  static_assert(products<none_merged> == 11 && joined<none_merged> == 0);
  static_assert(products<all_fused> == 5 && joined<all_fused> == 1);
  static_assert(products<tuned_step<device<gains, gains, gains, gains>>> == products<all_fused>);
  static_assert(joined<tuned_step<device<gains, gains, gains, gains>>> == 1);
  static_assert(products<tuned_step<device<loses, loses, loses, loses>>> == products<none_merged>);
  static_assert(joined<tuned_step<device<loses, loses, loses, loses>>> == 0);
  static_assert(products<tuned_step<device<unknown, unknown, unknown, unknown>>> == products<none_merged>);
  static_assert(joined<tuned_step<device<unknown, unknown, unknown, unknown>>> == 0);
  static_assert(products<step<sw::tuned<device<gains, gains, gains, gains>>, float>> == 5);
  // figures of other element types say nothing of float's
  static_assert(products<step<sw::tuned<doubles_alone>, float>> == 11 && joined<step<sw::tuned<doubles_alone>, float>> == 0);
  static_assert(products<step<sw::tuned<doubles_alone>>> == 5 && joined<step<sw::tuned<doubles_alone>>> == 1);
}

TEST_CASE("tuned: forward products, weights' gradients, sums of products and norms are decided apart") {
  static_assert(products<tuned_step<device<gains, loses, loses, loses>>> == 9);
  static_assert(products<tuned_step<device<loses, gains, loses, loses>>> == 9);
  static_assert(products<tuned_step<device<loses, loses, gains, loses>>> == 9);
  static_assert(products<tuned_step<device<loses, loses, loses, gains>>> == 11);
  static_assert(joined<tuned_step<device<loses, loses, loses, gains>>> == 1);
  static_assert(joined<tuned_step<device<gains, gains, gains, loses>>> == 0);
  // a gain too small to be told from none is none
  static_assert(products<tuned_step<device<970, loses, loses, loses>>> == 9);
  static_assert(products<tuned_step<device<980, loses, loses, loses>>> == 11);
}

// Gains by few rows alone, by two products alone, or in TF32 alone.
struct few_rows : device<gains, loses, loses, gains> {
  static constexpr passes::merged_products products[] = {
      {{8, 64, 64, 3}, {{gains, 0, 0}, {0, 0, 0}, {gains, 0, 0}, {0, 0, 0}}},
      {{8192, 64, 64, 3}, {{loses, 0, 0}, {0, 0, 0}, {loses, 0, 0}, {0, 0, 0}}}};
  static constexpr passes::joined_norms norms[] = {{{8, 64}, {gains, gains, 0}}, {{8192, 64}, {loses, loses, 0}}};
};
struct pairs : device<gains, loses, loses, gains> {
  static constexpr passes::merged_products products[] = {
      {{64, 64, 64, 2}, {{0, 0, 0}, {0, 0, 0}, {gains, 0, 0}, {0, 0, 0}}},
      {{64, 64, 64, 3}, {{0, 0, 0}, {0, 0, 0}, {loses, 0, 0}, {0, 0, 0}}}};
};
struct tf32_alone {
  static constexpr bool tf32 = false;
  static constexpr passes::merged_products products[] = {
      {{64, 64, 64, 3}, {{loses, 0, 0}, {gains, 0, 0}, {0, 0, 0}, {0, 0, 0}}}};
  static constexpr passes::joined_norms norms[] = {{{64, 64}, {gains, gains, 0}}};
  static constexpr passes::joined_losses losses[] = {{{64, 64}, {gains, gains, 0}}};
};
struct with_tf32 : tf32_alone {
  static constexpr bool tf32 = true;
};

TEST_CASE("tuned: sizes are a rank's, and the nearest rows of the table decide") {
  static_assert(products<step<sw::tuned<few_rows>>> == 9);
  static_assert(joined<step<sw::tuned<few_rows>>> == 1);
  static_assert(products<step<sw::tuned<few_rows>, double, 1, 4096>> == 11);
  static_assert(joined<step<sw::tuned<few_rows>, double, 1, 4096>> == 0);
  static_assert(products<step<sw::tuned<few_rows>, double, 64, 1024>> == 9);  // 16 rows a rank
  static_assert(products<step<sw::tuned<pairs>>> == 11);                      // three
  static_assert(products<step<sw::tuned<tf32_alone>, float>> == 11);
  static_assert(products<step<sw::tuned<with_tf32>, float>> == 9);
}

struct few_classes : device<loses, loses, loses, loses> {
  static constexpr passes::joined_losses losses[] = {{{64, 64}, {gains, loses, 0}}, {{64, 65536}, {loses, gains, 0}}};
};
TEST_CASE("tuned: losses and their adjoints are decided by rows, classes and type") {
  const auto joins = [](std::int64_t classes, sw::dtype type) {
    const std::int32_t ranks[] = {2};
    sw::spec s = sw::empty_spec(type, 1, ranks, sw::device_kind::host);
    s.rank = 3;
    s.extent[0] = 16;
    s.extent[1] = 8;
    s.extent[2] = classes;
    sw::make_contiguous(s);
    s.place[0] = sw::shard_value(0);
    return passes::where_faster<few_classes>::joins_loss(0, s);
  };
  CHECK(joins(50, sw::dtype::f32));
  CHECK(!joins(50, sw::dtype::f64));
  CHECK(!joins(50000, sw::dtype::f32));
  CHECK(joins(50000, sw::dtype::f64));
  CHECK(!joins(50, sw::dtype::bf16));  // not measured
}

TEST_CASE("tuned: an estimate of what was measured is what was measured, and lies between what is near") {
  struct row {
    std::int64_t shape[2];
    double figure;
  };
  constexpr row rows[] = {{{64, 64}, 100}, {{4096, 64}, 300}, {{64, 4096}, 0}};
  const auto of = [&](std::int64_t a, std::int64_t b) {
    const std::int64_t shape[] = {a, b};
    return passes::estimated_permille(rows, shape, [](const row& r) { return r.figure; });
  };
  CHECK(of(64, 64) == doctest::Approx(100).epsilon(0.01));
  CHECK(of(4096, 64) == doctest::Approx(300).epsilon(0.01));
  CHECK(of(512, 64) == doctest::Approx(200));  // as far from either
  CHECK(of(128, 64) < 150);
  CHECK(of(64, 4096) < 200);  // a row that was not measured is no row
  constexpr row none[] = {{{64, 64}, 0}};
  const std::int64_t shape[] = {64, 64};
  CHECK(passes::estimated_permille(none, shape, [](const row& r) { return r.figure; }) == 0);
}

// Losses of three steps, on rank 0.
template <class Step, int Ranks>
std::vector<double> outputs() {
  std::vector<double> all;
  sw::launch<mesh<Ranks>>([&](auto& rank) {
    sw::executor<Step, std::remove_reference_t<decltype(rank)>> ex(rank, sw::executor_checks::poison);
    std::vector<double> x(12 * 16);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<double>(i * 7));
    ex.initialise(3);
    ex.set_input(0, x);
    sw::step_env env;
    env.lr = 0.01;
    for (env.step = 1; env.step <= 3; ++env.step) {
      ex.run(env);
      const double loss = ex.loss();
      if (rank.index() == 0) all.push_back(loss);
    }
  });
  return all;
}
template <int Ranks>
void check_values() {
  using mixed = device<gains, loses, gains, loses>;
  const auto plain = outputs<step<sw::pipeline<>, double, Ranks>, Ranks>();
  const auto some = outputs<step<sw::tuned<mixed>, double, Ranks>, Ranks>();
  const auto real = outputs<step<sw::tuned<sw::h200>, double, Ranks>, Ranks>();
  REQUIRE(plain.size() == 3);
  CHECK(plain[2] < plain[0]);
  REQUIRE(some.size() == plain.size());
  REQUIRE(real.size() == plain.size());
  for (std::size_t i = 0; i < plain.size(); ++i) {
    CHECK(some[i] == doctest::Approx(plain[i]).epsilon(1e-12));
    CHECK(real[i] == doctest::Approx(plain[i]).epsilon(1e-12));
  }
}
// Each fusion alone, by the same table: the others stay as they are.
template <class D>
using merged_alone = step<sw::pipeline<sw::merge_products_where_faster<D>>>;
template <class D>
using norms_alone = step<sw::pipeline<sw::join_norm_adjoints_where_faster<D>>>;
using all_gain = device<gains, gains, gains, gains>;
using all_lose = device<loses, loses, loses, loses>;
TEST_CASE("tuned: each of its passes may be written alone") {
  static_assert(products<merged_alone<all_gain>> == 5 && joined<merged_alone<all_gain>> == 0);
  static_assert(products<merged_alone<all_lose>> == 11 && joined<merged_alone<all_lose>> == 0);
  static_assert(products<norms_alone<all_gain>> == 11 && joined<norms_alone<all_gain>> == 1);
  static_assert(products<norms_alone<all_lose>> == 11 && joined<norms_alone<all_lose>> == 0);
}

struct classes_task {
  using inputs = sw::inputs<sw::input_tensor<double, sw::shape<12, 16>, sw::on<dp<1>, sw::shard<0>>>,
                            sw::input_tensor<std::int32_t, sw::shape<12>, sw::on<dp<1>, sw::shard<0>>>>;
  constexpr auto operator()(const auto& m, const auto& x, const auto& t) const { return sw::cross_entropy(m(x), t); }
};
template <class Pipeline>
using classifying = sw::train_step<projections<16>::template model, classes_task, sw::plan<sw::data_parallel<dp<1>>>,
                                   mesh<1>, sw::sgd<>, Pipeline, double>;
TEST_CASE("tuned: a loss and its adjoint are joined where the table says so") {
  static_assert(count<classifying<sw::tuned<device<loses, loses, loses, gains>>>>(op_code::nll_dx_loss) == 1);
  static_assert(count<classifying<sw::tuned<device<loses, loses, loses, loses>>>>(op_code::nll_dx_loss) == 0);
  static_assert(count<classifying<sw::tuned<device<loses, loses, loses, unknown>>>>(op_code::nll_dx_loss) == 0);
  static_assert(count<classifying<sw::tuned<sw::h200>>>(op_code::nll_dx_loss) == 1);
  static_assert(count<classifying<sw::tuned<sw::h100>>>(op_code::nll_dx_loss) == 1);
  // and by that pass alone
  static_assert(count<classifying<sw::pipeline<sw::join_cross_entropy_where_faster<all_gain>>>>(op_code::nll_dx_loss) == 1);
  static_assert(count<classifying<sw::pipeline<sw::join_cross_entropy_where_faster<all_lose>>>>(op_code::nll_dx_loss) == 0);
}

TEST_CASE("tuned: losses of training are the plain program's on 1, 2 and 3 ranks") {
  check_values<1>();
  check_values<2>();
  check_values<3>();
}

// What the shipped tables say of three products of a value by 768 x 768, of 4096 rows (bench/results/tune.md): in bf16 forward products
// and gradients of weights gain as one, in float gradients lose.
template <class Device>
constexpr double shipped(int type, int kind) {
  const std::int64_t shape[] = {4096, 768, 768, 3};
  return passes::estimated_permille(Device::products, shape, [&](const passes::merged_products& r) {
    return static_cast<double>(r.permille[type][kind]);
  });
}
template <class Device>
constexpr bool as_measured = shipped<Device>(3, 0) < 975 && shipped<Device>(3, 1) < 975 && shipped<Device>(0, 1) > 975;
static_assert(as_measured<sw::h100> && as_measured<sw::h200>);
// One kernel for losses and what goes back gains with few classes, and loses with a float vocabulary of 50257 (bench/results/tune.md).
template <class Device>
constexpr double shipped_losses(int type, std::int64_t classes) {
  const std::int64_t shape[] = {8192, classes};
  return passes::estimated_permille(Device::losses, shape,
                                    [&](const passes::joined_losses& r) { return static_cast<double>(r.permille[type]); });
}
template <class Device>
constexpr bool losses_as_measured =
    shipped_losses<Device>(0, 256) < 975 && shipped_losses<Device>(2, 2048) < 975 && shipped_losses<Device>(0, 50257) > 975;
static_assert(losses_as_measured<sw::h100> && losses_as_measured<sw::h200>);
static_assert(!sw::h200::tf32 && sw::h200_tf32::tf32 && !sw::h100::tf32 && sw::h100_tf32::tf32);

}  // namespace
