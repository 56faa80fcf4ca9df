// SPDX-License-Identifier: Apache-2.0
// Eager training: value_and_grad of a model and optimizer steps are the compiled train_step, bit for bit, on every plan.
#include <shardwise/shardwise.hpp>

#include <doctest/doctest.h>

#include <cstring>
#include <string>
#include <vector>

namespace {

namespace sw = shardwise;

template <int N>
struct rows : sw::axis<N> {};
template <int N>
struct cols : sw::axis<N> {};
template <int M, int N>
using grid = sw::mesh<rows<M>, cols<N>>;
using R = sw::replicate;
template <int D>
using S = sw::shard<D>;

std::vector<double> some(std::size_t n, int salt) {
  std::vector<double> v(n);
  std::uint32_t x = 12345U + 77U * static_cast<std::uint32_t>(salt);
  for (auto& e : v) {
    x = x * 1664525U + 1013904223U;
    e = (x >> 8) / 8388608.0 - 1;
  }
  return v;
}

template <class Bound = sw::unbound>
struct block : sw::module<block<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<12, 20>, up), (sw::linear<20, 12>, down), (sw::layer_norm_module<12>, norm));
  constexpr auto forward(const auto& x) const { return norm(x + sw::dropout(down(sw::gelu(up(x))), 0.2)); }
};
template <class B>
using block_type = block<B>;

// A list of blocks, of which a plan may name one, a head, and a parameter that no loss depends on.
template <class Bound = sw::unbound>
struct net : sw::module<net<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::repeat<3, block_type>, layers), (sw::linear<12, 7>, head), (sw::linear<4, 4>, unused));
  constexpr auto forward(const auto& x) const { return head(layers(x)); }
};
template <class B>
using net_model = net<B>;

template <class r, class c>
using plain_plan = sw::plan<sw::data_parallel<r>>;
template <class r, class c>
using even_plan =
    sw::plan<sw::data_parallel<r>, sw::at<"layers.*.up", sw::colwise<c>>, sw::at<"layers.*.down", sw::rowwise<c>>>;
template <class r, class c>
using odd_plan = sw::plan<sw::data_parallel<r>, sw::at<"layers.1.up", sw::colwise<c>>,
                          sw::at<"layers.1.down", sw::rowwise<c>>, sw::at<"head", sw::colwise<c, 1, sw::output<R>>>>;

// Of the layers the eager step, too, computes again what it does not keep.
template <class r, class c>
using checkpointed_plan = sw::plan<sw::data_parallel<r>, sw::at<"layers.*.up", sw::colwise<c>>,
                                   sw::at<"layers.*.down", sw::rowwise<c>>, sw::at<"layers.*", sw::checkpoint>>;

template <class r>
struct fit {
  using inputs = sw::inputs<sw::input_tensor<double, sw::shape<9, 12>, sw::on<r, S<0>>>,
                            sw::input_tensor<double, sw::shape<9, 7>, sw::on<r, S<0>>>>;
  constexpr auto operator()(const auto& model, const auto& x, const auto& t) const {
    const auto apart = model(x) - t;
    return sw::mean(apart * apart);
  }
};

template <class A, class B>
bool same_bits(const A& a, const B& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

// The compiled step and the eager one, side by side, on each rank of the launch.
template <int M, int N, template <class, class> class Plan, class Optimizer, class Rank>
void check_steps(Rank& rank) {
  using mesh = grid<M, N>;
  using plan = Plan<rows<M>, cols<N>>;
  using task = fit<rows<M>>;
  using step = sw::train_step<net_model, task, plan, mesh, Optimizer, sw::pipeline<>, double>;
  sw::executor<step, Rank> program(rank);
  program.initialise(5);
  sw::eager on(rank);
  sw::bind_eager<net_model, plan, mesh, double, Rank> model{};
  sw::initialise(model, on, 5);
  sw::eager_optimizer<Optimizer, decltype(model)> optimizer;
  const auto xs = some(9 * 12, 1), ts = some(9 * 7, 2);
  program.set_input(0, xs);
  program.set_input(1, ts);
  using input = sw::dtensor_of<double, sw::shape<9, 12>, mesh, sw::on<rows<M>, S<0>>>;
  using target = sw::dtensor_of<double, sw::shape<9, 7>, mesh, sw::on<rows<M>, S<0>>>;
  const auto x = input::distribute(on, xs);
  const auto t = target::distribute(on, ts);
  sw::step_env env;
  env.seed = 3;
  env.lr = 0.02;
  env.momentum = 0.9;
  env.weight_decay = 0.01;
  env.max_norm = 0.05;
  std::int64_t blocks = 0;
  for (int s = 1; s <= 4; ++s) {
    env.step = s;
    program.run(env);
    on.start_step(env.seed, env.step);
    const auto [loss, gradients] = sw::value_and_grad(task{})(model, x, t);
    CHECK(loss.item() == program.loss());
    CHECK(!gradients.unused.weight.has_value());
    optimizer.step(model, gradients, env);
    if constexpr (sw::detail::reports_norm<Optimizer>) {
      CHECK(optimizer.gradient_norm() == program.gradient_norm());
      CHECK(program.gradient_norm() > env.max_norm);
    }
    sw::for_each_parameter(model, [&](const std::string& path, auto& p) {
      const auto theirs = program.parameter(program.parameter_index(path));
      CHECK_MESSAGE(same_bits(p.to_local().data, std::span<const double>(theirs)), path, " differs in step ", s);
    });
    if (s == 2) blocks = on.allocations();
    if (s > 2) CHECK(on.allocations() == blocks);
  }
}

template <int M, int N, template <class, class> class Plan, class Optimizer>
void check_on() {
  sw::launch<grid<M, N>>([](auto& rank) { check_steps<M, N, Plan, Optimizer>(rank); });
}

}  // namespace

TEST_CASE("eager training: steps on 1, 2 and 4 ranks and three plans are the compiled steps, bit for bit") {
  check_on<1, 1, plain_plan, sw::adam<>>();
  check_on<2, 1, plain_plan, sw::adam<>>();
  check_on<1, 2, even_plan, sw::sgd<true>>();
  check_on<1, 2, even_plan, sw::sgd<true, sw::sgd_form::nesterov>>();
  check_on<2, 2, even_plan, sw::adamw<>>();
  check_on<2, 2, odd_plan, sw::report_norm<sw::clip_norm<sw::adam<>>>>();
  check_on<4, 1, plain_plan, sw::sgd<>>();
}

// Nodes of the gradient's program that are computed again.
template <class Plan>
constexpr int repeated() {
  using mesh = grid<2, 2>;
  using x = sw::dtensor_of<double, sw::shape<9, 12>, mesh, sw::on<rows<2>, S<0>>>;
  using t = sw::dtensor_of<double, sw::shape<9, 7>, mesh, sw::on<rows<2>, S<0>>>;
  using model = sw::bind_eager<net_model, Plan, mesh, double>;
  using gradient = sw::detail::model_gradient<typename model::bound, fit<rows<2>>, x, t>;
  int n = 0;
  for (int i = 0; i < gradient::program.node_count; ++i) n += sw::replay_of(gradient::program, i) >= 0 ? 1 : 0;
  static_assert(gradient::results[0] == gradient::program.outputs[0]);
  return n;
}

TEST_CASE("eager training: checkpointed layers are computed again, to the same bits") {
  check_on<1, 1, checkpointed_plan, sw::adam<>>();
  check_on<2, 2, checkpointed_plan, sw::clip_norm<sw::adam<>>>();
  check_on<3, 1, checkpointed_plan, sw::sgd<>>();
  static_assert(repeated<checkpointed_plan<rows<2>, cols<2>>>() >= 3 * 5);
  static_assert(repeated<even_plan<rows<2>, cols<2>>>() == 0);
}

TEST_CASE("eager training: a rank without peers takes the compiled step too") {
  for (int q = 0; q < 4; ++q)
    sw::launch_fake<grid<2, 2>>(q, [](auto& rank) { check_steps<2, 2, even_plan, sw::clip_norm<sw::adam<>>>(rank); });
}

TEST_CASE("eager training: gradients are placed as the parameters' duals, with what is left to sum") {
  using mesh = grid<2, 2>;
  using plan = even_plan<rows<2>, cols<2>>;
  sw::launch<mesh>([](auto& rank) {
    sw::eager on(rank);
    sw::bind_eager<net_model, plan, mesh, double> model{};
    sw::initialise(model, on, 5);
    const auto x = sw::rand<double, sw::shape<9, 12>, sw::on<rows<2>, S<0>>>(on, 1);
    const auto t = sw::rand<double, sw::shape<9, 7>, sw::on<rows<2>, S<0>>>(on, 2);
    // a lambda without captures is a task as well
    const auto [loss, g] = sw::value_and_grad([](const auto& m, const auto& in, const auto& wanted) {
      const auto apart = m(in) - wanted;
      return sw::mean(apart * apart);
    })(model, x, t);
    static_assert(decltype(loss)::sp.place[0].is_partial());
    const auto& up = g.layers.items[1].up.weight;
    using up_type = std::remove_cvref_t<decltype(up)>;
    static_assert(up_type::sp.place[0].is_partial() && up_type::sp.place[1] == sw::shard_value(0));
    static_assert(up_type::sp.extent[0] == 20 && up_type::sp.extent[1] == 12);
    // the sum over the data-parallel axis is what the single-rank gradient is
    const auto whole = up.full_tensor();
    CHECK(whole.to_local().data.size() == 240);
    // accumulated over two calls: twice the gradient, still to be summed
    const auto again = sw::value_and_grad(fit<rows<2>>{})(model, x, t);
    on.rewind(0);
    const auto sum = up + again.gradients.layers.items[1].up.weight;
    static_assert(decltype(sum)::sp == up_type::sp);
    int visited = 0;
    sw::for_each_gradient(model, g, [&](const std::string& path, auto& parameter, const auto& gradient) {
      ++visited;
      CHECK(gradient.has_value() == (path.rfind("unused", 0) != 0));
      for (int d = 0; d < parameter.sp.rank; ++d) CHECK(gradient.sp.extent[d] == parameter.sp.extent[d]);
    });
    CHECK(visited == 3 * 6 + 4);
  });
}

TEST_CASE("eager training: a model without values is refused, before anything is computed") {
  using plan = plain_plan<rows<1>, cols<1>>;
  sw::launch_fake<grid<1, 1>>(0, [](auto& rank) {
    using rank_type = std::remove_reference_t<decltype(rank)>;
    sw::eager on(rank);
    sw::bind_eager<net_model, plan, grid<1, 1>, double, rank_type> model{}, other{};
    sw::initialise(model, on, 5);
    const auto x = sw::rand<double, sw::shape<9, 12>, sw::on<rows<1>, S<0>>>(on, 1);
    const auto t = sw::rand<double, sw::shape<9, 7>, sw::on<rows<1>, S<0>>>(on, 2);
    CHECK_THROWS_WITH(sw::value_and_grad(fit<rows<1>>{})(other, x, t),
                      doctest::Contains("a tensor without a value is used"));
    on.rewind(0);
    const auto r = sw::value_and_grad(fit<rows<1>>{})(model, x, t);
    const double again = r.loss.item();
    sw::eager_optimizer<sw::sgd<>, decltype(model)> optimizer;
    sw::step_env env;
    env.lr = 1;
    env.step = 1;
    other.layers = model.layers;
    other.head = model.head;  // all that have gradients; the unused layer has no values
    CHECK_THROWS_WITH(optimizer.step(other, r.gradients, env), doctest::Contains("a tensor without a value is used"));
    on.rewind(0);  // nothing has been updated: the same masks give the same loss
    CHECK(sw::value_and_grad(fit<rows<1>>{})(model, x, t).loss.item() == again);
  });
}

// Against finite differences of the loss: one weight of each kind.
TEST_CASE("eager training: gradients are the slopes of the loss") {
  using mesh = grid<2, 1>;
  using plan = plain_plan<rows<2>, cols<1>>;
  sw::launch<mesh>([](auto& rank) {
    sw::eager on(rank);
    sw::bind_eager<net_model, plan, mesh, double> model{};
    sw::initialise(model, on, 5);
    const auto x = sw::rand<double, sw::shape<9, 12>, sw::on<rows<2>, S<0>>>(on, 1);
    const auto t = sw::rand<double, sw::shape<9, 7>, sw::on<rows<2>, S<0>>>(on, 2);
    const auto loss_now = [&] {
      on.start_step(1, 1);
      return fit<rows<2>>{}(model, x, t).item();
    };
    on.start_step(1, 1);
    const auto [loss, g] = sw::value_and_grad(fit<rows<2>>{})(model, x, t);
    CHECK(loss.item() == loss_now());
    const auto slope = [&](auto& parameter, std::size_t at) {
      const double h = 1e-6;
      const auto all = parameter.to_local().data;
      std::vector<double> v(all.begin(), all.end());
      const auto keep = parameter;
      using type = std::remove_cvref_t<decltype(parameter)>;
      v[at] += h;
      parameter = type::from_local(on, v);
      const double above = loss_now();
      v[at] -= 2 * h;
      parameter = type::from_local(on, v);
      const double below = loss_now();
      parameter = keep;
      return (above - below) / (2 * h);
    };
    const auto gradient_at = [](const auto& gradient, std::size_t at) {
      const auto whole = gradient.full_tensor();
      return whole.to_local().data[at];
    };
    CHECK(gradient_at(g.head.weight, 17) == doctest::Approx(slope(model.head.weight, 17)).epsilon(1e-6));
    CHECK(gradient_at(g.layers.items[0].up.bias, 3) ==
          doctest::Approx(slope(model.layers.items[0].up.bias, 3)).epsilon(1e-6));
    CHECK(gradient_at(g.layers.items[2].norm.weight, 5) ==
          doctest::Approx(slope(model.layers.items[2].norm.weight, 5)).epsilon(1e-6));
  });
}
