# The parts of a call's score (Mortise Eqs. 10 to 13) by scheme, each a mean over the runs, with the
# change vs. gcc: over all recordings, and over those of the kind that Mortise took (appendix C.3:
# Orca's and DeepCC's cellular recordings, which have packets' own times).
def mean(f): (map(f) | add) / length;
def parts: {
  total: mean(.qoe.mean), video: mean(.vmaf),
  delay: mean([100 - .frame_delay_ms.mean / 3, 0] | max), kept: mean(100 * (1 - .drop_ratio))
};
def tenth: . * 10 | round / 10;
def table(name): (map(.trace) | unique | length) as $n
  | (map(select(.cc == "gcc")) | parts) as $gcc
  | "\(name), \($n) recordings",
    (group_by(.cc) | map(.[0].cc as $cc | parts + {$cc}) | sort_by(-.total)[] as $row
      | "  \($row.cc): " + ([["total", "video", "delay", "kept"][] as $part
          | "\($part) \($row[$part] | tenth) (\(100 * ($row[$part] / $gcc[$part] - 1) | tenth)%)"]
          | join(", ")));
.runs | table("all"), (map(select(.trace | test("nyc-|nyc2018-|mahimahi-"))) | table("of C.3"))
