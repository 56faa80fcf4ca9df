// SPDX-License-Identifier: Apache-2.0
// json: a strict reader of what headers and indices are made of: objects, arrays, strings and whole numbers of 64 bits. All else
// of JSON, and all that is no JSON, is refused with the byte where it stands.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1::storage {

// A string in quotes, with what must not stand in one escaped.
inline void put_json(std::string& out, std::string_view s) {
  out += '"';
  for (const char c : s) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) >= 0x20) {
      out += c;
    } else {
      char code[8];
      std::snprintf(code, sizeof code, "\\u%04x", static_cast<unsigned>(static_cast<unsigned char>(c)));
      out += code;
    }
  }
  out += '"';
}

// What is wrong, and at which byte of the text.
struct SHARDWISE_VISIBLE json_error : std::runtime_error {
  json_error(const std::string& what, std::size_t at) : std::runtime_error(what + " at byte " + std::to_string(at)) {}
};

struct json_value {
  enum class kind { object, array, string, number };
  kind is = kind::object;
  std::string text;             // of a string
  bool negative = false;        // of a number
  std::uint64_t magnitude = 0;  // of a number
  std::vector<json_value> items;
  std::vector<std::string> names;  // of an object's items, no two alike

  const json_value* find(std::string_view name) const {
    for (std::size_t i = 0; i < names.size(); ++i)
      if (names[i] == name) return &items[i];
    return nullptr;
  }
};
constexpr const char* name_of(json_value::kind k) {
  switch (k) {
    case json_value::kind::object: return "an object";
    case json_value::kind::array: return "an array";
    case json_value::kind::string: return "a string";
    case json_value::kind::number: return "a number";
  }
  return "";
}

class json_reader {
 public:
  // The whole text is one object; blanks may stand around it. Throws json_error.
  static json_value object(std::string_view text) {
    json_reader r(text);
    r.skip_blanks();
    if (r.peek() != '{') r.refuse("an object, '{', is required");
    json_value v = r.value(0);
    r.skip_blanks();
    if (r.at_ != text.size()) r.refuse("something follows the object");
    return v;
  }

 private:
  static constexpr int max_depth = 8;  // a header has two levels, an index four

  explicit json_reader(std::string_view text) : text_(text) {}

  [[noreturn]] void refuse(const std::string& what) const { throw json_error(what, at_); }
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void skip_blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' || text_[at_] == '\r'))
      ++at_;
  }
  void take(char c) {
    skip_blanks();
    if (at_ >= text_.size()) refuse(std::string("the text ends where '") + c + "' is required");
    if (text_[at_] != c) refuse(std::string("'") + c + "' is required");
    ++at_;
  }

  json_value value(int depth) {
    if (depth >= max_depth) refuse("more than " + std::to_string(max_depth) + " levels");
    skip_blanks();
    if (at_ >= text_.size()) refuse("the text ends where a value is required");
    json_value v;
    const char c = text_[at_];
    if (c == '"') {
      v.is = json_value::kind::string;
      v.text = string();
    } else if (c == '-' || (c >= '0' && c <= '9')) {
      number(v);
    } else if (c == '{' || c == '[') {
      members(v, depth);
    } else {
      refuse("an object, an array, a string or a whole number is required");
    }
    return v;
  }

  void members(json_value& v, int depth) {
    const bool named = text_[at_++] == '{';
    v.is = named ? json_value::kind::object : json_value::kind::array;
    const char end = named ? '}' : ']';
    skip_blanks();
    if (peek() == end && at_ < text_.size()) {
      ++at_;
      return;
    }
    for (;;) {
      if (named) {
        skip_blanks();
        if (peek() != '"') refuse("a name in quotes is required");
        v.names.push_back(string());
        take(':');
      }
      v.items.push_back(value(depth + 1));
      skip_blanks();
      if (at_ < text_.size() && text_[at_] == ',') {
        ++at_;
        continue;
      }
      take(end);
      break;
    }
    if (named) check_names(v);
  }
  void check_names(const json_value& v) const {
    std::vector<std::string_view> sorted(v.names.begin(), v.names.end());
    std::sort(sorted.begin(), sorted.end());
    const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
    if (twice != sorted.end()) refuse("the name '" + std::string(*twice) + "' stands twice in the object that ends");
  }

  void number(json_value& v) {
    v.is = json_value::kind::number;
    if (text_[at_] == '-') {
      v.negative = true;
      ++at_;
    }
    if (peek() < '0' || peek() > '9') refuse("a digit is required");
    if (peek() == '0' && at_ + 1 < text_.size() && text_[at_ + 1] >= '0' && text_[at_ + 1] <= '9')
      refuse("a number begins with 0");
    for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_) {
      const auto digit = static_cast<std::uint64_t>(text_[at_] - '0');
      if (v.magnitude > (UINT64_MAX - digit) / 10) refuse("a number does not fit 64 bits");
      v.magnitude = v.magnitude * 10 + digit;
    }
    if (v.negative && v.magnitude > std::uint64_t{1} << 63) refuse("a number does not fit 64 bits");
    if (peek() == '.' || peek() == 'e' || peek() == 'E') refuse("a whole number is required, without fraction and exponent");
  }

  std::string string() {
    ++at_;
    std::string out;
    for (;;) {
      if (at_ >= text_.size()) refuse("the text ends inside of a string");
      const auto c = static_cast<unsigned char>(text_[at_]);
      if (c == '"') {
        ++at_;
        return out;
      }
      if (c < 0x20) refuse("a control character stands in a string");
      if (c == '\\') escape(out);
      else if (c < 0x80) out += text_[at_++];
      else utf8(out);
    }
  }
  void escape(std::string& out) {
    ++at_;
    const char c = peek();
    if (c == 'u') return escaped_code(out);
    constexpr std::string_view written = "\"\\/bfnrt", meant = "\"\\/\b\f\n\r\t";
    const std::size_t which = at_ < text_.size() ? written.find(c) : written.npos;
    if (which == written.npos) refuse("an escape that JSON does not have");
    out += meant[which];
    ++at_;
  }
  std::uint32_t four_digits() {
    std::uint32_t code = 0;
    for (int i = 0; i < 4; ++i) {
      ++at_;
      const char c = peek();
      const int digit = c >= '0' && c <= '9'   ? c - '0'
                        : c >= 'a' && c <= 'f' ? c - 'a' + 10
                        : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                               : -1;
      if (digit < 0) refuse("four hexadecimal digits are required");
      code = code * 16 + static_cast<std::uint32_t>(digit);
    }
    ++at_;
    return code;
  }
  void escaped_code(std::string& out) {
    std::uint32_t code = four_digits();
    if (code >= 0xDC00 && code < 0xE000) refuse("half of a surrogate pair stands alone");
    if (code >= 0xD800 && code < 0xDC00) {
      if (peek() != '\\' || at_ + 1 >= text_.size() || text_[at_ + 1] != 'u')
        refuse("half of a surrogate pair stands alone");
      ++at_;
      const std::uint32_t low = four_digits();
      if (low < 0xDC00 || low >= 0xE000) refuse("half of a surrogate pair stands alone");
      code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    }
    const int more = code < 0x80 ? 0 : code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    if (more == 0) out += static_cast<char>(code);
    else out += static_cast<char>((0xFF00U >> (more + 1) & 0xFFU) | code >> (6 * more));
    for (int k = more - 1; k >= 0; --k) out += static_cast<char>(0x80 | (code >> (6 * k) & 0x3F));
  }
  // One character of several bytes: the shortest form, none of the surrogates, at most U+10FFFF.
  void utf8(std::string& out) {
    const auto first = static_cast<unsigned char>(text_[at_]);
    const int more = first >= 0xF0 && first <= 0xF4  ? 3
                     : first >= 0xE0 && first < 0xF0 ? 2
                     : first >= 0xC2 && first < 0xE0 ? 1
                                                     : 0;
    bool good = more > 0 && text_.size() - at_ > static_cast<std::size_t>(more);
    for (int k = 1; good && k <= more; ++k) {
      const auto c = static_cast<unsigned char>(text_[at_ + static_cast<std::size_t>(k)]);
      const unsigned least = k > 1 ? 0x80 : first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
      const unsigned most = k > 1 ? 0xBF : first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
      good = c >= least && c <= most;
    }
    if (!good) refuse("a string is no UTF-8");
    out.append(text_.substr(at_, static_cast<std::size_t>(more) + 1));
    at_ += static_cast<std::size_t>(more) + 1;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace shardwise::inline v0_1::storage
