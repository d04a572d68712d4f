# Each scheme's bitrate and frame rate of calls at 30 frames a second, from `trimtab compare --json`:
# means over runs.
def mean: add / length;
.runs | group_by(.cc)[]
  | "\(.[0].cc): \(map(.bitrate_kbps_mean) | mean | round) kbit/s, "
    + "\(map(30 * (1 - .drop_ratio)) | mean * 10 | round / 10) frames a second"
