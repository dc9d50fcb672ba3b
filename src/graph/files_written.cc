#include "graph/files_written.h"

#include <filesystem>
#include <system_error>

namespace crema {

std::vector<Overwriting> FindOverwriting(const Graph& writers, const Graph& readers) {
  std::vector<Overwriting> found;
  for (const Node& writer : writers.nodes) {
    if (!writer.setup || !writer.setup->file_written()) continue;
    const LayerSetup::FileWritten& written = *writer.setup->file_written();
    for (const Node& reader : readers.nodes) {
      if (!reader.setup) continue;
      for (const std::string& path : reader.setup->files_read()) {
        std::error_code ignored;
        if (!std::filesystem::equivalent(path, written.path, ignored)) continue;
        found.push_back({&writer, &reader, &written});
      }
    }
  }
  return found;
}

std::string Describe(const Overwriting& found, const std::string& of_writers, const std::string& of_readers) {
  const auto after_space = [](const std::string& text) { return text.empty() ? "" : " " + text; };
  return "layer \"" + found.writer->name() + "\" (" + found.writer->type->name + ")" + after_space(of_writers) +
         ": \"" + found.file->path + "\" is what layer \"" + found.reader->name() + "\"" + after_space(of_readers) +
         " reads; name another file";
}

}  // namespace crema
