// SPDX-License-Identifier: Apache-2.0
// pending: a redistributed tensor that may still be on its way. redistribute_async starts, wait() ends.
#pragma once

#include <utility>

#include <shardwise/graph/functions/functions.hpp>

namespace shardwise::inline v0_1 {

template <tensor X>
class pending;

namespace detail {

// A tensor whose redistributions are started and not waited for; its steps follow each other.
template <class X>
struct departing {
  using departing_type = X;
  static constexpr spec sp = X::sp;
  using mesh_type = typename X::mesh_type;

  typename X::flight_type flight;

  template <op_code Op, op_attr A, spec Out>
  static constexpr auto apply(double f, const departing& x) {
    using out_type = typename X::template placed_like<Out>;
    return departing<out_type>{X::template depart<Op, A, Out>(f, x.flight)};
  }
};

template <class X>
constexpr auto arrival(departing<X>&& d) {
  return pending<X>(std::move(d.flight));
}
template <class Mesh>
constexpr auto arrival(unresolved<Mesh>&& u) {
  return u;
}

}  // namespace detail

// Owns the result and what its transfer uses; it cannot be copied, assigned or computed with. The only way out is
// `std::move(p).wait()`. One that is dropped waits in its destructor, since others write into its memory; then a checked
// build (SHARDWISE_CHECKED) ends with the operation's name, unless an exception is under way. In a traced graph a dropped
// one is an error of the program.
template <tensor X>
class [[nodiscard("wait() is the only way to the tensor")]] pending {
  using flight_type = typename X::flight_type;

 public:
  using pending_type = X;
  // Seen as a tensor, so that operations can say why they refuse it.
  static constexpr spec sp = X::sp;
  using mesh_type = typename X::mesh_type;

  explicit constexpr pending(flight_type&& f) : flight_(std::move(f)) {}
  constexpr pending(pending&& p) noexcept : flight_(p.release_flight()) {}
  pending& operator=(pending&&) = delete;
  constexpr ~pending() { X::cancel(flight_); }

  // The tensor, when it is there. It can be taken once: a second wait() is an error of the program, or throws.
  constexpr X wait() && { return X::arrive(release_flight()); }
  template <class Y = X>
  constexpr auto wait() const& {
    return detail::refused<problem::pending_kept, op_code::wait, operand_t<Y::sp>>(*this);
  }
  // f of the tensor, still on its way: f is made of views (to_local, permute, ...), redistributions and operations of one
  // operand, which follow on the stream.
  template <class F>
  constexpr auto then(F f) && {
    return detail::arrival(f(detail::departing<X>{release_flight()}));
  }
  constexpr const flight_type& flight() const { return flight_; }
  // What is on its way, for those who let it arrive elsewhere: see executor::set_input.
  constexpr flight_type release() && { return release_flight(); }

 private:
  constexpr flight_type release_flight() { return std::exchange(flight_, X::landed(flight_)); }

  flight_type flight_;
};

namespace detail {

// A redistribution of X, by `f`, that is not waited for; implicit tensors come back strict.
template <class X, class F>
constexpr auto set_off(const X& x, F f) {
  if constexpr (is_implicit<X>) return set_off(x.strict, f);
  else if constexpr (!resolved<X>) return x;
  else return arrival(f(departing<X>{x.take_off()}));
}

}  // namespace detail

// redistribute<Axis, To>(x), started: a pending tensor. Collectives are issued in program order and done in it.
template <class Axis, class To, tensor A>
  requires(!detail::is_on<Axis>::value)
constexpr auto redistribute_async(const A& a) {
  return detail::set_off(a, [](const auto& x) { return redistribute<Axis, To>(x); });
}
template <class Axis, template <int, std::int64_t> class To, tensor A>
constexpr auto redistribute_async(const A& a) {
  return redistribute<Axis, To>(a);
}
// To several placements at once, as redistribute: every step is on its way.
template <redistribution_policy Policy, class... To, tensor A>
  requires(sizeof...(To) > 0 && (detail::is_on<To>::value && ...))
constexpr auto redistribute_async(const A& a) {
  return detail::set_off(a, [](const auto& x) { return redistribute<Policy, To...>(x); });
}
template <class... To, tensor A>
  requires(sizeof...(To) > 0 && (detail::is_on<To>::value && ...))
constexpr auto redistribute_async(const A& a) {
  return redistribute_async<redistribution_policy::late, To...>(a);
}

// x itself, once it is there. An input of a program may be on its way when the program starts (executor::set_input takes
// a pending tensor): the program goes on until here. Eager tensors are there.
template <tensor A>
constexpr auto wait(const A& a) {
  return detail::apply<op_code::wait, detail::no_attr>(0, a);
}

// As input_like, of a tensor that may be on its way: the program's first operation waits for it.
template <class Input>
struct arriving {
  template <class Mesh>
  using spec_type = typename Input::template spec_type<Mesh>;
  static constexpr bool waits = true;
};

}  // namespace shardwise::inline v0_1
