#include "data/databases/datum.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "base/random.h"
#include "data/data_testing.h"

namespace crema {
namespace {

std::span<const std::byte> AsBytes(const std::string& text) {
  return std::as_bytes(std::span<const char>(text.data(), text.size()));
}

// Compares our reader with protobuf's on the same bytes.
bool ExpectSameAsProtobuf(const std::string& bytes) {
  Datum expected;
  // Datum has no required field, so this fails for undecodable bytes only.
  const bool readable = expected.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
  DatumView view;
  const char* damage = ParseDatum(AsBytes(bytes), &view);
  EXPECT_EQ(damage == nullptr, readable) << (damage ? damage : "accepted what protobuf refuses");
  if (damage || !readable) return false;
  EXPECT_EQ(view.size, (ImageSize{expected.channels(), expected.height(), expected.width()}));
  EXPECT_EQ(view.label, expected.label());
  EXPECT_EQ(view.encoded, expected.encoded());
  EXPECT_EQ(std::string(view.data.begin(), view.data.end()), expected.data());
  EXPECT_EQ(view.float_count, static_cast<size_t>(expected.float_data_size()));
  std::vector<float> floats(view.float_count);
  view.CopyFloats(floats.data());
  if (!floats.empty() && view.float_count == static_cast<size_t>(expected.float_data_size())) {
    EXPECT_EQ(std::memcmp(floats.data(), expected.float_data().data(), floats.size() * 4), 0);
  }
  EXPECT_EQ(view.label_count, static_cast<size_t>(expected.labels_size()));
  std::vector<float> labels(view.label_count);
  view.CopyLabels(labels.data());
  if (!labels.empty() && view.label_count == static_cast<size_t>(expected.labels_size())) {
    EXPECT_EQ(std::memcmp(labels.data(), expected.labels().data(), labels.size() * 4), 0);
  }
  return true;
}

TEST(Datum, ReadsWhatProtobufWrites) {
  Datum datum = testing::ImageDatum(3, 5, 4, 7);
  EXPECT_TRUE(ExpectSameAsProtobuf(datum.SerializeAsString()));
  datum.set_label(-1);
  datum.set_encoded(true);
  EXPECT_TRUE(ExpectSameAsProtobuf(datum.SerializeAsString()));
  EXPECT_TRUE(ExpectSameAsProtobuf(""));
}

TEST(Datum, DataIsAViewOfTheRecord) {
  const std::string bytes = testing::ImageDatum(1, 28, 28, 3).SerializeAsString();
  DatumView view;
  ASSERT_EQ(ParseDatum(AsBytes(bytes), &view), nullptr);
  EXPECT_GE(reinterpret_cast<const char*>(view.data.data()), bytes.data());
  EXPECT_LE(reinterpret_cast<const char*>(view.data.data() + view.data.size()), bytes.data() + bytes.size());
}

TEST(Datum, ReadsFloatsPackedAndNot) {
  Datum datum;
  datum.set_channels(1);
  datum.set_height(1);
  datum.set_width(3);
  for (const float value : {1.5f, -2.0f, 3e30f}) datum.add_float_data(value);
  const std::string unpacked = datum.SerializeAsString();
  EXPECT_TRUE(ExpectSameAsProtobuf(unpacked));
  std::string packed("\x08\x01\x10\x01\x18\x03\x32\x0c", 8);
  const float values[] = {1.5f, -2.0f, 3e30f};
  packed.append(reinterpret_cast<const char*>(values), 12);
  EXPECT_TRUE(ExpectSameAsProtobuf(packed));
  EXPECT_TRUE(ExpectSameAsProtobuf(packed + unpacked + packed));
  EXPECT_FALSE(ExpectSameAsProtobuf(packed.substr(0, 7) + "\x0b" + packed.substr(8, 11)));
}

TEST(Datum, ReadsLabelsPackedAndNot) {
  Datum datum = testing::ImageDatum(1, 2, 2, 5);
  for (const float label : {0.25f, -1.0f}) datum.add_labels(label);
  const std::string packed = datum.SerializeAsString();
  EXPECT_TRUE(ExpectSameAsProtobuf(packed));
  // Field 10000 with 4 bytes, as writers of proto2 without [packed = true] have it.
  const std::string plain = "\x85\xf1\x04" + std::string("\0\0\x80\x3f", 4);
  EXPECT_TRUE(ExpectSameAsProtobuf(packed + plain + packed));
  EXPECT_TRUE(ExpectSameAsProtobuf("\x82\xf1\x04" + std::string(1, '\0')));
  EXPECT_FALSE(
      ExpectSameAsProtobuf("\x82\xf1\x04\x03"
                           "abc"));
  EXPECT_FALSE(ExpectSameAsProtobuf(packed + plain.substr(0, 5)));
}

TEST(Datum, LabelsAreAsManyAsOfTheFirstRecordAndFinite) {
  const auto read = [](const std::vector<float>& labels, size_t count) {
    Datum datum;
    datum.mutable_labels()->Add(labels.begin(), labels.end());
    const std::string bytes = datum.SerializeAsString();
    DatumView view;
    EXPECT_EQ(ParseDatum(AsBytes(bytes), &view), nullptr);
    std::vector<float> out(count);
    const std::string problem = ReadDatumLabels(view, count, out.data());
    if (problem.empty()) {
      EXPECT_EQ(out, labels);
    }
    return problem;
  };
  EXPECT_EQ(read({0.5, -2}, 2), "");
  EXPECT_EQ(read({}, 0), "");
  EXPECT_EQ(read({1, 2}, 3).find("has 2 labels, but the first record has 3 labels; "), 0u);
  EXPECT_EQ(read({}, 3).find("has no labels, but the first record has 3 labels; "), 0u);
  EXPECT_EQ(read({1}, 0).find("has 1 label, but the first record has no labels; "), 0u);
  EXPECT_NE(read({1, NAN}, 2).find("no finite number (nan, number 1 counted from 0)"), std::string::npos);
  EXPECT_NE(read({-INFINITY, 1}, 2).find("(-inf, number 0"), std::string::npos);
}

TEST(Datum, SkipsFieldsItDoesNotKnow) {
  const std::string datum = testing::ImageDatum(1, 2, 2, 1).SerializeAsString();
  // Field 100 as varint, 8 bytes, string, group (holding a varint) and 4 bytes.
  const std::string unknown =
      "\xa0\x06\x05"
      "\xa1\x06"
      "12345678"
      "\xa2\x06\x02hi"
      "\xa3\x06\x08\x01\xa4\x06"
      "\xa5\x06"
      "1234";
  EXPECT_TRUE(ExpectSameAsProtobuf(unknown + datum));
  EXPECT_TRUE(ExpectSameAsProtobuf(datum + unknown));
  EXPECT_TRUE(ExpectSameAsProtobuf(datum + "\xe8\xef\xf6\xfd\x70\x0b"));  // a field's number beyond 32 bits
  EXPECT_FALSE(ExpectSameAsProtobuf(datum + "\xa3\x06"));                 // group without an end
  EXPECT_FALSE(ExpectSameAsProtobuf(datum + "\xa4\x06"));                 // end without a group
  EXPECT_FALSE(ExpectSameAsProtobuf(datum + "\x07"));                     // encoding 7
  EXPECT_FALSE(ExpectSameAsProtobuf(datum + std::string(1, '\0')));       // field 0
}

TEST(Datum, DamagedRecordsAreReadAsProtobufDoes) {
  std::vector<std::string> seeds;
  seeds.push_back(testing::ImageDatum(3, 4, 4, 1000).SerializeAsString());
  Datum floats;
  for (int i = 0; i < 9; ++i) floats.add_float_data(static_cast<float>(i));
  floats.set_label(-5);
  seeds.push_back(floats.SerializeAsString());
  floats.add_labels(1);
  floats.add_labels(2);
  seeds.push_back(floats.SerializeAsString());
  seeds.push_back(
      "\x08\x03\xa3\x06\x08\x01\xa3\x06\xa4\x06\xa4\x06\x32\x08"
      "abcdefgh"
      "\x38\x01");
  const RandomStream random(20, 0);
  uint64_t draw = 0;
  int readable = 0, damaged = 0;
  for (int round = 0; round < 30000; ++round) {
    std::string bytes = seeds[round % seeds.size()];
    const uint64_t changes = 1 + random.Below(draw++, 4);
    for (uint64_t i = 0; i < changes; ++i) {
      const uint64_t at = bytes.empty() ? 0 : random.Below(draw++, bytes.size());
      switch (random.Below(draw++, 4)) {
        case 0:
          if (!bytes.empty()) bytes[at] = static_cast<char>(random.Bits64(draw++));
          break;
        case 1:
          bytes.resize(at);
          break;
        case 2:
          bytes.insert(at, 1, static_cast<char>(random.Bits64(draw++)));
          break;
        default:
          if (!bytes.empty()) bytes[at] = static_cast<char>(bytes[at] ^ (1 << random.Below(draw++, 8)));
      }
    }
    // Exactly as long as the data, so that an address sanitizer sees reads beyond it.
    const std::string tight(bytes.begin(), bytes.end());
    ExpectSameAsProtobuf(tight) ? ++readable : ++damaged;
    if (HasFailure()) {
      ADD_FAILURE() << "round " << round << ": " << ::testing::PrintToString(tight);
      return;
    }
  }
  EXPECT_GT(readable, 1000);
  EXPECT_GT(damaged, 1000);
}

TEST(Datum, CheckSaysWhatIsWrong) {
  const auto check = [](const Datum& datum) {
    const std::string bytes = datum.SerializeAsString();
    DatumView view;
    EXPECT_EQ(ParseDatum(AsBytes(bytes), &view), nullptr);
    return CheckDatum(view);
  };
  Datum good = testing::ImageDatum(3, 4, 5, 1);
  EXPECT_EQ(check(good), "");
  Datum encoded = good;
  encoded.set_encoded(true);
  EXPECT_EQ(check(encoded), "");
  encoded.clear_data();
  EXPECT_NE(check(encoded).find("holds no bytes"), std::string::npos);
  Datum negative = good;
  negative.set_height(-4);
  EXPECT_NE(check(negative).find("3x-4x5"), std::string::npos);
  Datum longer = good;
  longer.set_width(6);
  EXPECT_NE(check(longer).find("holds 60 bytes"), std::string::npos);
  Datum huge = good;  // 2^31-ish extents whose product wraps around
  huge.set_channels(INT32_MAX);
  huge.set_height(INT32_MAX);
  huge.set_width(INT32_MAX);
  EXPECT_NE(check(huge).find("is damaged"), std::string::npos);
  EXPECT_NE(check(Datum()).find("0x0x0"), std::string::npos);
}

}  // namespace
}  // namespace crema
