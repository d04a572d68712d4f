# By how much the scheme $by changes the mean completion time of each other scheme, from the JSON of `compare`. A
# point is a trace with a cell; its time is the mean over its runs. First the change of the mean over points, then
# the geometric mean of the changes of the points, in percent with 95% intervals over points (the delta method).
def average(f): map(f) | add / length;
def percent: 1000 * . | round / 10 | if . > 0 then "+\(.)" else "\(.)" end;
def interval($middle; $error): "\($middle | percent) [\($middle - 1.96 * $error | percent), \($middle + 1.96 * $error | percent)]";
[.runs | group_by([.app, .trace, .cell])[] | [group_by(.cc)[] | {key: .[0].cc, value: average(.rct_ms.mean)}] | from_entries]
| . as $points | length as $n
| "\($n) points; mean in ms: \($by) \($points | average(.[$by]) | round)",
  "scheme, its mean, and the change by \($by): of the mean; geometric",
  ($points[0] | keys_unsorted - [$by]
   | map(. as $cc | $points
     | (map(.[$by]) | add) as $ours | (map(.[$cc]) | add) as $theirs | ($ours / $theirs) as $ratio
     | ((map(.[$by] - $ratio * .[$cc] | . * .) | add * $n / ($n - 1) | sqrt) / $theirs) as $error
     | map(.[$by] / .[$cc] | log) | average(.) as $log
     | ((map(. - $log | . * .) | add / ($n - 1) / $n | sqrt) * ($log | exp)) as $spread
     | {cc: $cc, mean: ($theirs / $n), text: "\($cc)  \($theirs / $n | round)  \(interval($ratio - 1; $error))  \(interval(($log | exp) - 1; $spread))"})
   | sort_by(.mean)[] | .text)
