// SPDX-License-Identifier: Apache-2.0
// Networks of convolutions against PyTorch's: results and gradients of all weights, with the batch whole and in shards.
#include <doctest/doctest.h>

#include <golden_function.hpp>

namespace {

using namespace test;
using namespace test::golden_names;
using options = sw::convolution_options;

// What the references have in common: names as they stand, class ids as numbers.
template <class Names>
struct reference_of {
  static std::vector<std::string> names() { return Names::names(); }
  static std::vector<std::string> wanted(std::initializer_list<int> operands) {
    std::vector<std::string> r{Names::loss_alone ? "ref.out" : ""};
    if (!Names::loss_alone) r.push_back("ref.out");
    for (const int k : operands) r.push_back("ref.grad." + Names::names()[static_cast<std::size_t>(k)].substr(5));
    return r;
  }
  static std::vector<double> value(const safetensors& file, const std::string& name) {
    if (file.type(name) != "I64") return file.values(name);
    const auto ids = file.integers(name);
    return {ids.begin(), ids.end()};
  }
};

// Two convolutions of stride 2.
struct two : reference_of<two> {
  static constexpr const char* file = "conv_2conv_dim64";
  static constexpr bool loss_alone = false;
  using shapes = std::tuple<sw::shape<2, 3, 16, 16>, sw::shape<64, 3, 3, 3>, sw::shape<64, 64, 3, 3>>;
  static std::vector<std::string> names() { return {"in.0", "init.conv1.weight", "init.conv2.weight"}; }
};
struct two_convolutions {
  constexpr auto operator()(const auto& x, const auto& first, const auto& second) const {
    const auto y = sw::conv2d<options{.stride = 2}>(sw::conv2d<options{.stride = 2}>(x, first), second);
    return std::tuple{sw::sum(y), y};
  }
};

// Stride 7, then depthwise with padding "same", then 1 x 1.
struct three : reference_of<three> {
  static constexpr const char* file = "conv_3conv_grouped_dim64";
  static constexpr bool loss_alone = false;
  using shapes =
      std::tuple<sw::shape<2, 3, 16, 16>, sw::shape<64, 3, 7, 7>, sw::shape<64, 1, 7, 7>, sw::shape<64, 64, 1, 1>>;
  static std::vector<std::string> names() { return {"in.0", "init.seq.0.weight", "init.seq.1.weight", "init.conv.weight"}; }
};
struct three_convolutions {
  constexpr auto operator()(const auto& x, const auto& first, const auto& second, const auto& third) const {
    const auto y = sw::conv2d(
        sw::conv2d<options{.padding = "same", .groups = 64}>(sw::conv2d<options{.stride = 7}>(x, first), second), third);
    return std::tuple{sw::sum(y), y};
  }
};

// A convolution, a linear layer over what its rows of channels and features become, and cross entropy over dim 1.
struct classes : reference_of<classes> {
  static constexpr const char* file = "conv_nll";
  static constexpr bool loss_alone = true;
  using shapes = std::tuple<sw::shape<4, 1, 24, 13>, sw::shape<4, 24>, sw::shape<11, 1, 3, 3>, sw::shape<11>,
                            sw::shape<11, 143>, sw::shape<11>>;
  static std::vector<std::string> names() {
    return {"in.0", "in.1", "init.conv.weight", "init.conv.bias", "init.out.weight", "init.out.bias"};
  }
};
struct classified {
  constexpr auto operator()(const auto& x, const auto& target, const auto& kernel, const auto& bias, const auto& weight,
                            const auto& shift) const {
    const auto y = sw::conv2d<options{.padding = "same"}>(x, kernel, bias);
    const auto logits = sw::reshape<4, 11, 24>(sw::linear_product(sw::reshape<4, 24, 143>(y), weight) + shift);
    return std::tuple{sw::cross_entropy<1>(logits, sw::cast<std::int32_t>(target))};
  }
};

template <int N>
using line = sw::mesh<dp<N>>;

TEST_CASE("two convolutions give the reference on one, two and three ranks") {
  golden_function<two, two_convolutions, line<1>, sw::wrt<1, 2>, placed<R>, placed<R>, placed<R>>::check();
  golden_function<two, two_convolutions, line<2>, sw::wrt<1, 2>, placed<S<0>>, placed<U>, placed<U>>::check();
  golden_function<two, two_convolutions, line<3>, sw::wrt<1, 2>, placed<S<0>>, placed<U>, placed<U>>::check();
}
TEST_CASE("a depthwise convolution between two others gives the reference on one, two and three ranks") {
  golden_function<three, three_convolutions, line<1>, sw::wrt<1, 2, 3>, placed<R>, placed<R>, placed<R>, placed<R>>::check();
  golden_function<three, three_convolutions, line<2>, sw::wrt<1, 2, 3>, placed<S<0>>, placed<U>, placed<U>,
                  placed<U>>::check();
  golden_function<three, three_convolutions, line<3>, sw::wrt<1, 2, 3>, placed<S<0>>, placed<U>, placed<U>,
                  placed<U>>::check();
}
TEST_CASE("a convolution, a linear layer and cross entropy over dim 1 give the reference on one, two and three ranks") {
  golden_function<classes, classified, line<1>, sw::wrt<2, 3, 4, 5>, placed<R>, placed<R>, placed<R>, placed<R>, placed<R>,
                  placed<R>>::check();
  golden_function<classes, classified, line<2>, sw::wrt<2, 3, 4, 5>, placed<S<0>>, placed<S<0>>, placed<U>, placed<U>,
                  placed<U>, placed<U>>::check();
  golden_function<classes, classified, line<3>, sw::wrt<2, 3, 4, 5>, placed<S<0>>, placed<S<0>>, placed<U>, placed<U>,
                  placed<U>, placed<U>>::check();
}

}  // namespace
