#include "tools/weights_flag.h"

#include <gflags/gflags.h>

#include <algorithm>
#include <iostream>
#include <map>
#include <utility>

#include "base/listed.h"
#include "crema/error.h"
#include "crema/files.h"
#include "graph/batch_norm_modes.h"
#include "graph/program.h"
#include "runtime/missing_weights.h"
#include "schema/saved_settings.h"
#include "tools/flags.h"

DEFINE_string(weights, "", "weights files");
DEFINE_string(missing, "fail", "what to do about layers without weights");

DECLARE_string(model);

namespace crema::tools {

namespace {

[[noreturn]] void Fail(const CommandLine& line, const std::string& message) {
  throw UserError(Location{line.program, 0, 0}, message);
}

// "layer "a"", or "layers "a", "b" and 3 more".
std::string Layers(const std::vector<std::string>& names) {
  return (names.size() == 1 ? "layer " : "layers ") + Listed(names, {.most = 3, .quoted = true});
}

// Statistics that nobody has put there are missing then.
void WarnOfSegNet(const CommandLine& line, const Net& net) {
  const CompiledNet& compiled = net.compiled();
  std::map<std::string, const Node*> reads;  // by name
  for (const Node& node : compiled.graph.nodes) {
    const BNParameter& param = node.param->bn_param();
    if (node.param->type() == "BN" && IsBnOfSegNet(param) && BnUsesRunning(param, TEST)) reads[node.name()] = &node;
  }
  if (reads.empty()) return;
  for (const std::string& path : CommaList(line, "weights", FLAGS_weights)) {
    for (const std::string& layer : SegNetLayersThatNormalize(path)) {
      if (!reads.contains(layer)) continue;
      Diagnostic warning;
      warning.severity = Diagnostic::Severity::kWarning;
      if (compiled.file.source) warning.where = compiled.file.source->Layer(reads[layer]->index_in_file);
      warning.message =
          "layer \"" + layer + "\" (BN) has bn_mode: INFERENCE, but " + path +
          " was saved by a net that normalises by the batch there. Unless statistics of the training data "
          "were put into it since, what comes of the net means nothing: crema bn_statistics does that";
      PrintWarnings({warning});
      return;
    }
  }
}

}  // namespace

Flag WeightsFlag(bool required) {
  return {.name = "weights",
          .value = "FILE[,FILE]",
          .help = "weights (.caffemodel), copied by layer name in this order",
          .required = required};
}

Flag MissingFlag() {
  return {.name = "missing",
          .value = "fail|fill",
          .help = "where --weights has nothing for a layer: end there, or go on with what its fillers make"};
}

WeightsFiles WeightsOf(const CommandLine& line, const std::string& files) {
  WeightsFiles weights;
  for (const std::string& path : CommaList(line, "weights", files)) weights.Read(path);
  return weights;
}

void RefuseUnused(const CommandLine& line, const WeightsFiles& weights, const WeightsReport& report) {
  if (report.copied.empty() && report.fresh.empty()) return;  // the net has no parameters
  const std::string unused = weights.FindUnused(report.copied);
  if (!unused.empty()) Fail(line, "--weights=" + unused + ": " + DescribeUnused(FLAGS_model));
}

WeightsReport CopyWeightsFlag(const CommandLine& line, Net& net) {
  WeightsReport all;
  bool first = true;
  for (const std::string& path : CommaList(line, "weights", FLAGS_weights)) {
    WeightsReport report = net.LoadWeights(ReadWeights(path));
    if (report.copied.empty() && !net.parameters().empty()) {
      Fail(line, "--weights=" + path + ": " + DescribeUnused(FLAGS_model));
    }
    all.copied.insert(all.copied.end(), report.copied.begin(), report.copied.end());
    all.ignored.insert(all.ignored.end(), report.ignored.begin(), report.ignored.end());
    if (std::exchange(first, false)) all.fresh = report.fresh;
    std::erase_if(all.fresh, [&](const std::string& layer) {
      return std::find(report.fresh.begin(), report.fresh.end(), layer) == report.fresh.end();
    });
  }
  return all;
}

void CheckMissing(const CommandLine& line, const WeightsReport& report, const std::vector<std::string>& needed) {
  if (ChoiceOf(line, "missing", FLAGS_missing, {"fail", "fill"}) == 0 && !needed.empty()) {
    throw UserError(
        Location{FLAGS_weights},
        "has nothing for " + Layers(needed) + ", and " +
            (needed.size() == 1 ? "what its fillers make is" : "what their fillers make are") +
            " numbers that no training found, so that results would mean nothing; " +
            (report.ignored.empty() ? "" : "it has " + Layers(report.ignored) + ", which no layer of the net takes; ") +
            "give weights of this net (several files: --weights=A,B), or, to go on all the same, pass "
            "--missing=fill");
  }
  for (const std::string& layer : report.fresh) {
    std::cerr << FLAGS_weights << ": warning: has nothing for layer \"" << layer
              << "\", which keeps what its fillers make\n";
  }
}

void LoadWeightsFlag(const CommandLine& line, Net& net) {
  const WeightsReport report = CopyWeightsFlag(line, net);
  CheckMissing(line, report, NeededWeights(net, report.fresh));
  WarnOfSegNet(line, net);
}

}  // namespace crema::tools
