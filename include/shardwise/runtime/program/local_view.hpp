// SPDX-License-Identifier: Apache-2.0
// local_view: a rank's block as the C++23 vocabulary type std::mdspan with strides as stored; where the standard library
// has none, a view with the same interface.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <version>

#include <shardwise/runtime/program/call.hpp>

#if defined(__cpp_lib_mdspan)
#include <mdspan>
#endif

namespace shardwise::inline v0_1 {

namespace detail {

// What std::mdspan<T, std::dextents<std::int64_t, Rank>, std::layout_stride> offers, by the same names.
template <class T, std::size_t Rank>
class strided_view {
 public:
  class extents_type {
   public:
    using index_type = std::int64_t;
    using rank_type = std::size_t;
    constexpr extents_type() = default;
    constexpr explicit extents_type(const std::array<index_type, Rank>& e) : extent_(e) {}
    static constexpr rank_type rank() noexcept { return Rank; }
    static constexpr rank_type rank_dynamic() noexcept { return Rank; }
    constexpr index_type extent(rank_type d) const noexcept { return extent_[d]; }
    constexpr bool operator==(const extents_type&) const = default;

   private:
    std::array<index_type, Rank> extent_{};
  };

  class mapping_type {
   public:
    using index_type = std::int64_t;
    using rank_type = std::size_t;
    constexpr mapping_type() = default;
    constexpr mapping_type(const extents_type& e, const std::array<index_type, Rank>& s) : extents_(e), stride_(s) {}
    constexpr const extents_type& extents() const noexcept { return extents_; }
    constexpr const std::array<index_type, Rank>& strides() const noexcept { return stride_; }
    constexpr index_type stride(rank_type d) const noexcept { return stride_[d]; }
    // Elements from the first to the last one.
    constexpr index_type required_span_size() const noexcept {
      index_type n = 1;
      for (rank_type d = 0; d < Rank; ++d) {
        if (extents_.extent(d) == 0) return 0;
        n += (extents_.extent(d) - 1) * stride_[d];
      }
      return n;
    }
    constexpr bool is_exhaustive() const noexcept {
      index_type n = 1;
      for (rank_type d = 0; d < Rank; ++d) n *= extents_.extent(d);
      return required_span_size() == n;
    }
    // The element's place, counted from the first one.
    template <class... I>
      requires(sizeof...(I) == Rank && (std::is_convertible_v<I, index_type> && ...))
    constexpr index_type operator()(I... at) const noexcept {
      index_type offset = 0;
      rank_type d = 0;
      ((offset += static_cast<index_type>(at) * stride_[d++]), ...);
      return offset;
    }
    constexpr bool operator==(const mapping_type&) const = default;

   private:
    extents_type extents_{};
    std::array<index_type, Rank> stride_{};
  };

  using element_type = T;
  using value_type = std::remove_cv_t<T>;
  using index_type = std::int64_t;
  using size_type = std::uint64_t;
  using rank_type = std::size_t;
  using data_handle_type = T*;
  using reference = T&;

  constexpr strided_view() = default;
  constexpr strided_view(T* data, const mapping_type& m) : data_(data), mapping_(m) {}
  // From a view through which elements may be written to one through which they may not.
  template <class U>
    requires(std::is_convertible_v<U (*)[], T (*)[]> && !std::is_same_v<U, T>)
  constexpr strided_view(const strided_view<U, Rank>& v) : data_(v.data_handle()) {
    std::array<index_type, Rank> e{}, s{};
    for (rank_type d = 0; d < Rank; ++d) {
      e[d] = v.extent(d);
      s[d] = v.stride(d);
    }
    mapping_ = mapping_type(extents_type(e), s);
  }

  static constexpr rank_type rank() noexcept { return Rank; }
  static constexpr rank_type rank_dynamic() noexcept { return Rank; }
  constexpr const extents_type& extents() const noexcept { return mapping_.extents(); }
  constexpr const mapping_type& mapping() const noexcept { return mapping_; }
  constexpr index_type extent(rank_type d) const noexcept { return mapping_.extents().extent(d); }
  constexpr index_type stride(rank_type d) const noexcept { return mapping_.stride(d); }
  constexpr data_handle_type data_handle() const noexcept { return data_; }
  constexpr size_type size() const noexcept {
    size_type n = 1;
    for (rank_type d = 0; d < Rank; ++d) n *= static_cast<size_type>(extent(d));
    return n;
  }
  constexpr bool empty() const noexcept { return size() == 0; }
  constexpr bool is_exhaustive() const noexcept { return mapping_.is_exhaustive(); }

  // The spelling that C++20 and std::mdspan share: v[std::array{i, j}].
  template <class I>
    requires std::is_convertible_v<const I&, index_type>
  constexpr reference operator[](const std::array<I, Rank>& at) const {
    index_type offset = 0;
    for (rank_type d = 0; d < Rank; ++d) offset += static_cast<index_type>(at[d]) * stride(d);
    return data_[offset];
  }
#if defined(__cpp_multidimensional_subscript)
  template <class... I>
    requires(sizeof...(I) == Rank && (std::is_convertible_v<I, index_type> && ...))
  constexpr reference operator[](I... at) const {
    return data_[mapping_(at...)];
  }
#endif
  // And that of mdspan before C++23 had v[i, j].
  template <class... I>
    requires(sizeof...(I) == Rank && (std::is_convertible_v<I, index_type> && ...))
  constexpr reference operator()(I... at) const {
    return data_[mapping_(at...)];
  }

 private:
  T* data_ = nullptr;
  mapping_type mapping_{};
};

}  // namespace detail

#if defined(__cpp_lib_mdspan)
template <class T, std::size_t Rank>
using local_view = std::mdspan<T, std::dextents<std::int64_t, Rank>, std::layout_stride>;
#else
template <class T, std::size_t Rank>
using local_view = detail::strided_view<T, Rank>;
#endif

namespace detail {

// Of a block whose first element is at `data`. mdspan knows no stride of 0, which an empty block may have: any other one
// says the same there.
template <std::size_t Rank, class T>
local_view<T, Rank> view_of(T* data, const runtime::layout& l) {
  if (l.rank != static_cast<int>(Rank))
    throw std::invalid_argument("shardwise: local_mdspan: " + std::to_string(Rank) + " dims are asked for; the tensor has " +
                                std::to_string(l.rank));
  const bool empty = l.numel() == 0;
  std::array<std::int64_t, Rank> extent{}, stride{};
  for (std::size_t d = 0; d < Rank; ++d) {
    extent[d] = l.ext[d];
    stride[d] = empty && l.str[d] == 0 ? 1 : l.str[d];
  }
  using view = local_view<T, Rank>;
  return view(data, typename view::mapping_type(typename view::extents_type(extent), stride));
}

}  // namespace detail

}  // namespace shardwise::inline v0_1
