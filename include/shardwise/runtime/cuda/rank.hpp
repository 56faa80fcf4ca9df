// SPDX-License-Identifier: Apache-2.0
// cuda_rank: one GPU of a mesh: who it is, its communicators, how it meets the other ranks and learns that one failed.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <shardwise/runtime/cuda/communicators.hpp>
#include <shardwise/runtime/cuda/peer_slots.hpp>
#include <shardwise/runtime/cuda/resources.hpp>
#include <shardwise/runtime/cuda/run_order.hpp>
#include <shardwise/runtime/processes/host_link.hpp>
#include <shardwise/runtime/processes/lifeline.hpp>
#include <shardwise/runtime/rank.hpp>
#include <shardwise/runtime/threads/threads.hpp>
#include <shardwise/runtime/with_rank.hpp>
#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1 {

namespace cuda {

// What ranks share that are threads of one process.
template <class Mesh>
struct crew {
  threads::world<Mesh> meeting;
  std::atomic<bool> failed{false};
  // Of each rank: whether its function has returned, and the collectives that it has queued on each axis.
  std::array<std::atomic<bool>, Mesh::size> left{};
  std::array<std::array<std::atomic<std::int64_t>, max_axes>, Mesh::size> queued{};

  crew() { std::memset(abort_word_.host(), 0, sizeof(std::uint32_t)); }
  // Not 0 when the run has failed. Every device reads it where it lies: pinned memory is mapped for all of them.
  const std::uint32_t* abort_word() const { return static_cast<const std::uint32_t*>(abort_word_.host()); }

  // Rank `rank` queues n further collectives on an axis. A device that waits for a rank which has returned would wait for
  // ever: whoever comes second, the return or the collective, sees the other.
  void queue(int rank, int axis, std::int64_t n) {
    const std::int64_t mine = queued[at(rank)][at(axis)].fetch_add(n) + n;
    for (int k = 0; k < Mesh::sizes[at(axis)]; ++k) {
      const int peer = Mesh::group_member(rank, axis, k);
      if (left[at(peer)] && queued[at(peer)][at(axis)] < mine) throw waits_for(peer, rank, axis);
    }
  }
  // The rank's function has returned, and all that it had queued is done.
  void retire(int rank) {
    left[at(rank)] = true;
    meeting.leave(rank);
    for (int a = 0; a < Mesh::axes; ++a)
      for (int k = 0; k < Mesh::sizes[at(a)]; ++k) {
        const int peer = Mesh::group_member(rank, a, k);
        if (queued[at(peer)][at(a)] > queued[at(rank)][at(a)])
          return fail(std::make_exception_ptr(waits_for(rank, peer, a)), rank);
      }
  }

  void fail(std::exception_ptr e, int rank) {
    meeting.fail(runtime::with_rank(e, rank));
    fail();
  }

  // --- what the watch asks for: see threads::watch ---
  threads::standing (&places)[threads::lanes][Mesh::size] = meeting.places;
  std::atomic<bool> (&gone)[Mesh::size] = meeting.gone;
  bool broken() const { return failed; }
  std::string first_words() { return meeting.first_words(); }
  template <class F>
  static void parties(int rank, int axis, const F& f) {
    threads::world<Mesh>::parties(rank, axis, f);
  }
  void stall(const std::string& why) {
    meeting.stall(why);
    fail();
  }
  // Of the ranks that share an axis with `rank`, those that have queued fewer collectives on it.
  std::string device_late(int rank) const {
    std::string text;
    for (int a = 0; a < Mesh::axes; ++a)
      for (int k = 0; k < Mesh::sizes[at(a)]; ++k) {
        const int peer = Mesh::group_member(rank, a, k);
        const std::int64_t mine = queued[at(rank)][at(a)], theirs = queued[at(peer)][at(a)];
        if (theirs < mine)
          text += (text.empty() ? ": rank " : ", rank ") + std::to_string(peer) + " has queued " + std::to_string(theirs) +
                  " of " + std::to_string(mine) + " collectives on axis " + std::to_string(a) + " of the mesh";
      }
    return text.empty() ? ": all ranks have queued as many collectives" : text;
  }

  void leave(int rank) {
    gone[at(rank)] = true;
    const std::lock_guard lock(mutex_);
    --running_;
    changed_.notify_all();
  }
  // Until all have left or one has failed.
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return running_ == 0 || failed; });
  }
  // What a rank does that another one's failure has reached: it stays until no device of a rank still in f works any
  // more. A kernel that is being aborted may be reading this rank's memory, which is gone once the stack is unwound.
  void quieten() {
    cudaDeviceSynchronize();
    std::unique_lock lock(mutex_);
    ++quiet_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return quiet_ >= running_; });
  }

 private:
  // What waits on a device ends by itself from here on: kernels that wait for a peer's words by the abort word, NCCL's when the
  // communicators are aborted. `failed` comes first, so that whoever waited for such a kernel finds it.
  void fail() {
    const std::lock_guard lock(mutex_);
    failed = true;
    std::atomic_ref(*static_cast<std::uint32_t*>(abort_word_.host())).store(1);
    changed_.notify_all();
  }
  static constexpr std::size_t at(int i) { return static_cast<std::size_t>(i); }
  static rank_returned waits_for(int who, int waiting, int axis) {
    return rank_returned(who, waiting, ("a collective on axis " + std::to_string(axis) + " of the mesh").c_str());
  }

  pinned_memory abort_word_{sizeof(std::uint32_t)};
  std::mutex mutex_;
  std::condition_variable changed_;
  int running_ = Mesh::size, quiet_ = 0;
};

// With what a rank that is a process meets the others: a stream of its own and a word from each rank.
struct mailbox {
  stream queue;
  device_memory words;
  explicit mailbox(int ranks) : words(static_cast<std::size_t>(ranks + 1) * sizeof(std::uint64_t)) {}
};

}  // namespace cuda

inline namespace SHARDWISE_RANK_BUILD {

// Made by launch_cuda, launch_cuda_process and launch_cuda_mpi, and used by one thread, whose current device is the rank's. Streams,
// memory and graphs that f(rank) makes have to be gone when f returns or throws.
template <class Mesh>
class cuda_rank {
 public:
  using mesh_type = Mesh;
  static constexpr const char* backend_name = "nccl";

  // One of crew and link, or neither: see barrier.
  cuda_rank(int index, int device, cuda::communicators c, cuda::crew<Mesh>* crew, processes::host_link* link = nullptr)
      : index_(index),
        device_(device),
        coordinate_(Mesh::coordinate(index)),
        communicators_(std::move(c)),
        crew_(crew),
        link_(link) {
    if (crew_) meeting_.emplace(crew_->meeting, index);
    else if (Mesh::size > 1 && !link_) mailbox_ = std::make_unique<cuda::mailbox>(Mesh::size);
    cuda::check(cudaDeviceGetAttribute(&multiprocessors_, cudaDevAttrMultiProcessorCount, device), "cudaDeviceGetAttribute");
  }

  int index() const { return index_; }
  static constexpr int size() { return Mesh::size; }
  const std::array<int, max_axes>& coordinate() const { return coordinate_; }
  int coordinate(int axis) const { return coordinate_[static_cast<unsigned>(axis)]; }
  int device() const { return device_; }
  int multiprocessors() const { return multiprocessors_; }
  // Whether what one rank writes on the host another can read.
  bool shares_memory() const { return crew_ || Mesh::size == 1; }
  // Of the ranks along an axis, numbered by their coordinate on it; null on an axis of one rank, and on one that hosts carry.
  ncclComm_t communicator(int axis) { return communicators_.axis(axis); }
  cuda::communicators& all_communicators() { return communicators_; }

  // What joins the hosts of ranks that launch_cuda_mpi has made; null for others.
  processes::host_link* link() const { return link_; }
  // Every executor names its stream here before it queues a run, or reads or writes blocks that another one may use.
  cuda::run_order& order() { return order_; }
  // Whether collectives along an axis go through hosts: see staged_collectives.
  bool is_carried(int axis) const { return link_ && link_->carries(axis); }

  // All ranks meet. As threads they meet on the host, whatever their devices still do; as processes when each device is
  // done, since communicators must be used in one order on all ranks and streams give none: by NCCL, or by MPI where it has
  // started them. Not inside a capture.
  void barrier() {
    if (meeting_) return released([&] { meeting_->barrier(); });
    if (!link_) return static_cast<void>(first_of(0));
    drain();
    link_->barrier();
  }
  // Returns when the device is done with all that this rank has queued.
  void drain() {
    const awaiting_device waits(*this);
    cuda::check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    check_peers();
  }

  // Every rank must show the same value: programs, seeds, sizes that have to agree.
  void agree(std::uint64_t value, const char* what) {
    if (meeting_) return released([&] { meeting_->agree(value, what); });
    if (link_) return link_->agree(value, what);
    if (const std::uint64_t first = first_of(value); first != value)
      throw std::logic_error("shardwise: rank " + std::to_string(index_) + " and rank 0 disagree on " + what + " (" +
                             std::to_string(value) + " and " + std::to_string(first) +
                             "); all ranks must run one program on equal arguments");
  }

  // As thread_rank::exchange, where ranks share memory.
  template <class F>
  void exchange(const void* mine, const F& f) {
    if (meeting_) released([&] { meeting_->exchange(mine, f); });
    else f([=](int) { return mine; });
  }

  // Memory of this rank's that its peers write into, of words[a] words from each along axis a, if all ranks of the axis are threads of one
  // process, ask for as many, and have devices that reach each other's memory; null where not, or where 0 are asked for. It stays until
  // the launch ends, and is given out again where it is large enough. Collective.
  std::array<const cuda::peer_slots*, max_axes> share_slots(const std::array<std::int32_t, max_axes>& words,
                                                            cudaStream_t stream) {
    std::array<const cuda::peer_slots*, max_axes> shared{};
    if (!crew_ || Mesh::size == 1) return shared;
    std::array<cuda::slot_offer, max_axes> mine{};
    for (int a = 0; a < Mesh::axes; ++a) {
      const std::int32_t wanted = words[at(a)];
      auto& made = slots_[at(a)];
      if (wanted == 0 || !reaches_peers(a)) continue;
      if (made.empty() || made.back()->slots.words < wanted)
        made.push_back(std::make_unique<cuda::slot_memory>(wanted, Mesh::sizes[at(a)], stream));
      mine[at(a)] = {made.back()->data(), made.back()->slots.words};
    }
    synchronize(stream);  // a peer may write as soon as it has the address
    exchange(mine.data(), [&](const auto& shown) {
      for (int a = 0; a < Mesh::axes; ++a)
        if (mine[at(a)].at) shared[at(a)] = joined_slots(a, mine[at(a)].words, shown);
    });
    return shared;
  }

  // Words of which each rank has set its own and left the others 0: all of them, on every rank. Bits are added, so that
  // they arrive as they are.
  template <class E>
  void combine_disjoint(std::vector<E>& whole) {
    // Sums of whole numbers of which one rank alone holds any but 0: of one byte or two, each byte is one.
    constexpr ncclDataType_t word = sizeof(E) == 8 ? ncclUint64 : sizeof(E) == 4 ? ncclUint32 : ncclUint8;
    const std::size_t words = sizeof(E) < 4 ? whole.size() * sizeof(E) : whole.size();
    if (link_) return link_->combine_disjoint(whole.data(), whole.size() * sizeof(E));
    if (!mailbox_ || whole.empty()) return;
    const awaiting_device waits(*this);
    cuda::check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    const cuda::device_memory m(whole.size() * sizeof(E));
    const cudaStream_t s = mailbox_->queue.get();
    cuda::check(cudaMemcpyAsync(m.data(), whole.data(), whole.size() * sizeof(E), cudaMemcpyHostToDevice, s),
                "cudaMemcpyAsync");
    cuda::check(ncclAllReduce(m.data(), m.data(), words, word, ncclSum, communicators_.world(), s), "ncclAllReduce");
    cuda::check(cudaMemcpyAsync(whole.data(), m.data(), whole.size() * sizeof(E), cudaMemcpyDeviceToHost, s),
                "cudaMemcpyAsync");
    synchronize(s);
  }

  // While it stands, this rank waits for its device: a wait that is too long is ended, see rank_timeout.
  class awaiting_device {
   public:
    explicit awaiting_device(cuda_rank& rank) : place_(rank.place()) {
      if (place_) place_->awaits_device();
    }
    awaiting_device(const awaiting_device&) = delete;
    awaiting_device& operator=(const awaiting_device&) = delete;
    ~awaiting_device() {
      if (place_) place_->goes_on();
    }

   private:
    threads::standing* place_;
  };

  // What waits for a device waits here, so that whoever watches over the rank knows it (test/device_waits.py): behind a collective that a
  // peer does not come to, every such call would wait for ever, and so do copies from and to memory that is not pinned, frees of the
  // device's memory, and launches that find the device's queue full.

  // Waits for the stream, and throws if it ended because another rank failed: its results are then worthless.
  void synchronize(cudaStream_t stream) {
    wait([=] { return cudaStreamQuery(stream); },
         [=] { cuda::check(cudaStreamSynchronize(stream), "cudaStreamSynchronize"); });
  }
  // Waits for what has been queued before the event was recorded.
  void synchronize(const cuda::event& e) {
    wait([&] { return cudaEventQuery(e.get()); },
         [&] { cuda::check(cudaEventSynchronize(e.get()), "cudaEventSynchronize"); });
  }
  // Copies behind what is queued on the stream, from or to memory of the host that need not be pinned; done when it returns.
  void copy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
    synchronize(stream);
    if (bytes > 0) cuda::check(cudaMemcpyAsync(to, from, bytes, kind, stream), "cudaMemcpyAsync");
    synchronize(stream);
  }
  // Waits for the device without an error, before memory of it is freed: where the run has failed, its end is what matters.
  void settle() noexcept {
    const awaiting_device waits(*this);
    cudaDeviceSynchronize();
  }

  // Throws if another rank has failed, has ended or does not come: see crew and lifeline; and for what NCCL notices of its network.
  void check_peers() {
    if (crew_) {
      if (crew_->failed) released([] { throw rank_failed(); });
      return;
    }
    if (link_) link_->check();
    if (line_)
      if (const std::string cause = line_->cause(); !cause.empty()) throw rank_failed(cause);
    communicators_.each([](ncclComm_t c) {
      ncclResult_t state = ncclSuccess;
      cuda::check(ncclCommGetAsyncError(c, &state), "ncclCommGetAsyncError");
      cuda::check(state, "a collective");
    });
  }

  // Reports a failure before the stack is unwound, so that nothing on the way waits for peers that wait for this rank.
  // What leaves f is reported by itself.
  void fail(std::exception_ptr e) {
    if (crew_) crew_->fail(e, index_);
    if (link_) link_->fail(e);
  }

  // Says that `n` collectives on an axis are about to be queued; throws if a rank that they wait for has returned. Between
  // threads; of another process nothing is known here, and whoever watches over this one finds out.
  void queue_collectives(int axis, std::int64_t n) {
    if (crew_ && n > 0) crew_->queue(index_, axis, n);
    if (line_) line_->queue(n);
    if (link_) link_->queue(axis, n);
  }

  // A rank that is a process learns of the others' ends from it.
  void attach(processes::lifeline& line) { line_ = &line; }

  // Payload sent to other ranks, as communicate counts it; and that which hosts have sent, when they have.
  std::int64_t bytes_written(int axis) const {
    return written_[static_cast<unsigned>(axis)] + (link_ ? link_->bytes_written(axis) : 0);
  }
  void count_written(int axis, std::int64_t bytes) { written_[static_cast<unsigned>(axis)] += bytes; }
  void reset_counts() {
    written_ = {};
    if (link_) link_->reset_counts();
  }

 private:
  static constexpr std::size_t at(int i) { return static_cast<std::size_t>(i); }
  // Whether all devices along an axis, rank r's being number r, reach each other's memory: every rank of it finds the same. This one's is
  // given access to the others' then; where CUDA refuses it, this rank offers no memory.
  bool reaches_peers(int axis) const {
    const int n = Mesh::sizes[at(axis)];
    if (n == 1 || n > cuda::max_slot_ranks) return false;
    for (int i = 0; i < n; ++i)
      for (int k = 0; k < n; ++k) {
        const int from = Mesh::group_member(index_, axis, i), to = Mesh::group_member(index_, axis, k);
        int can = 0;
        if (from == to) continue;
        cuda::check(cudaDeviceCanAccessPeer(&can, from, to), "cudaDeviceCanAccessPeer");
        if (!can) return false;
      }
    for (int k = 0; k < n; ++k) {
      const int peer = Mesh::group_member(index_, axis, k);
      if (peer == index_) continue;
      const cudaError_t given = cudaDeviceEnablePeerAccess(peer, 0);
      if (given != cudaSuccess) cudaGetLastError();
      if (given != cudaSuccess && given != cudaErrorPeerAccessAlreadyEnabled) return false;
    }
    return true;
  }
  // Null if another rank of the axis has no memory of this size.
  template <class Shown>
  const cuda::peer_slots* joined_slots(int axis, std::int32_t words, const Shown& shown) {
    cuda::peer_slots& s = slots_[at(axis)].back()->slots;
    s.abort = crew_->abort_word();
    s.rank = coordinate(axis);
    for (int k = 0; k < s.ranks; ++k) {
      const auto& offer = static_cast<const cuda::slot_offer*>(shown(Mesh::group_member(index_, axis, k)))[axis];
      if (!offer.at || offer.words != words) return nullptr;
      if (k != s.rank) s.lands[k] = cuda::slot_memory::landing(offer.at, words, s.rank, k);
    }
    return &s;
  }
  // Between threads a failure aborts the communicators of all, which ends the wait; a process has to look for itself.
  template <class Query, class Wait>
  void wait(const Query& query, const Wait& until_done) {
    const awaiting_device waits(*this);
    if (crew_) {
      until_done();
      return check_peers();
    }
    for (int turn = 0;; ++turn) {
      const cudaError_t state = query();
      if (state == cudaSuccess) return check_peers();
      if (state != cudaErrorNotReady) cuda::check(state, "a wait for the device");
      if (turn % 1024 == 1023) {
        check_peers();
        std::this_thread::yield();
      }
    }
  }
  template <class F>
  void released(F&& from) {
    try {
      from();
    } catch (const rank_failed&) {
      if (!std::exchange(quiet_, true)) crew_->quieten();
      throw;
    }
  }
  threads::standing* place() {
    return crew_ ? &crew_->places[0][index_] : line_ ? &line_->place() : link_ ? &link_->place() : nullptr;
  }

  // The value that rank 0 shows. No rank has it before all have come.
  std::uint64_t first_of(std::uint64_t value) {
    if (!mailbox_) return value;
    const awaiting_device waits(*this);
    cuda::check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    const cudaStream_t s = mailbox_->queue.get();
    auto* const words = reinterpret_cast<std::uint64_t*>(mailbox_->words.data());
    cuda::check(cudaMemcpyAsync(words + Mesh::size, &value, sizeof value, cudaMemcpyHostToDevice, s), "cudaMemcpyAsync");
    cuda::check(ncclAllGather(words + Mesh::size, words, 1, ncclUint64, communicators_.world(), s), "ncclAllGather");
    cuda::check(cudaMemcpyAsync(&value, words, sizeof value, cudaMemcpyDeviceToHost, s), "cudaMemcpyAsync");
    synchronize(s);
    return value;
  }

  int index_, device_, multiprocessors_ = 1;
  std::array<int, max_axes> coordinate_;
  cuda::communicators communicators_;
  cuda::crew<Mesh>* crew_;
  processes::host_link* link_;
  std::optional<thread_rank<Mesh>> meeting_;
  std::unique_ptr<cuda::mailbox> mailbox_;
  processes::lifeline* line_ = nullptr;
  std::array<std::int64_t, max_axes> written_{};
  std::array<std::vector<std::unique_ptr<cuda::slot_memory>>, max_axes> slots_;  // by axis, the largest last
  cuda::run_order order_;
  bool quiet_ = false;
};

}  // namespace SHARDWISE_RANK_BUILD

}  // namespace shardwise::inline v0_1
