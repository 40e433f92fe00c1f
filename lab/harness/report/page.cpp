// The page around figures.
#include "harness/report/page.h"

#include <fmt/format.h>

#include "harness/report/charts.h"
#include "harness/report/plot.h"
#include "harness/report/report_style.h"

namespace tilewright::lab {

std::string page_html(const std::string& title, const std::string& origin, const std::string& body) {
  return fmt::format(
      "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'>"
      "<meta name='viewport' content='width=device-width, "
      "initial-scale=1'><title>{0}</title>\n<style>{1}{2}{3}{4}</style></head>\n"
      "<body><main><h1>{0}</h1>\n<p class='muted'>{5}</p>\n{6}</main></body></html>\n",
      escape_html(title), kReportColours, kPageStyle, kChartStyle, series_rules(), origin, body);
}

std::string tile_html(const std::string& figure, std::string_view what) {
  return fmt::format("<div class='tile'><b>{}</b><span>{}</span></div>\n", escape_html(figure),
                     escape_html(what));
}

std::string figure_html(const std::string& title, const std::string& content, const std::string& caption) {
  return fmt::format("<figure><h2>{}</h2>\n{}<figcaption>{}</figcaption></figure>\n", escape_html(title),
                     content, escape_html(caption));
}

std::string plot_html(const std::string& svg, const std::string& narrow) {
  return fmt::format("<div class='wide'>{}</div><div class='narrow'>{}</div>", svg, narrow);
}

}  // namespace tilewright::lab
