# How a scheme, `$cc`, does compared with the best congestion control of each cell, by the
# experience of downloads, from the JSON of `compare`: geometric means over cells, and in how many
# cells it is more than 3% below.
def gmean(f): (map(f | log) | add / length | exp) * 1000 | round / 1000;
def fixed: ["newreno", "cubic", "bbr", "bbr3", "vegas", "westwood", "copa:mit", "copa:mvfst"];
def below: map(select(.to < 0.97)) | length;
def row(name; f): map(select(f)) | "\(name): \(gmean(.to)) of the best, below it in \(below) of \(length)";
[.runs | map(select(.app == "download")) | group_by([.trace, .cell])[]
  | (map(select(.cc == $cc))[0]) as $its
  | (map(select(.cc as $c | fixed | index($c))) | max_by(.qoe.mean)) as $best
  | (map(select(.cc == "omniscient"))[0].qoe.mean) as $bound
  | {cell: $its.cell, best: $best.cc, to: ($its.qoe.mean / $best.qoe.mean), of: ($its.qoe.mean / $bound)}]
| row("all cells"; true),
  row("1 flow"; .cell.flows == 1),
  row("4 flows"; .cell.flows == 4),
  row("16 flows"; .cell.flows == 16),
  row("buffer of 30 KB"; .cell.buffer_bytes == 30000),
  "1 flow, of omniscient: \(map(select(.cell.flows == 1)) | gmean(.of))",
  "best where it is below: " + (map(select(.to < 0.97)) | group_by(.best) | sort_by(-length)
    | map("\(.[0].best) \(length)") | join(", "))
