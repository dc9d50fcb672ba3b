// KITTI's text files of objects, and the rows that DIGITS makes of them for DetectNet.
#ifndef CREMA_DATA_FILES_KITTI_LABELS_H_
#define CREMA_DATA_FILES_KITTI_LABELS_H_

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace crema {

// An object, as a line tells it (Geiger, Lenz and Urtasun, "Are we ready for Autonomous Driving? The KITTI Vision
// Benchmark Suite", 2012): type truncated occluded alpha left top right bottom height width length x y z rotation_y,
// and in files of results a score, which is not read. Sides are in pixels, lengths and places in metres, angles in
// radians.
struct KittiObject {
  std::string type;  // in small letters
  float truncated = 0, occluded = 0, alpha = 0;
  float left = 0, top = 0, right = 0, bottom = 0;
  float height = 0, width = 0, length = 0;
  float x = 0, y = 0, z = 0, rotation_y = 0;
};

// Throws UserError with the place of each line that is none (the first 20), EnvironmentError where the file cannot be
// read. Empty lines are skipped.
std::vector<KittiObject> ReadKittiLabels(const std::string& path);

// The number of each type, in small letters; 0 is what is not to count.
using KittiClasses = std::map<std::string, int, std::less<>>;
// DIGITS' numbers: car 1, van 2, truck 3, ..., pedestrian and person 8, ..., misc 15.
const KittiClasses& DigitsClasses();
// The names by their places, "dontcare,car,person": DIGITS' custom classes. Throws UserError where one is empty or
// stands twice.
KittiClasses CustomKittiClasses(std::string_view names);

// Numbers of a row of DIGITS' databases: left, top, width, height, alpha, class, 0, rotation_y, truncated, occluded,
// length, width, height, x, y, z.
constexpr int kDigitsNumbers = 16;

// The rows of these objects, the farthest first. Types that `classes` lacks, and boxes with a side below `min_side`
// pixels, are class 0. Sides are multiplied by `by_x` and `by_y`.
std::vector<float> DigitsRows(const std::vector<KittiObject>& objects, const KittiClasses& classes, float min_side,
                              float by_x, float by_y);

}  // namespace crema

#endif  // CREMA_DATA_FILES_KITTI_LABELS_H_
