// What users are told of their mistakes.
#pragma once

#include <tilewright/base/error.h>

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

namespace tilewright::test {

inline std::string message_of(const std::function<void()>& mistake) {
  try {
    mistake();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

// The message has each part.
inline void expect_says(const std::function<void()>& mistake, const std::vector<std::string>& parts) {
  const std::string message = message_of(mistake);
  for (const std::string& part : parts) EXPECT_NE(message.find(part), std::string::npos) << message;
}

}  // namespace tilewright::test
