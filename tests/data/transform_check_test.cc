// Mistakes in the blocks of policies, hue and blur; tests of the layer Data have those of other fields.
#include "data/transforms/transform_check.h"

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <string>

namespace crema {
namespace {

TransformationParameter Parsed(const std::string& text) {
  TransformationParameter param;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &param)) << text;
  return param;
}

TEST(TransformCheck, MistakesNameTheirFieldAndTheRemedy) {
  const auto expect = [](const std::string& text, const std::string& field, const std::string& part) {
    SCOPED_TRACE(text);
    const auto mistake = FindMistake(Parsed(text));
    ASSERT_TRUE(mistake);
    EXPECT_EQ(mistake->field, field);
    EXPECT_NE(mistake->message.find(part), std::string::npos) << mistake->message;
  };
  expect("color_jitter { hue: 0.6 }", "color_jitter.hue", "in [0, 0.5]");
  expect("color_jitter { hue: -0.1 }", "color_jitter.hue", "in [0, 0.5]");
  expect("color_jitter { hue: nan }", "color_jitter.hue", "nan");
  expect("rand_augment { operations: 0 }", "rand_augment.operations", "in [1, 14]");
  expect("rand_augment { operations: 15 }", "rand_augment.operations", "in [1, 14]");
  expect("rand_augment { magnitude: 31 }", "rand_augment.magnitude", "in [0, 30]");
  expect("rand_augment {} trivial_augment {}", "trivial_augment", "keep one policy");
  expect("gaussian_blur { probability: 1.5 }", "gaussian_blur.probability", "in [0, 1]");
  expect("gaussian_blur { probability: nan }", "gaussian_blur.probability", "nan");
  expect("gaussian_blur { min_sigma: 0 }", "gaussian_blur.min_sigma", "above 0");
  expect("gaussian_blur { min_sigma: nan }", "gaussian_blur.min_sigma", "nan");
  expect("gaussian_blur { max_sigma: 33 }", "gaussian_blur.max_sigma", "at most 32");
  expect("gaussian_blur { max_sigma: inf }", "gaussian_blur.max_sigma", "inf");
  expect("gaussian_blur { min_sigma: 3 }", "gaussian_blur.min_sigma", "exceeds max_sigma");
  expect("mean_file: \"m\" rand_augment {}", "mean_file", "rand_augment");
  expect("mean_file: \"m\" trivial_augment {}", "mean_file", "trivial_augment");
}

TEST(TransformCheck, EndsOfRangesAreTaken) {
  for (const char* const text :
       {"color_jitter { hue: 0.5 }", "rand_augment {}", "rand_augment { operations: 14 magnitude: 30 }",
        "rand_augment { operations: 1 magnitude: 0 }", "trivial_augment {}", "gaussian_blur {}",
        "gaussian_blur { probability: 0 min_sigma: 32 max_sigma: 32 }", "gaussian_blur {} mean_file: \"m\"",
        "rand_augment {} color_jitter { brightness: 0.4 hue: 0.1 } gaussian_blur {} random_erasing {}"}) {
    const auto mistake = FindMistake(Parsed(text));
    EXPECT_FALSE(mistake) << text << ": " << mistake->message;
  }
}

}  // namespace
}  // namespace crema
