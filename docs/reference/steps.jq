# Mean experience of a user by base round-trip time that steps, of each application and set of
# rivals, over the runs of `trimtab compare --json -`.
def wide(n): . + " " * (n - length);
def first_seen(f): reduce .[] as $run ([]; ($run | f) as $v | if index([$v]) then . else . + [$v] end);
def mean: add / length * 100 | round / 100 | tostring;
.runs | first_seen(.cell.rtt_steps) as $steps | first_seen([.app, .cell.rivals])[] as [$app, $rivals]
| map(select(.app == $app and .cell.rivals == $rivals))
| ([$steps[] | ltrimstr("step:") | wide(17)] | "\("\($app), \($rivals)" | wide(19)) \(add)"),
  (first_seen(.cc)[] as $cc
   | [$steps[] as $s | map(select(.cc == $cc and .cell.rtt_steps == $s).users.mean) | mean | wide(17)]
   | " \($cc | wide(18)) \(add)")
| sub(" +$"; "")
