// What a call throws.
#ifndef CREMA_TESTS_ERRORS_H_
#define CREMA_TESTS_ERRORS_H_

#include <gtest/gtest.h>

#include <exception>
#include <string>
#include <vector>

namespace crema {

// What `body` throws as Error, or "" when it throws nothing. Other types pass through.
template <typename Error, typename Body>
std::string ThrownBy(const Body& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

// Expects `body` to throw `Error` with every one of `parts` in its message.
template <typename Error, typename Body>
void ExpectThrows(const Body& body, const std::vector<std::string>& parts) {
  try {
    body();
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Error& error) {
    for (const std::string& part : parts) {
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos)
          << "\"" << part << "\" not in: " << error.what();
    }
  } catch (const std::exception& error) {
    ADD_FAILURE() << "another type was thrown: " << error.what();
  }
}

}  // namespace crema

#endif  // CREMA_TESTS_ERRORS_H_
