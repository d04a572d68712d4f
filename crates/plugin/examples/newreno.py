"""NewReno as a plug-in (RFC 5681, RFC 9002 section 7), asked at every acknowledgement.

    trimtab compare --app bulk --cc python:newreno.py --cc newreno --traces constant:12Mbit/s
"""


class NewReno:
    """NewReno, as an example of a plug-in."""

    def __init__(self, config):
        self.mss = config.mss_bytes
        self.min = config.min_window_bytes
        self.window = config.initial_window_bytes
        self.ssthresh = float("inf")
        self.credit = 0.0  # Acknowledged bytes that have not yet grown the window.
        self.reduced_ms = -1.0  # When the window was reduced last.
        self.recovering = self.stalled = False

    def on_ack(self, ack):
        self.stalled = False
        # Recovery ends with a packet that was sent after the reduction (RFC 9002 section 7.3.2).
        if self.recovering and not ack.in_recovery and ack.newest_sent_ms > self.reduced_ms:
            self.recovering = False
        # A window that is not used does not grow (RFC 9002 section 7.8).
        if self.recovering or not ack.cwnd_limited:
            return None
        slow_start = min(ack.acked_bytes, max(self.ssthresh - self.window, 0.0))
        self.window += slow_start
        self.credit += ack.acked_bytes - slow_start
        while self.credit >= self.window:
            self.credit -= self.window
            self.window += self.mss
        return {"window_bytes": self.window}

    def on_loss(self, loss):
        # Packets that were sent before the reduction belong to it (RFC 9002 section 7.3.2).
        if loss.newest_sent_ms <= self.reduced_ms:
            return None
        self.recovering, self.reduced_ms = True, loss.now_ms
        self.window = self.ssthresh = self.half()
        self.credit = 0.0
        return {"window_bytes": self.window}

    def on_timeout(self, timeout):
        # One that follows another, or a loss, holds the threshold (RFC 5681 section 3.1).
        if not self.recovering and not self.stalled:
            self.ssthresh = self.half()
        self.recovering, self.stalled, self.reduced_ms = False, True, timeout.now_ms
        self.window, self.credit = self.min, 0.0
        return {"window_bytes": self.window}

    def half(self):
        # Whole bytes, as a window is.
        return max((self.window + 1) // 2, 2 * self.mss, self.min)
