#include "report/trace_writer.h"

namespace crema {

TraceWriter::TraceWriter(Form form) : form_(form) {
  if (form_ == Form::kObject) {
    json_.BeginObject();
    json_.Key("displayTimeUnit");
    json_.String("ms");
    json_.NewLine(0);
    json_.Key("traceEvents");
  }
  json_.BeginArray();
}

void TraceWriter::Begin(const std::string& name, const char* phase, int track) {
  json_.NewLine(1);
  json_.BeginObject();
  json_.Key("name");
  json_.String(name);
  json_.Key("ph");
  json_.String(phase);
  json_.Key("pid");
  json_.Integer(1);
  json_.Key("tid");
  json_.Integer(track);
}

void TraceWriter::Name(const char* what, int track, const std::string& name) {
  Begin(what, "M", track);
  json_.Key("args");
  json_.BeginObject();
  json_.Key("name");
  json_.String(name);
  json_.EndObject();
  json_.EndObject();
}

void TraceWriter::SortIndex(int track, int index) {
  Begin("thread_sort_index", "M", track);
  json_.Key("args");
  json_.BeginObject();
  json_.Key("sort_index");
  json_.Integer(index);
  json_.EndObject();
  json_.EndObject();
}

void TraceWriter::Span(const std::string& name, const std::string& category, int track, int64_t begin, int64_t end,
                       const std::function<void(JsonWriter&)>& arguments) {
  Begin(name, "X", track);
  json_.Key("cat");
  json_.String(category);
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
  json_.Key("cat");
  json_.String(category);
  json_.Key("ts");
  json_.Thousandths(time);
  json_.Key("s");
  json_.String("t");
  json_.EndObject();
}

std::string TraceWriter::Finish() {
  json_.EndArray();
  if (form_ == Form::kObject) json_.EndObject();
  return json_.Take() + "\n";
}

}  // namespace crema
