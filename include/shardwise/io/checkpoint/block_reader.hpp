// SPDX-License-Identifier: Apache-2.0
// block_reader: any part of a checkpoint's tensors, out of the files that have it: bytes that are read are checked against their
// checksums, others are not read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <shardwise/io/checkpoint/index.hpp>
#include <shardwise/io/checkpoint/leaves.hpp>
#include <shardwise/io/checkpoint/runs.hpp>
#include <shardwise/io/safetensors/reader.hpp>

namespace shardwise::inline v0_1::storage {

class block_reader {
 public:
  // most_bytes: what is read at once and held beside what is read into, but for the chunks that it begins and ends in.
  block_reader(std::string folder, checkpoint_index index, std::uint64_t most_bytes = std::uint64_t{1} << 25)
      : folder_(std::move(folder)), index_(std::move(index)), most_bytes_(most_bytes) {
    open_.resize(index_.files.size());
    parts_.resize(index_.tensors.size());
    for (std::size_t f = 0; f < index_.files.size(); ++f)
      for (const stored_block& b : index_.files[f].blocks) parts_[b.tensor].push_back({f, &b});
  }
  block_reader(const block_reader&) = delete;
  block_reader& operator=(const block_reader&) = delete;

  const checkpoint_index& index() const { return index_; }
  // Number `f`, which must be what the index says; opened once.
  const safetensors_reader& file(std::size_t f) {
    if (open_[f]) return *open_[f];
    const stored_file& said = index_.files[f];
    auto file = std::make_unique<safetensors_reader>(folder_ + "/" + said.name);
    if (file->file_bytes() != said.bytes)
      refuse(file->path(), "has " + std::to_string(file->file_bytes()) + " bytes, and the index of its checkpoint says " +
                               std::to_string(said.bytes) + ": it is torn, or another checkpoint's");
    if (file->header_checksum() != said.header)
      refuse(
          file->path(),
          "has a header with another checksum than the index of its checkpoint says: it is damaged, or another checkpoint's");
    for (const stored_block& b : said.blocks) {
      const stored_tensor& t = index_.tensors[b.tensor];
      const safetensors_entry& e = file->entry(t.name);
      const std::uint64_t chunks = (e.end - e.begin + chunk_bytes - 1) / chunk_bytes;
      if (e.type != t.type || !same(e.shape, b.shape) || chunks != b.sums.size())
        refuse(file->path(), "holds '" + t.name + "' in another type or shape than the index of its checkpoint says");
    }
    open_[f] = std::move(file);
    return *open_[f];
  }

  // The part of tensor `t` that `l` is (origin and extents), stored as `l` says: a box of it, or, of one dim where the tensor has not one,
  // a run of its row-major elements. T is its type.
  template <class T>
  void read(std::size_t t, const runtime::layout& l, T* to) {
    const extents& shape = index_.tensors[t].shape;
    const bool into_run = l.rank == 1 && shape.size() != 1;
    for (const part& p : parts_[t]) {
      const stored_block& b = *p.block;
      const bool from_run = is_run(b, shape);
      if (into_run == from_run)  // both boxes, or both of one dim
        read_common<T>(p, dense_layout(b.offset, b.shape), 0, l, to);
      else if (from_run)
        each_box(shape, b.offset[0], b.shape[0],
                 [&](const runtime::layout& stored, std::int64_t at) { read_common<T>(p, stored, at, l, to); });
      else
        each_box(shape, l.origin[0], l.ext[0], [&](const runtime::layout& wanted, std::int64_t at) {
          read_common<T>(p, dense_layout(b.offset, b.shape), 0, wanted, to + at);
        });
    }
  }
  // Of elements, by this reader.
  std::uint64_t bytes_read() const {
    std::uint64_t all = 0;
    for (const auto& f : open_) all += f ? f->bytes_read() : 0;
    return all;
  }

 private:
  struct part {
    std::size_t file;
    const stored_block* block;
  };
  static bool same(const std::vector<std::uint64_t>& a, const extents& b) {
    bool equal = a.size() == b.size();
    for (std::size_t d = 0; equal && d < a.size(); ++d) equal = a[d] == static_cast<std::uint64_t>(b[d]);
    return equal;
  }
  // What both boxes have. The block's is stored row-major from its element number `at` on.
  template <class T>
  void read_common(const part& p, const runtime::layout& stored, std::int64_t at, const runtime::layout& l, T* to) {
    runtime::box_copy box;
    for (int d = 0; d < l.rank; ++d) {
      const std::int64_t a_end = l.origin[d] + l.ext[d], b_end = stored.origin[d] + stored.ext[d];
      box.begin[d] = l.origin[d] > stored.origin[d] ? l.origin[d] : stored.origin[d];
      box.size[d] = (a_end < b_end ? a_end : b_end) - box.begin[d];
      if (box.size[d] <= 0) return;
    }
    read_parts<T>(p, box, stored, at, l, to);
  }
  // In halves, until each is short enough.
  template <class T>
  void read_parts(const part& p, const runtime::box_copy& box, const runtime::layout& stored, std::int64_t at,
                  const runtime::layout& l, T* to) {
    std::int64_t span = 1;
    for (int d = 0; d < stored.rank; ++d) span += (box.size[d] - 1) * stored.str[d];
    int d = 0;
    while (d < stored.rank && box.size[d] == 1) ++d;
    if (d == stored.rank || static_cast<std::uint64_t>(span) * sizeof(T) <= most_bytes_)
      return read_box<T>(p, box, stored, at, l, to);
    runtime::box_copy half = box;
    half.size[d] = box.size[d] / 2;
    read_parts<T>(p, half, stored, at, l, to);
    half.begin[d] += half.size[d];
    half.size[d] = box.size[d] - half.size[d];
    read_parts<T>(p, half, stored, at, l, to);
  }
  // The bytes from the box's first element to its last one, in whole chunks.
  template <class T>
  void read_box(const part& p, const runtime::box_copy& box, const runtime::layout& stored, std::int64_t before,
                const runtime::layout& l, T* to) {
    std::int64_t first = before, last = before;
    for (int d = 0; d < stored.rank; ++d) {
      first += (box.begin[d] - stored.origin[d]) * stored.str[d];
      last += (box.begin[d] + box.size[d] - 1 - stored.origin[d]) * stored.str[d];
    }
    const safetensors_reader& from = file(p.file);
    const std::string& name = index_.tensors[p.block->tensor].name;
    const safetensors_entry& e = from.entry(name);
    const std::uint64_t begin = static_cast<std::uint64_t>(first) * sizeof(T) / chunk_bytes * chunk_bytes;
    std::uint64_t end = ((static_cast<std::uint64_t>(last) + 1) * sizeof(T) + chunk_bytes - 1) / chunk_bytes * chunk_bytes;
    if (end > e.end - e.begin) end = e.end - e.begin;
    std::vector<T> elements(static_cast<std::size_t>(end - begin) / sizeof(T));
    from.read(e, begin, elements.data(), static_cast<std::size_t>(end - begin));
    for (std::uint64_t at = begin; at < end; at += chunk_bytes) {
      const std::uint64_t count = end - at < chunk_bytes ? end - at : chunk_bytes;
      const std::uint64_t sum =
          checksum(reinterpret_cast<const char*>(elements.data()) + (at - begin), static_cast<std::size_t>(count));
      if (sum != p.block->sums[static_cast<std::size_t>(at / chunk_bytes)])
        refuse(from.path(), "is damaged: bytes " + std::to_string(at) + " to " + std::to_string(at + count) + " of '" +
                                name + "' have the checksum " + checksum_text(sum) + ", and " +
                                checksum_text(p.block->sums[static_cast<std::size_t>(at / chunk_bytes)]) + " was written");
    }
    // where the block's first element would be, if all of it had been read
    const auto skipped = static_cast<std::ptrdiff_t>(begin / sizeof(T)) - static_cast<std::ptrdiff_t>(before);
    copy_from(box, elements.data(), skipped, stored, to, l);
  }
  template <class T>
  static void copy_from(const runtime::box_copy& box, const T* from, std::ptrdiff_t skipped, const runtime::layout& lf,
                        T* to, const runtime::layout& lt) {
    std::int64_t at[max_rank]{};
    const int inner = lf.rank - 1;
    for (;;) {
      std::int64_t x = 0, y = 0;
      for (int d = 0; d < lf.rank; ++d) {
        x += (box.begin[d] + at[d] - lf.origin[d]) * lf.str[d];
        y += (box.begin[d] + at[d] - lt.origin[d]) * lt.str[d];
      }
      const std::int64_t run = inner < 0 ? 1 : box.size[inner], step = inner < 0 ? 1 : lt.str[inner];
      for (std::int64_t i = 0; i < run; ++i) to[y + i * step] = from[x - skipped + i];
      int d = inner - 1;
      while (d >= 0 && ++at[d] == box.size[d]) at[d--] = 0;
      if (d < 0) return;
    }
  }

  std::string folder_;
  checkpoint_index index_;
  std::uint64_t most_bytes_;
  std::vector<std::vector<part>> parts_;  // of each tensor
  std::vector<std::unique_ptr<safetensors_reader>> open_;
};

}  // namespace shardwise::inline v0_1::storage
