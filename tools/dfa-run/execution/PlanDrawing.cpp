// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Plain SVG: rectangles with titles, which viewers show under the pointer.
#include "execution/PlanDrawing.h"

#include <algorithm>
#include <cstdio>

using namespace dfa::run;
namespace layout = dfa::layout;

constexpr double width = 960, left = 120, rowHeight = 26, barHeight = 18;

/// Text between tags: parameters may be named anything.
static std::string escaped(const std::string &text) {
  std::string result;
  for (char c : text) {
    if (c == '<')
      result += "&lt;";
    else if (c == '>')
      result += "&gt;";
    else if (c == '&')
      result += "&amp;";
    else
      result += static_cast<unsigned char>(c) < 0x20 ? '?' : c;
  }
  return result;
}

static std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.3f", value);
  return text;
}

static std::string rectangle(double x, double y, double w,
                             const std::string &fill,
                             const std::string &title) {
  return "<rect x=\"" + number(x) + "\" y=\"" + number(y) + "\" width=\"" +
         number(std::max(w, 0.3)) + "\" height=\"" + number(barHeight) +
         "\" fill=\"" + fill + "\"><title>" + title + "</title></rect>\n";
}

std::string dfa::run::drawPlan(const layout::Plan &plan) {
  int64_t largest = 1;
  for (const layout::Bucket &bucket : plan.buckets())
    largest = std::max(largest, bucket.padded);
  double scale = width / static_cast<double>(largest);
  double height = rowHeight * static_cast<double>(plan.buckets().size()) + 40;
  std::string svg = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" +
                    number(left + width + 20) + "\" height=\"" +
                    number(height) +
                    "\" font-family=\"sans-serif\" font-size=\"11\">\n";
  svg += "<text x=\"8\" y=\"16\">" + std::to_string(plan.elements()) +
         " elements, " + std::to_string(plan.buckets().size()) + " buckets, " +
         std::to_string(plan.mesh().replicate) + " x " +
         std::to_string(plan.mesh().shard) + " ranks</text>\n";
  const char *colours[] = {"#4e79a7", "#a0cbe8", "#59a14f", "#8cd17d"};
  for (size_t row = 0; row < plan.buckets().size(); ++row) {
    const layout::Bucket &bucket = plan.buckets()[row];
    double y = 28 + rowHeight * static_cast<double>(row);
    svg += "<text x=\"8\" y=\"" + number(y + 13) + "\">" + std::to_string(row) +
           " @" + escaped(plan.classes()[bucket.cls].name) + "</text>\n";
    svg += rectangle(left, y, scale * static_cast<double>(bucket.padded),
                     "#dddddd", "padding");
    for (int64_t i = bucket.sequenceBegin; i < bucket.sequenceEnd; ++i) {
      int64_t param = plan.sequence()[i];
      const layout::Placement &place = plan.placements()[param];
      svg +=
          rectangle(left + scale * static_cast<double>(place.start), y,
                    scale * static_cast<double>(place.elements), colours[i % 4],
                    escaped(plan.params()[param].name) + ": " +
                        std::to_string(place.elements) + " from " +
                        std::to_string(place.start));
    }
    for (int64_t cut = 1; cut < plan.mesh().shard; ++cut) {
      double x = left + scale * static_cast<double>(cut * bucket.shardElements);
      svg += "<line x1=\"" + number(x) + "\" x2=\"" + number(x) + "\" y1=\"" +
             number(y - 2) + "\" y2=\"" + number(y + barHeight + 2) +
             "\" stroke=\"#e15759\"/>\n";
    }
  }
  return svg + "</svg>\n";
}
