// SPDX-License-Identifier: Apache-2.0
// cuda_rank: one GPU of a mesh: who it is, its communicators, how it meets the other ranks and learns that one failed.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include <shardwise/runtime/cuda/communicators.hpp>

namespace shardwise {

namespace cuda {

// What ranks share that are threads of one process.
template <class Mesh>
struct crew {
  threads::world<Mesh> meeting;
  std::atomic<bool> failed{false};

  void fail(std::exception_ptr e, int rank) {
    meeting.fail(with_rank(e, rank));
    const std::lock_guard lock(mutex_);
    failed = true;
    changed_.notify_all();
  }
  void leave() {
    const std::lock_guard lock(mutex_);
    --running_;
    changed_.notify_all();
  }
  // Until all have left or one has failed.
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return running_ == 0 || failed; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int running_ = Mesh::size;
};

struct stream_end {
  void operator()(cudaStream_t s) const { cudaStreamDestroy(s); }
};
struct device_memory_end {
  void operator()(void* p) const { cudaFree(p); }
};

// With what a rank that is a process meets the others: a stream of its own and a word from each rank, so that meeting
// does not disturb what is captured or runs.
struct mailbox {
  std::unique_ptr<CUstream_st, stream_end> stream;
  std::unique_ptr<std::uint64_t, device_memory_end> words;

  explicit mailbox(int ranks) {
    cudaStream_t s = nullptr;
    check(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
    stream.reset(s);
    void* p = nullptr;
    check(cudaMalloc(&p, static_cast<std::size_t>(ranks + 1) * sizeof(std::uint64_t)), "cudaMalloc");
    words.reset(static_cast<std::uint64_t*>(p));
  }
};

}  // namespace cuda

// Made by launch_cuda and launch_cuda_process, and used by one thread, whose current device is the rank's. Streams,
// memory and graphs that f(rank) makes have to be gone when f returns or throws.
template <class Mesh>
class cuda_rank {
 public:
  using mesh_type = Mesh;

  cuda_rank(int index, int device, cuda::communicators c, cuda::crew<Mesh>* crew)
      : index_(index), device_(device), coordinate_(Mesh::coordinate(index)), communicators_(std::move(c)), crew_(crew) {
    if (crew_)
      meeting_.emplace(crew_->meeting, index);
    else if (Mesh::size > 1)
      mailbox_.emplace(Mesh::size);
  }

  int index() const { return index_; }
  static constexpr int size() { return Mesh::size; }
  const std::array<int, max_axes>& coordinate() const { return coordinate_; }
  int coordinate(int axis) const { return coordinate_[static_cast<unsigned>(axis)]; }
  int device() const { return device_; }
  // Of the ranks along an axis, numbered by their coordinate on it; null on an axis of one rank.
  ncclComm_t communicator(int axis) { return communicators_.axis(axis); }
  cuda::communicators& all_communicators() { return communicators_; }

  // All ranks meet on the host. What they have enqueued on streams need not be done.
  void barrier() {
    if (meeting_)
      meeting_->barrier();
    else
      first_of(0);
  }

  // Every rank must show the same value: programs, seeds, sizes that have to agree.
  void agree(std::uint64_t value, const char* what) {
    if (meeting_) return meeting_->agree(value, what);
    if (first_of(value) != value)
      throw std::logic_error("shardwise: rank " + std::to_string(index_) + " and rank 0 disagree on " + what +
                             "; all ranks must run one program on equal arguments");
  }

  // Waits for the stream, and throws if it ended because another rank failed: its results are then worthless.
  void synchronize(cudaStream_t stream) {
    if (crew_) {
      cuda::check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
      check_peers();
      return;
    }
    for (int turn = 0;; ++turn) {
      const cudaError_t state = cudaStreamQuery(stream);
      if (state == cudaSuccess) return check_peers();
      if (state != cudaErrorNotReady) cuda::check(state, "cudaStreamQuery");
      if (turn % 1024 == 1023) {
        check_peers();
        std::this_thread::yield();
      }
    }
  }

  // Throws if another rank has failed, as far as it is known here: between threads always; of another process what
  // NCCL notices of its network, while the launcher ends the processes of one machine.
  void check_peers() {
    if (crew_) {
      if (crew_->failed) throw rank_failed();
      return;
    }
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
  }

  // Payload handed to NCCL for other ranks, as communicate counts it; a replayed graph counts each time.
  std::int64_t bytes_written(int axis) const { return written_[static_cast<unsigned>(axis)]; }
  void count_written(int axis, std::int64_t bytes) { written_[static_cast<unsigned>(axis)] += bytes; }
  void reset_counts() { written_ = {}; }

 private:
  // The value that rank 0 shows. No rank has it before all have come.
  std::uint64_t first_of(std::uint64_t value) {
    if (!mailbox_) return value;
    const cudaStream_t s = mailbox_->stream.get();
    std::uint64_t* const words = mailbox_->words.get();
    cuda::check(cudaMemcpyAsync(words + Mesh::size, &value, sizeof value, cudaMemcpyHostToDevice, s), "cudaMemcpyAsync");
    cuda::check(ncclAllGather(words + Mesh::size, words, 1, ncclUint64, communicators_.world(), s), "ncclAllGather");
    cuda::check(cudaMemcpyAsync(&value, words, sizeof value, cudaMemcpyDeviceToHost, s), "cudaMemcpyAsync");
    synchronize(s);
    return value;
  }

  int index_, device_;
  std::array<int, max_axes> coordinate_;
  cuda::communicators communicators_;
  cuda::crew<Mesh>* crew_;
  std::optional<thread_rank<Mesh>> meeting_;
  std::optional<cuda::mailbox> mailbox_;
  std::array<std::int64_t, max_axes> written_{};
};

}  // namespace shardwise
