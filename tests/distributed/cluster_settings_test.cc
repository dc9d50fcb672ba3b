#include "distributed/training/cluster_settings.h"

#include <gtest/gtest.h>

#include "crema/error.h"
#include "distributed/training/coordinate.h"

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

TEST(ClusterSettings, OfElsewhereAreCheckedAsFarAsTheyCame) {
  const auto check = [](const std::string& settings) {
    SolverFile file;
    file.solver = ParseSolver("base_lr: 0.1\ndistributed { " + settings + " }\n", "solver.prototxt").solver;
    CheckExchange(file);
  };
  EXPECT_NO_THROW(check("mode: GRADIENT topology: SHARDED overlap: BACKWARD"));
  EXPECT_NO_THROW(check("mode: ELASTIC"));
  EXPECT_THROW(check("mode: GRADIENT topology: RING overlap: BACKWARD"), UserError);
  EXPECT_THROW(check("mode: STALE topology: TREE"), UserError);
}

TEST(ClusterSettings, ExchangesAmongWorkersThatCannotBe) {
  const std::string tcp = "endpoint: \"tcp://127.0.0.1:0\" ";
  for (const std::string topology : {"SHARDED", "RING", "TREE", "HALVING"}) {
    const std::string peers = "topology: " + topology + " ";
    EXPECT_EQ(SaidOf("local_workers: 2 " + peers), "");
    EXPECT_EQ(SaidOf(tcp + peers + "keep_rounds: 1 outer_momentum: 0.5 history: MEAN batch_norm: FIRST"), "");
    EXPECT_EQ(SaidOf("local_workers: 2 mode: GRADIENT " + peers), "");
    const std::string elastic = SaidOf("local_workers: 2 mode: ELASTIC " + peers);
    EXPECT_TRUE(Has(elastic, "solver.prototxt:2:")) << elastic;
    EXPECT_TRUE(Has(elastic, "topology is " + topology)) << elastic;
    EXPECT_TRUE(Has(elastic, "set mode: AVERAGE or GRADIENT, or topology: STAR")) << elastic;
    const std::string codec = SaidOf(tcp + "codec: FP16 " + peers), down = SaidOf(tcp + "down_codec: INT8 " + peers);
    if (topology == "SHARDED") {
      EXPECT_EQ(codec + down, "");
    } else {
      EXPECT_TRUE(Has(codec, "codec is FP16; set topology: SHARDED, or remove codec")) << codec;
      EXPECT_TRUE(Has(down, "down_codec is INT8; set topology: SHARDED, or remove down_codec")) << down;
      EXPECT_FALSE(Has(down, "but codec")) << down;
    }
    const std::string both = SaidOf(tcp + "local_workers: 2 " + peers);
    EXPECT_TRUE(Has(both, "remove one of the two")) << both;
    EXPECT_TRUE(Has(SaidOf(tcp + peers + "keep_rounds: 0"), "keep_rounds is 0; it must be from 1 to 1000000"));
  }
  // All of them at once.
  const std::string all = SaidOf(tcp + "topology: RING local_workers: 2 mode: STALE codec: FP16 keep_rounds: 0");
  for (const char* part : {"mode is STALE", "codec is FP16", "remove one of the two", "keep_rounds is 0"}) {
    EXPECT_TRUE(Has(all, part)) << all;
  }
}

TEST(ClusterSettings, WorkersAsThreads) {
  EXPECT_EQ(SaidOf("local_workers: 2 worker_threads: true"), "");
  EXPECT_EQ(SaidOf("local_workers: 2 worker_threads: true topology: SHARDED"), "");
  EXPECT_EQ(SaidOf("local_workers: 2 worker_threads: true endpoint: \"tcp://127.0.0.1:0\""), "");
  const std::string none = SaidOf("worker_threads: true endpoint: \"tcp://127.0.0.1:0\"");
  EXPECT_TRUE(Has(none, "solver.prototxt:2:")) << none;
  EXPECT_TRUE(Has(none, "there are none; set local_workers (--workers=N), or remove worker_threads")) << none;
  const std::string both =
      SaidOf("local_workers: 2 worker_threads: true topology: RING endpoint: \"tcp://127.0.0.1:0\"");
  EXPECT_TRUE(Has(both, "remove one of the two")) << both;
  const std::string inside = SaidOf("endpoint: \"inproc://a\"");
  EXPECT_TRUE(Has(inside, "endpoint is inproc://a, where nobody outside of this program can join")) << inside;
}

TEST(ClusterSettings, StarHasAllOfThem) {
  EXPECT_EQ(SaidOf("endpoint: \"tcp://127.0.0.1:0\" local_workers: 2 codec: FP16 down_codec: INT8"), "");
  EXPECT_EQ(SaidOf("local_workers: 2 mode: GRADIENT topology: STAR"), "");
  EXPECT_TRUE(Has(SaidOf("local_workers: 2 keep_rounds: 0"), "keep_rounds is 0"));
  EXPECT_TRUE(Has(SaidOf("local_workers: 2 keep_rounds: 7"), "warning: distributed: keep_rounds has no effect"));
}

TEST(ClusterSettings, ElasticAndWhatItCannotBeWith) {
  const std::string elastic = "local_workers: 2 mode: ELASTIC ";
  EXPECT_EQ(SaidOf(elastic), "");
  EXPECT_EQ(SaidOf(elastic + "elastic_rate: 0.3 history: RESET down_codec: INT8 straggler_factor: 2 staleness: 1"), "");
  for (const char* outer : {"outer_lr: 0.5", "outer_momentum: 0.5", "outer_momentum_by_workers: true"}) {
    EXPECT_TRUE(Has(SaidOf(elastic + outer), "remove outer_lr, outer_momentum and outer_nesterov")) << outer;
  }
  EXPECT_TRUE(Has(SaidOf(elastic + "history: MEAN"), "set history: LOCAL or RESET, or mode: AVERAGE"));
  EXPECT_TRUE(Has(SaidOf(elastic + "codec: FP16"), "remove codec (down_codec may stay)"));
  EXPECT_TRUE(
      Has(SaidOf(elastic + "topology: RING"), "but mode is ELASTIC; set mode: AVERAGE or GRADIENT, or topology"));
  EXPECT_TRUE(Has(SaidOf(elastic + "overlap: DELAYED"), "but mode is ELASTIC; set mode: AVERAGE, or remove overlap"));
  EXPECT_TRUE(Has(SaidOf(elastic + "elastic_rate: 1.5"), "elastic_rate must be from 0 to 1"));
  EXPECT_TRUE(Has(SaidOf(elastic + "elastic_rate: 0.6"), "warning: distributed: elastic_rate times expected_workers"));
  EXPECT_TRUE(Has(SaidOf("local_workers: 2 elastic_rate: 0.3"), "warning: distributed: elastic_rate has no effect"));
}

TEST(ClusterSettings, StaleAndWhatItCannotBeWith) {
  const std::string stale = "local_workers: 2 mode: STALE ";
  EXPECT_EQ(SaidOf(stale), "");
  EXPECT_EQ(SaidOf(stale + "staleness: 4294967295 outer_lr: 0.5 codec: INT8 history: RESET local_steps: 1"), "");
  for (const char* outer : {"outer_momentum: 0.5", "outer_momentum_by_workers: true"}) {
    EXPECT_TRUE(Has(SaidOf(stale + outer), "(outer_lr may stay), or set mode: AVERAGE")) << outer;
  }
  EXPECT_TRUE(Has(SaidOf(stale + "history: MEAN"), "set history: LOCAL or RESET, or mode: AVERAGE"));
  EXPECT_TRUE(Has(SaidOf(stale + "down_codec: FP16"), "remove down_codec (codec may stay)"));
  EXPECT_TRUE(Has(SaidOf(stale + "straggler_factor: 2"), "remove straggler_factor and set staleness"));
  EXPECT_TRUE(Has(SaidOf(stale + "topology: TREE"), "but mode is STALE; set mode: AVERAGE or GRADIENT, or topology"));
  EXPECT_TRUE(Has(SaidOf(stale + "overlap: DELAYED"), "but mode is STALE; set mode: AVERAGE, or remove overlap"));
}

TEST(ClusterSettings, BackwardAndWhatItCannotBeWith) {
  const std::string backward = "local_workers: 2 overlap: BACKWARD ", gradients = backward + "mode: GRADIENT ";
  EXPECT_EQ(SaidOf(gradients + "topology: SHARDED"), "");
  EXPECT_EQ(SaidOf(gradients + "topology: SHARDED codec: TOPK down_codec: INT8"), "");
  EXPECT_TRUE(Has(SaidOf(backward + "topology: SHARDED"),
                  "but mode is AVERAGE; set mode: GRADIENT, or remove overlap, or set overlap: DELAYED"));
  EXPECT_TRUE(Has(SaidOf(backward + "mode: STALE"), "but mode is STALE; set mode: GRADIENT, or remove overlap"));
  EXPECT_TRUE(Has(SaidOf(gradients), "but topology is STAR, which sums all of them at once; set topology: SHARDED"));
  EXPECT_TRUE(Has(SaidOf(gradients + "topology: RING"), "but topology is RING"));
  EXPECT_TRUE(Has(SaidOf(gradients + "topology: SHARDED straggler_factor: 2"), "remove straggler_factor, or overlap"));
}

TEST(ClusterSettings, TournamentsAndWhatTheyCannotBeWith) {
  const auto said = [](const std::string& settings, const std::string& tests = "test_iter: 4 test_interval: 10 ") {
    const SolverFile file =
        ParseSolver(tests + "base_lr: 0.1\ndistributed { mode: TOURNAMENT " + settings + " }\n", "solver.prototxt");
    try {
      std::string all;
      for (const Diagnostic& warning : CheckDistributed(file)) all += "warning: " + warning.message + "\n";
      return all;
    } catch (const UserError& error) {
      return std::string(error.what());
    }
  };
  const std::string two = "local_workers: 2 ";
  EXPECT_EQ(said(two + "tournament_output: \"loss\" history: RESET local_steps: 50 min_workers: 1"), "");
  EXPECT_EQ(said("endpoint: \"tcp://127.0.0.1:0\" expected_workers: 3"), "");
  EXPECT_TRUE(Has(said(two, ""), "set test_iter and test_interval"));
  EXPECT_TRUE(Has(said("local_workers: 1"), "to 2 or more"));
  EXPECT_TRUE(Has(said("endpoint: \"tcp://127.0.0.1:0\""), "to 2 or more"));
  EXPECT_TRUE(Has(said(two + "history: MEAN"), "history is MEAN"));
  EXPECT_TRUE(Has(said(two + "outer_momentum: 0.5"), "remove outer_lr, outer_momentum"));
  EXPECT_TRUE(Has(said(two + "codec: FP16"), "codec is FP16"));
  EXPECT_TRUE(Has(said(two + "down_codec: INT8"), "down_codec is INT8"));
  EXPECT_TRUE(Has(said(two + "straggler_factor: 2"), "remove straggler_factor"));
  EXPECT_TRUE(Has(said(two + "weight_by_examples: true"), "weight_by_examples is set"));
  EXPECT_TRUE(Has(said(two + "batch_norm: FIRST"), "batch_norm is set"));
  EXPECT_TRUE(
      Has(said(two + "topology: SHARDED"), "but mode is TOURNAMENT; set mode: AVERAGE or GRADIENT, or topology: STAR"));
  EXPECT_TRUE(Has(said(two + "overlap: DELAYED"), "but mode is TOURNAMENT; set mode: AVERAGE, or remove overlap"));
  EXPECT_TRUE(Has(SaidOf("local_workers: 2 tournament_output: \"loss\""), "tournament_output has no effect"));
}

TEST(ClusterSettings, HogwildIsNotForProcesses) {
  SolverParameter solver;
  solver.mutable_distributed()->set_local_workers(4);
  EXPECT_TRUE(IsDistributed(solver));
  solver.mutable_distributed()->set_mode(DistributedParameter::HOGWILD);
  EXPECT_FALSE(IsDistributed(solver));
}

TEST(ClusterSettings, WhatTheProtocolMakesOfModes) {
  const auto protocol = [](const std::string& settings) {
    return ProtocolOf(
        ParseSolver("base_lr: 0.1 max_iter: 90 snapshot: 30\ndistributed { local_workers: 2 local_steps: 7 " +
                        settings + " }\n",
                    "solver.prototxt")
            .solver);
  };
  for (const char* mode : {"AVERAGE", "ELASTIC", "STALE"}) {
    EXPECT_EQ(protocol(std::string("mode: ") + mode).local_steps, 7) << mode;
  }
  EXPECT_EQ(protocol("mode: ELASTIC").history_every, 30u);
  EXPECT_EQ(protocol("mode: ELASTIC history: RESET").history_every, 30u) << "where all begin anew";
  EXPECT_EQ(protocol("mode: AVERAGE history: RESET").history_every, 0u);
  const CoordinatorOptions stale = protocol("mode: STALE staleness: 4294967295");
  EXPECT_TRUE(stale.stale);
  EXPECT_EQ(stale.staleness, 4294967295u);
  EXPECT_EQ(stale.history_every, 0u);
  EXPECT_FALSE(protocol("mode: ELASTIC").stale);
  EXPECT_TRUE(protocol("mode: ELASTIC").own_parameters);
  EXPECT_FALSE(protocol("mode: AVERAGE").own_parameters);
  EXPECT_FALSE(protocol("mode: AVERAGE").tournament);
  EXPECT_TRUE(protocol("mode: TOURNAMENT").tournament);
  EXPECT_TRUE(protocol("mode: TOURNAMENT").history_always);
  EXPECT_EQ(protocol("mode: TOURNAMENT").history_every, 0u);
  EXPECT_FALSE(protocol("mode: TOURNAMENT history: RESET").history_always);
}

}  // namespace
}  // namespace crema
