// SPDX-License-Identifier: Apache-2.0
// Eager tensors: every function under several placements on 1 to 8 ranks equals its single-rank result; models too.
#include <shardwise/shardwise.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <map>
#include <string>
#include <vector>

namespace {

namespace sw = shardwise;

template <int N>
struct rows : sw::axis<N> {};
template <int N>
struct cols : sw::axis<N> {};
template <int R, int C>
using grid = sw::mesh<rows<R>, cols<C>>;

using R = sw::replicate;
using U = sw::reduced;
using P = sw::partial<>;
template <int D>
using S = sw::shard<D>;

// Single-rank results by name; a later result of the same name must agree.
class book {
 public:
  void compare(const std::string& name, std::span<const double> values, bool record) {
    const auto it = known_.find(name);
    if (it == known_.end()) {
      CHECK_MESSAGE(record, "no single-rank result: ", name);
      if (record) known_[name].assign(values.begin(), values.end());
      return;
    }
    double apart = it->second.size() == values.size() ? 0 : 1;
    for (std::size_t i = 0; i < values.size() && i < it->second.size(); ++i) {
      const double d = std::abs(values[i] - it->second[i]);
      apart = d <= apart ? apart : d;  // a NaN sticks
    }
    CHECK_MESSAGE(apart <= 1e-13, name, " differs by ", apart);
    ++compared_;
  }
  int compared() const { return compared_; }
  std::size_t names() const { return known_.size(); }

 private:
  std::map<std::string, std::vector<double>> known_;
  std::atomic<int> compared_{0};
};

// Some values, the same on every rank.
template <class T>
std::vector<T> some(std::int64_t n, int salt, int below = 0) {
  std::vector<T> v(static_cast<std::size_t>(n));
  std::uint32_t x = 12345U + 77U * static_cast<std::uint32_t>(salt);
  for (auto& e : v) {
    x = x * 1664525U + 1013904223U;
    if (below > 0) e = static_cast<T>((x >> 8) % static_cast<std::uint32_t>(below));
    else e = static_cast<T>((x >> 8) / 8388608.0 - 1);
  }
  return v;
}

template <int M, int N, class Rank>
struct bench {
  using mesh = grid<M, N>;
  using r = rows<M>;
  using c = cols<N>;
  static constexpr bool single = M * N == 1;

  sw::eager<Rank>& on;
  book& results;

  template <class Shape, class PR, class PC, class T = double>
  auto make(int salt, int below = 0) {
    using type = sw::dtensor_of<T, Shape, mesh, sw::on<r, PR>, sw::on<c, PC>>;
    return type::distribute(on, some<T>(sw::numel(type::sp), salt, below));
  }
  template <class X>
  void operator()(const char* name, const X& x) {
    const auto whole = x.full_tensor();
    results.compare(name, whole.to_local().data, single);
  }

  template <class PR, class PC>
  void pointwise() {
    using shape = sw::shape<6, 5, 8>;
    const auto a = make<shape, PR, PC>(1), b = make<shape, PR, PC>(2);
    (*this)("distribute", a);
    (*this)("add", sw::add(a, b));
    (*this)("add", a + b);
    (*this)("sub", a - b);
    (*this)("mul", sw::mul(a, b));
    (*this)("scale", a * 0.75);
    (*this)("relu", sw::relu(a));
    (*this)("tanh", sw::tanh(a));
    (*this)("gelu erf", sw::gelu(a));
    (*this)("gelu tanh", sw::gelu<sw::gelu_form::tanh>(a));
    on.rewind(0);
    (*this)("dropout 0", sw::dropout(a, 0.4));
    (*this)("dropout 1", sw::dropout(a, 0.4));
    (*this)("sum", sw::sum(a));
    (*this)("sum 0", sw::sum<0>(a));
    (*this)("sum 0 -1", sw::sum<0, -1>(a));
    (*this)("mean", sw::mean(a));
    (*this)("mean 1", sw::mean<1>(a));
    (*this)("permute", sw::permute<2, 0, 1>(a));
    (*this)("permute, relu", sw::relu(sw::permute<2, 0, 1>(a)));
    (*this)("permute, sum", sw::sum<1>(sw::permute<2, 0, 1>(a)));
    (*this)("contiguous", sw::contiguous(sw::permute<1, 0, 2>(a)));
  }

  // dim 2 is not sharded
  template <class PR, class PC, class W>
  void by_row(const W& weight, const W& bias) {
    using shape = sw::shape<6, 5, 8>;
    const auto a = make<shape, PR, PC>(1);
    (*this)("softmax", sw::softmax(a));
    (*this)("causal softmax", sw::causal_softmax(a));
    (*this)("layer norm", sw::layer_norm(a, weight, bias));
    (*this)("rms norm", sw::rms_norm(a, weight));
    (*this)("add last", a + bias);
    (*this)("slice", sw::slice<2, 3, 4>(a));
    (*this)("slice, tanh", sw::tanh(sw::slice<-1, 3, 4>(a)));
    (*this)("slice, permute", sw::permute<2, 1, 0>(sw::slice<-1, 3, 4>(a)));
    (*this)("reshape", sw::reshape<6, 5, 2, 4>(a));
    (*this)("reshape, permute, reshape",
            sw::reshape<6, 2, 20>(sw::permute<0, 2, 1, 3>(sw::reshape<6, 5, 2, 4>(make<shape, PR, R>(1)))));
    const auto target = make<sw::shape<6, 5>, PR, PC, std::int32_t>(3, 8);
    (*this)("cross entropy rows", sw::cross_entropy_rows(a, target));
    (*this)("cross entropy", sw::cross_entropy(a, target));
  }

  void contractions() {
    using a = sw::shape<7, 9>;
    using b = sw::shape<9, 5>;
    (*this)("matmul", sw::matmul(make<a, R, R>(1), make<b, R, R>(2)));
    (*this)("matmul", sw::matmul(make<a, S<0>, U>(1), make<b, U, S<1>>(2)));
    (*this)("matmul", sw::matmul(make<a, S<0>, S<1>>(1), make<b, U, S<0>>(2)));
    (*this)("matmul", sw::matmul(make<a, S<1>, S<1>>(1), make<b, S<0>, S<0>>(2)));
    (*this)("matmul", sw::matmul(make<a, P, S<0>>(1), make<b, U, U>(2)));
    (*this)("matmul", sw::matmul(make<a, U, U>(1), make<b, P, S<1>>(2)));
    (*this)("matmul",
            sw::matmul(sw::permute<1, 0>(sw::contiguous(sw::permute<1, 0>(make<a, S<0>, U>(1)))), make<b, U, U>(2)));
    using ba = sw::shape<4, 3, 9>;
    using bb = sw::shape<4, 9, 5>;
    (*this)("batched matmul", sw::matmul(make<ba, R, R>(1), make<bb, R, R>(2)));
    (*this)("batched matmul", sw::matmul(make<ba, S<0>, S<0>>(1), make<bb, S<0>, S<0>>(2)));
    (*this)("batched matmul", sw::matmul(make<ba, S<0>, S<2>>(1), make<bb, S<0>, S<1>>(2)));
    (*this)("broadcast matmul", sw::matmul(make<ba, R, R>(1), make<b, R, R>(2)));
    (*this)("broadcast matmul", sw::matmul(make<ba, S<1>, S<0>>(1), make<b, U, U>(2)));
    using w = sw::shape<11, 9>;
    (*this)("linear product", sw::linear_product(make<ba, R, R>(1), make<w, R, R>(2)));
    (*this)("linear product", sw::linear_product(make<ba, S<0>, U>(1), make<w, U, S<0>>(2)));
    (*this)("linear product", sw::linear_product(make<ba, S<1>, S<2>>(1), make<w, U, S<1>>(2)));
  }

  template <class PB, class PH>
  void attention() {
    using bhtd = sw::shape<3, 4, 5, 6>;
    const auto q = make<bhtd, PB, PH>(1), k = make<bhtd, PB, PH>(2), v = make<bhtd, PB, PH>(3);
    (*this)("attention", sw::scaled_dot_product_attention(q, k, v));
    (*this)("full attention", sw::scaled_dot_product_attention<false>(q, k, v));
    const auto turn = [](const auto& x) { return sw::permute<0, 2, 1, 3>(x); };
    (*this)("attention", turn(sw::scaled_dot_product_attention<true, sw::head_layout::bthd>(turn(q), turn(k), turn(v))));
  }

  void indices() {
    using table = sw::shape<10, 6>;
    using ids = sw::shape<7, 3>;
    using I = std::int32_t;
    (*this)("embedding", sw::embedding(make<table, R, R>(1), make<ids, R, R, I>(2, 10)));
    (*this)("embedding", sw::embedding(make<table, U, U>(1), make<ids, S<0>, S<1>, I>(2, 10)));
    (*this)("embedding", sw::embedding(make<table, U, S<1>>(1), make<ids, S<0>, R, I>(2, 10)));
    (*this)("embedding", sw::embedding(make<table, U, U>(1), sw::redistribute<c, S<0>>(make<ids, S<0>, R, I>(2, 10))));
  }

  void partial_values() {
    using shape = sw::shape<6, 5, 8>;
    const auto a = make<shape, P, S<1>>(1), b = make<shape, P, S<1>>(2);
    (*this)("add", a + b);
    (*this)("sub", a - b);
    (*this)("scale", sw::scale(a, 0.75));
    (*this)("mul", sw::mul(a, make<shape, U, S<1>>(2)));
    (*this)("sum 0", sw::sum<0>(a));
    (*this)("distribute", make<shape, sw::partial<sw::reduction::max>, R>(1));
    (*this)("distribute", make<shape, S<2>, sw::partial<sw::reduction::avg>>(1));
    (*this)("distribute", make<shape, sw::partial<sw::reduction::product>, sw::partial<sw::reduction::min>>(1));
    (*this)("distribute", sw::reduce_gradient<r>(a));
  }

  // From every placement to every other: the whole tensor stays what it is.
  template <class Axis, class From, class To, class Other>
  void move_on_axis() {
    if constexpr (std::is_same_v<Axis, c>) {
      const auto x = make<sw::shape<6, 5>, Other, From>(4);
      (*this)("redistribute", sw::redistribute<Axis, To>(x));
      (*this)("redistribute turned", sw::redistribute<Axis, To>(sw::permute<1, 0>(x)));
    } else {
      (*this)("redistribute", sw::redistribute<Axis, To>(make<sw::shape<6, 5>, From, Other>(4)));
    }
  }
  template <class Axis, class Other, class From, class... To>
  void moves_from() {
    (this->template move_on_axis<Axis, From, To, Other>(), ...);
  }

  void run() {
    pointwise<R, R>();
    pointwise<S<0>, S<1>>();
    pointwise<S<2>, S<0>>();
    pointwise<S<1>, S<1>>();
    by_row<R, R>(make<sw::shape<8>, R, R>(5), make<sw::shape<8>, R, R>(6));
    by_row<S<0>, S<1>>(make<sw::shape<8>, U, U>(5), make<sw::shape<8>, U, U>(6));
    by_row<S<0>, S<0>>(make<sw::shape<8>, U, U>(5), make<sw::shape<8>, U, U>(6));
    contractions();
    attention<R, R>();
    attention<S<0>, S<1>>();
    attention<S<1>, S<0>>();
    indices();
    partial_values();
    moves_from<c, R, R, R, U, S<0>, S<1>, P>();
    moves_from<c, R, U, R, U, S<0>, S<1>, P>();
    moves_from<c, R, S<0>, R, U, S<0>, S<1>, P>();
    moves_from<c, R, S<1>, R, U, S<0>, S<1>, P>();
    moves_from<c, R, P, R, U, S<0>, S<1>, P>();
    moves_from<r, S<1>, R, R, U, S<0>, P>();
    moves_from<r, S<1>, U, R, U, S<0>, P>();
    moves_from<r, S<1>, S<0>, R, U, S<0>, P>();
    moves_from<r, S<1>, P, R, U, S<0>, P>();
  }
};

template <int M, int N>
void run_all(book& results) {
  sw::launch<grid<M, N>>([&](auto& rank) {
    sw::eager on(rank);
    on.start_step(11, 1);
    bench<M, N, std::remove_reference_t<decltype(rank)>>{on, results}.run();
  });
}

// --- models
// -----------------------------------------------------------------------------------------------------------

template <class Bound = sw::unbound>
using square = sw::linear<16, 16, Bound>;

// Four equal layers, each under a style of its own.
template <class Bound = sw::unbound>
struct four : sw::module<four<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (square<>, up), (square<>, down), (square<>, wide), (square<>, last));
  constexpr auto forward(const auto& x) const { return last(sw::tanh(wide(sw::relu(down(sw::relu(up(x))))))); }
};
template <class B>
using four_model = four<B>;
template <class Mesh, class r, class c>
using four_plan = sw::plan<sw::data_parallel<r>, sw::at<"up", sw::colwise<c>>, sw::at<"down", sw::rowwise<c>>,
                           sw::at<"wide", sw::colwise<c, 1, sw::output<R>>>>;

// A list of four, of which the plan names one.
template <class Bound = sw::unbound>
struct stack : sw::module<stack<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::repeat<4, square>, layers));
  constexpr auto forward(const auto& x) const { return layers(x); }
};
template <class B>
using stack_model = stack<B>;
template <class Mesh, class r, class c>
using stack_plan = sw::plan<sw::data_parallel<r>, sw::at<"layers.3", sw::colwise<c, 1, sw::output<R>>>>;

template <class r>
struct fit {
  using both = sw::input_tensor<double, sw::shape<12, 16>, sw::on<r, S<0>>>;
  using inputs = sw::inputs<both, both>;
  constexpr auto operator()(const auto& model, const auto& x, const auto& t) const {
    const auto apart = model(x) - t;
    return sw::mean(apart * apart);
  }
};

// Trains with a compiled step; after each one the eager model with the step's parameters must say the same.
template <int M, int N, template <class> class Model, template <class, class, class> class Plan>
std::vector<double> train() {
  using mesh = grid<M, N>;
  using plan = Plan<mesh, rows<M>, cols<N>>;
  using task = fit<rows<M>>;
  using step = sw::train_step<Model, task, plan, mesh, sw::adam<>, sw::pipeline<>, double>;
  std::vector<double> losses;
  sw::launch<mesh>([&](auto& rank) {
    sw::executor<step, std::remove_reference_t<decltype(rank)>> program(rank);
    program.initialise(5);
    sw::eager on(rank);
    sw::bind_eager<Model, plan, mesh, double> model{};
    sw::initialise(model, on, 5);
    const auto x = some<double>(12 * 16, 1), t = some<double>(12 * 16, 2);
    program.set_input(0, x);
    program.set_input(1, t);
    using input = sw::dtensor_of<double, sw::shape<12, 16>, mesh, sw::on<rows<M>, S<0>>>;
    const auto ex = input::distribute(on, x), et = input::distribute(on, t);
    sw::step_env env;
    env.lr = 0.02;
    for (int s = 1; s <= 6; ++s) {
      const double eager_loss = task{}(model, ex, et).item();
      env.step = s;
      program.run(env);
      CHECK(program.loss() == eager_loss);
      if (rank.index() == 0) losses.push_back(eager_loss);
      sw::load_parameters(model, on, program);
    }
    // and back: a program that starts from the eager model's parameters goes on from there
    sw::executor<step, std::remove_reference_t<decltype(rank)>> other(rank);
    other.initialise(6);
    sw::store_parameters(model, other);
    int parameters = 0;
    sw::for_each_parameter(model, [&](const std::string& path, auto& p) {
      const int i = other.parameter_index(path);
      CHECK(i == parameters++);
      const auto mine = p.to_local().data;
      const auto theirs = other.parameter(i);
      CHECK(std::equal(mine.begin(), mine.end(), theirs.begin(), theirs.end()));
    });
    CHECK(parameters == 8);
  });
  return losses;
}

template <template <class> class Model, template <class, class, class> class Plan>
void check_training() {
  const auto single = train<1, 1, Model, Plan>();
  CHECK(single.size() == 6);
  CHECK(single.back() < 0.9 * single.front());
  for (const auto& many : {train<1, 3, Model, Plan>(), train<2, 2, Model, Plan>()})
    for (std::size_t i = 0; i < single.size(); ++i) CHECK(many.at(i) == doctest::Approx(single[i]).epsilon(1e-12));
}

// Something of everything: embedding, norms, attention over sharded heads, dropout, cross entropy.
template <class Bound = sw::unbound>
struct attention : sw::module<attention<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<24, 24>, query), (sw::linear<24, 24>, key), (sw::linear<24, 24>, value),
                    (sw::linear<24, 24>, merge));
  constexpr auto forward(const auto& x) const {
    const auto heads = [](const auto& t) { return sw::permute<0, 2, 1, 3>(sw::reshape<6, 5, 4, 6>(t)); };
    const auto y = sw::scaled_dot_product_attention(heads(query(x)), heads(key(x)), heads(value(x)));
    return merge(sw::reshape<6, 5, 24>(sw::permute<0, 2, 1, 3>(y)));
  }
};
template <class B>
using attention_block = attention<B>;
template <class Bound = sw::unbound>
struct reader : sw::module<reader<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::embedding_table<13, 24>, table), (sw::repeat<2, attention_block>, blocks),
                    (sw::layer_norm_module<24>, norm), (sw::linear<24, 13>, head));
  constexpr auto forward(const auto& ids) const {
    return head(norm(sw::dropout(blocks(sw::dropout(table(ids), 0.2)), 0.1)));
  }
};
template <class B>
using reader_model = reader<B>;
template <class r, class c>
using reader_plan =
    sw::plan<sw::data_parallel<r>, sw::at<"blocks.*.query", sw::colwise<c, 6>>, sw::at<"blocks.*.key", sw::colwise<c, 6>>,
             sw::at<"blocks.*.value", sw::colwise<c, 6>>, sw::at<"blocks.*.merge", sw::rowwise<c, 6>>>;
template <class r>
struct read_task {
  using ids = sw::input_tensor<std::int32_t, sw::shape<6, 5>, sw::on<r, S<0>>>;
  using inputs = sw::inputs<ids>;
  constexpr auto operator()(const auto& model, const auto& in) const { return model(in); }
};

// The logits of a traced forward_step and of the eager model are the same bits.
template <int M, int N>
void check_forward(book& results) {
  using mesh = grid<M, N>;
  using plan = reader_plan<rows<M>, cols<N>>;
  using task = read_task<rows<M>>;
  using step = sw::forward_step<reader_model, task, plan, mesh, sw::pipeline<>, double>;
  sw::launch<mesh>([&](auto& rank) {
    sw::executor<step, std::remove_reference_t<decltype(rank)>> program(rank);
    program.initialise(9);
    const auto ids = some<std::int32_t>(30, 4, 13);
    program.set_input(0, ids);
    sw::step_env env;
    env.seed = 21;
    env.step = 3;
    program.run(env);
    sw::eager on(rank);
    on.start_step(21, 3);
    sw::bind_eager<reader_model, plan, mesh, double> model{};
    sw::initialise(model, on, 9);
    const auto in = sw::dtensor_of<std::int32_t, sw::shape<6, 5>, mesh, sw::on<rows<M>, S<0>>>::distribute(on, ids);
    const auto logits = task{}(model, in);
    const auto mine = logits.to_local().data;
    const auto theirs = program.output();
    CHECK(mine.size() == theirs.size());
    CHECK(std::memcmp(mine.data(), theirs.data(), mine.size_bytes()) == 0);
    results.compare("logits", logits.full_tensor().to_local().data, M * N == 1);
  });
}

// --- a training step written by hand
// ------------------------------------------------------------------------------------

template <class Bound = sw::unbound>
struct one : sw::module<one<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<6, 7>, net));
  constexpr auto forward(const auto& x) const { return net(x); }
};
template <class B>
using one_model = one<B>;

// One linear layer, its output features split over `c`, the batch over `r`.
template <int M, int N>
std::vector<double> by_hand() {
  using mesh = grid<M, N>;
  using r = rows<M>;
  using c = cols<N>;
  using plan = sw::plan<sw::data_parallel<r>, sw::at<"net", sw::colwise<c>>>;
  std::vector<double> losses;
  sw::launch<mesh>([&](auto& rank) {
    sw::eager on(rank);
    sw::bind_eager<one_model, plan, mesh, double> model{};
    sw::initialise(model, on, 5);
    auto& weight = model.net.weight;
    auto& bias = model.net.bias;
    const auto x =
        sw::dtensor_of<double, sw::shape<9, 6>, mesh, sw::on<r, S<0>>, sw::on<c, U>>::distribute(on, some<double>(54, 1));
    const auto t =
        sw::dtensor_of<double, sw::shape<9, 7>, mesh, sw::on<r, S<0>>, sw::on<c, S<1>>>::distribute(on, some<double>(63, 2));
    for (int s = 0; s < 5; ++s) {
      const auto apart = model(x) - t;
      const double loss = sw::mean(apart * apart).item();
      if (rank.index() == 0) losses.push_back(loss);
      const auto dy = apart * (2.0 / 63);
      const auto weight_gradient = sw::reduce_gradient<r>(sw::linear_product(sw::permute<1, 0>(dy), sw::permute<1, 0>(x)));
      const auto bias_gradient = sw::reduce_gradient<r>(sw::sum<0>(dy));
      static_assert(
          sw::checked_update<std::remove_cvref_t<decltype(weight)>, std::remove_cvref_t<decltype(weight_gradient)>>::ok);
      static_assert(
          sw::checked_update<std::remove_cvref_t<decltype(bias)>, std::remove_cvref_t<decltype(bias_gradient)>>::ok);
      weight = weight - sw::redistribute<r, U>(weight_gradient) * 0.3;
      bias = bias - sw::redistribute<r, U>(bias_gradient) * 0.3;
    }
  });
  return losses;
}

template <class r, class c>
struct one_task {
  using inputs = sw::inputs<sw::input_tensor<double, sw::shape<9, 6>, sw::on<r, S<0>>, sw::on<c, U>>,
                            sw::input_tensor<double, sw::shape<9, 7>, sw::on<r, S<0>>, sw::on<c, S<1>>>>;
  constexpr auto operator()(const auto& model, const auto& x, const auto& t) const {
    const auto apart = model(x) - t;
    return sw::mean(apart * apart);
  }
};

template <int M, int N>
std::vector<double> by_program() {
  using mesh = grid<M, N>;
  using plan = sw::plan<sw::data_parallel<rows<M>>, sw::at<"net", sw::colwise<cols<N>>>>;
  using step = sw::train_step<one_model, one_task<rows<M>, cols<N>>, plan, mesh, sw::sgd<>, sw::pipeline<>, double>;
  std::vector<double> losses;
  sw::launch<mesh>([&](auto& rank) {
    sw::executor<step, std::remove_reference_t<decltype(rank)>> program(rank);
    program.initialise(5);
    program.set_input(0, some<double>(54, 1));
    program.set_input(1, some<double>(63, 2));
    sw::step_env env;
    env.lr = 0.3;
    for (int s = 1; s <= 5; ++s) {
      env.step = s;
      program.run(env);
      if (rank.index() == 0) losses.push_back(program.loss());
    }
  });
  return losses;
}

}  // namespace

TEST_CASE("eager: every function equals its single-rank result on 1, 2, 3, 4 and 8 ranks") {
  book results;
  run_all<1, 1>(results);
  const int single = results.compared();
  CHECK(results.names() == 41);
  run_all<2, 1>(results);
  run_all<1, 3>(results);
  run_all<2, 2>(results);
  run_all<2, 4>(results);
  // each rank of each run compared everything
  CHECK(results.compared() - single == (2 + 3 + 4 + 8) * (single + static_cast<int>(results.names())));
}

TEST_CASE("eager: four layers under four styles train as on one rank and run eagerly with the same bits") {
  check_training<four_model, four_plan>();
}

TEST_CASE("eager: a plan for layers.3 alone trains as on one rank and runs eagerly with the same bits") {
  check_training<stack_model, stack_plan>();
}

TEST_CASE("eager: the forward of a traced program and of the eager model are the same bits") {
  book results;
  check_forward<1, 1>(results);
  check_forward<1, 3>(results);
  check_forward<2, 4>(results);
  CHECK(results.compared() == 11);
}

TEST_CASE("eager: a training step written by hand equals the compiled one") {
  const auto single = by_hand<1, 1>(), many = by_hand<2, 3>(), program = by_program<2, 3>();
  CHECK(single.size() == 5);
  CHECK(single.back() < 0.8 * single.front());
  for (std::size_t i = 0; i < single.size(); ++i) {
    CHECK(many.at(i) == doctest::Approx(single[i]).epsilon(1e-13));
    CHECK(many.at(i) == doctest::Approx(program.at(i)).epsilon(1e-13));
  }
}
