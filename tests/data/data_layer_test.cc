#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "crema/layer.h"
#include "crema/net.pb.h"
#include "data/data_testing.h"

namespace crema {
namespace {

using testing::ExpectThrows;

LayerParameter Parse(const std::string& text) {
  LayerParameter param;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString("name: \"in\" type: \"Data\" " + text, &param));
  return param;
}

// One Data layer with its tops, driven as the compiler and the runtime do.
class Driver {
 public:
  explicit Driver(const std::string& text, Phase phase = TEST,
                  std::vector<std::pair<std::string, Shape>> overrides = {})
      : param_(Parse(text)),
        setup_(param_, phase, std::vector<TensorSpec>(param_.bottom_size()),
               [](std::string_view field) {
                 return Location{"net.prototxt:" + std::string(field), 0, 0};
               }),
        layer_(FindLayerType("Data")->create()) {
    setup_.set_shape_overrides(std::move(overrides));
    layer_->Setup(setup_);
    for (const TensorSpec& spec : setup_.top_specs()) {
      values_.emplace_back(spec.shape.count(), -1.0f);
      tops_.emplace_back(values_.back().data(), spec);
    }
  }

  void Forward(bool replay = false, uint64_t seed = 1) {
    const Context context{nullptr, seed};
    LayerRun run;
    run.context = &context;
    run.tops = tops_;
    run.replay = replay;
    layer_->Forward(run);
  }

  Layer& layer() { return *layer_; }
  const LayerSetup& setup() const { return setup_; }
  std::vector<float>& value(int top) { return values_[top]; }

 private:
  LayerParameter param_;
  LayerSetup setup_;
  std::unique_ptr<Layer> layer_;
  std::vector<std::vector<float>> values_;
  std::vector<Tensor> tops_;
};

std::string Net(const std::string& path, const std::string& data = "", const std::string& rest = "") {
  return "top: \"data\" top: \"label\" data_param { source: \"" + path + "\" batch_size: 4 " + data + " } " + rest;
}

TEST(DataLayer, DeliversBatchesAndNamesTheirRecords) {
  TemporaryFolder folder;
  testing::WriteImages(folder / "db", 10, 1, 3, 2);
  Driver driver(Net(folder / "db", "backend: LMDB", "transform_param { scale: 0.5 }"));
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
  Driver driver(Net(folder / "db", "shuffle: true threads: 3", "transform_param { mirror: true }"), TRAIN);
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
      Net(folder / "db", "shuffle: true rand_skip: 50 threads: 2", "transform_param { mirror: true crop_size: 3 }");
  Driver whole(net, TRAIN);
  for (int k = 0; k < 5; ++k) whole.Forward();
  Driver resumed(net, TRAIN);
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
  Driver driver("top: \"data\" data_param { source: \"" + folder / "db" + "\" batch_size: 2 }");
  driver.Forward();
  driver.Forward();
  EXPECT_EQ(driver.value(0)[0], 2);
}

TEST(DataLayer, ShapesWithoutTheSource) {
  const auto shape = [](const std::string& rest, size_t warnings) {
    const Driver driver(Net("absent", "", rest));
    EXPECT_EQ(driver.setup().warnings().size(), warnings) << rest;
    return driver.setup().top_specs()[0].shape;
  };
  EXPECT_EQ(shape("transform_param { crop_size: 227 }", 1), (Shape{4, 3, 227, 227}));
  EXPECT_EQ(shape("transform_param { crop_size: 8 mean_value: 5 }", 1), (Shape{4, 3, 8, 8}));
  EXPECT_EQ(shape("transform_param { crop_size: 8 mean_value: 5 mean_value: 6 }", 0), (Shape{4, 2, 8, 8}));
  EXPECT_EQ(shape("transform_param { crop_size: 8 force_gray: true }", 0), (Shape{4, 1, 8, 8}));
  EXPECT_EQ(shape("transform_param { crop_size: 8 force_color: true mean_file: \"absent\" }", 0), (Shape{4, 3, 8, 8}));

  Driver given(Net("absent"), TEST, {{"data", Shape{16, 1, 28, 28}}});
  EXPECT_EQ(given.setup().top_specs()[0].shape, (Shape{16, 1, 28, 28}));
  EXPECT_EQ(given.setup().top_specs()[1].shape, (Shape{16}));
  ExpectThrows<UserError>([&] { given.Forward(); },
                          {"net.prototxt:data_param.source", "\"in\" (Data)", "does not exist"});
  ExpectThrows<UserError>([] { Driver(Net("absent")); },
                          {"net.prototxt:data_param.source", "absent", "--shape=data=4,C,H,W"});
  ExpectThrows<UserError>([] { Driver(Net("absent"), TEST, {{"data", Shape{16}}}); }, {"expected N,C,H,W"});
  ExpectThrows<UserError>(
      [] {
        Driver(Net("absent"), TEST, {{"data", Shape{16, 1, 1, 1}}, {"label", Shape{4}}});
      },
      {"16 labels"});
}

TEST(DataLayer, TheShapeGivenMustFitTheRecords) {
  TemporaryFolder folder;
  testing::WriteImages(folder / "db", 3, 1, 2, 2);
  Driver driver(Net(folder / "db"), TEST, {{"data", Shape{2, 1, 28, 28}}});
  ExpectThrows<UserError>([&] { driver.Forward(); }, {"1x28x28", "1x2x2", "--shape"});
  Driver fits(Net(folder / "db"), TEST, {{"data", Shape{2, 1, 2, 2}}});
  fits.Forward();
  EXPECT_EQ(fits.value(1), (std::vector<float>{0, 1}));
}

TEST(DataLayer, MistakesInTheFileAreNamedWithTheirField) {
  TemporaryFolder folder;
  testing::WriteImages(folder / "db", 3, 1, 2, 2);
  const std::string db = "\"" + folder / "db" + "\"";
  const auto expect = [](const std::string& text, const std::vector<std::string>& parts) {
    SCOPED_TRACE(text);
    ExpectThrows<UserError>([&] { Driver driver(text); }, parts);
  };
  expect("top: \"d\" data_param { batch_size: 4 }", {"net.prototxt:data_param", "source"});
  expect("top: \"d\" data_param { source: " + db + " }", {"net.prototxt:data_param.batch_size", "at least 1"});
  expect("top: \"d\" data_param { source: " + db + " batch_size: 0 }", {"data_param.batch_size"});
  expect(Net(folder / "db", "prefetch: 0"), {"data_param.prefetch", "from 1"});
  expect(Net(folder / "db", "prefetch: 4000000000"), {"data_param.prefetch", "4000000000"});
  expect(Net(folder / "db", "threads: 0"), {"data_param.threads", "from 1"});
  expect(Net(folder / "db", "", "transform_param { mean_file: \"m\" mean_value: 1 }"), {"mean_file and mean_value"});
  expect(Net(folder / "db", "", "transform_param { mean_file: \"no_mean\" }"),
         {"transform_param.mean_file", "no_mean"});
  expect(Net(folder / "db", "", "transform_param { force_color: true force_gray: true }"), {"force_gray"});
  expect(Net(folder / "db", "", "transform_param { crop_size: 3 }"),
         {"data_param.source", "crop_size 3 exceeds", "1x2x2"});
  expect(Net(folder / "db", "", "transform_param { mean_value: 1 mean_value: 2 }"), {"2 mean_value", "1 channel"});
  expect("top: \"a\" top: \"b\" top: \"c\" data_param { source: " + db + " batch_size: 1 }", {"1 to 2 top"});
  expect("bottom: \"x\" " + Net(folder / "db"), {"bottom"});
  testing::WriteFile(folder / "file", "x");
  expect(Net(folder / "file"), {"data_param.source", "is a file"});
}

TEST(DataLayer, FieldsWithoutEffectAreWarnedAbout) {
  TemporaryFolder folder;
  testing::WriteImages(folder / "db", 3, 1, 2, 2);
  const auto warning = [&](const std::string& data, const std::string& rest) {
    const Driver driver(Net(folder / "db", data, rest));
    EXPECT_EQ(driver.setup().warnings().size(), 1u) << data << rest;
    return driver.setup().warnings().empty() ? "" : driver.setup().warnings()[0].ToString();
  };
  EXPECT_NE(warning("force_encoded_color: true", "").find("force_encoded_color"), std::string::npos);
  EXPECT_NE(warning("backend: LEVELDB", "").find("LevelDB"), std::string::npos);
  EXPECT_NE(warning("", "transform_param { force_color: true }").find("compressed images only"), std::string::npos);
  EXPECT_TRUE(Driver(Net(folder / "db", "", "transform_param { force_gray: true }")).setup().warnings().empty());
}

TEST(DataLayer, BadRecordsAreReportedWithLayerAndPlace) {
  TemporaryFolder folder;
  testing::WriteRecords(folder / "db", {testing::ImageDatum(1, 2, 2, 0).SerializeAsString(), "\x08"});
  Driver driver(Net(folder / "db"));
  ExpectThrows<UserError>([&] { driver.Forward(); }, {"net.prototxt:data_param.source", "\"in\" (Data)", "00000001"});
  ExpectThrows<UserError>([&] { driver.Forward(); }, {"00000001"});
}

}  // namespace
}  // namespace crema
