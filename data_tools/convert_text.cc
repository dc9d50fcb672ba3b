// convert_text: a text to a database for recurrent nets.
#include "data/convert/convert_text.h"

#include <gflags/gflags.h>

#include "data_tools/dataset_flags.h"
#include "data_tools/program.h"

DEFINE_string(unit, "char", "what the net reads");
DEFINE_int32(streams, 0, "streams");
DEFINE_string(vocabulary, "", "file of the vocabulary");
DEFINE_int32(most_frequent, 10000, "words in the vocabulary");

namespace crema::tools {

namespace {

int Run(const CommandLine& line) {
  TextConversion how;
  how.file = line.arguments[0];
  how.unit = ChoiceOf(line, "unit", FLAGS_unit, {"char", "word"}) == 0 ? TextUnit::kCharacter : TextUnit::kWord;
  how.streams = FLAGS_streams;
  how.vocabulary = FLAGS_vocabulary;
  how.most_frequent = FLAGS_most_frequent;
  const DatasetTarget target = TargetOf(line, line.arguments[1], {line.arguments[0], FLAGS_vocabulary});
  ProgressLine progress("steps");
  const TextConverted done = ConvertText(how, target, &progress);
  progress.Say(how.file + ": " + std::to_string(done.units) + " " +
               (how.unit == TextUnit::kWord ? "words" : "characters") + ", " + std::to_string(done.unknown) +
               " of them unknown\n" + how.vocabulary + ": " + std::to_string(done.vocabulary) + " different\n" +
               progress.Summary());
  return kExitSuccess;
}

}  // namespace

Command ProgramCommand() {
  return {
      .name = "convert_text",
      .summary = "a text to an LMDB of parallel streams, for recurrent nets",
      .usage = "--streams=N --vocabulary=FILE [flags] FILE DB",
      .flags = {{.name = "unit", .value = "char|word", .help = "what a net reads at one step"},
                {.name = "streams",
                 .value = "N",
                 .help = "cut the text into N pieces that are read side by side",
                 .required = true,
                 .min = 1,
                 .max = 1 << 20},
                {.name = "vocabulary",
                 .value = "FILE",
                 .help = "characters or words, one per line, numbered from 0; written where it is absent, else read",
                 .required = true},
                {.name = "most_frequent",
                 .value = "N",
                 .help = "how many words a new vocabulary has; all others become <unk>",
                 .min = 2,
                 .max = 1 << 24},
                SplitFlag("the text in this order"),
                ForceFlag(),
                BackendFlag()},
      .examples =
          "  FILE  UTF-8, plain or .gz\n"
          "  DB    folder to write; record t holds step t of all streams as 3 x N x 1: whether the stream goes on\n"
          "        (0 at its first step, then 1), the unit, and the unit that follows\n\n"
          "example (configs/char_lstm reads it):\n"
          "  convert_text --streams=32 --vocabulary=vocabulary.txt --split=train:0.9,val:0.1 shakespeare.txt.gz text\n",
      .arguments = "FILE DB",
      .min_arguments = 2,
      .max_arguments = 2,
      .run = Run,
  };
}

}  // namespace crema::tools
