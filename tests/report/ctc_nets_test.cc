// Nets of forks with warp-ctc as they are.
#include <gtest/gtest.h>

#include <string>

#include "compiler/compiler.h"
#include "corpus_files.h"
#include "device/device.h"
#include "report/assumed_inputs.h"

namespace crema {
namespace {

TEST(CorpusOfWarpCtc, NetsCompile) {
  const std::string folder = "forks/xmfbit+warpctc-caffe/examples/warpctc_captcha";
  if (CorpusFiles(folder).empty()) GTEST_SKIP() << "there is no corpus at " << CorpusFolder();
  NetOptions options;
  options.context.device = &CpuDevice();
  const BlobShapes shapes = {{"data", Shape{512, 3, 30, 80}}, {"label", Shape{512, 5}}};
  const NetFile training = ReadNetFile(CorpusFolder() + "/" + folder + "/lstm_ctc.prototxt");
  for (const Phase phase : {TRAIN, TEST}) {
    options.phase = phase;
    EXPECT_TRUE(Compile(AssumeInputs(training, shapes, false), options)->warnings.empty());
  }
  EXPECT_NO_THROW(Compile(ReadNetFile(CorpusFolder() + "/" + folder + "/deploy.prototxt"), options));
}

}  // namespace
}  // namespace crema
