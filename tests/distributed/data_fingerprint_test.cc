// Which data the workers of a training on several machines read.
#include "distributed/training/data_fingerprint.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "crema/error.h"
#include "temporary_folder.h"

namespace crema {
namespace {

NetParameter ListNet(const std::string& source) {
  NetParameter net;
  LayerParameter* layer = net.add_layer();
  layer->set_name("images");
  layer->set_type("ImageData");
  layer->mutable_image_data_param()->set_source(source);
  layer->mutable_image_data_param()->set_root_folder("here/");
  net.add_layer()->set_type("ReLU");
  return net;
}

TEST(DataFingerprint, TellsListsApart) {
  const TemporaryFolder folder;
  std::ofstream(folder / "a.txt") << "1.jpg 0\n2.jpg 1\n";
  std::ofstream(folder / "copy.txt") << "1.jpg   0\n\n2.jpg 1\n";
  std::ofstream(folder / "order.txt") << "2.jpg 1\n1.jpg 0\n";
  std::ofstream(folder / "label.txt") << "1.jpg 0\n2.jpg 2\n";
  const auto print = [&](const std::string& name) {
    const std::vector<DataFingerprint> all = FingerprintData(ListNet(name), {folder.path()});
    EXPECT_EQ(all.size(), 1u);
    EXPECT_EQ(all[0].layer, "images");
    EXPECT_EQ(all[0].path, folder / name);
    return all[0].value;
  };
  EXPECT_EQ(print("a.txt"), print("copy.txt"));
  EXPECT_NE(print("a.txt"), print("order.txt"));
  EXPECT_NE(print("a.txt"), print("label.txt"));
  EXPECT_ANY_THROW(FingerprintData(ListNet("absent.txt"), {folder.path()}));
}

TEST(DataFingerprint, TellsNumbersOfListsApart) {
  const TemporaryFolder folder;
  std::ofstream(folder / "a.txt") << "1.jpg 0 0.5\n2.jpg 1 -2\n";
  std::ofstream(folder / "copy.txt") << "1.jpg 0.0  5e-1\n2.jpg 1 -2\n";
  std::ofstream(folder / "other.txt") << "1.jpg 0 0.5\n2.jpg 1 -3\n";
  const auto print = [&](const std::string& name) {
    NetParameter net = ListNet(name);
    net.mutable_layer(0)->mutable_image_data_param()->set_label_count(2);
    return FingerprintData(net, {folder.path()}).at(0).value;
  };
  EXPECT_EQ(print("a.txt"), print("copy.txt"));
  EXPECT_NE(print("a.txt"), print("other.txt"));
}

TEST(DataFingerprint, TellsMeansApart) {
  const TemporaryFolder folder;
  std::ofstream(folder / "a.txt") << "1.jpg 0\n";
  for (const std::string name : {"one", "two"}) std::ofstream(folder / (name + ".binaryproto")) << name;
  const auto net = [](const std::string& mean) {
    NetParameter net = ListNet("a.txt");
    net.mutable_layer(0)->mutable_transform_param()->set_mean_file(mean);
    return net;
  };
  const auto print = [&](const std::string& mean) { return FingerprintData(net(mean), {folder.path()}).at(0).value; };
  EXPECT_EQ(print("one.binaryproto"), print("one.binaryproto"));
  EXPECT_NE(print("one.binaryproto"), print("two.binaryproto"));
  std::string error;
  try {
    RequireSameData(net("two.binaryproto"), {folder.path()}, FingerprintData(net("one.binaryproto"), {folder.path()}),
                    "--data", "");
  } catch (const UserError& thrown) {
    error = thrown.what();
  }
  EXPECT_NE(error.find("or its mean_file \"two.binaryproto\" is another one"), std::string::npos) << error;
  EXPECT_ANY_THROW(print("absent.binaryproto"));
}

TEST(DataFingerprint, TellsListsOfLabelImagesApart) {
  const TemporaryFolder folder;
  std::ofstream(folder / "a.txt") << "1.jpg 1.png\n2.jpg 2.png\n";
  std::ofstream(folder / "copy.txt") << "1.jpg   1.png \r\n\n2.jpg 2.png";
  std::ofstream(folder / "other.txt") << "1.jpg 1.png\n2.jpg 3.png\n";
  const auto print = [&](const std::string& name) {
    NetParameter net;
    LayerParameter* layer = net.add_layer();
    layer->set_type("DenseImageData");
    layer->mutable_dense_image_data_param()->set_source(name);
    return FingerprintData(net, {folder.path()}).at(0).value;
  };
  EXPECT_EQ(print("a.txt"), print("copy.txt"));
  EXPECT_NE(print("a.txt"), print("other.txt"));
}

TEST(DataFingerprint, TellsListsOfImageSegDataApart) {
  const TemporaryFolder folder;
  std::ofstream(folder / "a.txt") << "1.jpg 1\n2.jpg 2\n";
  std::ofstream(folder / "copy.txt") << "1.jpg   1 \r\n\n2.jpg 2";
  std::ofstream(folder / "other.txt") << "1.jpg 1\n2.jpg 3\n";
  std::ofstream(folder / "alone.txt") << "1.jpg\n2.jpg\n";
  const auto print = [&](const std::string& name, ImageDataParameter::LabelType type) {
    NetParameter net;
    LayerParameter* layer = net.add_layer();
    layer->set_type("ImageSegData");
    layer->mutable_image_data_param()->set_source(name);
    layer->mutable_image_data_param()->set_label_type(type);
    return FingerprintData(net, {folder.path()}).at(0).value;
  };
  for (const auto type : {ImageDataParameter::IMAGE, ImageDataParameter::PIXEL}) {
    EXPECT_EQ(print("a.txt", type), print("copy.txt", type));
    EXPECT_NE(print("a.txt", type), print("other.txt", type));
    EXPECT_ANY_THROW(print("alone.txt", type));
  }
  EXPECT_NE(print("alone.txt", ImageDataParameter::NONE), print("a.txt", ImageDataParameter::NONE));

  NetParameter net;
  LayerParameter* layer = net.add_layer();
  layer->set_type("ImageSegData");
  layer->mutable_image_data_param()->set_source("theirs.txt");
  EXPECT_EQ(DataSourceOf(*layer), "theirs.txt");
  ReadDataFrom(folder.path(), &net);
  EXPECT_EQ(layer->image_data_param().root_folder(), folder.path() + "/");
}

TEST(DataFingerprint, TellsVideosApart) {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder / "run");
  std::ofstream(folder / "run/image_0001.jpg") << "a frame";
  std::ofstream(folder / "a.txt") << "run 20 0\nrun 30 1\n";
  std::ofstream(folder / "copy.txt") << "run  20 0 \r\n\nrun 30 1";
  std::ofstream(folder / "number.txt") << "run 20 0\nrun 31 1\n";
  std::ofstream(folder / "label.txt") << "run 20 0\nrun 30 2\n";
  NetParameter net;
  LayerParameter* layer = net.add_layer();
  layer->set_type("VideoData");
  layer->mutable_video_data_param()->set_modality(VideoDataParameter::RGB);
  layer->mutable_video_data_param()->set_root_folder(folder.path());
  const auto print = [&](const std::string& name) {
    layer->mutable_video_data_param()->set_source(name);
    return FingerprintData(net, {folder.path()}).at(0);
  };
  const DataFingerprint known = print("a.txt");
  EXPECT_EQ(known.value, print("copy.txt").value);
  EXPECT_NE(known.value, print("number.txt").value);
  EXPECT_NE(known.value, print("label.txt").value);
  EXPECT_EQ(known.files, print("copy.txt").files);
  std::ofstream(folder / "run/image_0001.jpg") << "another frame";
  EXPECT_NE(known.files, print("a.txt").files);
  std::filesystem::remove(folder / "run/image_0001.jpg");
  EXPECT_NE(print("a.txt").unreadable.find("run/image_0001.jpg"), std::string::npos);

  EXPECT_EQ(DataSourceOf(*layer), "a.txt");
  ReadDataFrom(folder.path(), &net);
  EXPECT_EQ(layer->video_data_param().root_folder(), folder.path() + "/");
}

TEST(DataFingerprint, DataOfThisMachineIsAListOrTheFolderOfItsImages) {
  const TemporaryFolder folder;
  NetParameter net = ListNet("theirs.txt");
  LayerParameter* database = net.add_layer();
  database->set_type("Data");
  database->mutable_data_param()->set_source("their_lmdb");
  EXPECT_EQ(DataSourceOf(net.layer(0)), "theirs.txt");
  LayerParameter* dense = net.add_layer();
  dense->set_type("DenseImageData");
  dense->mutable_dense_image_data_param()->set_source("pairs.txt");
  EXPECT_EQ(DataSourceOf(*dense), "pairs.txt");
  EXPECT_EQ(DataSourceOf(net.layer(1)), "");
  for (const char* type : {"AnnotatedData", "Data"}) {
    database->set_type(type);
    EXPECT_TRUE(ReadsDatabase(net.layer(2)));
    EXPECT_EQ(DataSourceOf(net.layer(2)), "their_lmdb");
  }
  ReadDataFrom(folder.path(), &net);
  EXPECT_EQ(dense->dense_image_data_param().root_folder(), folder.path() + "/");
  EXPECT_EQ(net.layer(0).image_data_param().source(), "theirs.txt");
  EXPECT_EQ(net.layer(0).image_data_param().root_folder(), folder.path() + "/");
  EXPECT_EQ(net.layer(2).data_param().source(), folder.path());
  ReadDataFrom(folder / "own.txt", &net);
  EXPECT_EQ(DataSourceOf(net.layer(0)), folder / "own.txt");
}

TEST(DataFingerprint, FilesOfListsAreTheCoordinators) {
  const TemporaryFolder folder;
  std::ofstream(folder / "a.txt") << "1.jpg 0\n2.jpg 1\n";
  for (const char* copy : {"one", "two"}) {
    std::filesystem::create_directory(folder / copy);
    for (const char* file : {"/1.jpg", "/2.jpg"}) std::ofstream(folder / copy + file) << "pixels of " << file;
  }
  const auto net = [&](const std::string& copy) {
    NetParameter with_root = ListNet(folder / "a.txt");
    with_root.mutable_layer(0)->mutable_image_data_param()->set_root_folder(folder / copy);
    return with_root;
  };
  const std::vector<DataFingerprint> known = FingerprintData(net("one"), {});
  const auto message_for = [&](const std::string& copy) {
    try {
      RequireSameData(net(copy), {}, known, "--data", "");
    } catch (const UserError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(message_for("two"), "");
  std::ofstream(folder / "two/2.jpg") << "other pixels";
  EXPECT_NE(message_for("two").find("names are not those of the coordinator"), std::string::npos);
  std::filesystem::remove(folder / "two/2.jpg");
  EXPECT_NE(message_for("two").find("2.jpg"), std::string::npos);
  EXPECT_NE(message_for("two").find("the coordinator has that file"), std::string::npos);
  // A coordinator need not have them.
  EXPECT_FALSE(FingerprintData(net("two"), {})[0].files);
  RequireSameData(net("one"), {}, FingerprintData(net("two"), {}), "--data", "");
}

TEST(DataFingerprint, OtherDataThanTheCoordinatorsAreRefused) {
  const TemporaryFolder folder;
  std::ofstream(folder / "a.txt") << "1.jpg 0\n2.jpg 1\n";
  std::ofstream(folder / "other.txt") << "2.jpg 1\n1.jpg 0\n";
  const std::vector<DataFingerprint> known = FingerprintData(ListNet(folder / "a.txt"), {});
  const auto message_for = [&](const std::string& source) {
    try {
      RequireSameData(ListNet(source), {folder.path()}, known, "--data", "train net, ");
    } catch (const UserError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(message_for("a.txt"), "");
  EXPECT_NE(
      message_for("other.txt").find("train net, layer \"images\": " + folder / "other.txt" + " has other records"),
      std::string::npos);
  EXPECT_NE(message_for("none.txt").find("there is no list \"none.txt\" on this machine"), std::string::npos);
  EXPECT_NE(message_for("none.txt").find("with --data=PATH"), std::string::npos);
}

}  // namespace
}  // namespace crema
