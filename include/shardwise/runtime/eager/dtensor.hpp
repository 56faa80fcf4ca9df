// SPDX-License-Identifier: Apache-2.0
// dtensor: the eager tensor: operations compute at once on rank threads, with the executor's own kernels and rules.
#pragma once

#include <array>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include <shardwise/graph/functions/pending.hpp>
#include <shardwise/runtime/eager/dtensor_parts.hpp>
#include <shardwise/runtime/eager/flight.hpp>
#include <shardwise/runtime/eager/program.hpp>
#include <shardwise/runtime/host/initialise.hpp>

namespace shardwise::inline v0_1 {

// A value: operations make new tensors; views (permute, reshape, slice) share storage. A redistribution is a new tensor
// whatever it moves: one that moves nothing is copied when it or its operand is written, or when pointers into both are
// asked for, not before. A default-made tensor has no value until one is assigned. Dims with run-time extents (dyn) have
// their bound.
template <spec S, class Mesh, class Rank>
class dtensor {
 public:
  static constexpr spec sp = S;
  using mesh_type = Mesh;
  using rank_type = Rank;
  using element = element_t<sp.type>;

  dtensor() = default;

  // The same tensor on a rank of another backend.
  template <class Other>
  using on_rank = dtensor<S, Mesh, Other>;

  // --- from values: all ranks call these alike; the tensor is of the rank that `on` is a run of -----------------------

  // This rank's block, row-major.
  template <class Other, detail::contiguous_values Range>
  static on_rank<Other> from_local(const eager<Other>& on, const Range& values) {
    static_assert(safe_from<Range>,
                  "shardwise: from_local: floating-point values for a tensor of integers; convert them first.");
    on_rank<Other> t(on);
    check_count("from_local", t, std::size(values), t.value_.layout->numel(), "this rank's block",
                "pass the rank's own block, or the whole tensor to distribute");
    for (std::size_t i = 0; i < t.size(); ++i)
      t.data()[i] = runtime::as_element<element>("from_local", std::data(values)[i], static_cast<std::int64_t>(i));
    return t;
  }

  // The same, and where an axis does not cut or sum the tensor, the ranks along it are asked whether their blocks are
  // equal bit for bit; the error, on every rank of that axis, names those that differ from its first one. Collective;
  // costs a gather of 8 bytes a rank for each such axis.
  template <class Other, detail::contiguous_values Range>
  static on_rank<Other> from_local(const eager<Other>& on, const Range& values, local_check check) {
    on_rank<Other> t = from_local(on, values);
    if (check == local_check::replicas) detail::check_replicas(on, t);
    return t;
  }

  // This rank's part of a whole (global, row-major) tensor. Law: full_tensor() is what was given. Where the tensor is
  // partial, coordinate 0 of the axis keeps the value and the others hold the neutral element (avg, max, min: the
  // value); a norm is not negative.
  template <class Other, detail::contiguous_values Range>
  static on_rank<Other> distribute(const eager<Other>& on, const Range& global) {
    static_assert(safe_from<Range>,
                  "shardwise: distribute: floating-point values for a tensor of integers; convert them first.");
    on_rank<Other> t(on);
    check_count("distribute", t, std::size(global), numel(sp), "the whole tensor",
                "pass all its elements in row-major order, or the rank's own block to from_local");
    t.load("distribute", on.rank(), [&](std::int64_t, std::int64_t g) { return std::data(global)[g]; });
    return t;
  }

  // The same from the data of mesh rank 0 alone; what other ranks give is not looked at, and may be empty. Collective:
  // one reduce-scatter or all-reduce along each axis, on what the axes before have left. A rank without peers
  // (fake_rank) is taken for rank 0.
  template <class Other, detail::contiguous_values Range>
  static on_rank<Other> distribute_from_first(const eager<Other>& on, const Range& global) {
    if constexpr (detail::without_peers<Other>) {
      return distribute(on, global);
    } else {
      using source = typename detail::scatter_source<sp>::template type<Mesh, Other>;
      source all(on);
      if (on.rank().index() == 0) {
        check_count("distribute_from_first", all, std::size(global), numel(sp), "the whole tensor",
                    "pass all its elements in row-major order on rank 0");
        for (std::size_t i = 0; i < all.size(); ++i)
          all.data()[i] =
              runtime::as_element<element>("distribute_from_first", std::data(global)[i], static_cast<std::int64_t>(i));
      } else {
        // the sum's neutral element: 0 would turn a -0 into 0
        all.fill(negative_zero());
      }
      auto parts = all.template settle<cutting_order<sp>().count, sp>();
      on_rank<Other> t(std::move(parts.value_));
      t.load("distribute_from_first", on.rank(), [&](std::int64_t i, std::int64_t) { return t.data()[i]; });
      return t;
    }
  }

  // A tensor that is placed like this already is itself; another one does not compile: redistribute it.
  template <class Other, spec From, class FromMesh>
  static on_rank<Other> distribute(const eager<Other>&, const dtensor<From, FromMesh, Other>& t) {
    constexpr bool same = std::is_same_v<dtensor<From, FromMesh, Other>, on_rank<Other>>;
    static_assert(
        raise<(same ? problem::none : problem::distribute_placed), operand_t<From>, FromMesh, operand_t<S>, Mesh>::ok);
    if constexpr (same) return t;
    else return {};
  }

  // Storage without values.
  template <class Other>
  static on_rank<Other> empty(const eager<Other>& on) {
    return on_rank<Other>(on);
  }
  template <class Other>
  static on_rank<Other> full(const eager<Other>& on, double value) {
    on_rank<Other> t(on);
    detail::check_element<sp, op_code::fill>(t, value, "full");
    t.load("full", on.rank(), [&](std::int64_t, std::int64_t) { return static_cast<element>(value); });
    return t;
  }
  template <class Other>
  static on_rank<Other> zeros(const eager<Other>& on) {
    return full(on, element(0));
  }
  template <class Other>
  static on_rank<Other> ones(const eager<Other>& on) {
    return full(on, element(1));
  }

  // Uniform in [0, 1), and normal with mean 0 and deviation 1: functions of (seed, global element index), so that the
  // whole tensor is the same however it is placed.
  template <class Other>
  static on_rank<Other> rand(const eager<Other>& on, std::uint64_t seed) {
    return random(on, seed,
                  [](std::uint64_t s, std::int64_t i) { return runtime::below_one<element>(runtime::uniform_value(s, i)); });
  }
  template <class Other>
  static on_rank<Other> randn(const eager<Other>& on, std::uint64_t seed) {
    return random(on, seed,
                  [](std::uint64_t s, std::int64_t i) { return host::initial_value(init_kind::normal, 1, s, 0, i); });
  }

  // A parameter's initial values: those that executor::initialise gives the parameter of this path.
  template <class Other>
  static on_rank<Other> initial(const eager<Other>& on, init_kind kind, double scale, std::uint64_t seed,
                                std::string_view path) {
    on_rank<Other> t(on);
    host::initialise_block(std::span<element>(t.data(), t.size()), *t.value_.layout, kind, scale, seed, path);
    return t;
  }

  // --- to values
  // --------------------------------------------------------------------------------------------------------

  bool has_value() const { return static_cast<bool>(value_.storage); }
  // Who is told of the calls of modules on this run's tensors, null: nobody.
  module_watcher* watcher() const { return value_.core ? value_.core->watcher : nullptr; }
  // Whose block it is.
  const Rank& rank() const { return *value_.live().rank; }

  local_block<element> to_local() const {
    value_.live();
    value_.storage.give_out();
    return {{data(), value_.layout->span()}, *value_.layout};
  }
  // This rank's block as std::mdspan, strides as stored; see local_view. Through a tensor that is not const elements can be
  // written: all tensors that share its storage (views) see it, and from then on its redistributions that move nothing are
  // copied at once. Valid as long as one of them has that storage.
  local_view<const element, sp.rank> local_mdspan() const& {
    value_.live();
    value_.storage.give_out();
    return detail::view_of<sp.rank>(static_cast<const element*>(data()), *value_.layout);
  }
  local_view<element, sp.rank> local_mdspan() & {
    auto& core = value_.live();
    value_.storage.give_out_to_write([&](std::uint32_t t) { core.finish(t); });
    return detail::view_of<sp.rank>(data(), *value_.layout);
  }
  void local_mdspan() && = delete;  // of a tensor that is gone with the expression

  bool shares_storage_with(const auto& other) const { return value_.storage == other.value_.storage; }

  // The whole tensor on every rank, replicate and densely stored. Collective on every axis where it is not whole.
  auto full_tensor() const {
    if constexpr (next_whole(sp) < 0) return detail::own_dense(*this);
    else return contiguous(*this).whole();
  }

  // The value of a tensor of one element, summed where it is partial. Collective as full_tensor.
  element item() const {
    static_assert(numel(sp) == 1, "shardwise: item: the tensor has more than one element; use full_tensor or to_local.");
    return full_tensor().to_local().data[0];
  }

  // This tensor has the storage of `data` from now on: what is written to one is seen in the other. Other tensors that share the
  // storage it had, views of it too, keep that.
  void set_storage(const dtensor& data) {
    data.value_.live();
    value_ = data.value_;
  }

  template <std::same_as<bool> B>
  explicit operator B() const {
    static_assert(raise<problem::tensor_condition, operand_t<S>, B>::ok);
    return false;
  }
  template <std::integral I>
  auto operator[](I) const {
    static_assert(raise<problem::tensor_subscript, operand_t<S>, I>::ok);
    return detail::unresolved<Mesh>{};
  }

  // --- the operations' way in: see graph/tensor.hpp
  // -----------------------------------------------------------------------

  template <auto Op, op_attr A, spec Out, class... X>
  static dtensor<Out, Mesh, Rank> apply(double f, const dtensor& first, const X&... more) {
    using out_type = dtensor<Out, Mesh, Rank>;
    if constexpr (std::is_same_v<out_type, dtensor> && code_of(Op) == op_code::redistribute) {
      return out_type((first.value_.live(), first.value_.lend()));
    } else if constexpr (code_of(Op) == op_code::copy_) {
      write_over(first, more...);
      return first;
    } else {
      static constexpr runtime::eager_operation<Rank> application =
          runtime::operation_on<Op, A, Rank, dtensor, out_type, X...>();
      const runtime::eager_value<Rank>* const operands[] = {&first.value_, &more.value_...};
      return out_type(runtime::apply_eagerly<Rank>(application, f, operands, 1 + static_cast<int>(sizeof...(X))));
    }
  }

  // An operation with several results.
  template <auto Op, op_attr A, spec... Out, class... X>
  static std::tuple<dtensor<Out, Mesh, Rank>...> apply_results(double f, const dtensor& first, const X&... more) {
    using out_types = std::tuple<dtensor<Out, Mesh, Rank>...>;
    static constexpr runtime::eager_operation<Rank> application =
        runtime::operation_with_results<Op, A, Rank, dtensor, out_types, X...>();
    const runtime::eager_value<Rank>* const operands[] = {&first.value_, &more.value_...};
    runtime::eager_value<Rank> made[sizeof...(Out)];
    runtime::eager_value<Rank>* to[sizeof...(Out)];
    for (std::size_t k = 0; k < sizeof...(Out); ++k) to[k] = &made[k];
    runtime::apply_results_eagerly<Rank>(application, f, operands, 1 + static_cast<int>(sizeof...(X)), to);
    return [&]<std::size_t... K>(std::index_sequence<K...>) {
      return out_types(dtensor<Out, Mesh, Rank>(std::move(made[K]))...);
    }(std::make_index_sequence<sizeof...(Out)>{});
  }

  // A number that a call got beside its tensors: see graph/functions/number.hpp.
  [[noreturn]] static void refuse_number(const char* what, double given, const char* fix) {
    throw std::invalid_argument(std::string("shardwise: ") + what + ": the number is " + std::to_string(given) + fix);
  }

  // On the way, on the rank's stream: see graph/functions/pending.hpp.
  using flight_type = runtime::eager_flight<Rank>;
  template <spec Out>
  using placed_like = dtensor<Out, Mesh, Rank>;

  flight_type take_off() const { return flight_type(value_); }
  template <op_code Op, op_attr A, spec Out>
  static flight_type depart(double f, const flight_type& from) {
    static constexpr runtime::eager_operation<Rank> application =
        runtime::operation_on<Op, A, Rank, dtensor, placed_like<Out>>();
    return runtime::depart_eagerly<Rank>(application, f, from);
  }
  static dtensor arrive(flight_type f) {
    if (!f.value.storage)
      throw std::logic_error(
          "shardwise: wait: the pending tensor has been waited for already, or was moved from, and has nothing "
          "left to give; keep the tensor that the first wait gave");
    runtime::land(f);
    return dtensor(std::move(f.value));
  }
  static void cancel(flight_type& f) noexcept { runtime::drop(f); }
  static flight_type landed(const flight_type&) noexcept { return {}; }

  // A constant: the same number everywhere, positions, or random numbers.
  template <op_code Op, spec Out, op_attr A = op_attr{}>
  static dtensor<Out, Mesh, Rank> apply_leaf(double f, const dtensor& like) {
    using out_type = dtensor<Out, Mesh, Rank>;
    if constexpr (Op != op_code::fill)
      return out_type(runtime::fill_eagerly<Rank>(like.value_.live(), Op, A, f, out_type::sp,
                                                  runtime::kernel_entry<runtime::signature{Op, out_type::sp.type}, Rank>()));
    dtensor<Out, Mesh, Rank> t(runtime::eager_value<Rank>(like.value_.live(), dtensor<Out, Mesh, Rank>::sp));
    t.fill(static_cast<element_t<dtensor<Out, Mesh, Rank>::sp.type>>(f));
    return t;
  }

  template <const opaque_operation* Function, spec Out, class... X>
  static dtensor<Out, Mesh, Rank> apply_opaque(const dtensor& first, const X&... more) {
    using out_type = dtensor<Out, Mesh, Rank>;
    static constexpr runtime::eager_operation<Rank> application = runtime::opaque_on<Function, Rank, dtensor, out_type>();
    const runtime::eager_value<Rank>* const operands[] = {&first.value_, &more.value_...};
    return out_type(runtime::apply_eagerly<Rank>(application, 0, operands, 1 + static_cast<int>(sizeof...(X))));
  }

  // Every node of a program at once, one after the other, each in storage of its own; the tensors are its inputs, in
  // order. The outputs, as a tuple. Collective where the program is.
  template <class Program, class... X>
  static auto run(const dtensor& first, const X&... more) {
    constexpr auto outputs = static_cast<std::size_t>(Program::program.output_count);
    const untyped* const in[] = {&first.value_, &more.value_...};
    std::array<untyped, outputs> out;
    runtime::run_eagerly(runtime::eager_program_of<Program, rank_type>::value, false, first.value_.live(), in,
                         1 + static_cast<int>(sizeof...(X)), out.data());
    return results<Program>(out, std::make_index_sequence<outputs>{});
  }

  // --- the way in of programs whose operands and results are too many to be named: see module/eager_gradient.hpp --------

  // A value without its type, and back: `of` takes the caller's word for the type.
  using untyped = runtime::eager_value<Rank>;
  const untyped& value() const { return value_; }
  static dtensor of(untyped&& v) { return dtensor(std::move(v)); }
  template <spec Other>
  using like = dtensor<Other, Mesh, Rank>;

  // Program's results of these operands, computed on the run that `first` belongs to.
  template <class Program>
  static void run_untyped(const untyped& first, const untyped* const* in, int operands, untyped* out,
                          runtime::call_observer* observer = nullptr) {
    runtime::run_eagerly(runtime::eager_program_of<Program, rank_type>::value, false, first.live(), in, operands, out,
                         nullptr, observer);
  }
  // An optimizer's program: updates in place of the operands that have values, under `env`.
  template <class Program, class Env>
  static void update_untyped(const untyped& first, const untyped* const* in, int operands, const Env& env) {
    static constexpr runtime::env_needs needs = runtime::env_needs_of(runtime::program_tag<Program>::value);
    const runtime::run_numbers<typename detail::param_groups_of<Program>::type> numbers(env);
    runtime::check_env(needs, numbers);
    struct restore {
      step_env& now;
      step_env before;
      ~restore() { now = before; }
    } at_end{first.live().env, first.live().env};
    at_end.now = numbers.run();
    runtime::run_eagerly(runtime::eager_program_of<Program, rank_type>::value, true, first.live(), in, operands,
                         static_cast<untyped*>(nullptr), numbers.of);
  }
  template <class Program>
  static auto zero_states(const untyped& first) {
    return runtime::zero_states(runtime::eager_program_of<Program, rank_type>::value.g, first.live());
  }

 private:
  template <spec, class, class>
  friend class dtensor;

  // A value that lies in the same storage is copied before any of it is written.
  template <class X>
  static void write_over(const dtensor& to, const X& value) {
    if constexpr (!is_contiguous(X::sp)) {
      write_over(to, X::template apply<op_code::contiguous, op_attr{}, contiguous(X::sp)>(0, value));
    } else {
      if (to.shares_storage_with(value))
        return write_over(to, X::template apply<op_code::contiguous, op_attr{}, X::sp>(0, value));
      apply<op_code::assign, op_attr{}, contiguous(sp)>(0, to, value);
    }
  }

  template <class Program, int Index>
  static constexpr spec output_spec = Program::program.spec_of(Program::program.outputs[Index]);
  template <class Program, std::size_t... I>
  static auto results(std::array<runtime::eager_value<Rank>, sizeof...(I)>& values, std::index_sequence<I...>) {
    return std::tuple<dtensor<output_spec<Program, static_cast<int>(I)>, Mesh, Rank>...>(
        dtensor<output_spec<Program, static_cast<int>(I)>, Mesh, Rank>(std::move(values[I]))...);
  }

  explicit dtensor(const eager<Rank>& on) : value_(on.core(), sp) {}
  explicit dtensor(runtime::eager_value<Rank>&& value) : value_(std::move(value)) {}

  static element negative_zero() {
    if constexpr (is_floating_element<element>) return -element(0);
    else return element(0);
  }

  element* data() const { return reinterpret_cast<element*>(value_.data()); }
  std::size_t size() const { return static_cast<std::size_t>(value_.layout->numel()); }
  void fill(element value) {
    for (std::size_t i = 0; i < size(); ++i) data()[i] = value;
  }

  template <class Range>
  static constexpr bool safe_from =
      is_floating_element<element> ||
      std::is_integral_v<std::remove_cvref_t<decltype(*std::data(std::declval<const Range&>()))>>;

  template <class Tensor>
  static void check_count(const char* name, const Tensor& t, std::size_t given, std::int64_t wanted, const char* what,
                          const char* fix) {
    if (static_cast<std::int64_t>(given) == wanted) return;
    throw std::invalid_argument(std::string("shardwise: ") + name + ": " + std::to_string(given) + " elements are given; " +
                                what + " has " + std::to_string(wanted) + " (block of rank " +
                                std::to_string(t.value_.core->rank->index()) + ": " + runtime::extents_of(*t.value_.layout) +
                                "); " + fix);
  }

  // The block becomes this rank's share of the whole that f(position in the block, index in the whole) gives.
  template <class Other, class F>
  void load(const char* caller, const Other& rank, F&& f) {
    runtime::load_share_by(caller, data(), *value_.layout, sp, rank.coordinate().data(), static_cast<F&&>(f));
  }

  template <class Other, class Draw>
  static on_rank<Other> random(const eager<Other>& on, std::uint64_t seed, Draw&& draw) {
    static_assert(is_floating_element<element>, "shardwise: rand: the elements must be floating-point numbers.");
    on_rank<Other> t(on);
    t.load("random values", on.rank(), [&](std::int64_t, std::int64_t g) { return draw(seed, g); });
    return t;
  }

  // The axes of `To` in the order in which they cut: the reverse of that in which they are made whole. Those on which it is
  // replicate come last, when blocks are small.
  template <spec To>
  static constexpr auto cutting_order() {
    struct {
      int axis[max_axes]{};
      int count = 0;
    } order;
    spec s = To;
    for (int a = 0; a < s.axes; ++a)
      if (s.place[a].is_replicate()) order.axis[order.count++] = a;
    for (int a = next_whole(s); a >= 0; a = next_whole(s)) {
      order.axis[order.count++] = a;
      s.place[a] = replicate_value();
    }
    return order;
  }
  // Axes take their place of `To` one after the other; one that is partial in `To` keeps the whole value here.
  template <int Left, spec To>
  auto settle() const {
    if constexpr (Left == 0) {
      return *this;
    } else {
      constexpr spec wanted = To;
      constexpr int axis = cutting_order<To>().axis[Left - 1];
      constexpr placement p = wanted.place[axis].is_partial() ? replicate_value() : wanted.place[axis];
      constexpr spec out = [p] {
        spec s = sp;
        s.place[axis] = p;
        return s;
      }();
      constexpr op_attr attr = pack_attributes(redistribute_attributes{.axis = axis, .to = pack(p)});
      return apply<op_code::redistribute, attr, out>(0, *this).template settle<Left - 1, To>();
    }
  }

  // Axes are made whole from the last to the first, but where a strided shard has another order: nested shards of one dim
  // are undone from the one that splits it last.
  static constexpr int next_whole(const spec& s) {
    for (int a = s.axes - 1; a >= 0; --a)
      if (!s.place[a].is_replicate() && (!s.place[a].is_shard() || split_after(s, a, s.place[a].dim) < 0)) return a;
    return -1;
  }
  auto whole() const {
    constexpr int axis = next_whole(sp);
    if constexpr (axis < 0) {
      return *this;
    } else {
      constexpr spec out = [] {
        spec s = sp;
        s.place[axis] = replicate_value();
        return s;
      }();
      constexpr op_attr attr = pack_attributes(redistribute_attributes{.axis = axis, .to = pack(replicate_value())});
      return apply<op_code::redistribute, attr, out>(0, *this).whole();
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

}  // namespace shardwise::inline v0_1
