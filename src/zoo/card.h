// The card of a model: the README.md of its folder, whose first lines say what programs need to know. The format is
// written down in model_zoo/README.md.
#ifndef CREMA_ZOO_CARD_H_
#define CREMA_ZOO_CARD_H_

#include <string>
#include <string_view>

namespace crema {

struct Card {
  std::string name, summary;
  std::string weights;         // file beside the card; empty: there are none
  std::string weights_url;     // where they are fetched from; empty: nowhere
  std::string weights_sha256;  // 64 hexadecimal digits in lower case
  std::string parameters, flops, input, data, accuracy, license;
  std::string text;  // what stands behind the first lines
};

// Throws UserError with every mistake in the first lines; `file` stands for the file in messages.
Card ParseCard(std::string_view text, const std::string& file);

}  // namespace crema

#endif  // CREMA_ZOO_CARD_H_
