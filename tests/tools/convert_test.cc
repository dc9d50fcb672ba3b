// The dataset programs as a user runs them: what they say, exit codes, and what a kill leaves behind.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <fstream>
#include <iterator>
#include <thread>

#include "crema/files.h"
#include "image/codec.h"
#include "tools/patterns.h"
#include "tools/program.h"

namespace crema::testing_tools {
namespace {

namespace fs = std::filesystem;

constexpr int kPerClass = 150;

class DatasetPrograms : public testing::Test {
 protected:
  void SetUp() override {
    if (!fs::exists(CREMA_BIN_DIR "/convert_imageset")) GTEST_SKIP() << "convert_imageset is not built";
    Image image;
    image.Resize(40, 50, 3);
    for (const char* name : {"cat", "dog"}) {
      fs::create_directories(folder_ / "pets" / name);
      for (int i = 0; i < kPerClass; ++i) {
        for (size_t k = 0; k < image.size(); ++k) image.pixels[k] = static_cast<uint8_t>(k / 20 + i + name[0]);
        const std::vector<uint8_t> bytes = EncodeJpeg(image);
        std::ofstream(folder_ / "pets" / name / (std::to_string(i) + ".jpg"), std::ios::binary)
            .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
      }
    }
  }

  Finished Run(const std::vector<std::string>& words, bool on_terminal = false) {
    return RunProgram(words, {.folder = folder_.path(), .on_terminal = on_terminal});
  }

  // Whether a whole database of `records` lies there.
  bool Whole(const std::string& database, int records) {
    const Finished verify = Run({"db_tool", "verify", database});
    return verify.exit_code == 0 && verify.out.find("all " + std::to_string(records) + " ") != std::string::npos;
  }

  // The line of the first record's fields.
  std::string LabelOf(const std::string& database) {
    const std::string fields = Run({"db_tool", "peek", database, "--index=0"}).out;
    const size_t at = fields.find("label: ");
    return at == std::string::npos ? fields : fields.substr(at, fields.find('\n', at) - at);
  }

  ScratchFolder folder_;
};

TEST_F(DatasetPrograms, FromPhotographsToDatabases) {
  const Finished converted =
      Run({"convert_imageset", "--shorter_side=32", "--split=train:0.9,val:0.1", "--shuffle", "pets", "db/pets"});
  EXPECT_EQ(converted.exit_code, 1) << converted.err;  // there is no folder db
  fs::create_directory(folder_ / "db");
  const Finished again =
      Run({"convert_imageset", "--shorter_side=32", "--split=train:0.9,val:0.1", "--shuffle", "pets", "db/pets"});
  ASSERT_EQ(again.exit_code, 0) << again.err;
  for (const char* text : {"300 images of 2 classes", "db/pets_train_lmdb: 270 records", "db/pets_val_lmdb: 30 records",
                           "db/pets_labels.txt: 2 classes", "300 images, ", "images/s",
                           "class     train       val\ncat         135        15\n"}) {
    EXPECT_TRUE(again.Says(text)) << text << " not in " << again.err;
  }
  const Finished mean = Run({"compute_image_mean", "db/pets_train_lmdb", "mean.binaryproto"});
  EXPECT_EQ(mean.exit_code, 0) << mean.err;
  EXPECT_EQ(std::count(mean.out.begin(), mean.out.end(), '\n'), 6) << mean.out;
  EXPECT_EQ(mean.out.find("mean_value: "), 0u);
  EXPECT_NE(mean.out.find("\nstd_value: "), std::string::npos);
  EXPECT_TRUE(fs::exists(folder_ / "mean.binaryproto"));
  EXPECT_EQ(Run({"compute_image_mean", "db/pets_train_lmdb", "mean.binaryproto"}).exit_code, 2);
  const Finished nowhere = Run({"compute_image_mean", "absent", "no/mean.binaryproto"});  // told first
  EXPECT_EQ(nowhere.exit_code, 1);
  EXPECT_TRUE(nowhere.Says("cannot create no/mean.binaryproto")) << nowhere.err;
  folder_.Write("old/CURRENT", "MANIFEST-000002\n");
  const Finished old = Run({"compute_image_mean", "--backend=leveldb", "old", "old.binaryproto"});
  EXPECT_TRUE(old.Says("is a LevelDB, and only LMDB is read; convert it once with: db_tool convert")) << old.err;
  EXPECT_EQ(Run({"compute_image_mean", "--backend=hdf5", "old"}).exit_code, 2);
  const Finished over = Run({"compute_image_mean", "--force", "db/pets_train_lmdb", "db/pets_train_lmdb/data.mdb"});
  EXPECT_EQ(over.exit_code, 2);
  EXPECT_TRUE(over.Says("lies in \"db/pets_train_lmdb\", which is read")) << over.err;

  const Finished info = Run({"db_tool", "info", "db/pets_val_lmdb", "--labels=db/pets_labels.txt"});
  EXPECT_NE(info.out.find("records: 30\n"), std::string::npos) << info.out;
  EXPECT_NE(info.out.find("3x32x40"), std::string::npos) << info.out;
  EXPECT_NE(info.out.find("15  dog"), std::string::npos) << info.out;
  EXPECT_TRUE(Whole("db/pets_train_lmdb", 270));
  EXPECT_EQ(Run({"db_tool", "export", "db/pets_val_lmdb", "look", "--limit=7"}).exit_code, 0);
  size_t files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder_ / "look")) files += entry.is_regular_file();
  EXPECT_EQ(files, 7u);
  const Finished peek = Run({"db_tool", "peek", "db/pets_val_lmdb", "2"});
  EXPECT_NE(peek.out.find("record 1\n"), std::string::npos) << peek.out;
}

TEST_F(DatasetPrograms, NumberClassesAsAnotherDatabase) {
  folder_.Write("labels.txt", "dog\nowl\ncat\n");
  const Finished images = Run({"convert_imageset", "--labels=labels.txt", "--encoded", "pets", "pets_lmdb"});
  ASSERT_EQ(images.exit_code, 0) << images.err;
  EXPECT_TRUE(images.Says("note: the records lie in the order of their classes") && images.Says("pass --shuffle"));
  EXPECT_EQ(ReadText(folder_ / "pets_labels.txt"), "dog\nowl\ncat\n");
  EXPECT_EQ(LabelOf("pets_lmdb"), "label: 2");
  folder_.Write("wrong.txt", "cat\ndog\n");
  const Finished info = Run({"db_tool", "info", "pets_lmdb", "--labels=wrong.txt"});
  EXPECT_EQ(info.exit_code, 2);
  EXPECT_TRUE(info.Says("has \"dog\" as class 0")) << info.err;
  folder_.Write("t.csv", "1,cat\n2,dog\n");
  EXPECT_EQ(Run({"convert_csv", "--labels=labels.txt", "t.csv", "t_lmdb"}).exit_code, 0);
  EXPECT_EQ(LabelOf("t_lmdb"), "label: 2");
  EXPECT_TRUE(Run({"convert_csv", "--labels=labels.txt", "--label_columns=0", "t.csv", "u"}).Says("leave it out"));
  // Its own file of before is no obstacle.
  EXPECT_EQ(
      Run({"convert_imageset", "--labels=pets_labels.txt", "--force", "--shuffle", "pets", "pets_lmdb"}).exit_code, 0);
  folder_.Write("few.txt", "dog\n");
  EXPECT_TRUE(Run({"convert_imageset", "--labels=few.txt", "pets", "few"}).Says("pets/cat: error: is none of the 1"));
}

// For nets that are to be used on them.
TEST_F(DatasetPrograms, RowsWithoutLabelsAreExtractedFrom) {
  folder_.Write("rows.csv", "id,a,b\nx,1.5,2\ny,3,4\n");
  const Finished csv = Run({"convert_csv", "--label_column=none", "--skip_columns=id", "rows.csv", "rows_lmdb"});
  ASSERT_EQ(csv.exit_code, 0) << csv.err;
  folder_.Write("net.prototxt", R"(
    layer { name: "x" type: "Input" top: "x" input_param { shape { dim: 1 dim: 2 dim: 1 dim: 1 } } }
    layer { name: "y" type: "InnerProduct" bottom: "x" top: "y" inner_product_param { num_output: 1 bias_term: false } }
  )");
  NetParameter net;
  LayerParameter& layer = *net.add_layer();
  layer.set_name("y");
  BlobProto& weights = *layer.add_blobs();
  for (const int extent : {1, 2}) weights.mutable_shape()->add_dim(extent);
  for (const float weight : {1.0f, 10.0f}) weights.add_data(weight);
  folder_.Write("net.caffemodel", net.SerializeAsString());
  const Finished extract = Run({"crema", "extract", "--model=net.prototxt", "--weights=net.caffemodel",
                                "--output=y.csv", "rows_lmdb", "--threads=1"});
  ASSERT_EQ(extract.exit_code, 0) << extract.err;
  EXPECT_EQ(ReadText(folder_ / "y.csv"), "record,label,0\n00000000,,21.5\n00000001,,43\n");
}

TEST_F(DatasetPrograms, ReportBrokenImagesAndGoOn) {
  std::ofstream(folder_ / "pets/cat/broken.jpg") << "text";
  fs::resize_file(folder_ / "pets/dog/7.jpg", 300);
  const Finished skip = Run({"convert_imageset", "pets", "db"});
  EXPECT_EQ(skip.exit_code, 0) << skip.err;
  EXPECT_TRUE(skip.Says("pets/cat/broken.jpg") && skip.Says("pets/dog/7.jpg")) << skip.err;
  EXPECT_TRUE(skip.Says("2 of 301 images were broken")) << skip.err;
  const std::string convert = (fs::path(CREMA_BIN_DIR) / "convert_imageset").string();
  EXPECT_EQ(Run({"/bin/sh", "-c", "'" + convert + "' pets quiet_lmdb 2>&-"}).exit_code, 0);
  EXPECT_TRUE(Whole("quiet_lmdb", 299)) << "messages went into the database";
  const Finished fail = Run({"convert_imageset", "--broken=fail", "pets", "other"});
  EXPECT_EQ(fail.exit_code, 2);
  EXPECT_TRUE(fail.Says("pets/cat/broken.jpg")) << fail.err;
  EXPECT_FALSE(fs::exists(folder_ / "other"));
}

TEST_F(DatasetPrograms, FromBoxesToDatabases) {
  const auto voc = [](const std::string& name, const std::string& xmax) {
    return "<annotation><size><width>50</width><height>40</height></size><object><name>" + name +
           "</name><bndbox><xmin>5</xmin><ymin>4</ymin><xmax>" + xmax +
           "</xmax><ymax>40</ymax></bndbox></object></annotation>";
  };
  folder_.Write("0.xml", voc("cat", "25"));
  folder_.Write("1.xml", voc("dog", "60"));
  folder_.Write("2.xml", voc("dog", "5"));
  folder_.Write("list.txt", "pets/cat/0.jpg 0.xml\npets/dog/1.jpg 1.xml\npets/dog/2.jpg 2.xml\n");
  folder_.Write("map.prototxt", "item { name: 'cat' label: 1 } item { name: 'dog' label: 2 }");
  const std::vector<std::string> words = {
      "convert_annoset", "--label_map_file=map.prototxt", "--encoded", ".", "list.txt", "db"};
  const Finished converted = Run(words);
  ASSERT_EQ(converted.exit_code, 0) << converted.err;
  for (const char* text :
       {"1.xml:1: the box 5 4 60 40 of class \"dog\" reaches over the border", "2.xml:1: the box", "db: 3 records",
        "\n2 objects", "1 of their boxes reached over the border", "1 objects were left out"}) {
    EXPECT_TRUE(converted.Says(text)) << text << " not in " << converted.err;
  }
  EXPECT_TRUE(Whole("db", 3));
  const Finished info = Run({"db_tool", "info", "db"});
  EXPECT_NE(info.out.find("objects: 2, at most 1 of a record, 0 difficult"), std::string::npos) << info.out;
  EXPECT_NE(info.out.find("labels: 1 to 2, 2 different"), std::string::npos) << info.out;
  for (const char* names :
       {"cat\ndog\n", "background\ncat\ndog\n", "item { name: 'cat' label: 1 } item { name: 'dog' label: 2 }"}) {
    folder_.Write("cats.names", names);
    const std::string named = Run({"db_tool", "info", "db", "--labels=cats.names"}).out;
    EXPECT_TRUE(Matches(named, "1 +1 +cat\n +2 +1 +dog\n")) << named;
  }
  const Finished peek = Run({"db_tool", "peek", "db"});
  EXPECT_NE(peek.out.find("object: label 1 instance 0 box 0.1 0.1 0.5 1\n"), std::string::npos) << peek.out;
  const Finished anchors = Run({"compute_anchors", "--input=100x200", "--count=2", "db"});
  EXPECT_EQ(anchors.out, "biases: [80, 90, 180, 90]\n") << anchors.err;
  EXPECT_TRUE(anchors.Says("db: 2 objects, which the likest anchor overlaps by 1.000 in the mean")) << anchors.err;
  EXPECT_EQ(Run({"compute_anchors", "--input=100x200", "--count=1", "--cell=16", "db"}).out, "biases: [11.25, 5.63]\n");
  EXPECT_EQ(Run({"db_tool", "export", "db", "look", "--draw", "--limit=1"}).exit_code, 0);
  EXPECT_TRUE(fs::exists(folder_ / "look/00000000.jpg"));
  const Finished again = Run(words);
  EXPECT_EQ(again.exit_code, 2);
  EXPECT_TRUE(again.Says("--force")) << again.err;
  folder_.Write("2.xml", voc("dgo", "5"));
  const Finished unknown = Run({"convert_annoset", "--label_map_file=map.prototxt", ".", "list.txt", "other"});
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_TRUE(unknown.Says("2.xml:1: ") && unknown.Says("did you mean \"dog\"?")) << unknown.err;
  EXPECT_FALSE(fs::exists(folder_ / "other"));
}

TEST_F(DatasetPrograms, FromKittisLabelsToDatabases) {
  for (const char* folder : {"few", "labels"}) fs::create_directories(folder_ / folder);
  for (const char* name : {"0.jpg", "1.jpg", "2.jpg"})
    fs::copy_file(folder_ / "pets/cat" / name, folder_ / "few" / name);
  folder_.Write("labels/0.txt", "Car 0 0 0 5 4 25 30 1 1 1 1 1 9 0\nVan 0 0 0 1 1 6 9 1 1 1 1 1 9 0\n");
  folder_.Write("labels/1.txt", "");
  folder_.Write("labels/2.txt", "Tree 0 0 0 5 4 25 30 1 1 1 1 1 9 0\n");
  const std::vector<std::string> words = {
      "convert_kitti", "--pad_width=64", "--pad_height=64", "--min_box_size=7", "few", "labels", "db"};
  const Finished converted = Run(words);
  ASSERT_EQ(converted.exit_code, 0) << converted.err;
  EXPECT_TRUE(converted.Says("1 objects, 2 more of class 0, which do not count; labels are 1 x 3 x 16"))
      << converted.err;
  EXPECT_TRUE(Whole("db/features", 3) && Whole("db/labels", 3));
  const Finished again = Run(words);
  EXPECT_EQ(again.exit_code, 2);
  EXPECT_TRUE(again.Says("--force")) << again.err;
  const Finished trees = Run({"convert_kitti", "--pad_width=64", "--pad_height=64", "--custom_classes=none,tree",
                              "--force", "few", "labels", "db"});
  EXPECT_EQ(trees.exit_code, 0) << trees.err;
  EXPECT_TRUE(trees.Says("1 objects, 2 more of class 0")) << trees.err;
}

TEST_F(DatasetPrograms, ConvertTablesAndTexts) {
  folder_.Write("t.csv", "a,b,kind\n1,2.5,owl\n3,4,tit\n5,6,owl\n7,8,tit\n");
  const Finished csv = Run({"convert_csv", "--label_column=kind", "--split=train:0.5,val:0.5", "t.csv", "birds"});
  EXPECT_EQ(csv.exit_code, 0) << csv.err;
  EXPECT_TRUE(csv.Says("2x1x1 floats a record, labels in \"kind\"")) << csv.err;
  EXPECT_TRUE(Whole("birds_train_lmdb", 2) && Whole("birds_val_lmdb", 2));
  EXPECT_EQ(ReadText(folder_ / "birds_labels.txt"), "owl\ntit\n");
  folder_.Write("t.txt", std::string(100, 'a') + "b\n");
  const Finished text = Run({"convert_text", "--streams=4", "--vocabulary=v.txt", "t.txt", "text"});
  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_TRUE(text.Says("102 characters, 0 of them unknown") && text.Says("v.txt: 3 different")) << text.err;
  EXPECT_TRUE(Whole("text", 25));
}

TEST_F(DatasetPrograms, ShowProgressOnATerminal) {
  if (!TerminalsExist()) GTEST_SKIP() << "this system has no pseudo-terminals";
  const Finished done = Run({"convert_imageset", "--resize_height=400", "--resize_width=400", "pets", "db"}, true);
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_TRUE(done.Says("\r\x1b[K") && done.Says("/300 images ") && done.Says(" left")) << done.err;
}

TEST_F(DatasetPrograms, TeachOnMistakes) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"convert_imageset"}, "expected ROOTFOLDER LISTFILE DB, or FOLDER DB"},
      {{"convert_imageset", "--resise_width=3", "pets", "db"}, "did you mean \"--resize_width\"?"},
      {{"convert_imageset", "--backend=leveldb", "pets", "db"}, "db_tool convert"},
      {{"convert_imageset", "--encode_type=gif", "pets", "db"}, "expected jpg, jpeg or png"},
      {{"convert_imageset", "--split=train:0.9", "pets", "db"}, "add up to 0.9"},
      {{"convert_imageset", "--resize_width=3", "pets", "db"}, "--resize_height"},
      {{"convert_imageset", "--broken=maybe", "pets", "db"}, "expected skip or fail"},
      {{"convert_imageset", "absent", "db"}, "is no folder"},
      {{"convert_imageset", "pets", "absent.txt", "db"}, "\"absent.txt\" does not exist; expected a list"},
      {{"convert_imageset", "--label_count=2", "pets", "db"}, "has classes only"},
      {{"convert_imageset", "--labels=l.txt", "pets", "list.txt", "db"}, "the lines of a list have numbers"},
      {{"convert_csv", "--split_in_order", "t.csv", "db"}, "--split"},
      {{"convert_imageset", "--label_count=65537", "pets", "list.txt", "db"}, "65536"},
      {{"convert_annoset", "pets", "db"}, "expected ROOTFOLDER, LISTFILE and DB"},
      {{"convert_annoset", "--anno_type=classification", ".", "l.txt", "db"}, "convert_imageset"},
      {{"convert_annoset", "--label_type=json", ".", "l.txt", "db"}, "expected xml, txt or yolo"},
      {{"convert_annoset", "--label_map_file=absent", ".", "l.txt", "db"}, "absent"},
      {{"convert_kitti", "pets", "db"}, "expected IMAGES, LABELS and DB"},
      {{"convert_kitti", "--encode_type=gif", "pets", "pets", "db"}, "expected png, jpg or raw"},
      {{"convert_kitti", "--custom_classes=a,a", "pets", "pets", "db"}, "class \"a\" stands twice; give names"},
      {{"convert_kitti", "pets/cat", "absent", "db"}, "\"absent\" is no folder; expected that of the labels"},
      {{"convert_kitti", "pets/cat", "pets", "db"}, "has no file of labels \"pets/0.txt\""},
      {{"convert_kitti", "absent", "pets", "db"}, "\"absent\" is no folder; expected that of the images"},
      {{"compute_image_mean", "absent"}, "does not exist"},
      {{"compute_image_mean", "a", "b", "c"}, "got a, b, c"},
      {{"compute_image_mean", "absent", ""}, "the path of OUTPUT_FILE is empty"},
      {{"db_tool", "look", "db"}, "expected info, verify, peek, export or convert"},
      {{"db_tool", "info", "absent"}, "does not exist"},
      {{"db_tool", "convert", "absent"}, "expected db_tool convert LEVELDB DB"},
      {{"db_tool", "convert", "absent", "db"}, "does not exist; expected the folder of a LevelDB"},
      {{"convert_cifar_data", "pets", "."}, "data_batch_1.bin"},
      {{"convert_csv", "absent.csv", "db"}, "does not exist"},
      {{"convert_csv", "--features_shape=3,2", "absent.csv", "db"}, "expected channels,height,width"},
      {{"convert_csv", "--features_shape=4294967297,1,1", "absent.csv", "db"}, "expected channels,height,width"},
      {{"convert_csv", "--features_shape=3,2,1x", "absent.csv", "db"}, "expected channels,height,width"},
      {{"convert_csv", "pets", "db"}, "is a folder"},
      {{"convert_csv", "--text_column=text", "absent.csv", "db"}, "needs --vocabulary=FILE and --steps=N"},
      {{"convert_csv", "--text_column=text", "--features_shape=1,2,3", "absent.csv", "db"},
       "is for columns of numbers"},
      {{"convert_csv", "--steps=9", "absent.csv", "db"}, "--steps has no effect without --text_column"},
      {{"compute_anchors", "db"}, "--input=HxW is missing"},
      {{"compute_anchors", "--input=416", "db"}, "as in --input=416x416"},
      {{"compute_anchors", "--input=416x0", "db"}, "as in --input=416x416"},
      {{"compute_anchors", "--input=416x416", "absent"}, "does not exist"},
      {{"convert_text", "text", "db"}, "--streams=N is missing"},
      {{"convert_text", "--streams=0", "--vocabulary=v", "text", "db"}, "at least 1"},
      {{"convert_text", "--streams=2", "--vocabulary=v", "text", "db"}, "does not exist"},
  };
  for (const auto& [words, text] : cases) {
    const Finished finished = Run(words);
    EXPECT_EQ(finished.exit_code, 2) << words[0] << ": " << finished.err;
    EXPECT_TRUE(finished.Says(text)) << text << " not in " << finished.err;
  }
  for (const char* program :
       {"convert_imageset", "convert_annoset", "compute_anchors", "compute_image_mean", "db_tool", "convert_cifar_data",
        "convert_mnist_data", "convert_mnist_siamese_data", "convert_csv", "convert_text", "convert_kitti"}) {
    const Finished help = Run({program, "--help"});
    EXPECT_EQ(help.exit_code, 0);
    EXPECT_NE(help.out.find("example"), std::string::npos) << help.out;
  }
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_.path()), {}), 1);
}

// Kills at moments spread over a whole run. Under each name lies nothing or all of a database, and going again with
// --force mends whatever there is.
TEST_F(DatasetPrograms, AKillLeavesNothingOrAWholeDatabase) {
  const std::vector<std::string> words = {"convert_imageset",
                                          "--resize_height=200",
                                          "--resize_width=200",
                                          "--force",
                                          "--split=train:0.9,val:0.1",
                                          "pets",
                                          "db"};
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_EQ(Run(words).exit_code, 0);
  const auto whole = std::chrono::steady_clock::now() - begin;
  fs::remove_all(folder_ / "db_train_lmdb");
  fs::remove_all(folder_ / "db_val_lmdb");
  constexpr int kKills = 16;
  int leftovers = 0, mentioned = 0;
  for (int k = 0; k < kKills; ++k) {
    {
      Running running(words, {.folder = folder_.path()});
      std::this_thread::sleep_for(whole * (k + 1) / kKills);
      running.Signal(SIGKILL);
      const Finished finished = running.Wait();
      mentioned += finished.Says("still runs or was killed");
    }
    const bool train = fs::exists(folder_ / "db_train_lmdb"), val = fs::exists(folder_ / "db_val_lmdb");
    EXPECT_TRUE(!train || Whole("db_train_lmdb", 270));
    EXPECT_TRUE(!val || Whole("db_val_lmdb", 30));
    EXPECT_TRUE(train || !val);
    for (const auto& entry : fs::directory_iterator(folder_.path())) {
      if (entry.path().string().find(".tmp.") == std::string::npos) continue;
      ++leftovers;
      if (k % 4 == 3) fs::remove_all(entry.path());
    }
  }
  EXPECT_GT(leftovers, 0);
  EXPECT_GT(mentioned, 0);
  ASSERT_EQ(Run(words).exit_code, 0);
  EXPECT_TRUE(Whole("db_train_lmdb", 270) && Whole("db_val_lmdb", 30));
}

}  // namespace
}  // namespace crema::testing_tools
