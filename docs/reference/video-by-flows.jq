# Points of video per chunk over `copa:mit`, by the number of viewers on the link, from the JSON of
# `compare`. Left out are cells in which `copa:mit` itself is below -1.5: links that stand still.
def thousandths: . * 1000 | round / 1000;
def average: add / length | thousandths;
[.runs | map(select(.app == "vod")) | group_by([.trace, .cell, .seed])[]
  | (map(select(.cc == "copa:mit"))[0].users.mean) as $of | select($of > -1.5) | .[]
  | {cc, flows: .cell.flows, more: (.users.mean - $of)}]
| group_by(.cc)[]
| "\(.[0].cc): " + ([group_by(.flows)[] | "\(map(.more) | average) with \(.[0].flows)"] | join(", "))
  + ", \(map(.more) | average) in all"
