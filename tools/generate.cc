// crema generate: text that a language model writes.
#include <cmath>
#include <iostream>

#include "base/random.h"
#include "crema/error.h"
#include "data/files/vocabulary.h"
#include "inference/text_generator.h"
#include "tools/commands.h"
#include "tools/flags.h"

DEFINE_string(vocabulary, "", "file of the vocabulary");
DEFINE_string(unit, "char", "what the net reads");
DEFINE_string(prompt, "", "what the text begins with");
DEFINE_int64(length, 500, "units to write");
DEFINE_double(temperature, 1, "how far from the most probable");
DECLARE_int32(top);
DECLARE_int64(seed);

namespace crema::tools {

namespace {

// Units as text: words with blanks between them.
class TextWriter {
 public:
  explicit TextWriter(TextUnit unit) : words_(unit == TextUnit::kWord) {}

  void Write(const std::string& unit) {
    const bool ends_line = unit == (words_ ? kLineEnd : "\n");
    Print((needs_blank_ && !ends_line ? " " : "") + (ends_line ? "\n" : unit));
    needs_blank_ = words_ && !ends_line;
    ends_line_ = ends_line;
  }
  void Finish() {
    if (!ends_line_) Print("\n");
  }

 private:
  static void Print(const std::string& text) {
    std::cout << text << std::flush;
    if (!std::cout) throw EnvironmentError("the text cannot be written to stdout");
  }

  bool words_, needs_blank_ = false, ends_line_ = false;
};

std::vector<int64_t> PromptOf(const CommandLine& line, const Vocabulary& vocabulary, TextUnit unit) {
  std::vector<int64_t> units;
  VisitUnits(FLAGS_prompt, unit, line.program + " --prompt", [&](std::string_view found, int, int) {
    const int64_t number = vocabulary.Find(found);
    if (number < 0) {
      throw UserError(Location{line.program}, "--prompt: \"" + std::string(found) + "\" is not in " + FLAGS_vocabulary +
                                                  ", so that the net does not know it; leave it out");
    }
    units.push_back(number);
  });
  return units;
}

// What a text without a prompt stands behind: the end of a line, else the first unit.
int64_t Beginning(const Vocabulary& vocabulary, TextUnit unit) {
  const std::string end = unit == TextUnit::kWord ? kLineEnd : "\n";
  const int64_t number = vocabulary.Find(end);
  return number >= 0 && vocabulary[number] == end ? number : 0;
}

int Run(const CommandLine& line) {
  ApplyThreads();
  const TextUnit unit =
      ChoiceOf(line, "unit", FLAGS_unit, {"char", "word"}) == 0 ? TextUnit::kCharacter : TextUnit::kWord;
  if (!(FLAGS_temperature >= 0) || std::isinf(FLAGS_temperature)) {
    throw UserError(Location{line.program}, "--temperature: 0, for the most probable text, or more was expected");
  }
  const Vocabulary vocabulary = Vocabulary::Read(FLAGS_vocabulary, unit);
  const std::vector<int64_t> prompt = PromptOf(line, vocabulary, unit);
  NetOptions options = NetOptionsOf(line);
  options.context.device = &DeviceOf(line);
  NetFile file = ReadModel(line);
  PrintWarnings(file.warnings);
  file.warnings.clear();
  TextGenerator generator(std::move(file), options, static_cast<int64_t>(vocabulary.size()));
  PrintWarnings(generator.net().warnings());
  LoadWeightsFlag(line, generator.net());

  TextWriter writer(unit);
  if (prompt.empty()) generator.Read(Beginning(vocabulary, unit));
  for (const int64_t given : prompt) {
    generator.Read(given);
    writer.Write(vocabulary[given]);
  }
  const UnitDraw draw = {FLAGS_temperature, line.has("top") ? FLAGS_top : 0};
  const RandomStream random(static_cast<uint64_t>(FLAGS_seed), 0);
  for (int64_t i = 0; i < FLAGS_length; ++i) {
    const double share = static_cast<double>(random.Bits64(static_cast<uint64_t>(i)) >> 11) * 0x1p-53;
    const int64_t next = DrawUnit(draw, generator.Next(), share);
    writer.Write(vocabulary[next]);
    if (i + 1 < FLAGS_length) generator.Read(next);
  }
  writer.Finish();
  return kExitSuccess;
}

}  // namespace

const Command& GenerateCommand() {
  static const Command command = {
      .name = "generate",
      .summary = "write text with a language model",
      .usage = "--model=FILE --weights=FILE --vocabulary=FILE [flags]",
      .flags =
          {{.name = "prompt", .value = "TEXT", .help = "what the text begins with [a new line]", .may_be_empty = true},
           {.name = "length", .value = "N", .help = "characters or words to write", .min = 1, .max = 1 << 30},
           {.name = "temperature",
            .value = "F",
            .help = "below 1: more of what is probable; above: less; 0: the most probable alone"},
           {.name = "top",
            .value = "N",
            .help = "draw from the N most probable [all]",
            .min = 1,
            .max = 1 << 24,
            .has_default = false},
           {.name = "seed", .value = "N", .help = "another number gives another text", .min = 0},
           ModelFlag(),
           WeightsFlag(true),
           MissingFlag(),
           {.name = "vocabulary",
            .value = "FILE",
            .help = "characters or words, one per line, as convert_text wrote it",
            .required = true},
           {.name = "unit", .value = "char|word", .help = "what the net reads at one step"},
           LevelFlag(),
           StageFlag(),
           PrecisionFlag(),
           ThreadsFlag(),
           GpuFlag()},
      .examples =
          "The net has an Input for the numbers of units, with recurrent layers a second one for whether the\n"
          "text goes on, and ends with a Softmax over the vocabulary.\n\n"
          "example, from the repository's root (configs/char_lstm/README.md trains the net):\n"
          "  crema generate --model=configs/char_lstm/deploy.prototxt \\\n"
          "    --vocabulary=build/char_lstm/vocabulary.txt \\\n"
          "    --weights=build/char_lstm/char_lstm_iter_2000.caffemodel --prompt='ROMEO:' --temperature=0.8\n",
      .run = Run,
  };
  return command;
}

}  // namespace crema::tools
