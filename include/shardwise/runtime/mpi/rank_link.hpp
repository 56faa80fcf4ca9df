// SPDX-License-Identifier: Apache-2.0
// rank_link: MPI joins the hosts of ranks on devices: it carries blocks along the axes that the devices' own library does not connect, what
// ranks compare and combine, and what each hears of the others. Without a device's headers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

#include <shardwise/runtime/mpi/collectives.hpp>
#include <shardwise/runtime/mpi/mpi.hpp>
#include <shardwise/runtime/mpi/rank.hpp>
#include <shardwise/runtime/mpi/watch.hpp>
#include <shardwise/runtime/processes/by_nccl.hpp>
#include <shardwise/runtime/processes/host_link.hpp>
#include <shardwise/runtime/with_rank.hpp>

namespace shardwise::inline v0_1::mpi {

// An mpi_rank without kernels. Collectives along the axes of hosts run in a device's thread while the rank's own may meet the others, so
// they have the lane of a communication stream; a program's are ordered (runtime/program/schedule.hpp), and so are a rank's programs
// (runtime/cuda/run_order.hpp), so one is enough.
// Blocks reduce in rank order, or by MPI's own reduction where mpi_options::fast_reduce says so, as those of the mpi backend.
template <class Mesh, class By>
class rank_link final : public processes::host_link {
 public:
  using groups = processes::nccl_groups<Mesh, By>;

  rank_link(world& w, int host_ranks)
      : host_link(processes::host_axes<Mesh, By>()),
        world_(&w),
        own_(w, host_ranks),
        beside_(own_, threads::stream_lane{}),
        watch_(w, ((1U << Mesh::axes) - 1) & ~axes(), own_.place()) {}

  void barrier() override { own_.barrier(); }
  void agree(std::uint64_t value, const char* what) override { own_.agree(value, what); }
  void combine_disjoint(void* bytes, std::size_t count) override {
    own_.combine_bytes(static_cast<std::byte*>(bytes), count);
  }

  void collective(const runtime::call* c, int n, place_text where) noexcept override {
    if (broken_) return;
    try {
      run(c, n);
    } catch (const rank_failed&) {
      broken_ = true;
    } catch (const std::exception& e) {
      broken_ = true;
      fail(where ? std::make_exception_ptr(
                       std::runtime_error(std::string(e.what()) + " (" + where(c->node, world_->rank()) + ")"))
                 : std::current_exception());
    } catch (...) {
      broken_ = true;
      fail(std::current_exception());
    }
  }
  void check() override { world_->look(); }
  void fail(std::exception_ptr e) override { mpi::fail(*world_, runtime::with_rank(e, world_->rank())); }

  void queue(int axis, std::int64_t n) override {
    world_->look();
    if (!carries(axis)) world_->queue(axis, n);  // the others count themselves
  }
  threads::standing& place() override { return own_.place(); }
  std::int64_t bytes_written(int axis) const override { return own_.bytes_written(axis); }
  void reset_counts() override { own_.reset_counts(); }

  // What ends a wait of the rank's thread that no notice reaches: see watch.
  void on_loss(void (*release)(void*), void* given) { watch_.on_loss(release, given); }
  void stop_watching() { watch_.stop(); }

  // What the first rank of this one's group gives, `bytes` of them, to `id` on every rank of the group: make(p) writes it to p, on first
  // ranks alone. Collective over all ranks.
  template <class Make>
  void of_first_in_group(void* id, std::size_t bytes, const Make& make) {
    std::vector<std::byte> mine(bytes);
    const int me = world_->rank();
    if (groups::place_of(me) == 0) make(static_cast<void*>(mine.data()));
    const auto first = static_cast<std::size_t>(groups::rank_of(groups::group_of(me), 0));
    if constexpr (Mesh::size == 1) std::memcpy(id, mine.data(), bytes);
    else
      own_.share("an exchange of ids", mine.data(), bytes,
                 [&](const std::byte* all) { std::memcpy(id, all + first * bytes, bytes); });
  }

 private:
  void run(const runtime::call* c, int n) {
    switch (c->type[runtime::result]) {
      case dtype::f32: return collectives::batch<float>(c, n, beside_);
      case dtype::f64: return collectives::batch<double>(c, n, beside_);
      case dtype::i32: return collectives::batch<std::int32_t>(c, n, beside_);
      case dtype::i64: return collectives::batch<std::int64_t>(c, n, beside_);
      case dtype::bf16: return collectives::batch<bfloat16>(c, n, beside_);
      case dtype::f16: return collectives::batch<float16>(c, n, beside_);
      case dtype::boolean: return collectives::batch<std::uint8_t>(c, n, beside_);  // as NCCL has them
    }
  }

  world* world_;
  mpi_rank<Mesh> own_, beside_;
  bool broken_ = false;  // of the thread that runs collectives
  watch watch_;
};

// Runs f on a rank's device and comes to an end with it, whatever f does. Device is made of (link, rank, number of this process on its host)
// and has rank(), what f takes; drain(), which returns when the device is done; and abort(), which ends what it does with other ranks: called
// by any thread, once or more.
template <class Mesh, class By, class Device, class F>
void run_on_device(F& f, world& w, const host_place& host) {
  rank_link<Mesh, By> link(w, host.processes);
  Device device(link, w.rank(), host.number);
  link.on_loss([](void* d) { static_cast<Device*>(d)->abort(); }, &device);
  try {
    f(device.rank());
    device.drain();
    w.finish();  // nobody takes its memory away while another rank may read it
    link.stop_watching();
  } catch (...) {
    bool echo = false;  // of what has failed before
    try {
      link.check();
    } catch (const rank_failed&) {
      echo = true;
    }
    if (!echo) link.fail(std::current_exception());
    device.abort();
    link.stop_watching();
    if (echo) link.check();
    throw;
  }
}

}  // namespace shardwise::inline v0_1::mpi
