// SPDX-License-Identifier: Apache-2.0
// Small all-reduces as one kernel over peers' memory: sums in the order of the ranks, equal bits on all of them, replayed from graphs, in
// batches, beyond the end of the epochs; where NCCL takes over; and ranks that throw, return or do not come while another one's kernel waits.
#define SHARDWISE_TEST_DEVICES 1
#include <doctest/doctest.h>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <future>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include <place.hpp>
#include <shardwise/runtime/cuda/collectives.cuh>
#include <shardwise/vocabulary/axis.hpp>

namespace {

namespace sw = shardwise;
namespace one_shot = sw::cuda::one_shot;
using sw::reduction;
using sw::runtime::call;
using sw::runtime::result;

template <int N>
struct line_axis : sw::axis<N> {};
struct rows : sw::axis<2> {};
struct cols : sw::axis<2> {};
template <int N>
using line = sw::mesh<sw::on_cuda, line_axis<N>>;
using grid = sw::mesh<sw::on_cuda, rows, cols>;

constexpr reduction all_ops[] = {reduction::sum, reduction::avg, reduction::product, reduction::max, reduction::min};

call reduced(reduction op, std::int64_t n, int axis, int ranks, int coordinate) {
  call c;
  c.kind = sw::transition::all_reduce;
  c.from = sw::partial_value(op);
  c.to = sw::replicate_value();
  c.axis = axis;
  c.ranks = ranks;
  c.coordinate = coordinate;
  c.inputs = c.all_inputs = 1;
  c.l[0].rank = 1;
  c.l[0].ext[0] = c.l[0].global[0] = n;
  c.l[0].make_dense();
  c.l[result] = c.l[0];
  return c;
}

// Numbers whose sums round, of both signs, and small enough for the products of eight.
template <class T>
T number(int rank, std::int64_t i, int salt = 0) {
  const auto u = static_cast<std::uint32_t>((i + 1) * 2654435761U + static_cast<unsigned>(rank) * 40503U +
                                            static_cast<unsigned>(salt) * 97U);
  const int k = static_cast<int>(u >> 8U) % 2001 - 1000;
  if constexpr (std::is_integral_v<T>) return static_cast<T>(k);
  else return static_cast<T>(static_cast<float>(k) / 333.0F);
}

// As the kernel is to add: in the order of the ranks, in float for two bytes, rounded once.
template <class T>
T in_order(reduction op, const std::vector<T>& of) {
  using C = sw::computed_in<T>;
  C s = static_cast<C>(of[0]);
  for (std::size_t r = 1; r < of.size(); ++r) {
    const C x = static_cast<C>(of[r]);
    switch (op) {
      case reduction::product:
        if constexpr (std::is_integral_v<C>)  // which wraps around
          s = static_cast<C>(static_cast<std::make_unsigned_t<C>>(s) * static_cast<std::make_unsigned_t<C>>(x));
        else s = s * x;
        break;
      case reduction::max: s = s >= x ? s : x; break;
      case reduction::min: s = s <= x ? s : x; break;
      case reduction::sum:
      case reduction::avg:
      case reduction::norm: s = s + x; break;
    }
  }
  if (op == reduction::avg) s = s / static_cast<C>(of.size());
  return static_cast<T>(s);
}
template <class T>
std::vector<T> expected(reduction op, std::int64_t n, int ranks, int salt = 0) {
  std::vector<T> all(static_cast<std::size_t>(n)), of(static_cast<std::size_t>(ranks));
  for (std::int64_t i = 0; i < n; ++i) {
    for (int r = 0; r < ranks; ++r) of[static_cast<std::size_t>(r)] = number<T>(r, i, salt);
    all[static_cast<std::size_t>(i)] = in_order(op, of);
  }
  return all;
}
template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

template <class Rank>
sw::cuda::context context_of(Rank& rank, const sw::cuda::stream& queue) {
  sw::cuda::context ctx;
  ctx.stream = queue.get();
  ctx.multiprocessors = rank.multiprocessors();
  return ctx;
}
template <class Rank>
const sw::cuda::peer_slots* slots_of(Rank& rank, int axis, std::int64_t words, cudaStream_t stream) {
  std::array<std::int32_t, sw::max_axes> wanted{};
  wanted[static_cast<std::size_t>(axis)] =
      one_shot::slot_words(words, Rank::mesh_type::sizes[static_cast<std::size_t>(axis)]);
  return rank.share_slots(wanted, stream)[static_cast<std::size_t>(axis)];
}
std::uint32_t epoch_of(const sw::cuda::peer_slots& s) {
  std::uint32_t e = 0;
  sw::cuda::check(cudaMemcpy(&e, &s.state->epoch, sizeof e, cudaMemcpyDeviceToHost), "cudaMemcpy");
  return e;
}
void set_epoch(const sw::cuda::peer_slots& s, std::uint32_t e) {
  sw::cuda::check(cudaMemcpy(&s.state->epoch, &e, sizeof e, cudaMemcpyHostToDevice), "cudaMemcpy");
}

// A block that begins `shift` bytes behind what CUDA aligns, between bytes that nobody may touch.
class block {
 public:
  block(std::size_t bytes, std::size_t shift) : bytes_(bytes), shift_(shift), memory_(guard + shift + bytes + guard) {
    sw::cuda::check(cudaMemset(memory_.data(), 0xAB, guard + shift + bytes + guard), "cudaMemset");
  }
  void* data() const { return memory_.data() + guard + shift_; }
  template <class T>
  void set(const std::vector<T>& v) const {
    sw::cuda::check(cudaMemcpy(data(), v.data(), bytes_, cudaMemcpyHostToDevice), "cudaMemcpy");
  }
  template <class T>
  std::vector<T> get() const {
    std::vector<T> v(bytes_ / sizeof(T));
    sw::cuda::check(cudaMemcpy(v.data(), data(), bytes_, cudaMemcpyDeviceToHost), "cudaMemcpy");
    return v;
  }
  bool intact() const {
    std::vector<unsigned char> all(guard + shift_ + bytes_ + guard);
    sw::cuda::check(cudaMemcpy(all.data(), memory_.data(), all.size(), cudaMemcpyDeviceToHost), "cudaMemcpy");
    const auto untouched = [](unsigned char b) { return b == 0xAB; };
    return std::all_of(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(guard + shift_), untouched) &&
           std::all_of(all.end() - static_cast<std::ptrdiff_t>(guard), all.end(), untouched);
  }

 private:
  static constexpr std::size_t guard = 256;
  std::size_t bytes_, shift_;
  sw::cuda::device_memory memory_;
};

// --- values
// ------------------------------------------------------------------------------------------------------------

// Empty if all is well on this rank.
template <class T, class Rank>
std::string try_sizes(Rank& rank, int axis, const char* type) {
  const int ranks = Rank::mesh_type::sizes[static_cast<std::size_t>(axis)], me = rank.coordinate(axis);
  const sw::cuda::stream queue;
  sw::cuda::context ctx = context_of(rank, queue);
  const std::int64_t limit = one_shot::most_words(ranks) * sw::cuda::payload_of_word / static_cast<std::int64_t>(sizeof(T));
  const sw::cuda::peer_slots* const slots = slots_of(rank, axis, one_shot::most_words(ranks), ctx.stream);
  if (!slots) return "the devices do not reach each other's memory\n";
  std::string wrong;
  for (const std::int64_t n : {std::int64_t{1}, std::int64_t{3}, std::int64_t{127}, std::int64_t{1000}, std::int64_t{4097},
                               limit - 1, limit, limit + 1})
    for (const reduction op : all_ops)
      for (const bool in_place : {true, false})
        for (const std::size_t shift : {std::size_t{0}, std::size_t{1}}) {
          if (n >= limit - 1 && (op == reduction::product || op == reduction::min)) continue;  // for time alone
          std::vector<T> x(static_cast<std::size_t>(n));
          for (std::int64_t i = 0; i < n; ++i) x[static_cast<std::size_t>(i)] = number<T>(me, i);
          const block from(x.size() * sizeof(T), shift * sizeof(T)), to(x.size() * sizeof(T), 0);
          const block scratch(x.size() * 4 + 16, 0);  // for NCCL's keys
          from.set(x);
          call c = reduced(op, n, axis, ranks, me);
          c.p[0] = from.data();
          c.p[result] = in_place ? from.data() : to.data();
          c.workspace = scratch.data();
          const std::uint32_t before = epoch_of(*slots);
          sw::cuda::check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
          const std::int64_t sent = sw::cuda::communicate<T>(c, ctx, rank.communicator(axis), slots);
          rank.synchronize(ctx.stream);
          const bool one = n <= limit;
          const std::vector<T> want = expected<T>(op, n, ranks),
                               got = in_place ? from.template get<T>() : to.template get<T>();
          const std::string where = std::string(" of ") + std::to_string(n) + " elements of type " + type + ", op " +
                                    std::to_string(static_cast<int>(op)) + (in_place ? ", in place" : "") + ", shifted by " +
                                    std::to_string(shift) + ", rank " + std::to_string(rank.index()) + "\n";
          if (one && !same_bits(got, want)) wrong += "other bits" + where;
          if (!in_place && !same_bits(from.template get<T>(), x)) wrong += "another operand" + where;
          if (!from.intact() || !to.intact()) wrong += "writes beside the blocks" + where;
          if (epoch_of(*slots) - before != (one ? 1U : 0U)) wrong += "done by the wrong one" + where;
          if (sent != sw::cuda::exchange::sent_by_all_reduce(c) * static_cast<std::int64_t>(sizeof(T)))
            wrong += "bytes" + where;
        }
  return wrong;
}

template <class Mesh>
void check_sizes() {
  if (!test::place::has(Mesh::size)) return;
  std::vector<std::string> wrong(static_cast<std::size_t>(Mesh::size));
  sw::launch_cuda<Mesh>([&](auto& rank) {
    std::string& w = wrong[static_cast<std::size_t>(rank.index())];
    for (int a = 0; a < Mesh::axes; ++a) {
      w += try_sizes<float>(rank, a, "float");
      w += try_sizes<double>(rank, a, "double");
      w += try_sizes<std::int32_t>(rank, a, "int32");
      w += try_sizes<std::int64_t>(rank, a, "int64");
      w += try_sizes<sw::bf16>(rank, a, "bf16");
      w += try_sizes<sw::f16>(rank, a, "f16");
    }
  });
  for (const std::string& w : wrong) CHECK_MESSAGE(w.empty(), w);
}

TEST_CASE("one-shot all-reduces of all types, reductions and awkward sizes: 2 gpus") { check_sizes<line<2>>(); }
TEST_CASE("one-shot all-reduces of all types, reductions and awkward sizes: 3 gpus") { check_sizes<line<3>>(); }
TEST_CASE("one-shot all-reduces of all types, reductions and awkward sizes: 8 gpus") { check_sizes<line<8>>(); }
TEST_CASE("one-shot all-reduces along both axes of 2 x 2 gpus, one after the other") { check_sizes<grid>(); }

TEST_CASE("extremes keep a NaN beside a number, and -0 is below 0") {
  using mesh = line<2>;
  if (!test::place::has(mesh::size)) return;
  std::vector<float> got[2][2];
  sw::launch_cuda<mesh>([&](auto& rank) {
    const sw::cuda::stream queue;
    sw::cuda::context ctx = context_of(rank, queue);
    const sw::cuda::peer_slots* const slots = slots_of(rank, 0, 100, ctx.stream);
    const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
    const std::vector<float> x = rank.index() == 0 ? std::vector<float>{nan, 1.0F, -0.0F, -inf, -3.0F}
                                                   : std::vector<float>{2.0F, nan, 0.0F, -1.0F, -4.0F};
    for (const bool largest : {false, true}) {
      const block b(x.size() * sizeof(float), 0);
      b.set(x);
      call c = reduced(largest ? reduction::max : reduction::min, 5, 0, 2, rank.index());
      c.p[0] = c.p[result] = b.data();
      sw::cuda::check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
      sw::cuda::communicate<float>(c, ctx, rank.communicator(0), slots);
      rank.synchronize(ctx.stream);
      got[rank.index()][largest ? 1 : 0] = b.get<float>();
    }
  });
  for (const int largest : {0, 1}) {
    CHECK(same_bits(got[0][largest], got[1][largest]));
    const std::vector<float>& v = got[0][largest];
    REQUIRE(v.size() == 5);
    CHECK(std::isnan(v[0]));
    CHECK(std::isnan(v[1]));
    CHECK(std::signbit(v[2]) == (largest == 0));
    CHECK(v[3] == (largest ? -1.0F : -std::numeric_limits<float>::infinity()));
    CHECK(v[4] == (largest ? -3.0F : -4.0F));
  }
}

// --- graphs, batches, epochs
// ------------------------------------------------------------------------------------------------------------

__device__ std::int32_t operand_in(std::int32_t turn, std::int32_t rank, std::int32_t i) {
  return turn * 1000003 + rank * 7919 + i * 31;
}
__global__ void fill(std::int32_t* x, std::int32_t n, const std::int32_t* turn, std::int32_t rank) {
  for (std::int32_t i = static_cast<std::int32_t>(blockIdx.x * blockDim.x + threadIdx.x); i < n;
       i += static_cast<std::int32_t>(gridDim.x * blockDim.x))
    x[i] = operand_in(*turn, rank, i);
}
__global__ void compare(const std::int32_t* x, std::int32_t n, const std::int32_t* turn, std::int32_t ranks,
                        unsigned* wrong) {
  for (std::int32_t i = static_cast<std::int32_t>(blockIdx.x * blockDim.x + threadIdx.x); i < n;
       i += static_cast<std::int32_t>(gridDim.x * blockDim.x)) {
    std::uint32_t sum = 0;
    for (std::int32_t r = 0; r < ranks; ++r) sum += static_cast<std::uint32_t>(operand_in(*turn, r, i));
    if (x[i] != static_cast<std::int32_t>(sum)) atomicAdd(wrong, 1);
  }
}
__global__ void next_turn(std::int32_t* turn) { *turn = (*turn + 1) % 1000; }

template <class Mesh>
void check_replays() {
  if (!test::place::has(Mesh::size)) return;
  unsigned wrong[Mesh::size];
  std::uint32_t epochs[Mesh::size];
  sw::launch_cuda<Mesh>([&](auto& rank) {
    const sw::cuda::stream queue;
    sw::cuda::context ctx = context_of(rank, queue);
    const sw::cuda::peer_slots* const slots = slots_of(rank, 0, 20000, ctx.stream);
    const sw::cuda::device_memory x(40000 * 4), o(40000 * 4), turn(4), bad(4);
    sw::cuda::check(cudaMemset(turn.data(), 0, 4), "cudaMemset");
    sw::cuda::check(cudaMemset(bad.data(), 0, 4), "cudaMemset");
    sw::cuda::check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    auto* const at = reinterpret_cast<std::int32_t*>(turn.data());
    const sw::cuda::graph_instance graph = sw::cuda::graph_instance::of(ctx.stream, [&] {
      for (const std::int32_t n : {1, 1000, 40000, 4097}) {
        auto* const from = reinterpret_cast<std::int32_t*>(x.data());
        auto* const to = reinterpret_cast<std::int32_t*>(n == 1000 ? x.data() : o.data());
        fill<<<16, 256, 0, ctx.stream>>>(from, n, at, rank.index());
        call c = reduced(reduction::sum, n, 0, Mesh::size, rank.index());
        c.p[0] = from;
        c.p[result] = to;
        sw::cuda::communicate<std::int32_t>(c, ctx, rank.communicator(0), slots);
        compare<<<16, 256, 0, ctx.stream>>>(to, n, at, Mesh::size, reinterpret_cast<unsigned*>(bad.data()));
      }
      next_turn<<<1, 1, 0, ctx.stream>>>(at);
    });
    for (int i = 0; i < 1000; ++i) sw::cuda::check(cudaGraphLaunch(graph.get(), ctx.stream), "cudaGraphLaunch");
    rank.synchronize(ctx.stream);
    sw::cuda::check(cudaMemcpy(&wrong[rank.index()], bad.data(), 4, cudaMemcpyDeviceToHost), "cudaMemcpy");
    epochs[rank.index()] = epoch_of(*slots);
  });
  for (int r = 0; r < Mesh::size; ++r) {
    CHECK(wrong[r] == 0);
    CHECK(epochs[r] == 4000);
  }
}
TEST_CASE("a thousand replays of a graph of four all-reduces, none waiting for the host: 2 gpus") {
  check_replays<line<2>>();
}
TEST_CASE("a thousand replays of a graph of four all-reduces, none waiting for the host: 4 gpus") {
  check_replays<line<4>>();
}

TEST_CASE("results are right where epochs begin anew and where words are renewed") {
  using mesh = line<2>;
  if (!test::place::has(mesh::size)) return;
  std::string wrong[2];
  std::uint32_t last[2][2]{};
  sw::launch_cuda<mesh>([&](auto& rank) {
    const sw::cuda::stream queue;
    sw::cuda::context ctx = context_of(rank, queue);
    const sw::cuda::peer_slots* const slots = slots_of(rank, 0, 5000, ctx.stream);
    int part = 0;
    for (const std::uint32_t from : {0x3FFFFFFEU, 0xFFFFFFFBU}) {
      rank.barrier();
      set_epoch(*slots, from);
      rank.barrier();
      for (int turn = 0; turn < 12; ++turn) {
        const std::int64_t n = turn % 3 == 0 ? 10000 : 7 + turn;
        std::vector<float> x(static_cast<std::size_t>(n));
        for (std::int64_t i = 0; i < n; ++i) x[static_cast<std::size_t>(i)] = number<float>(rank.index(), i, turn);
        const block b(x.size() * sizeof(float), 0);
        b.set(x);
        call c = reduced(reduction::sum, n, 0, 2, rank.index());
        c.p[0] = c.p[result] = b.data();
        sw::cuda::check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
        sw::cuda::communicate<float>(c, ctx, rank.communicator(0), slots);
        rank.synchronize(ctx.stream);
        if (!same_bits(b.get<float>(), expected<float>(reduction::sum, n, 2, turn)))
          wrong[rank.index()] += "turn " + std::to_string(turn) + " from epoch " + std::to_string(from) + "\n";
      }
      last[rank.index()][part++] = epoch_of(*slots);
    }
  });
  for (int r = 0; r < 2; ++r) {
    CHECK_MESSAGE(wrong[r].empty(), wrong[r]);
    CHECK(last[r][0] == 0x4000000AU);
    CHECK(last[r][1] == 9);  // 4 up to the last number, then 2 to 9
  }
}

TEST_CASE("a batch of twenty all-reduces is two kernels; norms among them stay with NCCL") {
  using mesh = line<2>;
  if (!test::place::has(mesh::size)) return;
  std::string wrong[2];
  std::uint32_t epochs[2];
  sw::launch_cuda<mesh>([&](auto& rank) {
    const sw::cuda::stream queue;
    sw::cuda::context ctx = context_of(rank, queue);
    std::vector<call> calls;
    std::vector<std::unique_ptr<block>> blocks;
    std::int64_t words = 0;
    for (int k = 0; k < 22; ++k) {
      const std::int64_t n = k == 5 ? 0 : 3 + 97 * k;
      call c = reduced(all_ops[k % 5], n, 0, 2, rank.index());
      if (k == 21) c.from = sw::partial_norm_value(2);
      std::vector<float> x(static_cast<std::size_t>(n));
      for (std::int64_t i = 0; i < n; ++i) x[static_cast<std::size_t>(i)] = number<float>(rank.index(), i, k);
      blocks.push_back(std::make_unique<block>(x.size() * sizeof(float), k % 2 * sizeof(float)));
      blocks.back()->set(x);
      c.p[0] = c.p[result] = blocks.back()->data();
      calls.push_back(c);
      words += k < 21 ? one_shot::words_of(n * 4) : 0;
    }
    const sw::cuda::peer_slots* const slots = slots_of(rank, 0, words, ctx.stream);
    sw::cuda::check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    sw::cuda::communicate<float>(calls.data(), calls.size(), ctx, rank.communicator(0), slots);
    rank.synchronize(ctx.stream);
    epochs[rank.index()] = epoch_of(*slots);
    for (int k = 0; k < 21; ++k) {
      const auto at = static_cast<std::size_t>(k);
      if (!same_bits(blocks[at]->get<float>(), expected<float>(all_ops[k % 5], calls[at].l[0].numel(), 2, k)) ||
          !blocks[at]->intact())
        wrong[rank.index()] += "member " + std::to_string(k) + "\n";
    }
    const std::vector<float> norm = blocks[21]->get<float>();
    for (std::size_t i = 0; i < norm.size(); ++i) {
      const float a = number<float>(0, static_cast<std::int64_t>(i), 21),
                  b = number<float>(1, static_cast<std::int64_t>(i), 21);
      if (std::fabs(norm[i] - std::sqrt(a * a + b * b)) > 1e-5F * (1 + norm[i]))
        wrong[rank.index()] += "norm " + std::to_string(i) + "\n";
    }
  });
  for (int r = 0; r < 2; ++r) {
    CHECK_MESSAGE(wrong[r].empty(), wrong[r]);
    CHECK(epochs[r] == 2);
  }
}

TEST_CASE("slots are given out again, grow beside the old ones, and are not there where one rank asks for none") {
  using mesh = line<2>;
  if (!test::place::has(mesh::size)) return;
  bool good[2];
  sw::launch_cuda<mesh>([&](auto& rank) {
    const sw::cuda::stream queue;
    const auto* const none = slots_of(rank, 0, rank.index() == 0 ? 50 : 0, queue.get());
    const auto* const first = slots_of(rank, 0, 1000, queue.get());
    const auto* const again = slots_of(rank, 0, 700, queue.get());
    const auto* const larger = slots_of(rank, 0, 1025, queue.get());
    const auto* const too_large = slots_of(rank, 0, one_shot::most_words(2) + 1, queue.get());
    good[rank.index()] =
        !none && first && first == again && first->words == 1024 && larger != first && larger->words == 2048 && !too_large;
  });
  CHECK(good[0]);
  CHECK(good[1]);
}

// --- ranks that fail
// ------------------------------------------------------------------------------------------------------------

// The message of the exception that launch_cuda rethrows. A hang would keep the whole run: it ends it instead.
template <class Mesh, class F>
std::string message_of(F body) {
  std::packaged_task<std::string()> task([&] {
    try {
      sw::launch_cuda<Mesh>(body);
    } catch (const std::exception& e) {
      return std::string(e.what());
    }
    return std::string("no exception");
  });
  std::future<std::string> said = task.get_future();
  std::thread runner(std::move(task));
  if (said.wait_for(std::chrono::seconds(90)) != std::future_status::ready) {
    std::fprintf(stderr, "a launch hangs: the ranks that did not fail were not released\n");
    std::_Exit(1);
  }
  runner.join();
  return said.get();
}

// Runs of a graph of twenty all-reduces, a few ahead of the device.
template <class Rank>
class runs {
 public:
  explicit runs(Rank& rank) : rank_(&rank) {
    sw::cuda::context ctx = context_of(rank, queue_);
    const sw::cuda::peer_slots* const slots = slots_of(rank, 0, 20000, ctx.stream);
    graph_ = sw::cuda::graph_instance::of(ctx.stream, [&] {
      for (int i = 0; i < 20; ++i) {
        call c = reduced(reduction::avg, i % 2 ? 10 : 40000, 0, Rank::mesh_type::size, rank.index());
        c.p[0] = c.p[result] = memory_.data();
        sw::cuda::communicate<float>(c, ctx, rank.communicator(0), slots);
      }
    });
  }
  ~runs() { rank_->settle(); }
  void queue(int n) {
    const typename Rank::awaiting_device waits(*rank_);
    for (int i = 0; i < n; ++i) {
      rank_->queue_collectives(0, 20);
      sw::cuda::check(cudaGraphLaunch(graph_.get(), queue_.get()), "cudaGraphLaunch");
    }
  }
  void wait() { rank_->synchronize(queue_.get()); }

 private:
  Rank* rank_;
  sw::cuda::stream queue_;
  sw::cuda::device_memory memory_{40000 * 4};
  sw::cuda::graph_instance graph_;
};

template <class Mesh>
void check_release() {
  if (!test::place::has(Mesh::size)) return;
  for (int bad = 0; bad < Mesh::size; ++bad)
    for (const int before : {0, 1, 50}) {
      CHECK(message_of<Mesh>([&](auto& rank) {
              runs r(rank);
              r.queue(before);
              if (rank.index() == bad) {
                r.wait();
                throw std::runtime_error("gave up");
              }
              for (;;) {
                r.queue(8);
                r.wait();
              }
            }) == "gave up (rank " + std::to_string(bad) + ")");
      const std::string gone = message_of<Mesh>([&](auto& rank) {
        runs r(rank);
        r.queue(before);
        if (rank.index() == bad) return r.wait();
        for (;;) {
          r.queue(8);
          r.wait();
        }
      });
      INFO(gone);
      CHECK(gone.find("shardwise: rank " + std::to_string(bad) + " has returned while rank ") == 0);
    }
}
TEST_CASE("a rank that throws or returns while another one's kernel waits for it ends the wait: 2 gpus") {
  check_release<line<2>>();
}
TEST_CASE("a rank that throws or returns while another one's kernel waits for it ends the wait: 4 gpus") {
  check_release<line<4>>();
}

TEST_CASE("a rank that does not come in time ends the kernel that waits for it") {
  using mesh = line<2>;
  if (!test::place::has(mesh::size)) return;
  sw::set_rank_timeout(4);
  const std::string said = message_of<mesh>([](auto& rank) {
    runs r(rank);
    r.queue(3);
    r.wait();
    if (rank.index() == 1) sleep(6);
    r.queue(10);
    r.wait();
  });
  sw::set_rank_timeout(600);
  INFO(said);
  CHECK(
      said.find(
          "shardwise: rank 0 has waited 4 s for its device: rank 1 has queued 60 of 260 collectives on axis 0 of the mesh") ==
      0);
}

// --- programs
// ------------------------------------------------------------------------------------------------------------

template <int N>
struct tp : sw::axis<N> {};
template <class Bound = sw::unbound>
struct mlp : sw::module<mlp<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<10, 16>, net1), (sw::linear<16, 10>, net2));
  constexpr auto forward(const auto& x) const { return net2(sw::relu(net1(x))); }
};
struct task {
  using inputs = sw::inputs<sw::input_tensor<float, sw::shape<20, 10>, sw::on<tp<2>, sw::replicate>>>;
  constexpr auto operator()(const auto& model, const auto& x) const { return sw::mean(model(x)); }
};
using step = sw::train_step<mlp, task, sw::plan<sw::at<"*net1", sw::colwise<tp<2>>>, sw::at<"*net2", sw::rowwise<tp<2>>>>,
                            sw::mesh<tp<2>>, sw::sgd<>, sw::pipeline<>, float, sw::cuda_backend>;

struct trained {
  std::vector<float> losses, weights;
  std::int64_t bytes = 0;
};
template <class Executor>
void train(Executor& ex, int steps, trained& to) {
  std::vector<float> x(20 * 10);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i * 37 % 101) / 101.0F;
  for (int s = 1; s <= steps; ++s) {
    sw::step_env env;
    env.step = s;
    env.lr = 0.05;
    ex.set_input(0, x);
    ex.run(env);
    to.losses.push_back(ex.loss());
  }
}
void check_equal(const trained& a, const trained& b) {
  CHECK(same_bits(a.losses, b.losses));
  CHECK(same_bits(a.weights, b.weights));
  CHECK(a.bytes == b.bytes);
}

TEST_CASE("a program trains as with NCCL, two of them in turn, and does not call it") {
  if (!test::place::has(2)) return;
  trained own[2], nccl[2], other[2], alone[2];
  sw::launch_cuda<sw::mesh<tp<2>>>([&](auto& rank) {
    using Rank = std::remove_reference_t<decltype(rank)>;
    const auto me = static_cast<std::size_t>(rank.index());
    const auto finish = [&](auto& ex, trained& to) {
      for (int p = 0; p < ex.parameter_count(); ++p) {
        const std::vector<float> w = ex.get_parameter(p);
        to.weights.insert(to.weights.end(), w.begin(), w.end());
      }
    };
    const auto whole = [&](const sw::device_options& options, trained& to) {
      rank.reset_counts();
      sw::executor<step, Rank> ex(rank, options);
      to.bytes = rank.bytes_written(0);  // of the run on zeros and of the captured one
      ex.initialise(7);
      train(ex, 12, to);
      finish(ex, to);
    };
    whole({}, own[me]);
    whole({.one_shot_all_reduce = false}, nccl[me]);
    {  // in turn, with the same slots
      sw::executor<step, Rank> a(rank), b(rank, sw::device_options{.how = sw::device_execution::stream});
      a.initialise(7);
      b.initialise(7);
      ncclComm_t const kept = std::exchange(rank.all_communicators().axis(0), nullptr);
      for (int k = 0; k < 3; ++k) {
        train(a, 4, other[me]);
        train(b, 4, alone[me]);
      }
      rank.all_communicators().axis(0) = kept;
      finish(a, other[me]);
      finish(b, alone[me]);
      rank.barrier();
    }
  });
  for (int r = 0; r < 2; ++r) {
    check_equal(own[r], nccl[r]);
    CHECK(own[r].bytes > 0);
    CHECK(same_bits(other[r].weights, own[r].weights));
    CHECK(same_bits(alone[r].weights, own[r].weights));
    CHECK(same_bits(own[r].losses, own[0].losses));
  }
}

}  // namespace
