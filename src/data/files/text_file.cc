#include "data/files/text_file.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/input_file.h"
#include "base/utf8.h"
#include "crema/error.h"

namespace crema {

namespace {

constexpr size_t kBlock = 1 << 18;

}  // namespace

TextFile::TextFile(const std::string& path, std::string what) : path_(path), what_(std::move(what)) {
  ExpectFile(path, what_);
  file_.reset(gzopen(path.c_str(), "rb"));
  if (!file_) FailToRead(path, errno);
  gzbuffer(file_.get(), kBlock);
}

bool TextFile::Fill(std::string* text) {
  const size_t before = text->size();
  text->resize(before + kBlock);
  const int got = gzread(file_.get(), text->data() + before, kBlock);
  text->resize(before + static_cast<size_t>(got < 0 ? 0 : got));
  int error = Z_OK;
  const char* message = gzerror(file_.get(), &error);
  if (error == Z_ERRNO) FailToRead(path_, errno);
  // Z_BUF_ERROR: the compressed file ends early.
  if (error != Z_OK && error != Z_STREAM_END) {
    throw UserError("\"" + path_ + "\" is damaged: " + message + "; copy or download it again");
  }
  return got > 0;
}

bool TextFile::ReadLine(std::string* line) {
  size_t end;
  while ((end = buffer_.find('\n', at_)) == std::string::npos) {
    buffer_.erase(0, at_);
    at_ = 0;
    if (Fill(&buffer_)) continue;
    if (buffer_.empty()) return false;
    end = buffer_.size();
    break;
  }
  line->assign(buffer_, at_, end - at_);
  if (++line_ == 1) DropByteOrderMark(path_, line);
  if (!keeps_zeros_ && line->find('\0') != std::string::npos) {
    throw UserError({path_, 0, 0}, "is no text, as its bytes that are zero show; expected " + what_);
  }
  if (line->ends_with('\r')) line->pop_back();
  at_ = std::min(end + 1, buffer_.size());
  return true;
}

std::string TextFile::ReadAll() {
  std::string text = buffer_.substr(at_);
  buffer_.clear();
  at_ = 0;
  while (Fill(&text)) {
  }
  return text;
}

}  // namespace crema
