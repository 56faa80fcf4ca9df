// SPDX-License-Identifier: Apache-2.0
// A redistribution that is started and waited for gives the bits of one that is not, for every transition, at once and as
// a program, on 2, 3, 4 and 8 ranks with uneven and empty blocks.
#include <doctest/doctest.h>

#include <both_ways.hpp>

namespace {

using namespace test;

template <int N>
struct ring : sw::axis<N> {};
template <int N>
using line = sw::mesh<ring<N>>;

template <int D, int Block = 1>
using S = sw::shard<D, Block>;
using R = sw::replicate;
using U = sw::reduced;
using P = sw::partial<>;
template <sw::reduction Op>
using Q = sw::partial<Op>;

template <class Axis, class To>
struct at_once {
  constexpr auto operator()(const auto& x) const { return sw::redistribute<Axis, To>(x); }
};
template <class Axis, class To>
struct started {
  constexpr auto operator()(const auto& x, const auto& w) const {
    auto p = sw::redistribute_async<Axis, To>(x);
    const auto meanwhile = sw::matmul(w, w);
    return std::tuple{std::move(p).wait(), meanwhile};
  }
};

float value_at(std::int64_t i, int salt) { return static_cast<float>((i * 37 + 11 + salt * 5) % 101) / 7 - 4; }

template <int N, class From, class To, class Shape = sw::shape<5, 3>>
void same() {
  using X = sw::dtensor_of<float, Shape, line<N>, From>;
  sw::launch<line<N>>([](auto& rank) {
    sw::eager on(rank);
    const auto l = sw::runtime::local_layout(X::sp, rank.coordinate().data());
    std::vector<float> block(static_cast<std::size_t>(l.numel()));
    const int salt = X::sp.place[0].is_whole() ? 0 : rank.index();
    sw::runtime::each_element(
        l, [&](std::int64_t i, std::int64_t g) { block[static_cast<std::size_t>(i)] = value_at(g, salt); });
    const X x = X::from_local(on, block);
    using axis = ring<N>;
    const auto want = at_once<axis, To>{}(x);
    const auto [got, meanwhile] =
        both_ways<started<axis, To>>(rank, x, sw::dtensor_of<float, sw::shape<6, 6>, line<N>, R>::full(on, 0.5F));
    static_assert(std::is_same_v<std::remove_cvref_t<decltype(got)>, std::remove_cvref_t<decltype(want)>>);
    const bool equal = same_bits(got.to_local(), want.to_local());
    CHECK(equal);
  });
}

template <int N>
void all_transitions() {
  same<N, S<0>, R>();
  same<N, S<0>, U>();
  same<N, S<0>, S<1>>();
  same<N, S<1>, S<0>>();
  same<N, S<0>, S<0, 2>, sw::shape<8 * N, 2>>();
  same<N, P, R>();
  same<N, P, S<1>>();
  same<N, Q<sw::reduction::avg>, R>();
  same<N, Q<sw::reduction::max>, S<0>>();
  same<N, R, S<0>>();
  same<N, R, P>();
  same<N, S<0>, P>();
  same<N, R, R>();
  same<N, S<0>, R, sw::shape<1>>();
}

TEST_CASE("pending: every transition on two ranks") { all_transitions<2>(); }
TEST_CASE("pending: every transition on three ranks") { all_transitions<3>(); }
TEST_CASE("pending: every transition on four ranks") { all_transitions<4>(); }
TEST_CASE("pending: every transition on eight ranks") { all_transitions<8>(); }

// It moves, and is neither copied nor assigned; only what is given away can be waited for.
using pending_tensor = sw::pending<sw::dtensor_of<float, sw::shape<4>, line<2>, R>>;
static_assert(std::is_nothrow_move_constructible_v<pending_tensor> && !std::is_copy_constructible_v<pending_tensor>);
static_assert(!std::is_move_assignable_v<pending_tensor> && !std::is_copy_assignable_v<pending_tensor>);
template <class T>
concept can_wait = requires(T x) { static_cast<T>(x).wait(); };
static_assert(can_wait<pending_tensor&&>);  // of one that keeps its name it is a sentence: test/fail/pending_kept.cpp

// --- lists: several steps, all on their way ---------------------------------------------------------------------------

struct dp : sw::axis<2> {};
struct tp : sw::axis<2> {};
using square = sw::mesh<dp, tp>;

template <class... To>
struct list_at_once {
  constexpr auto operator()(const auto& x) const { return sw::redistribute<To...>(x); }
};
template <class... To>
struct list_started {
  constexpr auto operator()(const auto& x) const { return sw::redistribute_async<To...>(x).wait(); }
};

template <class A, class B, class C, class D>
void same_lists() {
  using X = sw::dtensor_of<float, sw::shape<5, 3>, square, sw::on<dp, A>, sw::on<tp, B>>;
  sw::launch<square>([](auto& rank) {
    sw::eager on(rank);
    std::vector<float> block(static_cast<std::size_t>(sw::runtime::local_layout(X::sp, rank.coordinate().data()).numel()));
    for (std::size_t i = 0; i < block.size(); ++i) block[i] = value_at(static_cast<std::int64_t>(i), rank.index());
    const X x = X::from_local(on, block);
    const auto want = list_at_once<sw::on<dp, C>, sw::on<tp, D>>{}(x);
    const auto [got] = both_ways<list_started<sw::on<dp, C>, sw::on<tp, D>>>(rank, x);
    const bool equal = same_bits(got.to_local(), want.to_local());
    CHECK(equal);
    // of a view, whose storage is not dense
    const auto view = sw::permute<1, 0>(x);
    if constexpr (!X::sp.place[0].is_shard() && !X::sp.place[1].is_shard()) {
      const auto plain = list_at_once<sw::on<dp, C>, sw::on<tp, D>>{}(view);
      const auto async = list_started<sw::on<dp, C>, sw::on<tp, D>>{}(view);
      const bool views = same_bits(plain.to_local(), async.to_local());
      CHECK(views);
    }
  });
}

TEST_CASE("pending: lists of placements on four ranks") {
  same_lists<S<0>, S<0>, R, R>();
  same_lists<S<0>, S<1>, S<1>, S<0>>();
  same_lists<P, S<0>, S<0>, U>();
  same_lists<P, P, S<1>, S<1>>();
  same_lists<P, P, R, R>();
  same_lists<R, U, P, S<1>>();
}

// --- programs: the finding, the wait, gradients ----------------------------------------------------------------------

// What two functions want of one tensor in the same way is sent once and waited for once.
struct twice {
  constexpr auto operator()(const auto& x) const {
    auto p = sw::redistribute_async<ring<2>, R>(x);
    auto q = sw::redistribute_async<ring<2>, R>(x);
    return std::move(p).wait() * 2.0 + std::move(q).wait();
  }
};
struct through_wait {
  constexpr auto operator()(const auto& x) const {
    auto p = sw::redistribute_async<ring<2>, U>(x);
    const auto y = std::move(p).wait();
    return y * y;
  }
};
struct without_wait {
  constexpr auto operator()(const auto& x) const {
    const auto y = sw::redistribute<ring<2>, U>(x);
    return y * y;
  }
};

TEST_CASE("pending: a graph has one start and one wait for one tensor; gradients pass through both") {
  using X = sw::dtensor_of<float, sw::shape<4, 4>, line<2>, S<0>>;
  using program = function_of<twice, X>;
  static_assert(program::traffic.collectives == 1 && count_of<program>(sw::op_code::wait) == 1);
  sw::launch<line<2>>([](auto& rank) {
    sw::eager on(rank);
    std::vector<float> all(16);
    for (std::size_t i = 0; i < 16; ++i) all[i] = value_at(static_cast<std::int64_t>(i), 0);
    const X x = X::distribute(on, all);
    const auto [y] = both_ways<twice>(rank, x);
    for (std::size_t i = 0; i < 16; ++i) CHECK(y.to_local().data[i] == all[i] * 2 + all[i]);
    const auto [a, da] = gradients_both_ways<through_wait, 0>(rank, x);
    const auto [b, db] = gradients_both_ways<without_wait, 0>(rank, x);
    const bool same_value = same_bits(a.to_local(), b.to_local()), same_gradient = same_bits(da.to_local(), db.to_local());
    CHECK(same_value);
    CHECK(same_gradient);
  });
}

// An implicit tensor comes back strict.
TEST_CASE("pending: redistribute_async of an implicit tensor") {
  using X = sw::dtensor_of<float, sw::shape<4, 4>, line<2>, S<0>>;
  sw::launch<line<2>>([](auto& rank) {
    sw::eager on(rank);
    const X x = X::ones(on);
    auto p = sw::redistribute_async<ring<2>, R>(sw::implicit(x));
    const auto y = std::move(p).wait();
    static_assert(std::remove_const_t<decltype(y)>::sp.place[0].is_replicate());
    CHECK(y.to_local().data[15] == 1);
  });
}

}  // namespace
