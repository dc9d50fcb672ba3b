#include "data/transforms/anchors.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "base/number_text.h"
#include "base/random.h"
#include "crema/error.h"
#include "data/databases/annotated_record.h"
#include "data/databases/record_image.h"
#include "image/codec.h"
#include "image/resizer.h"

namespace crema {

namespace {

constexpr size_t kMostObjects = 50'000;
constexpr int kStarts = 10, kMostSteps = 300;

ImageExtent StoredExtent(const RecordSource& source, uint64_t i, const DatumView& datum) {
  if (!datum.encoded) return {datum.size.height, datum.size.width};
  ImageInfo info;
  const std::string problem = ReadImageInfo(datum.data, &info);
  if (!problem.empty()) RejectRecord(source, i, "holds a compressed image that " + problem);
  return {info.height, info.width};
}

// At most kMostObjects, spread over all.
std::vector<BoxSides> Some(std::span<const BoxSides> objects) {
  if (objects.size() <= kMostObjects) return {objects.begin(), objects.end()};
  std::vector<BoxSides> some;
  for (size_t i = 0; i < kMostObjects; ++i) some.push_back(objects[i * objects.size() / kMostObjects]);
  return some;
}

struct Nearest {
  size_t anchor;
  float overlap;
};

Nearest NearestOf(const BoxSides& object, std::span<const BoxSides> anchors) {
  Nearest nearest = {0, -1};
  for (size_t k = 0; k < anchors.size(); ++k) {
    const float overlap = OverlapOfSides(object, anchors[k]);
    if (overlap > nearest.overlap) nearest = {k, overlap};
  }
  return nearest;
}

// Objects drawn with probabilities in the square of their distance, 1 - overlap, from those before (Arthur and
// Vassilvitskii, "k-means++: The advantages of careful seeding", 2007).
std::vector<BoxSides> Start(std::span<const BoxSides> objects, size_t count, uint64_t seed) {
  const RandomStream random(seed, 0);
  std::vector<BoxSides> anchors = {objects[random.Below(0, objects.size())]};
  std::vector<double> weights(objects.size(), 1);  // a distance is at most 1
  while (anchors.size() < count) {
    double total = 0;
    for (size_t i = 0; i < objects.size(); ++i) {
      const double distance = 1 - OverlapOfSides(objects[i], anchors.back());
      total += weights[i] = std::min(weights[i], distance * distance);
    }
    double left = total * random.Uniform(anchors.size());
    size_t drawn = 0;  // of a positive weight
    for (size_t i = 0; i < objects.size() && left >= 0; ++i) {
      if (weights[i] > 0) drawn = i;
      left -= weights[i];
    }
    anchors.push_back(objects[drawn]);
  }
  return anchors;
}

// Moves each anchor to the mean of the objects that it fits best. Returns the sum of these objects' overlaps before.
double Step(std::span<const BoxSides> objects, std::vector<BoxSides>* anchors) {
  struct Sum {
    double width = 0, height = 0, count = 0;
  };
  std::vector<Sum> sums(anchors->size());
  double overlap = 0;
  for (const BoxSides& object : objects) {
    const Nearest nearest = NearestOf(object, *anchors);
    Sum& sum = sums[nearest.anchor];
    sum = {sum.width + object.width, sum.height + object.height, sum.count + 1};
    overlap += nearest.overlap;
  }
  for (size_t k = 0; k < sums.size(); ++k) {
    if (sums[k].count == 0) continue;
    (*anchors)[k] = {static_cast<float>(sums[k].width / sums[k].count),
                     static_cast<float>(sums[k].height / sums[k].count)};
  }
  return overlap;
}

size_t DifferentOnes(std::span<const BoxSides> objects, size_t enough) {
  std::set<std::pair<float, float>> sizes;
  for (size_t i = 0; i < objects.size() && sizes.size() < enough; ++i) {
    sizes.emplace(objects[i].width, objects[i].height);
  }
  return sizes.size();
}

}  // namespace

ObjectSides SidesOfObjects(const RecordSource& source, const ImageExtent& input, bool keeps_proportions) {
  ObjectSides objects;
  RecordImage record;
  const Resizer resizer{ImageBorder()};
  for (uint64_t i = 0; i < source.count(); ++i) {
    const std::string problem = ReadRecordFields(source.Peek(i), &record);
    if (!problem.empty()) RejectRecord(source, i, problem);
    if (record.annotated.datum.empty()) RefuseAnnotated(source, i, nullptr);
    ImageExtent shown = input;
    if (keeps_proportions && !record.annotated.objects.empty()) {
      const ImageArea place = resizer.PlaceOf(StoredExtent(source, i, record.datum), input);
      shown = {place.height, place.width};
    }
    for (const BoxedObject& object : record.annotated.objects) {
      if (MistakeOf(object)) {
        ++objects.left_out;
        continue;
      }
      const ObjectBox box = Clipped(object.box);
      objects.sides.push_back(
          {box.width() * static_cast<float>(shown.width), box.height() * static_cast<float>(shown.height)});
    }
  }
  return objects;
}

float OverlapOfSides(const BoxSides& a, const BoxSides& b) {
  const float shared = std::min(a.width, b.width) * std::min(a.height, b.height);
  return shared / (a.width * a.height + b.width * b.height - shared);
}

double MeanOverlap(std::span<const BoxSides> objects, std::span<const BoxSides> anchors) {
  double sum = 0;
  for (const BoxSides& object : objects) sum += NearestOf(object, anchors).overlap;
  return sum / static_cast<double>(objects.size());
}

std::vector<BoxSides> FindAnchors(std::span<const BoxSides> objects, int count) {
  const auto wanted = static_cast<size_t>(count);
  const std::vector<BoxSides> some = Some(objects);
  if (const size_t sizes = DifferentOnes(some, wanted); sizes < wanted) {
    throw UserError("the objects have " + FormatCount(sizes) + " different sizes, too few for " +
                    std::to_string(count) + " anchors; ask for fewer");
  }
  std::vector<BoxSides> best;
  double best_overlap = -1;
  for (int start = 0; start < kStarts; ++start) {
    std::vector<BoxSides> anchors = Start(some, wanted, static_cast<uint64_t>(start));
    double last = -1;
    for (int step = 0; step < kMostSteps; ++step) {
      const std::vector<BoxSides> before = anchors;
      const double overlap = Step(some, &anchors);
      if (overlap > best_overlap) {
        best_overlap = overlap;
        best = before;
      }
      if (overlap == last) break;
      last = overlap;
    }
  }
  std::sort(best.begin(), best.end(),
            [](const BoxSides& a, const BoxSides& b) { return a.width * a.height < b.width * b.height; });
  return best;
}

}  // namespace crema
