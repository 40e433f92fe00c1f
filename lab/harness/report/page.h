// A page of figures: one HTML file with its style in it, for a wide window and a phone, light and dark.
#pragma once

#include <string>
#include <string_view>

namespace tilewright::lab {

// The page; `origin` stands below its title, and is HTML, as the body is.
std::string page_html(const std::string& title, const std::string& origin, const std::string& body);
// A figure and what it is of: "12 of 12", "verified".
std::string tile_html(const std::string& figure, std::string_view what);
// A chart, or several, with a title and a caption, which are text.
std::string figure_html(const std::string& title, const std::string& content, const std::string& caption);
// A chart as it is drawn for a window, and for a phone: the page shows one of the two.
std::string plot_html(const std::string& svg, const std::string& narrow);

}  // namespace tilewright::lab
