// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One function a rule. Hyper-parameters reach an f32 kernel rounded, hence
// asF32; the powers of beta are made in f64 there too.
#include "reference/Rules.h"

#include <cmath>

using namespace dfa::run;

RuleScalars
dfa::run::makeRuleScalars(const std::map<std::string, double> &hyper,
                          int64_t step) {
  RuleScalars scalars;
  scalars.step = static_cast<double>(step);
  const std::pair<const char *, double *> fields[] = {
      {"lr", &scalars.lr},
      {"beta1", &scalars.beta1},
      {"beta2", &scalars.beta2},
      {"eps", &scalars.eps},
      {"weight_decay", &scalars.weightDecay},
      {"momentum", &scalars.momentum},
      {"dampening", &scalars.dampening},
      {"alpha", &scalars.alpha},
      {"lr_decay", &scalars.lrDecay},
  };
  for (const std::pair<const char *, double *> &field : fields) {
    std::map<std::string, double>::const_iterator found =
        hyper.find(field.first);
    if (found != hyper.end())
      *field.second = found->second;
  }
  return scalars;
}

namespace {

/// Bias corrections of Adam's moments, as factors.
struct Corrections {
  Bounded first = exactly(1);  // 1 / (1 - beta1^t)
  Bounded second = exactly(1); // 1 / (1 - beta2^t)

  Corrections(const RuleModes &modes, const RuleScalars &s) {
    if (modes.noBiasCorrection)
      return;
    first = asF32(1 / (1 - std::pow(s.beta1, s.step)));
    second = asF32(1 / (1 - std::pow(s.beta2, s.step)));
  }
};

} // namespace

/// beta * old + (1 - beta) * term, a moment's exponential average.
static DFA_RUN_INLINE Bounded average(double beta, Bounded old, Bounded term) {
  return asF32(beta) * old + asF32(1 - beta) * term;
}

/// The gradient with its sign and, where it belongs there, the decay.
static DFA_RUN_INLINE Bounded effective(const RuleModes &modes,
                                        double weightDecay, Bounded gradient,
                                        Bounded param) {
  Bounded signedGradient = modes.maximize ? -gradient : gradient;
  if (weightDecay == 0)
    return signedGradient;
  return signedGradient + asF32(weightDecay) * param;
}

DFA_RUN_VECTOR_CLONES
static void adam(const RuleModes modes, const RuleScalars s, const RuleBlocks b,
                 int64_t count) {
  const Corrections corrections(modes, s);
  const double inGradient = modes.decoupled ? 0 : s.weightDecay;
  const double outside = modes.decoupled ? s.lr * s.weightDecay : 0;
  for (int64_t i = 0; i < count; ++i) {
    Bounded p = b.outs[0]->get(i);
    Bounded g = effective(modes, inGradient, b.gradient->get(i), p);
    Bounded m = average(s.beta1, b.outs[1]->get(i), g);
    Bounded v = average(s.beta2, b.outs[2]->get(i), g * g);
    Bounded second = v;
    if (modes.amsgrad) {
      second = largest(b.outs[3]->get(i), v);
      b.results[3]->set(i, second);
    }
    Bounded denominator =
        squareRoot(second * corrections.second) + asF32(s.eps);
    Bounded ratio = m * corrections.first / denominator;
    Bounded change = asF32(s.lr) * ratio + asF32(outside) * p;
    b.results[0]->set(i, p - change);
    b.results[1]->set(i, m);
    b.results[2]->set(i, v);
  }
}

DFA_RUN_VECTOR_CLONES
static void sgd(const RuleModes modes, const RuleScalars s, const RuleBlocks b,
                int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    Bounded p = b.outs[0]->get(i);
    Bounded g = effective(modes, s.weightDecay, b.gradient->get(i), p);
    Bounded direction = g;
    if (modes.withMomentum) {
      // The first update takes the gradient as it is.
      Bounded buffer = g;
      if (s.step > 1)
        buffer =
            asF32(s.momentum) * b.outs[1]->get(i) + asF32(1 - s.dampening) * g;
      direction = modes.nesterov ? g + asF32(s.momentum) * buffer : buffer;
      b.results[1]->set(i, buffer);
    }
    b.results[0]->set(i, p - asF32(s.lr) * direction);
  }
}

DFA_RUN_VECTOR_CLONES
static void lion(const RuleModes modes, const RuleScalars s, const RuleBlocks b,
                 int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    Bounded p = b.outs[0]->get(i), m = b.outs[1]->get(i);
    Bounded g = effective(modes, 0, b.gradient->get(i), p);
    Bounded sign = signOf(average(s.beta1, m, g));
    Bounded change = asF32(s.lr) * sign + asF32(s.lr * s.weightDecay) * p;
    b.results[0]->set(i, p - change);
    b.results[1]->set(i, average(s.beta2, m, g));
  }
}

DFA_RUN_VECTOR_CLONES
static void adagrad(const RuleModes modes, const RuleScalars s,
                    const RuleBlocks b, int64_t count) {
  const Bounded rate = asF32(s.lr / (1 + (s.step - 1) * s.lrDecay));
  for (int64_t i = 0; i < count; ++i) {
    Bounded p = b.outs[0]->get(i);
    Bounded g = effective(modes, s.weightDecay, b.gradient->get(i), p);
    Bounded sum = b.outs[1]->get(i) + g * g;
    b.results[0]->set(i, p - rate * (g / (squareRoot(sum) + asF32(s.eps))));
    b.results[1]->set(i, sum);
  }
}

DFA_RUN_VECTOR_CLONES
static void rmsprop(const RuleModes modes, const RuleScalars s,
                    const RuleBlocks b, int64_t count) {
  const int buffer = modes.centered ? 3 : 2;
  for (int64_t i = 0; i < count; ++i) {
    Bounded p = b.outs[0]->get(i);
    Bounded g = effective(modes, s.weightDecay, b.gradient->get(i), p);
    Bounded square = average(s.alpha, b.outs[1]->get(i), g * g);
    Bounded variance = square;
    if (modes.centered) {
      Bounded mean = average(s.alpha, b.outs[2]->get(i), g);
      variance = square - mean * mean;
      // Zero for a constant gradient, up to rounding.
      variance.value = variance.value < 0 ? 0 : variance.value;
      b.results[2]->set(i, mean);
    }
    Bounded step = g / (squareRoot(variance) + asF32(s.eps));
    if (modes.withMomentum) {
      step = asF32(s.momentum) * b.outs[buffer]->get(i) + step;
      b.results[buffer]->set(i, step);
    }
    b.results[0]->set(i, p - asF32(s.lr) * step);
    b.results[1]->set(i, square);
  }
}

DFA_RUN_VECTOR_CLONES
static void lambMoments(const RuleModes modes, const RuleScalars s,
                        const RuleBlocks b, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    Bounded g = b.gradient->get(i);
    g = modes.maximize ? -g : g;
    b.results[0]->set(i, average(s.beta1, b.outs[0]->get(i), g));
    b.results[1]->set(i, average(s.beta2, b.outs[1]->get(i), g * g));
  }
}

DFA_RUN_VECTOR_CLONES
static void lambDirection(const RuleModes modes, const RuleScalars s,
                          const RuleBlocks b, int64_t count) {
  const Corrections corrections(modes, s);
  for (int64_t i = 0; i < count; ++i) {
    Bounded p = b.outs[0]->get(i), m = b.outs[1]->get(i);
    Bounded v = b.outs[2]->get(i);
    Bounded denominator = squareRoot(v * corrections.second) + asF32(s.eps);
    Bounded ratio = m * corrections.first / denominator;
    b.results[0]->set(i, ratio + asF32(s.weightDecay) * p);
  }
}

DFA_RUN_VECTOR_CLONES
static void lambStep(const RuleScalars s, const RuleBlocks b, int64_t count) {
  const Bounded rate = asF32({s.lr * s.trust.value, s.lr * s.trust.terms});
  for (int64_t i = 0; i < count; ++i) {
    Bounded p = b.outs[0]->get(i);
    b.results[0]->set(i, p - rate * b.gradient->get(i));
  }
}

void dfa::run::applyRule(const RuleModes &modes, const RuleScalars &scalars,
                         const RuleBlocks &blocks, int64_t count) {
  switch (modes.kind) {
  case RuleKind::Adam:
    return adam(modes, scalars, blocks, count);
  case RuleKind::Sgd:
    return sgd(modes, scalars, blocks, count);
  case RuleKind::Lion:
    return lion(modes, scalars, blocks, count);
  case RuleKind::Adagrad:
    return adagrad(modes, scalars, blocks, count);
  case RuleKind::Rmsprop:
    return rmsprop(modes, scalars, blocks, count);
  case RuleKind::LambMoments:
    return lambMoments(modes, scalars, blocks, count);
  case RuleKind::LambDirection:
    return lambDirection(modes, scalars, blocks, count);
  case RuleKind::LambStep:
    return lambStep(scalars, blocks, count);
  }
}
