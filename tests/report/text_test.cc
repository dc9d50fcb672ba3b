// JSON, tables and readable numbers.
#include <gtest/gtest.h>

#include <cmath>

#include "base/byte_size.h"
#include "base/number_text.h"
#include "base/text_table.h"
#include "report/json_reader.h"
#include "report/json_writer.h"

namespace crema {
namespace {

using testing_json::Json;
using testing_json::ParseJson;

std::string Written(std::string_view text) {
  JsonWriter json;
  json.String(text);
  return json.text();
}

TEST(JsonWriter, PutsCommasAndLines) {
  JsonWriter json;
  json.BeginObject();
  json.Key("a");
  json.BeginArray();
  json.Integer(1);
  json.Number(0.1f);
  json.Extents(Shape{2, 3});
  json.EndArray();
  json.NewLine(1);
  json.Key("b");
  json.BeginObject();
  json.EndObject();
  json.EndObject();
  EXPECT_EQ(json.text(), "{\"a\": [1, 0.100000001, [2,3]],\n \"b\": {}}");
}

TEST(JsonWriter, EscapesWhatJsonForbids) {
  EXPECT_EQ(Written("a\"b\\c"), R"("a\"b\\c")");
  EXPECT_EQ(Written(std::string_view("\n\t\0", 3)), R"("\u000a\u0009\u0000")");
  EXPECT_EQ(Written("caf\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80"), "\"caf\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80\"");
}

TEST(JsonWriter, ReplacesBytesThatAreNoUtf8) {
  EXPECT_EQ(Written("a\xFFz"), R"("a\ufffdz")");
  EXPECT_EQ(Written("\xC3"), R"("\ufffd")");                      // cut short
  EXPECT_EQ(Written("\xC0\xAF"), R"("\ufffd\ufffd")");            // overlong
  EXPECT_EQ(Written("\xED\xA0\x80"), R"("\ufffd\ufffd\ufffd")");  // surrogate
}

TEST(JsonWriter, NumbersRoundTripAndTheRestIsNull) {
  for (float value : {1.1754944e-38f, 3.4028235e38f, 0.1f, -2.7182817f}) {
    JsonWriter json;
    json.Number(value);
    EXPECT_EQ(static_cast<float>(ParseJson(json.text()).number), value);
  }
  JsonWriter json;
  json.Number(std::nan(""));
  EXPECT_EQ(json.text(), "null");
}

TEST(JsonWriter, ThousandthsAreExact) {
  JsonWriter json;
  json.BeginArray();
  for (int64_t value : {int64_t{0}, int64_t{7}, int64_t{1050}, int64_t{9007199254740993}}) json.Thousandths(value);
  json.EndArray();
  EXPECT_EQ(json.text(), "[0.000, 0.007, 1.050, 9007199254740.993]");
}

TEST(JsonReader, ReadsWhatTheWriterWrites) {
  const Json json = ParseJson(R"( {"a" : [1, -2.5e3, true, null], "b\u00e9": "x\ny"} )");
  EXPECT_EQ(json["a"].items[1].number, -2500);
  EXPECT_EQ(json["b\xC3\xA9"].string, "x\ny");
  for (const char* bad : {"", "{", "[1,]", "[1 2]", "{\"a\"}", "nul", "1x", "\"", "[] []"}) {
    EXPECT_THROW(ParseJson(bad), std::runtime_error) << bad;
  }
}

TEST(TextTable, AlignsColumns) {
  TextTable table({"layer", ">count"});
  table.AddRow({"conv1", "5"});
  table.AddRule();
  table.AddRow({"a longer name"});
  EXPECT_EQ(table.ToString(),
            "layer          count\n"
            "--------------------\n"
            "conv1              5\n"
            "--------------------\n"
            "a longer name\n");
}

TEST(ReadableNumbers, KeepTheirMagnitude) {
  EXPECT_EQ(FormatCount(0), "0");
  EXPECT_EQ(FormatCount(999), "999");
  EXPECT_EQ(FormatCount(1000), "1,000");
  EXPECT_EQ(FormatCount(-1234567), "-1,234,567");
  EXPECT_EQ(FormatCount(-123), "-123");
  EXPECT_EQ(FormatBytes(1023), "1023 B");
  EXPECT_EQ(FormatBytes(1536), "1.5 KiB");
  EXPECT_EQ(FormatBytes(1048575), "1.0 MiB");
  EXPECT_EQ(FormatScaled(0), "0");
  EXPECT_EQ(FormatScaled(12), "12");
  EXPECT_EQ(FormatScaled(0.1458), "0.15");
  EXPECT_EQ(FormatScaled(34.56), "34.6");
  EXPECT_EQ(FormatScaled(999.9), "1.00 k");
  EXPECT_EQ(FormatScaled(2344000000.0), "2.34 G");
  EXPECT_EQ(FormatSeconds(0.0001234), "0.123 ms");
  EXPECT_EQ(FormatSeconds(0.012345), "12.3 ms");
  EXPECT_EQ(FormatSeconds(0.9996), "1.00 s");
  EXPECT_EQ(FormatSeconds(75), "75.0 s");
}

}  // namespace
}  // namespace crema
