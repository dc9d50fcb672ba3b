// What is kept of a training that fails.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "crema/data.pb.h"
#include "data/databases/lmdb_writer.h"
#include "data/databases/record_source.h"
#include "errors.h"
#include "files.h"
#include "solver/resume_test.h"

namespace crema {
namespace {

namespace fs = std::filesystem;

TEST_F(Resume, NoSnapshotIsWrittenOfParametersThatAreLost) {
  const auto solver = Make(SolverText("snapshot: 2", 6));
  solver->Step(2);
  Parameter& parameter = solver->net().parameters()[0];
  std::vector<float> values(static_cast<size_t>(parameter.shape.count()));
  parameter.CopyDataTo(values.data());
  values[1] = INFINITY;
  parameter.SetData(values.data());
  solver->Snapshot();
  values[1] = NAN;
  parameter.SetData(values.data());
  const std::string path = folder_ / "snap_iter_2.caffemodel", before = ReadFile(path);
  const std::string said = ThrownBy<NotFinite>([&] { solver->Snapshot(); });
  EXPECT_NE(said.find("parameter " + parameter.name() + " holds a NaN, although the loss does not show it"),
            std::string::npos)
      << said;
  EXPECT_NE(said.find("The last snapshot is "), std::string::npos) << said;
  EXPECT_EQ(ReadFile(path), before);
}

TEST_F(Resume, KeepsWhatWasTrainedBeforeABadRecord) {
  const std::string settings = "momentum: 0.9 test_iter: 3 test_interval: 4 iter_size: 2 ";
  Train(settings, 9);
  const std::string whole = ReadFile(folder_ / "snap_iter_9.solverstate");
  const std::string model = ReadFile(folder_ / "snap_iter_9.caffemodel");
  fs::remove(folder_ / "snap_iter_9.solverstate");

  // 14 records an iteration: record 50 is of the fourth.
  const std::string good = folder_ / "train_lmdb", kept = folder_ / "good_lmdb";
  fs::rename(good, kept);
  WriteClassesWithABadLabel(good, 60, 50);
  EXPECT_NE(ThrownBy<UserError>([&] { Train(settings, 9); }).find("outside the 3 classes"), std::string::npos);
  ASSERT_EQ(recorder_.snapshots.size(), 1u);
  EXPECT_EQ(recorder_.snapshots[0].iteration, 3);

  fs::remove_all(good);
  fs::rename(kept, good);
  Train(settings, 9, {.snapshot = folder_ / "snap_iter_3.solverstate"});
  EXPECT_EQ(ReadFile(folder_ / "snap_iter_9.caffemodel"), model);
  EXPECT_EQ(ReadFile(folder_ / "snap_iter_9.solverstate"), whole);

  // Nor has what batches move seen any of the batch that failed.
  for (const bool recurrent : {false, true}) {
    std::string net = recurrent ? kRecurrentNet : kSmallNet;
    if (!recurrent) {
      net.insert(net.find("layer { name: \"relu1\""),
                 "layer { name: \"n\" type: \"BatchNorm\" bottom: \"ip1\" top: \"ip1\" }\n");
    }
    folder_.Write("net.prototxt", net);
    Train(settings, 3);
    const std::string whole_state = ReadFile(folder_ / "snap_iter_3.solverstate");
    const std::string whole_model = ReadFile(folder_ / "snap_iter_3.caffemodel");
    fs::remove(folder_ / "snap_iter_3.solverstate");
    fs::rename(good, kept);
    WriteClassesWithABadLabel(good, 60, 50);
    EXPECT_THROW(Train(settings, 9), UserError);
    EXPECT_EQ(ReadFile(folder_ / "snap_iter_3.caffemodel"), whole_model) << recurrent;
    EXPECT_EQ(ReadFile(folder_ / "snap_iter_3.solverstate"), whole_state) << recurrent;
    fs::remove_all(good);
    fs::rename(kept, good);
  }
  folder_.Write("net.prototxt", kSmallNet);

  // At the first iteration there is nothing to keep, and without snapshots nobody wants one.
  fs::remove_all(good);
  WriteClassesWithABadLabel(good, 60, 3);
  EXPECT_THROW(Train(settings, 9), UserError);
  EXPECT_EQ(recorder_.snapshots.size(), 0u);
  fs::remove_all(good);
  WriteClassesWithABadLabel(good, 60, 50);
  EXPECT_THROW(Train(settings + "snapshot_after_train: false", 9), UserError);
  EXPECT_EQ(recorder_.snapshots.size(), 0u);
}

TEST_F(Resume, KeepsWhatWasTrainedBeforeDataThatIsNotFinite) {
  // Record 50 is of iteration 7.
  const auto source = OpenRecordSource(folder_ / "train_lmdb");
  LmdbWriter writer(folder_ / "odd_lmdb", LmdbWriter::Existing::kRefuse);
  for (uint64_t i = 0; i < source->count(); ++i) {
    Datum datum;
    const auto record = source->Read(i);
    ASSERT_TRUE(datum.ParseFromArray(record.data(), static_cast<int>(record.size())));
    if (i == 50) {
      datum.clear_data();
      for (int k = 0; k < 36; ++k) datum.add_float_data(std::numeric_limits<float>::infinity());
    }
    writer.Put(source->Key(i), datum.SerializeAsString());
  }
  writer.Commit();
  fs::rename(folder_ / "train_lmdb", folder_ / "good_lmdb");
  // Clipping looks at all gradients before it changes a parameter.
  for (const std::string settings :
       {"momentum: 0.9 average_loss: 4", "momentum: 0.9 average_loss: 4 clip_gradients: 5"}) {
    SCOPED_TRACE(settings);
    fs::rename(folder_ / "good_lmdb", folder_ / "train_lmdb");
    Train(settings, 7);
    const std::string model = ReadFile(folder_ / "snap_iter_7.caffemodel");
    const std::string state = ReadFile(folder_ / "snap_iter_7.solverstate");
    fs::rename(folder_ / "train_lmdb", folder_ / "good_lmdb");
    fs::rename(folder_ / "odd_lmdb", folder_ / "train_lmdb");
    fs::remove(folder_ / "snap_iter_7.caffemodel");
    fs::remove(folder_ / "snap_iter_7.solverstate");
    EXPECT_NE(ThrownBy<NotFinite>([&] { Train(settings, 20); }).find("They come so from the data"), std::string::npos);
    ASSERT_EQ(recorder_.snapshots.size(), 1u);
    EXPECT_EQ(recorder_.snapshots[0].iteration, 7);
    EXPECT_TRUE(ReadFile(folder_ / "snap_iter_7.caffemodel") == model);
    EXPECT_TRUE(ReadFile(folder_ / "snap_iter_7.solverstate") == state);
    fs::rename(folder_ / "train_lmdb", folder_ / "odd_lmdb");
  }
}

}  // namespace
}  // namespace crema
