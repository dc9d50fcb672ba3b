#include "report/svg.h"

#include <algorithm>

#include "base/number_text.h"
#include "base/utf8.h"

namespace crema {

std::string SvgHead(double width, double height) {
  const std::string w = FormatNumber(width), h = FormatNumber(height);
  return "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + w + "\" height=\"" + h + "\" viewBox=\"0 0 " + w + " " +
         h + "\" font-family=\"sans-serif\">\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n";
}

std::string SvgText(double x, double y, double size, const char* anchor, std::string_view content,
                    const std::string& more) {
  return "<text x=\"" + FormatNumber(x) + "\" y=\"" + FormatNumber(y) + "\" font-size=\"" + FormatNumber(size) +
         "\" text-anchor=\"" + anchor + "\"" + more + ">" + XmlEscaped(content) + "</text>\n";
}

std::string XmlEscaped(std::string_view text) {
  std::string escaped;
  while (!text.empty()) {
    const size_t length = Utf8SequenceLength(text);
    const auto byte = static_cast<unsigned char>(text[0]);
    if (length == 0 || (byte < 0x20 && byte != '\t') || byte == 0x7F) {
      escaped += "\xEF\xBF\xBD";
    } else if (byte == '&') {
      escaped += "&amp;";
    } else if (byte == '<') {
      escaped += "&lt;";
    } else if (byte == '>') {
      escaped += "&gt;";
    } else if (byte == '"') {
      escaped += "&quot;";
    } else {
      escaped += text.substr(0, length);
    }
    text.remove_prefix(std::max<size_t>(length, 1));
  }
  return escaped;
}

}  // namespace crema
