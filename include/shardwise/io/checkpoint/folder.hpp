// SPDX-License-Identifier: Apache-2.0
// checkpoint_folder: the checkpoints in a folder. One is there when the record names it: the record is written last, and in one piece.
//
//   folder/checkpoints.json            the record: names, steps, checksums of indices; the newest one last
//   folder/step-00000200/index.json    which file holds what
//   folder/step-00000200/rank-00000.safetensors ...
//   folder/.step-00000300.partial/     one that is being written, or was when its program ended
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <mutex>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <sys/stat.h>

#include <shardwise/io/checkpoint/index.hpp>

namespace shardwise::inline v0_1::storage {

struct recorded_checkpoint {
  std::string name;
  std::int64_t step = 0;
  std::uint64_t index = 0;  // the checksum of its index
};

// The folders that saves of this process write into beside the program's steps (async_save). A save that begins removes what is
// unfinished, so none may begin there before.
class folders_being_written {
 public:
  static bool has(const std::string& path) {
    const std::lock_guard<std::mutex> lock(all().changes);
    const std::vector<std::string>& paths = all().paths;
    return std::find(paths.begin(), paths.end(), plain(path)) != paths.end();
  }
  static void add(const std::string& path) {
    const std::lock_guard<std::mutex> lock(all().changes);
    all().paths.push_back(plain(path));
  }
  static void remove(const std::string& path) {
    const std::lock_guard<std::mutex> lock(all().changes);
    std::vector<std::string>& paths = all().paths;
    if (const auto it = std::find(paths.begin(), paths.end(), plain(path)); it != paths.end()) paths.erase(it);
  }

 private:
  struct list {
    std::mutex changes;
    std::vector<std::string> paths;
  };
  static list& all() {
    static list l;
    return l;
  }
  static std::string plain(const std::string& path) {
    std::error_code error;
    const std::filesystem::path p = std::filesystem::weakly_canonical(path, error);
    return error ? path : p.string();
  }
};

// Used by one rank at a time; one run writes into a folder.
class checkpoint_folder {
 public:
  static constexpr const char* record_name = "checkpoints.json";

  explicit checkpoint_folder(std::string path) : path_(std::move(path)) {}

  const std::string& path() const { return path_; }
  std::string inside(const std::string& name) const { return path_ + "/" + name; }
  static std::string partial(const std::string& name) { return "." + name + ".partial"; }

  bool has_record() const { return exists(inside(record_name)); }
  // What the record names, oldest first. Throws file_error if there is none, or none that can be read.
  std::vector<recorded_checkpoint> record() const {
    const std::string file = inside(record_name);
    if (!exists(path_)) refuse(path_, "does not exist: there is no checkpoint to go on from");
    if (!exists(file))
      refuse(path_, "has no checkpoint: it lacks the record " + std::string(record_name) +
                        ", which a save writes last; give the folder that was saved to");
    const json_members j(file, input_file(file).whole());
    if (j.text(j.root(), "format") != "shardwise checkpoints") refuse(file, "is no record of shardwise checkpoints");
    if (const std::uint64_t version = j.number(j.root(), "version"); version != checkpoint_version)
      refuse(file, "is of version " + std::to_string(version) + "; this program reads version " +
                       std::to_string(checkpoint_version));
    std::vector<recorded_checkpoint> all;
    for (const json_value& v : j.at(j.root(), "checkpoints", json_value::kind::array).items) {
      recorded_checkpoint c;
      c.name = j.text(v, "name");
      if (!is_ours(c.name)) refuse(file, "names a checkpoint '" + c.name + "', which is none of its folder");
      c.step = j.integer(j.at(v, "step", json_value::kind::number), "step");
      const std::vector<std::uint64_t> sum = j.sums(j.text(v, "index"));
      if (sum.size() != 1) refuse(file, "has no checksum of the index of '" + c.name + "'");
      c.index = sum[0];
      all.push_back(std::move(c));
    }
    if (all.empty()) refuse(file, "names no checkpoint");
    return all;
  }

  // Makes the folder and, in it, one to write a checkpoint of this step into; its name is returned. What an earlier program has
  // left unfinished is removed.
  std::string begin(std::int64_t step) const {
    std::error_code error;
    std::filesystem::create_directories(path_, error);
    if (error) refuse(path_, "cannot be made: " + error.message());
    std::vector<recorded_checkpoint> known;
    if (has_record()) known = record();
    std::vector<std::string> unfinished;
    for (const auto& e : std::filesystem::directory_iterator(path_, error)) {
      const std::string name = e.path().filename().string();
      const bool step_folder = is_ours(name) && e.is_directory(error);
      const bool part = name.size() > 9 && name[0] == '.' && name == partial(name.substr(1, name.size() - 9)) &&
                        is_ours(name.substr(1, name.size() - 9));
      bool is_known = false;
      for (const recorded_checkpoint& c : known) is_known = is_known || c.name == name;
      if (part || (step_folder && !is_known && !known.empty())) unfinished.push_back(name);
    }
    if (error) refuse(path_, "cannot be read: " + error.message());
    for (const std::string& name : unfinished) remove(name);
    char digits[40];
    std::snprintf(digits, sizeof digits, "step-%08lld", static_cast<long long>(step));
    std::string name = digits;
    for (int k = 2; exists(inside(name)); ++k) name = digits + ("." + std::to_string(k));
    if (::mkdir(inside(partial(name)).c_str(), 0777) != 0) refuse_by_system(inside(partial(name)), "made", errno);
    return name;
  }
  // All its files are on the disk: from now on it is the newest checkpoint. What was there before is still there.
  void commit(const std::string& name, std::int64_t step, const std::string& index, const file_calls& calls) const {
    const std::string made = inside(partial(name));
    {
      output_file file(made + "/index.json", calls);
      file.write(index.data(), index.size());
      file.finish();
    }
    sync_folder(made, calls);
    rename_file(made, inside(name), calls);
    sync_folder(path_, calls);
    std::vector<recorded_checkpoint> all;
    if (has_record()) all = record();
    all.push_back({name, step, checksum(index)});
    write_record(all, calls);
  }
  // The newest `keep` stay: the record forgets the others before they are removed.
  void keep_newest(int keep, const file_calls& calls) const {
    std::vector<recorded_checkpoint> all = record();
    if (keep <= 0 || all.size() <= static_cast<std::size_t>(keep)) return;
    const std::vector<recorded_checkpoint> old(all.begin(), all.end() - keep);
    all.erase(all.begin(), all.end() - keep);
    write_record(all, calls);
    for (const recorded_checkpoint& c : old) remove(c.name);
  }
  // What has failed leaves nothing behind; what cannot be removed, the next save removes.
  void give_up(const std::string& name) const {
    std::error_code ignored;
    std::filesystem::remove_all(inside(partial(name)), ignored);
  }

 private:
  // "step-00000200", "step-00000200.2"
  static bool is_ours(const std::string& name) {
    return name.size() >= 13 && name.compare(0, 5, "step-") == 0 && name.find_first_not_of("0123456789.", 5) == name.npos;
  }
  static bool exists(const std::string& path) {
    struct stat s{};
    return ::stat(path.c_str(), &s) == 0;
  }
  void remove(const std::string& name) const {
    std::error_code error;
    std::filesystem::remove_all(inside(name), error);
    if (error) refuse(inside(name), "cannot be removed: " + error.message());
  }
  void write_record(const std::vector<recorded_checkpoint>& all, const file_calls& calls) const {
    std::string text =
        "{\"format\":\"shardwise checkpoints\",\"version\":" + std::to_string(checkpoint_version) + ",\"checkpoints\":[";
    for (std::size_t i = 0; i < all.size(); ++i) {
      text += i ? ",\n " : "\n ";
      text += "{\"name\":";
      put_json(text, all[i].name);
      text += ",\"step\":" + std::to_string(all[i].step) + ",\"index\":\"" + checksum_text(all[i].index) + "\"}";
    }
    replace_file(path_, record_name, text + "]}\n", calls);
  }

  std::string path_;
};

}  // namespace shardwise::inline v0_1::storage
