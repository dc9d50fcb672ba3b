// Flags of the programs that convert image files.
#ifndef CREMA_DATA_TOOLS_CONVERSION_FLAGS_H_
#define CREMA_DATA_TOOLS_CONVERSION_FLAGS_H_

#include <string>
#include <vector>

#include "base/progress_line.h"
#include "data/convert/convert_images.h"
#include "tools/command_line.h"

namespace crema::tools {

// The table entries of all flags that ConversionOf reads, and of those for the database.
std::vector<Flag> ConversionFlags(const std::string& how_it_is_split);
// A flag for a side of images, in pixels.
Flag Pixels(const std::string& name, const std::string& help);

// As the flags say. Throws UserError where one has another value than it may have.
ImageConversion ConversionOf(const CommandLine& line);

// Says how many images were left out.
void SayBroken(const ImagesConverted& done, ProgressLine* progress);

}  // namespace crema::tools

#endif  // CREMA_DATA_TOOLS_CONVERSION_FLAGS_H_
