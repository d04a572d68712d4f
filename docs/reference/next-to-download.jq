# Each scheme's call and download next to each other, from `trimtab compare --json`: means over runs,
# for each of the scenario's rivals.
def mean: add / length;
def hundredths: . * 100 | round / 100;
.runs | group_by([.cell.rivals, .cc])[]
  | "\(.[0].cc)\(.[0].cell.rivals | if . then " next to \(.)" else "" end): call \(map(.throughput_mbps) | mean | hundredths), download "
    + "\(map(.rivals.throughput_mbps) | mean | hundredths), "
    + "frozen \(map(.freeze_ratio * 100) | mean | hundredths)%"
