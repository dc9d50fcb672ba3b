// Every case of every layer type: see docs/adding_a_layer.md.
#include <gtest/gtest.h>

#include <filesystem>

#include "device/gpu.h"
#include "layers/case_files.h"
#include "layers/layer_checks.h"
#include "layers/layer_harness.h"

namespace crema::testing {
namespace {

// Whether the case's layer takes images with channels last (in bf16), and whether the case shows that it does: the
// order of an image's elements differs between the layouts.
struct ChannelsLastCase {
  bool taken = false, shown = false, bfloat16_taken = false, bfloat16_shown = false;
};

ChannelsLastCase FindChannelsLast(const LayerCase& test) {
  const LayerInstance layer(test, nullptr, {});
  if (layer.setup().channels_last() == LayerSetup::ChannelsLast::kNever) return {};
  const bool bfloat16 = layer.setup().half_precision();
  for (const CaseTensor& bottom : test.bottom()) {
    const Shape shape = ShapeOf(bottom);
    if (IsImage(shape) && shape[1] > 1 && shape.count(2) > 1) return {true, true, bfloat16, bfloat16};
  }
  return {true, false, bfloat16, false};
}

class LayerCaseTest : public ::testing::Test {
 public:
  explicit LayerCaseTest(LayerCase test) : test_(std::move(test)) {}
  void TestBody() override { CheckCase(test_); }

 private:
  LayerCase test_;
};

class GpuCaseTest : public ::testing::Test {
 public:
  explicit GpuCaseTest(LayerCase test) : test_(std::move(test)) {}
  void TestBody() override {
    Gpu* gpu = nullptr;
    try {
      gpu = &OpenGpu(0);
    } catch (const EnvironmentError& error) {
      GTEST_SKIP() << error.what();
    }
    CheckOnGpu(test_, *gpu);
  }

 private:
  LayerCase test_;
};

// A type that takes images with channels last has a case that would show if it did not.
class ChannelsLastTest : public ::testing::Test {
 public:
  explicit ChannelsLastTest(CaseFile file) : file_(std::move(file)) {}
  void TestBody() override {
    ChannelsLastCase any;
    for (const LayerCase& test : file_.cases) {
      if (test.has_expect_error()) continue;
      const ChannelsLastCase found = FindChannelsLast(test);
      any.taken |= found.taken;
      any.shown |= found.shown;
      any.bfloat16_taken |= found.bfloat16_taken;
      any.bfloat16_shown |= found.bfloat16_shown;
    }
    EXPECT_TRUE(any.shown || !any.taken) << file_.path
                                         << ": add a case with an image of several channels and several pixels";
    EXPECT_TRUE(any.bfloat16_shown || !any.bfloat16_taken)
        << file_.path << ": add such a case with settings that let images be bf16";
  }

 private:
  CaseFile file_;
};

class UnreadableFile : public ::testing::Test {
 public:
  explicit UnreadableFile(std::string error) : error_(std::move(error)) {}
  void TestBody() override { FAIL() << error_; }

 private:
  std::string error_;
};

// Registers <Type>.<case> for every case of every file; an unreadable file becomes a failing test.
void RegisterCases() {
  const auto add = [](const CaseFile& file, const char* suite, const std::string& name, auto make) {
    ::testing::RegisterTest(suite, name.c_str(), nullptr, nullptr, file.path.c_str(), __LINE__, make);
  };
  for (const CaseFile& file : ReadCaseFiles()) {
    for (const LayerCase& test : file.cases) {
      add(file, file.type.c_str(), test.name(), [test]() -> ::testing::Test* { return new LayerCaseTest(test); });
      add(file, (file.type + "OnGpu").c_str(), test.name(),
          [test]() -> ::testing::Test* { return new GpuCaseTest(test); });
    }
    add(file, "ChannelsLast", file.type, [file]() -> ::testing::Test* { return new ChannelsLastTest(file); });
    if (!file.problem.empty()) {
      add(file, "CaseFiles", file.type, [file]() -> ::testing::Test* { return new UnreadableFile(file.problem); });
    }
  }
}

TEST(LayerTypes, EachHasACaseFile) {
  EXPECT_FALSE(LayerTypes().empty());
  for (const LayerType* type : LayerTypes()) {
    EXPECT_TRUE(std::filesystem::exists(CaseFilePath(type->name)))
        << "layer type " << type->name << " has no tests/layers/" << type->name << ".prototxt";
  }
}

TEST(LayerTypes, AreFoundByName) {
  for (const LayerType* type : LayerTypes()) EXPECT_EQ(FindLayerType(type->name), type);
  EXPECT_EQ(FindLayerType("Nonsense"), nullptr);
}

}  // namespace

void RegisterLayerCases() { RegisterCases(); }

}  // namespace crema::testing

// Not gtest's own: cases are registered once the protobuf runtime is up.
int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  crema::testing::RegisterLayerCases();
  return RUN_ALL_TESTS();
}
