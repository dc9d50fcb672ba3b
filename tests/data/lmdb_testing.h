// Records of the tests of LMDB.
#ifndef CREMA_TESTS_DATA_LMDB_TESTING_H_
#define CREMA_TESTS_DATA_LMDB_TESTING_H_

#include <cstddef>
#include <span>
#include <string>

namespace crema::testing {

inline std::string Text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Of different lengths, some beyond a page.
inline std::string ValueOf(int i) {
  return std::string(static_cast<size_t>(i * 37 % 9000) + 1, static_cast<char>('a' + i % 26));
}

}  // namespace crema::testing

#endif  // CREMA_TESTS_DATA_LMDB_TESTING_H_
