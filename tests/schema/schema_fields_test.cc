// proto/ against the field list of Caffe's formats: same numbers, types and defaults, and nothing of ours among them.
#include <google/protobuf/descriptor.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "crema/net.pb.h"
#include "crema/solver.pb.h"
#include "source_folder.h"

namespace crema {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::EnumDescriptor;
using google::protobuf::FieldDescriptor;

constexpr int kFirstOwnNumber = 10000;

std::string TypeOf(const FieldDescriptor* field) {
  if (field->type() == FieldDescriptor::TYPE_MESSAGE) return std::string(field->message_type()->name());
  if (field->type() == FieldDescriptor::TYPE_ENUM) return std::string(field->enum_type()->name());
  return std::string(field->type_name());
}

bool DefaultIs(const FieldDescriptor* field, const std::string& expected) {
  if (expected == "-") return !field->has_default_value();
  if (!field->has_default_value() && expected != "empty") return false;
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return field->default_value_int32() == std::stol(expected);
    case FieldDescriptor::CPPTYPE_INT64:
      return field->default_value_int64() == std::stoll(expected);
    case FieldDescriptor::CPPTYPE_UINT32:
      return field->default_value_uint32() == std::stoul(expected);
    case FieldDescriptor::CPPTYPE_FLOAT:
      return field->default_value_float() == std::strtof(expected.c_str(), nullptr);
    case FieldDescriptor::CPPTYPE_BOOL:
      return field->default_value_bool() == (expected == "true");
    case FieldDescriptor::CPPTYPE_ENUM:
      return field->default_value_enum()->name() == expected;
    case FieldDescriptor::CPPTYPE_STRING:
      return field->default_value_string() == (expected == "empty" ? "" : expected);
    default:
      return false;
  }
}

TEST(SchemaFields, AreCaffes) {
  std::ifstream list(SourceFolder() + "/tests/schema/caffe_fields.txt");
  ASSERT_TRUE(list);
  const auto* pool = NetParameter::descriptor()->file()->pool();
  ASSERT_NE(SolverParameter::descriptor(), nullptr);
  std::map<std::string, std::set<std::string>> listed;
  int fields = 0, values = 0;
  std::string line;
  while (std::getline(list, line)) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream words(line);
    std::string message, name, packed;
    words >> message >> name;
    if (name == "=") {
      std::string value;
      int number = 0;
      words >> value >> number;
      const EnumDescriptor* type = pool->FindEnumTypeByName("crema." + message);
      ASSERT_NE(type, nullptr) << line;
      const auto* found = type->FindValueByName(value);
      ASSERT_NE(found, nullptr) << line;
      EXPECT_EQ(found->number(), number) << line;
      ++values;
      continue;
    }
    int number = 0;
    std::string label, type, initial;
    words >> number >> label >> type >> initial >> packed;
    const Descriptor* descriptor = pool->FindMessageTypeByName("crema." + message);
    ASSERT_NE(descriptor, nullptr) << line;
    const FieldDescriptor* field = descriptor->FindFieldByName(name);
    ASSERT_NE(field, nullptr) << line;
    EXPECT_EQ(field->number(), number) << line;
    EXPECT_EQ(field->is_repeated(), label == "r" || label == "m") << line;
    EXPECT_EQ(field->is_required(), label == "q") << line;
    EXPECT_EQ(TypeOf(field), type) << line;
    EXPECT_TRUE(label == "m" || DefaultIs(field, initial)) << line;
    EXPECT_EQ(field->is_packed(), packed == "packed") << line;
    listed[message].insert(name);
    ++fields;
  }
  EXPECT_GT(fields, 400);
  EXPECT_GT(values, 100);
  for (const auto& [message, names] : listed) {
    const Descriptor* descriptor = pool->FindMessageTypeByName("crema." + message);
    for (int i = 0; i < descriptor->field_count(); ++i) {
      const FieldDescriptor* field = descriptor->field(i);
      if (names.count(std::string(field->name()))) continue;
      EXPECT_GE(field->number(), kFirstOwnNumber) << message << "." << field->name() << " is not Caffe's";
    }
  }
}

// The binary form that other programs read: shape is field 7 of a blob, values are packed floats in field 5.
TEST(SchemaFields, BlobsAreWrittenAsCaffeReadsThem) {
  BlobProto blob;
  blob.mutable_shape()->add_dim(2);
  blob.add_data(1);
  blob.add_data(-2);
  const std::string expected("\x2a\x08\x00\x00\x80\x3f\x00\x00\x00\xc0\x3a\x03\x0a\x01\x02", 15);
  EXPECT_EQ(blob.SerializeAsString(), expected);
  NetParameter net;
  net.add_layer()->set_name("a");
  EXPECT_EQ(net.SerializeAsString(), std::string("\xa2\x06\x03\x0a\x01\x61", 6));
}

// The manual is in the protos: a comment stands right above every message and every field.
TEST(SchemaFields, AreDocumented) {
  const std::regex documented(R"(\s*(optional|repeated|required) .* = \d+.*;|message \w+ \{)");
  const std::regex comment(R"(\s*// .*)");
  int found = 0;
  const std::string root = SourceFolder() + "/proto/crema";
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    if (entry.path().extension() != ".proto") continue;
    std::ifstream file(entry.path());
    std::string line, above;
    for (int number = 1; std::getline(file, line); ++number, above = line) {
      if (number == 1) {
        EXPECT_TRUE(std::regex_match(line, comment)) << entry.path() << " does not say what it is about";
      }
      if (!std::regex_match(line, documented)) continue;
      EXPECT_TRUE(std::regex_match(above, comment)) << entry.path() << ":" << number << ": " << line;
      ++found;
    }
  }
  EXPECT_GT(found, 450);
}

}  // namespace
}  // namespace crema
