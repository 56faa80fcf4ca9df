// SPDX-License-Identifier: Apache-2.0
// batch_norm2d_module and group_norm_module: torch.nn.BatchNorm2d and GroupNorm, their buffers and initial values.
#pragma once

#include <shardwise/graph/functions/channel_norms.hpp>
#include <shardwise/module/module.hpp>

namespace shardwise::inline v0_1 {

// Images (n, Channels, height, width), or (n, Channels, ...): batch_norm by the batch's statistics where it trains, which moves the
// buffers, and by the buffers where it evaluates (run_mode). Momentum and eps are those of Options; what it says of training is not
// asked. Affine: weight, ones, and bias, zeros. Its plan splits the batch (data_parallel, accumulate), or all of its tensors along
// channels. num_batches_tracked counts batches, in elements of the model: PyTorch's layer uses it only where momentum is None, which
// is not there.
template <int Channels, batch_norm_options Options = batch_norm_options{}, class Bound = unbound, bool Affine = true>
struct batch_norm2d_module : module<batch_norm2d_module<Channels, Options, Bound, Affine>, Bound> {
  template <class B>
  using rebound = batch_norm2d_module<Channels, Options, B, Affine>;
  SHARDWISE_MEMBERS(Bound, (std::conditional_t<Affine, parameter<shape<Channels>, init::ones>, absent>, weight),
                    (std::conditional_t<Affine, parameter<shape<Channels>, init::zeros>, absent>, bias),
                    (buffer<shape<Channels>, init::zeros>, running_mean), (buffer<shape<Channels>, init::ones>, running_var),
                    (buffer<shape<>, init::zeros>, num_batches_tracked));

  template <class X>
  constexpr auto forward(const X& x) const {
    constexpr batch_norm_options how{training<Bound>, Options.momentum, Options.eps};
    if constexpr (training<Bound>) add_(num_batches_tracked, 1.0);
    if constexpr (Affine) return batch_norm<how>(x, running_mean, running_var, weight, bias);
    else return batch_norm<how>(x, running_mean, running_var);
  }
};

// (n, Channels, ...): group_norm<Groups>, weight ones and bias zeros.
template <int Groups, int Channels, class Bound = unbound, bool Affine = true>
struct group_norm_module : module<group_norm_module<Groups, Channels, Bound, Affine>, Bound> {
  template <class B>
  using rebound = group_norm_module<Groups, Channels, B, Affine>;
  SHARDWISE_MEMBERS(Bound, (std::conditional_t<Affine, parameter<shape<Channels>, init::ones>, absent>, weight),
                    (std::conditional_t<Affine, parameter<shape<Channels>, init::zeros>, absent>, bias));

  template <class X>
  constexpr auto forward(const X& x) const {
    if constexpr (Affine) return group_norm<Groups>(x, weight, bias);
    else return group_norm<Groups>(x);
  }
};

}  // namespace shardwise::inline v0_1
