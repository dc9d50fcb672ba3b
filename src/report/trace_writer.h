// Writes Chrome's trace events, for https://ui.perfetto.dev and chrome://tracing.
#ifndef CREMA_REPORT_TRACE_WRITER_H_
#define CREMA_REPORT_TRACE_WRITER_H_

#include <cstdint>
#include <functional>
#include <string>

#include "report/json_writer.h"

namespace crema {

// Tracks are numbered; times are in nanoseconds, at least 0. Spans of a track lie beside or within each other.
class TraceWriter {
 public:
  // kObject says more about how to show it; of kArray readers take one that was not finished, too.
  enum class Form { kObject, kArray };

  explicit TraceWriter(Form form);

  // `what`: "process_name", "thread_name". A later name of the same track replaces an earlier one.
  void Name(const char* what, int track, const std::string& name);
  // Tracks are shown in the order of these.
  void SortIndex(int track, int index);
  // `arguments` writes keys and values.
  void Span(const std::string& name, const std::string& category, int track, int64_t begin, int64_t end,
            const std::function<void(JsonWriter&)>& arguments = {});
  void Instant(const std::string& name, const std::string& category, int track, int64_t time);

  // What was written since the last call.
  std::string Take() { return json_.Take(); }
  // The same, and the last that is to be written.
  std::string Finish();

 private:
  void Begin(const std::string& name, const char* phase, int track);

  const Form form_;
  JsonWriter json_;
};

}  // namespace crema

#endif  // CREMA_REPORT_TRACE_WRITER_H_
