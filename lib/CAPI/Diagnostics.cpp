// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// dfa-c/dfa.h: diagnostics as plain data, and texts.

#include "Handles.h"

using namespace mlir;
using namespace mlir::dfa;

static dfa_severity_t getSeverity(DiagnosticSeverity severity) {
  switch (severity) {
  case DiagnosticSeverity::Note:
    return DFA_SEVERITY_NOTE;
  case DiagnosticSeverity::Warning:
    return DFA_SEVERITY_WARNING;
  case DiagnosticSeverity::Error:
    return DFA_SEVERITY_ERROR;
  case DiagnosticSeverity::Remark:
    return DFA_SEVERITY_REMARK;
  }
  return DFA_SEVERITY_ERROR;
}

static void append(dfa_diagnostics_t &list, Diagnostic &diagnostic) {
  dfa_diagnostics::Entry entry{getSeverity(diagnostic.getSeverity()),
                               diagnostic.str(), "", 0, 0};
  // The place in a file, however deep it is in fused or named locations.
  FileLineColLoc place;
  diagnostic.getLocation()->walk([&](Location location) {
    place = dyn_cast<FileLineColLoc>(location);
    return place ? WalkResult::interrupt() : WalkResult::advance();
  });
  if (place) {
    entry.file = place.getFilename().str();
    entry.line = static_cast<int32_t>(place.getLine());
    entry.column = static_cast<int32_t>(place.getColumn());
  }
  list.entries.push_back(std::move(entry));
  for (Diagnostic &note : diagnostic.getNotes())
    append(list, note);
}

capi::DiagnosticCollector::DiagnosticCollector(MLIRContext *context,
                                               dfa_diagnostics_t *diagnostics)
    : handler(context, [diagnostics](Diagnostic &diagnostic) {
        if (diagnostics)
          append(*diagnostics, diagnostic);
        return success();
      }) {}

dfa_status_t capi::fail(dfa_diagnostics_t *diagnostics, const Twine &message) {
  if (diagnostics)
    diagnostics->entries.push_back(
        {DFA_SEVERITY_ERROR, message.str(), "", 0, 0});
  return DFA_FAILED;
}

dfa_status_t capi::failFromText(dfa_diagnostics_t *diagnostics,
                                StringRef text) {
  auto [place, rest] = text.split("error: ");
  if (rest.empty())
    return fail(diagnostics, text.split('\n').first);
  dfa_status_t status = fail(diagnostics, rest.split('\n').first);
  if (!diagnostics)
    return status;
  dfa_diagnostics::Entry &entry = diagnostics->entries.back();
  // FILE:LINE:COLUMN: and a blank; a file's name may have colons too.
  place = place.rtrim(" :");
  auto [front, column] = place.rsplit(':');
  auto [file, line] = front.rsplit(':');
  if (column.getAsInteger(10, entry.column) ||
      line.getAsInteger(10, entry.line))
    entry.line = entry.column = 0;
  else
    entry.file = file.str();
  return status;
}

dfa_status_t capi::store(std::string bytes, dfa_text_t **result) {
  *result = new dfa_text{std::move(bytes)};
  return DFA_OK;
}

dfa_diagnostics_t *dfa_diagnostics_create(void) {
  return new dfa_diagnostics();
}

void dfa_diagnostics_release(dfa_diagnostics_t *diagnostics) {
  delete diagnostics;
}

size_t dfa_diagnostics_count(const dfa_diagnostics_t *diagnostics) {
  return diagnostics ? diagnostics->entries.size() : 0;
}

dfa_diagnostic_t dfa_diagnostics_get(const dfa_diagnostics_t *diagnostics,
                                     size_t index) {
  if (index >= dfa_diagnostics_count(diagnostics))
    return {DFA_SEVERITY_ERROR, "", "", 0, 0};
  const dfa_diagnostics::Entry &entry = diagnostics->entries[index];
  return {entry.severity, entry.message.c_str(), entry.file.c_str(), entry.line,
          entry.column};
}

const char *dfa_text_data(const dfa_text_t *text) {
  return text ? text->bytes.c_str() : "";
}

size_t dfa_text_size(const dfa_text_t *text) {
  return text ? text->bytes.size() : 0;
}

void dfa_text_release(dfa_text_t *text) { delete text; }
