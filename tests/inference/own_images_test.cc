// What a net for training sees of the images that it names itself, against its own data layer.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "crema/error.h"
#include "crema/files.h"
#include "crema/net.h"
#include "data/data_testing.h"
#include "data/databases/mean_file.h"
#include "data/files/image_list.h"
#include "image/codec.h"
#include "inference/evaluation_data.h"
#include "inference/image_items.h"
#include "inference/image_runner.h"
#include "inference/scoring_net.h"
#include "temporary_folder.h"

namespace crema {
namespace {

using testing::WriteDatums;
using testing::WriteFile;

constexpr int kImages = 5;

// Of pixels that are all different; channels too.
Image Noise(int height, int width, int channels, int seed) {
  Image image;
  image.Resize(height, width, channels);
  uint32_t state = 12345u + 977u * static_cast<uint32_t>(seed);
  for (size_t i = 0; i < image.size(); ++i) {
    state = state * 1664525u + 1013904223u;
    image.pixels[i] = static_cast<uint8_t>(state >> 24);
  }
  return image;
}

Datum Encoded(const Image& image) {
  Datum datum;
  const std::vector<uint8_t> bytes = EncodePng(image);
  datum.set_data(bytes.data(), bytes.size());
  datum.set_encoded(true);
  return datum;
}

// The numbers of `image`, in its order, as planes.
Datum Raw(const Image& image, bool floats) {
  Datum datum;
  datum.set_channels(image.channels);
  datum.set_height(image.height);
  datum.set_width(image.width);
  for (size_t i = 0; floats && i < image.size(); ++i) datum.add_float_data(static_cast<float>(image.pixels[i]) / 3);
  if (!floats) datum.set_data(image.pixels.data(), image.size());
  return datum;
}

struct Seen {
  std::string refused;  // why the net is not
  Shape shape;
  std::vector<float> values;  // of all images
};

class OwnImages : public ::testing::Test {
 protected:
  // Grey images and coloured ones, of one size and of several, the first of which is grey. None is square: of those
  // rand_resize_ratio draws which side becomes longer.
  void SetUp() override {
    const ImageExtent sizes[kImages] = {{20, 24}, {24, 20}, {20, 21}, {31, 22}, {22, 40}};
    std::vector<Datum> mixed, large, raw, grey, planes, floats, coloured;
    std::string mixed_list, list;
    for (int i = 0; i < kImages; ++i) {
      const Image one = Noise(sizes[i].height, sizes[i].width, i == 0 ? 1 : 3, i), same = Noise(20, 24, 3, 10 + i);
      const std::string name = std::to_string(i);
      for (const auto& [file, image] : {std::pair("/m" + name, &one), {"/s" + name, &same}}) {
        const std::vector<uint8_t> bytes = EncodePng(*image);
        WriteFile(folder_.path() + file + ".png", {bytes.begin(), bytes.end()});
      }
      mixed_list += "m" + name + ".png " + name + "\n";
      list += "s" + name + ".png " + name + "\n";
      mixed.push_back(Encoded(one));
      large.push_back(Raw(Noise(sizes[i].height, sizes[i].width, 3, i), false));
      coloured.push_back(Encoded(same));
      grey.push_back(Encoded(Noise(20, 24, 1, i)));
      raw.push_back(Raw(same, false));
      planes.push_back(Raw(Noise(20, 24, 2, i), false));
      floats.push_back(Raw(same, true));
    }
    WriteFile(folder_ / "mixed.txt", mixed_list);
    WriteFile(folder_ / "list.txt", list);
    WriteDatums(folder_ / "mixed", mixed);
    WriteDatums(folder_ / "large", large);
    WriteDatums(folder_ / "coloured", coloured);
    WriteDatums(folder_ / "grey", grey);
    WriteDatums(folder_ / "raw", raw);
    WriteDatums(folder_ / "planes", planes);
    WriteDatums(folder_ / "floats", floats);
    for (const int channels : {1, 3}) {
      MeanImage mean;
      mean.shape = Shape{channels, 20, 24};
      for (int i = 0; i < channels * 20 * 24; ++i) mean.values.push_back(static_cast<float>(i % 97) / 2);
      WriteMean(mean, folder_ / ("mean" + std::to_string(channels)));
    }
  }

  NetFile File(const std::string& source, const std::string& transform) const {
    const bool files = source.find(".txt") != std::string::npos;
    return ParseNet(std::string("layer { name: \"d\" type: \"") + (files ? "ImageData" : "Data") +
                        "\" top: \"data\" top: \"label\" transform_param { " + transform + " } " +
                        (files ? "image_data_param" : "data_param") + " { batch_size: 5 source: " + source +
                        (files ? "" : " backend: LMDB") +
                        " } } layer { name: \"p\" type: \"Power\" bottom: \"data\" top: \"p\" }",
                    path_);
  }

  NetOptions Options() const {
    NetOptions options;
    options.phase = TEST;
    options.backward = false;
    options.outputs = {"p"};
    return options;
  }

  Seen OfLayer(const NetFile& file) const {
    Seen seen;
    try {
      NetOptions options = Options();
      options.needs_data = true;
      Net net(file, options);
      net.Forward();
      const Tensor blob = net.blob("p");
      seen.shape = blob.shape();
      seen.values.assign(blob.f32(), blob.f32() + blob.count());
    } catch (const UserError& error) {
      seen.refused = error.what();
    }
    return seen;
  }

  // As crema evaluate and extract.
  Seen OfRunner(const NetFile& file, int views = 1) const {
    Seen seen;
    try {
      ImageRunOptions options;
      options.net = Options();
      options.threads = 1;
      options.views = views;
      const ScoringNet scoring = MakeScoringNet(file, path_, options.net);
      const std::shared_ptr<const ImageItems> items = OpenEvaluationData("", "", scoring).items();
      ImageRunner runner(scoring, *items, options);
      EXPECT_EQ(runner.note(), "");
      Run(runner, items, &seen);
    } catch (const UserError& error) {
      seen.refused = error.what();
    }
    return seen;
  }

  static void Run(ImageRunner& runner, const std::shared_ptr<const ImageItems>& items, Seen* seen) {
    const Tensor blob = runner.net().blob("p");
    seen->shape = blob.shape();
    runner.Run(items, [&](const ImageBatch& batch) {
      for (const std::string& problem : batch.problems) seen->refused += problem;
      seen->values.assign(blob.f32(), blob.f32() + blob.count());
    });
  }

  // Of two.
  static std::vector<float> FirstViews(const Seen& seen) {
    std::vector<float> values;
    const size_t of_view = seen.values.size() / (2 * kImages);
    for (size_t i = 0; i < seen.values.size(); i += 2 * of_view) {
      values.insert(values.end(), seen.values.begin() + i, seen.values.begin() + i + of_view);
    }
    return values;
  }

  // The blob of image files that are named, of the net whose own they are not.
  Seen OfFiles(const NetFile& file, const std::vector<std::string>& names, ImageRunOptions options, std::string* note) {
    ImageList list;
    list.root = folder_.path() + "/";
    for (const std::string& name : names) list.entries.push_back({.path = name});
    options.net = Options();
    const ScoringNet scoring = MakeScoringNet(file, path_, options.net);
    const auto items = std::make_shared<const ImageFiles>(list, false);
    Seen seen;
    try {
      ImageRunner runner(scoring, *items, options);
      *note = runner.note();
      Run(runner, items, &seen);
    } catch (const UserError& error) {
      seen.refused = error.what();
    }
    return seen;
  }

  const TemporaryFolder folder_;
  // Paths of the net and of the lists are relative to its folder.
  const std::string path_ = folder_ / "net.prototxt";
};

const char* const kSources[] = {R"("mixed.txt")",
                                R"("list.txt")",
                                R"("list.txt" is_color: false)",
                                R"("mixed.txt" new_height: 13 new_width: 15)",
                                R"("mixed")",
                                R"("mixed" force_encoded_color: true)",
                                R"("large")",
                                R"("coloured")",
                                R"("grey")",
                                R"("grey" force_encoded_color: true)",
                                R"("raw")",
                                R"("raw" force_encoded_color: true)",
                                R"("planes")",
                                R"("floats")"};

const char* const kTransforms[] = {
    "",
    "scale: 0.5 mean_value: 9",
    "mean_value: 1 mean_value: 2 mean_value: 3 std_value: 4 std_value: 5 std_value: 6",
    "force_color: true",
    "force_gray: true",
    "crop_size: 12",
    "crop_size: 12 force_color: true",
    "crop_size: 12 force_gray: true",
    "crop_size: 12 pad: 3",
    "crop_size: 22 pad: 3 mean_value: 7",
    "pad: 3",
    "pad: 3 resize_height: 9 resize_width: 8 force_color: true",
    "mean_file: \"mean3\"",
    "mean_file: \"mean1\" scale: 0.1",
    "mean_file: \"mean3\" crop_size: 11",
    "mean_file: \"mean3\" crop_size: 11 resize_height: 20 resize_width: 24 force_color: true",
    "resize_shorter_side: 16",
    "resize_shorter_side: 16 crop_size: 12 force_color: true",
    "resize_height: 14 resize_width: 18 force_color: true",
    "resize_height: 14 resize_width: 18 crop_size: 12 force_gray: true",
    "resize_param { height: 14 width: 18 } force_color: true",
    "resize_param { height: 14 width: 18 resize_mode: FIT_LARGE_SIZE_AND_PAD pad_value: [7, 8, 9] } force_color: true",
    "resize_param { height: 16 width: 18 resize_mode: FIT_LARGE_SIZE_AND_PAD pad_mode: MIRRORED } crop_size: 12 pad: 2",
    "resize_param { height: 16 width: 18 resize_mode: FIT_LARGE_SIZE_AND_PAD pad_mode: REPEAT_NEAREST } pad: 1",
    "random_resized_crop {} crop_size: 12 force_color: true",
    "color_jitter { brightness: 0.4 } fix_crop: true crop_size: 12",
    "multi_scale: true crop_size: 12",
    "mirror_vertical: true max_rotation_angle: 20 random_erasing {} crop_size: 12",
    "rand_augment {} color_jitter { hue: 0.1 } gaussian_blur { probability: 1 } crop_size: 12",
    "trivial_augment {} crop_size: 12",
    "img_rand_resize_lower: 16 img_rand_resize_upper: 16 crop_size: 12 force_color: true",
    "img_rand_resize_lower: 16 img_rand_resize_upper: 16 crop_size: 12 mean_file: \"mean3\"",
    "img_rand_resize_lower: 30 img_rand_resize_upper: 30 rand_resize_ratio_lower: 1.2 rand_resize_ratio_upper: 1.2 "
    "crop_size: 12 allow_upscale: true",
    "vertical_stretch_lower: 0.8 vertical_stretch_upper: 0.8 crop_size: 12 force_color: true",
    "vertical_stretch_lower: 0.8 vertical_stretch_upper: 0.8 horizontal_stretch_lower: 1.3 "
    "horizontal_stretch_upper: 1.3 allow_upscale: true crop_size: 12 pad: 2",
};

TEST_F(OwnImages, AreSeenAsTheirLayerGivesThem) {
  int compared = 0;
  for (const std::string source : kSources) {
    int of_source = 0;
    for (const std::string transform : kTransforms) {
      SCOPED_TRACE("source: " + source + " transform_param { " + transform + " }");
      const NetFile file = File(source, transform);
      const Seen expected = OfLayer(file);
      if (!expected.refused.empty()) continue;
      const Seen seen = OfRunner(file);
      EXPECT_EQ(seen.refused, "");
      EXPECT_EQ(seen.shape, expected.shape);
      EXPECT_TRUE(seen.values == expected.values);
      ++of_source;
      // The mean image has no middle for images of several sizes that are cut out afterwards.
      if (transform.find("img_rand_resize") != std::string::npos && transform.find("mean") != std::string::npos)
        continue;
      const Seen views = OfRunner(file, 2);
      EXPECT_EQ(views.refused, "");
      EXPECT_TRUE(FirstViews(views) == expected.values);
    }
    EXPECT_GE(of_source, 8) << source;
    compared += of_source;
  }
  EXPECT_GE(compared, 250);
}

TEST_F(OwnImages, GetTheMiddleOfRandomSizes) {
  const Seen middle = OfLayer(File(R"("large")", R"(img_rand_resize_lower: 16 img_rand_resize_upper: 16
    rand_resize_ratio_lower: 1.2 rand_resize_ratio_upper: 1.2 vertical_stretch_lower: 0.9 vertical_stretch_upper: 0.9
    horizontal_stretch_lower: 1.1 horizontal_stretch_upper: 1.1 allow_upscale: true crop_size: 12)"));
  const Seen seen = OfRunner(File(R"("large")", R"(img_rand_resize_lower: 14 img_rand_resize_upper: 18
    rand_resize_ratio_lower: 1 rand_resize_ratio_upper: 1.4 vertical_stretch_lower: 0.8 vertical_stretch_upper: 1
    horizontal_stretch_lower: 1 horizontal_stretch_upper: 1.2 allow_upscale: true crop_size: 12 mirror: true)"));
  EXPECT_EQ(middle.refused, "");
  EXPECT_EQ(seen.refused, "");
  EXPECT_TRUE(seen.values == middle.values);
}

// Files of any size go into a net whose own images say how large its input is, and in how many colours.
TEST_F(OwnImages, SayWhatOtherFilesBecome) {
  std::string note;
  const std::vector<std::string> named = {"m0.png", "m3.png"};  // the first is grey
  struct Case {
    const char *source, *transform;
    Shape input;
  };
  for (const Case& one : {Case{R"("list.txt")", "", {2, 3, 20, 24}},
                          {R"("list.txt" is_color: false)", "resize_height: 10 resize_width: 12", {2, 1, 10, 12}},
                          {R"("list.txt")", "pad: 2", {2, 3, 24, 28}},
                          {R"("coloured")", "force_gray: true", {2, 1, 20, 24}},
                          {R"("raw")", "force_gray: true", {2, 3, 20, 24}},
                          {R"("raw")", "mean_file: \"mean3\"", {2, 3, 20, 24}},
                          {R"("absent.txt")", "mean_file: \"mean3\"", {2, 3, 20, 24}},
                          {R"("absent.txt")", "resize_height: 9 resize_width: 8 pad: 1", {2, 3, 11, 10}},
                          {R"("mixed" force_encoded_color: true)", "crop_size: 12", {2, 3, 12, 12}},
                          {R"("raw")",
                           "vertical_stretch_lower: 1 vertical_stretch_upper: 1.4 allow_upscale: true crop_size: 12",
                           {2, 3, 12, 12}}}) {
    SCOPED_TRACE(std::string("source: ") + one.source + " transform_param { " + one.transform + " }");
    const Seen seen = OfFiles(File(one.source, one.transform), named, {}, &note);
    EXPECT_EQ(seen.refused, "");
    EXPECT_EQ(seen.shape, one.input);
  }
}

TEST_F(OwnImages, AreCutAsTheyAreAndOtherFilesResizedWhichIsSaid) {
  const std::vector<std::string> named = {"s0.png", "s1.png", "s2.png", "s3.png", "s4.png"};
  std::string note;
  for (const std::string source : {R"("list.txt")", R"("coloured")"}) {
    const NetFile file = File(source, "crop_size: 12");
    const Seen expected = OfLayer(file);
    ASSERT_EQ(expected.refused, "");
    ImageRunOptions options;
    EXPECT_FALSE(OfFiles(file, named, options, &note).values == expected.values);
    EXPECT_NE(note.find("resized until that side has 12"), std::string::npos) << note;
    EXPECT_NE(note.find("give --shorter_side=20"), std::string::npos) << note;
    options.transform.set_resize_shorter_side(20);
    EXPECT_TRUE(OfFiles(file, named, options, &note).values == expected.values);
    EXPECT_EQ(note, "");
  }
  OfFiles(File(R"("absent.txt")", "crop_size: 12"), named, {}, &note);
  EXPECT_NE(note.find("give --shorter_side=N"), std::string::npos) << note;
  OfFiles(File(R"("list.txt")", "crop_size: 20"), named, {}, &note);
  EXPECT_EQ(note, "");
  // Of nets that segment, too.
  for (const std::string type : {"DenseImageData", "ImageSegData"}) {
    const NetFile file = ParseNet("layer { name: \"d\" type: \"" + type +
                                      "\" top: \"data\" top: \"label\" transform_param { crop_size: 12 } } "
                                      "layer { name: \"p\" type: \"Power\" bottom: \"data\" top: \"p\" }",
                                  path_);
    EXPECT_EQ(OfFiles(file, named, {}, &note).refused, "");
    EXPECT_NE(note.find("give --shorter_side=N"), std::string::npos) << note;
  }
}

TEST_F(OwnImages, AreNotNeededWhereOthersAreNamed) {
  WriteFile(folder_ / "empty.txt", "");
  WriteFile(folder_ / "other.txt", "s0.png 1.5 2\n");
  std::string note;
  for (const std::string source : {R"("empty.txt")", R"("other.txt")"}) {
    const Seen seen = OfFiles(File(source, ""), {"s0.png"}, {}, &note);
    EXPECT_EQ(seen.refused, "");
    EXPECT_EQ(seen.shape, (Shape{1, 3, 20, 24}));
  }
}

TEST_F(OwnImages, PadLeavesRoomForAnImage) {
  std::string note;
  const NetFile deploy = ParseNet(
      R"(layer { name: "d" type: "Input" top: "data" input_param { shape { dim: 1 dim: 3 dim: 8 dim: 8 } }
           transform_param { pad: 4 } } layer { name: "p" type: "Power" bottom: "data" top: "p" })",
      path_);
  const Seen seen = OfFiles(deploy, {"s0.png"}, {}, &note);
  EXPECT_NE(seen.refused.find("pad is 4, and the net's input, 3x8x8"), std::string::npos) << seen.refused;
}

}  // namespace
}  // namespace crema
