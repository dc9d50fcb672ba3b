// What is told about common mistakes in a prototxt: where a field belongs, and what a word or a character should be.
#include <gtest/gtest.h>

#include "crema/files.h"
#include "errors.h"
#include "schema/net_text.h"

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
            solver +
                "\"batch_size\"; it is a field of the net, in the data_param, or the like, of layers that read "
                "data here");
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

TEST(TextAdvice, FilesThatWereNotDownloaded) {
  EXPECT_EQ(Errors("version https://git-lfs.github.com/spec/v1\noid sha256:f2\nsize 1217\n"),
            "n: error: is a Git LFS pointer, not the file itself; run git lfs pull");
  for (const char* page : {"<!DOCTYPE html>\n<html>", "\n  <HTML lang='en'>"}) {
    EXPECT_EQ(ErrorsOfSolver(page),
              "s: error: is a web page, not the prototxt of a solver; download the file itself (\"raw\")");
  }
}

}  // namespace
}  // namespace crema
