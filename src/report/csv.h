// Comma-separated values (RFC 4180).
#ifndef CREMA_REPORT_CSV_H_
#define CREMA_REPORT_CSV_H_

#include <string>
#include <string_view>
#include <vector>

namespace crema {

// The field as it stands in a line: in quotes where it holds a comma, a quote or a line end.
std::string CsvField(std::string_view field);
// A whole line with its end.
std::string CsvLine(const std::vector<std::string>& fields);

}  // namespace crema

#endif  // CREMA_REPORT_CSV_H_
