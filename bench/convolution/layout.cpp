// SPDX-License-Identifier: Apache-2.0
// Convolutions forward and backward as programs on one core: without the layout pass, with it as it decides and with it forced, beside
// the same kernels called by hand and beside PyTorch where it is installed. All take turns, by the built-in kernels and, where the
// program is linked with shardwise::onednn, by oneDNN; processor time, medians of turns.
// usage: layout [turns] [a Python that has torch, or -] [words of the names]
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <shardwise/more_functions.hpp>
#include <shardwise/pass/layout/layout.hpp>
#include <shardwise/runtime/host/convolution_library.hpp>
#include <string>
#include <vector>

#include "by_hand.hpp"

namespace {

namespace sw = shardwise;
using by_hand::block;
using by_hand::median;

struct line : sw::axis<1> {};
using mesh = sw::mesh<line>;
template <std::int64_t... E>
using in = sw::input_tensor<float, sw::shape<E...>>;

// --- PyTorch --------------------------------------------------------------------------------------------------------------------

// torch_rival.py beside this source, asked over pipes, so that it takes turns with what is measured here.
class rival {
 public:
  explicit rival(const char* python) {
    if (std::strcmp(python, "-") == 0) return;
    int to[2], from[2];
    if (pipe(to) != 0 || pipe(from) != 0) return;
    child_ = fork();
    if (child_ == 0) {
      dup2(to[0], 0);
      dup2(from[1], 1);
      for (const int f : {to[0], to[1], from[0], from[1]}) close(f);
      const std::string script = std::string(SHARDWISE_BENCH_CONVOLUTION) + "/torch_rival.py";
      execlp(python, python, script.c_str(), static_cast<char*>(nullptr));
      _exit(1);
    }
    close(to[0]);
    close(from[1]);
    ask_ = fdopen(to[1], "w");
    answer_ = fdopen(from[0], "r");
    version_ = read();
    if (version_.empty()) end();
  }
  rival(const rival&) = delete;
  rival& operator=(const rival&) = delete;
  ~rival() { end(); }
  const std::string& version() const { return version_; }
  bool is_there() const { return answer_ != nullptr; }
  double seconds(const std::string& question, bool last, int repeats) {
    std::fprintf(ask_, "%s %d %d\n", question.c_str(), last ? 1 : 0, repeats);
    std::fflush(ask_);
    const std::string text = read();
    if (text.empty()) {
      std::fprintf(stderr, "PyTorch gave no answer to: %s\n", question.c_str());
      std::exit(1);
    }
    return std::atof(text.c_str());
  }

 private:
  std::string read() {
    char line[256];
    if (!answer_ || !std::fgets(line, sizeof line, answer_)) return {};
    line[std::strcspn(line, "\n")] = 0;
    return line;
  }
  void end() {
    if (!answer_) return;
    std::fclose(ask_);
    std::fclose(answer_);
    answer_ = nullptr;
    waitpid(child_, nullptr, 0);
  }
  pid_t child_ = 0;
  std::FILE *ask_ = nullptr, *answer_ = nullptr;
  std::string version_;
};

// --- one problem ------------------------------------------------------------------------------------------------------------------

// A step that is measured, and what it has given.
struct contestant {
  std::function<double(int)> seconds;  // of so many repeats, for each
  std::vector<double> all;
};
enum { without, decided, forced, hand, hand_last, torch, torch_last, contestants };

template <class Step, class Rank>
std::function<double(int)> program(sw::executor<Step, Rank>& e) {
  return [&e](int repeats) {
    const double from = by_hand::seconds();
    for (int i = 0; i < repeats; ++i) e.run({});
    return (by_hand::seconds() - from) / repeats;
  };
}
template <class F>
std::function<double(int)> calls(F& f) {
  return [&f](int repeats) {
    const double from = by_hand::seconds();
    for (int i = 0; i < repeats; ++i) f();
    return (by_hand::seconds() - from) / repeats;
  };
}

// Whether a program has anything stored channels-last.
template <class Step>
constexpr bool is_turned() {
  for (int i = 0; i < Step::program.node_count; ++i)
    if (const sw::spec& s = Step::program.spec_of(i); sw::is_channels_last(s) && !sw::is_contiguous(s)) return true;
  return false;
}

double ratio(const contestant& a, const contestant& b) {
  std::vector<double> r;  // of those that took turns
  for (std::size_t i = 0; i < a.all.size() && i < b.all.size(); ++i) r.push_back(a.all[i] / b.all[i]);
  return r.empty() ? 0 : median(r);
}
std::string shown(double x) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", x);
  return x > 0 ? text : "-";
}

template <class Inputs>
struct input_list;
template <class... I>
struct input_list<sw::inputs<I...>> {
  template <class Executor>
  static void fill(Executor& e) {
    for (int k = 0; k < static_cast<int>(sizeof...(I)); ++k) {
      const auto to = e.template input<float>(k);
      for (std::size_t i = 0; i < to.size(); ++i)
        to[i] = static_cast<float>((i * 7919 + static_cast<std::size_t>(k)) % 401) / 100.0F - 2.0F;
    }
  }
};

template <sw::convolution_kernels Kernels>
using by_time = sw::optimize_layout<sw::layout_mode::automatic, sw::weight_storage::as_declared, sw::whole_graph, Kernels>;

// P: name, function, inputs, wrt, and, of those that are called by hand and asked of the rival, its question and by_hand_step, which is
// made for a format and called.
template <class P, sw::convolution_kernels Kernels>
void measure_by(int turns, rival& r) {
  using inputs = typename P::inputs;
  using plain = sw::gradient_step<typename P::function, mesh, inputs, typename P::wrt, sw::pipeline<>>;
  using automatic = sw::gradient_step<typename P::function, mesh, inputs, typename P::wrt, sw::pipeline<by_time<Kernels>>>;
  using last = sw::gradient_step<typename P::function, mesh, inputs, typename P::wrt,
                                 sw::pipeline<sw::optimize_layout<sw::layout_mode::force>>>;
  constexpr bool by_library = Kernels == sw::convolution_kernels::onednn;
  constexpr bool has_rivals = requires { P::question(); };
  const sw::runtime::convolution_library* const library = sw::runtime::used_convolution_library();
  if (by_library && !library) return;
  sw::runtime::use_convolution_library(by_library ? library : nullptr);
  sw::launch<mesh>([&](auto& rank) {
    using rank_type = std::remove_reference_t<decltype(rank)>;
    sw::executor<plain, rank_type> a(rank);
    sw::executor<automatic, rank_type> b(rank);
    sw::executor<last, rank_type> c(rank);
    input_list<inputs>::fill(a);
    input_list<inputs>::fill(b);
    input_list<inputs>::fill(c);
    contestant all[contestants];
    all[without].seconds = program(a);
    all[decided].seconds = program(b);
    all[forced].seconds = program(c);
    const auto compare = [&] {
      for (contestant& x : all)
        if (x.seconds) x.seconds(2);
      const int repeats = std::max(1, static_cast<int>(0.02 / all[without].seconds(1)));
      for (int turn = 0; turn < turns; ++turn)
        for (contestant& x : all)
          if (x.seconds) x.all.push_back(x.seconds(repeats));
    };
    if constexpr (has_rivals) {
      typename P::by_hand_step d(false), e(true);
      all[hand].seconds = calls(d);
      all[hand_last].seconds = calls(e);
      if (r.is_there()) {
        all[torch].seconds = [&](int n) { return r.seconds(P::question(), false, n); };
        all[torch_last].seconds = [&](int n) { return r.seconds(P::question(), true, n); };
      }
      compare();
    } else {
      compare();
    }
    constexpr bool turned = is_turned<automatic>();
    constexpr sw::layout_decision estimate = by_time<Kernels>::decide(plain::program);
    std::printf("| %s | %s | %s | %.3f | %s | %s | %s | %s | %s | %s | %s | %s |\n", P::name,
                by_library ? "oneDNN" : "built-in", turned ? "channels-last" : "as it is", median(all[without].all) * 1e3,
                shown(estimate.time_as_it_is / estimate.time_channels_last).c_str(),
                shown(ratio(all[without], all[forced])).c_str(), shown(ratio(all[without], all[decided])).c_str(),
                shown(ratio(all[decided], all[turned ? hand_last : hand])).c_str(),
                shown(ratio(all[forced], all[hand_last])).c_str(), shown(ratio(all[without], all[torch])).c_str(),
                shown(ratio(all[decided], all[torch])).c_str(), shown(ratio(all[forced], all[torch_last])).c_str());
    std::fflush(stdout);
  });
  sw::runtime::use_convolution_library(library);
}
template <class P>
void measure(int turns, rival& r) {
  measure_by<P, sw::convolution_kernels::built_in>(turns, r);
  measure_by<P, sw::convolution_kernels::onednn>(turns, r);
}

// --- the problems -----------------------------------------------------------------------------------------------------------------

using options = sw::convolution_options;

// The model of the golden case conv_3conv_grouped_dim64: stride 7, then depthwise with padding "same", then 1 x 1; gradients of the weights.
template <int N, int H>
struct model {
  static constexpr const char* name = N == 2 ? "3 convolutions, 2 x 3 x 16 x 16" : "3 convolutions, 8 x 3 x 224 x 224";
  static constexpr int side = (H - 7) / 7 + 1;
  struct function {
    constexpr auto operator()(const auto& x, const auto& a, const auto& b, const auto& c) const {
      return sw::conv2d(sw::conv2d<options{.padding = "same", .groups = 64}>(sw::conv2d<options{.stride = 7}>(x, a), b), c);
    }
  };
  using inputs = sw::inputs<in<N, 3, H, H>, in<64, 3, 7, 7>, in<64, 1, 7, 7>, in<64, 64, 1, 1>>;
  using wrt = sw::wrt<1, 2, 3>;
  static std::string question() { return "model " + std::to_string(N) + " " + std::to_string(H) + " " + std::to_string(H); }

  class by_hand_step {
   public:
    explicit by_hand_step(bool last) : last_(last), x_(last), kept_(false), dy_({N, 64, side, side}, last) {
      for (block* b : {&kept_.x, &kept_.a, &kept_.b, &kept_.c}) b->fill(1);
    }
    void operator()() {
      set& s = last_ ? x_ : kept_;
      if (last_) {
        by_hand::copy(kept_.x, s.x);
        by_hand::copy(kept_.a, s.a);
        by_hand::copy(kept_.b, s.b);
        by_hand::copy(kept_.c, s.c);
      }
      by_hand::forward(first, s.x, s.a, s.y);
      by_hand::forward(second, s.y, s.b, s.z);
      by_hand::forward(third, s.z, s.c, s.r);
      if (last_) by_hand::copy(s.r, kept_.r);
      std::fill(dy_.values.begin(), dy_.values.end(), 1.0F);
      by_hand::weight_gradient(of(third, 1), dy_, s.z, kept_.dc);
      by_hand::image_gradient(of(third, side), dy_, s.c, s.dz);
      by_hand::weight_gradient(of(second, 7), s.dz, s.y, kept_.db);
      by_hand::image_gradient(of(second, side), s.dz, s.b, s.dy);
      by_hand::weight_gradient(of(first, 7), s.dy, s.x, kept_.da);
    }

   private:
    static constexpr sw::convolution_attributes first{{7, 7}, {0, 0}, {1, 1}, 1, {0, 0}, {0, 0}};
    static constexpr sw::convolution_attributes second{{1, 1}, {3, 3}, {1, 1}, 64, {0, 0}, {0, 0}};
    static constexpr sw::convolution_attributes third{{1, 1}, {0, 0}, {1, 1}, 1, {0, 0}, {0, 0}};
    static constexpr sw::convolution_attributes of(sw::convolution_attributes a, std::int64_t extent) {
      a.extent[0] = a.extent[1] = extent;
      return a;
    }
    struct set {
      block x, a, b, c, y, z, r, dz, dy, da, db, dc;
      explicit set(bool last)
          : x({N, 3, H, H}, last),
            a({64, 3, 7, 7}, last),
            b({64, 1, 7, 7}, last),
            c({64, 64, 1, 1}, last),
            y({N, 64, side, side}, last),
            z(y),
            r(y),
            dz(y),
            dy(y),
            da(a),
            db(b),
            dc(c) {}
    };
    bool last_;
    set x_, kept_;
    block dy_;
  };
};

// One convolution, gradients of image and weight.
template <int N, int C, int H, int O, int K, int Stride, int Padding, int Groups>
struct convolution {
  static constexpr int side = (H + 2 * Padding - K) / Stride + 1;
  struct function {
    constexpr auto operator()(const auto& x, const auto& w) const {
      return sw::conv2d<options{.stride = Stride, .padding = Padding, .groups = Groups}>(x, w);
    }
  };
  using inputs = sw::inputs<in<N, C, H, H>, in<O, C / Groups, K, K>>;
  using wrt = sw::wrt<0, 1>;
  static std::string question() {
    std::string q = "conv";
    for (const int n : {N, C, H, H, O, K, Stride, Padding, Groups}) q += " " + std::to_string(n);
    return q;
  }

  class by_hand_step {
   public:
    explicit by_hand_step(bool last) : last_(last), x_(last), kept_(false), dy_({N, O, side, side}, last) {
      kept_.x.fill(1);
      kept_.w.fill(2);
    }
    void operator()() {
      set& s = last_ ? x_ : kept_;
      if (last_) {
        by_hand::copy(kept_.x, s.x);
        by_hand::copy(kept_.w, s.w);
      }
      by_hand::forward(of(0), s.x, s.w, s.y);
      if (last_) by_hand::copy(s.y, kept_.y);
      std::fill(dy_.values.begin(), dy_.values.end(), 1.0F);
      by_hand::weight_gradient(of(K), dy_, s.x, kept_.dw);
      by_hand::image_gradient(of(H), dy_, s.w, s.dx);
      if (last_) by_hand::copy(s.dx, kept_.dx);
    }

   private:
    static constexpr sw::convolution_attributes of(std::int64_t extent) {
      return {{Stride, Stride}, {Padding, Padding}, {1, 1}, Groups, {extent, extent}, {0, 0}};
    }
    struct set {
      block x, w, y, dx, dw;
      explicit set(bool last)
          : x({N, C, H, H}, last), w({O, C / Groups, K, K}, last), y({N, O, side, side}, last), dx(x), dw(w) {}
    };
    bool last_;
    set x_, kept_;
    block dy_;
  };
};
struct first : convolution<2, 3, 112, 64, 7, 2, 3, 1> {
  static constexpr const char* name = "first 7x7 stride 2";
};
struct square : convolution<2, 64, 56, 64, 3, 1, 1, 1> {
  static constexpr const char* name = "3x3 64 channels";
};
struct wide : convolution<2, 256, 14, 256, 3, 1, 1, 1> {
  static constexpr const char* name = "3x3 256 channels";
};
struct strided : convolution<2, 128, 56, 128, 3, 2, 1, 1> {
  static constexpr const char* name = "3x3 128 channels stride 2";
};
struct pointwise : convolution<2, 256, 28, 128, 1, 1, 0, 1> {
  static constexpr const char* name = "1x1 256 to 128";
};
struct depthwise : convolution<4, 128, 28, 128, 3, 1, 1, 128> {
  static constexpr const char* name = "depthwise 3x3";
};
// These the table of rates does not have.
struct other_square : convolution<4, 48, 40, 80, 3, 1, 1, 1> {
  static constexpr const char* name = "3x3 48 to 80";
};
struct other_strided : convolution<4, 80, 24, 160, 3, 2, 1, 1> {
  static constexpr const char* name = "3x3 80 to 160 stride 2";
};
struct other_pointwise : convolution<8, 96, 14, 192, 1, 1, 0, 1> {
  static constexpr const char* name = "1x1 96 to 192";
};
struct other_depthwise : convolution<2, 192, 20, 192, 5, 1, 2, 192> {
  static constexpr const char* name = "depthwise 5x5 of 192";
};
struct other_groups : convolution<2, 96, 28, 96, 3, 1, 1, 8> {
  static constexpr const char* name = "3x3 8 groups of 12";
};

// A network with what stands between convolutions: a bias, a group norm, functions, pooling, blocks of a depthwise convolution and one
// of pixels, two of 3x3; gradients of all weights. No rival.
struct network {
  static constexpr const char* name = "network, 8 x 3 x 64 x 64";
  struct function {
    constexpr auto operator()(const auto& x, const auto& a, const auto& bias, const auto& b, const auto& c, const auto& d,
                              const auto& e) const {
      const auto first = sw::relu(sw::conv2d<options{.stride = 2, .padding = 1}>(x, a, bias));
      const auto block = sw::relu(sw::conv2d(sw::conv2d<options{.padding = 1, .groups = 32}>(first, b), c));
      const auto pooled = sw::max_pool2d<sw::pool_options{.kernel = 2}>(block);
      const auto second = sw::relu(sw::group_norm<8>(sw::conv2d<options{.padding = 1}>(pooled, d)));
      return sw::mean(sw::square(sw::conv2d<options{.padding = 1}>(second, e) + second));
    }
  };
  using inputs = sw::inputs<in<8, 3, 64, 64>, in<32, 3, 3, 3>, in<32>, in<32, 1, 3, 3>, in<96, 32, 1, 1>, in<96, 96, 3, 3>,
                            in<96, 96, 3, 3>>;
  using wrt = sw::wrt<1, 2, 3, 4, 5, 6>;
};

template <class... P>
void measure_all(int turns, rival& r, const char* only) {
  ((std::strstr(P::name, only) ? measure<P>(turns, r) : void()), ...);
}

}  // namespace

int main(int argc, char** argv) {
  const int turns = argc > 1 ? std::atoi(argv[1]) : 9;
  rival r(argc > 2 ? argv[2] : "-");
  const sw::runtime::convolution_library* const library = sw::runtime::used_convolution_library();
  std::printf("%s; PyTorch %s; %d turns\n\n", library ? library->name().c_str() : "no oneDNN",
              r.is_there() ? r.version().c_str() : "is not there", turns);
  std::printf(
      "| problem | kernels | the pass decides | without ms | without / forced, estimated | without / forced | without / pass | "
      "pass / by hand | forced / by hand | without / PyTorch | pass / PyTorch | forced / PyTorch channels-last |\n"
      "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n");
  measure_all<model<2, 16>, model<8, 224>, first, square, wide, strided, pointwise, depthwise, other_square, other_strided,
              other_pointwise, other_depthwise, other_groups, network>(turns, r, argc > 3 ? argv[3] : "");
}
