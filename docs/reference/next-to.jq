# What users of a scheme, `$cc`, get next to others, compared with each congestion control in its
# place, from the JSON of `compare`: by what shares the link, the geometric means over cells.
def gmean(f): (map(f | log) | add / length | exp) * 100 | round / 100;
[.runs | group_by([.trace, .cell])[]
  | (map(select(.cc == $cc))[0]) as $its | .[] | select(.cc != $cc)
  | {next: $its.cell.rivals, cc, to: ($its.qoe.mean / .qoe.mean)}]
| group_by(.next)[]
| "next to \(.[0].next): " + ([group_by(.cc)[] | "\(gmean(.to)) of \(.[0].cc)"] | join(", "))
