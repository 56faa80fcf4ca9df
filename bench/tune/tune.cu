// SPDX-License-Identifier: Apache-2.0
// Measures what sw::tuned decides by on the first GPU, and prints the table of a device (include/shardwise/pass/tune/): products of one
// operand with several others, or that are added up, as one launch beside one launch each; what goes back through a norm in one kernel
// beside two; the loss of rows of logits with what goes back to them in one beside three. Thousandths of the time apart, medians of graphs that hold some launches of either, by the algorithms of cuBLASLt that an
// executor would choose.
// usage: bench_tune_tune_cuda NAME > include/shardwise/pass/tune/NAME.hpp        # NAME: h100, h200; about a minute
#include <shardwise/cuda.cuh>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include <shardwise/graph/expression.hpp>

namespace {

namespace sw = shardwise;
namespace rt = shardwise::runtime;
namespace cu = shardwise::cuda;
using rt::call;
using rt::layout;
using sw::op_code;

constexpr sw::expression plus_value = [] {
  sw::expression e = sw::begin_expression(2, 0, true);
  e.append({op_code::add, 0, 1, 0, 0});
  return e;
}();

// What is queued, as microseconds.
class clock {
 public:
  explicit clock(cudaStream_t stream) : stream_(stream) {}

  template <class F>
  double microseconds(F&& queue) {
    queue();  // chooses algorithms, which no capture allows
    const double once = timed([&] { queue(); });
    const int times = std::clamp(static_cast<int>(400 / once), 1, 20);
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t runs = nullptr;
    cu::check(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
    for (int k = 0; k < times; ++k) queue();
    cu::check(cudaStreamEndCapture(stream_, &graph), "cudaStreamEndCapture");
    cu::check(cudaGraphInstantiate(&runs, graph, 0), "cudaGraphInstantiate");
    std::vector<double> all;
    for (int turn = 0; turn < 8; ++turn) {
      const double t = timed([&] { cu::check(cudaGraphLaunch(runs, stream_), "cudaGraphLaunch"); });
      if (turn > 0) all.push_back(t / times);
    }
    cudaGraphExecDestroy(runs);
    cudaGraphDestroy(graph);
    std::sort(all.begin(), all.end());
    return all[all.size() / 2];
  }

 private:
  template <class F>
  double timed(F&& f) {
    cu::timing_event begin, end;
    begin.record(stream_);
    f();
    end.record(stream_);
    cu::check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
    return static_cast<double>(end.since(begin)) * 1e-3;
  }
  cudaStream_t stream_;
};

layout dense(std::initializer_list<std::int64_t> e) {
  layout l;
  for (const std::int64_t n : e) l.ext[l.rank] = l.global[l.rank] = n, ++l.rank;
  l.make_dense();
  return l;
}
layout repeated(layout l) {
  l.str[0] = 0;
  return l;
}

struct blocks {
  cu::device_memory x, y, w, z, b, workspace;
  explicit blocks(std::size_t bytes)
      : x(bytes), y(bytes), w(bytes), z(bytes), b(std::size_t{1} << 22), workspace(std::size_t{1} << 28) {
    for (const cu::device_memory* m : {&x, &y, &w, &z})
      cu::check(cudaMemset(m->data(), 0x3c, bytes), "cudaMemset");  // small numbers
    cu::check(cudaMemset(b.data(), 0x3c, std::size_t{1} << 22), "cudaMemset");
  }
};

// Labels of a product's operands and result, outermost dim first: r a row, i a feature of x, o of y.
constexpr std::int64_t r = 1, i = 2, o = 3, stack = 15;
constexpr std::int64_t labels(std::initializer_list<std::int64_t> of) {
  std::int64_t v = 0, shift = 0;
  for (const std::int64_t l : of) v |= l << shift, shift += 4;
  return v;
}

template <class T>
class measured_products {
 public:
  measured_products(cu::context& ctx, const blocks& of, std::int64_t rows, std::int64_t in, std::int64_t out, int count)
      : ctx_(ctx), of_(of), rows_(rows), in_(in), out_(out), count_(count) {}

  // y_k = x w_k^T + b_k
  int forward() const {
    return permille(
        [&] {
          for (int k = 0; k < count_; ++k) {
            call c = product({r, i}, {o, i}, {r, o}, dense({rows_, in_}), dense({out_, in_}), dense({rows_, out_}));
            place(c, at(of_.x, 0), at(of_.w, k * out_ * in_), at(of_.y, k * rows_ * out_));
            beside(c, dense({out_}), at(of_.b, k * out_));
            cu::kernel<op_code::einsum>::run_then<T, plus_value>(c, ctx_);
          }
        },
        [&] {
          call c = product({stack, r, i}, {stack, o, i}, {stack, r, o}, repeated(dense({count_, rows_, in_})),
                           dense({count_, out_, in_}), dense({count_, rows_, out_}));
          place(c, at(of_.x, 0), at(of_.w, 0), at(of_.y, 0));
          beside(c, dense({count_, 1, out_}), at(of_.b, 0));
          cu::kernel<op_code::einsum>::run_then<T, plus_value>(c, ctx_);
        });
  }
  // dw_k = dy_k^T x, and beside it the sums of dy_k over its rows
  int weights() const {
    return permille(
        [&] {
          for (int k = 0; k < count_; ++k) {
            call c = product({r, o}, {r, i}, {o, i}, dense({rows_, out_}), dense({rows_, in_}), dense({out_, in_}));
            place(c, at(of_.y, k * rows_ * out_), at(of_.x, 0), at(of_.w, k * out_ * in_));
            sums(c, dense({out_}), at(of_.b, k * out_));
            cu::kernel<op_code::einsum>::run<T>(c, ctx_);
          }
        },
        [&] {
          call c = product({stack, r, o}, {stack, r, i}, {stack, o, i}, dense({count_, rows_, out_}),
                           repeated(dense({count_, rows_, in_})), dense({count_, out_, in_}));
          place(c, at(of_.y, 0), at(of_.x, 0), at(of_.w, 0));
          sums(c, dense({count_, out_}), at(of_.b, 0));
          cu::kernel<op_code::einsum>::run<T>(c, ctx_);
        });
  }
  // dx = the sum of dy_k w_k
  int added() const {
    return permille(
        [&] {
          for (int k = 0; k < count_; ++k) {
            call c = product({r, o}, {o, i}, {r, i}, dense({rows_, out_}), dense({out_, in_}), dense({rows_, in_}));
            place(c, at(of_.y, k * rows_ * out_), at(of_.w, k * out_ * in_), k % 2 ? at(of_.z, 0) : at(of_.x, 0));
            if (k == 0) {
              cu::kernel<op_code::einsum>::run<T>(c, ctx_);
            } else {
              beside(c, dense({rows_, in_}), k % 2 ? at(of_.x, 0) : at(of_.z, 0));
              cu::kernel<op_code::einsum>::run_then<T, plus_value>(c, ctx_);
            }
          }
        },
        [&] {
          call c = product({stack, r, o}, {stack, o, i}, {r, i}, dense({count_, rows_, out_}), dense({count_, out_, in_}),
                           dense({rows_, in_}));
          place(c, at(of_.y, 0), at(of_.w, 0), at(of_.x, 0));
          cu::kernel<op_code::einsum>::run<T>(c, ctx_);
        });
  }

 private:
  template <class A, class M>
  int permille(A&& apart, M&& merged) const {
    clock c(ctx_.stream);
    const double one_each = c.microseconds(apart), together = c.microseconds(merged);
    return static_cast<int>(together / one_each * 1000 + 0.5);
  }
  static void* at(const cu::device_memory& m, std::int64_t element) { return reinterpret_cast<T*>(m.data()) + element; }
  call product(std::initializer_list<std::int64_t> lhs, std::initializer_list<std::int64_t> rhs,
               std::initializer_list<std::int64_t> out, const layout& x, const layout& y, const layout& z) const {
    call c;
    c.a = sw::pack_attributes(
        sw::einsum_attributes{.lhs = labels(lhs), .rhs = labels(rhs), .out = labels(out), .keeps_sums = 0});
    c.f = 1;
    c.inputs = c.all_inputs = 2;
    c.l[0] = x;
    c.l[1] = y;
    c.l[rt::result] = z;
    c.workspace = of_.workspace.data();
    return c;
  }
  static void place(call& c, void* x, void* y, void* z) {
    c.p[0] = x;
    c.p[1] = y;
    c.p[rt::result] = z;
    for (sw::dtype& t : c.type) t = sw::dtype_v<T>;
  }
  static void beside(call& c, const layout& l, void* p) {
    c.l[2] = l;
    c.p[2] = p;
    c.all_inputs = 3;
  }
  static void sums(call& c, const layout& l, void* p) {
    beside(c, l, p);
    c.inputs = 3;
    auto a = sw::attributes_of<sw::einsum_attributes>(c.a);
    a.keeps_sums = 1;
    c.a = sw::pack_attributes(a);
  }

  cu::context& ctx_;
  const blocks& of_;
  std::int64_t rows_, in_, out_;
  int count_;
};

template <class T>
call call_of(const blocks& of, std::initializer_list<const layout*> operands, std::initializer_list<void*> p,
             const layout& out, void* z) {
  call c;
  for (const layout* l : operands) c.l[c.inputs++] = *l;
  int k = 0;
  for (void* const q : p) c.p[k++] = q;
  c.all_inputs = c.inputs;
  c.l[rt::result] = out;
  c.p[rt::result] = z;
  c.workspace = of.workspace.data();
  for (sw::dtype& t : c.type) t = sw::dtype_v<T>;
  c.f = 1e-5;
  return c;
}

template <class T>
int joined_norm(cu::context& ctx, const blocks& of, std::int64_t rows, std::int64_t width) {
  const layout x = dense({rows, width}), w = dense({width}), stats = dense({rows, 2});
  std::byte* const small = of.b.data();
  clock c(ctx.stream);
  const layout both = dense({2, width});
  const double apart = c.microseconds([&] {
    call dx = call_of<T>(of, {&x, &x, &stats, &w}, {of.x.data(), of.y.data(), of.w.data(), small}, x, of.z.data());
    cu::kernel<op_code::norm_dx>::run<T>(dx, ctx);
    call dw = call_of<T>(of, {&x, &x, &stats, &w}, {of.x.data(), of.y.data(), of.w.data(), small + (1 << 20)}, w,
                         small + (2 << 20));
    cu::kernel<op_code::norm_dw_db>::run<T>(dw, ctx);
  });
  const double joined = c.microseconds([&] {
    call all = call_of<T>(of, {&x, &x, &w, &both}, {of.x.data(), of.y.data(), small, small + (1 << 20)}, x, of.z.data());
    all.a = sw::attributes<sw::norm_attributes>(0, 1);
    cu::kernel<op_code::norm_dx_dw>::run<T>(all, ctx);
  });
  return static_cast<int>(joined / apart * 1000 + 0.5);
}

template <class T>
int joined_loss(cu::context& ctx, const blocks& of, std::int64_t rows, std::int64_t classes) {
  using C = sw::computed_in<T>;
  if (rows * classes * static_cast<std::int64_t>(sizeof(T)) > (std::int64_t{1} << 31)) return 0;
  const layout x = dense({rows, classes}), row = dense({rows});
  std::byte* const small = of.b.data();  // cotangents, losses, log-sum-exps
  C *const dy = reinterpret_cast<C*>(small), *const loss = reinterpret_cast<C*>(small + (1 << 20)),
           *const norm = reinterpret_cast<C*>(small + (2 << 20));
  std::byte* const targets = of.workspace.data();
  cu::check(cudaMemset(targets, 0, static_cast<std::size_t>(rows) * 4), "cudaMemset");
  cu::fill_with_noise(of.x.data(), rows * classes * static_cast<std::int64_t>(sizeof(T)), cu::data_type<T>,
                      ctx.stream);  // logits that differ
  clock c(ctx.stream);
  const double apart = c.microseconds([&] {
    call a = call_of<T>(of, {&x}, {of.x.data()}, row, norm);
    cu::kernel<op_code::lse>::run<T>(a, ctx);
    call b = call_of<T>(of, {&x, &row, &row}, {of.x.data(), norm, targets}, row, loss);
    cu::kernel<op_code::nll>::run<T>(b, ctx);
    call d = call_of<T>(of, {&row, &x, &row, &row}, {dy, of.x.data(), norm, targets}, x, of.y.data());
    cu::kernel<op_code::nll_dx>::run<T>(d, ctx);
  });
  const double joined = c.microseconds([&] {
    call a = call_of<T>(of, {&row, &x, &row, &row}, {dy, of.x.data(), targets, loss}, x, of.y.data());
    cu::kernel<op_code::nll_dx_loss>::run<T>(a, ctx);
  });
  return static_cast<int>(joined / apart * 1000 + 0.5);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (cu::device_count() == 0) {
      std::printf("no GPU found: nothing is measured\n");
      return 0;
    }
    const std::string name = argc > 1 ? argv[1] : "device";
    int runtime = 0;
    cudaDeviceProp device{};
    cu::check(cudaGetDeviceProperties(&device, 0), "cudaGetDeviceProperties");
    cu::check(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
    cu::step_state state(device.multiProcessorCount);
    cu::context& ctx = state.of_stream(0);
    const blocks of(std::size_t{1} << 31);
    ctx.plans->begin_search({sw::product_choice::measured, 1e9, false, ""}, ctx.stream);

    std::printf(
        "// SPDX-License-Identifier: Apache-2.0\n"
        "// %s: what sw::tuned decides by on a %s, CUDA %d.%d: written by bench/tune/tune.cu, which says how.\n"
        "#pragma once\n\n#include <shardwise/pass/tune/times.hpp>\n\nnamespace shardwise::inline v0_1 {\n\n",
        name.c_str(), device.name, runtime / 1000, runtime % 1000 / 10);
    std::printf(
        "struct %s {\n  static constexpr bool tf32 = false;\n  // clang-format off\n"
        "  static constexpr passes::merged_products products[] = {\n",
        name.c_str());
    constexpr std::int64_t sizes[][2] = {{64, 64},     {128, 128},   {256, 256}, {512, 512},  {768, 768},  {1024, 1024},
                                         {2048, 2048}, {4096, 4096}, {128, 512}, {1024, 256}, {1024, 4096}};
    for (const std::int64_t rows : {64, 256, 1024, 4096, 16384})
      for (const auto& [in, out] : sizes)
        for (const int count : {2, 3}) {
          const double work = 2.0 * static_cast<double>(rows * in * out) * count;
          const auto figures = [&]<class T>(T, bool tf32, double most) {
            if (work > most) return std::printf(", {0, 0, 0}"), void();
            ctx.plans->set_precision(tf32 ? sw::fp32_precision::tf32 : sw::fp32_precision::ieee);
            const measured_products<T> p(ctx, of, rows, in, out, count);
            const int forward = p.forward(), weights = p.weights(), added = p.added();
            std::printf("%s{%d, %d, %d}", std::is_same_v<T, float> && !tf32 ? "" : ", ", forward, weights, added);
          };
          std::printf("      {{%d, %d, %d, %d}, {", static_cast<int>(rows), static_cast<int>(in), static_cast<int>(out),
                      count);
          if (work > 3e11) std::printf("{0, 0, 0}");
          else figures(0.0F, false, 3e11);
          figures(0.0F, true, 1.5e12);
          figures(0.0, false, 3e11);
          figures(sw::bfloat16(), false, 1.5e12);
          std::printf("}},\n");
          std::fflush(stdout);
        }
    ctx.plans->set_precision(sw::fp32_precision::ieee);
    std::printf("  };\n  static constexpr passes::joined_norms norms[] = {\n");
    for (const std::int64_t rows : {64, 256, 1024, 4096, 16384})
      for (const std::int64_t width : {64, 128, 256, 512, 768, 1024, 2048, 4096, 8192}) {
        if (rows * width > (std::int64_t{1} << 26)) continue;
        std::printf("      {{%d, %d}, {%d, %d, %d}},\n", static_cast<int>(rows), static_cast<int>(width),
                    joined_norm<float>(ctx, of, rows, width), joined_norm<double>(ctx, of, rows, width),
                    joined_norm<sw::bfloat16>(ctx, of, rows, width));
        std::fflush(stdout);
      }
    std::printf("  };\n  static constexpr passes::joined_losses losses[] = {\n");
    for (const std::int64_t rows : {256, 2048, 8192, 16384})
      for (const std::int64_t classes : {256, 1024, 1028, 2048, 8192, 32768, 50257, 50304, 131072}) {
        std::printf("      {{%d, %d}, {%d, %d, %d}},\n", static_cast<int>(rows), static_cast<int>(classes),
                    joined_loss<float>(ctx, of, rows, classes), joined_loss<double>(ctx, of, rows, classes),
                    joined_loss<sw::bfloat16>(ctx, of, rows, classes));
        std::fflush(stdout);
      }
    std::printf(
        "  };\n  // clang-format on\n};\nstruct %s_tf32 : %s {\n  static constexpr bool tf32 = true;\n};\n\n"
        "}  // namespace shardwise::inline v0_1\n",
        name.c_str(), name.c_str());
    const sw::product_report found = ctx.plans->end_search();
    std::fprintf(stderr, "%d shapes of products, %d candidates, %.1f s\n", found.shapes, found.candidates, found.seconds);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
