// RUN: not dfa-opt %s --dfa-report 2>&1 | FileCheck %s
// RUN: not dfa-opt %s --dfa-report="format=xml" 2>&1 | FileCheck %s --check-prefix=FORMAT
// RUN: not dfa-opt %s --dfa-report="bandwidth=0" 2>&1 | FileCheck %s --check-prefix=SIZE
// RUN: not dfa-opt %s --dfa-report="link=-1" 2>&1 | FileCheck %s --check-prefix=SIZE
// RUN: not dfa-opt %s --dfa-report="shard=-1" 2>&1 | FileCheck %s --check-prefix=SIZE
// RUN: not dfa-opt %s --dfa-report="shard=two" 2>&1 | FileCheck %s --check-prefix=VALUE

// CHECK: error: expects a step or a 'dfa.program' to report on
// FORMAT: error: expects format 'text' or 'json' for dfa-report, but got 'xml'
// SIZE: error: expects a positive bandwidth and link, and no negative number of ranks, for dfa-report
// VALUE: 'two' value invalid
dfa.layout @l {
}
