// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Two spellings of one report.
#include "Report.h"

#include "llvm/Support/Format.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

#include <chrono>
#include <cmath>

using namespace dfa::run;

static double now() {
  using Clock = std::chrono::steady_clock;
  return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
}

Progress::Progress(std::string what, int64_t total)
    : what(std::move(what)), total(total), next(now() + 2) {}

void Progress::advance(int64_t done) {
  if (now() < next)
    return;
  next = now() + 1;
  llvm::errs() << "dfa-run: " << what << " " << done << " of " << total << "\n";
}

/// JSON has no word for nan and the infinities.
static llvm::json::Value jsonNumber(double value) {
  if (std::isfinite(value))
    return value;
  return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

static void printJson(const Report &report) {
  llvm::json::OStream json(llvm::outs(), 2);
  json.object([&] {
    json.attribute("version", 1);
    json.attribute("target", report.target);
    json.attribute("ranks", report.ranks);
    json.attribute("steps", report.steps);
    json.attribute("seed", static_cast<int64_t>(report.seed));
    json.attribute("parameters", report.parameters);
    json.attribute("elements", report.elements);
    json.attributeObject("control", [&] {
      json.attribute("step", report.controlStep);
      json.attribute("skipped", report.skipped);
      json.attribute("found_inf", report.foundInf);
      json.attribute("norm", jsonNumber(report.norm));
      json.attribute("scale", jsonNumber(report.scale));
    });
    if (report.verified)
      json.attributeObject("verify", [&] {
        json.attribute("passed", report.verified->passed());
        json.attribute("compared", report.verified->elements());
        json.attribute("failures", report.verified->failures());
        if (const ElementReport *worst = report.verified->worst())
          json.attributeObject("worst", [&] {
            json.attribute("name", worst->name);
            json.attribute("index", worst->index);
            json.attribute("expected", jsonNumber(worst->expected));
            json.attribute("found", jsonNumber(worst->found));
            json.attribute("bound", jsonNumber(worst->bound));
            json.attribute("ratio", jsonNumber(worst->ratio));
          });
      });
    if (report.timing)
      json.attributeObject("time", [&] {
        json.attribute("copy_gb_per_s", report.timing->copyRate);
        json.attribute("bytes", report.timing->bytes);
        json.attribute("ms", report.timing->milliseconds);
        json.attribute("gb_per_s", report.timing->rate());
        json.attribute("ratio_to_floor", report.timing->ratioToFloor());
      });
  });
  llvm::outs() << "\n";
}

static void printText(const Report &report) {
  llvm::raw_ostream &out = llvm::outs();
  out << "target " << report.target << ", ranks " << report.ranks
      << ", parameters " << report.parameters << ", elements "
      << report.elements << ", steps " << report.steps << ", seed "
      << report.seed << "\n";
  out << "step " << report.controlStep << ", skipped " << report.skipped
      << ", found_inf " << report.foundInf << ", norm "
      << llvm::format("%.10g", report.norm) << ", scale "
      << llvm::format("%.10g", report.scale) << "\n";
  if (report.timing)
    out << llvm::format("copy %.2f GB/s, bytes %.0f, %.4f ms, %.2f GB/s, "
                        "%.3f of the floor's time\n",
                        report.timing->copyRate, report.timing->bytes,
                        report.timing->milliseconds, report.timing->rate(),
                        report.timing->ratioToFloor());
  if (!report.verified)
    return;
  const Comparison &verified = *report.verified;
  out << (verified.passed() ? "verify passed: " : "verify failed: ");
  if (verified.passed())
    out << verified.elements() << " values";
  else
    out << verified.failures() << " of " << verified.elements() << " values";
  if (const ElementReport *worst = verified.worst())
    out << "; worst " << worst->describe();
  out << "\n";
}

void dfa::run::printReport(const Report &report, bool json) {
  if (json)
    printJson(report);
  else
    printText(report);
  llvm::outs().flush();
}
