# Mean rate in Mbit/s of each pair of flows, by set of rivals, over the runs of `trimtab compare --json -`.
[.runs[] | {rivals: .cell.rivals, rates: .flow_throughput_mbps}] | group_by(.rivals)[]
| .[0].rivals as $rivals
| [range(0; .[0].rates | length; 2) as $i | map(.rates[$i:$i + 2] | add / 2) | add / length * 10 | round / 10]
| "\($rivals): \(map(tostring) | join("  "))"
