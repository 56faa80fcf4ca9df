// SPDX-License-Identifier: Apache-2.0
// dtensor: the eager tensor: operations compute at once on rank threads, with the executor's own kernels and rules.
#pragma once

#include <iterator>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <shardwise/graph/pending.hpp>
#include <shardwise/runtime/eager_flight.hpp>
#include <shardwise/runtime/eager_program.hpp>

namespace shardwise {

namespace detail {
// Not <ranges>, which costs every program a tenth of a second.
template <class R>
concept contiguous_values = requires(const R& r) {
  *std::data(r);
  std::size(r);
};
}  // namespace detail

// A value: operations make new tensors; views (permute, reshape, slice, redistributions that move nothing) share
// storage. A default-made tensor has no value until one is assigned. Dims with run-time extents (dyn) have their bound.
template <spec S, class Mesh, class Rank = thread_rank<Mesh>>
class dtensor {
 public:
  static constexpr spec sp = S;
  using mesh_type = Mesh;
  using rank_type = Rank;
  using element = element_t<sp.type>;

  dtensor() = default;

  // --- from values: all ranks call these alike
  // --------------------------------------------------------------------------

  // This rank's block, row-major.
  template <detail::contiguous_values Range>
  static dtensor from_local(const eager<Rank>& on, const Range& values) {
    static_assert(safe_from<Range>,
                  "shardwise: from_local: floating-point values for a tensor of integers; convert them first.");
    dtensor t(on);
    check_count("from_local", t, std::size(values), t.value_.layout.numel(), "this rank's block",
                "pass the rank's own block, or the whole tensor to distribute");
    for (std::size_t i = 0; i < t.size(); ++i) t.data()[i] = static_cast<element>(std::data(values)[i]);
    return t;
  }

  // This rank's part of a whole (global, row-major) tensor. Law: full_tensor() is what was given. Where the tensor is
  // partial, coordinate 0 of the axis keeps the value and the others hold the neutral element (avg, max, min: the
  // value).
  template <detail::contiguous_values Range>
  static dtensor distribute(const eager<Rank>& on, const Range& global) {
    static_assert(safe_from<Range>,
                  "shardwise: distribute: floating-point values for a tensor of integers; convert them first.");
    dtensor t(on);
    check_count("distribute", t, std::size(global), numel(sp), "the whole tensor",
                "pass all its elements in row-major order, or the rank's own block to from_local");
    if (const neutral n = neutral_here(on.rank()); n.needed)
      t.fill(n.value);
    else
      runtime::load_block(std::data(global), t.data(), t.value_.layout);
    return t;
  }

  static dtensor full(const eager<Rank>& on, element value) {
    dtensor t(on);
    const neutral n = neutral_here(on.rank());
    t.fill(n.needed ? n.value : value);
    return t;
  }
  static dtensor zeros(const eager<Rank>& on) { return full(on, element(0)); }
  static dtensor ones(const eager<Rank>& on) { return full(on, element(1)); }

  // A parameter's initial values: those that executor::initialise gives the parameter of this path.
  static dtensor initial(const eager<Rank>& on, init_kind kind, double scale, std::uint64_t seed,
                         std::string_view path) {
    dtensor t(on);
    runtime::initialise_block(std::span<element>(t.data(), t.size()), t.value_.layout, kind, scale, seed, path);
    return t;
  }

  // --- to values
  // --------------------------------------------------------------------------------------------------------

  bool has_value() const { return static_cast<bool>(value_.storage); }

  local_block<element> to_local() const {
    value_.live();
    return {{data(), value_.layout.span()}, value_.layout};
  }
  bool shares_storage_with(const auto& other) const { return value_.storage == other.value_.storage; }

  // The whole tensor on every rank, replicate and densely stored. Collective on every axis where it is not whole.
  auto full_tensor() const { return contiguous(*this).template whole<Mesh::axes - 1>(); }

  // The value of a tensor of one element, summed where it is partial. Collective as full_tensor.
  element item() const {
    static_assert(numel(sp) == 1,
                  "shardwise: item: the tensor has more than one element; use full_tensor or to_local.");
    return full_tensor().to_local().data[0];
  }

  // --- the operations' way in: see graph/tensor.hpp
  // -----------------------------------------------------------------------

  template <op_code Op, op_attr A, spec Out, class... X>
  static dtensor<Out, Mesh, Rank> record(double f, const dtensor& first, const X&... more) {
    using out_type = dtensor<Out, Mesh, Rank>;
    if constexpr (std::is_same_v<out_type, dtensor> && Op == op_code::redistribute) {
      return first;
    } else {
      static constexpr runtime::eager_operation<Rank> application = operation<Op, A, out_type, X...>();
      const runtime::eager_value<Rank>* const operands[] = {&first.value_, &more.value_...};
      return out_type(runtime::apply_eagerly<Rank>(application, f, operands));
    }
  }

  // On the way, on the rank's stream: see graph/pending.hpp.
  using flight_type = runtime::eager_flight<Rank>;
  template <spec Out>
  using placed_like = dtensor<Out, Mesh, Rank>;

  flight_type take_off() const { return flight_type(value_); }
  template <op_code Op, op_attr A, spec Out>
  static flight_type depart(double f, const flight_type& from) {
    if constexpr (Op == op_code::redistribute && Out == sp) {
      return from;
    } else {
      static constexpr runtime::eager_operation<Rank> application = operation<Op, A, placed_like<Out>>();
      return runtime::depart_eagerly<Rank>(application, f, from);
    }
  }
  static dtensor arrive(flight_type f) {
    runtime::land(f);
    return dtensor(std::move(f.value));
  }
  static void abandon(flight_type& f) noexcept { runtime::drop(f); }

  // A constant: the same number on every rank. Only fills have no operands.
  template <op_code, spec Out>
  static dtensor<Out, Mesh, Rank> record_leaf(double f, const dtensor& like) {
    dtensor<Out, Mesh, Rank> t(runtime::eager_value<Rank>(like.value_.live(), dtensor<Out, Mesh, Rank>::sp));
    t.fill(static_cast<element_t<dtensor<Out, Mesh, Rank>::sp.type>>(f));
    return t;
  }

  template <opaque_function Function, spec Out, class... X>
  static dtensor<Out, Mesh, Rank> record_opaque(const dtensor& first, const X&... more) {
    using out_type = dtensor<Out, Mesh, Rank>;
    static constexpr runtime::eager_operation<Rank> application = opaque_operation<Function, out_type>();
    const runtime::eager_value<Rank>* const operands[] = {&first.value_, &more.value_...};
    return out_type(runtime::apply_eagerly<Rank>(application, 0, operands));
  }

  // Every node of a program at once, one after the other, each in storage of its own; the tensors are its inputs, in
  // order. The outputs, as a tuple. Collective where the program is.
  template <class Program, class... X>
  static auto run(const dtensor& first, const X&... more) {
    const runtime::eager_value<Rank>* const in[] = {&first.value_, &more.value_...};
    return results<Program>(runtime::run_eagerly<Program, Rank>(in),
                            std::make_index_sequence<static_cast<std::size_t>(Program::program.output_count)>{});
  }

 private:
  template <spec, class, class>
  friend class dtensor;

  template <class Program, int Index>
  static constexpr spec output_spec = Program::program.spec_of(Program::program.outputs[Index]);
  template <class Program, std::size_t... I>
  static auto results(std::vector<runtime::eager_value<Rank>> values, std::index_sequence<I...>) {
    return std::tuple<dtensor<output_spec<Program, static_cast<int>(I)>, Mesh, Rank>...>(
        dtensor<output_spec<Program, static_cast<int>(I)>, Mesh, Rank>(
            std::move(values[static_cast<std::size_t>(Program::program.outputs[I])]))...);
  }

  template <opaque_function Function, class Result>
  static constexpr runtime::eager_operation<Rank> opaque_operation() {
    runtime::eager_operation<Rank> x{};
    x.op = op_code::opaque;
    x.in = &sp;
    x.out = &Result::sp;
    x.kernel = kernel<op_code::opaque, Result::sp.type>();
    x.function = Function;
    return x;
  }

  explicit dtensor(const eager<Rank>& on) : value_(on.core(), sp) {}
  explicit dtensor(runtime::eager_value<Rank>&& value) : value_(std::move(value)) {}

  element* data() const { return reinterpret_cast<element*>(value_.data); }
  std::size_t size() const { return static_cast<std::size_t>(value_.layout.numel()); }
  void fill(element value) {
    for (std::size_t i = 0; i < size(); ++i) data()[i] = value;
  }

  template <class Range>
  static constexpr bool safe_from =
      std::is_floating_point_v<element> || std::is_integral_v<std::remove_cvref_t<decltype(*std::data(std::declval<const Range&>()))>>;

  static void check_count(const char* name, const dtensor& t, std::size_t given, std::int64_t wanted, const char* what,
                          const char* fix) {
    if (static_cast<std::int64_t>(given) == wanted) return;
    throw std::invalid_argument(std::string("shardwise: ") + name + ": " + std::to_string(given) +
                                " elements are given; " + what + " has " + std::to_string(wanted) + " (block of rank " +
                                std::to_string(t.value_.core->rank->index()) + ": " +
                                runtime::extents_of(t.value_.layout) + "); " + fix);
  }

  // What a rank holds of a partial tensor when it does not hold the value.
  struct neutral {
    bool needed = false;
    element value{};
  };
  static neutral neutral_here(const Rank& rank) {
    for (int a = 0; a < sp.axes; ++a)
      if (sp.place[a].is_partial() && rank.coordinate(a) != 0) {
        if (sp.place[a].op == reduction::sum) return {true, element(0)};
        if (sp.place[a].op == reduction::product) return {true, element(1)};
      }
    return {};
  }

  template <op_code Op, dtype Type>
  static constexpr runtime::kernel_function<Rank> kernel() {
    if constexpr (runs_kernel(Op))
      return runtime::kernel_entry<runtime::signature{Op, Type}, Rank>();
    else
      return nullptr;  // always a view
  }

  template <op_code Op, op_attr A, class Result, class... More>
  static constexpr runtime::eager_operation<Rank> operation() {
    using last = std::tuple_element_t<sizeof...(More), std::tuple<dtensor, More...>>;
    node n = empty_node;
    n.op = Op;
    n.a = A;
    n.inputs = 1 + static_cast<int>(sizeof...(More));
    const bool view = is_view(n, sp, Result::sp);
    return {Op,
            A,
            &sp,
            &Result::sp,
            view,
            view ? 0 : runtime::eager_workspace(n, sp, last::sp, Result::sp),
            Op == op_code::redistribute ? runtime::redistribution_signature(hash_of(sp), hash_of(Result::sp)) : 0,
            kernel<Op, Result::sp.type>()};
  }

  // Axes are made whole from the last to the first, which is how nested shards of one dim are undone.
  template <int Axis>
  auto whole() const {
    if constexpr (Axis < 0) {
      return *this;
    } else {
      constexpr spec out = [] {
        spec s = sp;
        s.place[Axis] = replicate_value();
        return s;
      }();
      constexpr op_attr attr{{Axis, pack(replicate_value()), 0, 0, 0, 0}};
      return record<op_code::redistribute, attr, out>(0, *this).template whole<Axis - 1>();
    }
  }

  runtime::eager_value<Rank> value_;
};

// dtensor_of<float, shape<8, 16>, mesh<dp, tp>, on<dp, shard<0>>>, as spec_of.
template <class T, class Shape, class Mesh, class... Placements>
using dtensor_of = dtensor<spec_of<T, Shape, Mesh, Placements...>::value, Mesh>;

// What a plan binds parameters to when a model runs eagerly: see bind_eager.
template <class Mesh, dtype Type, class Rank = thread_rank<Mesh>>
struct eager_context {
  using mesh_type = Mesh;
  static constexpr dtype type = Type;
  template <spec S>
  using tensor = dtensor<S, Mesh, Rank>;
};

}  // namespace shardwise
