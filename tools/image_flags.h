// Flags of the commands that run images through a net: how these are made ready, and which blob holds the scores.
#ifndef CREMA_TOOLS_IMAGE_FLAGS_H_
#define CREMA_TOOLS_IMAGE_FLAGS_H_

#include <gflags/gflags.h>

#include <string>
#include <vector>

#include "inference/classifier.h"
#include "inference/prediction_writer.h"
#include "tools/command_line.h"

DECLARE_string(labels);
DECLARE_int32(top);

namespace crema::tools {

// --labels, --top and --broken, then --model, --weights and those of preprocessing and computing.
std::vector<Flag> ImageFlags();

// What the flags ask for. Throws UserError naming the flag.
ImageRunOptions ImageRunOptionsOf(const CommandLine& line);
// Reads --model, says its warnings, and makes the net that gives scores.
ScoringNet ReadScoringNet(const CommandLine& line, const ImageRunOptions& options);
// The net for images like `items`, with --weights; what should be known about it goes to stderr.
Classifier MakeClassifier(const CommandLine& line, const ScoringNet& scoring, const ImageItems& items,
                          const ImageRunOptions& options);
// The names in --labels; empty without it. Throws UserError where there are not as many as classes.
std::vector<std::string> LabelsFlag(const Classifier& classifier);
// Loads --weights; what should be known about the net goes to stderr.
void LoadWeights(const CommandLine& line, ImageRunner& runner);
// Whether broken images are skipped.
bool SkipsBroken(const CommandLine& line);
// --format, and what it says.
Flag FormatFlag();
PredictionFormat FormatOf(const CommandLine& line);
// The arguments IMAGE...|DIR|-: files, all images below folders, and for "-" what stdin names. Throws UserError where
// there is none, or one is absent.
ImageList ImagesOf(const CommandLine& line);

}  // namespace crema::tools

#endif  // CREMA_TOOLS_IMAGE_FLAGS_H_
