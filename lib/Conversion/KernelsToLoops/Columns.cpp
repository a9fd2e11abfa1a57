// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The fixed reduction tree over accumulators in memory.

#include "HostKernels.h"

using namespace mlir;
using namespace mlir::dfa;

static Type getVectorType(Emitter &e, unsigned width) {
  return getWideType(e.getF64Type(), width);
}

static Value loadAt(Emitter &e, Value buffer, Value index, unsigned width) {
  return e.load(getVectorType(e, width), e.element(buffer, index, 8), 8);
}

static void storeAt(Emitter &e, Value value, Value buffer, Value index) {
  e.store(value, e.element(buffer, index, 8), 8);
}

void dfa::emitClearColumns(Emitter &e, Value buffer, int64_t columns,
                           unsigned width) {
  Value identity = emitIdentity(e, width);
  e.loop(e.constI64(0), e.constI64(columns), e.constI64(width),
         [&](Value i) { storeAt(e, identity, buffer, i); });
}

Value dfa::emitColumnTree(Emitter &e, Combine kind, Value buffer,
                          int64_t columns, unsigned width) {
  // In place: entry j is written after 2j and 2j + 1 were read, and read as
  // part of a pair before or in the same step.
  Value two = e.constI64(2);
  for (; columns > width; columns /= 2) {
    unsigned pairs = std::min<int64_t>(width, columns / 2);
    e.loop(e.constI64(0), e.constI64(columns / 2), e.constI64(pairs),
           [&](Value j) {
             Value first = e.mul(j, two);
             Value low = loadAt(e, buffer, first, pairs);
             Value high =
                 loadAt(e, buffer, e.add(first, e.constI64(pairs)), pairs);
             storeAt(e, emitPairs(e, kind, low, high), buffer, j);
           });
  }
  Value rest = loadAt(e, buffer, e.constI64(0), columns);
  return emitLaneTree(e, kind, rest);
}

Value dfa::emitMatrix(Emitter &e, Combine kind, Value source, Value count,
                      Value buffer, int64_t columns, unsigned width) {
  emitClearColumns(e, buffer, columns, width);
  Value mask = e.constI64(columns - 1);
  auto accumulate = [&](Value i, unsigned lanes) {
    Value column = e.bitAnd(i, mask);
    Value old = loadAt(e, buffer, column, lanes);
    Value next = loadAt(e, source, i, lanes);
    storeAt(e, emitCombine(e, kind, old, next), buffer, column);
  };
  // A vector starts at a multiple of its width, so it stays within a row.
  Value main = e.bitAnd(count, e.constI64(-static_cast<int64_t>(width)));
  e.loop(e.constI64(0), main, e.constI64(width),
         [&](Value i) { accumulate(i, width); });
  if (width > 1)
    e.loop(main, count, e.constI64(1), [&](Value i) { accumulate(i, 1); });
  return emitColumnTree(e, kind, buffer, columns, width);
}
