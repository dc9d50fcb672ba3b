// The layer HDF5Output, and the files it writes.
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>

#include "base/hdf5.h"
#include "crema/files.h"
#include "crema/net.h"
#include "crema/solver.h"
#include "data/data_testing.h"
#include "device/gpu.h"
#include "hdf5/hdf5_writer.h"

namespace crema {
namespace {

using testing::ExpectThrows;

class Hdf5OutputTest : public testing::Hdf5Test {
 protected:
  // Of `batch` rows: "x" of 2 x 3 values and "label", which the test writes.
  std::string NetText(int batch, const std::string& more = "") const {
    const std::string rows = std::to_string(batch);
    return "layer { name: 'in' type: 'Input' top: 'x' top: 'label' input_param { shape { dim: " + rows +
           " dim: 2 dim: 3 } shape { dim: " + rows +
           " } } }\n"
           "layer { name: 'twice' type: 'Eltwise' bottom: 'x' bottom: 'x' top: 'twice' }\n"
           "layer { name: 'out' type: 'HDF5Output' bottom: 'twice' bottom: 'label' hdf5_output_param { file_name: '" +
           folder_ / "out.h5" + "' } }\n" + more;
  }

  std::unique_ptr<Net> MakeNet(const std::string& text, NetOptions options = {.phase = TEST}) const {
    options.backward = false;
    return std::make_unique<Net>(ParseNet(text, "net.prototxt"), options);
  }

  // Row r of the run has values 10 r .. 10 r + 5 and label r.
  static void Forward(Net& net, int64_t first_row) {
    const std::vector<NetInput> inputs = net.inputs();
    const int64_t rows = inputs[1].value.count();
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t i = 0; i < 6; ++i) inputs[0].value.f32()[r * 6 + i] = static_cast<float>(10 * (first_row + r) + i);
      inputs[1].value.f32()[r] = static_cast<float>(first_row + r);
    }
    net.Forward();
  }

  static void ExpectRows(const std::string& path, int64_t rows) {
    const auto file = OpenHdf5(path);
    EXPECT_EQ(file->List("/").datasets, (std::vector<std::string>{"data", "label"}));
    // As Caffe's file has them: of four axes.
    ASSERT_EQ(file->Extents("data"), (std::vector<int64_t>{rows, 2, 3, 1}));
    ASSERT_EQ(file->Extents("label"), (std::vector<int64_t>{rows, 1, 1, 1}));
    std::vector<float> data(static_cast<size_t>(rows) * 6), label(static_cast<size_t>(rows));
    file->Read("data", data.data());
    file->Read("label", label.data());
    for (int64_t r = 0; r < rows; ++r) {
      ASSERT_EQ(label[static_cast<size_t>(r)], static_cast<float>(r));
      for (int64_t i = 0; i < 6; ++i) {
        ASSERT_EQ(data[static_cast<size_t>(r * 6 + i)], static_cast<float>(2 * (10 * r + i)));
      }
    }
  }
};

TEST_F(Hdf5OutputTest, HoldsTheRowsOfAllPasses) {
  {
    const auto net = MakeNet(NetText(7));
    EXPECT_FALSE(std::filesystem::exists(folder_ / "out.h5")) << "a net that is not run writes nothing";
    for (int pass = 0; pass < 5; ++pass) Forward(*net, 7 * pass);
    // What was written before is repeated to look for the cause of a NaN.
    net->FindNonFinite();
  }
  ExpectRows(folder_ / "out.h5", 35);
}

TEST_F(Hdf5OutputTest, ReplacesWhatItHasWrittenAlone) {
  const auto refuse = [&] {
    const std::string before = testing::ReadFile(folder_ / "out.h5");
    ExpectThrows<UserError>([&] { MakeNet(NetText(3)); },
                            {"net.prototxt:3:", "out.h5\" is there, and was not written by such a layer"});
    EXPECT_EQ(testing::ReadFile(folder_ / "out.h5") == before, true);
  };
  testing::WriteFile(folder_ / "out.h5", "no HDF5 file");
  refuse();
  // What is trained with.
  testing::WriteHdf5(folder_ / "out.h5", {{"data", {4, 2}, testing::Ramp(8)}, {"label", {4}, testing::Ramp(4)}});
  refuse();
  testing::WriteFile(folder_ / "out.h5", "");
  Forward(*MakeNet(NetText(3)), 0);
  ExpectRows(folder_ / "out.h5", 3);
  {
    const auto net = MakeNet(NetText(2));
    ASSERT_EQ(net->warnings().size(), 1u);
    EXPECT_NE(net->warnings()[0].message.find("the first pass of this one replaces it"), std::string::npos);
    ExpectRows(folder_ / "out.h5", 3);
    Forward(*net, 0);
  }
  ExpectRows(folder_ / "out.h5", 2);
}

// As it lies on the disk when the process is killed between two passes. More rows than a chunk holds.
TEST_F(Hdf5OutputTest, IsWholeBehindEveryPass) {
  const auto net = MakeNet(NetText(6000));
  for (int pass = 0; pass < 4; ++pass) {
    Forward(*net, 6000 * pass);
    std::filesystem::copy_file(folder_ / "out.h5", folder_ / "killed.h5",
                               std::filesystem::copy_options::overwrite_existing);
    ExpectRows(folder_ / "killed.h5", 6000 * (pass + 1));
  }
}

TEST_F(Hdf5OutputTest, CanBeReadAsData) {
  Forward(*MakeNet(NetText(5)), 0);
  testing::WriteFile(folder_ / "list.txt", folder_ / "out.h5" + "\n");
  const auto net = MakeNet("layer { name: 'in' type: 'HDF5Data' top: 'data' top: 'label' hdf5_data_param { source: '" +
                           folder_ / "list.txt" + "' batch_size: 2 } }");
  net->Forward();
  net->Forward();
  EXPECT_EQ(net->blob("data").shape(), (Shape{2, 2, 3, 1}));
  EXPECT_EQ(net->blob("data").f32()[7], 62);
  EXPECT_EQ(net->blob("label").f32()[1], 3);
}

// An earlier run's, and so written over otherwise.
TEST_F(Hdf5OutputTest, DoesNotReplaceWhatTheNetReads) {
  Forward(*MakeNet(NetText(5)), 0);
  testing::WriteFile(folder_ / "list.txt", "other.h5\nout.h5\n");
  std::filesystem::copy_file(folder_ / "out.h5", folder_ / "other.h5");
  const std::string before = testing::ReadFile(folder_ / "out.h5");
  const std::string data =
      "layer { name: 'more' type: 'HDF5Data' top: 'data' top: 'label' hdf5_data_param { source: '" +
      folder_ / "list.txt" + "' batch_size: 2 } }\n";
  const auto output = [&](const std::string& file) {
    return data +
           "layer { name: 'out' type: 'HDF5Output' bottom: 'data' bottom: 'label' hdf5_output_param { file_name: '" +
           folder_ / file + "' } }\n";
  };
  ExpectThrows<UserError>(
      [&] {
        for (int i = 0; i < 4; ++i) MakeNet(output("out.h5"))->Forward();
      },
      {"net.prototxt:2:", "layer \"out\" (HDF5Output)", "out.h5\" is what layer \"more\" reads", "name another file"});
  EXPECT_EQ(testing::ReadFile(folder_ / "out.h5") == before, true);
  MakeNet(output("another.h5"))->Forward();
}

// What a test would destroy for the training that goes on, and the other way round.
TEST_F(Hdf5OutputTest, DoesNotReplaceWhatAnotherNetOfTheSolverReads) {
  Forward(*MakeNet(NetText(5)), 0);
  testing::WriteFile(folder_ / "list.txt", folder_ / "out.h5" + "\n");
  const std::string before = testing::ReadFile(folder_ / "out.h5");
  const auto make = [&](const std::string& reads, const std::string& writes, const std::string& file) {
    const auto in = [](const std::string& phase) { return " include { phase: " + phase + " } "; };
    const std::string shapes = "shape { dim: 5 dim: 6 } shape { dim: 5 }";
    const NetFile net = ParseNet(
        "layer { name: 'in' type: 'HDF5Data' top: 'data' top: 'label'" + in(reads) + "hdf5_data_param { source: '" +
            folder_ / "list.txt" + "' batch_size: 5 } }\n" +
            "layer { name: 'other' type: 'DummyData' top: 'data' top: 'label'" + in(writes) + "dummy_data_param { " +
            shapes + " } }\n" +
            "layer { name: 'ip' type: 'InnerProduct' bottom: 'data' top: 'ip' inner_product_param { num_output: 1 } }\n"
            "layer { name: 'loss' type: 'EuclideanLoss' bottom: 'ip' bottom: 'label' top: 'loss' }\n"
            "layer { name: 'out' type: 'HDF5Output' bottom: 'data' bottom: 'label'" +
            in(writes) + "hdf5_output_param { file_name: '" + folder_ / file + "' } }\n",
        "net.prototxt");
    SolverFile file_of_solver = ParseSolver(
        "base_lr: 0.01 lr_policy: 'fixed' max_iter: 2 test_iter: 1 test_interval: 1 snapshot_after_train: false",
        "solver.prototxt");
    *file_of_solver.solver.mutable_net_param() = net.net;
    Solver(file_of_solver, {}).Train();
  };
  ExpectThrows<UserError>([&] { make("TRAIN", "TEST", "out.h5"); },
                          {"layer \"out\" (HDF5Output) of test net #0",
                           "out.h5\" is what layer \"in\" of the train net reads", "name another file"});
  ExpectThrows<UserError>([&] { make("TEST", "TRAIN", "out.h5"); },
                          {"layer \"out\" (HDF5Output) of the train net", "layer \"in\" of test net #0 reads"});
  EXPECT_EQ(testing::ReadFile(folder_ / "out.h5") == before, true);
  make("TRAIN", "TEST", "another.h5");
}

// Images may lie channels last, in the net.
TEST_F(Hdf5OutputTest, WritesImagesPlain) {
  const auto net = MakeNet(
      "layer { name: 'in' type: 'Input' top: 'x' top: 'label' input_param { shape { dim: 2 dim: 3 dim: 8 dim: 8 } "
      "shape { dim: 2 } } }\n"
      "layer { name: 'c' type: 'Convolution' bottom: 'x' top: 'c' convolution_param { num_output: 16 kernel_size: 3 "
      "weight_filler { type: 'xavier' } } }\n"
      "layer { name: 'p' type: 'Pooling' bottom: 'c' top: 'p' pooling_param { kernel_size: 2 stride: 2 } }\n"
      "layer { name: 's' type: 'Split' bottom: 'p' top: 'seen' top: 'written' }\n"
      "layer { name: 'out' type: 'HDF5Output' bottom: 'written' bottom: 'label' hdf5_output_param { file_name: '" +
      folder_ / "out.h5" + "' } }\n");
  const std::vector<NetInput> inputs = net->inputs();
  for (int64_t i = 0; i < inputs[0].value.count(); ++i) inputs[0].value.f32()[i] = static_cast<float>(i % 29) - 14;
  net->Forward();
  const Tensor seen = net->blob("seen");
  std::vector<float> written(static_cast<size_t>(seen.count()), -1);
  OpenHdf5(folder_ / "out.h5")->Read("data", written.data());
  EXPECT_EQ(written, std::vector<float>(seen.f32(), seen.f32() + seen.count()));
}

TEST_F(Hdf5OutputTest, OnlyOneWritesAFile) {
  const auto first = MakeNet(NetText(2)), second = MakeNet(NetText(2));
  Forward(*first, 0);
  ExpectThrows<EnvironmentError>([&] { Forward(*second, 0); },
                                 {"cannot write " + folder_ / "out.h5", "another net of this one, has it open"});
  Forward(*first, 2);
  ExpectRows(folder_ / "out.h5", 4);
}

TEST_F(Hdf5OutputTest, FoldersThatAreGone) {
  std::string text = NetText(2);
  const std::string gone = folder_ / "gone";
  text.replace(text.find(folder_.path() + "/out.h5"), folder_.path().size() + 7, gone + "/out.h5");
  ExpectThrows<UserError>([&] { MakeNet(text); },
                          {"net.prototxt:3:", "there is no folder \"" + gone + "\"", "make it"});
  std::filesystem::create_directory(gone);
  const auto net = MakeNet(text);
  std::filesystem::remove(gone);
  ExpectThrows<EnvironmentError>([&] { Forward(*net, 0); }, {"cannot write " + gone + "/out.h5", "No such file"});
}

// Several ranks make other batches each.
TEST_F(Hdf5OutputTest, RefusesSeveralRanks) {
  NetOptions options{.phase = TRAIN};
  options.context.rank = 1;
  options.context.ranks = 2;
  ExpectThrows<UserError>([&] { MakeNet(NetText(2), options); },
                          {"net.prototxt:3:", "layer \"out\" (HDF5Output)", "2 train at once", "phase: TEST"});
}

// Passes that are issued step by step, captured and replayed.
TEST_F(Hdf5OutputTest, WritesFromGpus) {
  NetOptions options{.phase = TEST};
  try {
    options.context.device = &OpenGpu(0);
  } catch (const EnvironmentError& error) {
    GTEST_SKIP() << error.what();
  }
  const auto net = MakeNet(NetText(3), options);
  for (int pass = 0; pass < 6; ++pass) {
    Forward(*net, 3 * pass);
    std::filesystem::copy_file(folder_ / "out.h5", folder_ / "so_far.h5",
                               std::filesystem::copy_options::overwrite_existing);
    ExpectRows(folder_ / "so_far.h5", 3 * (pass + 1));
    if (pass == 3) net->FindNonFinite();
  }
}

TEST_F(Hdf5OutputTest, WritesWhatIsTrainedOnGpus) {
  const auto train = [&](Device& device, const std::string& name) {
    NetOptions options;
    options.context.device = &device;
    options.context.seed = 1;
    Net net(
        ParseNet("layer { name: 'd' type: 'DummyData' top: 'x' top: 'label' dummy_data_param { shape { dim: 4 dim: 8 } "
                 "shape { dim: 4 } data_filler { type: 'gaussian' } data_filler { type: 'constant' } } }\n"
                 "layer { name: 'ip' type: 'InnerProduct' bottom: 'x' top: 'ip' inner_product_param { num_output: 5 "
                 "weight_filler { type: 'xavier' } } }\n"
                 "layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'ip' bottom: 'label' top: 'loss' }\n"
                 "layer { name: 'out' type: 'HDF5Output' bottom: 'ip' bottom: 'label' hdf5_output_param { "
                 "file_name: '" +
                     folder_ / name + "' } }\n",
                 "net.prototxt"),
        options);
    for (int pass = 0; pass < 5; ++pass) {
      net.ClearGradients();
      net.ForwardBackward();
    }
  };
  Gpu* gpu = nullptr;
  try {
    gpu = &OpenGpu(0);
  } catch (const EnvironmentError& error) {
    GTEST_SKIP() << error.what();
  }
  train(CpuDevice(), "cpu.h5");
  train(*gpu, "gpu.h5");
  std::vector<float> expected(100), got(100);
  OpenHdf5(folder_ / "cpu.h5")->Read("data", expected.data());
  OpenHdf5(folder_ / "gpu.h5")->Read("data", got.data());
  for (size_t i = 0; i < 100; ++i) EXPECT_NEAR(got[i], expected[i], 1e-5) << i;
  EXPECT_NE(expected[0], expected[20]) << "another batch in every pass";
}

}  // namespace
}  // namespace crema
