// Every mistake in a prototxt: where it is said to be, and in which words.
#include <gtest/gtest.h>

#include "crema/files.h"
#include "errors.h"

namespace crema {
namespace {

// All diagnostics of a net, one per line; empty when it parses.
std::string NetErrors(const std::string& text) {
  return ThrownBy<UserError>([&] { ParseNet(text, "n.prototxt"); });
}

std::string SolverErrors(const std::string& text) {
  return ThrownBy<UserError>([&] { ParseSolver(text, "s.prototxt"); });
}

TEST(TextDiagnostics, UnknownFieldNamesTheBlockAndTheClosestField) {
  EXPECT_EQ(NetErrors("layer {\n  name: \"c\"\n  convolution_param {\n    kernal_size: 3\n  }\n}\n"),
            "n.prototxt:4:5: error: \"convolution_param\" has no field \"kernal_size\"; did you mean \"kernel_size\"?");
  EXPECT_EQ(NetErrors("nmae: \"x\"\n"), "n.prototxt:1:1: error: a net has no field \"nmae\"; did you mean \"name\"?");
  EXPECT_EQ(NetErrors("layer { botom: \"x\" }"),
            "n.prototxt:1:9: error: a layer has no field \"botom\"; did you mean \"bottom\"?");
  EXPECT_EQ(SolverErrors("base_rl: 0.1"),
            "s.prototxt:1:1: error: a solver has no field \"base_rl\"; did you mean \"base_lr\"?");
  EXPECT_EQ(NetErrors("layer { dropout_param { q: 1 } }"),
            "n.prototxt:1:25: error: \"dropout_param\" has no field \"q\"; it has dropout_ratio, scale_train, engine "
            "and random_seed");
  EXPECT_EQ(NetErrors("layer { fork_thing_param { a { b: 1 } c: 2 } name: \"x\" }"),
            "n.prototxt:1:9: error: a layer has no field \"fork_thing_param\"; is it from a fork of Caffe?");
  EXPECT_EQ(NetErrors("layer { dropout_param { sample_weights_test: true } }\n"),
            "n.prototxt:1:25: error: \"dropout_param\" has no field \"sample_weights_test\"; it is of a fork of Caffe; "
            "that of Bayesian SegNet drops in tests, too, and means are taken of many of them; leave the line out: "
            "Dropout then does nothing in tests, and one of them comes near to that mean");
  EXPECT_EQ(NetErrors("layer { convolutoin_param { } }"),
            "n.prototxt:1:9: error: a layer has no field \"convolutoin_param\"; did you mean \"convolution_param\"?");
}

TEST(TextDiagnostics, TypesOfForksAreToldInsteadOfTheirBlocks) {
  EXPECT_EQ(
      NetErrors("layer {\n  mil_data_param { p: 2 }\n  type: 'MILData'\n}\n"
                "layer { type: 'MaskPooling' }\n"
                "layer { type: 'MatWrite' include { phase: TEST } }\n"
                "layer { fork_thing_param { } type: 'Thing' }\n"),
      "n.prototxt:3:9: error: \"MILData\" is a layer type of a fork of Caffe (visual concepts) that crema does not "
      "have; docs/adding_a_layer.md shows how to write it in one C++ file\n"
      "n.prototxt:5:15: error: \"MaskPooling\" is a layer type of a fork of Caffe (MNC) that crema does not have; "
      "docs/adding_a_layer.md shows how to write it in one C++ file\n"
      "n.prototxt:7:9: error: a layer has no field \"fork_thing_param\"; is it from a fork of Caffe? Type "
      "\"Thing\" may be, too: `crema compile --list_layers` names those there are");
  EXPECT_EQ(NetErrors("layer { type: 'ReLU' fork_thing_param { } }"),
            "n.prototxt:1:22: error: a layer has no field \"fork_thing_param\"; is it from a fork of Caffe?");
  EXPECT_EQ(NetErrors("layer { type: 'MaskPooling' }"), "");
  EXPECT_EQ(
      NetErrors("layer { type: 'ReLU' jmmd_loss_param { } }"),
      "n.prototxt:1:22: error: a layer has no field \"jmmd_loss_param\"; \"JMMDLoss\" is a layer type of forks for "
      "domain adaptation of Caffe that crema does not have; type: \"MMDLoss\" compares the vectors of one layer");
  EXPECT_EQ(
      NetErrors("layers { type: DENSE_CRF dense_crf_param { max_iter: 10 } }"),
      "n.prototxt:1:16: error: \"DenseCRF\" is a layer type of a fork of Caffe (DeepLab) that crema does not have; "
      "leave it out: what it smooths are the scores, its first bottom, which the rest of the net can read");
}

TEST(TextDiagnostics, FieldsOfForksAreNotGuessed) {
  EXPECT_EQ(NetErrors("layer { convolution_param { mask_filler { } } }"),
            "n.prototxt:1:29: error: \"convolution_param\" has no field \"mask_filler\"; it is of a fork of Caffe");
  EXPECT_EQ(NetErrors("layer { st_loss_param { } }"),
            "n.prototxt:1:9: error: a layer has no field \"st_loss_param\"; it is of a fork of Caffe");
  EXPECT_EQ(SolverErrors("max_lr: 1"),
            "s.prototxt:1:1: error: a solver has no field \"max_lr\"; it is of a fork of Caffe");
}

TEST(TextDiagnostics, RatesOfTheOldSyntaxAreToldOnce) {
  EXPECT_EQ(
      NetErrors("layer { blobs_lr: 1 blobs_lr: 2 weight_decay: 1 }\nlayer { blobs_lr: 1 }"),
      "n.prototxt:1:9: error: a layer has no field \"blobs_lr\", the old \"layers\" has; write param { lr_mult: ... "
      "decay_mult: ... } once for each of its blobs: the weights, then the bias\n"
      "n.prototxt:1:33: error: a layer has no field \"weight_decay\", the old \"layers\" has; write param { lr_mult: "
      "... decay_mult: ... } once for each of its blobs: the weights, then the bias");
}

TEST(TextDiagnostics, UnknownTypesOfTheOldSyntaxGetNoListOfAll) {
  EXPECT_EQ(NetErrors("layers { type: CONVOLUTOIN }"),
            "n.prototxt:1:16: error: there is no layer type CONVOLUTOIN; did you mean \"CONVOLUTION\"?");
  EXPECT_EQ(NetErrors("layers { type: QQQQ }"),
            "n.prototxt:1:16: error: there is no layer type QQQQ; `crema compile --list_layers` names those there are; "
            "\"layers\" blocks have them in capitals, such as INNER_PRODUCT");
}

TEST(TextDiagnostics, MisplacedFieldSaysWhereItBelongs) {
  EXPECT_EQ(NetErrors("layer { negative_slope: 0.1 }"),
            "n.prototxt:1:9: error: a layer has no field \"negative_slope\"; it belongs into relu_param");
  EXPECT_EQ(
      NetErrors("layer { relu_param { phase: TEST } }"),
      "n.prototxt:1:22: error: \"relu_param\" has no field \"phase\", the block around it has; is a \"}\" missing "
      "before it?");
  EXPECT_EQ(NetErrors("bottom: \"x\""),
            "n.prototxt:1:1: error: a net has no field \"bottom\", a layer has; write it inside layer { ... }");
}

TEST(TextDiagnostics, SwappedFilesAreNoticedOnce) {
  EXPECT_EQ(NetErrors("net: \"x\"\nbase_lr: 1\nmax_iter: 5\n"),
            "n.prototxt:1:1: error: a net has no field \"net\", a solver has; was the solver's file given in place of "
            "the net's?");
  EXPECT_EQ(SolverErrors("layer { name: \"a\" }\nlayer { name: \"b\" }\n"),
            "s.prototxt:1:1: error: a solver has no field \"layer\", a net has; was the net's file given in place of "
            "the solver's?");
}

TEST(TextDiagnostics, UnknownEnumValueListsTheAllowedOnes) {
  EXPECT_EQ(
      NetErrors("layer { pooling_param { pool: MAXX } }"),
      "n.prototxt:1:31: error: \"pool\" has no value MAXX; did you mean \"MAX\"? allowed are MAX, AVE, STOCHASTIC");
  EXPECT_EQ(NetErrors("layer { pooling_param { pool: 7 } }"),
            "n.prototxt:1:31: error: \"pool\" has no value 7; allowed are MAX, AVE, STOCHASTIC");
  EXPECT_EQ(
      NetErrors("layer { pooling_param { pool: \"AVE\" } }"),
      "n.prototxt:1:31: error: \"pool\" takes one of MAX, AVE, STOCHASTIC, not the text \"AVE\"; remove the quotes");
  EXPECT_EQ(
      NetErrors("layers { type: \"Convolution\" }"),
      "n.prototxt:1:16: error: \"type\" of an old \"layers\" block is a name without quotes, such as CONVOLUTION, "
      "not the text \"Convolution\"; write \"layer\" instead of \"layers\" to use today's quoted types");
  EXPECT_EQ(NetErrors("layer { type: CONVOLUTION }"),
            "n.prototxt:1:15: error: \"type\" takes a text in quotes, not CONVOLUTION; names in capitals belong to the "
            "old \"layers\" blocks, a \"layer\" has type: \"Convolution\" and the like");
}

TEST(TextDiagnostics, WrongKindOfValue) {
  const auto convolution = [](const std::string& field) {
    return NetErrors("layer {\n  convolution_param {\n    " + field + "\n  }\n}\n");
  };
  EXPECT_EQ(convolution("num_output: \"20\""),
            "n.prototxt:3:17: error: \"num_output\" takes a whole number of 0 or more, not the text \"20\"; remove the "
            "quotes");
  EXPECT_EQ(convolution("num_output: 2.5"),
            "n.prototxt:3:17: error: \"num_output\" takes a whole number of 0 or more, not 2.5");
  EXPECT_EQ(convolution("kernel_size: -1"),
            "n.prototxt:3:18: error: \"kernel_size\" takes a whole number of 0 or more, not -1");
  EXPECT_EQ(convolution("bias_term: yes"), "n.prototxt:3:16: error: \"bias_term\" takes true or false, not yes");
  EXPECT_EQ(convolution("bias_term: 2"), "n.prototxt:3:16: error: \"bias_term\" takes true or false, not 2");
  EXPECT_EQ(convolution("weight_filler: \"xavier\""),
            "n.prototxt:3:5: error: \"weight_filler\" is a block; write weight_filler { ... }");
  EXPECT_EQ(convolution("num_output { }"),
            "n.prototxt:3:16: error: \"num_output\" takes a whole number of 0 or more, not a block");
  EXPECT_EQ(convolution("num_output: [1, 2]"),
            "n.prototxt:3:17: error: \"num_output\" takes one value, a whole number of 0 or more, not a list");
  EXPECT_EQ(NetErrors("layer { type: ReLU }"),
            "n.prototxt:1:15: error: \"type\" takes a text in quotes, not ReLU; write \"ReLU\"");
  EXPECT_EQ(SolverErrors("base_lr: 010"),
            "s.prototxt:1:10: error: \"base_lr\" takes a decimal number, not 010; write it without the leading 0");
  EXPECT_EQ(SolverErrors("base_lr: +1"), "s.prototxt:1:10: error: \"base_lr\": remove the \"+\"");
}

TEST(TextDiagnostics, NumbersOutOfRange) {
  EXPECT_EQ(NetErrors("layer { convolution_param { num_output: 4294967296 } }"),
            "n.prototxt:1:41: error: \"num_output\" cannot be 4294967296; the largest value is 4294967295");
  EXPECT_EQ(SolverErrors("max_iter: 2147483648"),
            "s.prototxt:1:11: error: \"max_iter\" cannot be 2147483648; the largest value is 2147483647");
  EXPECT_EQ(SolverErrors("max_iter: -2147483649"),
            "s.prototxt:1:11: error: \"max_iter\" cannot be -2147483649; the smallest value is -2147483648");
  EXPECT_EQ(SolverErrors("base_lr: 1e60"),
            "s.prototxt:1:10: error: \"base_lr\" cannot be 1e60; the largest value is about 3.4e38");
  EXPECT_EQ(SolverErrors("base_lr: 3.41e38"),
            "s.prototxt:1:10: error: \"base_lr\" cannot be 3.41e38; the largest value is about 3.4e38");
  // As protobuf writes the largest float.
  EXPECT_EQ(NetErrors("layer { type: 'Clip' clip_param { min: -3.40282347e+38 max: 3.40282347e+38 } }"), "");
  EXPECT_EQ(SolverErrors("base_lr: nan"), "s.prototxt:1:10: error: \"base_lr\" cannot be nan; give a number");
  EXPECT_EQ(SolverErrors("base_lr: -inf"), "s.prototxt:1:10: error: \"base_lr\" cannot be -inf; give a finite number");
  EXPECT_EQ(SolverErrors("max_iter: 99999999999999999999999"),
            "s.prototxt:1:11: error: \"max_iter\" cannot be 99999999999999999999999; the largest value is 2147483647");
}

TEST(TextDiagnostics, MissingBraceIsSaidWhereItsBlockOpens) {
  // convolution_param is not closed: the later braces each close the block inside the one they were meant for.
  EXPECT_EQ(NetErrors("layer {\n"
                      "  name: \"a\"\n"
                      "  convolution_param {\n"
                      "    num_output: 2\n"
                      "}\n"
                      "layer {\n"
                      "  name: \"b\"\n"
                      "}\n"),
            "n.prototxt:3:3: error: the block \"convolution_param\" opened here has no closing \"}\"");
  EXPECT_EQ(NetErrors("layer {\n  name: \"a\"\nlayer {\n  name: \"b\"\n}\n"),
            "n.prototxt:1:1: error: the block \"layer\" opened here has no closing \"}\"");
  EXPECT_EQ(NetErrors("layer {\n  name: \"a\"\n"),
            "n.prototxt:1:1: error: the block \"layer\" opened here has no closing \"}\"");
  EXPECT_EQ(NetErrors("layer {\n  name: \"a\"\n}\n}\n"),
            "n.prototxt:4:1: error: unexpected \"}\"; every block is already closed");
  EXPECT_EQ(NetErrors("layer { relu_param { > }"),
            "n.prototxt:1:22: error: expected \"}\" to close \"relu_param\", opened at line 1, got \">\"");
}

TEST(TextDiagnostics, FieldSetTwice) {
  EXPECT_EQ(NetErrors("layer {\n  name: \"a\"\n  type: \"ReLU\"\n  name: \"b\"\n}\n"),
            "n.prototxt:4:3: error: \"name\" is already set at line 2; it takes only one value");
  EXPECT_EQ(NetErrors("layer { relu_param { }\n relu_param { } }"),
            "n.prototxt:2:2: error: \"relu_param\" is already set at line 1; it takes only one value");
}

TEST(TextDiagnostics, Punctuation) {
  EXPECT_EQ(SolverErrors("max_iter 5\nbase_lr: 1\n"),
            "s.prototxt:1:1: error: \"max_iter\" needs a \":\" and a whole number after it");
  EXPECT_EQ(SolverErrors("max_iter = 5\nbase_lr: 1\n"),
            "s.prototxt:1:10: error: write \":\" instead of \"=\" after \"max_iter\"");
  EXPECT_EQ(SolverErrors("max_iter:\nbase_lr: 1\n"),
            "s.prototxt:1:1: error: \"max_iter\" has no value; it takes a whole number");
  EXPECT_EQ(SolverErrors("// a note\nbase_lr: 1\n"),
            "s.prototxt:1:1: error: expected the name of a field, got \"/\"; comments start with \"#\"");
  EXPECT_EQ(SolverErrors("stepvalue: [1, 2\nbase_lr: 1\n"),
            "s.prototxt:1:12: error: the list of \"stepvalue\" opened here has no closing \"]\"");
  EXPECT_EQ(SolverErrors("stepvalue: [1, 2, ]\nbase_lr: 1\n"),
            "s.prototxt:1:19: error: the list of \"stepvalue\" ends with a \",\"; remove it");
}

TEST(TextDiagnostics, Quotes) {
  EXPECT_EQ(NetErrors("layer {\n  name: \"conv1\n  type: \"Convolution\"\n  bottom: \"data\"\n}\n"),
            "n.prototxt:2:9: error: this text has no closing quote on its line");
  EXPECT_EQ(NetErrors("name: \"C:\\data\""),
            "n.prototxt:1:10: error: \"\\d\" is no escape sequence; write \"\\\\\" for a backslash, or \"/\" in paths");
  EXPECT_EQ(NetErrors("layer { name: \"a\" \"b\"\n\"c\" }"), "");
  EXPECT_EQ(NetErrors("name: 'it \\'is\\' \\x41\\101'"), "");
}

TEST(TextDiagnostics, RequiredFields) {
  EXPECT_EQ(NetErrors("layer {\n  clip_param { min: 0 }\n}"), "n.prototxt:2:3: error: \"clip_param\" needs \"max\"");
}

TEST(TextDiagnostics, AllMistakesInOneGoSortedByLine) {
  EXPECT_EQ(NetErrors("nmae: \"x\"\n"
                      "layer {\n"
                      "  type: ReLU\n"
                      "  bottom: \"a\\q\"\n"
                      "  relu_param { negative_slop: 1 engine: CUDA }\n"
                      "}\n"
                      "layer { name: \"b\" name: \"c\" }\n"),
            "n.prototxt:1:1: error: a net has no field \"nmae\"; did you mean \"name\"?\n"
            "n.prototxt:3:9: error: \"type\" takes a text in quotes, not ReLU; write \"ReLU\"\n"
            "n.prototxt:4:13: error: \"\\q\" is no escape sequence; write \"\\\\\" for a backslash, or \"/\" in paths\n"
            "n.prototxt:5:16: error: \"relu_param\" has no field \"negative_slop\"; did you mean \"negative_slope\"?\n"
            "n.prototxt:5:41: error: \"engine\" has no value CUDA; allowed are DEFAULT, CAFFE, CUDNN, MKL2017, "
            "MKLDNN\n"
            "n.prototxt:7:19: error: \"name\" is already set at line 7; it takes only one value");
}

TEST(TextDiagnostics, StopsAfterTwenty) {
  std::string text;
  for (int i = 0; i < 100; ++i) text += "wrong_" + std::to_string(i) + ": 1\n";
  try {
    ParseNet(text, "n.prototxt");
    FAIL();
  } catch (const UserError& error) {
    ASSERT_EQ(error.diagnostics().size(), 21u);
    EXPECT_EQ(error.diagnostics()[19].where.line, 20);
    EXPECT_EQ(error.diagnostics()[20].ToString(), "n.prototxt: error: stopped after 20 mistakes; there are more");
  }
}

TEST(TextDiagnostics, ColumnsCountATabAsOneCharacter) {
  EXPECT_EQ(NetErrors("layer {\n\t\tnaem: \"a\"\n}"),
            "n.prototxt:2:3: error: a layer has no field \"naem\"; did you mean \"name\"?");
}

TEST(TextDiagnostics, NoWordOfProtobuf) {
  for (const char* text :
       {"layer {", "}", "layer { x }", "a", "layer: 3", "\"", "name: ", "layer { name: { } }", "[a.b]: 1", "\x01",
        "name: 0x", "layer { type: \"a\" [", "input_dim: 1.2.3", "name: \xc3\xa4"}) {
    const std::string errors = NetErrors(text);
    EXPECT_FALSE(errors.empty()) << text;
    for (const char* jargon : {"protobuf", "Message type", "message", "TYPE_", "identifier", "crema.", "Expected"}) {
      EXPECT_EQ(errors.find(jargon), std::string::npos) << errors;
    }
    EXPECT_EQ(errors.compare(0, 11, "n.prototxt:"), 0) << errors;
  }
}

TEST(TextDiagnostics, FilesThatAreNoPrototxt) {
  EXPECT_EQ(NetErrors(""), "n.prototxt: error: is empty; the prototxt of a net needs at least one layer { ... }");
  EXPECT_EQ(NetErrors("# only a note\n"),
            "n.prototxt: error: is empty; the prototxt of a net needs at least one layer { ... }");
  EXPECT_EQ(SolverErrors(" \n"),
            "s.prototxt: error: is empty; the prototxt of a solver needs at least net: \"...\", base_lr, lr_policy and "
            "max_iter");
  EXPECT_EQ(
      NetErrors(std::string("\x0a\x05LeNet\x00\x00", 9)),
      "n.prototxt: error: is a binary file (byte 7 is zero), not the prototxt of a net; weights (.caffemodel) are "
      "given with --weights, a .solverstate with --snapshot");
  EXPECT_EQ(NetErrors("\xFF\xFEx"), "n.prototxt: error: is UTF-16 text; save it as UTF-8");
  EXPECT_EQ(NetErrors("\xEF\xBB\xBFname: \"x\" layer { }"), "");
}

}  // namespace
}  // namespace crema
