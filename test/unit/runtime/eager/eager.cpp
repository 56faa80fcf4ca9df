// SPDX-License-Identifier: Apache-2.0
// Eager tensors as values: storage and views, what they allocate, blocks of uneven shards, and what misuse says.
#include <shardwise/shardwise.hpp>

#include <doctest/doctest.h>

#include <thrown.hpp>

#include <array>
#include <cstdlib>
#include <numeric>
#include <string>
#include <vector>

namespace {

thread_local long news = 0;  // calls of operator new by this thread

void* counted(std::size_t bytes, std::size_t alignment) {
  ++news;
  const std::size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  void* const p =
      alignment > alignof(std::max_align_t) ? std::aligned_alloc(alignment, rounded) : std::malloc(bytes ? bytes : 1);
  if (!p) throw std::bad_alloc();
  return p;
}

}  // namespace

// Weak, so that another test of this executable may count too; then the positive control below says so.
#define SHARDWISE_WEAK __attribute__((weak))
SHARDWISE_WEAK void* operator new(std::size_t n) { return counted(n, 1); }
SHARDWISE_WEAK void* operator new(std::size_t n, std::align_val_t a) { return counted(n, static_cast<std::size_t>(a)); }
SHARDWISE_WEAK void operator delete(void* p) noexcept { std::free(p); }
SHARDWISE_WEAK void operator delete(void* p, std::size_t) noexcept { std::free(p); }
SHARDWISE_WEAK void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
SHARDWISE_WEAK void operator delete(void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }

namespace {

namespace sw = shardwise;
using test::mentions, test::thrown;

struct dp : sw::axis<2> {};
struct tp : sw::axis<2> {};
struct one : sw::axis<1> {};
struct wide : sw::axis<4> {};
using mesh = sw::mesh<dp, tp>;
using single = sw::mesh<one>;
using four = sw::mesh<wide>;

template <class Shape, class... P>
using matrix = sw::dtensor_of<double, Shape, mesh, P...>;

std::vector<double> iota(std::size_t n) {
  std::vector<double> v(n);
  std::iota(v.begin(), v.end(), 0.0);
  return v;
}

// The message of what f throws.

}  // namespace

TEST_CASE("eager: a round of operations allocates nothing once it has run") {
  sw::launch<mesh>([](auto& rank) {
    sw::eager on(rank);
    const auto values = iota(8 * 12);
    using input = matrix<sw::shape<8, 12>, sw::on<dp, sw::shard<0>>, sw::on<tp, sw::reduced>>;
    using weight = matrix<sw::shape<16, 12>, sw::on<dp, sw::reduced>, sw::on<tp, sw::shard<0>>>;
    const auto x = input::distribute(on, values);
    auto w = weight::full(on, 0.01);
    int operations = 0;
    auto round = [&] {
      const auto h = sw::linear_product(x, w);                     // 1
      const auto a = sw::dropout(sw::gelu(h), 0.1);                // 3
      const auto v = sw::permute<1, 0>(a);                         // a view
      const auto g = sw::linear_product(v, sw::permute<1, 0>(x));  // 4
      const auto s = sw::reduce_gradient<dp>(g);                   // 5, an all-reduce
      w = w - sw::redistribute<dp, sw::reduced>(s) * 1e-9;         // 7
      const auto whole = a.full_tensor();                          // 9, two all-gathers
      operations = 9;
      return whole.to_local().data[3];
    };
    round();
    const long warm = news;
    const auto blocks = on.allocations();
    CHECK(blocks > 0);
    for (int i = 0; i < 10; ++i) round();
    const long after = news;
    CHECK(on.allocations() == blocks);
    CHECK(after == warm);
    CHECK(operations == 9);
    // the control: the counter counts, unless another test of this executable has replaced operator new
    const long before = news;
    delete new std::vector<double>(100);
    CHECK_MESSAGE(news > before, "operator new is counted elsewhere; the count of this test says nothing");
  });
}

TEST_CASE("eager: views share storage, operations do not, and values outlive their names") {
  sw::launch<mesh>([](auto& rank) {
    sw::eager on(rank);
    using input = matrix<sw::shape<6, 4>, sw::on<dp, sw::shard<0>>>;
    auto x = input::distribute(on, iota(24));
    const auto turned = sw::permute<1, 0>(x);
    const auto halves = sw::reshape<6, 2, 2>(x);
    const auto cut = sw::slice<1, 1, 2>(x);
    const auto renamed = sw::redistribute<tp, sw::reduced>(x);
    CHECK(turned.shares_storage_with(x));
    CHECK(halves.shares_storage_with(x));
    CHECK(cut.shares_storage_with(x));
    CHECK(!renamed.shares_storage_with(x));  // a value, whose bytes are x's until one of the two is written
    CHECK(!sw::relu(x).shares_storage_with(x));
    CHECK(!sw::contiguous(turned).shares_storage_with(x));
    x = input::zeros(on);
    const double first = rank.coordinate(0) * 12.0;
    CHECK(turned.to_local()(3, 2) == first + 11);
    CHECK(halves.to_local()(1, 1, 0) == first + 6);
    CHECK(cut.to_local()(2, 1) == first + 10);
    CHECK(cut.to_local().data.size() == 10);
    CHECK(x.to_local()(2, 3) == 0);
  });
}

TEST_CASE("eager: a redistribution that moves nothing is copied when it must be, and once") {
  sw::launch<single>([](auto& rank) {
    sw::eager on(rank);
    using input = sw::dtensor_of<double, sw::shape<6, 4>, single>;
    using numbers = std::vector<double>;
    const auto of = [](const auto& t) {
      const auto block = sw::contiguous(sw::add(t, 0.0)).to_local();
      return numbers(block.data.begin(), block.data.end());
    };
    const auto plus = [](numbers v, double by) {
      for (double& e : v) e += by;
      return v;
    };
    const numbers was = iota(24);
    const auto same = [](const auto& x) { return sw::redistribute<one, sw::replicate>(x); };
    const auto again = [](const auto& x) { return sw::redistribute<one, sw::shard<0>>(x); };
    const auto bytes_of = [&](auto&& f) {
      const std::int64_t before = on.bytes();
      f();
      return on.bytes() - before;
    };
    const auto x = input::distribute(on, was);
    const auto turned = sw::permute<1, 0>(x);
    const auto block = x.to_local();
    {  // reading costs nothing but the name
      CHECK(bytes_of([&] {
              const auto y = same(x);
              const auto z = again(y);
              CHECK(!z.shares_storage_with(y));
            }) == 2 * 64);
      const auto y = same(x);
      CHECK(of(y) == was);
    }
    {  // the operand is written: what was made of it is copied once, and pointers to the operand stay
      const auto y = same(x), z = same(y);
      const auto seen = sw::permute<1, 0>(y);
      sw::add_(x, 1.0);
      CHECK(numbers(block.data.begin(), block.data.end()) == plus(was, 1));
      CHECK(of(turned) == of(sw::permute<1, 0>(x)));
      CHECK(of(y) == was);
      CHECK(of(z) == was);
      CHECK(of(seen) == of(sw::permute<1, 0>(y)));
      sw::add_(y, 10.0);
      CHECK(of(seen) == of(sw::permute<1, 0>(y)));
      CHECK(of(y) == plus(was, 10));
      CHECK(of(z) == was);
      CHECK(of(x) == plus(was, 1));
    }
    {  // the redistribution is written
      const auto y = same(x), z = same(x);
      sw::add_(sw::permute<1, 0>(y), 10.0);
      CHECK(of(y) == plus(was, 11));
      CHECK(of(z) == plus(was, 1));
      CHECK(of(x) == plus(was, 1));
    }
    {  // nobody else has what is written
      auto y = sw::add(x, 1.0);
      sw::add_(y, 0.0);  // blocks of all sizes are there
      auto z = same(y);
      y = input{};
      const auto* const at = z.to_local().data.data();
      sw::add_(z, 1.0);
      CHECK(z.to_local().data.data() == at);
      CHECK(of(z) == plus(was, 3));
    }
    {  // pointers to both, and to what was redistributed before and after
      auto y = same(x);
      const auto z = same(y);
      const auto of_y = y.to_local();
      CHECK(of_y.data.data() != block.data.data());
      sw::add_(x, 1.0);
      sw::add_(z, 5.0);
      CHECK(numbers(of_y.data.begin(), of_y.data.end()) == plus(was, 1));
      const auto v = y.local_mdspan();
      const auto later = same(y);
      v[std::array{5, 3}] = -1;
      CHECK(of_y.data[23] == -1);
      CHECK(of(later) == plus(was, 1));
      CHECK(of(z) == plus(was, 6));
      CHECK(of(x) == plus(was, 2));
    }
    {  // a pointer to write through, taken while the values were one
      auto w = sw::add(x, 0.0);
      const auto y = same(w);
      const auto v = w.local_mdspan();
      v[std::array{0, 0}] = -1;
      CHECK(of(y) == plus(was, 2));
      CHECK(of(w)[0] == -1);
    }
  });
}

TEST_CASE("eager: uneven and empty shards") {
  // 5 rows over 4 ranks: 2, 2, 1, 0
  sw::launch<four>([](auto& rank) {
    sw::eager on(rank);
    using rows = sw::dtensor_of<double, sw::shape<5, 3>, four, sw::shard<0>>;
    const std::int64_t mine[] = {2, 2, 1, 0};
    const auto r = static_cast<std::size_t>(rank.index());
    const auto all = iota(15);
    const auto x = rows::distribute(on, all);
    CHECK(x.to_local().layout.ext[0] == mine[r]);
    CHECK(x.to_local().layout.origin[0] == (r < 3 ? std::int64_t(2 * r) : 5));
    const std::vector<double> block(all.begin() + static_cast<long>(r == 3 ? 15 : 6 * r),
                                    all.begin() + static_cast<long>(r < 2 ? 6 * r + 6 : 15));
    const auto y = rows::from_local(on, block);
    const auto back = y.full_tensor().to_local().data;
    CHECK(std::equal(back.begin(), back.end(), all.begin(), all.end()));
    CHECK(sw::sum(sw::relu(x)).item() == 105);
    const auto by_column = sw::redistribute<wide, sw::shard<1>>(x);
    CHECK(by_column.to_local().layout.ext[1] == (r < 3 ? 1 : 0));
    CHECK(sw::mean(by_column).item() == 7);
    // a matrix product whose inner dim is empty on the last rank
    const auto product = sw::matmul(sw::permute<1, 0>(x), x);
    CHECK(product.full_tensor().to_local()(1, 2) == 1 * 2 + 4 * 5 + 7 * 8 + 10 * 11 + 13 * 14);
  });
}

TEST_CASE("eager: full, ones and zeros hold the value however they are placed") {
  sw::launch<mesh>([](auto& rank) {
    sw::eager on(rank);
    using summed = matrix<sw::shape<3>, sw::on<dp, sw::partial<>>, sw::on<tp, sw::shard<0>>>;
    using multiplied = matrix<sw::shape<3>, sw::on<dp, sw::partial<sw::reduction::product>>>;
    using averaged =
        matrix<sw::shape<3>, sw::on<dp, sw::partial<sw::reduction::avg>>, sw::on<tp, sw::partial<sw::reduction::max>>>;
    for (int i = 0; i < 3; ++i) {
      CHECK(summed::full(on, 2.5).full_tensor().to_local()(i) == 2.5);
      CHECK(multiplied::full(on, 2.5).full_tensor().to_local()(i) == 2.5);
      CHECK(averaged::full(on, 2.5).full_tensor().to_local()(i) == 2.5);
      CHECK(summed::ones(on).full_tensor().to_local()(i) == 1);
      CHECK(multiplied::zeros(on).full_tensor().to_local()(i) == 0);
    }
    using scalar = sw::dtensor_of<double, sw::shape<>, mesh, sw::on<tp, sw::partial<>>>;
    CHECK(scalar::full(on, 4).item() == 4);
  });
}

TEST_CASE("eager: dropout masks follow seed, step and program order") {
  sw::launch<mesh>([](auto& rank) {
    sw::eager on(rank);
    const auto x = matrix<sw::shape<16, 8>, sw::on<dp, sw::shard<0>>>::ones(on);
    auto draw = [&] {
      const auto whole = sw::dropout(x, 0.5).full_tensor();
      const auto d = whole.to_local().data;
      return std::vector<double>(d.begin(), d.end());
    };
    on.start_step(1, 1);
    const auto first = draw(), second = draw();
    CHECK(on.site() == 2);
    CHECK(first != second);
    on.rewind(0);
    CHECK(draw() == first);
    on.start_step(1, 1);
    CHECK(draw() == first);
    on.start_step(1, 2);
    CHECK(draw() != first);
    on.start_step(2, 1);
    CHECK(draw() != first);
    int kept = 0;
    for (double v : first) {
      CHECK((v == 0 || v == 2));
      kept += v != 0 ? 1 : 0;
    }
    CHECK(kept > 40);
    CHECK(kept < 88);
  });
}

TEST_CASE("eager: what misuse says") {
  sw::launch<mesh>([](auto& rank) {
    sw::eager on(rank);
    using input = matrix<sw::shape<6, 4>, sw::on<dp, sw::shard<0>>>;
    const std::string block = thrown([&] { input::from_local(on, iota(24)); });
    CHECK(mentions(block, "from_local: 24 elements are given; this rank's block has 12"));
    CHECK(mentions(block, "3 x 4"));
    CHECK(mentions(block, "pass the rank's own block, or the whole tensor to distribute"));
    CHECK(mentions(thrown([&] { input::distribute(on, iota(12)); }),
                   "distribute: 12 elements are given; the whole tensor has 24"));
    CHECK(mentions(thrown([&] { sw::relu(input{}); }), "a tensor without a value is used"));
    const auto x = input::ones(on);
    CHECK(mentions(thrown([&] { x + input{}; }), "a tensor without a value is used"));
    sw::eager other(rank);
    CHECK(mentions(thrown([&] { x + input::ones(other); }), "belong to different eager runs"));
  });
}

TEST_CASE("eager: an operation that fails names itself and its rank") {
  const std::string said = thrown([] {
    sw::launch<mesh>([](auto& rank) {
      sw::eager on(rank);
      const auto table = matrix<sw::shape<5, 4>, sw::on<dp, sw::reduced>>::ones(on);
      const std::vector<int> ids{0, 1, 2, 7};
      const auto index = sw::dtensor_of<std::int32_t, sw::shape<4>, mesh, sw::on<dp, sw::shard<0>>>::distribute(on, ids);
      sw::embedding(table, index).full_tensor();
    });
  });
  CHECK(mentions(said, "index 7 is outside 0..4"));
  CHECK(mentions(said, "(in embedding, eager, rank "));
}

TEST_CASE("eager: ranks that run different collectives are told, when checked") {
  const std::string said = thrown([] {
    sw::launch<sw::mesh<dp>>([](auto& rank) {
      sw::eager on(rank, sw::eager_checks::agree);
      const auto a = sw::dtensor_of<double, sw::shape<4>, sw::mesh<dp>, sw::shard<0>>::ones(on);
      const auto b = sw::dtensor_of<double, sw::shape<4>, sw::mesh<dp>, sw::partial<>>::ones(on);
      CHECK(a.full_tensor().to_local()(3) == 1);
      if (rank.index() == 0) a.full_tensor();
      else b.full_tensor();
    });
  });
  CHECK(mentions(said, "disagree on the collective to run next"));
}

TEST_CASE("eager: tensors may outlive their run, but not work") {
  using tensor = sw::dtensor_of<double, sw::shape<3>, single>;
  tensor kept;
  sw::launch<single>([&](auto& rank) {
    sw::eager on(rank);
    kept = tensor::ones(on);
  });
  CHECK(kept.has_value());
  CHECK(mentions(thrown([&] { sw::relu(kept); }), "after its eager run has ended"));
  kept = tensor{};
}

namespace {

template <class Bound = sw::unbound>
struct net : sw::module<net<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<6, 4>, inner));
  constexpr auto forward(const auto& x) const { return inner(x); }
};
template <class B>
using net_model = net<B>;
struct task {
  using inputs = sw::inputs<sw::input_tensor<double, sw::shape<8, 6>>>;
  constexpr auto operator()(const auto& model, const auto& x) const { return sw::mean(model(x)); }
};

}  // namespace

TEST_CASE("eager: initial values are those of the executor; parameters of another plan are refused") {
  sw::launch<mesh>([](auto& rank) {
    using plan = sw::plan<sw::at<"inner", sw::colwise<tp>>>;
    using step = sw::forward_step<net_model, task, plan, mesh, sw::pipeline<>, double>;
    sw::executor<step, std::remove_reference_t<decltype(rank)>> program(rank);
    program.initialise(3);
    sw::eager on(rank);
    sw::bind_eager<net_model, plan, mesh, double> model{};
    CHECK(!model.inner.weight.has_value());
    sw::initialise(model, on, 3);
    std::vector<std::string> names;
    sw::for_each_parameter(model, [&](const std::string& path, auto& p) {
      names.push_back(path);
      const auto mine = p.to_local().data;
      const auto theirs = program.parameter(program.parameter_index(path));
      CHECK(std::equal(mine.begin(), mine.end(), theirs.begin(), theirs.end()));
    });
    CHECK(names == std::vector<std::string>{"inner.weight", "inner.bias"});
    sw::bind_eager<net_model, sw::plan<>, mesh, double> whole{};
    const std::string said = thrown([&] { sw::load_parameters(whole, on, program); });
    CHECK(mentions(said, "parameter 'inner.weight' has other extents, placements or elements"));
  });
}
