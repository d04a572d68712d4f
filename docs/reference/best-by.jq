# What choosing by the mean and by the 90th percentile of completion times brings on each path, from
# the result of `trimtab reproduce floo/fig14`: means over the paths, in ms. Floo is not a candidate.
def mean(f): (map(f) | add) / length;
[.runs[] | select(.cc | startswith("floo") | not)] | group_by([.trace, .cell]) as $paths
| ("mean", "p90") as $by
| ($paths | map(min_by(.rct_ms[$by]).rct_ms)) as $chosen
| "best by \($by): mean \($chosen | mean(.mean) | round), p90 \($chosen | mean(.p90) | round)"
