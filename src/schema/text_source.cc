#include "schema/text_source.h"

#include <cstdlib>

namespace crema {

namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::TextFormat;

// Lines without tabs are not kept: their columns need no conversion.
std::vector<std::string> TabbedLines(const std::string& text) {
  std::vector<std::string> lines;
  if (text.find('\t') == std::string::npos) return lines;
  size_t begin = 0;
  while (begin <= text.size()) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    std::string line = text.substr(begin, end - begin);
    if (line.find('\t') == std::string::npos) line.clear();
    lines.push_back(std::move(line));
    begin = end + 1;
  }
  return lines;
}

struct Step {
  std::string name;
  int index = 0;
};

// "param[1]" -> {param, 1}
Step ParseStep(std::string_view text) {
  const size_t bracket = text.find('[');
  if (bracket == std::string_view::npos) return {std::string(text), 0};
  return {std::string(text.substr(0, bracket)), std::atoi(std::string(text.substr(bracket + 1)).c_str())};
}

// Where a field begins; line -1 where it is not in the text.
template <class Tree>
TextFormat::ParseLocation BeginOf(const Tree& tree, const FieldDescriptor* field, int index) {
  if constexpr (requires { tree.GetFieldLocation(field, 0u); }) {  // protobuf 36 wants this one
    const auto found = field->is_repeated() ? tree.GetFieldLocation(field, static_cast<uint32_t>(index))
                                            : tree.GetFieldLocation(field);
    return found.ok() ? found->full.start : TextFormat::ParseLocation();
  } else {
    return tree.GetLocation(field, index);
  }
}

std::string LayerPath(const LayerOrigin& origin) {
  switch (origin.syntax) {
    case LayerOrigin::Syntax::kCurrent:
      return "layer[" + std::to_string(origin.index) + "]";
    case LayerOrigin::Syntax::kInput:
      return "input";
    default:
      return "layers[" + std::to_string(origin.index) + "]";
  }
}

}  // namespace

TextSource::TextSource(std::string file, const std::string& text, const Descriptor* root)
    : file_(std::move(file)), lines_(TabbedLines(text)), root_(root) {}

Location TextSource::Place(int line, int column) const {
  if (line < 0) return {file_};
  if (static_cast<size_t>(line) < lines_.size()) {
    const std::string& text = lines_[line];
    int shown = 0;
    for (size_t i = 0; i < text.size(); ++i) {
      if (shown >= column) return {file_, line + 1, static_cast<int>(i) + 1};
      shown += text[i] == '\t' ? 8 - shown % 8 : 1;
    }
  }
  return {file_, line + 1, column + 1};
}

TextSource::Found TextSource::Find(std::string_view path) const {
  Found found{{file_}, false};
  const TextFormat::ParseInfoTree* tree = &tree_;
  const Descriptor* type = root_;
  while (!path.empty()) {
    const size_t dot = path.find('.');
    const Step step = ParseStep(path.substr(0, dot));
    path = dot == std::string_view::npos ? std::string_view() : path.substr(dot + 1);
    const FieldDescriptor* field = type ? type->FindFieldByName(step.name) : nullptr;
    if (!field || !tree) return found;
    int index = field->is_repeated() ? step.index : -1;
    TextFormat::ParseLocation place = BeginOf(*tree, field, index);
    // All values of `dim: [1, 3]` stand at the first.
    if (place.line < 0 && index > 0) place = BeginOf(*tree, field, 0);
    if (place.line < 0) return found;
    found.where = Place(place.line, place.column);
    const bool message = field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
    tree = message ? tree->GetTreeForNested(field, index) : nullptr;
    type = message ? field->message_type() : nullptr;
  }
  found.exact = true;
  return found;
}

Location TextSource::Field(std::string_view field) const { return Find(field).where; }

Location TextSource::Layer(int index, std::string_view field) const {
  LayerOrigin origin{LayerOrigin::Syntax::kCurrent, index};
  if (layers_) {
    if (index < 0 || static_cast<size_t>(index) >= layers_->size()) return {file_};
    origin = (*layers_)[index];
  }
  const std::string layer = LayerPath(origin);
  for (std::string path(field); !path.empty();) {
    for (const std::string& old : OldPaths(origin, path)) {
      const Found found = Find(old);
      if (found.exact) return found.where;
    }
    const size_t cut = path.find_last_of(".[");
    path.resize(cut == std::string::npos ? 0 : cut);
  }
  return Find(layer).where;
}

}  // namespace crema
