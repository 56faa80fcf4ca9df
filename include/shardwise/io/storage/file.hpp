// SPDX-License-Identifier: Apache-2.0
// Files by ranges of bytes: what is read is read whole, what is written is on the disk when it has been synchronised, and every
// error names the file.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1 {

// What files throw: missing, too short, of another content than they say, or a disk that is full.
struct SHARDWISE_VISIBLE file_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The system's calls that write; other ones in tests, which fail or end the process in the middle.
struct file_calls {
  ::ssize_t (*write)(int file, const void* bytes, std::size_t count) = &::write;
  int (*sync)(int file) = &::fsync;
  int (*rename)(const char* from, const char* to) = &std::rename;
};

namespace storage {

[[noreturn]] __attribute__((noinline)) inline void refuse(const std::string& path, const std::string& why) {
  throw file_error("shardwise: file '" + path + "' " + why);
}
[[noreturn]] __attribute__((noinline)) inline void refuse_by_system(const std::string& path, const char* what, int error) {
  refuse(path, std::string("cannot be ") + what + ": " + std::strerror(error) +
                   (error == ENOSPC ? "; free some space, or save to another disk" : ""));
}

class descriptor {
 public:
  explicit descriptor(int file = -1) : file_(file) {}
  descriptor(descriptor&& other) noexcept : file_(std::exchange(other.file_, -1)) {}
  descriptor& operator=(descriptor&& other) noexcept {
    std::swap(file_, other.file_);
    return *this;
  }
  ~descriptor() {
    if (file_ >= 0) ::close(file_);
  }
  int get() const { return file_; }
  int release() { return std::exchange(file_, -1); }

 private:
  int file_;
};

// A regular file that is read in ranges, by several threads if need be.
class input_file {
 public:
  explicit input_file(std::string path)
      : path_(std::move(path)), file_(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    if (file_.get() < 0) refuse_by_system(path_, "opened", errno);
    struct stat s{};
    if (::fstat(file_.get(), &s) != 0) refuse_by_system(path_, "asked for its size", errno);
    if (!S_ISREG(s.st_mode)) refuse(path_, "is no regular file");
    size_ = static_cast<std::uint64_t>(s.st_size);
  }

  const std::string& path() const { return path_; }
  std::uint64_t size() const { return size_; }
  // All `count` bytes from `at` on, or throws.
  void read(std::uint64_t at, void* to, std::size_t count) const {
    if (at > size_ || count > size_ - at)
      refuse(path_, "has " + std::to_string(size_) + " bytes, and bytes " + std::to_string(at) + " to " +
                        std::to_string(at + count) + " are asked for");
    auto* out = static_cast<char*>(to);
    __atomic_fetch_add(&bytes_read_, count, __ATOMIC_RELAXED);
    while (count > 0) {
      const ::ssize_t got = ::pread(file_.get(), out, count, static_cast<::off_t>(at));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) refuse_by_system(path_, "read", errno);
      if (got == 0) refuse(path_, "became shorter while it was read: nothing stands at byte " + std::to_string(at));
      out += got;
      at += static_cast<std::uint64_t>(got);
      count -= static_cast<std::size_t>(got);
    }
  }
  std::uint64_t bytes_read() const { return __atomic_load_n(&bytes_read_, __ATOMIC_RELAXED); }
  std::string whole() const {
    std::string text(static_cast<std::size_t>(size_), '\0');
    read(0, text.data(), text.size());
    return text;
  }

 private:
  std::string path_;
  descriptor file_;
  std::uint64_t size_ = 0;
  mutable std::uint64_t bytes_read_ = 0;
};

// A file that is written from its beginning to its end. Not there for certain before finish() has returned.
class output_file {
 public:
  output_file(std::string path, const file_calls& calls)
      : path_(std::move(path)), calls_(calls), file_(::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)) {
    if (file_.get() < 0) refuse_by_system(path_, "created", errno);
  }

  const std::string& path() const { return path_; }
  std::uint64_t written() const { return written_; }
  void write(const void* bytes, std::size_t count) {
    const auto* from = static_cast<const char*>(bytes);
    while (count > 0) {
      const ::ssize_t put = calls_.write(file_.get(), from, count);
      if (put < 0 && errno == EINTR) continue;
      if (put <= 0) refuse_by_system(path_, "written", put < 0 ? errno : EIO);
      from += put;
      written_ += static_cast<std::uint64_t>(put);
      count -= static_cast<std::size_t>(put);
    }
  }
  // Waits for the disk.
  void finish() {
    if (calls_.sync(file_.get()) != 0) refuse_by_system(path_, "synchronised", errno);
    if (::close(file_.release()) != 0) refuse_by_system(path_, "closed", errno);
  }

 private:
  std::string path_;
  file_calls calls_;
  descriptor file_;
  std::uint64_t written_ = 0;
};

// The names in a folder are on the disk.
inline void sync_folder(const std::string& path, const file_calls& calls) {
  const descriptor folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.get() < 0) refuse_by_system(path, "opened as a folder", errno);
  if (calls.sync(folder.get()) != 0) refuse_by_system(path, "synchronised", errno);
}
inline void rename_file(const std::string& from, const std::string& to, const file_calls& calls) {
  if (calls.rename(from.c_str(), to.c_str()) != 0) refuse_by_system(from, ("renamed to '" + to + "'").c_str(), errno);
}
// A file of this text in place of what was there, all of it or nothing: `folder`/`name`.
inline void replace_file(const std::string& folder, const std::string& name, const std::string& text,
                         const file_calls& calls) {
  const std::string made = folder + "/." + name + ".new";
  output_file file(made, calls);
  file.write(text.data(), text.size());
  file.finish();
  rename_file(made, folder + "/" + name, calls);
  sync_folder(folder, calls);
}

}  // namespace storage

}  // namespace shardwise::inline v0_1
