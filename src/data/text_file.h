// Text files, plain or compressed with gzip.
#ifndef CREMA_DATA_TEXT_FILE_H_
#define CREMA_DATA_TEXT_FILE_H_

#include <zlib.h>

#include <memory>
#include <string>

namespace crema {

// Read from begin to end by one thread. Throws UserError where the file is absent, a folder or damaged,
// EnvironmentError where it cannot be read.
class TextFile {
 public:
  explicit TextFile(const std::string& path);

  const std::string& path() const { return path_; }
  // The next line without its end ("\n" or "\r\n"); false behind the last one.
  bool ReadLine(std::string* line);
  // Everything that is left.
  std::string ReadAll();

 private:
  struct CloseFile {
    void operator()(gzFile_s* file) const { gzclose(file); }
  };

  // Appends the next bytes; false at the end.
  bool Fill(std::string* text);

  std::string path_;
  std::unique_ptr<gzFile_s, CloseFile> file_;
  std::string buffer_;
  size_t at_ = 0;
};

}  // namespace crema

#endif  // CREMA_DATA_TEXT_FILE_H_
