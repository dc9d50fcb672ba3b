// Layer types of forks of Caffe that crema does not have, and names that others have for types and fields that are
// there: not misspelt, and often with another way to the same net.
#ifndef CREMA_SCHEMA_TYPES_OF_FORKS_H_
#define CREMA_SCHEMA_TYPES_OF_FORKS_H_

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace crema {

struct TypeOfFork {
  std::string_view type;
  const char* fork;
  const char* remedy;  // behind a "; "; null: there is none but writing the layer
};

// All that are known, for a test that crema has none of them.
std::span<const TypeOfFork> TypesOfForks();

// The type of this name, of the V1 name of it ("DENSE_CRF"), or of the block of this name ("dense_crf_param"); null for
// none.
const TypeOfFork* FindTypeOfFork(std::string_view name);

// What to tell about a layer of that type, with the remedy.
std::string AdviceOn(const TypeOfFork& type);

// How to add a layer type, behind what is wrong with one.
inline constexpr const char* kWriteLayer = "; docs/adding_a_layer.md shows how to write it in one C++ file";

// What to tell about a field of a fork, in whatever block, to which no field of crema is similar in meaning; empty for
// others.
std::string AdviceOnField(std::string_view name);

// What to tell about a field that other frameworks have, where one of `fields` is it here; empty for others.
std::string WordOfOthers(std::string_view name, const std::vector<std::string>& fields);

// Without "_" and "_param", in small letters: "DENSE_CRF", "dense_crf_param" and "DenseCRF" are one.
std::string PlainName(std::string_view name);

}  // namespace crema

#endif  // CREMA_SCHEMA_TYPES_OF_FORKS_H_
