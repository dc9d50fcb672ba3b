// Trainings that wait for their data say so, once, and what would help.
#include <gtest/gtest.h>

#include "base/compute_threads.h"
#include "crema/data.pb.h"
#include "data/databases/lmdb_writer.h"
#include "image/codec.h"
#include "solver/training_test.h"

namespace crema {
namespace {

constexpr char kSlowNet[] = R"(
layer { name: "photographs" type: "Data" top: "data" top: "label"
        transform_param { crop_size: 1 } data_param { source: "large_lmdb" batch_size: 2 prefetch: 1 threads: 1 } }
layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
        inner_product_param { num_output: 3 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
)";

// Of hundreds of thousands of pixels, which are all decoded for a crop of one.
std::string LargeRecord() {
  Image image;
  image.Resize(1500, 1500, 3);
  for (size_t i = 0; i < image.size(); ++i) image.pixels[i] = static_cast<uint8_t>(i * i >> 12);
  const std::vector<uint8_t> png = EncodePng(image);
  Datum datum;
  datum.set_data(std::string(png.begin(), png.end()));
  datum.set_encoded(true);
  datum.set_label(1);
  return datum.SerializeAsString();
}

int NoticesOfWaiting(const std::string& notices) {
  int count = 0;
  for (size_t at = 0; (at = notices.find("waits for its data", at)) != std::string::npos; ++at) ++count;
  return count;
}

class DataWaitsTest : public SmallTraining {};

TEST_F(DataWaitsTest, SlowDataIsNoticedOnce) {
  LmdbWriter writer(folder_ / "large_lmdb", LmdbWriter::Existing::kRefuse);
  writer.Put("0", LargeRecord());
  writer.Commit();
  folder_.Write("net.prototxt", kSlowNet);
  Train("display: 3\n", 13);
  const std::string& notice = recorder_.notices;
  EXPECT_EQ(NoticesOfWaiting(notice), 1);
  EXPECT_NE(notice.find("layer \"photographs\""), std::string::npos) << notice;
  const bool alone = UsableCores() < 2;
  EXPECT_NE(notice.find(alone ? "--shorter_side" : "data_param.threads (now 1"), std::string::npos) << notice;
}

TEST_F(DataWaitsTest, FastDataIsNot) {
  std::string large_net = kSmallNet;
  for (size_t at; (at = large_net.find("num_output: 16")) != std::string::npos;)
    large_net.replace(at, 14, "num_output: 60000");
  folder_.Write("net.prototxt", large_net);
  Train("display: 20\n", 101);
  EXPECT_EQ(NoticesOfWaiting(recorder_.notices), 0) << recorder_.notices;
}

}  // namespace
}  // namespace crema
