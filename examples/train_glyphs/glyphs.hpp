// SPDX-License-Identifier: Apache-2.0
// Images of single characters, drawn by FreeType: in which face, how large, how slanted, how noisy is a function of a seed and a number.
#pragma once

#include <ft2build.h>

#include FT_OUTLINE_H

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "fonts.hpp"
#include "images.hpp"
#include "random_numbers.hpp"

namespace train_glyphs {

struct glyph {
  image picture;
  std::int32_t label = 0;  // its class
  char character = 0;
  int family = 0;  // of the fonts it was drawn from
};

/// Draws characters in the faces of some families. FreeType's faces are not for several threads: each rank has its own renderer.
class renderer {
 public:
  explicit renderer(const std::vector<family>& from) : library_(open_library()) {
    for (const family& f : from) {
      families_.emplace_back();
      for (const std::string& file : f.files) {
        families_.back().push_back(open_face(library_.get(), file));
        if (!families_.back().back()) throw std::runtime_error("train_glyphs: '" + file + "' cannot be read any more");
      }
    }
  }

  int families() const { return static_cast<int>(families_.size()); }

  /// A class, then one of its characters, a family and one of its faces, all equally likely.
  glyph any(random_numbers r) {
    const auto label = r.below(classes.size());
    const auto of = r.below(families_.size());
    return draw(static_cast<std::int32_t>(label), static_cast<int>(of), r);
  }

  glyph draw(std::int32_t label, int of, random_numbers& r) {
    const auto& faces = families_[static_cast<std::size_t>(of)];
    const std::string_view characters = classes[static_cast<std::size_t>(label)];
    glyph g;
    g.label = label;
    g.family = of;
    g.character = characters[r.below(characters.size())];
    const FT_Face face = faces[r.below(faces.size())].get();

    const double size = r.between(14, 22), slant = r.between(-0.2, 0.3), turn = r.between(-0.1, 0.1);
    const double contrast = r.between(0.5, 1), paper = r.between(0, 1 - contrast), deviation = r.between(0, 0.15);
    if (FT_Set_Char_Size(face, 0, std::lround(64 * size), 72, 72) != 0 ||  // 72 dots an inch: points are pixels
        FT_Load_Char(face, static_cast<FT_ULong>(g.character), FT_LOAD_NO_HINTING | FT_LOAD_NO_BITMAP) != 0)
      throw std::runtime_error(std::string("train_glyphs: FreeType cannot load '") + g.character + "' of " +
                               face->family_name);
    FT_Outline& outline = face->glyph->outline;
    const auto fixed16 = [](double x) { return static_cast<FT_Fixed>(std::lround(x * 65536)); };
    const double c = std::cos(turn), s = std::sin(turn);
    const FT_Matrix shape{fixed16(c), fixed16(c * slant - s), fixed16(s), fixed16(s * slant + c)};
    FT_Outline_Transform(&outline, &shape);

    FT_BBox box;
    FT_Outline_Get_CBox(&outline, &box);
    const double room = 64.0 * (side - 2), extent = static_cast<double>(std::max(box.xMax - box.xMin, box.yMax - box.yMin));
    if (extent > room) {  // a wide W of a large size
      const FT_Matrix smaller{fixed16(room / extent), 0, 0, fixed16(room / extent)};
      FT_Outline_Transform(&outline, &smaller);
      FT_Outline_Get_CBox(&outline, &box);
    }
    const auto centred = [&](FT_Pos least, FT_Pos most) {
      return static_cast<FT_Pos>(32 * side - (least + most) / 2 + std::lround(64 * r.between(-1, 1)));
    };
    const FT_Pos right = centred(box.xMin, box.xMax), up = centred(box.yMin, box.yMax);
    FT_Outline_Translate(&outline, right, up);

    image ink{};
    FT_Bitmap bitmap{};
    bitmap.rows = bitmap.width = side;
    bitmap.pitch = side;
    bitmap.buffer = ink.data();
    bitmap.num_grays = 256;
    bitmap.pixel_mode = FT_PIXEL_MODE_GRAY;
    if (FT_Outline_Get_Bitmap(library_.get(), &outline, &bitmap) != 0)
      throw std::runtime_error(std::string("train_glyphs: FreeType cannot draw '") + g.character + "' of " +
                               face->family_name);
    for (std::size_t i = 0; i < ink.size(); ++i) {
      const double value = paper + contrast * ink[i] / 255.0 + deviation * r.noise();
      g.picture[i] = static_cast<std::uint8_t>(std::lround(255 * std::clamp(value, 0.0, 1.0)));
    }
    return g;
  }

 private:
  library_handle library_;
  std::vector<std::vector<face_handle>> families_;
};

enum purpose : std::uint64_t { for_training = 1, for_judging = 2 };

inline constexpr std::uint64_t judging_seed = 2026;
inline constexpr int judged_of_each = 8;  // images of each class in each held-out family

/// The held-out images: of every class equally many in every family.
inline std::vector<glyph> held_out_images(const std::vector<family>& from) {
  renderer draws(from);
  std::vector<glyph> all;
  for (int of = 0; of < draws.families(); ++of)
    for (std::size_t label = 0; label < classes.size(); ++label)
      for (int k = 0; k < judged_of_each; ++k) {
        random_numbers r(judging_seed, for_judging, all.size());
        all.push_back(draws.draw(static_cast<std::int32_t>(label), of, r));
      }
  return all;
}

}  // namespace train_glyphs
