// Darknet's .weights files: a header, then the numbers of one section after the other, without a word of whose they
// are. The header: three 32-bit whole numbers (major, minor and revision of the format's version), then how many images
// the net has been trained on, in 64 bits from version 0.2 on, in 32 before.
#ifndef CREMA_DARKNET_WEIGHTS_FILE_H_
#define CREMA_DARKNET_WEIGHTS_FILE_H_

#include <cstdint>
#include <fstream>
#include <string>

namespace crema::darknet {

// Reads the numbers one after the other.
class WeightsFile {
 public:
  // Throws UserError where there is no such file or it is shorter than a header, EnvironmentError where it cannot be
  // read.
  explicit WeightsFile(const std::string& path);

  const std::string& path() const { return path_; }
  // Bytes of the whole file, of its header, and behind what was read.
  int64_t size() const { return size_; }
  int64_t header() const { return header_; }
  int64_t left() const { return left_; }
  // Files of the first version hold the weights of connected sections input by input: what they have in the place of
  // major or minor is above 1000.
  bool transposed() const { return transposed_; }

  // `count` numbers, of which there must be as many left. Throws EnvironmentError.
  void Read(int64_t count, float* to);

 private:
  void ReadBytes(int64_t count, void* to);

  const std::string path_;
  std::ifstream file_;
  int64_t size_ = 0, header_ = 0, left_ = 0;
  bool transposed_ = false;
};

}  // namespace crema::darknet

#endif  // CREMA_DARKNET_WEIGHTS_FILE_H_
