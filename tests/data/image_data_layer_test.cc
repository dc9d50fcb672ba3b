// Image files: ImageListLoader and the layer ImageData.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "crema/files.h"
#include "data/data_testing.h"
#include "data/files/image_folder.h"
#include "data/image_testing.h"
#include "data/loaders/image_list_loader.h"
#include "data/real_layers.h"
#include "data/source_driver.h"
#include "source_folder.h"

namespace crema {
namespace {

using testing::ExpectThrows;
using testing::Photograph;

class ImageDataTest : public ::testing::Test {
 protected:
  // Images 0, 1, ... as PNG, of class 10, 11, ..., in a folder whose name holds a blank, and their list.
  std::string WriteList(int count, int height, int width) {
    std::filesystem::create_directory(folder_ / "the images");
    std::string list;
    for (int i = 0; i < count; ++i) {
      const std::string name = std::to_string(i) + ".png";
      testing::WriteFile(folder_ / ("the images/" + name),
                         testing::Png(Photograph(height, width, 3, static_cast<uint64_t>(i))));
      list += name + " " + std::to_string(10 + i) + "\n";
    }
    testing::WriteFile(folder_ / "list.txt", list);
    return folder_ / "list.txt";
  }

  // As messages name the image in a line of the list.
  std::string Named(const std::string& image, int line) const {
    return "image \"" + folder_ / "the images" + "/" + image + "\" (" + folder_ / "list.txt" + ":" +
           std::to_string(line) + ")";
  }

  std::string Layer(const std::string& fields = "", const std::string& rest = "") const {
    return "top: \"data\" top: \"label\" image_data_param { source: \"" + folder_ / "list.txt" + "\" root_folder: \"" +
           folder_ / "the images/" + "\" batch_size: 4 " + fields + " } " + rest;
  }

  testing::SourceDriver Driver(const std::string& text, Phase phase = TEST) const {
    return testing::SourceDriver("ImageData", text, phase);
  }

  TemporaryFolder folder_;
};

TEST_F(ImageDataTest, DeliversTheListInOrder) {
  WriteList(6, 5, 4);
  testing::SourceDriver driver = Driver(Layer());
  EXPECT_EQ(driver.setup().top_specs()[0].shape, (Shape{4, 3, 5, 4}));
  EXPECT_EQ(driver.setup().top_specs()[1].shape, (Shape{4}));
  EXPECT_TRUE(driver.setup().is_source());
  EXPECT_TRUE(driver.setup().warnings().empty());
  for (int k = 0; k < 5; ++k) {
    driver.Forward();
    for (int i = 0; i < 4; ++i) {
      const int entry = (4 * k + i) % 6;
      EXPECT_EQ(driver.value(1)[i], static_cast<float>(10 + entry));
      const Image image = Photograph(5, 4, 3, static_cast<uint64_t>(entry));
      for (int c = 0; c < 3; ++c) EXPECT_EQ(driver.value(0)[i * 60 + c * 20 + 9], image.row(2)[3 + c]);
      EXPECT_EQ(driver.layer().DescribeItem(i), Named(std::to_string(entry) + ".png", entry + 1));
    }
  }
}

TEST_F(ImageDataTest, SeveralNumbersFollowAPath) {
  WriteList(4, 5, 4);
  testing::WriteFile(folder_ / "the images/a 7 b.png", testing::Png(Photograph(5, 4, 3, 9)));
  testing::WriteFile(folder_ / "list.txt", "0.png 0.5 -1 +3e2\n\na 7 b.png\t1  0\t.25 \n1.png 1e-60 0 0\n");
  testing::SourceDriver driver = Driver(Layer("label_count: 3"));
  EXPECT_EQ(driver.setup().top_specs()[0].shape, (Shape{4, 3, 5, 4}));
  EXPECT_EQ(driver.setup().top_specs()[1].shape, (Shape{4, 3}));
  driver.Forward();
  EXPECT_EQ(driver.value(1), (std::vector<float>{0.5, -1, 300, 1, 0, 0.25, 0, 0, 0, 0.5, -1, 300}));
  EXPECT_EQ(driver.value(0)[60], Photograph(5, 4, 3, 9).row(0)[0]);
  EXPECT_EQ(driver.layer().DescribeItem(1), Named("a 7 b.png", 3));
  // Shuffled, numbers stay with their images.
  testing::SourceDriver shuffled = Driver(Layer("label_count: 3 shuffle: true"), TRAIN);
  for (int k = 0; k < 3; ++k) {
    shuffled.Forward();
    for (int i = 0; i < 4; ++i) {
      const float first = shuffled.value(0)[60 * i], wanted = shuffled.value(1)[3 * i];
      const int seed = wanted == 0.5f ? 0 : wanted == 1 ? 9 : 1;
      EXPECT_EQ(first, Photograph(5, 4, 3, seed).row(0)[0]);
    }
  }
  testing::WriteFile(folder_ / "list.txt", "0.png 0.5\n");
  EXPECT_EQ(Driver(Layer("label_count: 1")).setup().top_specs()[1].shape, (Shape{4, 1}));
  const auto given = [&](const Shape& label) {
    return testing::SourceDriver("ImageData", Layer("label_count: 1"), TEST, {{"label", label}}).setup().top_specs()[1];
  };
  EXPECT_EQ(given(Shape{4, 1, 1, 1}).shape, (Shape{4, 1, 1, 1}));
  ExpectThrows<UserError>([&] { given(Shape{4, 2}); }, {"\"label\" cannot be 4x2", "4 labels"});
}

TEST_F(ImageDataTest, LabelsBelow0ArePassedOn) {
  WriteList(2, 5, 4);
  testing::WriteFile(folder_ / "list.txt", "0.png -1\n1.png 3\n");
  testing::SourceDriver driver = Driver(Layer());
  driver.Forward();
  EXPECT_EQ(driver.value(1)[0], -1);
  EXPECT_EQ(driver.value(1)[1], 3);
}

TEST_F(ImageDataTest, NumbersThatAreNoneAreNamedWithTheirLine) {
  WriteList(2, 5, 4);
  const auto expect = [&](const std::string& list, const std::string& fields, const std::vector<std::string>& parts) {
    SCOPED_TRACE(list);
    testing::WriteFile(folder_ / "list.txt", list);
    ExpectThrows<UserError>([&] { Driver(Layer(fields)).Forward(); }, parts);
  };
  const std::string list = folder_ / "list.txt";
  expect("0.png 1 2 3\n1.png 1 2\n", "label_count: 3",
         {list + ":2", "a path and 3 numbers (label_count), but 2 follow \"1.png\""});
  expect("0.png 1 2 3\nthe 1.png 1 2\n", "label_count: 3", {list + ":2", "\"1.png\" is no finite one"});
  expect(
      "0.png 1 x 3\n1.png 1 2 1e9999\n0.png nan 2 3\n0.png 1 2 -inf\n", "label_count: 3",
      {list + ":1", "\"x\" is no finite", list + ":2", "\"1e9999\"", list + ":3", "\"nan\"", list + ":4", "\"-inf\""});
  expect("0.5\n", "label_count: 1", {list + ":1", "a path and 1 number (label_count), but 0 follow \"0.5\""});
  expect("\n", "label_count: 3", {list, "one path and its numbers per line"});
  // Where the field is forgotten, or too small.
  expect("0.png 0.5\n", "", {list + ":1", "\"0.5\" is no whole number", "label_count of ImageData"});
  expect("0.png 1 0 1\n", "new_height: 2 new_width: 2",
         {Named("0.png 1 0", 1) + " does not exist", "label_count says how many"});
  expect("0.png 1 0 1\n", "label_count: 2", {Named("0.png 1", 1) + " does not exist", "label_count says how many"});
  expect("0.png 1\n", "label_count: 65537", {"image_data_param.label_count", "in [0, 65536]"});
}

TEST_F(ImageDataTest, ResizesAndDecodesToGrey) {
  WriteList(4, 9, 12);
  testing::SourceDriver driver = Driver(Layer("new_height: 6 new_width: 7 is_color: false"));
  EXPECT_EQ(driver.setup().top_specs()[0].shape, (Shape{4, 1, 6, 7}));
  driver.Forward();
  Image grey, resized;
  ResizeBuffers buffers;
  ASSERT_EQ(DecodeImage(EncodePng(Photograph(9, 12, 3, 1)), {DecodeOptions::Colors::kGray}, &grey), "");
  ResizeBilinear(grey, 6, 7, &buffers, &resized);
  EXPECT_EQ(std::vector<float>(driver.value(0).begin() + 42, driver.value(0).begin() + 84),
            std::vector<float>(resized.pixels.begin(), resized.pixels.begin() + 42));
}

TEST_F(ImageDataTest, ShuffledEpochsResumeAndTakeTurns) {
  WriteList(11, 12, 10);
  const std::string text = Layer("shuffle: true rand_skip: 5 threads: 2",
                                 "transform_param { crop_size: 6 mirror: true color_jitter { contrast: 0.5 } }");
  testing::SourceDriver whole = Driver(text, TRAIN);
  std::vector<std::vector<float>> data, labels;
  for (int k = 0; k < 11; ++k) {
    whole.Forward();
    data.push_back(whole.value(0));
    labels.push_back(whole.value(1));
  }
  // Four epochs: every image four times.
  std::vector<int> seen(21);
  for (const std::vector<float>& batch : labels) {
    for (const float label : batch) ++seen[static_cast<size_t>(label)];
  }
  for (int i = 10; i < 21; ++i) EXPECT_NEAR(seen[i], 4, 1);
  EXPECT_NE(std::vector<float>(labels[0].begin(), labels[0].end()), labels[3]);
  testing::SourceDriver resumed = Driver(text, TRAIN);
  resumed.layer().set_position(5 * 4);
  resumed.Forward();
  EXPECT_EQ(resumed.value(0), data[5]);
  EXPECT_EQ(resumed.layer().next_batch(), 6u);
  // As one of three workers.
  testing::SourceDriver worker = Driver(text, TRAIN);
  worker.layer().ReadBatches({1, 1, 3});
  for (int k = 1; k < 11; k += 3) {
    worker.Forward();
    EXPECT_EQ(worker.value(0), data[k]);
    EXPECT_EQ(worker.value(1), labels[k]);
  }
}

TEST_F(ImageDataTest, PathsAreFoundBesideTheNet) {
  WriteList(4, 5, 4);
  testing::WriteFile(folder_ / "own.txt", "the images/1.png 3\n");
  LayerParameter param = testing::ParseSource("ImageData", "top: \"d\" image_data_param { source: \"own.txt\" }");
  LayerSetup setup(param, TEST, {}, [](std::string_view) { return Location{}; });
  setup.set_search_folders({"/nowhere", folder_.path()});
  FindLayerType("ImageData")->create()->Setup(setup);
  EXPECT_EQ(setup.top_specs()[0].shape, (Shape{1, 3, 5, 4}));
  // The folder, too.
  testing::WriteFile(folder_ / "bare.txt", "2.png 3\n");
  param = testing::ParseSource("ImageData",
                               "top: \"d\" image_data_param { source: \"bare.txt\" root_folder: \"the images/\" }");
  LayerSetup other(param, TEST, {}, [](std::string_view) { return Location{}; });
  other.set_search_folders({folder_.path()});
  FindLayerType("ImageData")->create()->Setup(other);
  EXPECT_EQ(other.top_specs()[0].shape, (Shape{1, 3, 5, 4}));
}

TEST_F(ImageDataTest, SizesThatAreFixedNeedNoImages) {
  testing::WriteFile(folder_ / "list.txt", "absent.jpg 0\n");
  testing::SourceDriver driver = Driver(Layer("new_height: 8 new_width: 9"));
  EXPECT_EQ(driver.setup().top_specs()[0].shape, (Shape{4, 3, 8, 9}));
  ExpectThrows<UserError>([&] { driver.Forward(); }, {"net.prototxt:image_data_param.source", "\"in\" (ImageData)",
                                                      Named("absent.jpg", 1) + " does not exist", "root_folder"});
  std::filesystem::remove(folder_ / "list.txt");
  EXPECT_EQ(Driver(Layer("", "transform_param { crop_size: 5 }")).setup().top_specs()[0].shape, (Shape{4, 3, 5, 5}));
  ExpectThrows<UserError>([&] { Driver(Layer()); }, {"image_data_param.source", "list", "does not exist here"});
  testing::SourceDriver cropped = Driver(Layer("", "transform_param { crop_size: 5 }"));
  ExpectThrows<UserError>([&] { cropped.Forward(); },
                          {"net.prototxt:image_data_param.source", "layer \"in\" (ImageData)",
                           "list.txt\" does not exist; expected a list"});
}

TEST_F(ImageDataTest, BrokenImagesAreNamed) {
  WriteList(6, 5, 4);
  const std::string whole = testing::ReadFile(folder_ / "the images/2.png");
  testing::WriteFile(folder_ / "the images/2.png", whole.substr(0, whole.size() / 2));
  testing::SourceDriver driver = Driver(Layer());
  ExpectThrows<UserError>([&] { driver.Forward(); },
                          {"net.prototxt:image_data_param.source", "layer \"in\" (ImageData)",
                           folder_ / "the images/2.png", "db_tool verify", "convert_imageset"});
  testing::WriteFile(folder_ / "the images/2.png", testing::Png(Photograph(6, 4)));
  testing::SourceDriver uneven = Driver(Layer());
  ExpectThrows<UserError>([&] { uneven.Forward(); }, {folder_ / "the images/2.png", "3x6x4", "resize_height"});
  std::filesystem::remove(folder_ / "the images/2.png");
  std::filesystem::create_directory(folder_ / "the images/2.png");
  testing::SourceDriver directory = Driver(Layer());
  ExpectThrows<UserError>([&] { directory.Forward(); }, {Named("2.png", 3) + " is a folder"});
  std::filesystem::remove(folder_ / "the images/2.png");
  ASSERT_EQ(mkfifo((folder_ / "the images/2.png").c_str(), 0600), 0);
  testing::SourceDriver pipe = Driver(Layer());
  ExpectThrows<UserError>([&] { pipe.Forward(); }, {Named("2.png", 3) + " is a pipe or device"});
}

TEST_F(ImageDataTest, MistakesAreNamedWithTheirField) {
  WriteList(2, 5, 4);
  const auto expect = [&](const std::string& text, const std::vector<std::string>& parts) {
    SCOPED_TRACE(text);
    ExpectThrows<UserError>([&] { Driver(text); }, parts);
  };
  expect("top: \"d\" image_data_param { batch_size: 4 }", {"net.prototxt:image_data_param", "source"});
  expect(Layer("new_height: 4"), {"image_data_param.new_height", "without new_width"});
  expect(Layer("new_width: 4"), {"image_data_param.new_width", "without new_height"});
  expect(Layer("new_width: 4 new_height: 4000000000"), {"image_data_param.new_height", "at most"});
  expect(Layer("new_height: 4 new_width: 4", "transform_param { resize_shorter_side: 5 }"),
         {"image_data_param.new_height", "keep one"});
  expect(Layer("is_color: true", "transform_param { force_gray: true }"), {"image_data_param.is_color", "force_gray"});
  expect(Layer("is_color: false", "transform_param { force_color: true }"), {"is_color", "force_color"});
  expect(Layer("prefetch: 0"), {"image_data_param.prefetch", "in [1, "});
  testing::SourceDriver small = Driver(Layer("", "transform_param { crop_size: 5 }"));
  ExpectThrows<UserError>([&] { small.Forward(); }, {"image_data_param.source", "crop_size 5 exceeds", "0.png"});
  testing::WriteFile(folder_ / "list.txt", "0.png 0\n1.png one\n");
  expect(Layer(), {folder_ / "list.txt" + ":2", "\"one\""});
  std::filesystem::remove(folder_ / "list.txt");
  std::filesystem::create_directory(folder_ / "list.txt");
  expect(Layer(), {"image_data_param.source", "is a folder"});
}

TEST_F(ImageDataTest, LayersOfRealNetsAreAccepted) {
  const int layers = testing::SetUpRealLayers(
      "ImageData", [](const LayerParameter& layer) { return layer.image_data_param().batch_size(); });
  if (layers < 0) GTEST_SKIP() << "Caffe's files are not in " << CorpusFolder();
  EXPECT_GT(layers, 5);
}

TEST_F(ImageDataTest, ListsOfFoldersServeWithoutALayer) {
  std::filesystem::create_directories(folder_ / "set/cat");
  std::filesystem::create_directories(folder_ / "set/dog");
  testing::WriteFile(folder_ / "set/cat/a.png", testing::Png(Photograph(5, 4, 1, 1)));
  testing::WriteFile(folder_ / "set/dog/b.png", testing::Png(Photograph(5, 4, 1, 2)));
  LeftOut left_out;
  const auto list = std::make_shared<const ImageList>(ListImageFolder(folder_ / "set", &left_out));
  const ImageListLoader loader(list, Transform({}, TEST, ""), {});
  EXPECT_EQ(loader.item_shape(), (Shape{1, 5, 4}));
  EXPECT_EQ(loader.EntryAt(3), 1u);
  std::vector<float> data(20);
  float label = -1;
  ItemScratch scratch;
  loader.Load(1, data.data(), &label, scratch);
  EXPECT_EQ(label, 1);
  const Image image = Photograph(5, 4, 1, 2);
  EXPECT_EQ(data, std::vector<float>(image.pixels.begin(), image.pixels.begin() + 20));
  EXPECT_EQ(loader.Describe(1), "image \"" + folder_ / "set/dog/b.png" + "\"");
}

}  // namespace
}  // namespace crema
