// Weights files: what is read, what is recognised, and that no bytes can crash the reader.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/random.h"
#include "crema/files.h"

namespace crema {
namespace {

class WeightsTest : public ::testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove(path_); }

  void Write(const std::string& bytes) { std::ofstream(path_, std::ios::binary) << bytes; }
  // Of a file, which is what bytes in memory are, too.
  std::vector<LayerWeights> Read(const std::string& bytes) {
    Write(bytes);
    std::vector<LayerWeights> layers = ReadWeights(path_);
    const std::vector<LayerWeights> in_memory = ParseWeights(bytes, path_);
    EXPECT_EQ(in_memory.size(), layers.size());
    for (size_t i = 0; i < std::min(layers.size(), in_memory.size()); ++i) {
      EXPECT_EQ(in_memory[i].name, layers[i].name);
      EXPECT_EQ(in_memory[i].blobs.size(), layers[i].blobs.size());
      for (size_t j = 0; j < std::min(layers[i].blobs.size(), in_memory[i].blobs.size()); ++j) {
        EXPECT_TRUE(in_memory[i].blobs[j].data == layers[i].blobs[j].data) << layers[i].name;
      }
    }
    return layers;
  }
  // The complaint, without the name of the file.
  std::string Error(const std::string& bytes) {
    try {
      Read(bytes);
      return {};
    } catch (const UserError& error) {
      const std::string text = error.what();
      try {
        ParseWeights(bytes, path_);
        ADD_FAILURE() << "nothing is said of these bytes in memory: " << text;
      } catch (const UserError& in_memory) {
        EXPECT_EQ(in_memory.what(), text);
      }
      EXPECT_EQ(text.compare(0, path_.size(), path_), 0) << text;
      return text.substr(path_.size() + sizeof(": error: ") - 1);
    }
  }

  const std::string path_ = ::testing::TempDir() + "/weights_test_" +
                            ::testing::UnitTest::GetInstance()->current_test_info()->name() + ".caffemodel";
};

std::string Varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}
std::string Field(int number, const std::string& bytes) {
  return Varint(static_cast<uint64_t>(number) << 3 | 2) + Varint(bytes.size()) + bytes;
}
std::string Raw(const void* data, size_t bytes) { return std::string(static_cast<const char*>(data), bytes); }

NetParameter SmallNet() {
  NetParameter net;
  net.set_name("n");
  for (int i = 0; i < 3; ++i) {
    LayerParameter* layer = net.add_layer();
    layer->set_name("layer" + std::to_string(i));
    layer->set_type("InnerProduct");
    layer->add_bottom("x");
    layer->mutable_inner_product_param()->set_num_output(2);
    if (i == 1) continue;
    BlobProto* weight = layer->add_blobs();
    weight->mutable_shape()->add_dim(2);
    weight->mutable_shape()->add_dim(3 + i);
    for (int k = 0; k < 2 * (3 + i); ++k) weight->add_data(0.5f * k - i);
    BlobProto* bias = layer->add_blobs();
    bias->mutable_shape()->add_dim(2);
    bias->add_double_data(1.25);
    bias->add_double_data(-2);
  }
  return net;
}

TEST_F(WeightsTest, RoundTrip) {
  const std::vector<LayerWeights> weights = Read(SmallNet().SerializeAsString());
  ASSERT_EQ(weights.size(), 2u);
  EXPECT_EQ(weights[0].name, "layer0");
  EXPECT_EQ(weights[1].name, "layer2");
  EXPECT_EQ(weights[1].type, "InnerProduct");
  ASSERT_EQ(weights[1].blobs.size(), 2u);
  EXPECT_EQ(weights[1].blobs[0].shape, Shape({2, 5}));
  EXPECT_EQ(weights[1].blobs[0].data, (std::vector<float>{-2, -1.5, -1, -0.5, 0, 0.5, 1, 1.5, 2, 2.5}));
  EXPECT_EQ(weights[1].blobs[1].data, (std::vector<float>{1.25, -2}));
  EXPECT_FALSE(weights[0].blobs[0].legacy_shape);
}

TEST_F(WeightsTest, ValuesAndDimensionsMayBeUnpackedOrInPieces) {
  const float values[] = {1, 2, 3};
  const std::string blob = Field(7, Varint(1 << 3) + Varint(3)) + Field(5, Raw(values, 4)) + Varint(5 << 3 | 5) +
                           Raw(values + 1, 4) + Field(5, Raw(values + 2, 4));
  const std::vector<LayerWeights> weights = Read(Field(100, Field(1, "a") + Field(7, blob)));
  ASSERT_EQ(weights.size(), 1u);
  EXPECT_EQ(weights[0].blobs[0].data, (std::vector<float>{1, 2, 3}));
}

std::string Vector(int count, const std::string& values) { return Field(7, Field(1, Varint(count))) + values; }
// As NVIDIA's fork writes values: their type, and their bytes.
template <typename Value>
std::string RawValues(int type, const std::vector<Value>& values) {
  return Varint(10 << 3) + Varint(type) + Field(12, Raw(values.data(), values.size() * sizeof(Value)));
}

TEST_F(WeightsTest, RawValuesOfAnyWidth) {
  const std::vector<uint16_t> halves = {0x3c00, 0xc100, 0x0001};
  std::string layer = Field(1, "a") + Field(2, "InnerProduct");
  layer += Field(7, Vector(3, RawValues(1, std::vector<float>{1, -2.5f, 3})));
  layer += Field(7, Vector(3, RawValues(0, std::vector<double>{0.5, 4, -8})));
  layer += Field(7, Vector(3, RawValues(2, halves)));
  const std::vector<LayerWeights> weights = Read(Field(100, layer));
  ASSERT_EQ(weights.at(0).blobs.size(), 3u);
  EXPECT_EQ(weights[0].blobs[0].data, (std::vector<float>{1, -2.5f, 3}));
  EXPECT_EQ(weights[0].blobs[1].data, (std::vector<float>{0.5f, 4, -8}));
  EXPECT_EQ(weights[0].blobs[2].data, (std::vector<float>{1, -2.5f, 0x1p-24f}));
  EXPECT_EQ(weights[0].blobs[2].shape, Shape({3}));
}

TEST_F(WeightsTest, RawValuesThatAreNoneAreRefused) {
  const auto error = [&](const std::string& values) {
    return Error(Field(100, Field(1, "a") + Field(7, Vector(3, values))));
  };
  EXPECT_EQ(error(RawValues(1, std::vector<uint8_t>(11))),
            "layer \"a\": blob 0 holds 11 bytes, which are no whole number of values of 4 bytes");
  EXPECT_EQ(error(RawValues(2, std::vector<uint8_t>(4))),
            "layer \"a\": blob 0 holds 2 values, but its shape 3 needs 3");
  EXPECT_NE(error(RawValues(3, std::vector<int>(3))).find("raw values of type 3, but only 0"), std::string::npos);
}

// Two channels: mean 1 2, variance 3 4, scale 5 6, bias 7 8.
TEST_F(WeightsTest, BatchNormThatScalesItselfHasOneOrder) {
  const std::vector<std::vector<float>> today = {{1, 2}, {3, 4}, {0}, {5, 6}, {7, 8}};
  const std::vector<std::vector<float>> first = {{5, 6}, {7, 8}, {1, 2}, {3, 4}, {0}};
  for (const auto& blobs : {today, first}) {
    std::string layer = Field(1, "a") + Field(2, "BatchNorm");
    for (const auto& values : blobs) {
      const std::string shape = Varint(1) + Varint(values.size()) + Varint(1) + Varint(1);
      layer += Field(7, Field(7, Field(1, shape)) + RawValues(1, values));
    }
    const std::vector<LayerWeights> weights = Read(Field(100, layer));
    const std::vector<std::vector<float>> expected = {{1, 2}, {3, 4}, {1}, {5, 6}, {7, 8}};
    ASSERT_EQ(weights.at(0).blobs.size(), 5u);
    for (size_t i = 0; i < 5; ++i) {
      EXPECT_EQ(weights[0].blobs[i].data, expected[i]) << i;
      EXPECT_EQ(weights[0].blobs[i].shape.axes(), 1) << i;
    }
  }
}

TEST_F(WeightsTest, LegacyShape) {
  NetParameter net;
  LayerParameter* layer = net.add_layer();
  layer->set_name("a");
  BlobProto* blob = layer->add_blobs();
  blob->set_num(1);
  blob->set_channels(1);
  blob->set_height(2);
  blob->set_width(1);
  blob->add_data(1);
  blob->add_data(2);
  const std::vector<LayerWeights> weights = Read(net.SerializeAsString());
  EXPECT_EQ(weights.at(0).blobs[0].shape, Shape({1, 1, 2, 1}));
  EXPECT_TRUE(weights[0].blobs[0].legacy_shape);
}

// Blobs of the first C3D: five extents in fields 1 to 5, values in 6, gradients in 7.
TEST_F(WeightsTest, VolumesOfTheFirstC3d) {
  const auto blob = [](const std::string& values) {
    return std::string("\x08\x01\x10\x01\x18\x02\x20\x01\x28\x01", 10) + values;
  };
  const std::string two("\x32\x08\x00\x00\x80\x3f\x00\x00\x00\xc0", 10);
  const std::string gradients("\x3a\x08\x00\x00\x40\x40\x00\x00\x40\x40", 10);
  const auto net = [](const std::string& blob) {
    const std::string blobs = std::string("\x22\x01") + "c" + "\x32" + static_cast<char>(blob.size()) + blob;
    return std::string("\x12") + static_cast<char>(blobs.size()) + blobs;
  };
  const std::vector<LayerWeights> weights = Read(net(blob(two + gradients)));
  EXPECT_EQ(weights.at(0).name, "c");
  EXPECT_EQ(weights[0].blobs.at(0).shape, Shape({1, 1, 2, 1, 1}));
  EXPECT_TRUE(weights[0].blobs[0].legacy_shape);
  EXPECT_EQ(weights[0].blobs[0].data, (std::vector<float>{1, -2}));
  try {
    Read(net(blob("")));
    FAIL();
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("holds 0 values, but its shape 1x1x2x1x1 needs 2"), std::string::npos)
        << error.what();
  }
}

TEST_F(WeightsTest, V1AndV0Layers) {
  NetParameter net;
  V1LayerParameter* v1 = net.add_layers();
  v1->set_name("a");
  v1->set_type(V1LayerParameter::SOFTMAX_LOSS);
  v1->add_blobs()->mutable_shape();
  v1->mutable_blobs(0)->add_data(3);
  V0LayerParameter* v0 = net.add_layers()->mutable_layer();
  v0->set_name("b");
  v0->set_type("conv");
  v0->add_blobs()->mutable_shape()->add_dim(1);
  v0->mutable_blobs(0)->add_data(4);
  const std::vector<LayerWeights> weights = Read(net.SerializeAsString());
  ASSERT_EQ(weights.size(), 2u);
  EXPECT_EQ(weights[0].name + " " + weights[0].type, "a SoftmaxWithLoss");
  EXPECT_EQ(weights[0].blobs[0].shape, Shape());
  EXPECT_EQ(weights[1].name + " " + weights[1].type, "b Convolution");
  EXPECT_EQ(weights[1].blobs[0].data, std::vector<float>{4});
}

TEST_F(WeightsTest, FieldsOfForksAreSkippedWhateverTheyHold) {
  std::string layer = Field(1, "a") + Varint(120 << 3) + Varint(~0ull);  // a number where a block should be
  layer += Field(149, std::string("\xff\xff\xff\x00", 4)) + Varint(150 << 3 | 3) + Field(2, "x") + Varint(1 << 3 | 1) +
           std::string(8, 'z') + Varint(150 << 3 | 4) + Varint(2000 << 3 | 5) + std::string(4, 'z');
  const float one = 1;
  layer += Field(7, Varint(11 << 3) + Varint(0) + Field(5, Raw(&one, 4)) + Field(7, Field(1, Varint(1))));
  const std::vector<LayerWeights> weights = Read(Varint(1 << 3 | 2) + Varint(1) + "n" + Field(100, layer));
  ASSERT_EQ(weights.size(), 1u);
  EXPECT_EQ(weights[0].blobs[0].data, std::vector<float>{1});
}

TEST_F(WeightsTest, ShapeAndValuesMustAgree) {
  NetParameter net = SmallNet();
  net.mutable_layer(2)->mutable_blobs(1)->mutable_shape()->set_dim(0, 7);
  EXPECT_EQ(Error(net.SerializeAsString()), "layer \"layer2\": blob 1 holds 2 values, but its shape 7 needs 7");
  net.mutable_layer(2)->mutable_blobs(1)->mutable_shape()->set_dim(0, -1);
  EXPECT_EQ(Error(net.SerializeAsString()), "layer \"layer2\": blob 1 has a negative extent, -1");
  net.mutable_layer(2)->mutable_blobs(1)->clear_shape();
  EXPECT_EQ(Error(net.SerializeAsString()), "layer \"layer2\": blob 1 holds 2 values, but has no shape");
  for (int i = 0; i < 4; ++i) net.mutable_layer(2)->mutable_blobs(1)->mutable_shape()->add_dim(int64_t{1} << 32);
  EXPECT_EQ(Error(net.SerializeAsString()),
            "layer \"layer2\": blob 1 holds 2 values, but its shape 4294967296x4294967296x4294967296x4294967296 needs "
            "18446744073709551615");
  for (int i = 0; i < 40; ++i) net.mutable_layer(2)->mutable_blobs(1)->mutable_shape()->add_dim(1);
  EXPECT_EQ(Error(net.SerializeAsString()), "layer \"layer2\": blob 1 has 44 axes, but at most 32 are possible");
}

TEST_F(WeightsTest, DamageNamesTheByteAndTheLayer) {
  const std::string bytes = SmallNet().SerializeAsString();
  const std::string cut = bytes.substr(0, bytes.size() - 5);
  const size_t last = bytes.rfind(std::string("\xa2\x06", 2));
  EXPECT_EQ(Error(cut), "is damaged at byte " + std::to_string(last + 2) + " in layer number 3: a field of " +
                            std::to_string(bytes.size() - last - 3) + " bytes starts here, but only " +
                            std::to_string(cut.size() - last - 3) + " are left; the file has " +
                            std::to_string(cut.size()) + " bytes: was it copied or downloaded in full?");
  std::string bent = bytes;
  bent[last + 3 + 8] = '\x07';  // right after the name of the last layer: a wire type that does not exist
  EXPECT_EQ(Error(bent), "is damaged at byte " + std::to_string(last + 11) +
                             " in layer \"layer2\": no field starts here; the file has " +
                             std::to_string(bytes.size()) + " bytes: was it copied or downloaded in full?");
}

TEST_F(WeightsTest, OtherFilesAreNamed) {
  const auto expect = [this](const std::string& bytes, const std::string& start) {
    EXPECT_EQ(Error(bytes).compare(0, start.size(), start), 0) << Error(bytes);
  };
  expect("", "is empty;");
  expect("name: \"LeNet\"\nlayer { }\n", "is a text file, not a .caffemodel;");
  expect("\n\n# comment with \xc3\xa4\nlayer { }\n", "is a text file, not a .caffemodel;");
  expect("version https://git-lfs.github.com/spec/v1\n", "is a Git LFS pointer");
  expect(std::string("PK\x03\x04\x00\x00", 6), "is a zip archive");
  expect(Field(1, "name"), "holds no layers;");
  SolverState state;
  state.set_iter(100);
  state.set_learned_net("x.caffemodel");
  state.add_history()->add_data(1);
  expect(state.SerializeAsString(), "is the state of a solver, not the weights of a net; give it with --snapshot");
  SolverState type;  // what a .solverstate of crema begins with
  type.set_solver_type("SGD");
  expect(type.SerializeAsString() + state.SerializeAsString(), "is the state of a solver, not the weights of a net;");
  BlobProto mean;
  mean.set_num(1);
  mean.set_channels(3);
  mean.add_data(1);
  expect(mean.SerializeAsString(), "is a single blob, such as the mean");
}

TEST_F(WeightsTest, AbsentFileAndFolder) {
  EXPECT_THROW(ReadWeights(path_ + ".absent"), UserError);
  EXPECT_THROW(ReadWeights(::testing::TempDir()), UserError);
  EXPECT_THROW(ReadWeights(""), UserError);
}

TEST_F(WeightsTest, APipeIsNotWaitedFor) {
  const std::string pipe = path_ + ".pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THROW(ReadWeights(pipe), UserError);
  std::filesystem::remove(pipe);
}

TEST_F(WeightsTest, LargeFileIsReadPastItsBuffer) {
  NetParameter net;
  LayerParameter* layer = net.add_layer();
  layer->set_name("big");
  BlobProto* blob = layer->add_blobs();
  const int count = 1000003;
  for (int i = 0; i < count; ++i) blob->add_data(static_cast<float>(i));
  for (int i = 0; i < 70000; ++i) blob->add_diff(1);  // longer than the buffer, skipped
  blob->mutable_shape()->add_dim(count);
  const std::vector<LayerWeights> weights = Read(net.SerializeAsString());
  ASSERT_EQ(weights.at(0).blobs.at(0).data.size(), static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) ASSERT_EQ(weights[0].blobs[0].data[i], static_cast<float>(i));
}

TEST_F(WeightsTest, DamagedFilesNeverCrash) {
  const std::string original = SmallNet().SerializeAsString();
  const RandomStream random(11, 3);
  uint64_t draw = 0;
  int read = 0, refused = 0;
  const int file = ::memfd_create("weights", 0);
  ASSERT_GE(file, 0);
  const std::string path = "/proc/self/fd/" + std::to_string(file);
  for (int round = 0; round < 4000; ++round) {
    std::string bytes = original;
    const int flips = 1 + static_cast<int>(random.Below(draw++, 4));
    for (int i = 0; i < flips; ++i) {
      const size_t at = random.Below(draw++, bytes.size());
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << random.Below(draw++, 8)));
    }
    if (round % 3 == 0) bytes.resize(random.Below(draw++, bytes.size() + 1));
    try {
      ASSERT_EQ(::ftruncate(file, 0), 0);
      ASSERT_EQ(::pwrite(file, bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
      for (const LayerWeights& layer : ReadWeights(path)) {
        for (const LayerWeights::Blob& blob : layer.blobs) {
          int64_t count = 1;
          for (int64_t extent : blob.shape.dims()) count *= extent;
          ASSERT_EQ(static_cast<size_t>(count), blob.data.size());
        }
      }
      ++read;
    } catch (const UserError&) {
      ++refused;
    }
  }
  ::close(file);
  EXPECT_GT(read, 300);
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace crema
