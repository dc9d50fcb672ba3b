#include "data/files/kitti_labels.h"

#include <algorithm>
#include <iterator>

#include "base/lower_case.h"
#include "base/number_text.h"
#include "base/trimmed.h"
#include "crema/error.h"
#include "data/files/text_file.h"

namespace crema {

namespace {

constexpr const char* kFields[] = {"truncated", "occluded", "alpha", "left", "top", "right",      "bottom", "height",
                                   "width",     "length",   "x",     "y",    "z",   "rotation_y", "score"};

// What is wrong with a line; empty where it is an object.
std::string ReadObject(const std::string& line, KittiObject* object, int* column) {
  float score = 0;
  float* const values[] = {&object->truncated, &object->occluded, &object->alpha,  &object->left,       &object->top,
                           &object->right,     &object->bottom,   &object->height, &object->width,      &object->length,
                           &object->x,         &object->y,        &object->z,      &object->rotation_y, &score};
  static_assert(std::size(kFields) == std::size(values));
  constexpr size_t kNeeded = std::size(kFields) - 1;  // without the score
  size_t at = 0, read = 0;
  const auto next = [&] {
    at = line.find_first_not_of(" \t", at);
    if (at == std::string::npos) return std::string_view();
    const size_t end = std::min(line.find_first_of(" \t", at), line.size());
    const std::string_view word = std::string_view(line).substr(at, end - at);
    *column = static_cast<int>(at) + 1;
    at = end;
    return word;
  };
  object->type = LowerCase(next());
  for (std::string_view word = next(); !word.empty(); word = next()) {
    if (read == std::size(values)) return "more than 16 values; KITTI's lines have 15, or 16 with a score";
    if (!ParseFinite(word, values[read])) {
      return std::string(kFields[read]) + " \"" + std::string(word) + "\" is no finite number";
    }
    ++read;
  }
  if (read < kNeeded) {
    return "there are " + std::to_string(read + 1) +
           " values, but KITTI's lines have 15: type truncated occluded alpha left top right bottom height width "
           "length x y z rotation_y";
  }
  if (object->right < object->left || object->bottom < object->top) {
    return "the box ends before it begins; its corners are left top right bottom";
  }
  return {};
}

}  // namespace

std::vector<KittiObject> ReadKittiLabels(const std::string& path) {
  TextFile file(path);
  std::vector<KittiObject> objects;
  Diagnostics mistakes;
  std::string line;
  while (!mistakes.enough() && file.ReadLine(&line)) {
    if (Trimmed(line).empty()) continue;
    KittiObject object;
    int column = 0;
    const std::string problem = ReadObject(line, &object, &column);
    if (!problem.empty()) mistakes.Error({path, file.line(), column}, problem);
    objects.push_back(std::move(object));
  }
  mistakes.ThrowIfErrors();
  return objects;
}

const KittiClasses& DigitsClasses() {
  static const KittiClasses classes = {{"dontcare", 0},
                                       {"car", 1},
                                       {"van", 2},
                                       {"truck", 3},
                                       {"bus", 4},
                                       {"pickup", 5},
                                       {"vehicle-with-trailer", 6},
                                       {"special-vehicle", 7},
                                       {"person", 8},
                                       {"pedestrian", 8},
                                       {"person-fa", 9},
                                       {"person?", 10},
                                       {"people", 11},
                                       {"cyclist", 12},
                                       {"tram", 13},
                                       {"person_sitting", 14},
                                       {"misc", 15}};
  return classes;
}

KittiClasses CustomKittiClasses(std::string_view names) {
  KittiClasses classes;
  if (Trimmed(names).empty()) throw UserError("there are no classes");
  int number = 0;
  for (const std::string& name : CommaParts(names)) {
    const std::string small = LowerCase(name);
    if (small.empty()) throw UserError("class " + std::to_string(number) + " has no name");
    if (!classes.emplace(small, number++).second) throw UserError("class \"" + small + "\" stands twice");
  }
  return classes;
}

std::vector<float> DigitsRows(const std::vector<KittiObject>& objects, const KittiClasses& classes, float min_side,
                              float by_x, float by_y) {
  std::vector<const KittiObject*> order;
  for (const KittiObject& object : objects) order.push_back(&object);
  // As DIGITS does: sorted by their distance, then reversed.
  std::stable_sort(order.begin(), order.end(), [](const auto* a, const auto* b) { return a->z < b->z; });
  std::reverse(order.begin(), order.end());
  std::vector<float> rows;
  for (const KittiObject* o : order) {
    const float width = o->right - o->left, height = o->bottom - o->top;
    const auto found = classes.find(o->type);
    const bool counts = found != classes.end() && width >= min_side && height >= min_side;
    for (const float number : {o->left * by_x, o->top * by_y, width * by_x, height * by_y, o->alpha,
                               counts ? static_cast<float>(found->second) : 0.0f, 0.0f, o->rotation_y, o->truncated,
                               o->occluded, o->length, o->width, o->height, o->x, o->y, o->z}) {
      rows.push_back(number);
    }
  }
  return rows;
}

}  // namespace crema
