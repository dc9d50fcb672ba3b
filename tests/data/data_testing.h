// What the tests of src/data share.
#ifndef CREMA_TESTS_DATA_DATA_TESTING_H_
#define CREMA_TESTS_DATA_DATA_TESTING_H_

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "crema/data.pb.h"
#include "crema/error.h"
#include "data/databases/lmdb_writer.h"
#include "errors.h"
#include "files.h"
#include "temporary_folder.h"

namespace crema::testing {

using crema::ExpectThrows;
using crema::ReadFile;
using crema::WriteFile;

// Pixel i is (i * 7 + label) mod 256.
inline Datum ImageDatum(int channels, int height, int width, int label) {
  Datum datum;
  datum.set_channels(channels);
  datum.set_height(height);
  datum.set_width(width);
  datum.set_label(label);
  std::string data(static_cast<size_t>(channels) * height * width, '\0');
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<char>(i * 7 + label);
  datum.set_data(data);
  return datum;
}

inline std::string KeyOf(int i) {
  char key[16];
  std::snprintf(key, sizeof(key), "%08d", i);
  return key;
}

inline void WriteRecords(const std::string& path, const std::vector<std::string>& values) {
  LmdbWriter writer(path, LmdbWriter::Existing::kRefuse);
  for (size_t i = 0; i < values.size(); ++i) writer.Put(KeyOf(static_cast<int>(i)), values[i]);
  writer.Commit();
}

inline void WriteDatums(const std::string& path, const std::vector<Datum>& datums) {
  std::vector<std::string> values;
  for (const Datum& datum : datums) values.push_back(datum.SerializeAsString());
  WriteRecords(path, values);
}

// `count` records with labels 0, 1, ...
inline void WriteImages(const std::string& path, int count, int channels, int height, int width) {
  std::vector<Datum> datums;
  for (int i = 0; i < count; ++i) datums.push_back(ImageDatum(channels, height, width, i));
  WriteDatums(path, datums);
}

// Names of what a folder holds, "a b c".
inline std::string Listing(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : " ") + name;
  return text;
}

// Runs `body` in a child process that is not root, so that permissions bind; returns its exit status.
template <typename Body>
int InUnprivilegedChild(const Body& body) {
  const pid_t child = fork();
  if (child == 0) {
    constexpr uid_t kNobody = 65534;
    if (geteuid() == 0 && (setgid(kNobody) != 0 || setuid(kNobody) != 0)) _exit(100);
    int code = 101;
    try {
      code = body();
    } catch (const std::exception& error) {
      std::fprintf(stderr, "in the child: %s\n", error.what());
    }
    _exit(code);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

}  // namespace crema::testing

#endif  // CREMA_TESTS_DATA_DATA_TESTING_H_
