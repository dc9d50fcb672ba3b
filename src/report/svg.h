// What pictures in SVG (https://www.w3.org/TR/SVG11/) have in common. Lengths are in pixels.
#ifndef CREMA_REPORT_SVG_H_
#define CREMA_REPORT_SVG_H_

#include <string>
#include <string_view>

namespace crema {

// Stands before the picture in a file of its own.
inline constexpr char kXmlHead[] = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";

// The opening tag and a white ground.
std::string SvgHead(double width, double height);

// A line of text with its baseline at y; `anchor` is "start", "middle" or "end", `more` further attributes.
std::string SvgText(double x, double y, double size, const char* anchor, std::string_view content,
                    const std::string& more = {});

// Text as it may stand between tags and in attributes; what XML has no character for becomes U+FFFD.
std::string XmlEscaped(std::string_view text);

}  // namespace crema

#endif  // CREMA_REPORT_SVG_H_
