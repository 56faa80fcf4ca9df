// SPDX-License-Identifier: Apache-2.0
// bind: a model under a plan on a mesh, with the plan checked: every path names a module, every style fits it.
#pragma once

#include <shardwise/graph/sym.hpp>
#include <shardwise/module/batch_axes.hpp>
#include <shardwise/module/declared.hpp>

namespace shardwise::inline v0_1 {

namespace detail {

template <class Mesh, dtype Type, class Report = noted, run_mode Mode = run_mode::unsaid>
struct trace_context {
  using records = void;  // a member's tensor is the one that is read; others hold tensors, as they are stored
  using mesh_type = Mesh;
  static constexpr dtype type = Type;
  static constexpr run_mode mode = Mode;
  template <spec S>
  using tensor = sym<S, Mesh, Report>;
};

// --- what a plan hits, once for each distinct (state, module type) -----------------------------------------------------

struct hits {
  unsigned matched = 0;      // entries that name some module
  unsigned wrong_style = 0;  // entries whose style does not fit a module they name
  unsigned list = 0;         // entries that name some list
  unsigned parameter = 0;    // entries that name some parameter or buffer
  unsigned grouped = 0;      // entries whose group some parameter has a place in
  unsigned deciding = 0;     // entries in whose group some parameter is
  unsigned frozen = 0;       // entries that freeze some parameter
  unsigned stopped = 0;      // entries whose group some frozen parameter has a place in
  unsigned cast = 0;         // entries that name some parameter

  constexpr void add(const hits& below) {
    matched |= below.matched;
    wrong_style |= below.wrong_style;
    list |= below.list;
    parameter |= below.parameter;
    grouped |= below.grouped;
    deciding |= below.deciding;
    frozen |= below.frozen;
    stopped |= below.stopped;
    cast |= below.cast;
  }
};

template <class Plan, auto State, class M>
struct plan_hits;

template <class Plan, auto State, class M, int... I>
constexpr void add_member_hits(hits& h, std::integer_sequence<int, I...>) {
  using traits = plan_traits<Plan>;
  (
      [&] {
        using child_type = member_type<M, I>;
        if constexpr (reflected<child_type> || module_list<child_type>) {
          constexpr auto s = traits::advance(State, std::string_view(member_name<M, I>()));
          h.add(plan_hits<Plan, s, child_type>::value);
        } else if constexpr (is_tensor_decl<child_type>) {
          const auto s = traits::advance(State, std::string_view(member_name<M, I>()));
          h.parameter |= traits::matched(s);
          if constexpr (traits::any_mixed && is_parameter_decl<child_type>::value) h.cast |= traits::matched(s);
          if constexpr (traits::any_freezes && is_parameter_decl<child_type>::value) h.frozen |= traits::freezing(s);
          if constexpr (traits::any_groups && is_parameter_decl<child_type>::value) {
            const unsigned named = traits::groups_of(State, std::string_view(member_name<M, I>()));
            h.grouped |= named;
            for (int e = 0; e < traits::n; ++e) h.deciding |= traits::deciding(named) == e ? 1U << e : 0U;
            if (traits::frozen_at(s)) h.stopped |= named;
          }
        }
      }(),
      ...);
}

template <class Plan>
inline constexpr auto dead_state = [] {
  typename plan_traits<Plan>::state s{};
  for (auto& k : s.at) k = -1;
  return s;
}();

// The first list element after i that stands elsewhere in the plan than i does.
template <class Plan>
constexpr int next_state(const typename plan_traits<Plan>::state& list, int i, int size) {
  using traits = plan_traits<Plan>;
  const auto here = traits::advance(list, index_name(i).view());
  for (++i; i < size; ++i)
    if (!(traits::advance(list, index_name(i).view()) == here)) return i;
  return size;
}

template <class Plan, auto State, class List, int I>
constexpr void add_element_hits(hits& h) {
  if constexpr (I < List::size) {
    using traits = plan_traits<Plan>;
    constexpr auto s = traits::advance(State, index_name(I).view());
    h.add(plan_hits<Plan, s, typename List::element_unbound>::value);
    // elements with the state just handled add nothing: go on to the first that differs
    add_element_hits<Plan, State, List, next_state<Plan>(State, I, List::size)>(h);
  }
}

template <class M, class... S>
constexpr bool styles_accept(style_list<S...>) {
  return (S::accepts(M::kind) && ...);
}

template <class M, class Plan, class... E>
constexpr unsigned refused_entries(unsigned matched, plan<E...>) {
  unsigned wrong = 0;
  int e = 0;
  ((wrong |= ((matched >> e) & 1U) && !styles_accept<M>(typename entry_traits<E>::styles{}) ? 1U << e : 0U, ++e), ...);
  return wrong;
}

template <class Plan, auto State, class M>
struct plan_hits {
  static constexpr hits value = [] {
    hits h;
    constexpr unsigned own = plan_traits<Plan>::matched(State);
    h.matched = own;
    if constexpr (module_list<M>) {
      h.list = own;
      h.wrong_style = own & ~plan_traits<Plan>::settings() &
                      ~plan_traits<Plan>::shardings();  // a list is no module: styles go to its elements
      add_element_hits<Plan, State, M, 0>(h);
    } else {
      h.wrong_style = refused_entries<M, Plan>(own, Plan{});
      add_member_hits<Plan, State, M>(h, std::make_integer_sequence<int, member_count<M>>{});
    }
    return h;
  }();
};
// below a dead path nothing can match
template <class Plan, auto State, class M>
  requires(State == dead_state<Plan>)
struct plan_hits<Plan, State, M> {
  static constexpr hits value{};
};

// --- nearest names, instantiated only for an error --------------------------------------------------------------------

struct path_buffer {
  char text[96]{};
  int size = 0;
  constexpr void push(std::string_view s) {
    if (size > 0 && size < 95) text[size++] = '.';
    for (char c : s)
      if (size < 95) text[size++] = c;
  }
  constexpr std::string_view view() const { return {text, static_cast<std::size_t>(size)}; }
};

struct best_paths {
  path_buffer path[3]{};
  int distance[3] = {1000, 1000, 1000};
  constexpr void offer(const path_buffer& p, std::string_view wanted) {
    path_buffer x = p;
    int d = edit_distance(wanted, p.view());
    for (int i = 0; i < 3; ++i)
      if (d < distance[i]) {
        const path_buffer other = path[i];
        const int e = distance[i];
        path[i] = x;
        distance[i] = d;
        x = other;
        d = e;
      }
  }
};

// Paths of modules, and with Parameters of these, too.
template <class M, bool Parameters>
constexpr void offer_paths(best_paths& best, const path_buffer& at, std::string_view wanted);
template <class M, bool Parameters, int... I>
constexpr void offer_members(best_paths& best, const path_buffer& at, std::string_view wanted,
                             std::integer_sequence<int, I...>) {
  (
      [&] {
        using child_type = member_type<M, I>;
        path_buffer p = at;
        p.push(member_name<M, I>());
        if constexpr (reflected<child_type> || module_list<child_type>) offer_paths<child_type, Parameters>(best, p, wanted);
        else if constexpr (Parameters && is_parameter_decl<child_type>::value) best.offer(p, wanted);
      }(),
      ...);
}
template <class M, bool Parameters>
constexpr void offer_paths(best_paths& best, const path_buffer& at, std::string_view wanted) {
  if constexpr (module_list<M>) {
    path_buffer p = at;
    p.push("*");
    offer_paths<typename M::element_unbound, Parameters>(best, p, wanted);
  } else {
    if (at.size > 0) best.offer(at, wanted);
    offer_members<M, Parameters>(best, at, wanted, std::make_integer_sequence<int, member_count<M>>{});
  }
}

// The parameters' own names, each once.
template <class M>
constexpr void offer_parameters(best_paths& best, std::string_view wanted);
template <class M, int... I>
constexpr void offer_member_parameters(best_paths& best, std::string_view wanted, std::integer_sequence<int, I...>) {
  (
      [&] {
        using child_type = member_type<M, I>;
        if constexpr (reflected<child_type> || module_list<child_type>) {
          offer_parameters<child_type>(best, wanted);
        } else if constexpr (is_parameter_decl<child_type>::value) {
          path_buffer p;
          p.push(member_name<M, I>());
          bool known = false;
          for (const path_buffer& other : best.path) known = known || other.view() == p.view();
          if (!known) best.offer(p, wanted);
        }
      }(),
      ...);
}
template <class M>
constexpr void offer_parameters(best_paths& best, std::string_view wanted) {
  if constexpr (module_list<M>) offer_parameters<typename M::element_unbound>(best, wanted);
  else offer_member_parameters<M>(best, wanted, std::make_integer_sequence<int, member_count<M>>{});
}

template <class M, class Entry, bool Parameters = false>
struct nearest_names {
  static constexpr best_paths found = [] {
    best_paths b;
    if constexpr (Parameters) offer_parameters<M>(b, entry_traits<Entry>::setting::wanted());
    else offer_paths<M, entry_traits<Entry>::setting::freezes>(b, path_buffer{}, entry_traits<Entry>::path);
    return b;
  }();
  static constexpr auto a = exact_string<found.path[0].size>(found.path[0].view());
  static constexpr auto b = exact_string<found.path[1].size>(found.path[1].view());
  static constexpr auto c = exact_string<found.path[2].size>(found.path[2].view());
  using type = nearest<a, b, c>;
};

template <bool Matched, bool Parameter, class M, class Entry>
struct check_matched {
  static constexpr bool ok = true;
};
template <class M, class Entry>
struct check_matched<false, true, M, Entry> {
  static constexpr bool ok = raise<problem::plan_style_of_parameter, plan_entry<Entry>>::ok;
};
template <class M, class Entry>
struct check_matched<false, false, M, Entry> {
  static constexpr bool ok =
      raise<problem::plan_path_unmatched, plan_entry<Entry>, typename nearest_names<M, Entry>::type>::ok;
};

template <class Mesh, class... Axis>
constexpr bool axes_known(type_list<Axis...>) {
  return (Mesh::template has<Axis> && ...);
}
// A group that has no parameter is one that nothing would be updated by.
template <bool Grouped, class M, class Entry>
struct check_grouped {
  static constexpr bool ok = true;
};
template <class M, class Entry>
struct check_grouped<false, M, Entry> {
  static constexpr bool ok =
      raise<problem::param_group_unmatched, plan_entry<Entry>, typename nearest_names<M, Entry, true>::type>::ok;
};

template <class Mesh, class S>
constexpr bool style_axis_known = Mesh::template has<typename S::axis>;
template <class Mesh, class S>
  requires is_sharding<S>
constexpr bool style_axis_known<Mesh, S> = axes_known<Mesh>(typename S::split_batch{});
template <class Mesh, class... S>
constexpr bool style_axes_known(style_list<S...>) {
  return (style_axis_known<Mesh, S> && ...);
}
template <class Mesh, class E>
constexpr bool entry_axes_known() {
  if constexpr (entry_traits<E>::is_entry || is_setting<E> || is_of_program<E>)
    return style_axes_known<Mesh>(typename entry_traits<E>::styles{});
  else return style_axis_known<Mesh, E>;
}

// Whether two styles of one entry place parameters on the same axis.
template <class S>
constexpr bool places_parameters = S::parameter(module_kind::linear, "weight", 2).given;
template <class Axis, class... S>
constexpr int placers_on = (0 + ... + (places_parameters<S> && std::is_same_v<typename S::axis, Axis> ? 1 : 0));
template <class... S>
constexpr bool styles_collide(style_list<S...>) {
  return ((placers_on<typename S::axis, S...> > 1) || ...);
}

// What is wrong with a style's options, with the numbers where it is one.
template <class S>
constexpr bool options_good() {
  if constexpr (!requires { S::wrong; }) return true;
  else if constexpr (S::wrong == problem::fsdp_factor)
    return raise<S::wrong, S, have<S::options::ranks>, want<S::ranks>>::ok;
  else return raise<S::wrong, S>::ok;
}
template <class... S>
constexpr bool all_options_good(style_list<S...>) {
  return (options_good<S>() && ...);
}

template <class M, class Plan, class Mesh>
struct plan_check;
template <class M, class... E, class Mesh>
struct plan_check<M, plan<E...>, Mesh> {
  using traits = plan_traits<plan<E...>>;
  static_assert(
      (raise<(entry_axes_known<Mesh, E>() ? problem::none : problem::plan_axis_not_in_mesh), plan_entry<E>, Mesh>::ok &&
       ...));
  static constexpr hits found = plan_hits<plan<E...>, traits::root(), M>::value;

  template <class Entry, std::size_t K>
  static constexpr bool holds() {
    constexpr bool freezes = entry_traits<Entry>::is_entry && entry_traits<Entry>::setting::freezes;
    constexpr bool of_parameter = ((found.parameter >> K) & 1U) != 0;
    constexpr precision elements = entry_traits<Entry>::setting::elements;
    constexpr bool named = !entry_traits<Entry>::is_entry || ((found.matched >> K) & 1U) != 0;
    constexpr bool matched = named || ((freezes || elements.said) && of_parameter);
    constexpr bool checkpoints_list =
        is_checkpoint<typename entry_traits<Entry>::checkpoint> && ((found.list >> K) & 1U) != 0;
    constexpr problem style = checkpoints_list                       ? problem::checkpoint_of_list
                              : ((found.wrong_style >> K) & 1U) != 0 ? problem::plan_style_wrong_module
                              : ((found.list & plan_traits<plan<E...>>::shardings()) >> K & 1U) != 0
                                  ? problem::fully_shard_list
                              : sharding_in<entry_styles<Entry>>::count > 1            ? problem::fully_shard_twice
                              : styles_collide(typename entry_traits<Entry>::styles{}) ? problem::plan_style_twice
                                                                                       : problem::none;
    constexpr bool is_group = !entry_traits<Entry>::setting::group.empty() && matched;
    constexpr bool grouped = !is_group || ((found.grouped >> K) & 1U) != 0;
    constexpr problem group = is_group && ((found.stopped >> K) & 1U) != 0               ? problem::param_group_frozen
                              : is_group && grouped && ((found.deciding >> K) & 1U) == 0 ? problem::param_group_overruled
                                                                                         : problem::none;
    constexpr problem still =
        freezes && matched && ((found.frozen >> K) & 1U) == 0 ? problem::frozen_nothing : problem::none;
    constexpr bool called = named && ((found.list >> K) & 1U) == 0;
    constexpr problem types = !elements.said || !matched                ? problem::none
                              : !named && ((found.cast >> K) & 1U) == 0 ? problem::mixed_buffer
                              : elements.output >= 0 && !called         ? problem::mixed_output
                                                                        : problem::none;
    return check_matched<matched, of_parameter, M, Entry>::ok && raise<style, plan_entry<Entry>>::ok &&
           raise<types, plan_entry<Entry>>::ok && raise<still, plan_entry<Entry>>::ok &&
           check_grouped<grouped, M, Entry>::ok && raise<group, plan_entry<Entry>>::ok;
  }
  template <std::size_t... K>
  static constexpr bool check(std::index_sequence<K...>) {
    return (holds<E, K>() && ...);
  }
  // What flat parameters do not stand beside.
  static constexpr bool beside_flat = traits::any_mixed || traits::any_freezes || traits::any_groups ||
                                      splits_any_states<plan<E...>> || (is_accumulation<E> || ... || false) ||
                                      (is_keeping<E> || ... || false);
  static constexpr bool flat_ok =
      raise<(traits::any_flat && beside_flat ? problem::flat_parameters_beside : problem::none), plan<E...>>::ok;
  static constexpr bool ok = flat_ok && (all_options_good(entry_styles<E>{}) && ...) &&
                             check(std::index_sequence_for<E...>{}) && batch_axes<plan<E...>, Mesh>::agree;
};

template <template <class> class Model, class Plan, class Ctx, bool Declared = declared_model<Model>::ok>
struct bind_with {
  using unbound_model = Model<unbound>;
  static constexpr bool checked = plan_check<unbound_model, Plan, typename Ctx::mesh_type>::ok;
  static_assert(checked);
  using binding_type = binding<Ctx, Plan, plan_traits<Plan>::root(), unbound_model>;
  using type = Model<binding_type>;
};
template <template <class> class Model, class Plan, class Ctx>
struct bind_with<Model, Plan, Ctx, false> {
  using type = broken_model<Ctx, Plan>;
};

}  // namespace detail

// The model as tracing sees it: every parameter and buffer a sym whose type carries its placements.
template <template <class> class Model, class Plan, class Mesh, class T = float, run_mode Mode = run_mode::unsaid>
using bind = typename detail::bind_with<Model, Plan, detail::trace_context<Mesh, dtype_v<T>, detail::noted, Mode>>::type;

}  // namespace shardwise::inline v0_1
