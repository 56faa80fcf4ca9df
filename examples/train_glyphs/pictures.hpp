// SPDX-License-Identifier: Apache-2.0
// The three pictures: what was mistaken, which class was taken for which, and what the first convolution looks for.
#pragma once

#include <ft2build.h>
#include <png.h>

#include FT_FREETYPE_H

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "../common/progress.hpp"  // fixed
#include "glyphs.hpp"
#include "model.hpp"

namespace train_glyphs {

struct color {
  std::uint8_t r, g, b;
};
inline constexpr color white{255, 255, 255}, black{31, 35, 40}, gray{110, 119, 129}, pale{234, 238, 242}, red{207, 34, 46},
    blue{9, 105, 218};

inline color mixed(color a, color b, double share) {
  const auto one = [&](std::uint8_t x, std::uint8_t y) {
    return static_cast<std::uint8_t>(std::lround(x + std::clamp(share, 0.0, 1.0) * (y - x)));
  };
  return {one(a.r, b.r), one(a.g, b.g), one(a.b, b.b)};
}

/// Words and boxes on a white ground. Words are written in one face, that of `file`.
class canvas {
 public:
  canvas(int width, int height, const std::string& file)
      : width_(width),
        height_(height),
        rgb_(static_cast<std::size_t>(3 * width) * static_cast<std::size_t>(height), 255),
        library_(open_library()),
        face_(open_face(library_.get(), file)) {
    if (!face_) throw std::runtime_error("train_glyphs: '" + file + "' cannot be read any more");
  }

  void dot(int x, int y, color c) {
    if (x < 0 || y < 0 || x >= width_ || y >= height_) return;
    std::uint8_t* const p =
        rgb_.data() + 3 * (static_cast<std::size_t>(y) * static_cast<std::size_t>(width_) + static_cast<std::size_t>(x));
    p[0] = c.r, p[1] = c.g, p[2] = c.b;
  }
  void box(int x, int y, int width, int height, color c) {
    for (int j = 0; j < height; ++j)
      for (int i = 0; i < width; ++i) dot(x + i, y + j, c);
  }
  void frame(int x, int y, int width, int height, color c) {
    box(x, y, width, 1, c), box(x, y + height - 1, width, 1, c);
    box(x, y, 1, height, c), box(x + width - 1, y, 1, height, c);
  }

  int width_of(std::string_view words, int size) {
    int wide = 0;
    for (const char c : words) wide += load(c, size);
    return (wide + 32) / 64;
  }
  /// `y` is the line that letters stand on; anchor 0: begins at x, 0.5: is centred there, 1: ends there.
  void text(double x, int y, std::string_view words, int size, color c, double anchor = 0) {
    int at = static_cast<int>(std::lround(64 * (x - anchor * width_of(words, size))));
    for (const char letter : words) {
      const int wide = load(letter, size);
      const FT_GlyphSlot slot = face_->glyph;
      if (FT_Render_Glyph(slot, FT_RENDER_MODE_NORMAL) == 0)
        for (unsigned j = 0; j < slot->bitmap.rows; ++j)
          for (unsigned i = 0; i < slot->bitmap.width; ++i) {
            const int px = (at + 32) / 64 + slot->bitmap_left + static_cast<int>(i),
                      py = y - slot->bitmap_top + static_cast<int>(j);
            const std::uint8_t ink =
                slot->bitmap.buffer[static_cast<std::size_t>(j) * static_cast<std::size_t>(slot->bitmap.pitch) + i];
            if (ink != 0) dot(px, py, mixed(at_dot(px, py), c, ink / 255.0));
          }
      at += wide;
    }
  }

  /// The picture as a PNG file's bytes.
  std::string png() const {
    png_image head{};
    head.version = PNG_IMAGE_VERSION;
    head.width = static_cast<png_uint_32>(width_);
    head.height = static_cast<png_uint_32>(height_);
    head.format = PNG_FORMAT_RGB;
    png_alloc_size_t bytes = 0;
    std::string file;
    if (png_image_write_to_memory(&head, nullptr, &bytes, 0, rgb_.data(), 0, nullptr) != 0) {
      file.resize(bytes);
      if (png_image_write_to_memory(&head, file.data(), &bytes, 0, rgb_.data(), 0, nullptr) != 0) {
        file.resize(bytes);
        return file;
      }
    }
    throw std::runtime_error(std::string("train_glyphs: libpng cannot write a picture: ") + head.message);
  }

 private:
  /// Its advance, in 64ths of a pixel.
  int load(char c, int size) {
    if (FT_Set_Pixel_Sizes(face_.get(), 0, static_cast<FT_UInt>(size)) != 0 ||
        FT_Load_Char(face_.get(), static_cast<unsigned char>(c), FT_LOAD_TARGET_LIGHT) != 0)
      throw std::runtime_error("train_glyphs: FreeType cannot write words");
    return static_cast<int>(face_->glyph->advance.x);
  }
  color at_dot(int x, int y) const {
    if (x < 0 || y < 0 || x >= width_ || y >= height_) return white;
    const std::uint8_t* const p =
        rgb_.data() + 3 * (static_cast<std::size_t>(y) * static_cast<std::size_t>(width_) + static_cast<std::size_t>(x));
    return {p[0], p[1], p[2]};
  }

  int width_, height_;
  std::vector<std::uint8_t> rgb_;
  library_handle library_;
  face_handle face_;
};

/// What the network and the nearest neighbour said of a held-out image.
struct judgement {
  std::int32_t answer = -1, neighbour = -1;
  double sure = 0;  // the answer's probability
};

inline std::string percent(double share, int digits = 1) { return example::fixed(100 * share, digits) + " %"; }

/// The mistakes that the network was surest of, each with what it shows, what was said and the family.
inline std::string mistakes_png(std::span<const glyph> judged, std::span<const judgement> said,
                                std::span<const family> families, const std::string& face) {
  constexpr int columns = 10, most = 60, zoom = 4, cell = side * zoom + 20, below = 42, left = 24, top = 74;
  std::vector<std::size_t> wrong;
  for (std::size_t i = 0; i < judged.size(); ++i)
    if (said[i].answer != judged[i].label) wrong.push_back(i);
  const std::size_t all = wrong.size();
  std::sort(wrong.begin(), wrong.end(), [&](std::size_t a, std::size_t b) {
    return said[a].sure != said[b].sure ? said[a].sure > said[b].sure : a < b;
  });
  if (wrong.size() > most) wrong.resize(most);
  const int rows = std::max(1, (static_cast<int>(wrong.size()) + columns - 1) / columns);

  canvas c(2 * left + columns * cell, top + rows * (side * zoom + below) + 8, face);
  c.text(left, 32, std::to_string(all) + " mistakes in " + std::to_string(judged.size()) + " images of unseen fonts", 20,
         black);
  c.text(left, 54,
         (all > most ? "the " + std::to_string(most) + " that the network was surest of; " : std::string()) +
             "below each: what it is, what was answered and how surely, and the family",
         13, gray);
  for (std::size_t k = 0; k < wrong.size(); ++k) {
    const glyph& g = judged[wrong[k]];
    const judgement& j = said[wrong[k]];
    const int x = left + static_cast<int>(k) % columns * cell + 10,
              y = top + static_cast<int>(k) / columns * (side * zoom + below);
    for (int p = 0; p < pixels; ++p)
      c.box(x + p % side * zoom, y + p / side * zoom, zoom, zoom,
            mixed(white, black, g.picture[static_cast<std::size_t>(p)] / 255.0));
    c.frame(x - 1, y - 1, side * zoom + 2, side * zoom + 2, pale);
    const std::string truth(classes[static_cast<std::size_t>(g.label)]), answer(classes[static_cast<std::size_t>(j.answer)]);
    const int line = y + side * zoom + 15;
    c.text(x, line, truth, 14, blue);
    c.text(x + side * zoom / 2, line, answer, 14, red, 0.5);
    c.text(x + side * zoom, line, percent(j.sure, 0), 12, gray, 1);
    c.text(x + side * zoom / 2, line + 14, families[static_cast<std::size_t>(g.family)].name, 11, gray, 0.5);
  }
  return c.png();
}

/// A row for each class, a column for each answer; the numbers are images.
inline std::string confusion_png(std::span<const glyph> judged, std::span<const judgement> said, const std::string& face) {
  constexpr int n = static_cast<int>(classes.size()), cell = 18, left = 48, top = 92;
  std::vector<int> count(static_cast<std::size_t>(n) * n);
  for (std::size_t i = 0; i < judged.size(); ++i)
    ++count[static_cast<std::size_t>(judged[i].label) * n + static_cast<std::size_t>(said[i].answer)];
  const int each = static_cast<int>(judged.size()) / n;  // images of a class
  canvas c(left + n * cell + 24, top + n * cell + 24, face);
  c.text(left, 28, "Which class was taken for which", 20, black);
  c.text(
      left, 48,
      "rows: what the image shows; columns: what was answered; numbers: images, of " + std::to_string(each) + " in each row",
      13, gray);
  for (int k = 0; k < n; ++k) {
    const std::string_view name = classes[static_cast<std::size_t>(k)];
    const int size = name.size() > 1 ? 11 : 12;
    c.text(left - 6, top + k * cell + 14, name, size, black, 1);
    c.text(left + (k + 0.5) * cell, top - 6, name, size, black, 0.5);
    c.text(left + (k + 0.5) * cell, top + n * cell + 14, name, size, black, 0.5);
  }
  for (int row = 0; row < n; ++row)
    for (int column = 0; column < n; ++column) {
      const int images = count[static_cast<std::size_t>(row) * n + static_cast<std::size_t>(column)];
      const double share = static_cast<double>(images) / each;
      const int x = left + column * cell, y = top + row * cell;
      const bool right = row == column;
      c.box(x, y, cell, cell, images == 0 ? white : mixed(white, right ? blue : red, right ? share : 0.15 + 1.7 * share));
      c.frame(x, y, cell + 1, cell + 1, pale);
      if (images > 0)
        c.text(x + 0.5 * cell, y + 13, std::to_string(images), images > 99 ? 8 : 11,
               (right ? share > 0.5 : share > 0.25) ? white : black, 0.5);
    }
  return c.png();
}

/// Each filter of the first convolution beside what it makes of one image: red where it answers strongly, blue the opposite.
inline std::string filters_png(std::span<const float> weights, const glyph& shown, const std::string& face) {
  constexpr int columns = 4, rows = (filters + columns - 1) / columns, zoom = 18, small = 4, gap = 14, left = 24, top = 74;
  constexpr int wide = filter_side * zoom, cell = wide + side * small + 2 * gap + 12, high = side * small + 2 * gap;
  canvas c(left + columns * cell + 10, top + rows * high, face);
  c.text(left, 30, "The " + std::to_string(filters) + " filters of the first convolution", 20, black);
  c.text(left, 52,
         std::string("left: its weights; right: what it makes of the unseen '") + shown.character +
             "' at the top; red is positive, blue negative",
         13, gray);
  for (int p = 0; p < pixels; ++p)
    c.box(left + columns * cell - gap - side * 2 + p % side * 2, 14 + p / side * 2, 2, 2,
          mixed(white, black, shown.picture[static_cast<std::size_t>(p)] / 255.0));
  const auto shade = [](double value, double largest) {
    return mixed(white, value > 0 ? red : blue, largest > 0 ? std::fabs(value) / largest : 0);
  };
  for (int f = 0; f < filters; ++f) {
    const std::span<const float> w =
        weights.subspan(static_cast<std::size_t>(f) * filter_side * filter_side, filter_side * filter_side);
    const int x = left + f % columns * cell, y = top + f / columns * high;
    double largest = 0, strongest = 0;
    for (const float v : w) largest = std::max(largest, std::fabs(static_cast<double>(v)));
    for (int p = 0; p < filter_side * filter_side; ++p)
      c.box(x + p % filter_side * zoom, y + p / filter_side * zoom, zoom, zoom,
            shade(w[static_cast<std::size_t>(p)], largest));
    c.frame(x - 1, y - 1, wide + 2, wide + 2, gray);

    std::vector<double> made(pixels);
    for (int p = 0; p < pixels; ++p) {
      for (int q = 0; q < filter_side * filter_side; ++q) {
        const int i = p % side + q % filter_side - filter_side / 2, j = p / side + q / filter_side - filter_side / 2;
        if (i >= 0 && j >= 0 && i < side && j < side)
          made[static_cast<std::size_t>(p)] +=
              static_cast<double>(w[static_cast<std::size_t>(q)]) * shown.picture[static_cast<std::size_t>(j * side + i)];
      }
      strongest = std::max(strongest, std::fabs(made[static_cast<std::size_t>(p)]));
    }
    for (int p = 0; p < pixels; ++p)
      c.box(x + wide + gap + p % side * small, y + p / side * small, small, small,
            shade(made[static_cast<std::size_t>(p)], strongest));
    c.frame(x + wide + gap - 1, y - 1, side * small + 2, side * small + 2, pale);
  }
  return c.png();
}

}  // namespace train_glyphs
