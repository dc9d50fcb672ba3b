#include "distributed/cluster_settings.h"

#include <gtest/gtest.h>

#include "crema/error.h"

namespace crema {
namespace {

// What is said of them: warnings, or else mistakes.
std::string SaidOf(const std::string& settings) {
  const SolverFile file = ParseSolver("base_lr: 0.1\ndistributed { " + settings + " }\n", "solver.prototxt");
  try {
    std::string said;
    for (const Diagnostic& warning : CheckDistributed(file)) said += "warning: " + warning.message + "\n";
    return said;
  } catch (const UserError& error) {
    return error.what();
  }
}

bool Has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(ClusterSettings, ExchangesAmongWorkersThatCannotBe) {
  const std::string tcp = "endpoint: \"tcp://127.0.0.1:0\" ";
  for (const std::string topology : {"SHARDED", "RING", "TREE", "HALVING"}) {
    const std::string peers = "topology: " + topology + " ";
    EXPECT_EQ(SaidOf("local_workers: 2 " + peers), "");
    EXPECT_EQ(SaidOf(tcp + peers + "keep_rounds: 1 outer_momentum: 0.5 history: MEAN batch_norm: FIRST"), "");
    const std::string gradient = SaidOf("local_workers: 2 mode: GRADIENT " + peers);
    EXPECT_TRUE(Has(gradient, "solver.prototxt:2:")) << gradient;
    EXPECT_TRUE(Has(gradient, "topology is " + topology)) << gradient;
    EXPECT_TRUE(Has(gradient, "set mode: AVERAGE, or topology: STAR")) << gradient;
    const std::string codec = SaidOf(tcp + "codec: FP16 " + peers);
    EXPECT_TRUE(Has(codec, "codec is FP16; remove codec, or set topology: STAR")) << codec;
    const std::string down = SaidOf(tcp + "down_codec: INT8 " + peers);
    EXPECT_TRUE(Has(down, "down_codec is INT8; remove down_codec, or set topology: STAR")) << down;
    EXPECT_FALSE(Has(down, "but codec")) << down;
    const std::string both = SaidOf(tcp + "local_workers: 2 " + peers);
    EXPECT_TRUE(Has(both, "remove one of the two")) << both;
    EXPECT_TRUE(Has(SaidOf(tcp + peers + "keep_rounds: 0"), "keep_rounds is 0; it must be from 1 to 1000000"));
  }
  // All of them at once.
  const std::string all = SaidOf(tcp + "topology: RING local_workers: 2 mode: GRADIENT codec: FP16 keep_rounds: 0");
  for (const char* part : {"mode is GRADIENT", "codec is FP16", "remove one of the two", "keep_rounds is 0"}) {
    EXPECT_TRUE(Has(all, part)) << all;
  }
}

TEST(ClusterSettings, StarHasAllOfThem) {
  EXPECT_EQ(SaidOf("endpoint: \"tcp://127.0.0.1:0\" local_workers: 2 codec: FP16 down_codec: INT8"), "");
  EXPECT_EQ(SaidOf("local_workers: 2 mode: GRADIENT topology: STAR"), "");
  EXPECT_TRUE(Has(SaidOf("local_workers: 2 keep_rounds: 0"), "keep_rounds is 0"));
  EXPECT_TRUE(Has(SaidOf("local_workers: 2 keep_rounds: 7"), "warning: distributed: keep_rounds has no effect"));
}

}  // namespace
}  // namespace crema
