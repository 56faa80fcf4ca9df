// SPDX-License-Identifier: Apache-2.0
// thrown: the text of what is thrown.
#pragma once

#include <exception>
#include <string>

namespace test {

template <class F>
std::string thrown(F&& f) {
  try {
    f();
  } catch (const std::exception& e) {
    return e.what();
  }
  return "nothing was thrown";
}

inline bool mentions(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace test
