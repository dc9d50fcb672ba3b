// crema extract on small images whose colour is their class.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "base/hdf5.h"
#include "crema/data.pb.h"
#include "crema/files.h"
#include "crema/net.h"
#include "data/databases/datum.h"
#include "data/databases/record_source.h"
#include "tools/extract_testing.h"
#include "tools/program.h"

namespace crema::testing_tools {
namespace {

namespace fs = std::filesystem;

// Scores of the red one, whose first pixel is black: 0, 0, 4 * 15 / 16.
void ExpectScores(const Row& row, int colour, double brightness = 1) {
  ASSERT_EQ(row.values.size(), 3u) << row.record;
  for (int c = 0; c < 3; ++c) EXPECT_NEAR(row.values[c], c == colour ? 3.75 * brightness : 0, 1e-5) << row.record;
}

TEST_F(Extract, WritesABlobOfEachImage) {
  const std::vector<Row> rows = Rows({"--blob=score", "images"});
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows[0].record, "images/blue/1.png");
  EXPECT_EQ(rows[3].record, "images/red/2.png");
  const std::vector<std::string> labels = {"0", "1", "2", "2"};
  for (int i = 0; i < 4; ++i) EXPECT_EQ(rows[i].label, labels[i]);
  ExpectScores(rows[0], 0);
  ExpectScores(rows[1], 1);
  ExpectScores(rows[2], 2);
  ExpectScores(rows[3], 2, 0.2);
  // The only output.
  const std::vector<Row> probabilities = Rows({"images"});
  EXPECT_NEAR(probabilities[0].values[0], std::exp(3.75) / (std::exp(3.75) + 2), 1e-5);
  // The last batch is not full.
  const std::vector<Row> batches = Rows({"--blob=score", "--batch=3", "images"});
  ASSERT_EQ(batches.size(), 4u);
  ExpectScores(batches[3], 2, 0.2);
}

TEST_F(Extract, TakesImagesAndLists) {
  const std::vector<Row> images = Rows({"--blob=score", "images/red/1.png", "images/green"});
  ASSERT_EQ(images.size(), 2u);
  EXPECT_EQ(images[0].label, "");
  EXPECT_EQ(images[1].record, "images/green/1.png");
  ExpectScores(images[1], 1);
  const std::vector<Row> list = Rows({"--blob=score", "--root=images/", "list.txt"});
  ASSERT_EQ(list.size(), 2u);
  EXPECT_EQ(list[0].record, "images/red/2.png");
  EXPECT_EQ(list[0].label, "7");
  ExpectScores(list[0], 2, 0.2);
  // Images beside folders have no classes.
  WritePng(folder_, "images/alone.png", Coloured(4, 4, 255, 0, 0));
  const std::vector<Row> mixed = Rows({"images"});
  ASSERT_EQ(mixed.size(), 5u);
  EXPECT_EQ(mixed[0].record, "images/alone.png");
  EXPECT_EQ(mixed[4].label, "");
}

TEST_F(Extract, ReadsTheTestDataOfANetForTraining) {
  WriteDatabase();
  const std::vector<Row> rows = Rows({"--blob=score"}, "train_val.prototxt");
  ASSERT_EQ(rows.size(), 9u);
  for (int i = 0; i < 9; ++i) {
    EXPECT_EQ(rows[i].record, "key" + std::to_string(i));
    EXPECT_EQ(rows[i].label, std::to_string(i % 3));
    ExpectScores(rows[i], 2, i / 15.0);
  }
  const std::vector<Row> named = Rows({"--blob=score", "db"});
  ASSERT_EQ(named.size(), 9u);
  EXPECT_EQ(named[8].record, "key8");
  // The net's own layer, which knows no names.
  const std::vector<Row> own = Rows({"--blob=score", "--iterations=2"}, "train_val.prototxt");
  ASSERT_EQ(own.size(), 14u);
  EXPECT_EQ(own[8].record, "8");
  ExpectScores(own[8], 2, 8 / 15.0);
  ExpectScores(own[9], 2, 0);  // from the beginning
}

TEST_F(Extract, InnerBlobsAreThoseOfANetThatKeepsAll) {
  folder_.Write("deep.prototxt",
                "layer { name: \"data\" type: \"Input\" top: \"data\"\n"
                "  input_param { shape { dim: 1 dim: 3 dim: 8 dim: 8 } } transform_param { scale: 0.01 } }\n"
                "layer { name: \"c\" type: \"Convolution\" bottom: \"data\" top: \"c\"\n"
                "  convolution_param { num_output: 4 kernel_size: 3 weight_filler { type: \"msra\" } } }\n"
                "layer { name: \"n\" type: \"BatchNorm\" bottom: \"c\" top: \"c\" batch_norm_param { eps: 0.5 } }\n"
                "layer { name: \"r\" type: \"ReLU\" bottom: \"c\" top: \"c\" }\n"
                "layer { name: \"p\" type: \"Pooling\" bottom: \"c\" top: \"p\" pooling_param { kernel_size: 2 } }\n"
                "layer { name: \"ip\" type: \"InnerProduct\" bottom: \"p\" top: \"ip\"\n"
                "  inner_product_param { num_output: 6 weight_filler { type: \"xavier\" } } }\n"
                "layer { name: \"end\" type: \"InnerProduct\" bottom: \"ip\" top: \"end\"\n"
                "  inner_product_param { num_output: 3 weight_filler { type: \"xavier\" } } }\n");
  Net all(ReadNetFile((folder_ / "deep.prototxt").string()), {.phase = TEST, .keep_all = true, .backward = false});
  folder_.Write("net.caffemodel", all.ToProto().SerializeAsString());
  const Image image = Coloured(8, 8, 200, 100, 50);
  WritePng(folder_, "one.png", image);
  for (int i = 0; i < 192; ++i) {
    const int colours[] = {200, 100, 50};
    all.inputs()[0].value.f32()[i] = i % 64 == 0 ? 0.f : 0.01f * static_cast<float>(colours[i / 64]);
  }
  all.Forward();
  for (const std::string blob : {"data", "c", "p", "ip", "end"}) {
    const std::vector<Row> rows = Rows({"--blob=" + blob, "one.png"}, "deep.prototxt");
    ASSERT_EQ(rows.size(), 1u);
    const Tensor wanted = all.blob(blob);
    ASSERT_EQ(static_cast<int64_t>(rows[0].values.size()), wanted.count());
    for (int64_t i = 0; i < wanted.count(); ++i) EXPECT_NEAR(rows[0].values[i], wanted.f32()[i], 1e-4) << blob << i;
  }
  // What predict takes for scores.
  const Finished predict = RunProgram({"crema", "predict", "--model=deep.prototxt", "--weights=net.caffemodel",
                                       "--blob=ip", "--format=csv", "--top=6", "one.png"},
                                      {.folder = folder_.path()});
  std::istringstream lines(predict.out);
  std::string line;
  std::getline(lines, line);
  int shown = 0;
  while (std::getline(lines, line)) {
    int rank = 0, index = 0, name = 0;
    float score = 0;
    ASSERT_EQ(std::sscanf(line.c_str(), "one.png,%d,%d,%d,%f", &rank, &index, &name, &score), 4) << line;
    EXPECT_EQ(score, Rows({"--blob=ip", "one.png"}, "deep.prototxt")[0].values[index]);
    ++shown;
  }
  EXPECT_EQ(shown, 6) << predict.err;
}

TEST_F(Extract, WritesSeveralBlobsAsHdf5) {
  const Finished run = Run({"--blob=score,data", "--output=f.h5", "images"});
  if (run.Says("HDF5")) GTEST_SKIP() << run.err;
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(run.out, "f.h5: 4 records, score 3, data 3x4x4\n");
  const auto file = OpenHdf5((folder_ / "f.h5").string());
  EXPECT_EQ(file->Extents("data"), (std::vector<int64_t>{4, 3, 4, 4}));
  ASSERT_EQ(file->Extents("score"), (std::vector<int64_t>{4, 3}));
  std::vector<float> scores(12), labels(4);
  file->Read("score", scores.data());
  file->Read("label", labels.data());
  EXPECT_EQ(labels, (std::vector<float>{0, 1, 2, 2}));
  EXPECT_NEAR(scores[8], 3.75, 1e-5);
  EXPECT_EQ(file->ReadText("record"), "images/blue/1.png\nimages/green/1.png\nimages/red/1.png\nimages/red/2.png\n");
  // A net that reads such files, whose own layer feeds it.
  folder_.Write("source.txt", (folder_ / "f.h5").string() + "\n");
  folder_.Write(
      "again.prototxt",
      "layer { name: \"h\" type: \"HDF5Data\" top: \"data\" top: \"label\"\n"
      "  hdf5_data_param { source: \"source.txt\" batch_size: 3 shuffle: true } }\n"
      "layer { name: \"score\" type: \"InnerProduct\" bottom: \"data\" top: \"score\"\n"
      "  inner_product_param { num_output: 3 } }\n"
      "layer { name: \"loss\" type: \"SoftmaxWithLoss\" bottom: \"score\" bottom: \"label\" top: \"loss\" }\n");
  const std::vector<Row> rows = Rows({"--blob=score"}, "again.prototxt");
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows[3].record, "3");
  ExpectScores(rows[1], 1);
  ExpectScores(rows[3], 2, 0.2);
  const Finished labels_too = Run({"--blob=score,label", "--output=g.h5", "--iterations=1"}, "again.prototxt");
  ASSERT_EQ(labels_too.exit_code, 0) << labels_too.err;
  EXPECT_EQ(OpenHdf5((folder_ / "g.h5").string())->Extents("label")[0], 3);
  EXPECT_TRUE(Run({"--blob=score", "--output=h.h5", "--scale=2"}, "again.prototxt").Says("--scale has no effect"));
  EXPECT_TRUE(Run({"--output=h.h5"}, "again.prototxt").Says("\"loss\" is scalar, and has no row for each"));
}

// A batch that is written into the net: with an image more each row would be longer.
TEST_F(Extract, KnowsRowsOfAReshape) {
  folder_.Write("rows.prototxt",
                "layer { name: \"d\" type: \"Input\" top: \"data\"\n"
                "  input_param { shape { dim: 1 dim: 3 dim: 4 dim: 4 } } transform_param { scale: 0.00392156863 } }\n"
                "layer { name: \"score\" type: \"InnerProduct\" bottom: \"data\" top: \"score\"\n"
                "  inner_product_param { num_output: 3 } }\n"
                "layer { name: \"rows\" type: \"Reshape\" bottom: \"data\" top: \"rows\"\n"
                "  reshape_param { shape { dim: 4 dim: -1 } } }\n");
  const std::vector<Row> rows = Rows({"--blob=rows", "--batch=4", "images"}, "rows.prototxt");
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows[3].record, "images/red/2.png");
}

TEST_F(Extract, WritesADatabaseThatANetTrainsOn) {
  const Finished run = Run({"--blob=score", "--output=scores_lmdb", "images"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const auto records = OpenRecordSource((folder_ / "scores_lmdb").string());
  ASSERT_EQ(records->count(), 4u);
  DatumView datum;
  ASSERT_EQ(ParseDatum(records->Read(3), &datum), nullptr);
  EXPECT_EQ(datum.label, 2);
  EXPECT_EQ(datum.size, (ImageSize{3, 1, 1}));
  folder_.Write("head.prototxt",
                "layer { name: \"d\" type: \"Data\" top: \"data\" top: \"label\"\n"
                "  data_param { source: \"scores_lmdb\" backend: LMDB batch_size: 4 } }\n"
                "layer { name: \"ip\" type: \"InnerProduct\" bottom: \"data\" top: \"ip\"\n"
                "  inner_product_param { num_output: 3 weight_filler { type: \"xavier\" } } }\n"
                "layer { name: \"loss\" type: \"SoftmaxWithLoss\" bottom: \"ip\" bottom: \"label\" top: \"loss\" }\n");
  folder_.Write("solver.prototxt",
                "net: \"head.prototxt\" base_lr: 0.1 lr_policy: \"fixed\" max_iter: 60 random_seed: 1\n"
                "snapshot_prefix: \"head\"\n");
  const Finished train = RunProgram({"crema", "train", "--solver=solver.prototxt"}, {.folder = folder_.path()});
  EXPECT_EQ(train.exit_code, 0) << train.err;
}

TEST_F(Extract, SkipsOrFailsAtBrokenImages) {
  folder_.Write("images/green/0.png", "not an image");
  const Finished skip = Run({"--blob=score", "--output=f.csv", "images"});
  ASSERT_EQ(skip.exit_code, 0) << skip.err;
  EXPECT_TRUE(skip.Says("images/green/0.png: warning: ")) << skip.err;
  EXPECT_EQ(skip.out, "f.csv: 4 records, score 3\n");
  const std::vector<Row> rows = ReadCsv(folder_ / "f.csv");
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows[1].record, "images/green/1.png");
  ExpectScores(rows[1], 1);
  const Finished fail = Run({"--broken=fail", "--output=g.csv", "images"});
  EXPECT_EQ(fail.exit_code, 2);
  EXPECT_TRUE(fail.Says("images/green/0.png: error: ")) << fail.err;
  const Finished none = Run({"--output=g.csv", "--resize=4x4", "--shape=data=1,3,4,4", "images/green/0.png"});
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_TRUE(none.Says("none of the images can be read")) << none.err;
  EXPECT_FALSE(fs::exists(folder_ / "g.csv"));
}

TEST_F(Extract, ComputesOnAGpuAsOnTheCpu) {
  const Finished run = Run({"--blob=score", "--gpu=0", "--batch=2", "--output=gpu.csv", "images"});
  if (run.exit_code == 1) GTEST_SKIP() << run.err;
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const std::vector<Row> rows = ReadCsv(folder_ / "gpu.csv");
  ASSERT_EQ(rows.size(), 4u);
  ExpectScores(rows[0], 0);
  ExpectScores(rows[3], 2, 0.2);
}

TEST_F(Extract, SaysMistakes) {
  const auto says = [&](std::vector<std::string> words, const std::string& text,
                        const std::string& model = "deploy.prototxt") {
    const Finished run = Run(std::move(words), model);
    EXPECT_EQ(run.exit_code, 2) << run.err;
    EXPECT_TRUE(run.Says(text)) << run.err;
  };
  says({"images"}, "--output=FILE is missing");
  says({"--output=f.txt", "images"}, "f.txt: error: its ending does not say what to write");
  says({"--output=f.csv", "--blob=score,prob", "images"}, "takes one blob, but 2 are to be written");
  says({"--output=f.h5", "--blob=score,score", "images"}, "--blob names \"score\" twice");
  says({"--output=f.csv", "--blob=scor", "images"}, "the net has no blob \"scor\"; did you mean");
  says({"--output=f.csv"}, "the net names no data for its TEST phase");
  says({"--output=f.csv", "--root=x", "images/red/1.png"}, "--root is for lists");
  says({"--output=f.csv", "--iterations=3", "images"}, "leave one of them out");
  says({"--output=f.csv", "--iterations=3"}, "the net gets \"data\" from an Input layer");
  says({"--output=f.csv", "--iterations=3"},
       "crema predict, detect and extract run it on the images that they are given");
  folder_.Write("digits.prototxt",
                "layer { name: \"train-data\" type: \"Data\" top: \"data\" include { stage: \"train\" }\n"
                "  data_param { source: \"db\" backend: LMDB batch_size: 4 } }\n"
                "layer { name: \"deploy\" type: \"Input\" top: \"data\" include { stage: \"deploy\" }\n"
                "  input_param { shape { dim: 1 dim: 3 dim: 4 dim: 4 } } }\n"
                "layer { name: \"score\" type: \"InnerProduct\" bottom: \"data\" top: \"score\"\n"
                "  inner_product_param { num_output: 3 } }\n");
  says({"--output=f.csv", "images"},
       "leave these out of this phase, level and stage: \"train-data\" (Data), \"deploy\" (Input); a net with stages",
       "digits.prototxt");
  EXPECT_EQ(Run({"--output=digits.csv", "--stage=deploy", "images"}, "digits.prototxt").exit_code, 0);
  says({"--output=f.csv", "absent"}, "absent: error: there is no such image or folder");
  folder_.Write("two.prototxt",
                "layer { name: \"d\" type: \"Input\" top: \"a\" top: \"b\"\n"
                "  input_param { shape { dim: 1 dim: 3 dim: 4 dim: 4 } } }\n"
                "layer { name: \"s\" type: \"Eltwise\" bottom: \"a\" bottom: \"b\" top: \"s\" }\n");
  says({"--output=f.csv", "images"}, "has 2 inputs, \"a\", \"b\"; expected one blob", "two.prototxt");
  folder_.Write("ends.prototxt",
                "layer { name: \"d\" type: \"Input\" top: \"data\"\n"
                "  input_param { shape { dim: 1 dim: 3 dim: 4 dim: 4 } } }\n"
                "layer { name: \"score\" type: \"InnerProduct\" bottom: \"data\" top: \"score\"\n"
                "  inner_product_param { num_output: 3 } }\n"
                "layer { name: \"flat\" type: \"Flatten\" bottom: \"data\" top: \"flat\" }\n"
                "layer { name: \"steps\" type: \"Permute\" bottom: \"data\" top: \"steps\"\n"
                "  permute_param { order: 2 order: 0 order: 1 order: 3 } }\n"
                "layer { name: \"sum\" type: \"Reduction\" bottom: \"data\" top: \"sum\" }\n");
  says({"--output=f.csv", "images"},
       "several outputs, \"flat 4x48\", \"score 4x3\", \"steps 4x4x3x4\", \"sum scalar\"; say what to write",
       "ends.prototxt");
  says({"--output=f.csv", "--blob=steps", "images"}, "\"steps\" is 4x4x3x4, and has no row for each of the 4 records",
       "ends.prototxt");
  says({"--output=f.csv", "--blob=sum", "images"}, "\"sum\" is scalar, and has no row for each of the 4 records",
       "ends.prototxt");
  folder_.Write(
      "made.prototxt",
      "layer { name: \"d\" type: \"DummyData\" top: \"data\" dummy_data_param { shape { dim: 2 dim: 48 } } }\n"
      "layer { name: \"score\" type: \"InnerProduct\" bottom: \"data\" top: \"score\"\n"
      "  inner_product_param { num_output: 3 } }\n");
  says({"--output=f.csv"}, "say how many batches to run with --iterations=N", "made.prototxt");
  EXPECT_EQ(Rows({"--iterations=2"}, "made.prototxt").size(), 4u);
}

}  // namespace
}  // namespace crema::testing_tools
