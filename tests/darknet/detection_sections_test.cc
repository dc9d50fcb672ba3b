// [yolo] and [region], compared with Darknet's formulas as plain loops.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "darknet/made_net.h"

namespace crema::darknet {
namespace {

double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

struct Object {
  int label;
  double score, xmin, ymin, xmax, ymax;
};

struct Cells {
  std::vector<float> anchors;  // of this grid
  int64_t classes;
  double unit_width, unit_height;  // what anchors are counted in, by the image
  bool softmax;
  double scale = 1;         // scale_x_y
  bool new_coords = false;  // predictions are behind the logistic
};

// Objects of one grid with a score above `least`.
void Decode(const Image& predictions, const Cells& cells, double least, std::vector<Object>* objects) {
  const auto anchors = static_cast<int64_t>(cells.anchors.size() / 2);
  for (int64_t n = 0; n < anchors; ++n) {
    for (int64_t row = 0; row < predictions.height; ++row) {
      for (int64_t column = 0; column < predictions.width; ++column) {
        const auto t = [&](int64_t i) { return predictions.at(n * (5 + cells.classes) + i, row, column); };
        double sum = 0;
        for (int64_t c = 0; c < cells.classes; ++c) sum += std::exp(t(5 + c));
        const auto share = [&](int64_t i) { return cells.new_coords ? t(i) : Sigmoid(t(i)); };
        const auto centre = [&](int64_t i) { return cells.scale * share(i) - 0.5 * (cells.scale - 1); };
        const auto side = [&](int64_t i) { return cells.new_coords ? t(i) * t(i) * 4 : std::exp(t(i)); };
        const double x = (static_cast<double>(column) + centre(0)) / static_cast<double>(predictions.width),
                     y = (static_cast<double>(row) + centre(1)) / static_cast<double>(predictions.height),
                     w = side(2) * cells.anchors[static_cast<size_t>(2 * n)] / cells.unit_width,
                     h = side(3) * cells.anchors[static_cast<size_t>(2 * n + 1)] / cells.unit_height;
        for (int c = 0; c < cells.classes; ++c) {
          const double score = share(4) * (cells.softmax ? std::exp(t(5 + c)) / sum : share(5 + c));
          if (score > least) objects->push_back({c + 1, score, x - w / 2, y - h / 2, x + w / 2, y + h / 2});
        }
      }
    }
  }
}

double Overlap(const Object& a, const Object& b) {
  const double width = std::min(a.xmax, b.xmax) - std::max(a.xmin, b.xmin),
               height = std::min(a.ymax, b.ymax) - std::max(a.ymin, b.ymin);
  if (width <= 0 || height <= 0) return 0;
  const auto area = [](const Object& o) { return (o.xmax - o.xmin) * (o.ymax - o.ymin); };
  return width * height / (area(a) + area(b) - width * height);
}

// Without those that a better one of their class covers, and no more than `room`; class by class.
std::vector<Object> Best(std::vector<Object> objects, size_t room) {
  std::sort(objects.begin(), objects.end(), [](const Object& a, const Object& b) { return a.score > b.score; });
  std::vector<Object> kept;
  for (const Object& object : objects) {
    const auto leaves = [&](const Object& k) { return k.label != object.label || Overlap(k, object) <= 0.45; };
    if (kept.size() < room && std::all_of(kept.begin(), kept.end(), leaves)) kept.push_back(object);
  }
  std::stable_sort(kept.begin(), kept.end(), [](const Object& a, const Object& b) { return a.label < b.label; });
  return kept;
}

void ExpectObjects(const std::vector<float>& rows, const std::vector<Object>& found) {
  const std::vector<Object> wanted = Best(found, rows.size() / 7);
  ASSERT_GT(wanted.size(), 3u);
  for (size_t i = 0; i < wanted.size(); ++i) {
    const float* row = rows.data() + 7 * i;
    const Object& object = wanted[i];
    EXPECT_EQ(row[0], 0);
    EXPECT_EQ(row[1], static_cast<float>(object.label)) << i;
    const double numbers[] = {object.score, object.xmin, object.ymin, object.xmax, object.ymax};
    for (int k = 0; k < 5; ++k) EXPECT_NEAR(row[2 + k], numbers[k], 1e-4) << i;
  }
  if (rows.size() > wanted.size() * 7) {
    EXPECT_EQ(rows[wanted.size() * 7], -1);
  }
}

const char kYolo[] = "classes=2\nnum=3\nanchors = 3,2,  4,4,  1.5,6\n";

// Two grids: of a quarter of the image's pixels, and of all, with numbers twice as large.
TEST(YoloSection, FindsTheObjectsOfAllGrids) {
  const Image image = RandomImage(5, 14, 4, 6);
  Image pooled(14, 2, 3);
  for (int64_t c = 0; c < 14; ++c) {
    for (int64_t y = 0; y < 2; ++y) {
      for (int64_t x = 0; x < 3; ++x) {
        pooled.at(c, y, x) = std::max({image.at(c, 2 * y, 2 * x), image.at(c, 2 * y + 1, 2 * x),
                                       image.at(c, 2 * y, 2 * x + 1), image.at(c, 2 * y + 1, 2 * x + 1)});
      }
    }
  }
  const std::string cfg = NetSection(14, 4, 6) + CopySection(14) + "[maxpool]\nsize=2\nstride=2\n[yolo]\nmask = 1,2\n" +
                          kYolo + "[route]\nlayers=0\n[shortcut]\nfrom=0\n[yolo]\nmask=2,0\n" + kYolo;
  const ImportedNet imported = MadeNet(cfg, CopyWeights(14)).Import();
  Image twice = image;
  for (float& value : twice.values) value *= 2;
  std::vector<Object> objects;
  Decode(pooled, {{4, 4, 1.5F, 6}, 2, 6, 4, false}, 0.01, &objects);
  Decode(twice, {{1.5F, 6, 3, 2}, 2, 6, 4, false}, 0.01, &objects);
  ExpectObjects(Outputs(imported, image.values), objects);

  const LayerParameter& layer = *imported.net.layer().rbegin();
  EXPECT_EQ(layer.name() + " " + layer.type(), "detection_out Yolov3DetectionOutput");
  EXPECT_EQ(layer.yolov3_detection_output_param().anchors_scale(0), 2u);
  EXPECT_EQ(layer.yolov3_detection_output_param().anchors_scale(1), 1u);
}

TEST(YoloSection, HasAllAnchorsWithoutAMask) {
  const Image image = RandomImage(6, 21, 3, 3);
  const std::string cfg = NetSection(21, 3, 3) + CopySection(21) + "[yolo]\n" + kYolo;
  std::vector<Object> objects;
  Decode(image, {{3, 2, 4, 4, 1.5F, 6}, 2, 3, 3, false}, 0.01, &objects);
  ExpectObjects(Outputs(MadeNet(cfg, CopyWeights(21)).Import(), image.values), objects);
}

// As YOLOv4 has it.
TEST(YoloSection, StretchesCentresInEachGrid) {
  const Image image = RandomImage(9, 7, 4, 4);
  Image twice = image;
  for (float& value : twice.values) value *= 2;
  const std::string one = "classes=2\nnum=1\nanchors=2,1\n";
  const std::string cfg = NetSection(7, 4, 4) + CopySection(7) + "[yolo]\nscale_x_y = 1.2\n" + one +
                          "[route]\nlayers=0\n[shortcut]\nfrom=0\n[yolo]\n" + one;
  std::vector<Object> objects;
  Decode(image, {{2, 1}, 2, 4, 4, false, 1.2}, 0.01, &objects);
  Decode(twice, {{2, 1}, 2, 4, 4, false}, 0.01, &objects);
  const ImportedNet imported = MadeNet(cfg, CopyWeights(7)).Import();
  ExpectObjects(Outputs(imported, image.values), objects);
  const Yolov3DetectionOutputParameter& param = imported.net.layer().rbegin()->yolov3_detection_output_param();
  ASSERT_EQ(param.scale_x_y_size(), 2);
  EXPECT_FLOAT_EQ(param.scale_x_y(0), 1.2F);
  EXPECT_FLOAT_EQ(param.scale_x_y(1), 1);
}

std::string Logistic(int64_t channels) {
  return "[convolutional]\nfilters=" + std::to_string(channels) + "\nactivation=logistic\n";
}

// As Scaled-YOLOv4 has it, whose convolutions end in the logistic.
TEST(YoloSection, HasSquaresOfSides) {
  const Image image = RandomImage(10, 14, 3, 3);
  Image shares = image;
  for (float& value : shares.values) value = static_cast<float>(Sigmoid(value));
  const std::string cfg = NetSection(14, 3, 3) + Logistic(14) +
                          "[yolo]\nclasses=2\nnum=2\nanchors=1,2, 1.5,0.5\nscale_x_y=2.0\nnew_coords=1\n";
  std::vector<Object> objects;
  Decode(shares, {{1, 2, 1.5F, 0.5F}, 2, 3, 3, false, 2, true}, 0.01, &objects);
  const ImportedNet imported = MadeNet(cfg, CopyWeights(14)).Import();
  ExpectObjects(Outputs(imported, image.values), objects);
  for (const LayerParameter& layer : imported.net.layer()) EXPECT_NE(layer.type(), "Sigmoid");
  // Without new_coords the logistic stays, and another one follows.
  const std::string plain = NetSection(14, 3, 3) + Logistic(14) + "[yolo]\nclasses=2\nnum=2\nanchors=1,2, 1.5,0.5\n";
  objects.clear();
  Decode(shares, {{1, 2, 1.5F, 0.5F}, 2, 3, 3, false}, 0.01, &objects);
  ExpectObjects(Outputs(MadeNet(plain, CopyWeights(14)).Import(), image.values), objects);
}

TEST(RegionSection, FindsObjectsWithASoftmax) {
  const Image image = RandomImage(8, 16, 4, 3);
  const std::string cfg = NetSection(16, 4, 3) + CopySection(16) +
                          "[region]\nanchors = 0.9,1.2, 2,0.7\nbias_match=1\nclasses=3\ncoords=4\nnum=2\nsoftmax=1\n"
                          "jitter=.2\nrescore=1\nobject_scale=5\nthresh=.6\nrandom=0\n";
  const ImportedNet imported = MadeNet(cfg, CopyWeights(16)).Import();
  std::vector<Object> objects;
  Decode(image, {{0.9F, 1.2F, 2, 0.7F}, 3, 3, 4, true}, 0.01, &objects);
  ExpectObjects(Outputs(imported, image.values), objects);
  EXPECT_EQ(imported.net.layer().rbegin()->type(), "YoloDetectionOutput");
  EXPECT_TRUE(imported.notes.empty());
}

std::string ErrorOf(int64_t channels, const std::string& lines) {
  return MadeNet(NetSection(channels, 4, 4) + CopySection(channels) + lines, CopyWeights(channels)).Error();
}

void ExpectError(int64_t channels, const std::string& lines, const std::string& part) {
  const std::string error = ErrorOf(channels, lines);
  EXPECT_NE(error.find(part), std::string::npos) << part << "\n" << error;
}

TEST(YoloSection, RefusesWhatDoesNotFit) {
  const std::string yolo = std::string("[yolo]\n") + kYolo;
  ExpectError(14, yolo + "mask=0,1,2\n",
              "net.cfg:8: error: [yolo]: reads 14 channels, but 3 anchors and 2 classes want 21: correct filters");
  ExpectError(14, yolo + "mask=0,3\n", "net.cfg:12: error: mask names anchor 3; those of num=3 are 0 to 2");
  ExpectError(14, "[yolo]\nclasses=2\nnum=3\nanchors=1,2,3\n", "width and height of each of num=3 anchors, but are 3");
  ExpectError(14, yolo + "mask=0,1\n[convolutional]\nfilters=1\n",
              "[convolutional]: reads section 1, [yolo] in line 8, which makes nothing that another one can read");
  ExpectError(
      14, yolo + "mask=0,1\n[route]\nlayers=0\n[yolo]\nclasses=2\nnum=3\nanchors=1,2,3,4,5,6\nmask=0,1\n",
      "[yolo]: its classes, anchors, number of masks and new_coords must be those of the first [yolo], in line 8");
  ExpectError(14, "[convolutional]\nfilters=14\nsize=2\n" + yolo + "mask=0,1\n",
              "its 3 x 3 cells do not divide the net's input, 4 x 4");
  ExpectError(14, yolo + "mask=0,1\nscale_x_y=0.9\n", "scale_x_y must be 1 or more");
  ExpectError(14, yolo + "mask=0,1\nnew_coords=1\n",
              "[yolo]: new_coords=1 wants activation=logistic in a [convolutional] before it");
  ExpectError(14, "[maxpool]\n" + yolo + "mask=0,1\nnew_coords=1\n", "new_coords=1 wants activation=logistic");
  ExpectError(14, Logistic(14) + yolo + "mask=0,1\nnew_coords=1\n[route]\nlayers=1\n",
              "[route]: reads section 1, but only the [yolo] with new_coords=1 behind that may");
  ExpectError(14, Logistic(14) + yolo + "mask=0,1\nnew_coords=1\n[route]\nlayers=0\n" + yolo + "mask=0,1\n",
              "its classes, anchors, number of masks and new_coords must be those of the first [yolo]");
  ExpectError(14, yolo + "mask=x\n", "mask=x: expected whole numbers with commas between them");
}

TEST(YoloSection, NotesAnotherSuppression) {
  const std::string cfg =
      NetSection(7, 2, 2) + CopySection(7) + "[yolo]\nclasses=2\nnum=1\nanchors=1,1\nnms_kind=diounms\n";
  const ImportedNet imported = MadeNet(cfg, CopyWeights(7)).Import();
  ASSERT_EQ(imported.notes.size(), 1u);
  EXPECT_NE(imported.notes[0].ToString().find("net.cfg:12: note: nms_kind=diounms: "), std::string::npos)
      << imported.notes[0].ToString();
}

TEST(RegionSection, RefusesWhatDoesNotFit) {
  const std::string region = "[region]\nanchors=1,1\nclasses=2\nnum=1\n";
  ExpectError(7, region, "net.cfg:8: error: only softmax=1 is possible");
  for (const char* line : {"coords=5", "background=1", "tree=a.tree", "classfix=-1"}) {
    ExpectError(7, region + "softmax=1\n" + line + "\n", "is not possible");
  }
  ExpectError(7, region + "softmax=1\n[route]\nlayers=0\n" + region + "softmax=1\n",
              "[region] must be the only section that finds objects");
}

}  // namespace
}  // namespace crema::darknet
