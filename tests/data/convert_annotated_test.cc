#include <gtest/gtest.h>
#include <sys/stat.h>

#include "data/convert_annotated_testing.h"

namespace crema {
namespace {

TEST_F(ConvertAnnotated, WritesWhatTheXmlSays) {
  WriteFile(folder_ / "a.xml",
            Voc(Object("dog", "10 5 30 15") + Object("cat", "0 0 40 20", true) + Object("hound", " 2.5 1 5 2 ")));
  WriteFile(folder_ / "b.xml", Voc(""));
  const AnnotationsConverted done = Convert("a.png a.xml\nb.jpg b.xml\n", Conversion());
  EXPECT_EQ(done.images.records, 2);
  EXPECT_EQ(done.objects, 3);
  EXPECT_EQ(done.clipped + done.empty + done.other_sizes + done.missing + done.tiny, 0);
  EXPECT_EQ(done.bare, 1);
  EXPECT_EQ(OpenRecordSource(folder_ / "db")->Key(1), "00000001_b.jpg");
  const AnnotatedDatum record = Record(0);
  EXPECT_EQ(record.type(), AnnotatedDatum::BBOX);
  EXPECT_EQ(record.datum().label(), -1);
  EXPECT_EQ(record.datum().width(), 40);
  EXPECT_EQ(record.datum().data().size(), 2400u);
  ASSERT_EQ(record.annotation_group_size(), 2);
  EXPECT_EQ(record.annotation_group(0).group_label(), 2);
  ASSERT_EQ(record.annotation_group(0).annotation_size(), 2);
  const Annotation& first = record.annotation_group(0).annotation(0);
  EXPECT_EQ(first.instance_id(), 0);
  EXPECT_EQ(first.bbox().xmin(), 0.25f);
  EXPECT_EQ(first.bbox().ymin(), 0.25f);
  EXPECT_EQ(first.bbox().xmax(), 0.75f);
  EXPECT_EQ(first.bbox().ymax(), 0.75f);
  EXPECT_FALSE(first.bbox().difficult());
  EXPECT_EQ(record.annotation_group(0).annotation(1).instance_id(), 1);
  EXPECT_EQ(record.annotation_group(0).annotation(1).bbox().xmin(), 0.0625f);
  EXPECT_EQ(record.annotation_group(1).group_label(), 1);
  EXPECT_TRUE(record.annotation_group(1).annotation(0).bbox().difficult());
  EXPECT_EQ(Record(1).annotation_group_size(), 0);
}

// SSD asks for them.
TEST_F(ConvertAnnotated, CompressedRecordsSayTheirSize) {
  WriteFile(folder_ / "a.xml", Voc(Object("dog", "10 5 30 15")));
  AnnotatedConversion how = Conversion();
  how.images.encoded = true;
  Convert("b.jpg a.xml\n", how);
  const AnnotatedDatum record = Record(0);
  EXPECT_TRUE(record.datum().encoded());
  EXPECT_EQ(record.datum().data(), ReadFile(folder_ / "b.jpg"));
  EXPECT_EQ(record.datum().channels(), 3);
  EXPECT_EQ(record.datum().height(), 20);
  EXPECT_EQ(record.datum().width(), 40);
}

TEST_F(ConvertAnnotated, BoxesKeepTheirSharesWhereImagesAreResized) {
  WriteFile(folder_ / "a.xml", Voc(Object("dog", "10 5 30 15")));
  const auto size_with = [&](int min_dim, int max_dim, const std::string& name) {
    AnnotatedConversion how = Conversion();
    how.images.min_dim = min_dim;
    how.images.max_dim = max_dim;
    Convert("a.png a.xml\n", how, name);
    const AnnotatedDatum record = Record(0, name);
    EXPECT_EQ(record.annotation_group(0).annotation(0).bbox().xmax(), 0.75f);
    return std::to_string(record.datum().width()) + "x" + std::to_string(record.datum().height());
  };
  EXPECT_EQ(size_with(30, 0, "larger"), "60x30");
  EXPECT_EQ(size_with(10, 0, "large_enough"), "40x20");
  EXPECT_EQ(size_with(0, 30, "smaller"), "30x15");
  EXPECT_EQ(size_with(30, 50, "bounded"), "50x25");
}

TEST_F(ConvertAnnotated, BoxesAtFaultAreCutOrLeftOutAndCounted) {
  WriteFile(folder_ / "a.xml", Voc(Object("dog", "-4 5 44 15") + Object("cat", "10 10 10 15") +
                                   Object("dog", "41 5 50 15") + Object("dog", "20 10 40 20")));
  const AnnotationsConverted done = Convert("a.png a.xml\nb.jpg none.xml\n", Conversion());
  EXPECT_EQ(done.images.records, 2);
  EXPECT_EQ(done.objects, 2);
  EXPECT_EQ(done.clipped, 1);
  EXPECT_EQ(done.empty, 2);
  EXPECT_EQ(done.missing, 1);
  const AnnotatedDatum record = Record(0);
  ASSERT_EQ(record.annotation_group_size(), 1);
  ASSERT_EQ(record.annotation_group(0).annotation_size(), 2);
  EXPECT_EQ(record.annotation_group(0).annotation(0).bbox().xmin(), 0);
  EXPECT_EQ(record.annotation_group(0).annotation(0).bbox().xmax(), 1);
  EXPECT_EQ(record.annotation_group(0).annotation(1).instance_id(), 1);
  ExpectSaid("a.xml:3: the box -4 5 44 15 of class \"dog\" reaches over the border of the image, which is 40 x 20");
  ExpectSaid("a.xml:8: the box 10 10 10 15 of class \"cat\" is empty; it is left out");
  ExpectSaid("a.xml:13: the box 41 5 50 15 of class \"dog\" lies outside of the image");
  ExpectSaid("none.xml\" does not exist: its image is written without objects");
}

TEST_F(ConvertAnnotated, SharesInThePlaceOfPixelsAreTold) {
  WriteFile(folder_ / "a.xml", Voc(Object("dog", "0.1 0.1 0.9 0.8") + Object("dog", "0 0 2 1")));
  const AnnotationsConverted done = Convert("a.png a.xml\n", Conversion());
  EXPECT_EQ(done.objects, 2);
  EXPECT_EQ(done.tiny, 1);
  EXPECT_EQ(done.bare, 0);
  ExpectSaid("a.xml:3: the box 0.1 0.1 0.9 0.8 of class \"dog\" is no larger than a pixel; corners are pixels");
}

TEST_F(ConvertAnnotated, AnotherSizeIsTakenAsTheXmlSaysIt) {
  WriteFile(folder_ / "a.xml", Voc(Object("dog", "10 5 30 15"), "80"));
  WriteFile(folder_ / "b.xml", Voc(Object("dog", "10 5 30 15"), "0"));
  const AnnotationsConverted done = Convert("a.png a.xml\nb.jpg b.xml\n", Conversion());
  EXPECT_EQ(done.other_sizes, 1);
  ExpectSaid("a.xml: says that the image is 80 x 20 pixels, but it is 40 x 20 pixels");
  EXPECT_EQ(Record(0).annotation_group(0).annotation(0).bbox().xmax(), 0.375f);
  EXPECT_EQ(Record(1).annotation_group(0).annotation(0).bbox().xmax(), 0.75f);
}

// Of programs that leave Exif's orientation alone, whose <size> is that of the file.
TEST_F(ConvertAnnotated, BoxesOfTheStoredImageAreTurnedWithIt) {
  // Turned from 40 x 20 to 20 x 40, in pixels.
  const float expected[][4] = {{4, 2, 10, 30}, {10, 2, 16, 30}, {10, 10, 16, 38}, {4, 10, 10, 38}};
  WriteFile(folder_ / "a.xml", Voc(Object("dog", "2 4 30 10")));
  for (int orientation = 5; orientation <= 8; ++orientation) {
    WriteFile(folder_ / "turned.jpg",
              testing::Bytes(testing::WithOrientation(EncodeJpeg(testing::Picture(2, 20, 40, 3)), orientation)));
    const std::string name = "db" + std::to_string(orientation);
    const AnnotationsConverted done = Convert("turned.jpg a.xml\n", Conversion(), name);
    EXPECT_EQ(done.turned, 1);
    EXPECT_EQ(done.other_sizes, 0);
    EXPECT_EQ(done.objects, 1);
    ExpectSaid("a.xml: says that the image is 40 x 20 pixels, as it is stored; Exif's orientation, " +
               std::to_string(orientation) + ", turns it to 20 x 40 pixels, and the boxes with it");
    const NormalizedBBox box = Record(0, name).annotation_group(0).annotation(0).bbox();
    const float* corners = expected[orientation - 5];
    EXPECT_FLOAT_EQ(box.xmin() * 20, corners[0]) << orientation;
    EXPECT_FLOAT_EQ(box.ymin() * 40, corners[1]) << orientation;
    EXPECT_FLOAT_EQ(box.xmax() * 20, corners[2]) << orientation;
    EXPECT_FLOAT_EQ(box.ymax() * 40, corners[3]) << orientation;
  }
}

TEST_F(ConvertAnnotated, JsonIsTold) {
  AnnotatedConversion yolo;
  yolo.format = AnnotatedConversion::Format::kYolo;
  for (const char* text : {"{\"images\": [1, 2], \"categories\": []}", " [\n {\"id\": 1}]\n", "{\n\n \"images\": 1}"}) {
    for (const auto& how : {Conversion(), yolo}) {
      ExpectThrows<UserError>([&] { Convert(text, how); }, {"list.txt", "is JSON, as COCO's", "--label_type=yolo"});
    }
  }
  WriteFile(folder_ / "{a}.png", ReadFile(folder_ / "a.png"));
  WriteFile(folder_ / "a.xml", Voc(Object("dog", "2 4 30 10")));
  EXPECT_EQ(Convert("{a}.png a.xml\n", Conversion()).objects, 1);
  WriteFile(folder_ / "a.xml", "{\"shapes\": []}");
  ExpectThrows<UserError>([&] { Convert("a.png a.xml\n", Conversion(), "other"); }, {"a.xml:1", "is JSON; expected"});
}

TEST_F(ConvertAnnotated, NumbersOfTheXmlAreReadWhole) {
  WriteFile(folder_ / "a.xml", Voc(Object("dog", "1e1 5 +3e1 15"), " 4e1 "));
  WriteFile(folder_ / "b.xml", Voc(Object("dog", "10 5 30 15"), "80.0"));
  EXPECT_EQ(Convert("a.png a.xml\nb.jpg b.xml\n", Conversion()).other_sizes, 1);
  EXPECT_EQ(Record(0).annotation_group(0).annotation(0).bbox().xmin(), 0.25f);
  EXPECT_EQ(Record(0).annotation_group(0).annotation(0).bbox().xmax(), 0.75f);
  EXPECT_EQ(Record(1).annotation_group(0).annotation(0).bbox().xmax(), 0.375f);
  for (const char* width : {"40px", "4 0", "40.5", "-40", "1e9", "nan", "0x28"}) {
    WriteFile(folder_ / "a.xml", Voc(Object("dog", "10 5 30 15"), width));
    ExpectThrows<UserError>([&] { Convert("a.png a.xml\n", Conversion(), "other"); },
                            {"a.xml:2", "<width> of <size> is \"" + std::string(width) + "\"", "a whole number"});
  }
}

TEST_F(ConvertAnnotated, WhatIsDifficultIsSaidInSeveralWays) {
  const auto convert = [&](const std::string& word, const std::string& name) {
    std::string xml = Voc(Object("dog", "10 5 30 15"));
    xml.replace(xml.find("<difficult>0"), 12, "<difficult>" + word);
    WriteFile(folder_ / "a.xml", xml);
    Convert("a.png a.xml\n", Conversion(), name);
    return Record(0, name).annotation_group(0).annotation(0).bbox().difficult();
  };
  int number = 0;
  for (const char* word : {"1", " 1 ", "True", "true"}) EXPECT_TRUE(convert(word, std::to_string(++number))) << word;
  for (const char* word : {"0", "", "False", "Unspecified"}) {
    EXPECT_FALSE(convert(word, std::to_string(++number))) << word;
  }
  ExpectThrows<UserError>([&] { convert("2", "other"); }, {"a.xml:5", "<difficult> is \"2\"; expected 0 or 1"});
}

TEST_F(ConvertAnnotated, NotesBeyondTheFirstAreCounted) {
  std::string objects;
  for (int i = 0; i < 25; ++i) objects += Object("dog", "30 5 60 15");
  WriteFile(folder_ / "a.xml", Voc(objects));
  EXPECT_EQ(Convert("a.png a.xml\n", Conversion()).clipped, 25);
  ExpectSaid("and 5 more such notes");
}

TEST_F(ConvertAnnotated, MistakesEndTheConversion) {
  const auto expect = [&](const std::string& xml, const std::vector<std::string>& parts) {
    WriteFile(folder_ / "a.xml", xml);
    ExpectThrows<UserError>([&] { Convert("b.jpg a.xml\na.png a.xml\n", Conversion()); }, parts);
    EXPECT_FALSE(std::filesystem::exists(folder_ / "db"));
  };
  expect(Voc(Object("cat", "1 2 3 4") + Object("hoond", "1 2 3 4")),
         {"a.xml:9", "unknown class \"hoond\"", "map.prototxt", "did you mean \"hound\"?"});
  expect("<annotation>\n<object>\n", {"a.xml:", "is no XML: "});
  expect("<other/>", {"a.xml:1", "has no <annotation>"});
  expect(Voc("<object><bndbox/></object>"), {"a.xml:3", "has no <name>"});
  expect(Voc(Object("dog", "1 2 3")), {"a.xml:3", "has no <ymax>"});
  expect(Voc(Object("dog", "1 2 x 3")), {"a.xml:6", "<xmax> is \"x\""});
  AnnotatedConversion how = Conversion();
  how.labels.reset();
  ExpectThrows<UserError>([&] { Convert("a.png a.xml\n", how); }, {"--label_map_file"});
  ExpectThrows<UserError>([&] { Convert("a.png\n", Conversion()); }, {"list.txt:1", "expected \"image annotation\""});
  ExpectThrows<UserError>([&] { Convert("\n", Conversion()); }, {"names no image"});
}

TEST_F(ConvertAnnotated, NeedsAnyAnnotations) {
  ExpectThrows<UserError>(
      [&] { Convert("a.png a.xlm\nb.jpg b.xlm\n", Conversion()); },
      {"none of the files of annotations exists (2 in", "a.xlm", "correct ROOTFOLDER", "extension"});
  EXPECT_FALSE(std::filesystem::exists(folder_ / "db"));
}

TEST_F(ConvertAnnotated, APipeIsNotWaitedFor) {
  ASSERT_EQ(mkfifo((folder_ / "a.xml").c_str(), 0600), 0);
  ExpectThrows<UserError>([&] { Convert("a.png a.xml\n", Conversion()); }, {"a.xml", "is a named pipe"});
}

TEST_F(ConvertAnnotated, NamesMayLackTheBackground) {
  WriteFile(folder_ / "coco.names", "cat\ndog\n");
  EXPECT_EQ(ReadClassNames(folder_ / "coco.names", 2), (std::vector<std::string>{"cat", "dog"}));
  EXPECT_EQ(ReadClassNames(folder_ / "coco.names", 3), (std::vector<std::string>{"background", "cat", "dog"}));
  EXPECT_EQ(ReadClassNames(folder_ / "coco.names", 4), (std::vector<std::string>{"cat", "dog"}));
  // A LabelMap says which number is whose.
  EXPECT_EQ(ReadClassNames(folder_ / "map.prototxt", 4).size(), 3u);
  ExpectThrows<UserError>([&] { ReadLabelMap(folder_ / "coco.names", false); }, {"holds names without their labels"});
}

TEST_F(ConvertAnnotated, LabelMapsAreChecked) {
  const std::string path = folder_ / "other.prototxt";
  ExpectThrows<UserError>([&] { ReadLabelMap(folder_ / "map.prototxt", true); }, {"label 2 stands twice", "\"hound\""});
  WriteFile(path, "item { name: \"cat\" label: 1 } item { name: \"cat\" label: 3 }");
  ExpectThrows<UserError>([&] { ReadLabelMap(path, false); }, {path, "\"cat\" stands twice, for label 1 and for 3"});
  WriteFile(path, "item { nam: \"cat\" }");
  ExpectThrows<UserError>([&] { ReadLabelMap(path, false); }, {path + ":1"});
  WriteFile(path, "item { name: \"cat\" label: 1 } item { name: \"cat\" label: 1 }");
  EXPECT_EQ(ReadLabelMap(path, false).label_of.at("cat"), 1);
}

TEST_F(ConvertAnnotated, ThreadsDoNotChangeTheDatabase) {
  std::string list;
  for (int i = 0; i < 30; ++i) {
    const std::string number = std::to_string(i);
    WriteFile(folder_ / (number + ".xml"), Voc(Object("dog", number + " 5 39 15") + Object("cat", "1 1 50 9")));
    list += (i % 2 == 0 ? "a.png " : "b.jpg ") + number + ".xml\n";
  }
  std::string bytes, said;
  for (const int threads : {1, 3}) {
    AnnotatedConversion how = Conversion();
    how.images.threads = threads;
    how.images.shuffle = true;
    const std::string name = "db" + std::to_string(threads);
    EXPECT_EQ(Convert(list, how, name).objects, 60);
    EXPECT_TRUE(bytes.empty() || ReadFile(folder_ / (name + "/data.mdb")) == bytes);
    bytes = ReadFile(folder_ / (name + "/data.mdb"));
    said_.resize(said_.find(folder_ / name));
    EXPECT_TRUE(said.empty() || said == said_) << said << said_;
    said = said_;
  }
}

}  // namespace
}  // namespace crema
