// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Hand-written kernels; plain loops, in the orders that abi.h prescribes.

#include "TestKernels.h"

#include "layout/Plan.h"
#include "layout/Tables.h"

#include <cmath>
#include <cstring>
#include <gtest/gtest.h>

namespace dfa::rt::test {

const char *const localProgram = R"(dfa-program 1
abi 2
layout test
hyper lr beta1 beta2 eps weight_decay max_norm
class w derived=8 stats=0
array grad element=f32 part=shard side=none
array param element=f32 part=shard side=none
array exp_avg element=f32 part=shard side=none
array exp_avg_sq element=f32 part=shard side=none
accumulators 2
group_stats 0
kernel local_norm kind=element class=w accs=2 block=128 vector=4
kernel decide kind=control class=- accs=2 block=1024 vector=1
kernel prologue kind=segment class=w accs=0 block=128 vector=1
kernel local_adamw kind=element class=w accs=0 block=128 vector=4
kernel next_generation kind=control class=- accs=0 block=1024 vector=1
entry finish
  upload table=segments
  upload table=groups
  launch_elements kernel=local_norm class=w table=atoms
  launch_control kernel=decide
  record event=decided stream=compute
  wait event=decided stream=side
  read_back stream=side
  launch_segments kernel=prologue class=w
  launch_elements kernel=local_adamw class=w
  record event=read stream=side
  wait event=read stream=compute
end
entry zero_grad
  launch_control kernel=next_generation
end
)";

const char *const shardedProgram = R"(dfa-program 1
abi 2
layout test
hyper lr beta1 beta2 eps weight_decay max_norm
axis replicate any
axis shard any
class w derived=8 stats=0
array full_grad element=f32 part=full side=none
array grad element=f32 part=shard side=none
array master element=f32 part=shard side=none
array m element=f32 part=shard side=none
array v element=f32 part=shard side=none
array param element=f32 part=full side=none
accumulators 2
group_stats 0
kernel sharded_norm kind=element class=w accs=2 block=128 vector=4
kernel decide kind=control class=- accs=2 block=1024 vector=1
kernel prologue kind=segment class=w accs=0 block=128 vector=1
kernel sharded_adamw kind=element class=w accs=0 block=128 vector=4
entry reduce
  upload table=segments stream=comm
  for_each_bucket class=w
    collective kind=reduce_scatter axis=shard class=w source=full_grad target=grad
    collective kind=all_reduce axis=replicate class=w source=grad target=grad
    launch_elements kernel=sharded_norm class=w table=atoms stream=comm
    record event=reduced stream=comm
  end_bucket
end
entry finish
  upload table=groups
  for_each_bucket class=w
    wait event=reduced stream=compute
  end_bucket
  launch_control kernel=decide mode=local
  record event=summed stream=compute
  wait event=summed stream=comm
  collective kind=all_gather axis=shard source=sums target=sums accs=2
  collective kind=all_reduce axis=shard source=presence target=presence reduce=or
  collective kind=all_reduce axis=replicate source=presence target=presence reduce=or
  record event=gathered stream=comm
  wait event=gathered stream=compute
  launch_control kernel=decide mode=gathered
  launch_segments kernel=prologue class=w
  for_each_bucket class=w
    launch_elements kernel=sharded_adamw class=w
    record event=updated stream=compute
    wait event=updated stream=comm
    collective kind=all_gather axis=shard class=w source=master target=param
  end_bucket
  read_back
end
)";

namespace {

const uint64_t *bases(const void *segments, int64_t segment, int arrays) {
  size_t row = (sizeof(dfa_rt_segment_t) + 8 * arrays + 15) / 16 * 16;
  return reinterpret_cast<const uint64_t *>(
      static_cast<const char *>(segments) + segment * row +
      sizeof(dfa_rt_segment_t));
}

float *array(const uint64_t *base, int index, int64_t offset) {
  return reinterpret_cast<float *>(base[index]) + offset;
}

// Adds adjacent pairs, then pairs of pairs, and so on.
double tree(double *columns, int count) {
  for (int width = count; width > 1; width /= 2)
    for (int pair = 0; pair < width / 2; ++pair)
      columns[pair] = columns[2 * pair] + columns[2 * pair + 1];
  return columns[0];
}

template <int arrays, int gradIndex>
void norm(dfa_rt_control_t *control, const void *segments,
          dfa_rt_segment_state_t *state, const float *,
          const dfa_rt_chunk_t *atoms, int64_t begin, int64_t end, uint32_t,
          double *partials, int64_t stride) {
  for (int64_t atom = begin; atom < end; ++atom) {
    const dfa_rt_chunk_t &row = atoms[atom];
    const float *grad =
        array(bases(segments, row.segment, arrays), gradIndex, row.offset);
    double columns[DFA_RT_ATOM_COLUMNS] = {};
    double bad = 0;
    for (uint32_t index = 0; index < row.length && state[row.segment].active;
         ++index) {
      double value = double(grad[index]) * control->average;
      columns[index % DFA_RT_ATOM_COLUMNS] += value * value;
      bad += !std::isfinite(grad[index]);
    }
    partials[atom] = tree(columns, DFA_RT_ATOM_COLUMNS);
    partials[stride + atom] = bad;
  }
}

void decide(dfa_rt_control_t *control, const double *partials, int64_t stride,
            int64_t atoms, const double *groups, double *, int64_t,
            double *localSums, const double *gathered, int64_t ranks) {
  double sums[2] = {0, 0};
  if (gathered) {
    for (int64_t rank = 0; rank < ranks; ++rank)
      for (int acc = 0; acc < 2; ++acc)
        sums[acc] += gathered[2 * rank + acc];
  } else {
    for (int acc = 0; acc < 2; ++acc) {
      double columns[DFA_RT_COMBINE_COLUMNS] = {};
      for (int64_t atom = 0; atom < atoms; ++atom)
        columns[atom % DFA_RT_COMBINE_COLUMNS] += partials[acc * stride + atom];
      sums[acc] = tree(columns, DFA_RT_COMBINE_COLUMNS);
    }
  }
  if (localSums) {
    localSums[0] = sums[0];
    localSums[1] = sums[1];
    return;
  }
  control->norm = std::sqrt(sums[0]);
  control->found_inf = sums[1] > 0;
  double factor = control->average;
  if (groups[MaxNorm] > 0)
    factor *= std::fmin(1.0, groups[MaxNorm] / (control->norm + 1e-6));
  control->factor = static_cast<float>(factor);
  if (control->found_inf)
    ++control->skipped;
  else
    ++control->step;
}

double power(double base, int64_t exponent) {
  double product = 1;
  for (int64_t index = 0; index < exponent; ++index)
    product *= base;
  return product;
}

void prologue(dfa_rt_control_t *control, const double *groups,
              const void *segments, dfa_rt_segment_state_t *state,
              float *derived, int64_t begin, int64_t end, const double *,
              int64_t, double *, int64_t, const double *) {
  (void)segments;
  for (int64_t segment = begin; segment < end; ++segment) {
    if (control->found_inf || !state[segment].active)
      continue;
    int64_t step = ++state[segment].step;
    float *row = derived + 8 * segment;
    row[0] = static_cast<float>(groups[Lr] / (1 - power(groups[Beta1], step)));
    row[1] = static_cast<float>(std::sqrt(1 - power(groups[Beta2], step)));
    row[2] = static_cast<float>(groups[Beta1]);
    row[3] = static_cast<float>(groups[Beta2]);
    row[4] = static_cast<float>(groups[Eps]);
    row[5] = static_cast<float>(groups[Lr] * groups[WeightDecay]);
    row[6] = static_cast<float>(1 - groups[Beta1]);
    row[7] = static_cast<float>(1 - groups[Beta2]);
  }
}

template <int arrays, int gradIndex, int paramIndex>
void adamw(dfa_rt_control_t *control, const void *segments,
           dfa_rt_segment_state_t *state, const float *derived,
           const dfa_rt_chunk_t *chunks, int64_t begin, int64_t end, uint32_t,
           double *, int64_t) {
  if (control->found_inf)
    return;
  for (int64_t chunk = begin; chunk < end; ++chunk) {
    const dfa_rt_chunk_t &row = chunks[chunk];
    if (!state[row.segment].active)
      continue;
    const uint64_t *base = bases(segments, row.segment, arrays);
    const float *grad = array(base, gradIndex, row.offset);
    float *param = array(base, paramIndex, row.offset);
    float *m = array(base, paramIndex + 1, row.offset);
    float *v = array(base, paramIndex + 2, row.offset);
    const float *d = derived + 8 * row.segment;
    for (uint32_t index = 0; index < row.length; ++index) {
      float g = grad[index] * control->factor;
      param[index] -= d[5] * param[index];
      m[index] = d[2] * m[index] + d[6] * g;
      v[index] = d[3] * v[index] + d[7] * g * g;
      param[index] -= d[0] * m[index] / (std::sqrt(v[index]) / d[1] + d[4]);
    }
  }
}

void nextGeneration(dfa_rt_control_t *control, const double *, int64_t, int64_t,
                    const double *, double *, int64_t, double *, const double *,
                    int64_t) {
  ++control->generation;
}

template <typename F> void *erase(F function) {
  return reinterpret_cast<void *>(function);
}

void *find(const char *name) {
  std::string word = name;
  if (word == "local_norm")
    return erase(norm<4, Grad>);
  if (word == "sharded_norm")
    return erase(norm<6, ShardGrad>);
  if (word == "decide")
    return erase(decide);
  if (word == "prologue")
    return erase(prologue);
  if (word == "local_adamw")
    return erase(adamw<4, Grad, Param>);
  if (word == "sharded_adamw")
    return erase(adamw<6, ShardGrad, Master>);
  if (word == "next_generation")
    return erase(nextGeneration);
  return nullptr;
}

} // namespace

KernelSource kernels() {
  KernelSource source;
  source.resolve = find;
  return source;
}

Program parseOrDie(const char *text) {
  Result<Program> program = Program::parse(text, "test");
  EXPECT_TRUE(program.ok()) << program.status().str();
  return *program;
}

Tables tablesFor(const Program &program, const std::vector<int64_t> &sizes,
                 int64_t bucketBytes, int64_t replicas, int64_t shards,
                 int64_t rank) {
  layout::PlanInput input;
  input.mesh = {replicas, shards};
  input.options.bucketBytes = bucketBytes;
  input.options.fillOrder = layout::FillOrder::Forward;
  layout::ClassSpec record;
  record.name = "w";
  for (const ProgramArray &each : program.classes[0].arrays)
    record.arrays.push_back({each.name, layout::Format::F32});
  input.classes.push_back(record);
  for (size_t index = 0; index < sizes.size(); ++index) {
    layout::ParamSpec param;
    param.name = "p" + std::to_string(index);
    param.shape = {sizes[index]};
    input.params.push_back(param);
  }
  layout::Expected<layout::Plan> plan = layout::Plan::create(input);
  EXPECT_TRUE(plan.ok()) << plan.message();
  layout::Expected<layout::RankTables> own =
      layout::buildRankTables(*plan, rank);
  EXPECT_TRUE(own.ok()) << own.message();
  Result<Tables> tables = Tables::fromLayout(program, *plan, *own);
  EXPECT_TRUE(tables.ok()) << tables.status().str();
  return *tables;
}

} // namespace dfa::rt::test
