// SPDX-License-Identifier: Apache-2.0
// Primitives of oneDNN for one convolution: which formats it computes in, the copies into and out of those, and its memory. With
// oneDNN's own headers: included by convolution.hpp beside it alone. oneDNN 2 (from 2.5 on) or 3, for processors.
#pragma once

#include <dlfcn.h>

#include <dnnl.hpp>

#include <cstdlib>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <unordered_map>

#include <shardwise/runtime/host/convolution_library.hpp>
#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1::runtime::onednn {

using dims = dnnl::memory::dims;
using desc = dnnl::memory::desc;
using tag = dnnl::memory::format_tag;

inline std::string version() {
  const dnnl_version_t* const v = dnnl_version();
  return std::to_string(v->major) + "." + std::to_string(v->minor) + "." + std::to_string(v->patch);
}

// --- threads ----------------------------------------------------------------------------------------------------------------

// oneDNN's own threads. A rank is a thread, and so is each of its compute threads: a primitive is made and run by the one that calls it.
// OpenMP's number of threads is the calling thread's own and is set to 1 meanwhile, by the functions that oneDNN itself finds in the
// process, so nothing needs OMP_NUM_THREADS and no other region of the program is altered.
class one_thread {
 public:
  one_thread() {
    if (const functions& f = found(); f.set) {
      before_ = f.get();
      if (before_ != 1) f.set(1);
    }
  }
  one_thread(const one_thread&) = delete;
  one_thread& operator=(const one_thread&) = delete;
  ~one_thread() {
    if (before_ > 1) found().set(before_);
  }
  // Why it cannot be kept to one thread; empty: it can.
  static std::string refusal() {
    const unsigned threads = dnnl_version()->cpu_runtime;
    if (threads == DNNL_RUNTIME_SEQ) return {};
    if (threads != DNNL_RUNTIME_OMP)
      return "this oneDNN has threads of its own (TBB or another pool); one that is built for OpenMP or without threads is taken";
    return found().set ? "" : "its OpenMP has no omp_set_num_threads in this process";
  }

 private:
  struct functions {
    int (*get)() = nullptr;
    void (*set)(int) = nullptr;
  };
  static const functions& found() {
    static const functions f = [] {
      functions of;
      if (dnnl_version()->cpu_runtime != DNNL_RUNTIME_OMP) return of;
      of.get = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "omp_get_max_threads"));
      of.set = reinterpret_cast<void (*)(int)>(dlsym(RTLD_DEFAULT, "omp_set_num_threads"));
      if (!of.get) of.set = nullptr;
      return of;
    }();
    return f;
  }
  int before_ = 1;
};

// --- memory -----------------------------------------------------------------------------------------------------------------

// One piece for each thread, as large as the largest convolution that it has run asks for; freed where the thread ends. A program's
// planned memory does not have it.
class thread_memory {
 public:
  static char* of(std::size_t bytes) {
    thread_local thread_memory own;
    if (bytes > own.bytes_) {
      std::free(own.data_);
      own.bytes_ = 0;
      own.data_ = std::aligned_alloc(64, round_up(bytes));
      if (!own.data_) throw std::bad_alloc();
      own.bytes_ = bytes;
    }
    return static_cast<char*>(own.data_);
  }
  static std::size_t round_up(std::size_t bytes) { return (bytes + 63) / 64 * 64; }
  thread_memory(const thread_memory&) = delete;
  thread_memory& operator=(const thread_memory&) = delete;

 private:
  thread_memory() = default;
  ~thread_memory() { std::free(data_); }
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
};

inline const dnnl::engine& engine() {
  static const dnnl::engine* const one = new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return *one;
}

// --- descriptions -----------------------------------------------------------------------------------------------------------

// The strides of a dense block whose dims are stored in `order`, outermost first.
inline dims dense_strides(const dims& extent, const int (&order)[4]) {
  dims s(4);
  std::int64_t step = 1;
  for (int k = 3; k >= 0; --k) {
    s[static_cast<std::size_t>(order[k])] = step;
    step *= extent[static_cast<std::size_t>(order[k])];
  }
  return s;
}
// Dims of one element may have any stride.
inline bool lies_as(const dims& extent, const std::int64_t (&stride)[4], const dims& dense) {
  for (std::size_t d = 0; d < 4; ++d)
    if (extent[d] > 1 && stride[d] != dense[d]) return false;
  return true;
}

// A block of four dims as the program stores it.
struct block {
  dims extent, stride;
  bool contiguous = false, last = false;  // both of some blocks

  block(const dims& e, const std::int64_t (&s)[4]) : extent(e), stride(s, s + 4) {
    const dims rows = dense_strides(e, {0, 1, 2, 3}), channels = dense_strides(e, {0, 2, 3, 1});
    contiguous = lies_as(e, s, rows);
    last = lies_as(e, s, channels);
  }
  desc as_it_lies(bool channels_last) const {
    if (channels_last && last) return in(tag::nhwc);
    if (contiguous) return in(tag::nchw);
    if (last) return in(tag::nhwc);
    return {extent, dnnl::memory::data_type::f32, stride};
  }
  desc in(tag t) const { return {extent, dnnl::memory::data_type::f32, t}; }
};

inline desc weight_of(const convolution_request& r) {
  const std::int64_t(&s)[4] = r.weight;
  if (r.groups == 1) return {{r.o, r.i, r.kh, r.kw}, dnnl::memory::data_type::f32, dims(s, s + 4)};
  const std::int64_t of_group = r.o / r.groups;
  return {
      {r.groups, of_group, r.i, r.kh, r.kw}, dnnl::memory::data_type::f32, dims{of_group * s[0], s[0], s[1], s[2], s[3]}};
}
inline desc any_weight_of(const convolution_request& r) {
  if (r.groups == 1) return {{r.o, r.i, r.kh, r.kw}, dnnl::memory::data_type::f32, tag::any};
  return {{r.groups, r.o / r.groups, r.i, r.kh, r.kw}, dnnl::memory::data_type::f32, tag::any};
}

// Whether sums may be computed by plain loops, slower than the built-in kernels.
inline bool is_reference(const std::string& implementation) { return implementation.compare(0, 3, "ref") == 0; }

// --- a plan -----------------------------------------------------------------------------------------------------------------

// A convolution that oneDNN computes: its primitive and the copies around it. Made once; run by many threads at a time, since nothing of
// it is written.
class plan {
 public:
  explicit plan(const convolution_request& r)
      : pass_(r.pass),
        image_({r.n, r.c, r.h, r.w}, r.image),
        result_({r.n, r.o, r.oh, r.ow}, r.result),
        given_{desc(), weight_of(r), desc()} {
    // Computed channels-last where one of the two lies so alone, or both may be taken for it; what does not lie so is copied.
    const auto alone = [](const block& b) { return b.last && !b.contiguous; };
    const bool last = alone(image_) || alone(result_) || (image_.last && result_.last);
    given_[0] = image_.as_it_lies(last);
    given_[2] = result_.as_it_lies(last);
    // The first of these formats for which oneDNN has a kernel of its own making: as the blocks lie, as it would have them, channels-last.
    // Where it has none, its products of copied windows, but not group by group; that, and kernels that are not made for single channels
    // where blocks lie channels-last, take twice as long as the built-in ones and longer.
    const desc x[] = {last ? image_.in(tag::nhwc) : given_[0], image_.in(tag::any), image_.in(tag::nhwc)};
    const desc y[] = {last ? result_.in(tag::nhwc) : given_[2], result_.in(tag::any), result_.in(tag::nhwc)};
    bool made = false;
    for (int k = 0; k < 3 && !made; ++k)
      made = make(r, x[k], y[k]) && is_made(implementation_, last && r.groups > 1 && r.i == 1);
    if (!made && r.groups > 1) throw std::runtime_error("oneDNN has no kernel for such groups but slow ones");
    if (!made) make(r, x[1], y[1]);
    if (implementation_.empty()) throw std::runtime_error("oneDNN has no kernel for it");
    if (is_reference(implementation_)) throw std::runtime_error("oneDNN has plain loops for it alone");
    settle_memory();
  }
  const std::string& implementation() const { return implementation_; }

  void run(const convolution_pointers& p) const {
    char* const memory = thread_memory::of(bytes_);
    dnnl::stream stream(engine());
    void* const given[] = {p.image, p.weight, p.result};
    dnnl::memory of[3];
    for (int k = 0; k < 3; ++k) {
      of[k] = dnnl::memory(used_[k], engine(), copy_[k] ? memory + at_[k] : given[k]);
      if (copy_[k] && k != written()) copy(k, stream, dnnl::memory(given_[k], engine(), given[k]), of[k], memory);
    }
    const bool forward = pass_ == convolution_pass::forward, weights = pass_ == convolution_pass::weight_gradient;
    convolution_.execute(stream, {{forward || weights ? DNNL_ARG_SRC : DNNL_ARG_DIFF_SRC, of[0]},
                                  {weights ? DNNL_ARG_DIFF_WEIGHTS : DNNL_ARG_WEIGHTS, of[1]},
                                  {forward ? DNNL_ARG_DST : DNNL_ARG_DIFF_DST, of[2]},
                                  {DNNL_ARG_SCRATCHPAD, dnnl::memory(scratch_, engine(), memory)}});
    if (const int k = written(); copy_[k]) copy(k, stream, of[k], dnnl::memory(given_[k], engine(), given[k]), memory);
    stream.wait();
  }

 private:
  // For these very strides, not by matrix products of copied windows; and for single channels.
  static bool is_made(const std::string& implementation, bool single) {
    const auto has = [&](const char* word) { return implementation.find(word) != std::string::npos; };
    return !is_reference(implementation) && !has("gemm:") && (!single || has("dw"));
  }
  int written() const { return pass_ == convolution_pass::forward ? 2 : pass_ == convolution_pass::image_gradient ? 0 : 1; }

  // The primitive for such blocks; false: there is none. Each copy's memory and the primitive's own are the caller's.
  bool make(const convolution_request& r, const desc& x, const desc& y) {
    try {
      dnnl::primitive_attr attr;
      attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
      attr.set_fpmath_mode(dnnl::fpmath_mode::strict);  // whatever the environment says, floats are multiplied as floats
      const desc w = any_weight_of(r);
      const dims stride(r.stride, r.stride + 2), before(r.before, r.before + 2), behind(r.behind, r.behind + 2),
          dilation{r.dilation[0] - 1, r.dilation[1] - 1};
      constexpr auto direct = dnnl::algorithm::convolution_direct;
      constexpr auto forward = dnnl::prop_kind::forward_training;
#if DNNL_VERSION_MAJOR >= 3
      const dnnl::convolution_forward::primitive_desc f(engine(), forward, direct, x, w, y, stride, dilation, before, behind,
                                                        attr);
      if (pass_ == convolution_pass::forward)
        keep<dnnl::convolution_forward>(f, f.src_desc(), f.weights_desc(), f.dst_desc());
      else if (pass_ == convolution_pass::image_gradient) {
        const dnnl::convolution_backward_data::primitive_desc b(engine(), direct, x, w, y, stride, dilation, before, behind,
                                                                f, attr);
        keep<dnnl::convolution_backward_data>(b, b.diff_src_desc(), b.weights_desc(), b.diff_dst_desc());
      } else {
        const dnnl::convolution_backward_weights::primitive_desc b(engine(), direct, x, w, y, stride, dilation, before,
                                                                   behind, f, attr);
        keep<dnnl::convolution_backward_weights>(b, b.src_desc(), b.diff_weights_desc(), b.diff_dst_desc());
      }
#else
      const dnnl::convolution_forward::primitive_desc f({forward, direct, x, w, y, stride, dilation, before, behind}, attr,
                                                        engine());
      if (pass_ == convolution_pass::forward)
        keep<dnnl::convolution_forward>(f, f.src_desc(), f.weights_desc(), f.dst_desc());
      else if (pass_ == convolution_pass::image_gradient) {
        const dnnl::convolution_backward_data::primitive_desc b({direct, x, w, y, stride, dilation, before, behind}, attr,
                                                                engine(), f);
        keep<dnnl::convolution_backward_data>(b, b.diff_src_desc(), b.weights_desc(), b.diff_dst_desc());
      } else {
        const dnnl::convolution_backward_weights::primitive_desc b({direct, x, w, y, stride, dilation, before, behind}, attr,
                                                                   engine(), f);
        keep<dnnl::convolution_backward_weights>(b, b.src_desc(), b.diff_weights_desc(), b.diff_dst_desc());
      }
#endif
      return true;
    } catch (const dnnl::error& e) {
      if (e.status != dnnl_unimplemented && e.status != dnnl_invalid_arguments) throw;
      return false;
    }
  }
  template <class Primitive, class Description>
  void keep(const Description& d, const desc& x, const desc& w, const desc& y) {
    convolution_ = Primitive(d);
    implementation_ = d.impl_info_str();
    scratch_ = d.scratchpad_desc();
    used_[0] = x;
    used_[1] = w;
    used_[2] = y;
  }

  // Scratch of the primitive and of the copies is in one place, since they run one after the other; blocks that are copied lie behind it.
  void settle_memory() {
    std::size_t scratch = scratch_.get_size();
    for (int k = 0; k < 3; ++k) {
      if (used_[k] == given_[k]) continue;
      dnnl::primitive_attr attr;
      attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
      const bool out = k == written();
      const dnnl::reorder::primitive_desc d(engine(), out ? used_[k] : given_[k], engine(), out ? given_[k] : used_[k],
                                            attr);
      copy_[k] = std::make_unique<dnnl::reorder>(d);
      copy_scratch_[k] = d.scratchpad_desc();
      if (copy_scratch_[k].get_size() > scratch) scratch = copy_scratch_[k].get_size();
    }
    bytes_ = thread_memory::round_up(scratch);
    for (int k = 0; k < 3; ++k)
      if (copy_[k]) {
        at_[k] = bytes_;
        bytes_ += thread_memory::round_up(used_[k].get_size());
      }
  }
  void copy(int k, dnnl::stream& stream, const dnnl::memory& from, const dnnl::memory& to, char* memory) const {
    copy_[k]->execute(
        stream,
        {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}, {DNNL_ARG_SCRATCHPAD, dnnl::memory(copy_scratch_[k], engine(), memory)}});
  }

  convolution_pass pass_;
  block image_, result_;
  desc given_[3], used_[3];  // image, weight, result: as the program stores them, as the primitive takes them
  std::string implementation_;
  dnnl::primitive convolution_;
  desc scratch_, copy_scratch_[3];
  std::unique_ptr<dnnl::reorder> copy_[3];  // null: used as given
  std::size_t at_[3]{}, bytes_ = 0;
};

}  // namespace shardwise::inline v0_1::runtime::onednn
