// SPDX-License-Identifier: Apache-2.0
// Which fonts are trained on and which are held out, and where they are.
#pragma once

#include <ft2build.h>

#include FT_FREETYPE_H

#include <algorithm>
#include <array>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include "classes.hpp"
#include "options.hpp"

namespace train_glyphs {

enum class part { training, held_out, neither };

struct family_row {
  std::string_view name;  // as the font file says it; what follows it, such as Light or Condensed, is of the same family
  part used_for;
  std::string_view package;  // Debian's
};

/// The split is by family, and no family here is known to be drawn after one of the other part: a font with the outlines of a known one under
/// another name would be no unseen font (Arimo and Liberation Sans, Hack and DejaVu Sans Mono, Carlito and Lato are such pairs).
/// A face belongs to the longest name that its own begins with.
inline constexpr std::array families{
    family_row{"DejaVu Sans", part::training, "fonts-dejavu-core"},
    family_row{"DejaVu Sans Mono", part::training, "fonts-dejavu-core"},
    family_row{"DejaVu Serif", part::training, "fonts-dejavu-core"},
    family_row{"Liberation Sans", part::training, "fonts-liberation"},
    family_row{"Liberation Serif", part::training, "fonts-liberation"},
    family_row{"Liberation Mono", part::training, "fonts-liberation"},
    family_row{"FreeSans", part::training, "fonts-freefont-ttf"},
    family_row{"FreeSerif", part::training, "fonts-freefont-ttf"},
    family_row{"FreeMono", part::training, "fonts-freefont-ttf"},
    family_row{"Lato", part::training, "fonts-lato"},
    family_row{"Open Sans", part::training, "fonts-open-sans"},
    family_row{"Inconsolata", part::training, "fonts-inconsolata"},
    family_row{"Comfortaa", part::training, "fonts-comfortaa"},
    family_row{"Quicksand", part::training, "fonts-quicksand"},
    family_row{"Cabin", part::training, "fonts-cabin"},
    family_row{"Caladea", part::training, "fonts-crosextra-caladea"},
    family_row{"Gentium", part::training, "fonts-sil-gentium-basic"},
    family_row{"Old Standard", part::training, "fonts-oldstandard"},
    family_row{"Roboto", part::held_out, "fonts-roboto-unhinted"},
    family_row{"Linux Libertine", part::held_out, "fonts-linuxlibertine"},
    family_row{"Linux Biolinum", part::held_out, "fonts-linuxlibertine"},
    family_row{"Fira Code", part::held_out, "fonts-firacode"},
    family_row{"Cantarell", part::held_out, "fonts-cantarell"},
    // Letters as keys of a keyboard, and ornaments.
    family_row{"Linux Biolinum Keyboard", part::neither, "fonts-linuxlibertine"},
    family_row{"Linux Libertine Initials", part::neither, "fonts-linuxlibertine"},
};

inline const family_row* row_of(std::string_view face_family) {
  const family_row* best = nullptr;
  for (const family_row& row : families) {
    const bool begins =
        face_family.starts_with(row.name) && (face_family.size() == row.name.size() || face_family[row.name.size()] == ' ');
    if (begins && (!best || row.name.size() > best->name.size())) best = &row;
  }
  return best;
}

/// The families of one part, in the table's order, each with the files of its faces.
struct family {
  std::string name;
  std::vector<std::string> files;
};
struct font_files {
  std::vector<family> training, held_out;
  std::string for_words;  // a plain upright face, if there is one; DejaVu Sans Mono tells I from l and 0 from O
  std::string notes;      // what was found and is not used, a line each
};

// FreeType, with ownership ------------------------------------------------------------------------------------------

struct library_end {
  void operator()(FT_Library l) const { FT_Done_FreeType(l); }
};
struct face_end {
  void operator()(FT_Face f) const { FT_Done_Face(f); }
};
using library_handle = std::unique_ptr<std::remove_pointer_t<FT_Library>, library_end>;
using face_handle = std::unique_ptr<std::remove_pointer_t<FT_Face>, face_end>;

inline library_handle open_library() {
  FT_Library library = nullptr;
  if (FT_Init_FreeType(&library) != 0) throw std::runtime_error("train_glyphs: FreeType does not start");
  return library_handle(library);
}
/// Null where the file is no font that FreeType reads.
inline face_handle open_face(FT_Library library, const std::string& file) {
  FT_Face face = nullptr;
  return face_handle(FT_New_Face(library, file.c_str(), 0, &face) == 0 ? face : nullptr);
}

inline char missing_character(FT_Face face) {
  for (const std::string_view c : classes)
    for (const char character : c)
      if (FT_Get_Char_Index(face, static_cast<FT_ULong>(character)) == 0) return character;
  return 0;
}

/// All faces of the table's families below `folder`. Throws usage_error with the packages where a family is missing, or, if that is
/// allowed, where one part has none.
inline font_files find_fonts(const std::filesystem::path& folder, bool allow_missing) {
  namespace fs = std::filesystem;
  std::error_code error;
  std::vector<fs::path> paths;
  fs::recursive_directory_iterator entry(folder, fs::directory_options::skip_permission_denied, error);
  if (error) throw usage_error("cannot read the folder of fonts '" + folder.string() + "': " + error.message() + ".");
  for (const fs::recursive_directory_iterator end; entry != end; entry.increment(error)) {
    const std::string kind = entry->path().extension().string();
    std::error_code unknown;
    if ((kind == ".ttf" || kind == ".otf") && entry->is_regular_file(unknown)) paths.push_back(entry->path());
  }
  if (error)
    throw usage_error("cannot read the folder of fonts '" + folder.string() + "' to its end: " + error.message() + ".");
  std::sort(paths.begin(), paths.end());  // the order of a folder's entries differs between machines

  const library_handle library = open_library();
  std::array<std::vector<std::string>, families.size()> files;
  std::set<std::string> seen;
  font_files result;
  for (const fs::path& path : paths) {
    const face_handle face = open_face(library.get(), path.string());
    if (!face || !face->family_name || !face->style_name || !FT_IS_SCALABLE(face.get())) continue;
    const family_row* const row = row_of(face->family_name);
    if (!row || row->used_for == part::neither) continue;
    if (!seen.insert(std::string(face->family_name) + '\n' + face->style_name).second) continue;  // one face in two formats
    if (const char lacks = missing_character(face.get())) {
      result.notes += "not used: " + path.string() + ", which has no '" + lacks + "'\n";
      continue;
    }
    files[static_cast<std::size_t>(row - families.data())].push_back(path.string());
    const std::string_view style = face->style_name;
    const bool plain = style == "Book" || style == "Regular";
    if (plain && (result.for_words.empty() || row->name == "DejaVu Sans Mono")) result.for_words = path.string();
  }

  std::string missing;
  std::set<std::string> packages;
  for (std::size_t i = 0; i < families.size(); ++i) {
    const family_row& row = families[i];
    if (row.used_for == part::neither) continue;
    if (files[i].empty()) {
      missing += (missing.empty() ? "" : ", ") + std::string(row.name);
      packages.emplace(row.package);
    } else {
      (row.used_for == part::training ? result.training : result.held_out).push_back({std::string(row.name), files[i]});
    }
  }
  std::string install = "apt-get install";
  for (const std::string& p : packages) install += " " + p;
  const bool enough = !result.training.empty() && !result.held_out.empty();
  if (!missing.empty() && (!allow_missing || !enough))
    throw usage_error("these fonts are not below '" + folder.string() + "': " + missing + "; on Debian " + install +
                      " installs them" +
                      (allow_missing ? " (--allow-missing needs one family to train on and one to hold out)."
                                     : ", or --allow-missing goes on without them."));
  if (result.for_words.empty()) result.for_words = result.training.front().files.front();
  if (!missing.empty()) result.notes += "not there, and gone on without: " + missing + "\n";
  return result;
}

}  // namespace train_glyphs
