// SPDX-License-Identifier: Apache-2.0
// A strict reader of the XML that the library's pages are: tags closed in order, attributes quoted and given once, entities known, one
// root. What is not well-formed throws.
#pragma once

#include <cctype>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace test {

struct xml_element {
  std::string name, text;  // text: all of it directly inside, entities resolved
  std::map<std::string, std::string> attribute;
  std::vector<xml_element> inside;

  const xml_element* with_id(const std::string& id) const {
    if (const auto a = attribute.find("id"); a != attribute.end() && a->second == id) return this;
    for (const auto& e : inside)
      if (const auto* found = e.with_id(id)) return found;
    return nullptr;
  }
  template <class F>
  void each(const F& f) const {
    f(*this);
    for (const auto& e : inside) e.each(f);
  }
  int count(const std::string& what, const std::string& of_class = "") const {
    int n = 0;
    each([&](const xml_element& e) {
      const auto c = e.attribute.find("class");
      n += e.name == what && (of_class.empty() || (c != e.attribute.end() && c->second == of_class)) ? 1 : 0;
    });
    return n;
  }
};

class xml_reader {
 public:
  explicit xml_reader(std::string_view s) : s_(s) {}
  xml_element read() {
    if (s_.starts_with("<!DOCTYPE html>")) at_ = 15;
    space();
    xml_element root = element();
    space();
    if (at_ != s_.size()) fail("something behind the root");
    return root;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw std::runtime_error("not well-formed: " + what + " at byte " + std::to_string(at_));
  }
  char now() const { return at_ < s_.size() ? s_[at_] : '\0'; }
  void expect(std::string_view what) {
    if (!s_.substr(at_).starts_with(what)) fail("no " + std::string(what));
    at_ += what.size();
  }
  void space() {
    while (std::isspace(static_cast<unsigned char>(now()))) ++at_;
  }
  std::string word() {
    const std::size_t from = at_;
    while (std::isalnum(static_cast<unsigned char>(now())) || now() == '-' || now() == ':') ++at_;
    if (at_ == from) fail("no name");
    return std::string(s_.substr(from, at_ - from));
  }
  char character() {
    if (now() == '\0') fail("the end");
    if (now() != '&') return s_[at_++];
    static const std::map<std::string_view, char> known{{"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}};
    for (const auto& [name, c] : known)
      if (s_.substr(at_).starts_with(name)) {
        at_ += name.size();
        return c;
      }
    fail("an unknown entity");
  }
  xml_element element() {
    xml_element e;
    expect("<");
    e.name = word();
    for (space(); now() != '>' && now() != '/'; space()) {
      const std::string key = word();
      expect("=\"");
      std::string value;
      while (now() != '"') {
        if (now() == '<') fail("< in an attribute");
        value += character();
      }
      expect("\"");
      if (!e.attribute.emplace(key, value).second) fail("attribute " + key + " twice");
    }
    if (now() == '/') {
      expect("/>");
      return e;
    }
    expect(">");
    while (true) {
      while (now() != '<') e.text += character();
      if (s_.substr(at_).starts_with("</")) break;
      e.inside.push_back(element());
    }
    expect("</");
    if (word() != e.name) fail("another end than " + e.name + "'s");
    expect(">");
    return e;
  }

  std::string_view s_;
  std::size_t at_ = 0;
};

inline xml_element read_xml(std::string_view s) { return xml_reader(s).read(); }

// The cells of a table, its head first.
inline std::vector<std::vector<std::string>> cells_of(const xml_element& table) {
  std::vector<std::vector<std::string>> rows;
  table.each([&](const xml_element& e) {
    if (e.name != "tr") return;
    rows.emplace_back();
    for (const auto& c : e.inside) rows.back().push_back(c.text);
  });
  return rows;
}

}  // namespace test
