// SPDX-License-Identifier: Apache-2.0
// Plans, lowers and runs programs: all ranks as fibres, kernels and collectives as executors call them.
#include <fibres.hpp>
#include <library.hpp>

#include <shardwise/graph/verify/verify.hpp>
#include <shardwise/operations/channel_norm/host.hpp>
#include <shardwise/operations/convolution/host.hpp>
#include <shardwise/operations/interpolation/host.hpp>
#include <shardwise/operations/pooling/host.hpp>
#include <shardwise/pass/memory/memory.hpp>
#include <shardwise/runtime/program/lowered.hpp>
#include <shardwise/runtime/host/backend.hpp>
#include <shardwise/runtime/host/provided_kernels.hpp>
#include <shardwise/runtime/program/overlap.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <optional>

template <>
struct shardwise::formula<fuzz::own_operation> {
  template <class m, class T>
  static constexpr T value(T x, T y) {
    return x * y - y;
  }
};
template <>
struct shardwise::formula<fuzz::own_product> {
  template <class m, class T>
  static constexpr T value(T x, T y) {
    return x * y;
  }
};

template <>
struct shardwise::host_kernel<fuzz::own_results> {
  template <class T>
  static void run(const kernel_arguments<T>& k) {
    const std::int64_t last = k.extent(0, k.rank(0) - 1), rows = last > 0 ? k.size(0) / last : k.size_of_result(1);
    const T* const x = k.in(0);
    for (std::int64_t r = 0; r < rows; ++r) {
      T sum = 0;
      for (std::int64_t i = r * last; i < (r + 1) * last; ++i) {
        if (k.wanted(0)) k.out(0)[i] = x[i] * x[i];
        if (k.wanted(2)) k.index_out(2)[i] = static_cast<std::int32_t>(i - r * last);
        if (k.wanted(3)) k.out(3)[i] = T(2) * x[i];
        sum += x[i];
      }
      if (k.wanted(1)) k.out(1)[r] = sum;
    }
  }
};

namespace fuzz {

namespace {

// --- running --------------------------------------------------------------------------------------------------------------------

// One element for each axis is enough for a program that is no constant.
template <int Phase>
struct run_step {
  using mesh_type = void;
  using element = float;
  static constexpr int parameter_total = 3, buffer_total = 0;
  static constexpr struct {
    sw::parameter_info item[parameter_total]{};
  } parameters{};
  static constexpr sw::dyn_bounds dyn_bound{};
  static constexpr unsigned dyn_not_empty = 0;
  static inline graph program;
  struct memory {
    static inline sw::passes::memory_plan<max_nodes> value;
  };
};

template <class T, std::size_t... Op>
constexpr auto kernels_of_type(std::index_sequence<Op...>) {
  using function = sw::runtime::kernel_function<fibre_rank>;
  return std::array<function, sizeof...(Op)>{[] {
    constexpr op_code op = static_cast<op_code>(Op);
    constexpr bool integers = sw::rules::only_moves(op) || op == op_code::redistribute || sw::is_comparison(op);
    if constexpr (sw::runs_kernel(op) && op != op_code::fused && op != op_code::custom &&
                  (std::is_floating_point_v<T> || integers))
      return sw::runtime::kernel_entry<sw::runtime::signature{op, sw::dtype_v<T>}, fibre_rank>();
    else return function{nullptr};
  }()...};
}
sw::runtime::kernel_function<fibre_rank> kernel_of(op_code op, sw::dtype t) {
  using all = std::make_index_sequence<static_cast<std::size_t>(op_code::count)>;
  static constexpr auto floats = kernels_of_type<float>(all{});
  static constexpr auto doubles = kernels_of_type<double>(all{});
  static constexpr auto ints = kernels_of_type<std::int32_t>(all{});
  const auto k = static_cast<std::size_t>(op);
  return t == sw::dtype::f32 ? floats[k] : t == sw::dtype::f64 ? doubles[k] : ints[k];
}

template <const sw::custom_operation&... Operation>
struct operations_of {};
template <class T, const sw::custom_operation&... Operation>
sw::runtime::kernel_function<fibre_rank> entry_in(const sw::custom_operation* o, operations_of<Operation...>) {
  sw::runtime::kernel_function<fibre_rank> r = nullptr;
  ((o == &Operation ? void(r = sw::runtime::custom_entry<Operation, sw::dtype_v<T>, fibre_rank>()) : void()), ...);
  return r;
}
template <class T>
sw::runtime::kernel_function<fibre_rank> custom_kernel_of(const sw::custom_operation* o) {
  return entry_in<T>(
      o, operations_of<own_product, own_results, own_operation, sw::custom::conv2d, sw::custom::conv2d_dx,
                       sw::custom::conv2d_dw, sw::custom::max_pool2d, sw::custom::max_pool2d_dx, sw::custom::max_pool2d_at,
                       sw::custom::avg_pool2d, sw::custom::avg_pool2d_dx, sw::custom::interpolate,
                       sw::custom::interpolate_dx, sw::custom::channel_moments, sw::custom::channel_moments_about,
                       sw::custom::channel_norm, sw::custom::channel_norm_sums, sw::custom::channel_norm_dx>{});
}
sw::runtime::kernel_function<fibre_rank> kernel_of(const sw::custom_operation* o, sw::dtype t) {
  return t == sw::dtype::f32 ? custom_kernel_of<float>(o) : custom_kernel_of<double>(o);
}

// What a rank's stream still has to do.
struct stream_work {
  std::deque<const sw::runtime::call*> queue;
  const sw::runtime::step_env* env = nullptr;
  unsigned issued = 0, done = 0, changes = 0;
  bool closed = false;
};

template <int Phase>
class phase_runner {
 public:
  using step = run_step<Phase>;

  // The least workspace that the plan must leave.
  static std::int64_t workspace(const graph& g) {
    const std::int64_t most = sw::host_backend::largest_workspace(g), beside = sw::host_backend::stream_workspace(g);
    return beside > 0 ? sw::passes::align_up(most) + beside : most;
  }
  static void plan(const graph& g, std::int64_t workspace) {
    step::program = g;
    step::memory::value = sw::passes::plan_memory<sw::host_backend>::plan_of(g, workspace);
  }
  static std::int64_t peak() { return step::memory::value.peak; }

  phase_runner(const program& p, std::byte* arena, int rank) : arena_(arena) {
    for (int a = 0; a < p.axes; ++a) coordinate_[a] = rank_coordinate(p, rank, a);
    const auto& plan = step::memory::value;
    std::byte* const scratch = plan.workspace > 0 ? arena : nullptr;
    lowered_.lower(arena, coordinate_, {}, scratch);
    if (sw::has_waits(step::program)) {
      overlap_ = sw::runtime::overlap_of(lowered_.tables(), lowered_.calls());
      const std::int64_t beside = sw::host_backend::stream_workspace(step::program);
      std::byte* const far = scratch ? scratch + plan.workspace - sw::passes::align_up(beside) : nullptr;
      for (std::size_t i = 0; i < lowered_.calls().size(); ++i)
        for (std::size_t k = i; overlap_.beside[i] && k < lowered_.launch_end(i); ++k) lowered_.set_workspace(k, far);
    }
    note_deaths();
  }

  using stream = stream_work;
  bool overlapped() const { return !overlap_.beside.empty(); }

  void run(fibre_rank& rank, const sw::runtime::step_env& env, stream& s) {
    const auto& calls = lowered_.calls();
    std::vector<unsigned> ticket(calls.size(), 0);
    for (std::size_t at = 0; at <= calls.size(); ++at) {
      if (at < calls.size() && calls[at].members == 0) continue;  // with its batch
      if (overlapped() && overlap_.await[at] >= 0)
        fibres::instance().wait({&s.done, 0, ticket[static_cast<std::size_t>(overlap_.await[at])], true});
      poison(at);
      if (at == calls.size()) break;
      if (overlapped() && overlap_.beside[at]) {
        s.queue.push_back(&calls[at]);
        s.env = &env;
        ticket[at] = ++s.issued;
        ++s.changes;
      } else {
        one(calls[at], env, rank);
      }
    }
  }
  static void run_next(fibre_rank& rank, stream& s) {
    const sw::runtime::call* c = s.queue.front();
    s.queue.pop_front();
    one(*c, *s.env, rank);
    ++s.done;
  }

  void load(const leaf_values& leaves, bool fresh) {
    const graph& g = step::program;
    for (int i = 0; i < g.node_count; ++i) {
      const sw::node& n = g.nodes[i];
      if (!sw::is_leaf(n.op)) continue;
      if (n.op != op_code::input && !fresh) continue;
      if (n.op == op_code::state) {  // as executors begin: zeros
        if (n.a.v[1] >= 0) std::memset(lowered_.pointer(i), 0, lowered_.bytes_of(i));
        continue;
      }
      const auto found = leaves.find({n.op, n.a.v[0]});
      if (found == leaves.end()) continue;
      switch (g.spec_of(i).type) {
        case sw::dtype::f32: load_as<float>(i, found->second); break;
        case sw::dtype::f64: load_as<double>(i, found->second); break;
        case sw::dtype::i32: load_as<std::int32_t>(i, found->second); break;
        case sw::dtype::bf16:
        case sw::dtype::f16:
        case sw::dtype::i64:
        case sw::dtype::boolean: std::abort();  // the generator has none
      }
    }
  }
  output_block output(int k) const { return block(step::program.outputs[k]); }
  output_block block(int id) const {
    output_block b;
    const sw::runtime::layout& l = lowered_.layout_of(id);
    const sw::dtype t = step::program.spec_of(id).type;
    std::int64_t at[sw::max_rank]{};
    for (std::int64_t e = 0; e < l.numel(); ++e) {
      std::int64_t offset = 0;
      for (int d = 0; d < l.rank; ++d) offset += at[d] * l.str[d];
      const void* const p = lowered_.pointer(id);
      b.x.push_back(t == sw::dtype::f32   ? static_cast<double>(static_cast<const float*>(p)[offset])
                    : t == sw::dtype::f64 ? static_cast<const double*>(p)[offset]
                                          : static_cast<double>(static_cast<const std::int32_t*>(p)[offset]));
      for (int d = l.rank - 1; d >= 0 && ++at[d] == l.ext[d]; --d) at[d] = 0;
    }
    return b;
  }

 private:
  template <class T>
  void load_as(int i, const std::vector<double>& x) {
    std::vector<T> whole(x.size());
    for (std::size_t k = 0; k < x.size(); ++k) whole[k] = static_cast<T>(x[k]);
    lowered_.load("set_input", i, whole.data(), static_cast<T*>(lowered_.pointer(i)), coordinate_);
  }

  static void one(const sw::runtime::call& c, const sw::runtime::step_env& env, fibre_rank& rank) {
    const graph& g = step::program;
    const sw::node& n = g.nodes[c.node];
    const sw::dtype t = g.spec_of(sw::makes_indices(n.op) ? n.in[0] : c.node).type;
    if (n.op != op_code::fused) {
      const auto kernel = n.op == op_code::custom ? kernel_of(g.customs[n.a.v[5]], t) : kernel_of(n.op, t);
      if (!kernel)
        throw std::logic_error("custom_kernel_of has no kernel of " +
                               std::string(n.op == op_code::custom ? g.customs[n.a.v[5]]->name.value : sw::name_of(n.op)));
      kernel(c, env, rank);
    }
    if (n.expression < 0) return;
    if (t == sw::dtype::f32) follow<float>(c, env, rank, g.expressions[n.expression]);
    else follow<double>(c, env, rank, g.expressions[n.expression]);
  }
  // An expression step by step, each by its own kernel: the fused kernels belong to programs that are constants.
  template <class T>
  static void follow(const sw::runtime::call& c, const sw::runtime::step_env& env, fibre_rank& rank,
                     const sw::expression& e) {
    struct slot {
      sw::runtime::layout l;
      void* p;
    };
    std::vector<slot> slots;
    std::deque<std::vector<T>> made;
    sw::runtime::layout dense = c.l[sw::runtime::result];
    const auto room = [&] {
      made.emplace_back(static_cast<std::size_t>(dense.numel()) + 1);
      return static_cast<void*>(made.back().data());
    };
    if (e.follows()) slots.push_back({c.l[sw::runtime::result], c.p[sw::runtime::result]});
    for (int k = c.inputs; static_cast<int>(slots.size()) < e.values(); ++k) slots.push_back({c.l[k], c.p[k]});
    for (int k = 0; k < e.steps(); ++k) {
      const sw::expression_step s = e.at(k);
      sw::runtime::call one;
      one.f = s.constant == 0 ? 0 : std::bit_cast<double>(c.a.v[s.constant - 1]);
      one.inputs = one.all_inputs = s.y == sw::no_slot ? 1 : 2;
      one.l[0] = slots[static_cast<std::size_t>(s.x)].l;
      one.p[0] = slots[static_cast<std::size_t>(s.x)].p;
      if (s.y != sw::no_slot) {
        one.l[1] = slots[static_cast<std::size_t>(s.y)].l;
        one.p[1] = slots[static_cast<std::size_t>(s.y)].p;
      }
      one.l[sw::runtime::result] = dense;
      one.p[sw::runtime::result] = room();
      kernel_of(s.op, sw::dtype_v<T>)(one, env, rank);
      slots.push_back({dense, one.p[sw::runtime::result]});
    }
    // stores and the result last: a loop over elements reads all before it writes
    for (int k = 0; k < e.steps(); ++k)
      if (const int store = e.at(k).store; store > 0) {
        const int at = c.all_inputs - e.stores() + store - 1;
        std::memcpy(c.p[at], slots[static_cast<std::size_t>(e.values() + k)].p,
                    static_cast<std::size_t>(c.l[at].numel()) * sizeof(T));
      }
    if (e.steps() > 0)
      std::memcpy(c.p[sw::runtime::result], slots.back().p, static_cast<std::size_t>(dense.numel()) * sizeof(T));
  }

  // What is dead holds garbage from then on.
  void note_deaths() {
    const auto& plan = step::memory::value;
    const int nodes = step::program.node_count;
    std::vector<bool> dead(static_cast<std::size_t>(nodes), false);
    for (std::size_t i = 0; i <= lowered_.calls().size(); ++i) {
      const int next = i < lowered_.calls().size() ? lowered_.calls()[i].node : nodes;
      dies_.emplace_back();
      for (int o = 0; o < next; ++o)
        if (plan.owner[o] == o && plan.last_use[o] < next && plan.bytes[o] > 0 && !dead[static_cast<std::size_t>(o)]) {
          dead[static_cast<std::size_t>(o)] = true;
          dies_.back().emplace_back(plan.offset[o], plan.bytes[o]);
        }
    }
  }
  void poison(std::size_t at) {
    for (const auto& [offset, bytes] : dies_[at]) std::memset(arena_ + offset, 0xFF, static_cast<std::size_t>(bytes));
  }

  int coordinate_[sw::max_axes]{};
  std::byte* arena_;
  // What executors are, without the arena and the rank.
  struct calls_of_step : sw::runtime::lowered<step> {
    calls_of_step() = default;
  };
  calls_of_step lowered_;
  sw::runtime::overlap overlap_;
  std::vector<std::vector<std::pair<std::int64_t, std::int64_t>>> dies_;
};

}  // namespace

run_result execute(const program& p, const made& m, const std::vector<leaf_values>& leaves, run_numbers numbers) {
  run_result r;
  // the arena, as large as the largest of the programs asks for
  const int phases = m.iterated ? 3 : 1;
  std::int64_t workspace = 0, peak = 0;
  for (int k = 0; k < phases; ++k) workspace = std::max(workspace, phase_runner<0>::workspace(*m.g[k]));
  phase_runner<0>::plan(*m.g[0], workspace);
  peak = phase_runner<0>::peak();
  if (m.iterated) {
    phase_runner<1>::plan(*m.g[1], workspace);
    phase_runner<2>::plan(*m.g[2], workspace);
    peak = std::max({peak, phase_runner<1>::peak(), phase_runner<2>::peak()});
  }

  const graph& last = *m.g[phases - 1];
  const int outputs = last.output_count, ranks = p.ranks();
  std::vector<std::vector<std::vector<output_block>>> out(static_cast<std::size_t>(p.iterations));
  for (auto& o : out)
    o.assign(static_cast<std::size_t>(outputs), std::vector<output_block>(static_cast<std::size_t>(ranks)));
  std::vector<int> param_nodes;
  for (int i = 0; i < last.node_count; ++i)
    if (last.nodes[i].op == op_code::param) param_nodes.push_back(i);
  std::vector<std::vector<output_block>> params(param_nodes.size(),
                                                std::vector<output_block>(static_cast<std::size_t>(ranks)));

  constexpr std::int64_t fence = 64;
  std::vector<std::vector<std::byte>> arenas(static_cast<std::size_t>(ranks));
  std::vector<std::byte*> arena(static_cast<std::size_t>(ranks));
  for (int k = 0; k < ranks; ++k) {
    arenas[static_cast<std::size_t>(k)].assign(static_cast<std::size_t>(peak + 64 + fence), std::byte{0xFF});
    const auto at = reinterpret_cast<std::uintptr_t>(arenas[static_cast<std::size_t>(k)].data());
    arena[static_cast<std::size_t>(k)] = arenas[static_cast<std::size_t>(k)].data() + (64 - at % 64) % 64;
  }
  fibre_rank::world world(p);
  std::vector<stream_work> streams(static_cast<std::size_t>(ranks));
  std::vector<std::function<void()>> bodies;
  // one type of stream for all phases: its calls belong to the phase that runs
  std::vector<int> phase_now(static_cast<std::size_t>(ranks), 0);
  for (int k = 0; k < ranks; ++k) {
    bodies.push_back([&, k] {
      const auto at = static_cast<std::size_t>(k);
      fibre_rank rank(world, p, k, 0);
      phase_runner<0> first(p, arena[at], k);
      std::optional<phase_runner<1>> second;
      std::optional<phase_runner<2>> third;
      if (m.iterated) {
        second.emplace(p, arena[at], k);
        third.emplace(p, arena[at], k);
      }
      sw::runtime::step_env env;
      env.seed = numbers.seed;
      env.lr = numbers.lr;
      env.momentum = numbers.momentum;
      env.weight_decay = numbers.weight_decay;
      env.max_norm = numbers.max_norm;
      env.clip_value = numbers.clip_value;
      env.dampening = numbers.dampening;
      for (int it = 0; it < p.iterations; ++it) {
        env.step = it + 1;
        const auto turn = [&](auto& runner, auto& stream) {
          runner.load(leaves[static_cast<std::size_t>(it)], it == 0);
          runner.run(rank, env, stream);
          for (int o = 0; o < outputs; ++o)
            out[static_cast<std::size_t>(it)][static_cast<std::size_t>(o)][at] = runner.output(o);
          if (it + 1 == p.iterations)
            for (std::size_t j = 0; j < param_nodes.size(); ++j) params[j][at] = runner.block(param_nodes[j]);
        };
        const int phase = !m.iterated || it == 0 ? 0 : it + 1 == p.iterations ? 2 : 1;
        phase_now[at] = phase;
        auto& s = streams[at];
        if (phase == 0) {
          turn(first, s);
        } else if (phase == 1) {
          turn(*second, s);
        } else {
          turn(*third, s);
        }
      }
      streams[at].closed = true;
      ++streams[at].changes;
    });
    bodies.push_back([&, k] {
      const auto at = static_cast<std::size_t>(k);
      fibre_rank rank(world, p, k, 1);
      auto& s = streams[at];
      while (!s.closed || !s.queue.empty()) {
        const int phase = phase_now[at];
        if (!s.queue.empty()) {
          if (phase == 0) phase_runner<0>::run_next(rank, s);
          else if (phase == 1) phase_runner<1>::run_next(rank, s);
          else phase_runner<2>::run_next(rank, s);
          continue;
        }
        fibres::instance().wait({&s.changes, s.changes, 0, false});
      }
    });
  }
  try {
    fibres::instance().run(std::move(bodies), p.schedule);
  } catch (const std::exception& e) {
    r.thrown = e.what();
    return r;
  }
  for (int k = 0; k < ranks; ++k)
    for (std::int64_t j = 0; j < fence; ++j)
      if (arena[static_cast<std::size_t>(k)][peak + j] != std::byte{0xFF})
        r.broken = "rank " + std::to_string(k) + " wrote behind its arena";

  for (int o = 0; o < outputs; ++o) r.outputs.push_back(last.spec_of(last.outputs[o]));
  r.blocks = std::move(out);
  for (std::size_t j = 0; j < param_nodes.size(); ++j)
    r.parameters.push_back(
        {static_cast<int>(last.nodes[param_nodes[j]].a.v[0]), last.spec_of(param_nodes[j]), std::move(params[j])});
  return r;
}

}  // namespace fuzz
