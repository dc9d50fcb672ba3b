#include "schema/text_file.h"

#include <google/protobuf/text_format.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "base/check.h"
#include "base/input_file.h"
#include "base/lower_case.h"
#include "base/utf8.h"
#include "crema/error.h"

namespace crema {

namespace {

constexpr size_t kMostOfPipe = 1'000'000'000;

}  // namespace

std::string ReadTextFile(const std::string& path, const std::string& kind) {
  CheckReadableFile(path, kind);
  std::error_code ignored;
  const bool ends = std::filesystem::is_regular_file(path, ignored);
  std::string text;
  VisitFile(path, [&](std::string_view part) {
    text += part;
    if (!ends && text.size() > kMostOfPipe) {
      throw UserError({path}, "has more than 1 GB, and may never end; expected a " + kind + " file");
    }
    return true;
  });
  return text;
}

std::string CleanText(const std::string& text, const std::string& name, const std::string& what) {
  std::string clean = text;
  DropByteOrderMark(name, &clean);
  if (text.compare(0, 8, "\x89HDF\r\n\x1a\n") == 0) {
    throw UserError({name}, "is an HDF5 file, not the prototxt of a " + what + "; weights are given with --weights");
  }
  if (clean.starts_with("version https://git-lfs")) {
    throw UserError({name}, "is a Git LFS pointer, not the file itself; run git lfs pull");
  }
  const size_t first = std::min(clean.find_first_not_of(" \t\r\n"), clean.size());
  const std::string start = LowerCase(std::string_view(clean).substr(first, 9));
  if (start.starts_with("<!doctype") || start.starts_with("<html")) {
    throw UserError({name}, "is a web page, not the prototxt of a " + what + "; download the file itself (\"raw\")");
  }
  const size_t nul = text.find('\0');
  if (nul != std::string::npos) {
    throw UserError({name}, "is a binary file (byte " + std::to_string(nul) + " is zero), not the prototxt of a " +
                                what +
                                "; weights (.caffemodel) are given with --weights, a .solverstate with --snapshot");
  }
  bool in_comment = false, empty = true;
  for (char c : clean) {
    if (c == '#') in_comment = true;
    if (c == '\n') in_comment = false;
    if (!in_comment && !std::strchr(" \t\r\n\v\f", c)) {
      empty = false;
      break;
    }
  }
  if (empty) {
    std::string least;
    if (what == "net") least = " needs at least one layer { ... }";
    if (what == "solver") least = " needs at least net: \"...\", base_lr, lr_policy and max_iter";
    throw UserError({name}, least.empty() ? "is empty" : "is empty; the prototxt of a " + what + least);
  }
  return clean;
}

namespace {

// Not DebugString(), which says the same otherwise from process to process in newer protobuf (36 does).
std::string Printed(const google::protobuf::Message& message, bool in_one_line) {
  std::string text;
  google::protobuf::TextFormat::Printer printer;
  printer.SetSingleLineMode(in_one_line);
  printer.SetUseShortRepeatedPrimitives(false);
  printer.SetUseUtf8StringEscaping(true);
  CREMA_CHECK(printer.PrintToString(message, &text));
  if (in_one_line && text.ends_with(' ')) text.pop_back();
  return text;
}

}  // namespace

std::string TextOf(const google::protobuf::Message& message) { return Printed(message, false); }

std::string LineOf(const google::protobuf::Message& message) { return Printed(message, true); }

}  // namespace crema
