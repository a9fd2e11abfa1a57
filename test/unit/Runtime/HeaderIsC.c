/* Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Compiles the public headers as C11 and shows the sizes that C sees.
 */
#include "dfa-rt/dfa_rt.h"

size_t dfaTestControlBytes(void) { return sizeof(dfa_rt_control_t); }
size_t dfaTestOptionsBytes(void) { return sizeof(dfa_rt_optimizer_options_t); }
