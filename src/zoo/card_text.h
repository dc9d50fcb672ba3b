// A card for a terminal.
#ifndef CREMA_ZOO_CARD_TEXT_H_
#define CREMA_ZOO_CARD_TEXT_H_

#include <string>

#include "zoo/zoo.h"

namespace crema {

// The fields, then the card's text without Markdown's marks for tables, links and headings, wrapped at `width` columns.
std::string CardText(const ZooModel& model, int width = 100);

}  // namespace crema

#endif  // CREMA_ZOO_CARD_TEXT_H_
