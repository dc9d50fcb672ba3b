#include "schema/text_parse.h"

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/text_format.h>

#include "schema/text_check.h"

namespace crema {

namespace {

// Whatever protobuf still objects to after CheckText found nothing.
class Collector : public google::protobuf::io::ErrorCollector {
 public:
  explicit Collector(const TextSource& source) : source_(source) {}

#if GOOGLE_PROTOBUF_VERSION >= 4022000
  void RecordError(int line, google::protobuf::io::ColumnNumber column, absl::string_view message) override {
    Add(line, column, std::string(message));
  }
  void RecordWarning(int, google::protobuf::io::ColumnNumber, absl::string_view) override {}
#else
  void AddError(int line, google::protobuf::io::ColumnNumber column, const std::string& message) override {
    Add(line, column, message);
  }
  void AddWarning(int, google::protobuf::io::ColumnNumber, const std::string&) override {}
#endif

  Diagnostics& diagnostics() { return diagnostics_; }

 private:
  void Add(int line, int column, const std::string& message) {
    diagnostics_.Error(source_.Place(line, column), message);
  }

  const TextSource& source_;
  Diagnostics diagnostics_;
};

}  // namespace

std::shared_ptr<TextSource> ParseText(const std::string& text, const std::string& file,
                                      google::protobuf::Message* message) {
  std::vector<Diagnostic> mistakes = CheckText(text, file, message->GetDescriptor());
  if (!mistakes.empty()) throw UserError(std::move(mistakes));

  auto source = std::make_shared<TextSource>(file, text, message->GetDescriptor());
  Collector collector(*source);
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&collector);
  parser.WriteLocationsTo(source->tree());
  google::protobuf::io::ArrayInputStream stream(text.data(), static_cast<int>(text.size()));
  if (!parser.Parse(&stream, message)) {
    if (!collector.diagnostics().has_errors()) collector.diagnostics().Error({file}, "cannot be read as prototxt");
    collector.diagnostics().ThrowIfErrors();
  }
  return source;
}

}  // namespace crema
