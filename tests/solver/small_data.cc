#include "solver/small_data.h"

#include <zlib.h>

#include <stdexcept>

#include "base/random.h"
#include "data/convert/convert_mnist.h"
#include "files.h"

namespace crema {

namespace {

std::string BigEndian(uint32_t value) {
  return {static_cast<char>(value >> 24), static_cast<char>(value >> 16), static_cast<char>(value >> 8),
          static_cast<char>(value)};
}

// The file without compression and with only the first `records` records.
std::string FirstRecords(const std::string& path, int records, size_t header_bytes, size_t record_bytes) {
  gzFile file = gzopen(path.c_str(), "rb");
  if (file == nullptr) throw std::runtime_error("cannot open " + path);
  std::string bytes(header_bytes + record_bytes * records, '\0');
  const int read = gzread(file, bytes.data(), static_cast<unsigned>(bytes.size()));
  gzclose(file);
  if (read != static_cast<int>(bytes.size())) throw std::runtime_error("too short: " + path);
  return bytes.replace(4, 4, BigEndian(records));
}

}  // namespace

void WriteClassesWithABadLabel(const std::string& database, int records, int bad) {
  constexpr int kSide = 6, kClasses = 3;
  std::string images = BigEndian(0x803) + BigEndian(records) + BigEndian(kSide) + BigEndian(kSide);
  std::string labels = BigEndian(0x801) + BigEndian(records);
  const RandomStream random(1, 1);
  for (int r = 0; r < records; ++r) {
    const int label = static_cast<int>(random.Below(r, kClasses));
    labels += static_cast<char>(r == bad ? 9 : label);
    for (int i = 0; i < kSide * kSide; ++i) {
      const int bright = i / kSide / 2 == label ? 100 : 0;
      images += static_cast<char>(bright + random.Below(1000000 + r * kSide * kSide + i, 120));
    }
  }
  WriteFile(database + ".images", images);
  WriteFile(database + ".labels", labels);
  ConvertMnist(database + ".images", database + ".labels", database, false);
}

void WriteClasses(const std::string& database, int records) { WriteClassesWithABadLabel(database, records, -1); }

void WriteDarkThenBright(const std::string& database, int records) {
  constexpr int kSide = 6;
  const size_t pixels = static_cast<size_t>(records) * kSide * kSide;
  WriteFile(database + ".images", BigEndian(0x803) + BigEndian(2 * records) + BigEndian(kSide) + BigEndian(kSide) +
                                      std::string(pixels, '\0') + std::string(pixels, '\xff'));
  WriteFile(database + ".labels", BigEndian(0x801) + BigEndian(2 * records) + std::string(2 * records, '\0'));
  ConvertMnist(database + ".images", database + ".labels", database, false);
}

void WriteFirstImages(const std::string& images_gz, const std::string& labels_gz, int records,
                      const std::string& database) {
  WriteFile(database + ".images", FirstRecords(images_gz, records, 16, 28 * 28));
  WriteFile(database + ".labels", FirstRecords(labels_gz, records, 8, 1));
  ConvertMnist(database + ".images", database + ".labels", database, false);
}

}  // namespace crema
