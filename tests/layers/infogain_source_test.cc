// InfogainLoss with its matrix from a file.
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "crema/blob.pb.h"
#include "errors.h"
#include "layers/outcome.h"
#include "near.h"
#include "temporary_folder.h"

namespace crema::testing {
namespace {

class InfogainSource : public ::testing::Test {
 protected:
  InfogainSource() {
    test_.mutable_layer()->set_type("InfogainLoss");
    Add({4, 3});
    Add({4})->set_labels(3);
    test_.mutable_layer()->mutable_infogain_loss_param()->set_source(path_);
  }

  CaseTensor* Add(const std::vector<int64_t>& dims) {
    CaseTensor* bottom = test_.add_bottom();
    bottom->mutable_dim()->Add(dims.begin(), dims.end());
    return bottom;
  }

  void Write(const std::string& bytes) const { std::ofstream(path_, std::ios::binary) << bytes; }

  void WriteBlob(const std::vector<float>& values, const std::vector<int64_t>& dims) const {
    BlobProto blob;
    blob.mutable_data()->Add(values.begin(), values.end());
    blob.mutable_shape()->mutable_dim()->Add(dims.begin(), dims.end());
    Write(blob.SerializeAsString());
  }

  std::string Mistake() const {
    return ThrownBy<UserError>([&] { const LayerInstance layer(test_, nullptr, {}); });
  }

  TemporaryFolder folder_;
  std::string path_ = folder_ / "infogain.binaryproto";
  LayerCase test_;
};

TEST_F(InfogainSource, IsAsTheThirdBottom) {
  const std::vector<float> matrix = {1, 0, 0.5f, 0.25f, 2, 0, 0, -0.5f, 1};
  WriteBlob(matrix, {1, 1, 3, 3});
  const Wanted wanted{{true, false}, {}};
  const Outcome from_file = RunOnce(test_, &wanted);
  EXPECT_EQ(from_file.problem, "");
  test_.mutable_layer()->clear_infogain_loss_param();
  Add({3, 3})->mutable_value()->Add(matrix.begin(), matrix.end());
  const Wanted of_three{{true, false, false}, {}};
  const Outcome from_bottom = RunOnce(test_, &of_three);
  ExpectSame(from_file.tops, from_bottom.tops, 0, "top");
  ExpectClose(from_file.bottom_gradients[0], from_bottom.bottom_gradients[0], 0, 0, "gradient");
  EXPECT_GT(LargestOf(from_file.bottom_gradients[0]), 0.01);
}

TEST_F(InfogainSource, ThatDoesNotFitIsAMistake) {
  WriteBlob({1, 0, 0, 1}, {2, 2});
  EXPECT_NE(Mistake().find(path_ + " holds 2x2 values, but H takes 3 x 3, a row for each label"), std::string::npos)
      << Mistake();
  WriteBlob({1, 0, 0, 1}, {3, 3});
  EXPECT_NE(Mistake().find("holds 4 values, but its shape 3x3 needs 9"), std::string::npos) << Mistake();
  Write("not a blob");
  EXPECT_NE(Mistake().find("is no .binaryproto"), std::string::npos) << Mistake();
}

}  // namespace
}  // namespace crema::testing
