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
                             const std::string &fill, const std::string &title,
                             const std::string &edge = "none") {
  return "<rect x=\"" + number(x) + "\" y=\"" + number(y) + "\" width=\"" +
         number(std::max(w, 0.3)) + "\" height=\"" + number(barHeight) +
         "\" fill=\"" + fill + "\" stroke=\"" + edge + "\"><title>" + title +
         "</title></rect>\n";
}

static std::string text(double x, double y, const std::string &what) {
  return "<text x=\"" + number(x) + "\" y=\"" + number(y) + "\">" + what +
         "</text>\n";
}

static std::string line(double x1, double y1, double x2, double y2,
                        const std::string &colour) {
  return "<line x1=\"" + number(x1) + "\" x2=\"" + number(x2) + "\" y1=\"" +
         number(y1) + "\" y2=\"" + number(y2) + "\" stroke=\"" + colour +
         "\"/>\n";
}

static const char *colourOf(const Span &span) {
  const char *colours[] = {"#4e79a7", "#a0cbe8", "#59a14f", "#8cd17d",
                           "#b6992d", "#f1ce63", "#499894", "#86bcb6"};
  return span.bucket < 0 ? "#bab0ac" : colours[span.bucket % 8];
}

/// A row a stream; a colour a bucket. Collectives have a red edge.
static std::string drawStreams(const std::vector<EntrySpans> &entries,
                               double top) {
  if (entries.empty())
    return "";
  double scale = width / std::max(entries.back().end, 1e-9);
  std::string svg =
      text(8, top + 8,
           "streams in the order of the program, not to scale; a colour a "
           "bucket, red edges: collectives");
  const char *streams[] = {"compute", "comm", "side"};
  double bottom = top + 40 + 3 * rowHeight;
  for (int stream = 0; stream < 3; ++stream)
    svg += text(8, top + 45 + stream * rowHeight, streams[stream]);
  for (const EntrySpans &entry : entries) {
    double x = left + scale * entry.begin;
    svg += text(x + 2, top + 26, entry.entry);
    svg += line(x, top + 16, x, bottom, "#888888");
    for (const Span &span : entry.spans)
      svg += rectangle(
          left + scale * span.begin, top + 32 + span.stream * rowHeight,
          scale * (span.end - span.begin), colourOf(span),
          escaped(span.what) +
              (span.bucket < 0 ? std::string()
                               : ", bucket " + std::to_string(span.bucket)),
          span.collective ? "#e15759" : "#ffffff");
  }
  return svg;
}

std::string dfa::run::drawPlan(const layout::Plan &plan,
                               const std::vector<EntrySpans> &entries) {
  int64_t largest = 1;
  for (const layout::Bucket &bucket : plan.buckets())
    largest = std::max(largest, bucket.padded);
  double scale = width / static_cast<double>(largest);
  double map = rowHeight * static_cast<double>(plan.buckets().size()) + 40;
  double height = map + (entries.empty() ? 0 : 3 * rowHeight + 56);
  std::string svg = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" +
                    number(left + width + 20) + "\" height=\"" +
                    number(height) +
                    "\" font-family=\"sans-serif\" font-size=\"11\">\n";
  svg += text(8, 16,
              std::to_string(plan.elements()) + " elements, " +
                  std::to_string(plan.buckets().size()) + " buckets, " +
                  std::to_string(plan.mesh().replicate) + " x " +
                  std::to_string(plan.mesh().shard) +
                  " ranks; red lines cut shards");
  const char *colours[] = {"#4e79a7", "#a0cbe8", "#59a14f", "#8cd17d"};
  for (size_t row = 0; row < plan.buckets().size(); ++row) {
    const layout::Bucket &bucket = plan.buckets()[row];
    double y = 28 + rowHeight * static_cast<double>(row);
    svg += text(8, y + 13,
                std::to_string(row) + " @" +
                    escaped(plan.classes()[bucket.cls].name));
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
      svg += line(x, y - 2, x, y + barHeight + 2, "#e15759");
    }
  }
  return svg + drawStreams(entries, map) + "</svg>\n";
}
