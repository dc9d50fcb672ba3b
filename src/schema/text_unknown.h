// What to tell a user about a field that does not exist where it was written.
#ifndef CREMA_SCHEMA_TEXT_UNKNOWN_H_
#define CREMA_SCHEMA_TEXT_UNKNOWN_H_

#include <google/protobuf/descriptor.h>

#include <string>
#include <vector>

namespace crema {

// What UnknownField says of a block that it knows nothing else of.
inline constexpr const char* kOfAFork = "; is it from a fork of Caffe?";

// "a net", "a layer", "\"convolution_param\"": the block that `path` (names of fields from the outermost) leads to.
std::string BlockWords(const google::protobuf::Descriptor* root, const std::vector<std::string>& path);

// `name`, which a file of type `root` does not have, is a field of a net where a solver was expected or the reverse.
bool IsOtherFile(const std::string& name, const google::protobuf::Descriptor* root);

// The complaint about `name` in the innermost of `enclosing`, called `words`, with the best advice that the schema
// gives: a similar name, the block it belongs into, the kind of file it belongs into, or the fork it is of.
// `layer_type` is what the layer around says as its type, "Convolution" or CONVOLUTION; empty where nothing is known.
std::string UnknownField(const std::string& name, const std::string& words,
                         const std::vector<const google::protobuf::Descriptor*>& enclosing, bool is_block,
                         const std::string& layer_type);

}  // namespace crema

#endif  // CREMA_SCHEMA_TEXT_UNKNOWN_H_
