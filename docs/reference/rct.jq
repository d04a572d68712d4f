# Completion times by scheme, from the JSON of `compare`: means over the runs of mean, median and 90th percentile, and
# the means over the paths of the ratios of mean and 90th percentile to those of the scheme `$by` on the same path.
def average(f): map(f) | add / length;
def thousandths: . * 1000 | round / 1000;
[.runs | group_by([.trace, .cell, .seed])[] | (map(select(.cc == $by))[0].rct_ms) as $of | .[]
  | {cc, rct: .rct_ms, mean: (.rct_ms.mean / $of.mean), p90: (.rct_ms.p90 / $of.p90)}]
| "mean, median, p90 in ms; ratios of mean and p90 to \($by)",
  ([group_by(.cc)[]
    | {cc: .[0].cc, mean: average(.rct.mean), p50: average(.rct.p50), p90: average(.rct.p90), to: average(.mean), slow: average(.p90)}]
   | sort_by(.mean)[]
   | "\(.mean | round) \(.p50 | round) \(.p90 | round)  \(.to | thousandths) \(.slow | thousandths)  \(.cc)")
