#include <gtest/gtest.h>
#include <sched.h>

#include <cmath>

#include "base/compute_threads.h"
#include "data/data_testing.h"
#include "data/image_testing.h"
#include "data/source_driver.h"

namespace crema {
namespace {

using testing::ExpectThrows;

// One Data layer, whatever its text.
class DataDriver : public testing::SourceDriver {
 public:
  explicit DataDriver(const std::string& text, Phase phase = TEST,
                      std::vector<std::pair<std::string, Shape>> overrides = {})
      : SourceDriver("Data", text, phase, std::move(overrides)) {}
};

std::string DataNet(const std::string& path, const std::string& data = "", const std::string& rest = "") {
  return "top: \"data\" top: \"label\" data_param { source: \"" + path + "\" batch_size: 4 " + data + " } " + rest;
}

TEST(DataLayer, DeliversBatchesAndNamesTheirRecords) {
  TemporaryFolder folder;
  testing::WriteImages(folder / "db", 10, 1, 3, 2);
  DataDriver driver(DataNet(folder / "db", "backend: LMDB", "transform_param { scale: 0.5 }"));
  EXPECT_EQ(driver.setup().top_specs()[0].shape, (Shape{4, 1, 3, 2}));
  EXPECT_EQ(driver.setup().top_specs()[1].shape, (Shape{4}));
  EXPECT_TRUE(driver.setup().is_source());
  EXPECT_TRUE(driver.setup().warnings().empty());
  EXPECT_EQ(driver.layer().position(), 0u);
  EXPECT_EQ(driver.layer().DescribeItem(0), "");
  for (int k = 0; k < 7; ++k) {
    driver.Forward();
    EXPECT_EQ(driver.layer().position(), static_cast<uint64_t>(4 * (k + 1)));
    for (int i = 0; i < 4; ++i) {
      const int record = (4 * k + i) % 10;
      EXPECT_EQ(driver.value(1)[i], static_cast<float>(record));
      EXPECT_EQ(driver.value(0)[i * 6 + 5], 0.5f * static_cast<float>(35 + record));
      EXPECT_EQ(driver.layer().DescribeItem(i), "record \"0000000" + std::to_string(record) + "\" of " + folder / "db");
    }
  }
}

TEST(DataLayer, ReplayRepeatsTheBatch) {
  TemporaryFolder folder;
  testing::WriteImages(folder / "db", 10, 1, 3, 2);
  DataDriver driver(DataNet(folder / "db", "shuffle: true threads: 3", "transform_param { mirror: true }"), TRAIN);
  driver.Forward(true);  // nothing to repeat yet
  EXPECT_EQ(driver.layer().position(), 4u);
  driver.Forward();
  const std::vector<float> data = driver.value(0), labels = driver.value(1);
  driver.value(0).assign(data.size(), 99);
  driver.Forward(true);
  EXPECT_EQ(driver.value(0), data);
  EXPECT_EQ(driver.value(1), labels);
  EXPECT_EQ(driver.layer().position(), 8u);
  driver.Forward();
  EXPECT_NE(driver.value(1), labels);
}

TEST(DataLayer, ResumesWhereItStopped) {
  TemporaryFolder folder;
  testing::WriteImages(folder / "db", 11, 1, 5, 5);
  const std::string net =
      DataNet(folder / "db", "shuffle: true rand_skip: 50 threads: 2", "transform_param { mirror: true crop_size: 3 }");
  DataDriver whole(net, TRAIN);
  for (int k = 0; k < 5; ++k) whole.Forward();
  DataDriver resumed(net, TRAIN);
  resumed.layer().set_position(whole.layer().position());
  EXPECT_EQ(resumed.layer().position(), 20u);
  for (int k = 0; k < 5; ++k) {
    whole.Forward();
    resumed.Forward();
    EXPECT_EQ(whole.value(0), resumed.value(0));
    EXPECT_EQ(whole.value(1), resumed.value(1));
  }
  whole.layer().set_position(20);  // after threads have started
  resumed.layer().set_position(20);
  whole.Forward();
  resumed.Forward();
  EXPECT_EQ(whole.value(0), resumed.value(0));
}

TEST(DataLayer, OneTopIsTheDataAlone) {
  TemporaryFolder folder;
  testing::WriteImages(folder / "db", 3, 1, 2, 2);
  DataDriver driver("top: \"data\" data_param { source: \"" + folder / "db" + "\" batch_size: 2 }");
  driver.Forward();
  driver.Forward();
  EXPECT_EQ(driver.value(0)[0], 2);
}

TEST(DataLayer, ShapesWithoutTheSource) {
  const auto shape = [](const std::string& rest, size_t warnings) {
    const DataDriver driver(DataNet("absent", "", rest));
    EXPECT_EQ(driver.setup().warnings().size(), warnings) << rest;
    return driver.setup().top_specs()[0].shape;
  };
  EXPECT_EQ(shape("transform_param { crop_size: 227 }", 1), (Shape{4, 3, 227, 227}));
  EXPECT_EQ(shape("transform_param { crop_size: 8 mean_value: 5 }", 1), (Shape{4, 3, 8, 8}));
  EXPECT_EQ(shape("transform_param { crop_size: 8 mean_value: 5 mean_value: 6 }", 0), (Shape{4, 2, 8, 8}));
  EXPECT_EQ(shape("transform_param { crop_size: 8 force_gray: true }", 0), (Shape{4, 1, 8, 8}));
  EXPECT_EQ(shape("transform_param { crop_size: 8 force_color: true mean_file: \"absent\" }", 0), (Shape{4, 3, 8, 8}));

  DataDriver given(DataNet("absent"), TEST, {{"data", Shape{16, 1, 28, 28}}});
  EXPECT_EQ(given.setup().top_specs()[0].shape, (Shape{16, 1, 28, 28}));
  EXPECT_EQ(given.setup().top_specs()[1].shape, (Shape{16}));
  ExpectThrows<UserError>([&] { given.Forward(); },
                          {"net.prototxt:data_param.source", "\"in\" (Data)", "does not exist"});
  ExpectThrows<UserError>([] { DataDriver(DataNet("absent")); },
                          {"net.prototxt:data_param.source", "absent", "--shape=data=4,C,H,W"});
  ExpectThrows<UserError>([] { DataDriver(DataNet("absent"), TEST, {{"data", Shape{16}}}); }, {"expected N,C,H,W"});
  ExpectThrows<UserError>(
      [] {
        DataDriver(DataNet("absent"), TEST, {{"data", Shape{16, 1, 1, 1}}, {"label", Shape{4}}});
      },
      {"16 labels"});
}

// Records of 1x2x2 with the numbers that follow.
void WriteLabels(const std::string& path, const std::vector<std::vector<float>>& labels) {
  std::vector<Datum> datums;
  for (size_t i = 0; i < labels.size(); ++i) {
    datums.push_back(testing::ImageDatum(1, 2, 2, static_cast<int>(i)));
    datums.back().mutable_labels()->Add(labels[i].begin(), labels[i].end());
  }
  testing::WriteDatums(path, datums);
}

TEST(DataLayer, SeveralLabelsAreATopOfRows) {
  TemporaryFolder folder;
  WriteLabels(folder / "db", {{0.5, 1, -1}, {0, 2, 7}, {1, 3, 1e6}});
  for (const std::string threads : {"threads: 1", "threads: 3"}) {
    DataDriver driver(DataNet(folder / "db", threads));
    EXPECT_EQ(driver.setup().top_specs()[0].shape, (Shape{4, 1, 2, 2}));
    EXPECT_EQ(driver.setup().top_specs()[1].shape, (Shape{4, 3}));
    driver.Forward();
    EXPECT_EQ(driver.value(1), (std::vector<float>{0.5, 1, -1, 0, 2, 7, 1, 3, 1e6, 0.5, 1, -1}));
    EXPECT_EQ(driver.value(0)[4], 1);
    driver.Forward();
    EXPECT_EQ(driver.value(1)[0], 0);
  }
  WriteLabels(folder / "one", {{0.5}, {2}});
  EXPECT_EQ(DataDriver(DataNet(folder / "one")).setup().top_specs()[1].shape, (Shape{4, 1}));
  // Without the top.
  DataDriver images("top: \"data\" data_param { source: \"" + folder / "db" + "\" batch_size: 2 }");
  images.Forward();
  EXPECT_EQ(images.value(0)[4], 1);
}

TEST(DataLayer, TheNumberOfLabelsIsThatOfTheFirstRecord) {
  TemporaryFolder folder;
  WriteLabels(folder / "fewer", {{1, 2, 3}, {1, 2, 3}, {1, 2}});
  WriteLabels(folder / "none", {{1, 2, 3}, {}});
  WriteLabels(folder / "later", {{}, {1, 2, 3}});
  WriteLabels(folder / "nan", {{1, 2, 3}, {1, NAN, 3}});
  const auto expect = [&](const std::string& name, const std::vector<std::string>& parts) {
    SCOPED_TRACE(name);
    DataDriver driver(DataNet(folder / name));
    ExpectThrows<UserError>([&] { driver.Forward(); }, parts);
  };
  expect("fewer", {"data_param.source", "\"00000002\"", "has 2 labels, but the first record has 3", "make it anew"});
  expect("none", {"\"00000001\"", "has no labels, but the first record has 3"});
  expect("later", {"\"00000001\"", "has 3 labels, but the first record has no labels"});
  expect("nan", {"\"00000001\"", "no finite number (nan, number 1"});
}

TEST(DataLayer, ShapesOfSeveralLabelsCanBeGiven) {
  TemporaryFolder folder;
  WriteLabels(folder / "db", {{1, 2, 3}, {1, 2, 3}});
  const auto shape = [&](const std::string& name, const std::vector<std::pair<std::string, Shape>>& overrides) {
    return DataDriver(DataNet(folder / name), TEST, overrides).setup().top_specs()[1].shape;
  };
  const std::pair<std::string, Shape> data = {"data", Shape{2, 1, 2, 2}};
  EXPECT_EQ(shape("db", {data}), (Shape{2, 3}));
  EXPECT_EQ(shape("db", {data, {"label", Shape{2, 3, 1, 1}}}), (Shape{2, 3, 1, 1}));
  EXPECT_EQ(shape("absent", {data}), (Shape{2}));
  EXPECT_EQ(shape("absent", {data, {"label", Shape{2, 5}}}), (Shape{2, 5}));
  ExpectThrows<UserError>([&] { shape("db", {data, {"label", Shape{2, 2}}}); }, {"cannot be 2x2", "6 labels"});
  ExpectThrows<UserError>([&] { shape("absent", {data, {"label", Shape{5, 5}}}); }, {"cannot be 5x5"});
  // What appears later must fit.
  DataDriver driver(DataNet(folder / "new"), TEST, {data, {"label", Shape{2, 5}}});
  WriteLabels(folder / "new", {{1, 2, 3}});
  ExpectThrows<UserError>([&] { driver.Forward(); }, {"5 labels of an image", "has 3", "--shape"});
}

TEST(DataLayer, TheShapeGivenMustFitTheRecords) {
  TemporaryFolder folder;
  testing::WriteImages(folder / "db", 3, 1, 2, 2);
  DataDriver driver(DataNet(folder / "db"), TEST, {{"data", Shape{2, 1, 28, 28}}});
  ExpectThrows<UserError>([&] { driver.Forward(); }, {"1x28x28", "1x2x2", "--shape"});
  DataDriver fits(DataNet(folder / "db"), TEST, {{"data", Shape{2, 1, 2, 2}}});
  fits.Forward();
  EXPECT_EQ(fits.value(1), (std::vector<float>{0, 1}));
}

TEST(DataLayer, MistakesInTheFileAreNamedWithTheirField) {
  TemporaryFolder folder;
  testing::WriteImages(folder / "db", 3, 1, 2, 2);
  const std::string db = "\"" + folder / "db" + "\"";
  const auto expect = [](const std::string& text, const std::vector<std::string>& parts) {
    SCOPED_TRACE(text);
    ExpectThrows<UserError>([&] { DataDriver driver(text); }, parts);
  };
  expect("top: \"d\" data_param { batch_size: 4 }", {"net.prototxt:data_param", "source"});
  expect("top: \"d\" data_param { source: " + db + " }", {"net.prototxt:data_param.batch_size", "at least 1"});
  expect("top: \"d\" data_param { source: " + db + " batch_size: 0 }", {"data_param.batch_size"});
  expect(DataNet(folder / "db", "prefetch: 0"), {"data_param.prefetch", "in [1, "});
  expect(DataNet(folder / "db", "prefetch: 4000000000"), {"data_param.prefetch", "4000000000"});
  expect(DataNet(folder / "db", "threads: 257"), {"data_param.threads", "in [0, 256]"});
  expect(DataNet(folder / "db", "", "transform_param { mean_file: \"m\" mean_value: 1 }"),
         {"mean_file and mean_value"});
  expect(DataNet(folder / "db", "", "transform_param { mean_file: \"no_mean\" }"),
         {"transform_param.mean_file", "no_mean"});
  expect(DataNet(folder / "db", "", "transform_param { force_color: true force_gray: true }"), {"force_gray"});
  expect(DataNet(folder / "db", "", "transform_param { crop_size: 3 }"),
         {"data_param.source", "crop_size 3 exceeds", "1x2x2"});
  expect(DataNet(folder / "db", "", "transform_param { mean_value: 1 mean_value: 2 }"), {"2 mean_value", "1 channel"});
  expect("top: \"a\" top: \"b\" top: \"c\" data_param { source: " + db + " batch_size: 1 }", {"1 to 2 top"});
  expect("bottom: \"x\" " + DataNet(folder / "db"), {"bottom"});
  testing::WriteFile(folder / "file", "x");
  expect(DataNet(folder / "file"), {"data_param.source", "is a file"});
}

TEST(DataLayer, FieldsWithoutEffectAreWarnedAbout) {
  TemporaryFolder folder;
  testing::WriteImages(folder / "db", 3, 1, 2, 2);
  const auto warning = [&](const std::string& data, const std::string& rest) {
    const DataDriver driver(DataNet(folder / "db", data, rest));
    EXPECT_EQ(driver.setup().warnings().size(), 1u) << data << rest;
    return driver.setup().warnings().empty() ? "" : driver.setup().warnings()[0].ToString();
  };
  EXPECT_NE(warning("force_encoded_color: true", "").find("force_encoded_color"), std::string::npos);
  EXPECT_NE(warning("backend: LEVELDB", "").find("set backend: LMDB"), std::string::npos);
  EXPECT_NE(warning("", "transform_param { force_color: true }").find("compressed images only"), std::string::npos);
  EXPECT_TRUE(
      DataDriver(DataNet(folder / "db", "", "transform_param { force_gray: true }")).setup().warnings().empty());
  // Compressed images are decoded as these say.
  testing::WriteDatums(folder / "encoded", {testing::EncodedDatum(testing::Photograph(5, 4, 1), 0)});
  EXPECT_TRUE(DataDriver(DataNet(folder / "encoded", "force_encoded_color: true")).setup().warnings().empty());
}

TEST(DataLayer, MistakesInTheTransformAreNamedWithTheirField) {
  TemporaryFolder folder;
  testing::WriteImages(folder / "db", 3, 1, 8, 8);
  const auto expect = [&](const std::string& transform, const std::string& field, const std::string& part) {
    SCOPED_TRACE(transform);
    ExpectThrows<UserError>(
        [&] { DataDriver driver(DataNet(folder / "db", "", "transform_param { " + transform + " }")); },
        {"net.prototxt:transform_param." + field + ":", part});
  };
  expect("resize_shorter_side: 4 resize_height: 5 resize_width: 5", "resize_shorter_side", "both set");
  expect("resize_height: 5", "resize_height", "without resize_width");
  expect("resize_width: 5", "resize_width", "without resize_height");
  expect("resize_width: 4294967295 resize_height: 3", "resize_width", "in [0, 32768]");
  expect("crop_size: 4294967295", "crop_size", "in [0, 32768]");
  expect("random_resized_crop {}", "random_resized_crop", "crop_size");
  for (const std::string block : {"random_resized_crop", "random_erasing"}) {
    const auto expect_area = [&](const std::string& fields, const std::string& field, const std::string& part) {
      expect("crop_size: 4 " + block + " { " + fields + " }", block + "." + field, part);
    };
    expect_area("min_area: 0.5 max_area: 0.4", "min_area", "exceeds max_area");
    expect_area("min_area: 0", "min_area", "above 0");
    expect_area("max_area: 1.5", "max_area", "at most 1");
    expect_area("min_area: nan", "min_area", "nan");
    expect_area("min_aspect: 0", "min_aspect", "in [0.01, 100]");
    expect_area("max_aspect: inf", "max_aspect", "in [0.01, 100]");
    expect_area("min_aspect: 2 max_aspect: 1", "min_aspect", "exceeds max_aspect");
  }
  expect("random_erasing { probability: 1.01 }", "random_erasing.probability", "in [0, 1]");
  expect("random_erasing { probability: -0.5 }", "random_erasing.probability", "in [0, 1]");
  expect("random_erasing { probability: nan }", "random_erasing.probability", "nan");
  expect("max_rotation_angle: -1", "max_rotation_angle", "in [0, 180]");
  expect("max_rotation_angle: 180.5", "max_rotation_angle", "180.5");
  expect("max_rotation_angle: nan", "max_rotation_angle", "nan");
  expect("max_rotation_angle: inf", "max_rotation_angle", "inf");
  expect("color_jitter { brightness: 1.5 }", "color_jitter.brightness", "in [0, 1]");
  expect("color_jitter { contrast: -0.5 }", "color_jitter.contrast", "in [0, 1]");
  expect("color_jitter { saturation: inf }", "color_jitter.saturation", "in [0, 1]");
  expect("std_value: 0", "std_value", "above 0");
  expect("std_value: 1 std_value: -1", "std_value", "above 0");
  expect("mean_value: nan", "mean_value", "finite");
  expect("scale: inf", "scale", "finite");
  expect("mean_file: \"m\" pad: 1", "mean_file", "pad");
  expect("mean_file: \"m\" resize_shorter_side: 4", "mean_file", "resize_shorter_side");
  expect("mean_file: \"m\" crop_size: 3 random_resized_crop {}", "mean_file", "random_resized_crop");
  expect("mean_file: \"m\" max_rotation_angle: 5", "mean_file", "max_rotation_angle");
  expect("mean_file: \"m\" random_erasing {}", "mean_file", "random_erasing");
}

TEST(DataLayer, FloatsAreNotTurned) {
  TemporaryFolder folder;
  Datum floats;
  floats.set_channels(1);
  floats.set_height(2);
  floats.set_width(2);
  for (const float value : {1.5f, 2.5f, 3.5f, 4.5f}) floats.add_float_data(value);
  testing::WriteDatums(folder / "db", {floats});
  const std::string net = DataNet(folder / "db", "", "transform_param { max_rotation_angle: 5 }");
  ExpectThrows<UserError>([&] { DataDriver driver(net, TRAIN); },
                          {"data_param.source", "record \"00000000\"", "max_rotation_angle turns images of bytes"});
  DataDriver driver(net, TEST);
  driver.Forward();
  EXPECT_EQ(driver.value(0)[3], 4.5f);
}

TEST(DataLayer, DecodesOnTheCoresThatTheProcessMayUse) {
  TemporaryFolder folder;
  testing::WriteDatums(folder / "db", {testing::EncodedDatum(testing::Photograph(5, 4, 3, 0), 0)});
  cpu_set_t before, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  CPU_ZERO(&one);
  for (int core = 0; CPU_COUNT(&one) == 0; ++core) {
    if (CPU_ISSET(core, &before)) CPU_SET(core, &one);
  }
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  DataDriver driver(DataNet(folder / "db"));
  driver.Forward();
  const DataSupply supply = driver.layer().data_supply();
  ASSERT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
  EXPECT_EQ(supply.threads, 1);
  EXPECT_NE(supply.remedy.find("the only core"), std::string::npos) << supply.remedy;
}

TEST(DataLayer, DecodesCompressedRecords) {
  TemporaryFolder folder;
  std::vector<Datum> datums;
  for (int i = 0; i < 6; ++i) datums.push_back(testing::EncodedDatum(testing::Photograph(5, 4, 3, i), i));
  testing::WriteDatums(folder / "db", datums);
  DataDriver driver(DataNet(folder / "db"));
  EXPECT_EQ(driver.setup().top_specs()[0].shape, (Shape{4, 3, 5, 4}));
  driver.Forward();
  const Image second = testing::Photograph(5, 4, 3, 1);
  for (int c = 0; c < 3; ++c) EXPECT_EQ(driver.value(0)[60 + c * 20 + 7], second.row(1)[3 * 3 + c]);
  EXPECT_EQ(driver.layer().data_supply().threads, UsableCores());
  DataDriver grey(
      DataNet(folder / "db", "threads: 3", "transform_param { force_gray: true resize_height: 7 resize_width: 9 }"));
  EXPECT_EQ(grey.setup().top_specs()[0].shape, (Shape{4, 1, 7, 9}));
  grey.Forward();
  EXPECT_EQ(grey.layer().data_supply().threads, 3);
  EXPECT_NE(grey.layer().data_supply().remedy, "");
  ExpectThrows<UserError>(
      [&] { DataDriver(DataNet(folder / "db", "force_encoded_color: true", "transform_param { force_gray: true }")); },
      {"data_param.force_encoded_color", "force_gray"});
  testing::WriteImages(folder / "raw", 4, 1, 3, 3);
  DataDriver raw(DataNet(folder / "raw"));
  raw.Forward();
  EXPECT_EQ(raw.layer().data_supply().threads, 1);
}

TEST(DataLayer, SizesTheTransformFixesNeedNoSource) {
  const DataDriver driver(
      DataNet("absent", "", "transform_param { resize_height: 6 resize_width: 4 pad: 1 force_color: true }"));
  EXPECT_EQ(driver.setup().top_specs()[0].shape, (Shape{4, 3, 8, 6}));
}

TEST(DataLayer, AugmentedStreamsResumeWithinAnEpoch) {
  TemporaryFolder folder;
  std::vector<Datum> datums;
  for (int i = 0; i < 11; ++i) datums.push_back(testing::EncodedDatum(testing::Photograph(40 + i, 50 - i, 3, i), i));
  testing::WriteDatums(folder / "db", datums);
  const std::string augment =
      "transform_param { mirror: true crop_size: 8 random_resized_crop {} "
      "mirror_vertical: true max_rotation_angle: 20 random_erasing {} "
      "rand_augment {} color_jitter { brightness: 0.4 contrast: 0.4 saturation: 0.4 hue: 0.1 } gaussian_blur {} "
      "mean_value: 100 std_value: 60 }";
  DataDriver whole(DataNet(folder / "db", "shuffle: true threads: 1", augment), TRAIN);
  std::vector<std::vector<float>> batches;
  for (int k = 0; k < 12; ++k) {
    whole.Forward();
    batches.push_back(whole.value(0));
  }
  for (const int threads : {2, 5}) {
    DataDriver resumed(DataNet(folder / "db", "shuffle: true threads: " + std::to_string(threads), augment), TRAIN);
    resumed.layer().set_position(4 * 4);
    for (int k = 4; k < 12; ++k) {
      resumed.Forward();
      EXPECT_TRUE(resumed.value(0) == batches[k]) << threads << " threads, batch " << k;
    }
  }
}

TEST(DataLayer, BadRecordsAreReportedWithLayerAndPlace) {
  TemporaryFolder folder;
  testing::WriteRecords(folder / "db", {testing::ImageDatum(1, 2, 2, 0).SerializeAsString(), "\x08"});
  DataDriver driver(DataNet(folder / "db"));
  ExpectThrows<UserError>([&] { driver.Forward(); }, {"net.prototxt:data_param.source", "\"in\" (Data)", "00000001"});
  ExpectThrows<UserError>([&] { driver.Forward(); }, {"00000001"});
}

}  // namespace
}  // namespace crema
