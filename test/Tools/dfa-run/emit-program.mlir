// RUN: dfa-run %s --emit=program | FileCheck %s
// RUN: dfa-run %s --emit=program --target=cuda | FileCheck %s --check-prefix=CUDA

// The program as the runtime reads it. Words of a mesh's library axes are
// those of the target.

// CHECK:      dfa-program 1
// CHECK-NEXT: abi 2
// CHECK-NEXT: layout l
// CHECK-NEXT: hyper lr weight_decay
// CHECK-NEXT: axis shard gloo
// CHECK-NEXT: class w derived=2 stats=0
// CHECK-NEXT: array grad element=f32 part=full side=none
// CHECK-NEXT: array param element=f32 part=full side=none
// CHECK-NEXT: accumulators 0
// CHECK-NEXT: group_stats 0
// CHECK:      kernel update_w kind=element class=w accs=0 block=128 vector=4
// CHECK:      kernel zero_grad kind=control class=- accs=0 block=1024 vector=1
// CHECK:      entry reduce
// CHECK:        collective kind=reduce_scatter axis=shard class=w source=grad target=grad reduce=sum order=any acc=0 accs=0
// CHECK:      {{^}}end
// CHECK-NEXT: entry finish
// CHECK:        record event=[[SIDE:.*]] stream=compute
// CHECK-NEXT:   wait event=[[SIDE]] stream=side
// CHECK-NEXT:   read_back stream=side
// CHECK:        for_each_bucket class=w
// CHECK-NEXT:     launch_elements kernel=update_w class=w table=chunks acc=0
// CHECK:          collective kind=all_gather axis=shard class=w source=param target=param
// CHECK:        end_bucket
// CHECK:      end
// CUDA:       axis shard nccl

dfa.mesh @dp(shard = 2 via library)
dfa.layout @l on @dp {
  dfa.class @w param = f32 grad = f32 master = none states = [] rule = sgd
  dfa.group 0 {lr = 1.0e-3, weight_decay = 0.0}
  dfa.param "p" : tensor<7xf32>, class = @w, group = 0
}

func.func @step(%g: !dfa.flat<@l, @w, full, f32> {dfa.role = "grad"},
                %p: !dfa.flat<@l, @w, shard, f32> {dfa.role = "param"},
                %ctl: !dfa.control {dfa.role = "control"})
    -> (!dfa.flat<@l, @w, full, f32> {dfa.role = "param"},
        !dfa.control {dfa.role = "control"}) {
  %r = dfa.reduce_scatter sum %g over "shard"
    : !dfa.flat<@l, @w, full, f32> -> !dfa.flat<@l, @w, shard, f32>
  %n = dfa.sgd ins(%r : !dfa.flat<@l, @w, shard, f32>)
    outs(%p : !dfa.flat<@l, @w, shard, f32>) control(%ctl)
    -> !dfa.flat<@l, @w, shard, f32>
  %full = dfa.all_gather %n over "shard"
    : !dfa.flat<@l, @w, shard, f32> -> !dfa.flat<@l, @w, full, f32>
  %c = dfa.step_count %ctl
  return %full, %c : !dfa.flat<@l, @w, full, f32>, !dfa.control
}
