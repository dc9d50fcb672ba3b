// Windows of images: ReadWindowFile, WindowLoader and the layer WindowData.
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "crema/files.h"
#include "data/data_testing.h"
#include "data/databases/mean_file.h"
#include "data/image_testing.h"
#include "data/loaders/prefetcher.h"
#include "data/loaders/window_loader.h"
#include "data/real_layers.h"
#include "data/source_driver.h"
#include "distributed/training/data_fingerprint.h"
#include "source_folder.h"

namespace crema {
namespace {

using testing::ExpectThrows;
using testing::Photograph;
using testing::SourceDriver;

constexpr int kImages = 4, kHeight = 30, kWidth = 40;

class WindowDataTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directory(folder_ / "images");
    for (int i = 0; i < kImages; ++i) {
      testing::WriteFile(ImagePath(i), testing::Png(Photograph(kHeight, kWidth, 3, static_cast<uint64_t>(i))));
    }
  }

  std::string ImagePath(int i) const { return folder_ / ("images/" + std::to_string(i) + ".png"); }

  // Image i has objects of class 2 i + 1 (10 x 10 pixels) and 2 i + 2 (8 x 12), one window that is neither, and three
  // of the background.
  void WriteWindows(const std::string& more = "") const {
    std::string text;
    for (int i = 0; i < kImages; ++i) {
      const std::string n = std::to_string(i);
      text += "# " + n + "\n" + n + ".png\n3\n30\n40\n6\n";
      text += std::to_string(2 * i + 1) + " 1.000 " + n + " 5 " + std::to_string(i + 9) + " 14\n";
      text += std::to_string(2 * i + 2) + " 0.5 20 " + n + " 31 " + std::to_string(i + 7) + "\n";
      text += "7 0.4 1 2 3 4\n9 0.299 0 0 9 9\n0 0 30 20 39 29\n3 0.1 10 10 19 19\n";
    }
    testing::WriteFile(folder_ / "windows.txt", text + more);
  }

  std::string Layer(const std::string& fields = "", const std::string& transform = "crop_size: 10") const {
    return "top: \"data\" top: \"label\" window_data_param { source: \"" + folder_ / "windows.txt" +
           "\" root_folder: \"" + folder_ / "images" + "\" batch_size: 8 bg_threshold: 0.3 " + fields +
           " } transform_param { " + transform + " }";
  }

  static SourceDriver Driver(const std::string& text, Phase phase = TRAIN) {
    return SourceDriver("WindowData", text, phase);
  }

  TemporaryFolder folder_;
};

TEST_F(WindowDataTest, BackgroundComesFirstThenObjects) {
  WriteWindows();
  SourceDriver driver = Driver(Layer("fg_fraction: 0.3"));  // 2.4 objects: 2
  EXPECT_EQ(driver.setup().top_specs()[0].shape, (Shape{8, 3, 10, 10}));
  EXPECT_EQ(driver.setup().top_specs()[1].shape, (Shape{8}));
  EXPECT_TRUE(driver.setup().is_source());
  EXPECT_TRUE(driver.setup().warnings().empty());
  std::set<float> classes;
  for (int pass = 0; pass < 40; ++pass) {
    driver.Forward();
    for (int i = 0; i < 8; ++i) {
      const float label = driver.value(1)[i];
      EXPECT_EQ(label == 0, i < 6) << i;
      classes.insert(label);
    }
  }
  EXPECT_EQ(classes, (std::set<float>{0, 1, 2, 3, 4, 5, 6, 7, 8}));
}

// A window as large as the crop is cut out as it is.
TEST_F(WindowDataTest, WindowsAreThePixelsOfTheirImages) {
  WriteWindows();
  SourceDriver driver = Driver(Layer("fg_fraction: 1", "crop_size: 10 mean_value: [10, 20, 30] scale: 0.5"));
  int seen = 0;
  for (int pass = 0; pass < 10; ++pass) {
    driver.Forward();
    for (int item = 0; item < 8; ++item) {
      const int label = static_cast<int>(driver.value(1)[item]);
      const std::string place = driver.layer().DescribeItem(item);
      const int image_number = (label - 1) / 2, line = 12 * image_number + (label % 2 ? 7 : 8);
      EXPECT_EQ(place, "the window of " + folder_ / "windows.txt" + ":" + std::to_string(line));
      if (label % 2 == 0) continue;
      const Image image = Photograph(kHeight, kWidth, 3, static_cast<uint64_t>(image_number));
      for (int c = 0; c < 3; ++c) {
        for (int y = 0; y < 10; ++y) {
          for (int x = 0; x < 10; ++x) {
            const float pixel = image.row(5 + y)[(image_number + x) * 3 + c];
            ASSERT_EQ(driver.value(0)[((item * 3 + c) * 10 + y) * 10 + x],
                      (pixel - static_cast<float>(10 * (c + 1))) * 0.5f);
          }
        }
      }
      ++seen;
    }
  }
  EXPECT_GT(seen, 20);
}

TEST_F(WindowDataTest, IsAFunctionOfSeedAndPosition) {
  WriteWindows();
  const std::string text = Layer("context_pad: 2", "crop_size: 10 mirror: true");
  SourceDriver whole = Driver(text),
               cached = Driver(Layer("context_pad: 2 cache_images: true", "crop_size: 10 mirror: true"));
  std::vector<std::vector<float>> data, labels;
  for (int k = 0; k < 12; ++k) {
    whole.Forward();
    data.push_back(whole.value(0));
    labels.push_back(whole.value(1));
    cached.Forward();
    EXPECT_EQ(cached.value(0), data.back());
  }
  EXPECT_NE(data[0], data[1]);
  SourceDriver other_seed = Driver(text);
  other_seed.Forward(false, 2);
  EXPECT_NE(other_seed.value(0), data[0]);
  SourceDriver resumed = Driver(text, TEST);
  resumed.layer().set_position(5 * 8);
  resumed.Forward();
  EXPECT_EQ(resumed.value(0), data[5]);
  EXPECT_EQ(resumed.layer().next_batch(), 6u);
  resumed.Forward(true);
  EXPECT_EQ(resumed.value(0), data[5]);
  // As one of three workers.
  SourceDriver worker = Driver(text);
  worker.layer().ReadBatches({1, 1, 3});
  for (int k = 1; k < 12; k += 3) {
    worker.Forward();
    EXPECT_EQ(worker.value(0), data[k]);
    EXPECT_EQ(worker.value(1), labels[k]);
  }
}

TEST_F(WindowDataTest, ResultsDoNotDependOnThreads) {
  WriteWindows();
  const auto file =
      std::make_shared<const WindowFile>(ReadWindowFile(folder_ / "windows.txt", folder_ / "images", 0.5f, 0.5f));
  WindowForm form;
  form.crop = 12;
  form.context_pad = 3;
  form.square = form.mirror = true;
  SampleOrder order;
  order.seed = 5;
  const auto loader = std::make_shared<WindowLoader>(file, form, order, 6, 3, true);
  Prefetcher one(loader, {.batch = 6, .ahead = 2, .threads = 1}), many(loader, {.batch = 6, .ahead = 3, .threads = 5});
  for (int k = 0; k < 10; ++k) {
    const Batch &expected = one.Next(), &got = many.Next();
    for (int64_t i = 0; i < 6 * 3 * 12 * 12; ++i) ASSERT_EQ(got.data[i], expected.data[i]);
    for (int64_t i = 0; i < 6; ++i) ASSERT_EQ(got.labels[i], expected.labels[i]);
  }
}

// Another program's numbers: Caffe's formulas in 32-bit floats.
TEST(WindowPlaces, AreCaffes) {
  struct Case {
    int x1, y1, x2, y2, width, height, crop, pad;
    bool square, mirrored;
    ImageArea seen;
    int top, left, tall, wide;
  };
  const Case cases[] = {
      {100, 50, 180, 120, 500, 353, 227, 16, false, false, {44, 93, 84, 96}, 0, 0, 227, 227},
      {0, 0, 99, 49, 500, 353, 227, 16, false, false, {0, 0, 55, 109}, 15, 16, 212, 211},
      {400, 300, 499, 352, 500, 353, 227, 16, false, false, {296, 392, 57, 108}, 0, 0, 209, 210},
      {400, 300, 499, 352, 500, 353, 227, 16, false, true, {296, 392, 57, 108}, 0, 17, 209, 210},
      {10, 200, 29, 349, 500, 353, 227, 0, true, false, {200, 0, 151, 96}, 0, 83, 227, 144},
      {10, 200, 29, 349, 500, 353, 227, 0, true, true, {200, 0, 151, 96}, 0, 0, 227, 144},
      {3, 4, 3, 4, 20, 20, 8, 3, true, false, {3, 2, 5, 5}, 0, 0, 8, 8},
      {0, 0, 499, 352, 500, 353, 227, 16, false, true, {0, 0, 353, 500}, 16, 16, 194, 195},
      {0, 0, 499, 9, 500, 353, 32, 15, true, false, {0, 0, 353, 500}, 16, 15, 1, 2},
      {-90, 10, -5, 40, 500, 353, 227, 16, false, false, {7, 0, 38, 4}, 0, 218, 227, 9},
      {5, 5, 9, 9, 16, 12, 7, 0, true, false, {5, 5, 6, 6}, 0, 0, 7, 7},
      {4, 6, 15, 11, 16, 12, 7, 0, false, true, {6, 4, 6, 12}, 0, 0, 7, 7},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(std::to_string(one.x1) + " " + std::to_string(one.y1) + " crop " + std::to_string(one.crop));
    WindowForm form;
    form.crop = one.crop;
    form.context_pad = one.pad;
    form.square = one.square;
    const auto place =
        WindowPlaceOf({0, 1, 1, one.x1, one.y1, one.x2, one.y2}, one.height, one.width, form, one.mirrored);
    ASSERT_TRUE(place.has_value());
    EXPECT_TRUE(place->seen == one.seen) << place->seen.top << " " << place->seen.left << " " << place->seen.height
                                         << " " << place->seen.width;
    EXPECT_EQ(place->top, one.top);
    EXPECT_EQ(place->left, one.left);
    EXPECT_EQ(place->height, one.tall);
    EXPECT_EQ(place->width, one.wide);
  }
  WindowForm form;
  form.crop = 227;
  EXPECT_FALSE(WindowPlaceOf({0, 1, 1, 400, 300, 500, 352}, 353, 500, form, false)) << "one pixel too far";
  form.context_pad = 16;
  EXPECT_TRUE(WindowPlaceOf({0, 1, 1, 400, 300, 500, 352}, 353, 500, form, false));
  EXPECT_FALSE(WindowPlaceOf({0, 1, 1, -300, 10, -250, 40}, 353, 500, form, false)) << "nothing of the image";
}

// Of what lies outside of the image the net sees 0; mirrored, too.
TEST_F(WindowDataTest, OutsideIsTheMean) {
  testing::WriteFile(folder_ / "windows.txt", "# 0\n0.png\n3\n30\n40\n2\n1 1 0 10 7 17\n0 0 0 10 7 17\n");
  SourceDriver driver = Driver(Layer("context_pad: 4 fg_fraction: 0.5", "crop_size: 16 mirror: true mean_value: 500"));
  // 8 x 8 pixels with 4 on each side: x from -4 to 12, so 13 of 17 columns are seen, resized to 12 of 16.
  int seen[2] = {};
  for (int pass = 0; pass < 4; ++pass) {
    driver.Forward();
    for (int item = 0; item < 8; ++item) {
      const float* row = driver.value(0).data() + item * 3 * 256 + 16 * 7;
      const bool mirrored = row[0] != 0;
      ++seen[mirrored];
      for (int x = 0; x < 16; ++x) EXPECT_EQ(row[x] == 0, mirrored ? x >= 12 : x < 4) << x;
    }
  }
  EXPECT_GT(seen[0], 5);
  EXPECT_GT(seen[1], 5);
}

TEST_F(WindowDataTest, TheCentreOfAMeanImageIsSubtracted) {
  WriteWindows();
  MeanImage mean{Shape{3, 14, 15}, {}};
  for (int i = 0; i < 3 * 14 * 15; ++i) mean.values.push_back(static_cast<float>(i));
  WriteMean(mean, folder_ / "mean.binaryproto");
  const std::string with = "crop_size: 10 mirror: true scale: 2 mean_file: \"" + folder_ / "mean.binaryproto" + "\"";
  SourceDriver plain = Driver(Layer("", "crop_size: 10 mirror: true")), subtracted = Driver(Layer("", with));
  plain.Forward();
  subtracted.Forward();
  // (15 - 10) / 2 = 2, in both directions, however the window lies.
  for (int item = 0; item < 8; ++item) {
    for (int c = 0; c < 3; ++c) {
      for (int y = 0; y < 10; ++y) {
        for (int x = 0; x < 10; ++x) {
          const size_t at = static_cast<size_t>(((item * 3 + c) * 10 + y) * 10 + x);
          const float mean_value = static_cast<float>((c * 14 + 2 + y) * 15 + 2 + x);
          ASSERT_EQ(subtracted.value(0)[at], 2 * (plain.value(0)[at] - mean_value));
        }
      }
    }
  }
  // With what lies outside.
  SourceDriver outside = Driver(Layer("context_pad: 4", with));
  outside.Forward();
  const auto& values = outside.value(0);
  EXPECT_GT(std::count(values.begin(), values.end(), 0.0f), 100);
  WriteMean({Shape{3, 11, 15}, std::vector<float>(3 * 11 * 15)}, folder_ / "mean.binaryproto");
  ExpectThrows<UserError>([&] { Driver(Layer("", with)); },
                          {"net.prototxt:transform_param.mean_file", "3x11x15", "over crop_size 10 from its centre"});
  std::filesystem::remove(folder_ / "mean.binaryproto");
  ExpectThrows<UserError>([&] { Driver(Layer("", with)); }, {"transform_param.mean_file", "does not exist"});
}

TEST_F(WindowDataTest, CachedImagesAreReadOnce) {
  WriteWindows();
  SourceDriver cached = Driver(Layer("cache_images: true")), plain = Driver(Layer());
  for (int pass = 0; pass < 20; ++pass) cached.Forward();
  std::filesystem::remove_all(folder_ / "images");
  for (int pass = 0; pass < 20; ++pass) cached.Forward();
  // The window file stands in the message, with the line of the image.
  ExpectThrows<UserError>(
      [&] { plain.Forward(); },
      {"net.prototxt:window_data_param.source: ", "layer \"in\" (WindowData): " + folder_ / "windows.txt:",
       folder_ / "images/", ".png\" does not exist; correct the list, or root_folder"});
}

TEST_F(WindowDataTest, ImagesThatDoNotFitAreNamed) {
  WriteWindows();
  for (int i = 0; i < kImages; ++i) testing::WriteFile(ImagePath(i), testing::Png(Photograph(20, 25)));
  SourceDriver small = Driver(Layer("fg_fraction: 0"));
  ExpectThrows<UserError>(
      [&] {
        for (int pass = 0; pass < 20; ++pass) small.Forward();
      },
      {folder_ / "windows.txt:", "the window 30 20 39 29 does not lie within image", "25 pixels wide and 20 high"});
  for (int i = 0; i < kImages; ++i) testing::WriteFile(ImagePath(i), "GIF89a");
  SourceDriver broken = Driver(Layer());
  ExpectThrows<UserError>([&] { broken.Forward(); },
                          {"layer \"in\" (WindowData): " + folder_ / "windows.txt:", ".png\" is a GIF image"});
}

TEST_F(WindowDataTest, GreyImagesAreDecodedInColour) {
  for (int i = 0; i < kImages; ++i) testing::WriteFile(ImagePath(i), testing::Png(Photograph(kHeight, kWidth, 1)));
  WriteWindows();
  SourceDriver driver = Driver(Layer());
  driver.Forward();
  EXPECT_EQ(driver.value(0)[5], driver.value(0)[105]);
}

TEST_F(WindowDataTest, MistakesInTheFileHaveTheirLines) {
  const auto expect = [&](const std::string& text, const std::vector<std::string>& parts) {
    SCOPED_TRACE(text);
    testing::WriteFile(folder_ / "windows.txt", text);
    ExpectThrows<UserError>([&] { Driver(Layer()); }, parts);
  };
  const auto line = [&](int number) { return folder_ / "windows.txt:" + std::to_string(number) + ": error: "; };
  const std::string good = "# 0\n0.png\n3\n30\n40\n1\n1 1 0 0 9 9\n";
  expect("0.png\n", {line(1) + "expected # and the number of the next image, got \"0.png\""});
  expect("# one\n", {line(1) + "expected the number of an image, behind #, got \"one\""});
  expect("# 1\n", {line(1) + "image 1 stands where image 0 is due"});
  expect(good + good, {line(8) + "image 0 stands where image 1 is due; number the images from 0"});
  expect("# 0\nthe image.png\n3\n", {line(2) + "expected the number of an image's channels", "must not hold blanks"});
  expect("# 0\n0.png\n4\n30\n40\n", {line(3) + "an image has 3 channels, or 1, not 4"});
  expect("# 0\n0.png\n3\n30\n40\n2\n1 1 0 0 9 9\n# 1\n", {line(8) + "expected the class of a window", "got \"#\""});
  expect(good + "1 1 0 0 9 9\n", {line(8) + "expected # and the number of the next image", "line 6 says how many"});
  expect("# 0\n0.png\n3\n30\n40\n1\n1 1 0 0 9\n", {line(7) + "ends where y2 of a window", "cut short"});
  expect("# 0\n0.png\n3\n30\n40\n1\n1 1 0.5 0 9 9\n",
         {line(7) + "expected x1 of a window, a whole number, got \"0.5\""});
  expect("# 0\n0.png\n3\n30\n40\n1\n1 1 9 0 8 9\n", {line(7) + "a window ends before it begins"});
  expect("# 0\n0.png\n3\n30\n40\n-1\n", {line(6) + "an image cannot have -1 windows"});
  for (const std::string overlap : {"nan", "55", "-0.1"}) {
    expect("# 0\n0.png\n3\n30\n40\n1\n1 " + overlap + " 0 0 8 9\n", {line(7), "the overlap of a window"});
  }
  expect("# 0\n0.png\n3\n30\n40\n1\n0 0.5 0 0 9 9\n", {line(7), "is of class 0; number the classes from 1"});
  expect("# 0\n0.png\n3\n30\n40\n1\n1 1 0 0 9 99999999\n", {line(7) + "no image reaches to pixel 99999999"});
  expect("\n", {"net.prototxt:window_data_param.source", folder_ / "windows.txt names no image"});
  expect(good, {"window_data_param.source", "no window that overlaps objects by less than bg_threshold 0.3",
                "6 of each batch", "set fg_fraction: 1"});
  expect("# 0\n0.png\n3\n30\n40\n1\n0 0 0 0 9 9\n",
         {"no window that overlaps an object by fg_threshold 0.5", "fg_fraction: 0"});
  std::filesystem::remove(folder_ / "windows.txt");
  std::filesystem::create_directory(folder_ / "windows.txt");
  ExpectThrows<UserError>([&] { Driver(Layer()); },
                          {"window_data_param.source", "is a folder; expected a window file"});
}

TEST_F(WindowDataTest, WorkersTellCopiesApart) {
  WriteWindows();
  NetParameter net;
  *net.add_layer() = testing::ParseSource("WindowData", Layer());
  EXPECT_EQ(DataSourceOf(net.layer(0)), folder_ / "windows.txt");
  const uint64_t original = FingerprintData(net, {}).at(0).value;
  WriteWindows("# 4\n3.png 3 30 40 0");
  EXPECT_NE(FingerprintData(net, {}).at(0).value, original);
  WriteWindows();
  EXPECT_EQ(FingerprintData(net, {}).at(0).value, original);
  ReadDataFrom(folder_ / "other.txt", &net);
  EXPECT_EQ(DataSourceOf(net.layer(0)), folder_ / "other.txt");
  ReadDataFrom(folder_.path(), &net);
  EXPECT_EQ(net.layer(0).window_data_param().root_folder(), folder_.path() + "/");
}

TEST_F(WindowDataTest, FilesMayComeLater) {
  SourceDriver driver = Driver(Layer());
  EXPECT_EQ(driver.setup().top_specs()[0].shape, (Shape{8, 3, 10, 10}));
  ExpectThrows<UserError>([&] { driver.Forward(); }, {"window_data_param.source", folder_ / "windows.txt",
                                                      "does not exist; expected a window file"});
  WriteWindows();
  driver.Forward();
  EXPECT_EQ(driver.value(1)[0], 0);
}

TEST_F(WindowDataTest, LayersOfRealNetsAreAccepted) {
  const int layers = testing::SetUpRealLayers(
      "WindowData", [](const LayerParameter& layer) { return layer.window_data_param().batch_size(); });
  if (layers < 0) GTEST_SKIP() << "Caffe's files are not in " << CorpusFolder();
  EXPECT_GE(layers, 4);
}

}  // namespace
}  // namespace crema
