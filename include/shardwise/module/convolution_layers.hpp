// SPDX-License-Identifier: Apache-2.0
// Layers of images: conv2d_module; shapes and initial values as in torch.nn.
#pragma once

#include <shardwise/graph/functions/convolution.hpp>
#include <shardwise/module/module.hpp>

namespace shardwise::inline v0_1 {

// x (n, In, height, width) -> (n, Out, ...): conv2d<Options>(x, weight, bias), weight (Out, In / groups, Kernel.height, Kernel.width),
// bias (Out). Both uniform in +-1 / sqrt(In / groups * kernel height * kernel width), as torch.nn.Conv2d draws them. Plans may cut the
// batch (data_parallel, accumulate) and store shards (fully_shard); colwise and rowwise are styles of linear layers and do not take it.
template <int In, int Out, convolution_pair Kernel, convolution_options Options = convolution_options{},
          class Bound = unbound, bool Bias = true>
struct conv2d_module : module<conv2d_module<In, Out, Kernel, Options, Bound, Bias>, Bound> {
  template <class B>
  using rebound = conv2d_module<In, Out, Kernel, Options, B, Bias>;
  static constexpr int channels = Options.groups < 1 ? In : In / Options.groups;  // of a group
  using init = shardwise::init::uniform_fan<(channels < 1 ? 1 : channels) * (Kernel.height < 1 ? 1 : Kernel.height) *
                                            (Kernel.width < 1 ? 1 : Kernel.width)>;
  SHARDWISE_MEMBERS(Bound, (parameter<shape<Out, channels, Kernel.height, Kernel.width>, init>, weight),
                    (std::conditional_t<Bias, parameter<shape<Out>, init>, absent>, bias));

  template <class X>
  constexpr auto forward(const X& x) const {
    if constexpr (Bias) return conv2d<Options>(x, weight, bias);
    else return conv2d<Options>(x, weight);
  }
};

}  // namespace shardwise::inline v0_1
