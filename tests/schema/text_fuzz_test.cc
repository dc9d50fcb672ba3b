// Damaged prototxt: no crash, and the same verdict as protobuf's own parser.
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "base/random.h"
#include "crema/net.pb.h"
#include "crema/solver.pb.h"
#include "schema/text_check.h"

namespace crema {
namespace {

const char kNet[] = R"(
name: "LeNet"  # a net
input: "data" input_shape { dim: [1, 3, -2] dim: 0x1f }
layer {
  name: "conv1" type: 'Convo' "lution"
  bottom: "data" top: "conv1"
  param { lr_mult: 1e-1 } param < decay_mult: -.5f; >
  propagate_down: [true, f, 1]
  convolution_param {
    num_output: 20, kernel_size: 5
    weight_filler: { type: "xavier" variance_norm: AVERAGE std: 1e3 }
    bias_filler { sparse: -3 }
  }
  include { phase: TRAIN stage: "a\n\x41\101" }
  blobs [ { data: [1.5, -2, inf] }, { num: 017 } ]
  clip_param { min: 0 max: inf }  power_param { scale: 6. }
  slice_param { slice_point: 1;slice_point:2 }
}
layers { layer { type: "conv" pool: 2 } type: CONVOLUTION blobs_lr: 1. }
)";

class Silent : public google::protobuf::io::ErrorCollector {
#if GOOGLE_PROTOBUF_VERSION >= 4022000
  void RecordError(int, google::protobuf::io::ColumnNumber, absl::string_view) override {}
#else
  void AddError(int, google::protobuf::io::ColumnNumber, const std::string&) override {}
#endif
};

bool ProtobufAccepts(const std::string& text) {
  Silent silent;
  NetParameter net;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&silent);
  return parser.ParseFromString(text, &net);
}

TEST(TextFuzz, VerdictOnDamagedTextIsProtobufs) {
  const std::string original = kNet;
  ASSERT_TRUE(ProtobufAccepts(original));
  ASSERT_TRUE(CheckText(original, "n", NetParameter::descriptor()).empty())
      << CheckText(original, "n", NetParameter::descriptor())[0].ToString();
  const std::string letters = "{}<>[]:;,.-+\"'\\#/ \n\t0123456789abefxnTRULE_\x80\x01";
  const RandomStream random(7, 1);
  uint64_t draw = 0;
  int accepted = 0, refused = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string text = original;
    const int edits = 1 + static_cast<int>(random.Below(draw++, 3));
    for (int e = 0; e < edits && !text.empty(); ++e) {
      const size_t at = random.Below(draw++, text.size());
      const char letter = letters[random.Below(draw++, letters.size())];
      switch (random.Below(draw++, 5)) {
        case 0:
          text[at] = letter;
          break;
        case 1:
          text.insert(at, 1, letter);
          break;
        case 2:
          text.erase(at, 1 + random.Below(draw++, 8));
          break;
        case 3: {
          const size_t from = random.Below(draw++, text.size());
          text.insert(at, text.substr(from, random.Below(draw++, 30)));
          break;
        }
        default:
          text.resize(at);
      }
    }
    const std::vector<Diagnostic> mistakes = CheckText(text, "n", NetParameter::descriptor());
    bool only_range = !mistakes.empty();
    for (const Diagnostic& mistake : mistakes) {
      // Protobuf turns a number too large for a float into infinity; crema refuses both, and nan.
      only_range = only_range && (mistake.message.find("3.4e38") != std::string::npos ||
                                  mistake.message.find("; give a ") != std::string::npos);
      EXPECT_GE(mistake.where.line, mistake.message.find("stopped") == 0 ? 0 : 1);
    }
    const bool expected = ProtobufAccepts(text);
    ASSERT_EQ(mistakes.empty() || only_range, expected)
        << (mistakes.empty() ? "crema accepts" : mistakes[0].ToString()) << "\n"
        << text;
    (expected ? accepted : refused)++;
  }
  EXPECT_GT(accepted, 100);
  EXPECT_GT(refused, 1500);
}

}  // namespace
}  // namespace crema
