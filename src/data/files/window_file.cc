#include "data/files/window_file.h"

#include <algorithm>
#include <string_view>

#include "base/number_text.h"
#include "base/paths.h"
#include "crema/error.h"
#include "data/files/text_file.h"

namespace crema {

namespace {

constexpr std::string_view kWhiteSpace = " \t\r\v\f";
constexpr int32_t kFarthest = 1 << 24;  // of a corner: floats count so far

// Words between blanks, whatever the lines.
class Words {
 public:
  explicit Words(const std::string& path) : file_(path, "a window file") {}

  // False at the end.
  bool Next() {
    size_t begin;
    while ((begin = text_.find_first_not_of(kWhiteSpace, at_)) == std::string::npos) {
      if (!file_.ReadLine(&text_)) {
        word_ = {};
        return false;
      }
      at_ = 0;
    }
    at_ = std::min(text_.find_first_of(kWhiteSpace, begin), text_.size());
    word_ = std::string_view(text_).substr(begin, at_ - begin);
    return true;
  }

  std::string_view word() const { return word_; }
  int32_t line() const { return file_.line(); }

  std::string_view Word(const char* what) {
    if (!Next()) Fail("ends where " + std::string(what) + " is due; is it cut short?");
    return word_;
  }

  template <typename Number>
  Number Get(const char* what) {
    const std::string_view word = Word(what);
    Number number{};
    bool read;
    if constexpr (std::is_integral_v<Number>) {
      read = ParseWhole(word, &number);
    } else {
      read = ParseFinite(word, &number);
    }
    if (!read) Fail("expected " + std::string(what) + ", got \"" + std::string(word) + "\"");
    return number;
  }

  [[noreturn]] void Fail(const std::string& message) const { throw UserError({file_.path(), line(), 0}, message); }

 private:
  TextFile file_;
  std::string text_;
  size_t at_ = 0;
  std::string_view word_;
};

int32_t Corner(Words& words, const char* what) {
  const auto place = words.Get<int32_t>(what);
  if (place < -kFarthest || place > kFarthest) words.Fail("no image reaches to pixel " + std::to_string(place));
  return place;
}

void ReadImageOf(Words& words, WindowFile* file) {
  const auto index = words.Get<int32_t>("the number of an image, behind #");
  const size_t due = file->images.entries.size();
  if (index < 0 || static_cast<size_t>(index) != due) {
    words.Fail("image " + std::to_string(index) + " stands where image " + std::to_string(due) +
               " is due; number the images from 0 in the order of the file");
  }
  std::string path(words.Word("the path of an image"));
  file->images.entries.push_back({std::move(path), 0, words.line()});
  const auto channels = words.Get<int32_t>("the number of an image's channels (its path must not hold blanks)");
  if (channels != 1 && channels != 3) {
    words.Fail("an image has 3 channels, or 1, not " + std::to_string(channels));
  }
  words.Get<int32_t>("the height of an image, a whole number");
  words.Get<int32_t>("the width of an image, a whole number");
}

void ReadWindow(Words& words, float object_overlap, float background_overlap, WindowFile* file) {
  WindowFile::Window window;
  window.image = static_cast<int32_t>(file->images.entries.size()) - 1;
  window.label = words.Get<int32_t>("the class of a window, a whole number");
  window.line = words.line();
  const auto overlap = words.Get<float>("the overlap of a window with an object, a number from 0 to 1");
  if (!(overlap >= 0 && overlap <= 1)) words.Fail("the overlap of a window with an object must be from 0 to 1");
  window.left = Corner(words, "x1 of a window, a whole number");
  window.top = Corner(words, "y1 of a window, a whole number");
  window.right = Corner(words, "x2 of a window, a whole number");
  window.bottom = Corner(words, "y2 of a window, a whole number");
  if (window.right < window.left || window.bottom < window.top) {
    words.Fail("a window ends before it begins; write x1 y1 x2 y2, its first and its last pixel");
  }
  if (overlap >= object_overlap) {
    if (window.label < 1) {
      words.Fail("a window that overlaps an object by " + std::string("fg_threshold or more is of class ") +
                 std::to_string(window.label) + "; number the classes from 1, 0 is the background");
    }
    file->objects.push_back(window);
  } else if (overlap < background_overlap) {
    window.label = 0;
    file->backgrounds.push_back(window);
  }
}

}  // namespace

WindowFile ReadWindowFile(const std::string& path, const std::string& root, float object_overlap,
                          float background_overlap) {
  WindowFile file;
  file.path = path;
  file.images.root = AsRoot(root);
  Words words(path);
  int32_t counted_at = 0;
  while (words.Next()) {
    if (words.word() != "#") {
      words.Fail(
          "expected # and the number of the next image, got \"" + std::string(words.word()) + "\"" +
          (counted_at == 0 ? "" : "; line " + std::to_string(counted_at) + " says how many windows stand before it"));
    }
    ReadImageOf(words, &file);
    const auto count = words.Get<int32_t>("the number of an image's windows, a whole number");
    if (count < 0) words.Fail("an image cannot have " + std::to_string(count) + " windows");
    counted_at = words.line();
    for (int32_t i = 0; i < count; ++i) ReadWindow(words, object_overlap, background_overlap, &file);
  }
  if (file.images.entries.empty()) {
    throw UserError({path}, "names no image; expected # 0, the path of an image, its channels, height and width, and " +
                                std::string("its windows"));
  }
  return file;
}

}  // namespace crema
