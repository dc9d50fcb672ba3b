// --weights and --missing: weights for the net of --model.
#ifndef CREMA_TOOLS_WEIGHTS_FLAG_H_
#define CREMA_TOOLS_WEIGHTS_FLAG_H_

#include <string>
#include <vector>

#include "crema/net.h"
#include "schema/weights_files.h"
#include "tools/command_line.h"

namespace crema::tools {

Flag WeightsFlag(bool required);
// Of commands that use a net with weights.
Flag MissingFlag();

// Reads `files`, separated by commas.
WeightsFiles WeightsOf(const CommandLine& line, const std::string& files);
// Throws UserError where one of them gave nothing to --model, which has parameters.
void RefuseUnused(const CommandLine& line, const WeightsFiles& weights, const WeightsReport& report);
// Copies the files of --weights into the net, in their order. What comes back is of all of them together. Throws
// UserError where one gives nothing.
WeightsReport CopyWeightsFlag(const CommandLine& line, Net& net);
// Says on stderr which layers --weights had nothing for. Throws UserError where there are `needed` ones (NeededWeights)
// among them, unless --missing says fill.
void CheckMissing(const CommandLine& line, const WeightsReport& report, const std::vector<std::string>& needed);
// Both, for a net that is to be used; says on stderr where a BN of SegNet that reads statistics (bn_mode: INFERENCE)
// gets what a net that normalises by the batch saved.
void LoadWeightsFlag(const CommandLine& line, Net& net);

}  // namespace crema::tools

#endif  // CREMA_TOOLS_WEIGHTS_FLAG_H_
