#include "report/trace_writer.h"

namespace crema {

TraceWriter::TraceWriter(Form form) : form_(form) {
  if (form_ == Form::kObject) {
    json_.BeginObject();
    json_.Field("displayTimeUnit", "ms");
    json_.NewLine(0);
    json_.Key("traceEvents");
  }
  json_.BeginArray();
}

void TraceWriter::Begin(const std::string& name, const char* phase, int track) {
  json_.NewLine(1);
  json_.BeginObject();
  json_.Field("name", name);
  json_.Field("ph", phase);
  json_.Field("pid", 1);
  json_.Field("tid", track);
}

void TraceWriter::Name(const char* what, int track, const std::string& name) {
  Begin(what, "M", track);
  json_.Key("args");
  json_.BeginObject();
  json_.Field("name", name);
  json_.EndObject();
  json_.EndObject();
}

void TraceWriter::SortIndex(int track, int index) {
  Begin("thread_sort_index", "M", track);
  json_.Key("args");
  json_.BeginObject();
  json_.Field("sort_index", index);
  json_.EndObject();
  json_.EndObject();
}

void TraceWriter::Span(const std::string& name, const std::string& category, int track, int64_t begin, int64_t end,
                       const std::function<void(JsonWriter&)>& arguments) {
  Begin(name, "X", track);
  json_.Field("cat", category);
  json_.Key("ts");
  json_.Thousandths(begin);
  json_.Key("dur");
  json_.Thousandths(end - begin);
  if (arguments) {
    json_.Key("args");
    json_.BeginObject();
    arguments(json_);
    json_.EndObject();
  }
  json_.EndObject();
}

void TraceWriter::Instant(const std::string& name, const std::string& category, int track, int64_t time) {
  Begin(name, "i", track);
  json_.Field("cat", category);
  json_.Key("ts");
  json_.Thousandths(time);
  json_.Field("s", "t");
  json_.EndObject();
}

std::string TraceWriter::Finish() {
  json_.EndArray();
  if (form_ == Form::kObject) json_.EndObject();
  return json_.Take() + "\n";
}

}  // namespace crema
