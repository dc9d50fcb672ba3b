// What is told about common mistakes in a prototxt: where a field belongs, and what a word or a character should be.
#include <google/protobuf/descriptor.h>
#include <gtest/gtest.h>

#include <set>

#include "crema/files.h"
#include "crema/net.pb.h"
#include "crema/solver.pb.h"
#include "errors.h"
#include "schema/net_text.h"
#include "schema/text_paths.h"

namespace crema {
namespace {

using testing_schema::Errors;

std::string ErrorsOfSolver(const std::string& text) {
  return ThrownBy<UserError>([&] { ParseSolver(text, "s"); });
}

TEST(TextAdvice, FieldsOutsideTheirBlock) {
  EXPECT_EQ(Errors("layer {\n"
                   "  num_output: 3\n"
                   "  weight_filler { type: 'xavier' }\n"
                   "  type: 'Convolution'\n"
                   "  convolution_param { kernel_size: 1 weight_filler { type: 'msra' } }\n"
                   "  bias_term: false\n"
                   "}"),
            "n:2:3: error: a layer has no field \"num_output\"; it belongs into convolution_param\n"
            "n:3:3: error: a layer has no field \"weight_filler\"; it belongs into convolution_param\n"
            "n:6:3: error: a layer has no field \"bias_term\"; it belongs into convolution_param");
  EXPECT_EQ(Errors("layers { type: INNER_PRODUCT num_output: 3 }"),
            "n:1:30: error: a layer (old \"layers\" syntax) has no field \"num_output\"; it belongs into "
            "inner_product_param");
  EXPECT_EQ(Errors("layer { type: 'Deconvolution' stride: 2 }"),
            "n:1:31: error: a layer has no field \"stride\"; it belongs into convolution_param");
  EXPECT_EQ(Errors("layer { type: 'LSTM' num_output: 2 }"),
            "n:1:22: error: a layer has no field \"num_output\"; it belongs into recurrent_param");
  EXPECT_EQ(Errors("layer { type: 'Data' scale: 2 batch_size: 4 }"),
            "n:1:22: error: a layer has no field \"scale\"; it belongs into transform_param\n"
            "n:1:31: error: a layer has no field \"batch_size\"; it belongs into data_param");
  const std::string unknown = Errors("layer { type: 'Thing' num_output: 2 }");
  EXPECT_EQ(
      unknown.find("n:1:23: error: a layer has no field \"num_output\"; it belongs into a block that has it, such "
                   "as "),
      0u)
      << unknown;
}

TEST(TextAdvice, FieldsInABlockBesideTheirOwn) {
  EXPECT_EQ(
      Errors("layer { type: 'Convolution' convolution_param { lr_mult: 2 mean_value: 3 } }"),
      "n:1:49: error: \"convolution_param\" has no field \"lr_mult\"; it belongs into param, another block of the "
      "layer\n"
      "n:1:60: error: \"convolution_param\" has no field \"mean_value\"; it belongs into transform_param of the "
      "layer that reads data");
  EXPECT_EQ(Errors("layer { type: 'Data' data_param { mean_value: 104 } }"),
            "n:1:35: error: \"data_param\" has no field \"mean_value\"; it belongs into transform_param, another block "
            "of the layer");
  EXPECT_EQ(Errors("layer { type: 'Convolution' param { weight_filler { type: 'msra' } } }"),
            "n:1:37: error: \"param\" has no field \"weight_filler\"; it belongs into convolution_param, another block "
            "of the layer");
}

TEST(TextAdvice, FieldsBehindABraceTooMany) {
  const std::string errors = Errors("layer { type: 'Convolution' convolution_param { } }\nnum_output: 3 }");
  EXPECT_EQ(errors.find("n:2:1: error: a net has no field \"num_output\", blocks of layers have, such as "), 0u)
      << errors;
  EXPECT_NE(errors.find("; is there a \"}\" too many before it?\n"), std::string::npos) << errors;
}

TEST(TextAdvice, WordsOfOthers) {
  const std::string solver = "s:1:1: error: a solver has no field ";
  EXPECT_EQ(ErrorsOfSolver("learning_rate: 1"), solver + "\"learning_rate\"; it is base_lr here");
  EXPECT_EQ(ErrorsOfSolver("lr: 1"), solver + "\"lr\"; it is base_lr here");
  EXPECT_EQ(ErrorsOfSolver("max_epoch: 1"), solver + "\"max_epoch\"; it is in_epochs { max_iter: ... } here");
  EXPECT_EQ(ErrorsOfSolver("epochs: 1"), solver + "\"epochs\"; it is in_epochs { max_iter: ... } here");
  EXPECT_EQ(ErrorsOfSolver("train_iter: 1"), solver + "\"train_iter\"; it is max_iter here");
  EXPECT_EQ(ErrorsOfSolver("batch_size: 1"),
            solver + "\"batch_size\"; it is data_param { batch_size: ... }, or the like, of the net's layers here");
  EXPECT_EQ(Errors("layer { type: 'Convolution' convolution_param { kernel: 3 padding: 1 } }"),
            "n:1:49: error: \"convolution_param\" has no field \"kernel\"; it is kernel_size here\n"
            "n:1:59: error: \"convolution_param\" has no field \"padding\"; it is pad here");
  EXPECT_EQ(Errors("layer { type: 'Pooling' pooling_param { filter_size: 3 } }"),
            "n:1:41: error: \"pooling_param\" has no field \"filter_size\"; it is kernel_size here");
}

TEST(TextAdvice, LargeMarginsAreNotThoseOfSphereFace) {
  EXPECT_EQ(Errors("layer { type: 'LargeMarginInnerProduct' largemargin_inner_product_param { num_output: 10 } }"),
            "n:1:15: error: \"LargeMarginInnerProduct\" is a layer type of a fork of Caffe (L-Softmax) that crema does "
            "not have; type: \"MarginInnerProduct\" is SphereFace's, whose weights have length 1: another loss, with "
            "which to train anew");
}

TEST(TextAdvice, Placeholders) {
  EXPECT_EQ(Errors("layer { convolution_param { num_output: ${NUM_LABELS} kernel_size: 1 } }"),
            "n:1:41: error: \"num_output\" takes a whole number of 0 or more, not ${NUM_LABELS}; a script was to fill "
            "in ${NUM_LABELS}, as DeepLab's run_pascal.sh does: write its value, by sed 's/${NUM_LABELS}/.../g' say");
  const std::string absent = ThrownBy<UserError>([] { ReadNetFile("/no/${NET}/train.prototxt"); });
  EXPECT_NE(absent.find("there is no such file; a script was to fill in ${NET}"), std::string::npos) << absent;
}

TEST(TextAdvice, CharactersThatLookLikeOthers) {
  EXPECT_EQ(Errors("\xc2\xa0layer { }"),
            "n:1:1: error: unexpected no-break space (U+00A0), which looks like a space; write a plain one");
  EXPECT_EQ(Errors("layer {\xa0}"),
            "n:1:8: error: unexpected no-break space (of Latin-1), which looks like a space; write a plain one");
  EXPECT_EQ(Errors("layer {\xe3\x80\x80}"),
            "n:1:8: error: unexpected ideographic space (U+3000), which looks like a space; write a plain one");
  EXPECT_EQ(Errors("layer {\xe2\x80\x8b}"),
            "n:1:8: error: unexpected zero-width space (U+200B), which does not show; remove it");
  EXPECT_EQ(Errors("layer { }\n\xef\xbb\xbflayer { }"),
            "n:2:1: error: unexpected byte order mark (U+FEFF), which does not show and stands only at the start of a "
            "file; remove it");
  const std::string quotes = Errors("name: \xe2\x80\x9cnet");
  EXPECT_EQ(quotes.find("n:1:7: error: unexpected \"\xe2\x80\x9c\"; outside quotes and comments only plain ASCII is "
                        "allowed; write \""),
            0u)
      << quotes;
}

TEST(TextAdvice, BackslashesInPaths) {
  EXPECT_EQ(Errors("layer { data_param { source: \"D:\\train\\new_lmdb\" } }"),
            "n:1:33: error: \"source\" holds a tab and a line end, which \"\\t\" and \"\\n\" mean; write \"/\" in "
            "paths, or \"\\\\\" for a backslash");
  EXPECT_EQ(ErrorsOfSolver("snapshot_prefix: 'a' 'b\\x0d'"),
            "s:1:24: error: \"snapshot_prefix\" holds a carriage return, which \"\\x0d\" means; write \"/\" in paths, "
            "or \"\\\\\" for a backslash");
  EXPECT_EQ(ErrorsOfSolver("net: \"a\\1\""),
            "s:1:8: error: \"net\" holds a control character, which \"\\1\" means; write \"/\" in paths, or \"\\\\\" "
            "for a backslash");
  EXPECT_EQ(ErrorsOfSolver("weights: \"a\tb\""), "s:1:12: error: \"weights\" holds a tab; remove it");
  EXPECT_EQ(ErrorsOfSolver("net: 'D:\\\\train\\\\new \\303\\244 \\u00e4 \\101 \\'' 'x'"), "");
  EXPECT_EQ(Errors("name: 'a\\tb' layer { python_param { param_str: 'a\\nb' } }"), "");
}

// Texts of nets and solvers that are not the name of a file.
const std::set<std::string>& OtherTexts() {
  static const std::set<std::string> names = {
      // Names and types
      "bottom", "eval_type", "ap_version", "input", "layer", "module", "name", "not_stage", "output", "param",
      "parameter", "sampler_type", "stage", "top", "transform_type", "type",
      // Words for ways of doing something
      "conv_algos_override", "crop_mode", "default_conv_algos_override", "det_crop_mode", "engine", "larc_policy",
      "lr_policy", "momentum_policy", "normalize_type", "output_format", "regularization_type", "tournament_output",
      // Numbers and other values
      "bilateral_filter_weights_str", "endpoint", "memory_limit", "param_str", "public_key",
      "spatial_filter_weights_str"};
  return names;
}

void CheckTexts(const google::protobuf::Descriptor* type, std::set<std::string>* done) {
  if (!done->insert(std::string(type->full_name())).second) return;
  for (int i = 0; i < type->field_count(); ++i) {
    const auto* field = type->field(i);
    if (field->message_type()) CheckTexts(field->message_type(), done);
    const std::string name(field->name());
    if (field->type() != google::protobuf::FieldDescriptor::TYPE_STRING || OtherTexts().count(name)) continue;
    EXPECT_TRUE(IsPath(field)) << field->full_name() << ": say in text_paths.cc or here what it is";
  }
}

TEST(TextAdvice, EveryTextIsAPathOrNot) {
  std::set<std::string> done;
  CheckTexts(SolverParameter::descriptor(), &done);
  EXPECT_GT(done.size(), 100u);
}

TEST(TextAdvice, FilesThatWereNotDownloaded) {
  EXPECT_EQ(Errors("version https://git-lfs.github.com/spec/v1\noid sha256:f2\nsize 1217\n"),
            "n: error: is a Git LFS pointer, not the file itself; run git lfs pull");
  for (const char* page : {"<!DOCTYPE html>\n<html>", "\n  <HTML lang='en'>"}) {
    EXPECT_EQ(ErrorsOfSolver(page),
              "s: error: is a web page, not the prototxt of a solver; download the file itself (\"raw\")");
  }
}

TEST(TextAdvice, NumbersInOtherForms) {
  EXPECT_EQ(ErrorsOfSolver("max_iter: 1e5"), "s:1:11: error: \"max_iter\" takes a whole number, not 1e5; write 100000");
  EXPECT_EQ(ErrorsOfSolver("max_iter: -20.0"),
            "s:1:11: error: \"max_iter\" takes a whole number, not -20.0; write -20");
  EXPECT_EQ(Errors("layer { convolution_param { num_output: -2.0 } }"),
            "n:1:41: error: \"num_output\" takes a whole number of 0 or more, not -2.0");
  EXPECT_EQ(ErrorsOfSolver("base_lr: 0,01"),
            "s:1:12: error: expected the name of a field, got 01; write \".\" in numbers");
  EXPECT_EQ(ErrorsOfSolver("base_lr: 0,09"),
            "s:1:12: error: a number with a leading 0 is read as octal; write it without the 0, or \".\" before it "
            "where \",\" is the decimal point");
}

}  // namespace
}  // namespace crema
