#include "data/convert/convert_kitti.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>

#include "data/convert_testing.h"

namespace crema {
namespace {

using testing::ExpectThrows;
using testing::SilentProgress;
using testing::WriteFile;

constexpr const char* kCar = "Car 0.25 1 -1.5 2 3 22.5 15 1.5 1.625 3.75 -4 1.75 30 0.5\n";
constexpr const char* kPerson = "Pedestrian 0 0 0.25 10 4 14 12 1.75 0.5 0.5 2 1.5 9 -0.25 0.9\n";
constexpr const char* kNothing = "DontCare -1 -1 -10 30 2 40 8 -1 -1 -1 -1000 -1000 -1000 -10\n";

class ConvertKitti : public ::testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(folder_ / "images/more");
    std::filesystem::create_directories(folder_ / "labels");
    Put("images/000001.png", 20, 40);
    Put("images/000002.png", 24, 36);
    Put("images/more/000003.png", 10, 12);
    WriteFile(folder_ / "labels/000001.txt", std::string(kPerson) + kCar + kNothing);
    WriteFile(folder_ / "labels/000002.txt", "");
    WriteFile(folder_ / "labels/000003.txt", kCar);
    conversion_.images = folder_ / "images";
    conversion_.labels = folder_ / "labels";
    conversion_.how.pad_height = 24;
    conversion_.how.pad_width = 40;
  }

  void Put(const std::string& name, int height, int width) {
    WriteFile(folder_ / name, testing::Bytes(EncodePng(testing::Picture(height, height, width, 3))));
  }

  KittiConverted Convert(bool replace = false) {
    SilentProgress progress;
    return crema::ConvertKitti(conversion_, {.database = folder_ / "db", .replace = replace}, &progress.line);
  }

  std::vector<std::string> Keys(const std::string& name) {
    std::vector<std::string> keys;
    OpenRecordSource(folder_ / ("db/" + name))->VisitKeys([&](uint64_t, const std::string& key) {
      keys.push_back(key);
      return true;
    });
    return keys;
  }
  // Of image i, all rows.
  std::vector<float> Labels(uint64_t i) {
    const Datum datum = testing::DatumOf(*OpenRecordSource(folder_ / "db/labels"), i);
    EXPECT_EQ(datum.channels(), 1);
    EXPECT_EQ(datum.width(), 16);
    EXPECT_EQ(datum.height() * 16, datum.float_data_size());
    return {datum.float_data().begin(), datum.float_data().end()};
  }

  TemporaryFolder folder_;
  KittiConversion conversion_;
};

TEST_F(ConvertKitti, WritesWhatDigitsWrites) {
  const KittiConverted done = Convert();
  EXPECT_EQ(done.images.records, 3);
  EXPECT_EQ(done.objects, 3);
  EXPECT_EQ(done.ignored, 1);
  EXPECT_EQ(done.most_rows, 4);
  EXPECT_EQ(Keys("features"), Keys("labels"));
  EXPECT_EQ(Keys("labels")[0], "00000000_000001.png");
  // The farthest first: car (30 m), person (9 m), what is not to count (-1000 m).
  const std::vector<float> rows = Labels(0);
  const std::vector<float> expected = {3,      16,     0,    0,    0,     0,     0,  0,     0,  0,     0,     0,     0,
                                       0,      0,      0,    2,    3,     20.5f, 12, -1.5f, 1,  0,     0.5f,  0.25f, 1,
                                       3.75f,  1.625f, 1.5f, -4,   1.75f, 30,    10, 4,     4,  8,     0.25f, 8,     0,
                                       -0.25f, 0,      0,    0.5f, 0.5f,  1.75f, 2,  1.5f,  9,  30,    2,     10,    6,
                                       -10,    0,      0,    -10,  -1,    -1,    -1, -1,    -1, -1000, -1000, -1000};
  EXPECT_EQ(rows, expected);
  const std::vector<float> none = Labels(1);
  EXPECT_EQ(none[0], 0);
  EXPECT_EQ(none[1], 16);
  EXPECT_EQ(none.size(), 64u);
  EXPECT_EQ(Labels(2)[0], 1);
}

TEST_F(ConvertKitti, PadsWithBlackAtTheRightAndBelow) {
  conversion_.how.encoded = true;
  conversion_.how.format = ImageFormat::kPng;
  Convert();
  const Datum datum = testing::DatumOf(*OpenRecordSource(folder_ / "db/features"), 1);
  EXPECT_TRUE(datum.encoded());
  EXPECT_EQ(datum.height(), 24);
  EXPECT_EQ(datum.width(), 40);
  const std::vector<uint8_t> file(datum.data().begin(), datum.data().end());
  Image image;
  ASSERT_EQ(DecodeImage(file, {}, &image), "");
  const Image original = testing::Picture(24, 24, 36, 3);
  for (int y = 0; y < 24; ++y) {
    for (int x = 0; x < 40 * 3; ++x) EXPECT_EQ(image.row(y)[x], x < 36 * 3 ? original.row(y)[x] : 0);
  }
}

TEST_F(ConvertKitti, BoxesAreResizedWithTheImages) {
  conversion_.how.resize_height = 12;
  conversion_.how.resize_width = 80;
  Convert();
  const std::vector<float> rows = Labels(2);
  EXPECT_EQ(std::vector<float>(rows.begin() + 16, rows.begin() + 20), (std::vector<float>{4, 1.5f, 41, 6}));
  EXPECT_EQ(testing::DatumOf(*OpenRecordSource(folder_ / "db/features"), 2).width(), 80);
}

TEST_F(ConvertKitti, SmallBoxesAndOtherClassesDoNotCount) {
  conversion_.min_side = 5;
  EXPECT_EQ(Convert().objects, 2);
  EXPECT_EQ(Labels(0)[32 + 5], 0);
  conversion_.min_side = 0;
  conversion_.classes = CustomKittiClasses("dontcare, Pedestrian");
  EXPECT_EQ(Convert(true).objects, 1);
  EXPECT_EQ(Labels(0)[16 + 5], 0);
  EXPECT_EQ(Labels(0)[32 + 5], 1);
}

TEST_F(ConvertKitti, ShuffledImagesKeepTheirLabels) {
  conversion_.how.shuffle = true;
  for (int i = 10; i < 30; ++i) {
    const std::string name = std::to_string(i);
    Put("images/" + name + ".png", 20, 40);
    WriteFile(folder_ / ("labels/" + name + ".txt"), "Car 0 0 0 " + name + " 1 40 20 1 1 1 1 1 1 1\n");
  }
  Convert();
  const std::vector<std::string> keys = Keys("labels");
  ASSERT_EQ(keys.size(), 23u);
  EXPECT_EQ(Keys("features"), keys);
  bool in_order = true;
  for (size_t i = 0; i < keys.size(); ++i) {
    const std::string name = keys[i].substr(9, keys[i].find('.') - 9);
    if (name.size() == 2) {
      EXPECT_EQ(Labels(i)[16], std::stof(name));
    }
    in_order = in_order && (i == 0 || keys[i - 1].substr(9) < keys[i].substr(9));
  }
  EXPECT_FALSE(in_order);
}

TEST_F(ConvertKitti, BothDatabasesAreReplacedOrNone) {
  Convert();
  const std::string features = testing::ReadFile(folder_ / "db/features/data.mdb"),
                    labels = testing::ReadFile(folder_ / "db/labels/data.mdb");
  Put("images/000002.png", 20, 30);
  std::string many;
  for (int i = 0; i < 3000; ++i) many += kCar;
  WriteFile(folder_ / "labels/000001.txt", many);
  // Stands for a disk that is full once the images are there.
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before;
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit small = {100'000, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  ExpectThrows<EnvironmentError>([&] { Convert(true); }, {"db/labels"});
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_TRUE(testing::ReadFile(folder_ / "db/features/data.mdb") == features);
  EXPECT_TRUE(testing::ReadFile(folder_ / "db/labels/data.mdb") == labels);
  Convert(true);
  EXPECT_FALSE(testing::ReadFile(folder_ / "db/features/data.mdb") == features);
  EXPECT_FALSE(testing::ReadFile(folder_ / "db/labels/data.mdb") == labels);
}

TEST_F(ConvertKitti, TwoImagesOfOneNameAreRefused) {
  Put("images/more/000001.jpg", 10, 12);
  ExpectThrows<UserError>([&] { Convert(); }, {"images/000001.png\" and \"", "images/more/000001.jpg\" both belong to",
                                               "labels/000001.txt"});
  EXPECT_FALSE(std::filesystem::exists(folder_ / "db"));
}

// As many values do not make it one size.
TEST_F(ConvertKitti, PortraitAndLandscapeDiffer) {
  conversion_.how.pad_height = conversion_.how.pad_width = 0;
  for (const char* name : {"images/000001.png", "images/000002.png"}) Put(name, 10, 12);
  Put("images/more/000003.png", 12, 10);
  ExpectThrows<UserError>([&] { Convert(); }, {"000003.png\" has 3x12x10 values, but", "3x10x12"});
}

TEST_F(ConvertKitti, MistakesAreNamed) {
  conversion_.how.pad_height = 20;
  ExpectThrows<UserError>([&] { Convert(); }, {"000002.png\" is 36 x 24 pixels, larger than --pad_width=40 and "
                                               "--pad_height=20; raise them"});
  conversion_.how.pad_height = conversion_.how.pad_width = 0;
  conversion_.how.size_remedy = "; pad";
  ExpectThrows<UserError>([&] { Convert(); }, {"; pad"});
  std::filesystem::remove(folder_ / "labels/000002.txt");
  ExpectThrows<UserError>([&] { Convert(); },
                          {"images/000002.png\" has no file of labels \"" + (folder_ / "labels/000002.txt")});
  EXPECT_FALSE(std::filesystem::exists(folder_ / "db"));
  WriteFile(folder_ / "labels/000002.txt", std::string(kCar) + "Car 0 0 0 1 2 wide 4 1 1 1 1 1 1 1\n");
  ExpectThrows<UserError>([&] { Convert(); }, {"labels/000002.txt:2:15: error: right \"wide\" is no finite number"});
  WriteFile(folder_ / "labels/000002.txt", "Car 0 0 0 1 2 3 4\n");
  ExpectThrows<UserError>([&] { Convert(); },
                          {"labels/000002.txt:1:17: error: there are 8 values, but KITTI's lines have 15"});
  WriteFile(folder_ / "labels/000002.txt", "Car 0 0 0 5 2 3 4 1 1 1 1 1 1 1\n");
  ExpectThrows<UserError>([&] { Convert(); }, {"the box ends before it begins"});
  WriteFile(folder_ / "labels/000002.txt", "Car 0 0 0 1 2 3 4 1 1 1 1 1 1 1 1 1\n");
  ExpectThrows<UserError>([&] { Convert(); }, {"more than 16 values"});
}

TEST(KittiClassNames, AreNumberedByTheirPlaces) {
  EXPECT_EQ(CustomKittiClasses("dontcare,Car , big truck"),
            (KittiClasses{{"dontcare", 0}, {"car", 1}, {"big truck", 2}}));
  ExpectThrows<UserError>([] { CustomKittiClasses("a,,b"); }, {"class 1 has no name"});
  ExpectThrows<UserError>([] { CustomKittiClasses("a,B,b"); }, {"class \"b\" stands twice"});
  ExpectThrows<UserError>([] { CustomKittiClasses(""); }, {"there are no classes"});
  EXPECT_EQ(DigitsClasses().at("pedestrian"), 8);
}

}  // namespace
}  // namespace crema
