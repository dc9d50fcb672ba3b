#include "data/files/annotation_file.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <pugixml.hpp>
#include <sstream>

#include "base/lower_case.h"
#include "base/number_text.h"
#include "base/suggest.h"
#include "base/trimmed.h"
#include "crema/error.h"
#include "data/files/text_file.h"

namespace crema {

namespace {

class VocReader {
 public:
  VocReader(const std::string& path, const LabelMapFile& labels) : labels_(labels), text_(TextFile(path).ReadAll()) {
    file_.path = path;
  }

  AnnotationFile Read() {
    pugi::xml_document document;
    const pugi::xml_parse_result result = document.load_buffer(text_.data(), text_.size());
    if (Trimmed(text_).starts_with("{")) {
      Fail(0, "is JSON; expected the XML of PASCAL VOC: export or convert the annotations as that");
    }
    if (!result) Fail(result.offset, std::string("is no XML: ") + result.description());
    const pugi::xml_node root = document.child("annotation");
    if (!root) Fail(0, "has no <annotation>; expected the XML of PASCAL VOC");
    file_.image = {SideOf(root, "height"), SideOf(root, "width")};
    for (const pugi::xml_node& object : root.children("object")) file_.objects.push_back(ObjectOf(object));
    return std::move(file_);
  }

 private:
  AnnotatedObject ObjectOf(const pugi::xml_node& node) {
    AnnotatedObject object;
    object.line = LineOf(node.offset_debug());
    object.name = Trimmed(node.child("name").text().get());
    if (object.name.empty()) Fail(node.offset_debug(), "an <object> has no <name>, which says its class");
    const auto label = labels_.label_of.find(object.name);
    if (label == labels_.label_of.end()) {
      Fail(node.child("name").offset_debug(), "unknown class \"" + object.name + "\": it is not among the " +
                                                  std::to_string(labels_.names.size()) + " of \"" + labels_.path +
                                                  "\"; add an item with this name there, or correct it here" +
                                                  DidYouMean(object.name, labels_.names));
    }
    if (label->second < 1) {
      Fail(node.child("name").offset_debug(),
           "class \"" + object.name + "\" has the label " + std::to_string(label->second) + " in \"" + labels_.path +
               "\", but classes of objects count from 1, 0 being the background; correct it there");
    }
    object.label = label->second;
    object.difficult = IsDifficult(node.child("difficult"));
    const pugi::xml_node box = node.child("bndbox");
    object.xmin = CornerOf(node, box, "xmin");
    object.ymin = CornerOf(node, box, "ymin");
    object.xmax = CornerOf(node, box, "xmax");
    object.ymax = CornerOf(node, box, "ymax");
    return object;
  }

  // Of the image, in pixels; 0, which some programs write, where it is not said.
  int SideOf(const pugi::xml_node& root, const char* name) const {
    constexpr float kLongest = 0x1p24f;
    const pugi::xml_node side = root.child("size").child(name);
    const std::string word(Trimmed(side.text().get()));
    float value = 0;
    if (word.empty()) return 0;
    if (ParseFinite(word, &value) && value == std::floor(value) && value >= 0 && value <= kLongest) {
      return static_cast<int>(value);
    }
    Fail(side.offset_debug(),
         "<" + std::string(name) + "> of <size> is \"" + word + "\"; expected a whole number of pixels");
  }

  // Not all programs write 0 or 1.
  bool IsDifficult(const pugi::xml_node& node) const {
    const std::string word = LowerCase(Trimmed(node.text().get()));
    if (word == "1" || word == "true") return true;
    if (word.empty() || word == "0" || word == "false" || word == "unspecified") return false;
    Fail(node.offset_debug(), "<difficult> is \"" + word + "\"; expected 0 or 1");
  }

  float CornerOf(const pugi::xml_node& object, const pugi::xml_node& box, const char* name) {
    const pugi::xml_node corner = box.child(name);
    const std::string word(Trimmed(corner.text().get()));
    float value = 0;
    if (ParseFinite(word, &value)) return value;
    Fail((corner ? corner : object).offset_debug(),
         corner ? "<" + std::string(name) + "> is \"" + word + "\"; expected a number of pixels"
                : "the <bndbox> of an <object> has no <" + std::string(name) + ">");
  }

  int LineOf(ptrdiff_t offset) const {
    const auto end = text_.begin() + std::clamp<ptrdiff_t>(offset, 0, static_cast<ptrdiff_t>(text_.size()));
    return 1 + static_cast<int>(std::count(text_.begin(), end, '\n'));
  }

  [[noreturn]] void Fail(ptrdiff_t offset, const std::string& message) const {
    throw UserError({file_.path, LineOf(offset), 0}, message);
  }

  const LabelMapFile& labels_;
  std::string text_;
  AnnotationFile file_;
};

// The class of an object, a whole number, and four numbers that tell its box.
using ObjectNumbers = std::array<float, 5>;

// read(numbers, object): whether they are what `form` says, which is a line of the file.
template <typename Read>
AnnotationFile ReadNumbers(const std::string& path, const std::string& form, const Read& read) {
  constexpr float kMostLabels = 0x1p24f;  // that floats hold
  TextFile text(path);
  AnnotationFile file;
  file.path = path;
  std::string line;
  while (text.ReadLine(&line)) {
    line = std::string(Trimmed(line));
    if (line.empty()) continue;
    AnnotatedObject object;
    object.line = text.line();
    ObjectNumbers numbers;
    std::istringstream words(line);
    std::string word;
    size_t found = 0;
    while (found < numbers.size() && words >> word && ParseFinite(word, &numbers[found])) ++found;
    if (found != numbers.size() || words >> word || numbers[0] != std::floor(numbers[0]) || numbers[0] >= kMostLabels ||
        !read(numbers, &object)) {
      throw UserError({path, text.line(), 0}, "expected " + form + ", got \"" + line + "\"");
    }
    file.objects.push_back(std::move(object));
  }
  return file;
}

}  // namespace

AnnotationFile ReadVocAnnotation(const std::string& path, const LabelMapFile& labels) {
  return VocReader(path, labels).Read();
}

AnnotationFile ReadTextAnnotation(const std::string& path) {
  const std::string form = "\"label xmin ymin xmax ymax\", the label a whole number from 1 on (0 is the background)";
  return ReadNumbers(path, form, [](const ObjectNumbers& numbers, AnnotatedObject* object) {
    if (numbers[0] < 1) return false;
    object->label = static_cast<int>(numbers[0]);
    object->xmin = numbers[1];
    object->ymin = numbers[2];
    object->xmax = numbers[3];
    object->ymax = numbers[4];
    return true;
  });
}

AnnotationFile ReadYoloAnnotation(const std::string& path) {
  const std::string form =
      "\"class x y width height\", the class a whole number from 0 on, the others shares of the image from 0 to 1";
  AnnotationFile file = ReadNumbers(path, form, [](const ObjectNumbers& numbers, AnnotatedObject* object) {
    const auto is_share = [](float number) { return number >= 0 && number <= 1; };
    if (numbers[0] < 0 || !std::all_of(numbers.begin() + 1, numbers.end(), is_share)) return false;
    object->label = static_cast<int>(numbers[0]) + 1;
    object->xmin = numbers[1] - numbers[3] / 2;
    object->ymin = numbers[2] - numbers[4] / 2;
    object->xmax = numbers[1] + numbers[3] / 2;
    object->ymax = numbers[2] + numbers[4] / 2;
    return true;
  });
  file.in_shares = true;
  return file;
}

}  // namespace crema
