// SPDX-License-Identifier: Apache-2.0
// Halos: what ranks hold, what they send, what is refused, and the proof of rows, kernels and adjoints of windows over cut images.
#include <rules.hpp>
#include <shardwise/laws/cases.hpp>
#include <shardwise/operations/convolution/host.hpp>
#include <shardwise/operations/interpolation/host.hpp>
#include <shardwise/operations/pooling/host.hpp>

namespace {

namespace laws = sw::laws;
using sw::placement;
using sw::problem;
using sw::sliding;

// Laws of one dim of `n` elements, windows of `by` of which `count` fit, on `ranks`: a rank holds all that its windows read and nothing in
// front of the first or behind the last of them; it holds every window that reads its elements; and what it lacks of its owners' is what it is sent.
constexpr bool holds_what_windows_read(const sliding& by, std::int64_t n, std::int64_t count, int ranks) {
  for (int r = 0; r < ranks; ++r) {
    const sw::interval have = sw::overlapping(by.windows(0, count), n, ranks, r), own = sw::split({0, count}, 1, ranks, r);
    std::int64_t lo = n, hi = 0;
    for (std::int64_t t = own.begin; t < own.begin + own.size; ++t)
      for (std::int64_t e = t * by.step - by.before; e <= t * by.step + by.behind; ++e)
        if (e >= 0 && e < n) {
          lo = e < lo ? e : lo;
          hi = e + 1 > hi ? e + 1 : hi;
        }
    const std::int64_t first = own.begin * by.step - by.before, last = (own.begin + own.size - 1) * by.step + by.behind;
    if (hi > lo && (have.begin > lo || have.begin + have.size < hi)) return false;
    if (ranks > 1 && have.size > 0 && (own.size == 0 || have.begin < first || have.begin + have.size - 1 > last))
      return false;

    const sw::interval elements = sw::split({0, n}, 1, ranks, r),
                       readers = sw::overlapping(by.readers(0, n), count, ranks, r);
    for (std::int64_t e = elements.begin; e < elements.begin + elements.size; ++e)
      for (std::int64_t t = 0; t < count; ++t)
        if (t * by.step - by.before <= e && e <= t * by.step + by.behind &&
            (t < readers.begin || t >= readers.begin + readers.size))
          return false;
    if (readers.size < 0 || readers.begin < 0 || readers.begin + readers.size > count) return false;

    std::int64_t got = 0;
    for (int k = 0; k < ranks; ++k) got += sw::halo_part(by.windows(0, count), n, ranks, k, r).size;
    if (got != have.size) return false;
  }
  return true;
}
constexpr bool hold_what_windows_read(int kernel, int ranks) {
  for (int step = 1; step <= 3; ++step)
    for (int padding = 0; padding <= kernel; ++padding)
      for (int n = kernel; n <= 11; n += 3) {
        const sliding by{step, padding, kernel - 1 - padding};
        if (!holds_what_windows_read(by, n, (n + 2 * padding - kernel) / step + 1, ranks)) return false;
      }
  return true;
}
template <int Kernel>
constexpr bool on_ranks = hold_what_windows_read(Kernel, 1) && hold_what_windows_read(Kernel, 2) &&
                          hold_what_windows_read(Kernel, 3) && hold_what_windows_read(Kernel, 4);
static_assert(on_ranks<1> && on_ranks<2> && on_ranks<3> && on_ranks<4> && on_ranks<5>);
static_assert(hold_what_windows_read(3, 8));

// Placements with all fields come back from a word of attributes and from a row.
constexpr bool comes_back(const placement& p) {
  return sw::unpack_placement(sw::pack(p)) == p && placement(sw::row_entry(p)) == p;
}
static_assert(comes_back(sliding{1, 0, 0}.windows(0, 1)) && comes_back(sliding{1, 0, 0}.readers(7, 1)));
static_assert(comes_back(sliding{255, 127, 127}.windows(3, sw::max_windows)) &&
              comes_back(sliding{2, -127, -127}.readers(2, sw::max_windows)));
static_assert(sliding{255, 127, -127}.has_halo(sw::max_windows) && !sliding{256, 0, 0}.has_halo(1) &&
              !sliding{1, 128, 0}.has_halo(1) && !sliding{1, 0, 128}.has_halo(1) && !sliding{1, 0, -128}.has_halo(1) &&
              !sliding{1, 0, 0}.has_halo(sw::max_windows + 1));
static_assert(sw::dual(sliding{2, 1, 1}.windows(2, 5)) == sw::shard_value(2));

// The proof of programs that exchange halos first; their reference is the operation alone, on one device. Positions of operands: cut along
// height, or width, over Ranks.
template <class Customs, int Dim, sw::op_attr A, class Readers, class... Shape>
struct halo_case {
  static constexpr laws::program alone = laws::custom_case<Customs, A, Shape...>::value;
  static constexpr int operands = static_cast<int>(sizeof...(Shape));
  static constexpr laws::reference one_device = laws::solve<Customs>(alone);

  template <int Ranks>
  static constexpr laws::failure on() {
    laws::program p = laws::on_leaves({});
    p.leaf_count = alone.leaf_count;
    for (int k = 0; k < alone.leaf_count; ++k) p.leaves[k] = alone.leaves[k];
    laws::placing at;
    for (int k = 0; k < operands; ++k) at.at[k][0] = Readers::place(k, Dim);
    p = p.then(sw::op_code::redistribute, {Readers::halo},
               sw::attributes<sw::redistribute_attributes>(0, sw::pack(Readers::to(Dim))));
    laws::step& last = p.steps[p.step_count++];
    last = alone.steps[0];
    last.in[Readers::halo] = p.leaf_count;
    return laws::prove<Customs>(p, at, laws::ranks_of{1, {Ranks, 1, 1, 1}}, one_device);
  }
};

constexpr sw::convolution_attributes convolved(int stride, int padding, int dilation, int h = 0, int w = 0) {
  const auto s = static_cast<std::int16_t>(stride), p = static_cast<std::int16_t>(padding),
             d = static_cast<std::int16_t>(dilation);
  return {{s, s}, {p, p}, {d, d}, 1, {h, w}};
}
// The image, the cotangent or the image of the weight's gradient gets the halo. N: of the image, O: of the result, K: of the kernel.
template <int S, int P, int D, int N, int K, bool Cotangent, int Operand>
struct windows_of {
  static constexpr int halo = Operand;
  static constexpr sliding by{S, P, D*(K - 1) - P};
  static constexpr std::int64_t made = (N + 2 * P - D * (K - 1) - 1) / S + 1;
  static constexpr placement to(int dim) { return Cotangent ? by.readers(dim, N) : by.windows(dim, made); }
  static constexpr placement place(int k, int dim) {
    return k == Operand || Operand == 1 ? sw::shard_value(dim) : sw::reduced_value();
  }
};
using image = laws::customs<sw::custom::conv2d, sw::custom::conv2d_dx, sw::custom::conv2d_dw>;
using cotangent = laws::customs<sw::custom::conv2d_dx, sw::custom::conv2d, sw::custom::conv2d_dw>;
using weight = laws::customs<sw::custom::conv2d_dw, sw::custom::conv2d, sw::custom::conv2d_dx>;

template <int S, int P, int D, int N, int K, int Ranks>
constexpr bool proved() {
  constexpr int made = static_cast<int>(windows_of<S, P, D, N, K, false, 0>::made);
  constexpr sw::op_attr forward = sw::pack_attributes(convolved(S, P, D)),
                        dx = sw::pack_attributes(convolved(S, P, D, N, N)),
                        dw = sw::pack_attributes(convolved(S, P, D, K, K));
  using x = sw::shape<1, 1, N, N>;
  using w = sw::shape<2, 1, K, K>;
  using y = sw::shape<1, 2, made, made>;
  static_assert(halo_case<image, 2, forward, windows_of<S, P, D, N, K, false, 0>, x, w>::template on<Ranks>() ==
                laws::failure::none);
  static_assert(halo_case<image, 3, forward, windows_of<S, P, D, N, K, false, 0>, x, w>::template on<Ranks>() ==
                laws::failure::none);
  static_assert(halo_case<cotangent, 2, dx, windows_of<S, P, D, N, K, true, 0>, y, w>::template on<Ranks>() ==
                laws::failure::none);
  static_assert(halo_case<weight, 3, dw, windows_of<S, P, D, N, K, false, 1>, y, x>::template on<Ranks>() ==
                laws::failure::none);
  return true;
}
static_assert(proved<1, 1, 1, 5, 3, 2>() && proved<1, 1, 1, 5, 3, 3>() && proved<1, 1, 1, 5, 3, 5>());
static_assert(proved<2, 1, 1, 5, 3, 2>() && proved<2, 0, 1, 6, 2, 3>() && proved<3, 0, 1, 7, 2, 3>() &&
              proved<3, 1, 1, 6, 1, 4>());
static_assert(proved<1, 2, 2, 5, 3, 3>() && proved<1, 2, 1, 3, 2, 3>());

constexpr sw::op_attr pooled(int kernel, int stride, int padding, int counts, int h = 0) {
  const auto k = static_cast<std::int16_t>(kernel), s = static_cast<std::int16_t>(stride),
             p = static_cast<std::int16_t>(padding);
  return sw::pack_attributes(sw::pool_attributes{.kernel = {k, k},
                                                 .stride = {s, s},
                                                 .padding = {p, p},
                                                 .counts_padding = static_cast<std::int16_t>(counts),
                                                 .extent = {h, h}});
}
template <int K, int S, int P, int N, int Ranks>
constexpr bool pools() {
  using x = sw::shape<1, 2, N, N>;
  constexpr int made = (N + 2 * P - K) / S + 1;
  using y = sw::shape<1, 2, made, made>;
  using forward = windows_of<S, P, 1, N, K, false, 0>;
  static_assert(halo_case<laws::customs<sw::custom::max_pool2d, sw::custom::max_pool2d_dx>, 2, pooled(K, S, P, 1), forward,
                          x>::template on<Ranks>() == laws::failure::none);
  static_assert(halo_case<laws::customs<sw::custom::avg_pool2d, sw::custom::avg_pool2d_dx>, 3, pooled(K, S, P, 0), forward,
                          x>::template on<Ranks>() == laws::failure::none);
  static_assert(halo_case<laws::customs<sw::custom::avg_pool2d_dx, sw::custom::avg_pool2d>, 2, pooled(K, S, P, 0, N),
                          windows_of<S, P, 1, N, K, true, 0>, y>::template on<Ranks>() == laws::failure::none);
  return true;
}
static_assert(pools<2, 2, 0, 6, 2>() && pools<3, 2, 1, 5, 2>() && pools<3, 1, 1, 5, 3>() && pools<2, 3, 1, 6, 4>());

// Pixels of a larger and of a smaller image, forward and back. Of: the attributes; Back: the adjoint's; Made: of the result.
template <sw::op_attr Of, bool Back, int Made>
struct pixels_of {
  static constexpr int halo = 0;
  static constexpr placement to(int dim) {
    return sw::operations::pixel_windows_of(sw::attributes_of<sw::interpolation_attributes>(Of), dim - 2)
        .read(Back, dim, Made);
  }
  static constexpr placement place(int, int dim) { return sw::shard_value(dim); }
};
template <sw::op_attr A, int From>
inline constexpr sw::op_attr of_adjoint = [] {
  auto a = sw::attributes_of<sw::interpolation_attributes>(A);
  a.extent[0] = a.extent[1] = From;
  return sw::pack_attributes(a);
}();
template <sw::interpolate_options O, int From, int To, int Ranks>
constexpr bool interpolates() {
  constexpr sw::op_attr forward = sw::detail::interpolation_to(O, To, To, From, From), back = of_adjoint<forward, From>;
  static_assert(halo_case<laws::customs<sw::custom::interpolate, sw::custom::interpolate_dx>, 2, forward,
                          pixels_of<forward, false, To>, sw::shape<1, 1, From, From>>::template on<Ranks>() ==
                laws::failure::none);
  static_assert(halo_case<laws::customs<sw::custom::interpolate_dx, sw::custom::interpolate>, 3, back,
                          pixels_of<back, true, From>, sw::shape<1, 1, To, To>>::template on<Ranks>() ==
                laws::failure::none);
  return true;
}
inline constexpr sw::interpolate_options nearest{}, bilinear{.mode = sw::interpolation::bilinear},
    corners{.mode = sw::interpolation::bilinear, .align_corners = true};
static_assert(interpolates<nearest, 3, 6, 2>() && interpolates<nearest, 6, 2, 4>() && interpolates<bilinear, 3, 6, 2>() &&
              interpolates<bilinear, 4, 8, 3>() && interpolates<bilinear, 6, 3, 2>() && interpolates<bilinear, 6, 2, 4>() &&
              interpolates<corners, 3, 7, 3>() && interpolates<corners, 5, 3, 2>());

// Only from equal shards of that dim, and nowhere from there.
constexpr sw::spec cut(placement p) {
  sw::spec s = rules_test::on_line<sw::shape<2, 3, 8, 4>>(sw::replicate_value());
  s.place[0] = p;
  return s;
}
constexpr problem moved(placement from, placement to) {
  return sw::rules::redistribute_spec(sw::attributes<sw::redistribute_attributes>(0, sw::pack(to)), cut(from)).error.what;
}
constexpr placement windows = sliding{1, 1, 1}.windows(2, 8);
static_assert(moved(sw::shard_value(2), windows) == problem::none);
static_assert(moved(sw::replicate_value(), windows) == problem::redistribute_halo);
static_assert(moved(sw::partial_value(), windows) == problem::redistribute_halo);
static_assert(moved(sw::shard_value(3), windows) == problem::redistribute_halo);
static_assert(moved(sw::shard_value(2, 2), windows) == problem::redistribute_halo);
static_assert(moved(windows, sw::shard_value(2)) == problem::redistribute_halo);
static_assert(moved(windows, sw::replicate_value()) == problem::redistribute_halo);
static_assert(sw::halo_axis(cut(sw::shard_value(2)), 2) == 0 && sw::halo_axis(cut(sw::shard_value(2, 2)), 2) == -1 &&
              sw::halo_axis(cut(windows), 2) == -1 && sw::halo_axis(cut(sw::replicate_value()), 2) == -1);

// A weight's gradient sums over the rows of a cotangent that are cut as the image's windows are.
constexpr problem weight_of(placement cotangent_cut) {
  sw::spec in[] = {cut(cotangent_cut), cut(windows)};
  in[0].extent[1] = 4;
  return sw::infer(sw::operations::convolution_dw, sw::pack_attributes(convolved(1, 1, 1, 3, 3)), in, 2).error.what;
}
static_assert(weight_of(sw::shard_value(2)) == problem::none);
static_assert(weight_of(sw::shard_value(2, 8)) == problem::convolution_placements);

}  // namespace
