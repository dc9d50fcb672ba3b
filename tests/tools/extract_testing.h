// Images to extract from, and what was written of them.
#ifndef CREMA_TESTS_TOOLS_EXTRACT_TESTING_H_
#define CREMA_TESTS_TOOLS_EXTRACT_TESTING_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "crema/data.pb.h"
#include "data/databases/lmdb_writer.h"
#include "image/codec.h"
#include "tools/colour_net.h"
#include "tools/program.h"

namespace crema::testing_tools {

struct Row {
  std::string record, label;
  std::vector<float> values;
};

// Of names without commas.
inline std::vector<Row> ReadCsv(const std::filesystem::path& path) {
  std::vector<Row> rows;
  std::istringstream lines(ReadText(path));
  std::string line, field;
  std::getline(lines, line);
  while (std::getline(lines, line)) {
    Row& row = rows.emplace_back();
    std::istringstream fields(line);
    std::getline(fields, row.record, ',');
    std::getline(fields, row.label, ',');
    while (std::getline(fields, field, ',')) row.values.push_back(std::strtof(field.c_str(), nullptr));
  }
  return rows;
}

class Extract : public ::testing::Test {
 protected:
  void SetUp() override {
    WriteColourNet(folder_);
    WritePng(folder_, "images/blue/1.png", Coloured(4, 4, 255, 0, 0));
    WritePng(folder_, "images/green/1.png", Coloured(4, 4, 0, 255, 0));
    WritePng(folder_, "images/red/1.png", Coloured(4, 4, 0, 0, 255));
    WritePng(folder_, "images/red/2.png", Coloured(4, 4, 0, 0, 51));
    folder_.Write("list.txt", "red/2.png 7\nblue/1.png 0\n");
  }

  Finished Run(std::vector<std::string> words, const std::string& model = "deploy.prototxt") const {
    words.insert(words.begin(), {"crema", "extract", "--model=" + model, "--weights=net.caffemodel", "--threads=1"});
    return RunProgram(words, {.folder = folder_.path()});
  }

  std::vector<Row> Rows(std::vector<std::string> words, const std::string& model = "deploy.prototxt") const {
    words.insert(words.end(), {"--output=f.csv", "--force"});
    const Finished run = Run(words, model);
    EXPECT_EQ(run.exit_code, 0) << run.err;
    return ReadCsv(folder_ / "f.csv");
  }

  void WriteDatabase() const {
    LmdbWriter writer((folder_ / "db").string(), LmdbWriter::Existing::kRefuse);
    for (int i = 0; i < 9; ++i) {
      Datum datum;
      const std::vector<uint8_t> bytes = EncodePng(Coloured(4, 4, 0, 0, 17 * i));
      datum.set_data(bytes.data(), bytes.size());
      datum.set_encoded(true);
      datum.set_label(i % 3);
      writer.Put("key" + std::to_string(i), datum.SerializeAsString());
    }
    writer.Commit();
  }

  const ScratchFolder folder_;
};

}  // namespace crema::testing_tools

#endif  // CREMA_TESTS_TOOLS_EXTRACT_TESTING_H_
