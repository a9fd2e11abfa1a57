// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Two spellings of one report.
#include "Report.h"

#include "llvm/Support/Format.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
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

static void printTimeJson(const Timing &timing, llvm::json::OStream &json) {
  json.attribute("copy_gb_per_s", timing.copy.rate);
  json.attribute("copy_bytes", static_cast<int64_t>(timing.copy.bytes));
  json.attribute("bytes", timing.bytes);
  json.attribute("ms", timing.step.milliseconds);
  json.attribute("batches", timing.step.batches);
  json.attribute("steps_per_batch", timing.step.stepsPerBatch);
  json.attribute("host_us", timing.step.hostMicroseconds);
  json.attribute("gb_per_s", jsonNumber(timing.rate()));
  json.attribute("ratio_to_floor", jsonNumber(timing.ratioToFloor()));
  json.attribute("kernels_ms", timing.kernelMilliseconds());
  json.attributeArray("commands", [&] {
    for (const CommandSum &command : timing.commands)
      json.object([&] {
        json.attribute("kind", command.kind);
        json.attribute("name", command.name);
        json.attribute("launches", command.launches);
        json.attribute("ms", command.milliseconds);
        if (command.bytes == 0)
          return;
        json.attribute("bytes_per_element", command.bytesPerElement);
        json.attribute("bytes", command.bytes);
        json.attribute("gb_per_s", jsonNumber(command.rate()));
        json.attribute("ratio", jsonNumber(command.rate() / timing.copy.rate));
      });
  });
}

static void printTimeText(const Timing &timing, llvm::raw_ostream &out) {
  out << llvm::format("copy %.2f GB/s (%.0f MiB)\n", timing.copy.rate,
                      static_cast<double>(timing.copy.bytes) / 0x1p20);
  out << llvm::format("step %.4f ms (%d batches of %d), %.3f MB, %.2f GB/s, "
                      "%.3f of the floor's time, host %.2f us\n",
                      timing.step.milliseconds, int(timing.step.batches),
                      int(timing.step.stepsPerBatch), timing.bytes * 1e-6,
                      timing.rate(), timing.ratioToFloor(),
                      timing.step.hostMicroseconds);
  out << llvm::format("kernels %.4f ms\n", timing.kernelMilliseconds());
  size_t width = 6;
  std::vector<std::string> names;
  for (const CommandSum &command : timing.commands) {
    names.push_back(command.isKernel() ? command.name
                                       : command.kind + " " + command.name);
    width = std::max(width, names.back().size());
  }
  out << llvm::left_justify("kernel", width)
      << " launches B/elem         MB         ms      GB/s ratio\n";
  for (size_t i = 0; i < names.size(); ++i) {
    const CommandSum &command = timing.commands[i];
    out << llvm::left_justify(names[i], width)
        << llvm::format(" %8d ", int(command.launches));
    if (command.bytes == 0)
      out << llvm::format("%6s %10s %10.4f %9s %5s\n", "-", "-",
                          command.milliseconds, "-", "-");
    else
      out << llvm::format("%6.2f %10.3f %10.4f %9.2f %5.3f\n",
                          command.bytesPerElement, command.bytes * 1e-6,
                          command.milliseconds, command.rate(),
                          command.rate() / timing.copy.rate);
  }
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
      json.attributeObject("time",
                           [&] { printTimeJson(*report.timing, json); });
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
    printTimeText(*report.timing, out);
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
