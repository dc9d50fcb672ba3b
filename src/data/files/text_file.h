// Text files, plain or compressed with gzip.
#ifndef CREMA_DATA_FILES_TEXT_FILE_H_
#define CREMA_DATA_FILES_TEXT_FILE_H_

#include <zlib.h>

#include <memory>
#include <string>

namespace crema {

// Read from begin to end by one thread. Throws UserError where the file is absent, a folder or damaged,
// EnvironmentError where it cannot be read.
class TextFile {
 public:
  // what: what was expected there, for messages.
  explicit TextFile(const std::string& path, std::string what = "a file of text");

  const std::string& path() const { return path_; }
  // Lines may hold bytes that are zero, which are no text otherwise.
  void KeepZeros() { keeps_zeros_ = true; }
  // The next line without its end ("\n" or "\r\n"), the first one without a byte order mark; false behind the last one.
  // Throws UserError where it is no text.
  bool ReadLine(std::string* line);
  // Which line was read last, from 1.
  int line() const { return line_; }
  // Everything that is left.
  std::string ReadAll();

 private:
  struct CloseFile {
    void operator()(gzFile_s* file) const { gzclose(file); }
  };

  // Appends the next bytes; false at the end.
  bool Fill(std::string* text);

  std::string path_, what_;
  std::unique_ptr<gzFile_s, CloseFile> file_;
  std::string buffer_;
  size_t at_ = 0;
  int line_ = 0;
  bool keeps_zeros_ = false;
};

}  // namespace crema

#endif  // CREMA_DATA_FILES_TEXT_FILE_H_
